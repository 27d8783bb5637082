"""Messages of people, English and Chinese, for the evaluation of the sentence splitter.

The messages were written without looking at the splitter. ``MULTI`` holds messages that spell out several
steps, each with the steps it must split into: the text of a step exactly as written, without the
connective words or list markers and without the punctuation and spaces around them. Politeness at the
front stays part of the first step; an introduction to a numbered list is dropped. ``SINGLE`` holds
messages that are one step although they contain something that looks like a connective or a list marker;
they must never be split.
"""

from __future__ import annotations

MULTI: tuple[tuple[str, tuple[str, ...]], ...] = (
    # English
    (
        "count the words in @README.md and then list the broken links in it",
        ("count the words in @README.md", "list the broken links in it"),
    ),
    (
        "Please summarise @server.log, then write the three worst errors to errors.md.",
        ("Please summarise @server.log", "write the three worst errors to errors.md"),
    ),
    (
        "install acme/word-tools then run word-count on @notes.txt",
        ("install acme/word-tools", "run word-count on @notes.txt"),
    ),
    (
        "First check the links in @docs/index.md. Then fix the broken ones. Finally commit the result.",
        ("check the links in @docs/index.md", "fix the broken ones", "commit the result"),
    ),
    (
        "1. scan src/ for TODO comments\n2. group them by author\n3. save the list as todos.json",
        ("scan src/ for TODO comments", "group them by author", "save the list as todos.json"),
    ),
    (
        "Do the following: 1. convert @sales.csv to JSON 2. sort the rows by region 3. print the first ten",
        ("convert @sales.csv to JSON", "sort the rows by region", "print the first ten"),
    ),
    (
        "1) review @auth.py 2) optimise the slow loop in it",
        ("review @auth.py", "optimise the slow loop in it"),
    ),
    (
        "step 1: install https://github.com/acme/csv-kit step 2: run csv-report on @q3.csv "
        "step 3: translate the report into German",
        (
            "install https://github.com/acme/csv-kit",
            "run csv-report on @q3.csv",
            "translate the report into German",
        ),
    ),
    (
        "Could you list every file over 10 MB in file:///srv/media and after that delete the temporary ones",
        ("Could you list every file over 10 MB in file:///srv/media", "delete the temporary ones"),
    ),
    (
        'count how often "now and then" occurs in @novel.txt, then list the lines it is on',
        ('count how often "now and then" occurs in @novel.txt', "list the lines it is on"),
    ),
    (
        "review run_then_stop in @worker.py and then write a unit test for it",
        ("review run_then_stop in @worker.py", "write a unit test for it"),
    ),
    (
        "I want to compare @old.json with @new.json and then get a summary of the differences",
        ("I want to compare @old.json with @new.json", "get a summary of the differences"),
    ),
    (
        "mcp read file:///srv/r/report.md. Afterwards translate it into French.",
        ("mcp read file:///srv/r/report.md", "translate it into French"),
    ),
    (
        "uninstall todo-scan; then install acme/todo-scan-2; then scan @lib for FIXMEs",
        ("uninstall todo-scan", "install acme/todo-scan-2", "scan @lib for FIXMEs"),
    ),
    (
        "replace a.then(b) with await in @client.js, next run the linter, finally commit",
        ("replace a.then(b) with await in @client.js", "run the linter", "commit"),
    ),
    (
        "show me the git log since Monday\nthen turn it into release notes",
        ("show me the git log since Monday", "turn it into release notes"),
    ),
    (
        "run scripts/build.sh, then check the output for warnings, then clean up the build folder, "
        "and finally commit everything",
        (
            "run scripts/build.sh",
            "check the output for warnings",
            "clean up the build folder",
            "commit everything",
        ),
    ),
    (
        "First, pull the latest main. Next, install the dependencies from @requirements.txt. "
        "After that, run the tests. Then write a short report of the failures. "
        "Lastly, open an issue for each one.",
        (
            "pull the latest main",
            "install the dependencies from @requirements.txt",
            "run the tests",
            "write a short report of the failures",
            "open an issue for each one",
        ),
    ),
    (
        "hey can u count the lines in main.rs then format it with rustfmt",
        ("hey can u count the lines in main.rs", "format it with rustfmt"),
    ),
    (
        "Extract the e-mail addresses and phone numbers from @contacts.txt, and then remove the duplicates",
        (
            "Extract the e-mail addresses and phone numbers from @contacts.txt",
            "remove the duplicates",
        ),
    ),
    (
        "Clean up the imports and the comments in @app.py. After that, check it for security problems.",
        ("Clean up the imports and the comments in @app.py", "check it for security problems"),
    ),
    (
        "summarize https://example.com/then/blog.html and then translate the summary to spanish",
        ("summarize https://example.com/then/blog.html", "translate the summary to spanish"),
    ),
    (
        "First, list the merged branches. Second, delete them locally. Third, push the deletions.",
        ("list the merged branches", "delete them locally", "push the deletions"),
    ),
    (
        'Step 1: add the task "first call, then write" to my list\nStep 2: show me all open tasks',
        ('add the task "first call, then write" to my list', "show me all open tasks"),
    ),
    (
        "count the characters in @报告.md and then 翻译成英文",
        ("count the characters in @报告.md", "翻译成英文"),
    ),
    (
        "generate a changelog from the last 20 commits and after that bump the version in @Cargo.toml to 2.1.0",
        (
            "generate a changelog from the last 20 commits",
            "bump the version in @Cargo.toml to 2.1.0",
        ),
    ),
    (
        "Take inventory of ~/Downloads, afterwards move the PDFs to ~/Documents, and finally empty the trash",
        ("Take inventory of ~/Downloads", "move the PDFs to ~/Documents", "empty the trash"),
    ),
    (
        "run the benchmark THEN optimise the slowest function THEN run it again",
        ("run the benchmark", "optimise the slowest function", "run it again"),
    ),
    (
        "Explain what `if x then y else z` means in Haskell, then rewrite @Main.hs with guards",
        ("Explain what `if x then y else z` means in Haskell", "rewrite @Main.hs with guards"),
    ),
    (
        "Rewrite the query in @q.sql and explain why it was slow. Then run it against the test database.",
        (
            "Rewrite the query in @q.sql and explain why it was slow",
            "run it against the test database",
        ),
    ),
    # Chinese
    (
        "统计 @README.md 的字数，然后列出里面的所有链接",
        ("统计 @README.md 的字数", "列出里面的所有链接"),
    ),
    (
        "先把 @sales.csv 转换成 JSON，再提取 email 这一列",
        ("把 @sales.csv 转换成 JSON", "提取 email 这一列"),
    ),
    (
        "先运行测试再提交代码",
        ("运行测试", "提交代码"),
    ),
    (
        "首先检查文档里的链接，接着修复失效的链接，最后生成一份报告。",
        ("检查文档里的链接", "修复失效的链接", "生成一份报告"),
    ),
    (
        "第一步扫描 src 目录里的 TODO，第二步按作者分组，第三步保存成 todos.json",
        ("扫描 src 目录里的 TODO", "按作者分组", "保存成 todos.json"),
    ),
    (
        "第一步：安装 acme/word-tools；第二步：用 word-count 处理 @notes.txt",
        ("安装 acme/word-tools", "用 word-count 处理 @notes.txt"),
    ),
    (
        "一、审查 @auth.py\n二、优化里面最慢的循环\n三、写单元测试",
        ("审查 @auth.py", "优化里面最慢的循环", "写单元测试"),
    ),
    (
        "1. 汇总 @server.log 里的错误\n2. 把结果发到 ops 频道",
        ("汇总 @server.log 里的错误", "把结果发到 ops 频道"),
    ),
    (
        "请依次完成：1、列出最近十次提交 2、整理成发布说明 3、保存到 docs 目录",
        ("列出最近十次提交", "整理成发布说明", "保存到 docs 目录"),
    ),
    (
        "帮我安装https://github.com/acme/csv-kit，然后用它生成@sales.csv的报表",
        ("帮我安装https://github.com/acme/csv-kit", "用它生成@sales.csv的报表"),
    ),
    (
        "麻烦汇总一下昨天的日志，随后把严重的错误列出来",
        ("麻烦汇总一下昨天的日志", "把严重的错误列出来"),
    ),
    (
        "先帮我看看@main.rs有没有问题，然后再优化一下性能",
        ("帮我看看@main.rs有没有问题", "优化一下性能"),
    ),
    (
        "统计“然后”在 @novel.txt 里出现的次数，接着列出这些句子",
        ("统计“然后”在 @novel.txt 里出现的次数", "列出这些句子"),
    ),
    (
        "扫描整个仓库的 FIXME，之后按文件分类，最后写进 @fixme.md",
        ("扫描整个仓库的 FIXME", "按文件分类", "写进 @fixme.md"),
    ),
    (
        "mcp read file:///srv/r/报告.md，然后翻译成法语",
        ("mcp read file:///srv/r/报告.md", "翻译成法语"),
    ),
    (
        "卸载 todo-scan，再安装 acme/todo-scan-2",
        ("卸载 todo-scan", "安装 acme/todo-scan-2"),
    ),
    (
        "我想对比 @old.json 和 @new.json，然后把差异整理成表格",
        ("我想对比 @old.json 和 @new.json", "把差异整理成表格"),
    ),
    (
        "先拉取最新代码，然后安装依赖，接着运行全部测试，最后把失败的用例整理成清单",
        ("拉取最新代码", "安装依赖", "运行全部测试", "把失败的用例整理成清单"),
    ),
    (
        "按下面的步骤来：\n1）清理 build 目录\n2）重新编译\n3）运行基准测试\n4）对比上一次的结果\n5）写一份总结",
        ("清理 build 目录", "重新编译", "运行基准测试", "对比上一次的结果", "写一份总结"),
    ),
    (
        "先 review 一下 @worker.py 里的 run_then_stop，然后写个 unit test",
        ("review 一下 @worker.py 里的 run_then_stop", "写个 unit test"),
    ),
    (
        "帮我 summarize @meeting.txt, then 翻译成日语",
        ("帮我 summarize @meeting.txt", "翻译成日语"),
    ),
    (
        "把 @client.js 里的 a.then(b) 改成 await，之后跑一遍 lint",
        ("把 @client.js 里的 a.then(b) 改成 await", "跑一遍 lint"),
    ),
    (
        "审查这段代码的安全性和可读性，接下来给出修改建议",
        ("审查这段代码的安全性和可读性", "给出修改建议"),
    ),
    (
        "给任务清单加一条“先打电话再发邮件”，然后显示所有未完成的任务",
        ("给任务清单加一条“先打电话再发邮件”", "显示所有未完成的任务"),
    ),
    (
        "检查 config.yaml 是否有效 然后转换成 TOML",
        ("检查 config.yaml 是否有效", "转换成 TOML"),
    ),
    (
        "提取@contacts.txt里的手机号并去重然后保存为phones.csv",
        ("提取@contacts.txt里的手机号并去重", "保存为phones.csv"),
    ),
    (
        "清点一下下载文件夹。然后把 PDF 移到文档文件夹。最后清空回收站。",
        ("清点一下下载文件夹", "把 PDF 移到文档文件夹", "清空回收站"),
    ),
    (
        "请用 git-summary 总结上周的提交，紧接着生成周报",
        ("请用 git-summary 总结上周的提交", "生成周报"),
    ),
    (
        "首先，列出所有超过 10MB 的文件；其次，删除临时文件；最后，汇报释放了多少空间。",
        ("列出所有超过 10MB 的文件", "删除临时文件", "汇报释放了多少空间"),
    ),
    (
        "把最后三个提交合并成一个，然后推送到远程",
        ("把最后三个提交合并成一个", "推送到远程"),
    ),
)

