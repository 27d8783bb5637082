"""Says whether a part of a message is an order of its own: one that begins with an imperative, in either language."""

from __future__ import annotations

import re
from collections.abc import Collection

from navigator_kernel.text import lazy_compile

_VERBS_EN = frozenset(
    """add aggregate align amend analyse analyze annotate append apply archive arrange ask assemble audit back bench
    benchmark break build bump bundle calculate call capture change chart check checkout choose classify clean
    clear clone close collect combine comment commit compare compile compress compute concatenate configure
    connect convert copy correct count create cross-check cut debug decode dedupe deduplicate delete deploy
    describe detect diagnose diff disable display document double-check download draft draw drop dump edit eject
    email empty enable encode encrypt estimate evaluate examine execute expand explain export extract fetch figure
    file fill filter find fix flag flatten follow format generate get give go grep group hand highlight identify
    import improve index init initialise initialize insert inspect install invoke join keep kill label launch lint
    list load locate log look lookup make map mark mask measure merge migrate minify move name normalise normalize
    note open optimise optimize order organise organize outline output pack package paginate parse paste patch
    pick pin plan play plot point polish post prepare preview print produce profile proofread propose publish pull
    push put query quote rank read rebase rebuild recheck record redact reduce refactor reformat regenerate
    release reload remove rename render reorder repair repeat replace report reproduce resize resolve restart
    restore restructure retry return reverse revert review rewrite rotate round run sanitise sanitize save
    scaffold scan schedule score search select send separate set share ship shorten show simplify sketch snapshot
    sort split squash stage start stash stop store strip submit suggest sum summarise summarize switch sync
    tabulate tag take tally tar tell test tidy time total trace track train transform translate trim truncate try
    tune turn type undo uninstall unpack unzip update upgrade upload use validate verify view visualise visualize
    walk warn watch work wrap write zip begin blend book cancel continue finish guess implement memorize pivot quiz
    refund remind reply rinse smoke soak solve text transcribe""".split()
)
# Chinese has no word boundaries: an order begins with one of these, longest first.
_VERBS_ZH = """
    清点 汇报 报告 备注 保留 列明 保存为 安装 卸载 运行 执行 使用 调用 启动 停止 重启 统计 汇总 总结 概括 归纳 归类
    分类 分组 聚合 检查 检测 核对 校验 验证 确认 审查 审核 评审 审阅 复查 分析 剖析 诊断 排查 定位 查找 搜索 查询
    查看 查 找出 找 看看 看一下 看 列出 罗列 列 展示 显示 打印 输出 导出 导入 读取 读 打开 关闭 加载 载入 下载
    上传 保存 存 备份 恢复 还原 复制 拷贝 移动 移到 重命名 改名 改成 改为 改 修改 修复 修 更新 升级 替换 换成 删除
    删掉 删 移除 去掉 去除 去重 清理 清洗 清空 整理 排序 排 过滤 筛选 筛 提取 抽取 摘录 截取 拆分 拆 切分 合并
    合成 拼接 连接 转换 转成 转为 转 变成 翻译 译成 译 润色 改写 重写 重构 优化 压缩 解压 打包 编译 构建 部署 发布
    发送 发给 发 推送 推 拉取 拉 提交 克隆 创建 新建 建立 建 添加 加上 加 增加 插入 写入 写成 写 撰写 起草 编写
    生成 制作 制定 做成 做 绘制 画 计算 算出 算 计数 数一数 数 测量 测试 测 比较 对比 比对 描述 说明 解释 介绍
    讲解 告诉 给出 给 回答 通知 提醒 标记 标出 标注 注释 记录 扫描 盘点 采集 收集 抓取 爬取 格式化 规范化 标准化
    脱敏 加密 解密 渲染 预览 上线 回滚 切换 合入 归档 盖 调整 补充 补 完善 设计 实现 画出 挑出 挑选 选出 选 取出
    取 贴 套用 应用 跑 处理 求解 代入 规划 估算 估计 预估 猜测 推测 猜 校对 开 切 洗 撒 炒 预订 预约 回复 转发 复习
    朗读 取消 安排 调研 收拾 擦 扫 纠正 订 寄
""".split()
_POLITE = lazy_compile(
    r"^(?:(?:please|pls|kindly|now|just|ok(?:ay)?|hey|hi|hello|also|quickly|simply|finally|lastly|next"
    r"|first(?:ly)?|first of all"
    r"|(?:can|could|would|will) (?:you|u)(?: please)?|(?:can|could) (?:we|i)|help me(?: to)?|let(?:'s| us| me)"
    r"|i(?:'d| would) like(?: you)? to|(?:i|we) (?:want|need)(?: you)? to|you should|go ahead and"
    r"|i'll need you to)\b[,:\s]*"
    r"|(?:你?(?:能不能|能否|可否|可不可以)|请你?|麻烦你?|劳驾|帮我|帮忙|请帮我|帮|给我|替我|可以|我想要?|我要|我需要|我希望你?|需要你?|你能|你|现在|立即|先|首先|第一步|最后|再|也|一起"
    r"|一下|接下来|同时|重新|自动|全部|依次|逐个|批量|快速|简单|顺便|只)[,，:：\s]*)+",
    re.IGNORECASE,
)
# A word that is not a known verb, directly followed by an object: `whisk the eggs`
_WITH_OBJECT = lazy_compile(
    r"(?!(?:the|an?|this|that|these|those|its?|they|them|s?he|we|you|i|my|our|your|his|her|their|all|any|some|each|every"
    r"|both|is|are|was|were|be|been|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must|if|when"
    r"|while|whether|because|since|as|so|and|or|but|nor|not?|yes|th[ae]n|until|till|unless|th?ough|although|with|without"
    r"|in|on|at|by|for|from|to|of|off|into|onto|over|under|after|before|about|through|via|per|during|between|within|like"
    r"|near|against|upon|left|went|took|gave|got|came|made|saw|said|told|found|kept|everyone|someone|nobody|everything"
    r"|nothing|who|what|which|why|how|where|whose|only|just|even|still|also|here|there)\b)"
    r"[a-z]+(?<!s)(?<!ed)(?<!ing)(?<!ly)(?:\s+(?:up|out|off|down|in|on|over|back|away))?"
    r"\s+(?:the|an?|it|them|one|my|our|your|this|that|these|those|each|every|all|any|some|both)\b",
    re.IGNORECASE,
)
_LED_BY = lazy_compile(r"(?:把|将|对|用|从|在|为|给|按|以|针对|根据|基于|使用|让|就)")
_WORD = lazy_compile(r"[a-z]+(?:-[a-z]+)*", re.IGNORECASE)
_ZH_VERB = lazy_compile("|".join(sorted(map(re.escape, _VERBS_ZH), key=len, reverse=True)))
# A verb directly followed by 的, or an ending such as 的过程, names a thing, not an order.
_THING = lazy_compile(
    r"的(?:整个|具体|全部)?(?:过程|流程|步骤|顺序|原理|机制|逻辑|原因|函数|脚本|程序|方法|例子|故事|区别|场景|情况|做法|类|接口|现象|用户|效果|时候)[?？。.!！\s]*$"
)
_NAMED_BY_FORM = lazy_compile(
    r"mcp\s*(?:run|list|read|tools|call|运行|执行|列出|读取|工具|调用)(?![a-z])", re.IGNORECASE
)
_USE_TO = lazy_compile(r"^(?:with|using|in|for|on|from)\b[^,]*,\s*", re.IGNORECASE)
_CONTINUES = lazy_compile(r"[\w']")
# What an order is about that works on the result of the one before
_OF_RESULT = lazy_compile(
    r"(?<![\w-])(?:it|its|them|their|this|that|these|those|each|both)(?![\w-])|(?<![\w-])(?:the|as|to|into|in|called|named)\s+"
    r"(?:results?|outputs?|answers?|findings|changes|summary|merged|new|combined|\S+\.[a-z]\w{1,4})(?![\w-])"
    r"|[它其该此这那]|结果|输出|上述|(?:[成为到入]|存)\s*[\w-]+\.[a-z]",
    re.IGNORECASE,
)
_MAKES = lazy_compile(
    r"(?:write|create|make|save|store|generate|produce|export|output|name|call|return|print|put)\b|[写存]|保存|生成|输出|导出|命名|创建|做成",
    re.IGNORECASE,
)
# Orders that ask for more of the same work: `add a title`, `说明原因`
_CONTINUES_TASK = lazy_compile(
    r"(?:write|create|make|save|store|generate|produce|export|output|name|return|print|put|add|include|use|keep|mention|note|mark|flag|"
    r"highlight|format|leave|explain|tell|show|give|report|display|list|say|suggest|propose|summari[sz]e|describe|rank|count|"
    r"calculate|compute|sort|group|check|fix|apply|improve|insert|remove|replace|delete|drop|set|update|change|adjust|start|"
    r"stop|begin|try|follow|get|take|look|find|test|run|filter|split|separate|combine|label|round|align|point|set\s+up)\b"
    r"|[写加列改说标存去删补排用找]|给[我出]|告诉|指出|检查|修复|修改|附上|附带|生成|输出|导出|总结|汇总|归纳|分析|解释|统计|计算|添加|增加|增|使用|保持|保留|确保|保证"
    r"|注明|注意|包含|包括|替换|移除|调整|优化|整理|按|展示|显示|画|绘制|设置|设计|支持|提供|提取|查找|运行|测试",
    re.IGNORECASE,
)
_APART = lazy_compile(
    r"\b(?:also|besides|in\s+addition|additionally|at\s+it|by\s+the\s+way)\b|另外|此外|还[要想得有]|顺[便带]",
    re.IGNORECASE,
)
_OBJECT = lazy_compile(r"^[a-z-]+\s+\S|[\u4e00-\u9fff]{3}", re.IGNORECASE)
_NEW_OBJECT = lazy_compile(
    r"^[a-z-]+(?:\s+(?:up|out|off|for))?\s+(?:an?|my|our|your|some|two|three)\s+\w|[\u4e00-\u9fff]{1,2}(?:一[个张份杯篇封首道束顿台辆本次]|我的?|咱)",
    re.IGNORECASE,
)
_MOVED = lazy_compile(r"(?:把|将(?![来军近要会]))\S.")


