"""All fixed sentences for people, in both languages (X-31); programs read codes instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from navigator_kernel.language.client_wording import OF_CLIENTS
from navigator_kernel.language.model_wording import OF_MODELS
from navigator_kernel.language.skill_wording import OF_SKILLS
from navigator_kernel.language.terminal_wording import OF_TERMINALS
from navigator_kernel.language.why_wording import OF_WHY
from navigator_kernel.text import Language, escape_controls
from navigator_kernel.values.rights import EVERYWHERE, Right
from navigator_kernel.values.route import RouteDecision

SENTENCES: Mapping[str, tuple[str, str]] = {
    "page.loading": ("Loading {skill}…", "正在加载 {skill} 模块…"),
    "reason.instruction": ("written as an instruction", "以指令形式给出"),
    "reason.exact": ("named exactly", "明确点名"),
    "reason.failed_twice": ("two failures in a row", "连续失败两次"),
    "reason.released": ("an interruption word", "中断词"),
    "reason.answer": ("the answer to a question of {name}", "对 {name} 提问的回答"),
    "reason.clauses": (
        "each clause fits another skill; confidence {confidence}",
        "各分句分属不同技能；置信度 {confidence}",
    ),
    "reason.chosen": ("you chose {name}", "你选择了 {name}"),
    "reason.follow_up": ("a follow-up of {name}", "{name} 的后续请求"),
    "reason.steps": ("the message lists several steps", "消息明确包含多个步骤"),
    "reason.orchestrated": ("a plan was asked for", "要求制定方案"),
    "reason.declined": ("you declined", "你没有同意"),
    "reason.approved": ("you agreed", "你同意了"),
    "reason.unreadable": ("a named file cannot be read", "指定的文件无法读取"),
    "reason.nothing_known": ("no skill mentions any word of it", "没有技能与之相关"),
    "reason.unlikely": ("no skill matched clearly; best confidence {confidence}", "没有足够匹配的技能；最高置信度 {confidence}"),
    "reason.example": ("the message is an example of {name}", "消息与 {name} 的示例一致"),
    "reason.likely": ("these skills may fit; confidence {confidence}", "可能适合的技能；置信度 {confidence}"),
    "reason.unwanted": ("the message asks for nothing that a skill does", "消息不需要技能"),
    "reason.no_skill": ("you chose none of them", "你没有选择任何技能"),
    "reason.equal": ("several skills are equally likely; confidence {confidence}", "多个技能同样匹配；置信度 {confidence}"),
    "reason.judged": ("a model chose among the likely skills", "由模型在候选中选择"),
    "reason.judged_failed": ("a model was asked and could not choose", "已询问模型，但未能选择"),
    "reason.leader": ("a clear leader: {name}, confidence {confidence}", "明显领先：{name}，置信度 {confidence}"),
    "section.logic_trace": ("[Logic Trace]", "[Logic Trace] 路由逻辑"),
    "section.action_vector": ("[Action Vector]", "[Action Vector] 执行指令"),
    "section.state_update": ("[State Update]", "[State Update] 状态变更"),
    "state.unchanged": ("nothing changed", "无变更"),
    "state.effect": ("changed: {what}", "已变更：{what}"),
    "state.sticky": ("follow-ups go to {agent} ({target})", "后续请求由 {agent} 处理（{target}）"),
    "state.retry": ('it failed; "retry" tries it again', "执行失败；回复“重试”可再试一次"),
    "state.waiting": ("waiting for: {what}", "等待：{what}"),
    "state.lasting": (
        'a yes is for this once; "for this session" or "always" is for longer',
        "“是”仅限本次；回复“本次会话”或“总是”可延长授权",
    ),
    "prompt.unworked": (
        "{skill} needs a model to carry it out; nothing was done",
        "{skill} 需要模型来执行；未执行任何操作",
    ),
    "prompt.way_model": (
        "to set one: navigator model use anthropic:claude-haiku-4-5",
        "设置模型：navigator model use anthropic:claude-haiku-4-5",
    ),
    "prompt.way_host": (
        "to use it in your coding agent: navigator host install claude-code (or codex, gemini)",
        "在编程助手中使用：navigator host install claude-code（或 codex、gemini）",
    ),
    "prompt.way_show": ("to read its prompt: the same with --show-prompt", "查看提示词：加上 --show-prompt"),
    "trace.tier": ("{tier}: {reason}", "{tier}：{reason}"),
    "ask.missing": ("{skill} needs: {what}", "{skill} 需要：{what}"),
    "ask.which": ("Which skill? {options}{more}  (n: none of them)", "使用哪个技能？{options}{more}（n：都不用）"),
    "ask.which_file": ("Which {name}? {options}", "哪一个 {name}？{options}"),
    "ask.other": (
        "{text!r} names nothing else that {skill} could work on; which file, folder or time is meant?",
        "“{text}”没有说明 {skill} 要换成什么；指的是哪个文件、文件夹或时间？",
    ),
    "ask.more": ("  and {count} more", "  另有 {count} 个"),
    "ask.use": ("Use {name}? (y or n)", "使用 {name} 吗？（y 或 n）"),
    "ask.one_instruction": (
        "only one instruction per message; which one: {options}?",
        "每条消息只能包含一个指令，请选择：{options}？",
    ),
    "ask.source": ("which repository should {skills} come from?", "请提供 {skills} 所在的仓库"),
    "ask.mcp": ("which MCP server and resource? Missing: {what}", "请提供 MCP 服务器与资源，缺少：{what}"),
    "usage.line": ("{model}, {tokens} tokens, {cost}", "{model}，{tokens} 个 token，{cost}"),
    "usage.unpriced": ("price not known", "价格未知"),
    "usage.all_unknown": ("{model}: the cost is not known", "{model}：已付用量未知"),
    "usage.unknown": (
        "{count} of {requests} requests were interrupted, and their usage is not known",
        "{requests} 次请求中有 {count} 次中断，其用量未知",
    ),
    "prompt.guide": ("[Guidelines]", "[行为指南]"),
    "prompt.environment": ("[Environment]", "[环境信息]"),
    "prompt.time": ("time: {now}", "时间：{now}"),
    "prompt.folder": (
        "the skill's own files (read-only): {path}; read the ones that the guidelines name when you need them",
        "技能自带的文件（只读）：{path}；需要时再读取指南中提到的文件",
    ),
    "prompt.workspace": (
        "workspace, the current folder of commands, where new files belong: {path}",
        "工作区（命令的当前目录，新文件写在这里）：{path}",
    ),
    "prompt.deliver": (
        "files in the workspace are not in the person's folder yet; deliver copies results there",
        "工作区的文件还不在用户的文件夹里；用 deliver 把结果复制过去",
    ),
    "prompt.project": (
        "the person's project: {path}; files in it that the person did not name need approval",
        "用户的项目：{path}；其中未被提到的文件需要用户同意才能读取",
    ),
    "prompt.earlier": (
        "files that earlier turns of this conversation wrote, read-only (edit copies one to the workspace): {paths}",
        "本对话此前写出的文件（只读；edit 会在工作区中生成副本）：{paths}",
    ),
    "prompt.named": ("files that the person named: {paths}", "用户提到的文件：{paths}"),
    "prompt.continue": ("Go on.", "请继续。"),
    "prompt.continue_check": (
        'You see the end of an answer. Say whether its writer still has work to do that it was about to begin. '
        'Answer with JSON only: {{"continue": true}} or {{"continue": false}}',
        '你会看到一段回答的结尾。判断作者是否还有即将开始、尚未完成的工作。只输出 JSON：{{"continue": true}} 或 {{"continue": false}}',
    ),
    "tool.skill": (
        "Reads the guidelines of another installed skill, if the current ones do not cover the request.",
        "读取另一个已安装技能的行为指南；仅在当前指南不能满足需求时使用。",
    ),
    "tool.read": (
        "Reads a text file, with a number before each line, or shows a picture or a PDF. file_path is relative to the workspace or to the skill's folder, or absolute.",
        "读取文本文件（每行前有行号），或显示图片、PDF。file_path 相对于工作区或技能目录，也可以是绝对路径。",
    ),
    "tool.list": ("Lists a folder; by default the skill's own.", "列出目录内容；默认是技能自己的目录。"),
    "tool.glob": (
        "Finds files below a folder by a pattern such as **/*.md; by default in the skill's own folder.",
        "按模式（例如 **/*.md）查找目录下的文件；默认在技能自己的目录中。",
    ),
    "tool.grep": (
        "Searches the lines of files with a regular expression (Python's syntax); by default in the skill's own folder.",
        "用正则表达式（Python 语法）搜索文件内容；默认在技能自己的目录中。",
    ),
    "tool.write": (
        "Writes a whole file: a new one in the workspace, or one of the person's project, who is shown the change first.",
        "写入整个文件：在工作区新建，或改写用户项目中的文件（会先向用户展示改动）。",
    ),
    "tool.edit": (
        "Replaces old_string with new_string in a file. old_string must be in it exactly once, or set replace_all.",
        "在文件中把 old_string 替换为 new_string。old_string 必须恰好出现一次，或者设置 replace_all。",
    ),
    "tool.deliver": (
        "Copies files of any type from the workspace (from: their paths, or a folder) to the person's project (to: a path "
        "there, or a folder that ends in /), after the person agrees. Files in the workspace are not in the person's folder "
        "until then.",
        "把工作区中任意类型的文件（from：文件路径或目录）复制到用户的项目中（to：项目中的路径，或以 / 结尾的目录），会先征得用户同意。"
        "在此之前，工作区的文件不在用户的文件夹里。",
    ),
    "deliver.new": ("{path} (new, {size} bytes, {kind})", "{path}（新文件，{size} 字节，{kind}）"),
    "deliver.replaces": (
        "{path} ({size} bytes, {kind}; replaces a file of {before} bytes)",
        "{path}（{size} 字节，{kind}；替换原有 {before} 字节的文件）",
    ),
    "tool.run": (
        "Runs a bash line in a sandbox without network; the workspace is its current folder, and only there it may write. "
        "The skill's files (scripts/x.py) and the named files are there by their names, read-only; $SKILL_ROOT is the "
        "skill's folder. Name the packages that it needs in packages (Python, or npm:NAME); no command can install them.",
        "在没有网络的沙箱中运行一行 bash；当前目录是工作区，只能写入这里。技能的文件（scripts/x.py）和用户提到的文件在此可按名称只读访问；"
        "$SKILL_ROOT 是技能目录。需要的软件包写在 packages 中（Python 包，或 npm:NAME）；不能用命令安装。",
    ),
    "tool.fetch": (
        "Gets a web page as text; a long page, or content that is not text, is saved as a file in the workspace. Only from these hosts: {hosts}.",
        "获取网页文本；过长或非文本的内容会作为文件保存在工作区。仅限以下主机：{hosts}。",
    ),
    "tool.wrote": ("wrote {path} ({size} bytes)", "已写入 {path}（{size} 字节）"),
    "files.copied": ("copied to {path}; navigator undo {run} takes it back", "已复制到 {path}；navigator undo {run} 可撤销"),
    "files.hint": ("navigator files {run} NAME --to PATH copies one", "navigator files {run} 文件名 --to 路径 可复制一个文件"),
    "files.here": ("not in the project", "不在项目中"),
    "files.delivered": ("delivered to {path}", "已放到 {path}"),
    "files.gone": ("removed", "已删除"),
    "files.gone_to": ("removed; delivered to {path}", "已删除；已放到 {path}"),
    "files.disarmed": ("renamed: programs would obey it unasked", "已改名：否则其他程序会自动遵照它"),
    "reply.file": ("file: {path} ({size} bytes)", "文件：{path}（{size} 字节）"),
    "tool.not_shown": (
        "(The file itself is not shown here: do not guess what is in it.)",
        "（此处不显示文件内容，请勿猜测其内容。）",
    ),
    "tool.same": ("{path} is already like that; nothing was written", "{path} 已是如此，未写入"),
    "ask.read_project": (
        "let the skill {skill} read files of {folder} that you did not name, all but secrets",
        "允许技能 {skill} 读取 {folder} 中你未提到的文件（不含机密文件）",
    ),
    "ask.read_files": (
        "let the skill {skill} work on files that you did not name: {files}",
        "允许技能 {skill} 处理你未提到的文件：{files}",
    ),
    "tool.needs_approval": (
        "not done: {tool} needs the person's approval, and they are asked. Continue without it, or try it again after they agree.",
        "未执行：{tool} 需要用户批准，正在询问。请先不使用它，或在用户同意后再试一次。",
    ),
    "tool.load_skill": (
        "Loads the guidelines of a skill. Do this before you use its tools, when the request fits its description:",
        "读取技能的行为指南。当请求符合其描述时，请先读取，再使用它的工具：",
    ),
    "tool.run_skill": (
        "Runs the command of a skill in a sandbox and returns its output. arguments is its command line, without the name:",
        "在沙箱中运行技能的命令并返回其输出。arguments 是不含名称的命令行参数：",
    ),
    "ask.right": ("a yes for this session: {right}", "选择“本次会话”：{right}"),
    "right.run": (
        "{skill} may run commands in its workspace, whatever it then holds, without network; of the project they see only files that you named",
        "{skill} 可以在工作区中运行命令（无论其中当时有什么），不联网；项目中只能看到你提到的文件",
    ),
    "right.project": ("the project", "项目"),
    "right.scripts": ("{skill} may run the scripts that it brings, as they are now", "{skill} 可以运行自带的脚本（限当前内容）"),
    "right.read": ("{skill} may read files of the project, all but secrets", "{skill} 可以读取项目中的文件（不含机密文件）"),
    "right.edit": (
        "{skill} may read files below {what} and change ordinary ones; files that other programs run or obey are still asked about",
        "{skill} 可以读取 {what} 下的文件并修改普通文件；其他程序会执行或遵从的文件仍逐个询问",
    ),
    "right.fetch": (
        "{skill} may get pages from {what}, until it has read your files or data",
        "{skill} 可以从 {what} 获取网页，直到它读取了你的文件或数据",
    ),
    "right.packages": (
        "{skill} may run commands in its workspace with these packages, without network: {what}",
        "{skill} 可以在工作区中运行使用这些软件包的命令，不联网：{what}",
    ),
    "ask.run_files": ("{what}\nthe files that it names:\n{files}", "{what}\n其中提到的文件：\n{files}"),
    "ask.file": ("{path} ({size} bytes):\n{text}", "{path}（{size} 字节）：\n{text}"),
    "ask.file_of_bytes": ("{path} ({size} bytes that are not text, sha256:{digest})", "{path}（{size} 字节，不是文本，sha256:{digest}）"),
    "ask.fetch": ("let the skill {skill} get a page from {host}:", "允许技能 {skill} 从 {host} 获取网页："),
    "ask.again": (
        "repeat a call that was interrupted when the process was stopped, and that may have had an effect: {tool} {arguments}",
        "再次执行进程中断时正在进行、可能已经生效的调用：{tool} {arguments}",
    ),
    "tool.failed": ("failed: {error}", "操作失败: {error}"),
    "tool.done": ("done", "操作成功"),
    "tool.noted": ("noted; go on", "已记下；请继续"),
    "tool.unknown": ("there is no tool called {tool}; these are offered: {offered}", "没有名为 {tool} 的工具；可用的有：{offered}"),
    "tool.no_skill": (
        "no skill is called {name}; there are: {near}. If none of them fits, answer without a skill",
        "没有名为 {name} 的技能；现有：{near}。都不适用时请直接回答",
    ),
    "tool.not_text": ("skill {name} has no guidelines that can be read here", "技能 {name} 没有可在此读取的行为指南"),
    "tool.unknown_skill": (
        "skill {name} was neither installed nor trusted by the person: navigator skill trust {name}",
        "技能 {name} 未由用户安装或信任：navigator skill trust {name}",
    ),
    "ask.skill_tools": ("let the skill {skill}, which you neither installed nor trusted, use the tools {tools}", "允许你未安装也未信任的技能 {skill} 使用工具 {tools}"),
    "ask.leaks": (
        "(the model has read your files or data, and this call may send them out)",
        "（模型已读取你的文件或数据，此调用可能将其发送出去）",
    ),
    "tool.declined": ("not done: nobody agreed to {tool}", "未执行：{tool} 未获同意"),
    "tool.refused": (
        "refused: the person said no to this call of {tool}. It was not done. Continue without it, or in another way.",
        "已拒绝：用户不同意这次调用 {tool}，没有执行。请不用它继续，或换一种做法。",
    ),
    "tool.may_have_acted": (
        "refused: this call of {tool} was interrupted when the process was stopped. It may have had an effect, and the person declined to repeat it. Check the present state before you continue.",
        "已拒绝：进程中断时这次 {tool} 调用正在执行，可能已经生效，用户不同意再次执行。请先查看现状再继续。",
    ),
    "tool.refused_why": ("the person's reason: {why}", "用户说明的原因：{why}"),
    "tool.refused_before": (
        "refused: the person declined this same call of {tool} before, and is not asked again",
        "已拒绝：用户已拒绝过同样的 {tool} 调用，不再询问",
    ),
    "tool.slow": ("{tool} took too long", "{tool} 执行超时"),
    "tool.too_many": (
        "not done: one answer may have {most} calls. Call {tool} again in your next answer.",
        "未执行：一次回答最多 {most} 个调用。请在下一次回答中再调用 {tool}。",
    ),
    "tool.no_time": ("not done: the time of this turn is over", "未执行：本轮时间已用完"),
    "tool.same_again": (
        "This same call had this same result before. If it has it once more, the work ends: do it in another way.",
        "同样的调用之前得到过同样的结果。再有一次，工作就会结束：请换一种做法。",
    ),
    "result.shortened": (
        "(the result of {tool}, {size} characters, was left out here to save room; the whole of it is in {path})",
        "（为节省空间，这里略去了 {tool} 的结果，共 {size} 个字符；全文在 {path}）",
    ),
    "result.left_out": (
        "(the result of {tool}, {size} characters, was left out here to save room; call it again if you need it)",
        "（为节省空间，这里略去了 {tool} 的结果，共 {size} 个字符；需要时请再次调用）",
    ),
    "prompt.left_out": (
        "(To save room, the first {number} messages of this work were left out here. The files are where they were; the skill and the request stand above.)",
        "（为节省空间，这里略去了这项工作最初的 {number} 条消息。文件都还在原处；技能和请求见上文。）",
    ),
    "prompt.last": (
        "[From the kernel, not the person] The work stops here: {why}. You cannot call tools now. Answer the person in a few sentences: what is done, in which files the results are, what is left to do. They can say continue.",
        "【来自内核，不是用户】工作到此为止：{why}。现在不能调用工具。请用几句话回答用户：完成了什么，结果在哪些文件里，还剩什么要做。用户可以说“继续”。",
    ),
    "prompt.empty": (
        "[From the kernel, not the person] Your answer was empty. Go on with the work, or say what was done.",
        "【来自内核，不是用户】你的回答是空的。请继续工作，或说明完成了什么。",
    ),
    "status.round": ("round {number}", "第 {number} 轮"),
    "status.tokens": ("{number} tokens", "{number} 个 token"),
    "status.files": ("{number} files", "{number} 个文件"),
    "hint.go_on": ("say continue to go on with the work", "说“继续”就会接着做"),
    "hint.go_on_or": ("say continue to go on with the work; {hint}", "说“继续”就会接着做；{hint}"),
    "tool.no_json": ("the arguments of {tool} are not a JSON object", "{tool} 的参数不是 JSON 对象"),
    "specialist.fix": ("Your previous answer was not accepted: {wrong}. Try again.", "你之前的回答未被接受：{wrong}。请重新完成。"),
    "backend.unknown": ("the skill asks for {backend}, which is not set in [models.aliases]; {model} was asked", "技能要求 {backend}，但 [models.aliases] 中没有设置；已改用 {model}"),
    "specialist.stuck": ("stopped: the same call had the same result again and again", "停止：同一个调用一再得到同样的结果"),
    "specialist.length": ("stopped: the answer was cut off", "停止：回答未能完成"),
    "prompt.skills": (
        "[Skills that may fit; the tool `skill` loads one by its name, with its tools. If none fits, answer without one.]",
        "[可能适用的技能：用 `skill` 工具按名称加载，同时获得其工具；都不适用时请直接回答]",
    ),
    "prompt.memory": ("[Related memory]", "[相关记忆]"),
    "prompt.skill": ("run {skill} {args}", "执行 {skill} {args}"),
    "own.thanks": ("nothing to do", "没有要做的事"),
    "own.nothing": ("nothing is open; say what you need", "没有等待回答的问题；请说明你的需要"),
    "own.edit": (
        "the plan is as it was and did not run. Say the whole task as it should be, or answer yes or no",
        "方案没有改变，也没有执行。请完整说明任务应当怎样，或回答是或否",
    ),
    "own.undo": ("put back as it was before the last run: {files}?", "恢复到上次执行之前的内容：{files}？"),
    "own.undo_nothing": (
        "nothing to put back: the last run changed no file of this project. What it sent or did elsewhere cannot be taken back from here",
        "没有可恢复的内容：上次执行没有修改此项目的文件。它在别处发送或执行的内容无法从这里撤回",
    ),
    "own.complaint": (
        'nothing was run again. "retry" repeats the last run, or say what should be different',
        "没有再次执行。输入“重试”可重复上次执行，或说明应当怎样改",
    ),
    "own.complaint_undo": (
        'nothing was run again. "undo" puts back what the last run changed, "retry" repeats it, or say what should be different',
        "没有再次执行。“撤销”恢复上次执行的改动，“重试”重复执行，或说明应当怎样改",
    ),
    "undo.undone": ("restored {path}", "已恢复 {path}"),
    "undo.as_before": ("unchanged: {path}", "未变：{path}"),
    "undo.changed_since": (
        "kept: {path}, which was changed after the run",
        "已保留：{path}，执行之后又被修改",
    ),
    "open.approval": ("still open: {what}", "仍待回答：{what}"),
    "open.question": ("still open: {what} (cancel drops it)", "仍待回答：{what}（“取消”可放弃）"),
    "open.withdrawn": ("no longer open: {what}", "不再等待回答：{what}"),
    "reason.open": ("the question is still open", "问题仍待回答"),
    "reason.edit": ("a change to the plan", "对方案的修改"),
    "reason.undo": ("the last run was to be taken back", "要求撤销上次执行"),
    "reason.undone": ("you agreed to put files back", "你同意恢复文件"),
    "reason.thanks": ("the message asks for nothing", "消息没有提出要求"),
    "reason.nothing": ("nothing was open", "没有等待回答的问题"),
    "reason.complaint": ("the last result was not what you wanted", "对上次结果不满意"),
    "ask.release": ("released; what next?", "已停止，请说明下一步"),
    "ask.failed_twice": (
        "two failures in a row; stopped. What should change before the next try?",
        "连续失败 2 次，已停止。重试前需要调整什么？",
    ),
    "ask.approve": ("this needs your approval: {what}", "需要你的授权：{what}"),
    "declined": ("not done, as you asked", "已取消"),
    "direct.no_model": ("No skill is needed, and no model is set up to answer.", "无需技能，也没有配置用于回答的模型。"),
    "direct.near": (
        "No skill fits, and no model is set up, so nothing was done. Nearest skills: {skills}; to use one, write /name. "
        "`navigator model list` shows how to set a model up.",
        "没有合适的技能，也没有配置模型，因此什么都没有做。最接近的技能：{skills}；输入 /名称 可直接使用。"
        "`navigator model list` 说明如何配置模型。",
    ),
    "capabilities": (
        "Name a GitHub repository, or send its link, to see its skills.\n"
        "Name a source to install a skill from it, or a keyword to search for skills.\n"
        "Name a skill to run or uninstall it.",
        "提供 GitHub 仓库链接或名称 → 得到其中技能的分析。\n提供技能来源或关键词 → 安装或查找对应技能。\n提供技能名称 → 执行或卸载该技能。",
    ),
    "capabilities.summary": (
        "Say what you need, and the installed skill that fits does it. You can also:",
        "说出需求，由合适的已安装技能完成。也可以：",
    ),
    "unknown.skill": ("no skill is called {name}", "没有名为 {name} 的技能"),
    "unknown.disabled": ("the skill {name} is disabled; to switch it on", "技能 {name} 已禁用；启用它"),
    "unknown.script": ("no script is called {name}", "没有名为 {name} 的脚本"),
    "unknown.workflow": ("no workflow is called {name}", "没有名为 {name} 的工作流"),
    "unknown.file": ("cannot read {name}", "无法读取 {name}"),
    "unknown.suggest": ("{text}; did you mean {names}?", "{text}；你是否指：{names}？"),
    "agent.garbage": ("{agent} gave no valid report", "{agent} 未返回有效报告"),
    "agent.silent": ("{agent} returned nothing", "{agent} 没有返回任何内容"),
    "agent.crashed": ("{type}: {msg}", "{type}：{msg}"),
    "agent.timeout": ("Timeout: no answer within {seconds} s", "超时：{seconds} 秒内无响应"),
    "agent.missing": ("no agent is called {name}", "没有名为 {name} 的子智能体"),
    "candidates.none": ("the intent names no candidate", "意图未给出任何候选"),
    "candidates.failed": ("no candidate could be used; tried: {tried}; {reason}", "无法找到可用资源；尝试过的候选：{tried}；{reason}"),
    "validation.unmet": ("the result does not meet: {rule}", "结果不满足：{rule}"),
    "fields.missing": ("missing in the answer: {names}", "返回缺少字段：{names}"),
    "offloaded": ("the full output is in {path}", "完整输出见 {path}"),
    "skills.done": ("{skill} done", "{skill} 执行完成"),
    "skills.prompt": ("{skill}: prompt ready", "{skill}：提示词已就绪"),
    "skills.failed": ("{skill} ended with exit code {code}", "{skill} 退出码 {code}"),
    "skills.silent": ("{skill} printed nothing", "{skill} 没有输出"),
    "workflow.scope": (
        "scope: installed skills; docs/skills-mapping.md has more",
        "仅在已安装的技能中匹配；更多技能见 docs/skills-mapping.md",
    ),
    "workflow.rest": (
        "no installed skill fits: {steps}. Answer yes to run only {others}, or name a skill ({scope})",
        "没有已安装的技能适合：{steps}。回答“是”则只执行：{others}；也可以指定一个技能（{scope}）",
    ),
    "workflow.handed": ("its output and files go to the next step", "输出与文件交给下一步"),
    "workflow.last": ("the result", "结果"),
    "workflow.no_model": (
        "{skills}: needs a model to carry it out, and none is set up.",
        "{skills}：需要模型来执行，尚未设置模型。",
    ),
    "workflow.ask": (
        "{count} steps, nothing done yet; run them? (yes/no)",
        "共 {count} 步，尚未执行；是否执行？（是/否）",
    ),
    "workflow.token": (
        "to run it: navigator workflow approve {token}",
        "执行请用：navigator workflow approve {token}",
    ),
    "workflow.resume": (
        "to continue: navigator workflow resume {token}",
        "继续请用：navigator workflow resume {token}",
    ),
    "workflow.result": ("the result is in {path}", "结果见 {path}"),
    "workflow.unwritten": ("the result could not be written to its file: {reason}", "结果未能写入文件：{reason}"),
    "workflow.left": (
        "a workflow has at most {limit} steps: only the first {limit} are offered; left out: {steps}",
        "工作流最多 {limit} 步：仅提供前 {limit} 步；未包含：{steps}",
    ),
    "workflow.many": (
        "{count} steps are more than the 3 that a workflow should have",
        "{count} 步超过工作流建议的 3 步",
    ),
    "workflow.doubt": (
        "step {step} ({text}) was under way when the program ended, and may have acted; repeat it? (yes/no)",
        "第 {step} 步（{text}）执行中程序中断，可能已产生影响；是否重复执行？（是/否）",
    ),
    "workflow.secret": (
        "step {step} contained a secret, which is not stored: send the whole message again with --yes, so that it runs at once, or "
        "let the step read the secret from a file",
        "第 {step} 步中的密钥不会被保存：请加上 --yes 重新发送整条消息，使其立即执行；或让该步骤从文件读取密钥",
    ),
    "workflow.unfit": (
        "the input of step {step} is not a request that {agent} accepts: {text}",
        "第 {step} 步的输入不是给 {agent} 的指令：{text}",
    ),
    "workflow.retry": (
        "step {step} of {total} did not succeed, the run stopped; try it again? (yes/no)",
        "第 {step}/{total} 步未成功，已停止；是否重试？（是/否）",
    ),
    "workflow.twice": (
        "step {step} of {total} failed twice; stopped. Change what it needs, then: navigator workflow resume {token}, or abort",
        "第 {step}/{total} 步连续失败 2 次，已停止。调整后执行 navigator workflow resume {token}，或用 abort 终止",
    ),
    "worker.done": ("{what} done", "{what} 执行完成"),
    "worker.failed": ("{what} ended with exit code {code}", "{what} 退出码 {code}"),
    "worker.cut": ("timed out after {seconds} s; the output so far is kept", "{seconds} 秒后超时；已保留部分输出"),
    "worker.exceeded": (
        "{what} was stopped: it used more {limit} than allowed; the output so far is kept",
        "{what} 已停止：超出限额（{limit}）；已保留部分输出",
    ),
    "mcp.done": ("{server}: {operation} done", "{server}：{operation} 完成"),
    "mcp.large": (
        "{server}: {operation} answered with more than is shown; all of it is in {file}",
        "{server}：{operation} 的回答太长，这里只是开头；全文在 {file}",
    ),
    "mcp.timeout": ("Timeout: no answer from {server} (>{seconds}s)", "超时：{server} 在 {seconds} 秒内无响应"),
    "lifecycle.list": ("{count} skills", "{count} 个技能"),
    "lifecycle.search": ("{count} skills found; scope: installed skills, docs/skills-mapping.md has more", "在已安装的技能中找到 {count} 个；更多技能见 docs/skills-mapping.md"),
    "lifecycle.more": ("and {count} more: navigator skill list", "另有 {count} 个：navigator skill list"),
    "lifecycle.off": (" (disabled)", "（已禁用）"),
    "lifecycle.done": ("{operation} done", "{operation} 完成"),
    "lifecycle.unchanged": ("{operation}: nothing to do", "{operation}：无需变更"),
    **OF_SKILLS,
    **OF_TERMINALS,
    **OF_WHY,
    **OF_MODELS,
    **OF_CLIENTS,
}  # fmt: skip


BETWEEN: Mapping[Language, str] = {"en": ", ", "zh": "、"}  # between names
APART: Mapping[Language, str] = {"en": ", ", "zh": "，"}  # between parts of a sentence
COLON: Mapping[Language, str] = {"en": ": ", "zh": "："}


_COUNTED = ("skill", "step", "line", "byte", "token", "request", "file")  # what sentences count


def right_in(right: Right, language: Language) -> str:
    """What the right allows, in words; the folder to edit, or the packages, as they are."""
    kind, _, _ = right.word.partition(":")
    return say(f"right.{kind}", language, skill=escape_controls(right.skill), what=object_of(right.word, language))


def object_of(word: str, language: Language) -> str:
    """What the word of a right names: a folder, packages or a host; empty if it names nothing."""
    return say("right.project", language) if word == EVERYWHERE else escape_controls(word.partition(":")[2])


def say(key: str, language: Language, **values: Any) -> str:
    """The sentence `key` in `language`, with `values` filled in once; a number of one has a singular."""
    sentence = SENTENCES[key][language == "zh"]
    for name in [name for name, value in values.items() if value in (1, "1")]:
        for word in _COUNTED:
            sentence = sentence.replace(f"{{{name}}} {word}s", f"{{{name}}} {word}")
    return sentence.format(**values)


def between(names: Iterable[str], language: Language) -> str:
    """The names as a list in a sentence."""
    return BETWEEN[language].join(names)


def worded(kind: str, code: str, language: Language) -> str:
    """The word for a code of one kind; an unknown code is returned unchanged."""
    key = f"{kind}.{code}"
    return say(key, language) if key in SENTENCES else code


def because(decision: RouteDecision, language: Language) -> str:
    """The reason of a decision as a sentence."""
    facts = {"name": decision.entity or "", "confidence": f"{decision.confidence:.2f}"}
    return because_of(decision.reason, language, **facts)


def because_of(code: str, language: Language, **facts: str) -> str:
    """The sentence of a reason's code, for readers of the run log."""
    key = f"reason.{code}"
    return say(key, language, **facts) if key in SENTENCES else code