SINGLE: tuple[str, ...] = (
    # English
    "compare the old parser and the then-current lexer in @history.md",
    "what happens first and what happens then when the server boots?",
    "they rolled back the release, so what did they do next?",
    "explain how the parser opens a file and then reads it line by line",
    "write a function that downloads a page and then saves it to disk",
    "review the code in @lock.c that first takes the lock and then waits on the condition",
    "if the tests fail then tell me which ones",
    "check @server.log for timeouts that show up every now and then",
    'translate "first we eat, then we talk" into Italian',
    "what does promise.then(console.log) do?",
    "Show me how if/then/else works in bash.",
    "what changed between version 2.1. and version 2.2. of the api",
    "how many goals did 1. FC Köln score in the 2. Bundesliga according to @goals.csv",
    "list the commits between 1. March and 2. April",
    "what went wrong here?\n1. 09:14:02 INFO worker started\n2. 09:14:03 WARN queue is full\n"
    "3. 09:14:05 ERROR worker killed",
    "we cleaned the data and then the server broke; summarise @server.log",
    "then what?",
    "and then?",
    "which license did acme/csv-kit have back then",
    "who fixed the outage then and there, according to @incident.md",
    "give me a plot summary of the novel And Then There Were None",
    "count the words in @a.md and in @b.md and show both numbers",
    "rename run_then_stop to run_and_stop in @worker.py",
    "Convert @app to Next.js, please.",
    "why does the build finally work after that commit?",
    "list all users who signed up and then never logged in",
    "is it faster to sort first and then filter, or to filter first and then sort?",
    "I was told to install it and then reboot, is that right?",
    "swap first name and last name in @contacts.csv because the next import needs them the other way round",
    "in step 2 of section 3.2. in @INSTALL.md, what does the --force flag do",
    # Chinese
    "解释程序先读取文件然后解析内容的过程",
    "分析用户登录之后跳转的流程",
    "写一个先排序再去重的函数",
    "然后呢？",
    "接着说",
    "接着上面的内容写完 @draft.md",
    "把“再见”翻译成西班牙语",
    "请再次检查 docs 目录里的链接",
    "再说一遍刚才的结果",
    "再来一次",
    "删除 @data.csv 的最后一行",
    "总结最后三个提交",
    "列出 v2.1 之后的版本修复了哪些问题",
    "用 Rust 实现一个先进先出的队列",
    "把“写周报”这个任务的优先级调高",
    "安装 acme/csv-kit 的第一步是什么？",
    "如果构建失败，再把日志发给我看",
    "统计“首先”“其次”“最后”在 @essay.md 里各出现多少次",
    "@api.ts 里 promise.then(fn) 用了几次？",
    "我们昨天清理了数据，然后服务器就崩了，帮我看看 @server.log",
    "为什么程序先打印错误然后才退出？",
    "翻译 @history.md 里关于第一步兵师的段落",
    "统计星期一、二、三的日志里各有多少错误",
    "这段日志哪里不对：\n1. 10:02:11 服务启动\n2. 10:02:15 连接超时\n3. 10:02:16 进程退出",
    "审查 @lock.c 里先加锁然后等待的那段代码",
    "列出注册之后再也没有登录过的用户",
    "检查 src 里有没有不再使用的函数",
    "给《然后我就开始写 Rust 了》这篇文章写个摘要",
    "给王先生写一封道歉邮件，因为上次的报告最后没有按时交",
    "统计 @README.md 的字数并列出最长的句子",
)