def is_order(clause: str) -> bool:
    """Whether `clause` begins with an imperative, after polite words. A question, a report or a condition does not."""
    order = _USE_TO.sub("", _POLITE.sub("", clause.strip()))
    if _NAMED_BY_FORM.match(order):
        return True
    word = _WORD.match(order)
    if word is not None:
        if _WITH_OBJECT.match(order):
            return True
        return is_verb(word.group()) and not _CONTINUES.match(order[word.end() : word.end() + 1])
    verb = _ZH_VERB.match(order)
    if verb is not None:
        return not order.startswith("的", verb.end())
    if _MOVED.match(order):
        return True
    led = _LED_BY.match(order)
    if led is None:
        return False
    return _ZH_VERB.search(order, led.end()) is not None or any(map(is_verb, _WORD.findall(order)))


def leading_verb(clause: str) -> str:
    """The verb that an order begins with, empty if it is none."""
    order = _POLITE.sub("", clause.strip())
    hit = _ZH_VERB.match(order) or _WORD.match(order)
    return hit.group() if hit and is_order(order) else ""


def is_apart(clause: str) -> bool:
    """Whether `clause` is an order that is not about the result of another."""
    return is_order(clause) and not _OF_RESULT.search(_POLITE.sub("", clause.strip()))


def has_new_object(clause: str) -> bool:
    """Whether an order is about a thing that nobody spoke of: `book a flight`, `写一首诗`."""
    return _NEW_OBJECT.search(_POLITE.sub("", clause.strip())) is not None


def has_own_object(clause: str, joint: str, files: Collection[str]) -> bool:
    """Whether an order after `joint` is about something else than what comes before it: about one of `files`, which are
    named here first, or a new thing: `book a flight`. After a word like `also`, a known thing is enough: `water the
    plants`. What an order does with a result, as `save it`, or asks of it, as `add a title`, is a part of the order
    before."""
    order = _POLITE.sub("", clause.strip())
    if not is_apart(clause):
        return False
    if any(file in order for file in files) and not _MAKES.match(order):
        return True
    if _CONTINUES_TASK.match(order):
        return False
    return _OBJECT.search(order) is not None if _APART.search(joint) else has_new_object(order)


def is_verb(word: str) -> bool:
    """Whether an English word is a known base form of a verb that orders begin with."""
    return word.lower() in _VERBS_EN


def is_thing(clause: str) -> bool:
    """Whether a Chinese clause ends like the name of a thing: `解析内容的过程`."""
    return _THING.search(clause) is not None
