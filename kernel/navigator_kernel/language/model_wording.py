"""The sentences about failures of models, each in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

OF_MODELS: Mapping[str, tuple[str, str]] = {
    "model.default": ("default model: {model} (saved in {path})", "默认模型：{model}（已保存到 {path}）"),
    "model.default_none": ("no default model (saved in {path})", "没有默认模型（已保存到 {path}）"),
    "model.failed": ("model {model!r}: {why}", "模型 {model!r}：{why}"),
    "model.rate_limited": ("too many requests", "请求过于频繁"),
    "model.quota_used_up": ("its account is used up", "账户额度已用完"),
    "model.unavailable": ("it is not available now", "暂时不可用"),
    "model.server_error": ("its server failed", "服务器出错"),
    "model.key_refused": ("its key was refused", "密钥被拒绝"),
    "model.forbidden": ("the provider does not allow this request", "服务商不允许此请求"),
    "model.unknown_model": ("the provider has no such model", "服务商没有这个模型"),
    "model.too_long": ("the request is longer than it can read", "请求超出模型可读的长度"),
    "model.rejected": ("the request was rejected", "请求被拒绝"),
    "model.filtered": ("the provider's content filter withheld the answer, or the rest of it", "服务商的内容过滤拦截了回答或其余部分"),
    "model.refused": ("it refuses", "模型拒绝回答"),
    "model.cut_off": ("the connection broke before the answer was complete", "回答尚未完成，连接就中断了"),
    "model.unreachable": ("nothing answers at its address", "其地址没有响应"),
    "model.no_address": ("the name of its server could not be found", "找不到服务器的域名"),
    "model.no_tls": ("no secure connection could be made to its server", "无法与服务器建立安全连接"),
    "model.redirected": ("its address redirects elsewhere, and redirects are not followed", "该地址重定向到别处，不会跟随"),
    "model.web_page": ("a web page came instead of an answer", "返回的是网页，不是回答"),
    "model.unreadable": ("its answer could not be read", "无法读取其回答"),
    "model.empty": ("its answer was empty", "回答为空"),
    "model.in_stream": ("the provider reported an error in the middle of the answer", "回答进行到一半时服务商报错"),
    "model.to_its_end": ("it took over {seconds} s to finish", "完成回答超过 {seconds} 秒"),
    "model.to_its_first_word": ("it took over {seconds} s to send its first word", "首个字超过 {seconds} 秒未返回"),
    "model.to_be_reached": ("it took over {seconds} s to connect", "连接超过 {seconds} 秒"),
    "model.between_two_words": ("it took over {seconds} s between two words", "两次返回之间超过 {seconds} 秒"),
    "model.asks_to_wait": ("{why}; the provider asks to wait {wait}", "{why}；服务商要求等待 {wait}"),
    "model.over_budget": (
        "this turn has used up its budget: {tokens} tokens{cost}",
        "本轮已达用量上限：{tokens} 个 token{cost}",
    ),
    "model.turn_time": ("this turn took over {seconds} s", "本轮超过 {seconds} 秒"),
    "model.waits": ("waiting {seconds} s, as the provider asks ({model})", "等待 {seconds} 秒：服务商要求（{model}）"),
    "model.fallback": ("{why}; {model} answered instead", "{why}；改由 {model} 回答"),
    "model.incomplete": ("the answer is not complete", "回答不完整"),
    "hint.again": (
        "send the message again later, or ask another model: navigator model use NAME",
        "请稍后重新发送，或换一个模型：navigator model use NAME",
    ),
    "hint.after_wait": (
        "send the message again after that time, or ask another model: navigator model use NAME",
        "请在此之后重新发送，或换一个模型：navigator model use NAME",
    ),
    "hint.key_refused": ("check its key: navigator model list says where it comes from", "请检查密钥：navigator model list 会显示其来源"),
    "hint.forbidden": (
        "the account may not use this model or is in a region that is not served; ask another model: navigator model use NAME",
        "该账户可能无权使用此模型，或所在地区不受支持；请换一个模型：navigator model use NAME",
    ),
    "hint.quota_used_up": ("top up the account, or ask another model", "请为账户充值，或换一个模型"),
    "hint.unknown_model": ("check its name; navigator model list shows what is set here", "请检查名称；navigator model list 显示当前设置"),
    "hint.too_long": ("shorten the message, or use a model with a larger context", "请缩短内容，或换一个上下文更长的模型"),
    "hint.filtered": ("rephrase the message, or ask another model", "请换一种说法，或换一个模型"),
    "hint.refused": ("rephrase the message, or ask another model", "请换一种说法，或换一个模型"),
    "hint.unreachable": (
        "check that its server runs, and its url in [models.providers]",
        "请检查服务器是否在运行，以及 [models.providers] 中的 url",
    ),
    "hint.no_address": (
        "check your network connection, and its url in [models.providers]",
        "请检查网络连接，以及 [models.providers] 中的 url",
    ),
    "hint.no_tls": (
        "check the server's certificate; a server without one has a url that begins with http://",
        "请检查服务器证书；没有证书的服务器，其 url 以 http:// 开头",
    ),
    "hint.web_page": (
        "check its url in [models.providers]; with kind openai it often ends in /v1",
        "请检查 [models.providers] 中的 url；kind 为 openai 时通常以 /v1 结尾",
    ),
    "hint.rejected": (
        "ask another model; if this one does not call tools, navigator model test finds out and keeps that",
        "请换一个模型；如果它不支持工具调用，navigator model test 会测出并记住",
    ),
    "hint.timeout": ("give it more time in [models], or ask another model", "请在 [models] 中延长时间，或换一个模型"),
    "hint.over_budget": ("raise turn_tokens or turn_cost in [models]", "请调高 [models] 中的 turn_tokens 或 turn_cost"),
    "hint.turn_time": ("raise turn_seconds in [models]", "请调高 [models] 中的 turn_seconds"),
    "ask.change": ("let the skill {skill} change {path}{note}:\n{diff}", "允许技能 {skill} 修改 {path}{note}：\n{diff}"),
    "ask.change_alone": (
        "let the skill {skill} change {path}, which other programs run or obey{note}:\n{diff}",
        "允许技能 {skill} 修改 {path}（其他程序会运行它或按它行事）{note}：\n{diff}",
    ),
    "ask.deliver": ("let the skill {skill} put into your project:\n{files}", "允许技能 {skill} 放入你的项目：\n{files}"),
    "ask.deliver_alone": (
        "let the skill {skill} put into your project a file that other programs run or obey:\n{files}",
        "允许技能 {skill} 在你的项目中放入一个其他程序会运行或遵照的文件：\n{files}",
    ),
    "ask.change_bytes": (
        " (it is not UTF-8 text; other bytes are shown as \\xe9)",
        "（它不是 UTF-8 文本，其他字节显示为 \\xe9 这样的形式）",
    ),
}  # fmt: skip
