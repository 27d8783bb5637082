"""Sentences that explain why a skill was chosen or not, each in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

OF_WHY: Mapping[str, tuple[str, str]] = {
    "ask.needs": (
        "{name} (needs the MCP server {servers}, which is not set up)",
        "{name}（需要尚未设置的 MCP 服务器 {servers}）",
    ),
    "reason.no_server": (
        "the nearest skill needs an MCP server that is not set up; confidence {confidence}",
        "最接近的技能需要尚未设置的 MCP 服务器；置信度 {confidence}",
    ),
    "why.because": ("{what}, because {why}", "{what}，因为{why}"),
    "why.next": ("; next: {names}", "；其次：{names}"),
    "why.nearest": ("; nearest: {names}", "；最接近：{names}"),
    "why.direct": ("no skill", "未选用技能"),
    "why.clarify": ("a question first", "先提问"),
    "why.quoted": ("'{word}'", "“{word}”"),
    "why.and": (" and ", "和"),
    "why.word": ("{words} is in its {place}", "它的{place}中有{words}"),
    "why.words": ("{words} are in its {place}", "它的{place}中有{words}"),
    "why.meaning": ("its description means something similar", "它的描述与消息意思相近"),
    "why.part.description": ("description", "描述"),
    "why.part.name": ("name", "名称"),
    "why.part.tags": ("tags", "标签"),
    "why.part.examples": ("examples", "示例"),
    "why.part.text": ("text", "正文"),
    "why.asked": ("a question came first: {question}", "先提出了问题：{question}"),
    "why.another": ("{skill} was chosen instead by {tier}", "{tier} 选择了 {skill}"),
    "why.unsure": ("no skill was certain enough for {tier}", "没有一个技能让 {tier} 足够确定"),
    "why.earlier": ("an earlier step ended it: {summary}", "前面的步骤结束了运行：{summary}"),
    "why.ended_before": ("the run ended before its step", "运行在它的步骤之前已结束"),
    "why.stopped": ("the run was stopped while it worked", "它工作时运行被停止"),
    "why.ended": ("the run ended while it worked", "它工作时运行已结束"),
    "why.used": ("it was used, and ended in {state}", "它已被使用，结束状态为 {state}"),
    "why.unknown": ("no skill is called {name}", "没有名为 {name} 的技能"),
    "why.disabled": ("{name} is disabled", "{name} 已停用"),
    "why.implicit": (
        "its author excludes {name} from models and routing",
        "{name} 的作者声明它不供模型和路由使用",
    ),
    "why.nearer": (
        "others were closer to the message than {name}; an example or a trigger in its description helps",
        "其他技能比 {name} 更接近这条消息；在它的描述中加入示例或触发词会有帮助",
    ),
    "why.undecided": ("the run ended before anything was decided", "运行在作出决定之前已结束"),
    "why.not_looked": (
        "no search was made: {kind} {entity} by {tier}",
        "没有进行检索：{tier} 决定 {kind} {entity}",
    ),
}
