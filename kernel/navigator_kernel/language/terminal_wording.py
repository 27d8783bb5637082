"""The sentences that only a terminal shows, each in English and Chinese: questions, answers, and what chat prints."""

from __future__ import annotations

from collections.abc import Mapping

OF_TERMINALS: Mapping[str, tuple[str, str]] = {
    "notice.few_skills": (
        "installed skills: {count}. To add more, send the link of a GitHub repository, or see docs/skills-mapping.md "
        "(navigator skill mapping)",
        "自行安装的技能：{count} 个；可提供 GitHub 仓库链接安装，或查看 docs/skills-mapping.md"
        "（navigator skill mapping）",
    ),
    "notice.few_skills_chat": (
        "installed skills: {count}. To add more, send the link of a GitHub repository, or see docs/skills-mapping.md",
        "自行安装的技能：{count} 个；可提供 GitHub 仓库链接安装，或查看 docs/skills-mapping.md",
    ),
    "notice.interrupted": (
        "this was interrupted when its process was stopped: {asked}\n"
        "`yes`, or the same message, continues it without repeating finished work; `no` abandons it",
        "有一个进程在执行中被中断：{asked}\n回复“是”或同样的消息可继续，已完成的不会重复；回复“否”则放弃",
    ),
    "notice.resume": ("to answer: {command}", "回答请用：{command}"),
    "notice.continue": ("to go on: {command}", "接着做请用：{command}"),
    "notice.open": ("the question stays open; to answer it: {command}", "问题仍未回答；回答请用：{command}"),
    "notice.allow": (
        "to allow this beforehand, without a question: navigator ask --allow {word} …",
        "如要事先允许、不再询问：navigator ask --allow {word} …",
    ),
    "rights.none": ("no right was given in this session", "本次会话没有授予任何权限"),
    "rights.line": ("{word}: {right}", "权限 {word}：{right}"),
    "rights.other": ("a yes for this session: {subject}", "本次会话的同意：{subject}"),
    "rights.revoked": ("revoked: {what}", "已撤销：{what}"),
    "notice.lines": ("{what} ({count} lines, shown above)", "{what}（共 {count} 行，见上）"),
    "notice.reason": ("why not, or what instead: ", "原因，或希望改成什么："),
    "notice.change": ("what instead: ", "希望改成什么："),
    "notice.shell": ("(in a shell) {command}", "（在命令行中）{command}"),
    "notice.copy": (
        "{here} seems to be a copy of the project at {path}, which {there}.\n"
        "Shall it take over that project's sessions and approvals? Otherwise it gets a state of its own.",
        "{here} 看起来是 {path} 处项目的副本，后者{there}。\n是否接管该项目的会话和批准？否则这里使用自己的新状态。",
    ),
    "notice.before": (
        "Another project may have been at {here} before, or this one lost its mark.\n"
        "Shall it take over the sessions and approvals from then? Otherwise it gets a state of its own.",
        "{here} 处以前可能是另一个项目，或者本项目的标记丢失了。\n是否接管以前的会话和批准？否则这里使用自己的新状态。",
    ),
    "notice.still_there": ("is still there", "仍在原处"),
    "notice.gone": ("is no longer there", "已不在原处"),
    # The line of letters
    "letter.yes": ("[y]es", "[y] 是"),
    "letter.session": ("[a]lways this session", "[a] 本次会话都可以"),
    "letter.no": ("[n]o", "[n] 否"),
    "letter.edit": ("[e]dit", "[e] 修改"),
    "letter.none": ("[n]one", "[n] 都不用"),
    "letter.later": ("[?]  Ctrl-D: answer later", "[?]  Ctrl-D：稍后回答"),
    # What the letters mean, a line each, below `?`
    "legend.call.y": ("yes, this once", "同意这一次"),
    "legend.call.n": ("no; the model continues without the call", "不同意；模型不做此操作，继续工作"),
    "legend.call.e": ("no; you are asked for the reason, and the model gets it", "不同意；请说明原因，会转告模型"),
    "legend.effect.y": ("yes, this once", "同意这一次"),
    "legend.effect.n": ("no; nothing is done", "不同意；什么都不做"),
    "legend.session": ("yes, and for the same again in this session", "同意，本次会话中同样的操作不再询问"),
    "legend.right.run": (
        "yes, for this session, all commands of this skill in its workspace",
        "同意，本次会话中此技能在工作区的命令都可以",
    ),
    "legend.right.scripts": (
        "yes, for this session, all of this skill's own scripts",
        "同意，本次会话中此技能自带的脚本都可以",
    ),
    "legend.right.read": (
        "yes, for this session, reading of the project's files",
        "同意，本次会话中此技能可以读取项目的文件",
    ),
    "legend.right.edit": (
        "yes, for this session, reading and ordinary changes below {what}",
        "同意，本次会话中可以读取和修改 {what} 下的普通文件",
    ),
    "legend.right.packages": (
        "yes, for this session, all commands with the same packages",
        "同意，本次会话中使用同样软件包的命令都可以",
    ),
    "legend.right.fetch": ("yes, for this session, other pages of {what}", "同意，本次会话中 {what} 的其他网页也可以"),
    "legend.plan.y": ("run these steps", "执行这些步骤"),
    "legend.plan.n": ("run none of them", "都不执行"),
    "legend.plan.e": ("run none of them yet; you are asked what to change", "先不执行；请说明要怎么改"),
    "legend.again.y": ("do this step again", "再次执行这一步"),
    "legend.again.n": ("stop here; finished steps stay as they are", "到此为止；已完成的步骤保持原样"),
    "legend.interrupted.y": ("continue, without repeating finished work", "继续，已完成的不会重复"),
    "legend.interrupted.n": ("abandon it", "放弃"),
    "legend.one.y": ("use it", "使用"),
    "legend.one.n": ("use no skill", "不使用技能"),
    "legend.rest.y": ("do only what fits", "只做适合的部分"),
    "legend.rest.n": ("do nothing", "什么都不做"),
    "legend.several.1": ("use this one; its name works, too", "使用对应的一个；也可以输入名称"),
    "legend.several.n": ("use none of them", "都不使用"),
    "legend.value": ("type what is missing; `cancel` ends it", "请输入缺少的内容；输入“取消”则结束"),
    "legend.cancel": ("end the work here", "到此结束"),
    "legend.later": ("leave it open, to answer later", "稍后再回答"),
    # What chat says in place of a hint for the shell
    "chat.no_model": (
        "No skill is needed, and no model is set up to answer. To set one: /model PROVIDER:MODEL",
        "无需技能，也没有配置用于回答的模型。设置模型：/model PROVIDER:MODEL",
    ),
    "chat.near": (
        "No skill fits, and no model is set up, so nothing was done. Nearest skills: {skills}; to use one, type /name. "
        "To set a model: /model PROVIDER:MODEL",
        "没有合适的技能，也没有配置模型，因此什么都没有做。最接近的技能：{skills}；输入 /名称 可直接使用。"
        "设置模型：/model PROVIDER:MODEL",
    ),
    "chat.free": ("none: the next message chooses", "没有：由下一条消息决定"),
    "chat.model_none": (
        "none: /model PROVIDER:MODEL sets one for this conversation",
        "没有：用 /model PROVIDER:MODEL 为本次对话设置",
    ),
    "cost.all": ("all", "合计"),
    "cost.line": (
        "{name}: {requests} requests, {input} tokens in ({cached} from a cache), {output} out, {cost}",
        "{name}：{requests} 次请求，输入 {input} 个 token（其中 {cached} 个来自缓存），输出 {output} 个，{cost}",
    ),
    "cost.unknown": ("; what {number} of them took is not known", "；其中 {number} 次的用量未知"),
    "chat.stopped": (
        "stopped; send the message again to start over, or say something else",
        "已停止；再次发送该消息可重新开始，也可以说别的",
    ),
    "chat.stopped_open": (
        'stopped; "yes" goes on from what was asked, "no" drops it',
        "已停止；回复“是”从提问处继续，“否”则放弃",
    ),
    "chat.more_skills": (
        "and {count} more; /skills and a word or two find some",
        "另有 {count} 个；在 /skills 后加上词语可查找",
    ),
    "chat.way_model": (
        "to set one: /model anthropic:claude-haiku-4-5",
        "设置模型：/model anthropic:claude-haiku-4-5",
    ),
    "chat.help": (
        "/help            this page\n"
        "/skills [words]  the installed skills, or those that the words find\n"
        "/why             why the last turn chose what it chose\n"
        "/cost            what models took in this conversation, by skill\n"
        "/model [name]    which model is asked; with a name, that one from now on\n"
        "/skill           the skill that a follow-up goes to\n"
        "/quit            leave (Ctrl-D does, too)\n"
        "/name words      run the skill called name          @path    put a file into the message\n"
        "!command         a shell command, asked first       #name    a stored workflow\n"
        "?                at a question: what its letters mean\n"
        'A line that ends in \\ goes on in the next one; a block between lines of """ is one message.\n'
        "Tab completes names and files. Ctrl-C stops the turn, not the program.",
        "/help            本页\n"
        "/skills [词语]   已安装的技能；给出词语则只列出找到的\n"
        "/why             上一轮为何这样选择\n"
        "/cost            本次对话中模型的用量，按技能列出\n"
        "/model [名称]    当前模型；给出名称则从现在起改用它\n"
        "/skill           后续请求由哪个技能处理\n"
        "/quit            退出（Ctrl-D 也可以）\n"
        "/名称 内容       执行该技能                          @路径    把文件放进消息\n"
        "!命令            shell 命令，先询问                  #名称    已保存的工作流\n"
        "?                有问题待回答时：各字母的含义\n"
        '以 \\ 结尾的行在下一行继续；两行 """ 之间的内容是一条消息。\n'
        "Tab 补全名称和文件。Ctrl-C 停止本轮，不退出程序。",
    ),
}
