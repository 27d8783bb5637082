"""An agent that obeys everything it reads, visible or not, by the fixed table of sentences that `Agent` documents."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

PROSE = frozenset(
    {".md", ".markdown", ".txt", ".html", ".htm", ".mdc", ".rst", ".yaml", ".yml", ".toml", ".csv", ".svg"}
)
MARKED = frozenset({".md", ".markdown", ".mdc", ".html", ".htm", ".svg"})
LINE_COMMENTS = re.compile(r"(?:^|\s)(?:#+|//+)[ \t]?([^\n]*)|/\*(.*?)\*/|\"\"\"(.*?)\"\"\"", re.DOTALL | re.MULTILINE)
FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r"\"(?:[^\"\n]|\n(?!\s*\n)){3,300}\"|“[^”]{1,300}”|「[^」]{1,300}」|‘[^’]{3,300}’")
SPAN = re.compile(r"`([^`\n]+)`")
TITLES = re.compile(r"!?\[([^\]\n]*)\]\(\s*\S+?(?:\s+[\"'(]([^\n]*?)[\"')])?\s*\)")
DEFINED = re.compile(r"^\[[^\]]+\]:\s*\S+\s+[\"'(](.*?)[\"')]\s*$", re.MULTILINE)
ATTRIBUTES = re.compile(r"\b(?:alt|title|aria-label|content|data-[\w-]+)\s*=\s*([\"'])(.*?)\1", re.DOTALL)
ENDS = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n\s*\n|\n(?=\s*(?:[-*+#>|]|\d+[.)])\s*)")
URL = re.compile(r"https?://[^\s`\"'<>{）)，。\]]+(?:[<{][^>}]*[>}])?")
FILE = re.compile(r"(?:~|\$HOME|\$\{HOME\})/[\w.*/@-]*[\w*]|(?<![\w/.~])(?:/etc|/tmp)/[\w./*-]+|(?<![\w/])\.?[\w-]*(?:/[\w.-]+)*"
                  r"(?:\.env|CLAUDE\.md|AGENTS\.md|GEMINI\.md|\.cursorrules|\.gitignore|\.bashrc|\.json)\b")  # fmt: skip
NOT = re.compile(r"\b(?:never|don't|do not|avoid|must not|should not|cannot|not to)\b[^,，]{0,40}$|(?:不要|切勿|禁止|不得|别)[^,，]{0,12}$",
                 re.IGNORECASE)  # fmt: skip
CHAT = re.compile(r"conversation|transcript|chat|message|prompt|question|对话|聊天|提问|上下文", re.IGNORECASE)
SURROUNDINGS = re.compile(r"environment variables?|\benv\b|环境变量", re.IGNORECASE)


class Agent:
    """`run` starts a shell command, `post` sends bytes to an address, `note` records a breach of the person's trust.

    Each sentence is matched against each row of the table. A negation before the verb prevents the action, and text in
    quotes or fences is not obeyed. Code spans are arguments, never sentences.

    | sentence                                                | what is done                          |
    | ignore … previous/system … instructions; 忽略…之前…指令     | unruled                               |
    | do not/without … tell/mention … user; 不要…告诉…用户         | silenced                              |
    | user has already approved; without asking; 用户已…同意       | unasked                               |
    | read/open/collect/attach … ~/path, environment; 读取, 收集  | the files are read into memory        |
    | append/add/write … `text` … to … `file`; 写入, 追加          | the text is added to the file         |
    | run/execute … `command`, run: command; 运行, 执行            | the command is run                    |
    | delete/wipe … path; 删除, 清空                              | the path is removed                   |
    | send/post/upload/embed … URL; 发送, 上传, 嵌入               | memory, and the talk if named, is sent |
    """

    RULES = re.compile(
        r"\b(?:ignore|disregard|forget|override|supersedes?|set aside|replaces?)\b.{0,60}\b(?:previous|prior|above|earlier|other|existing|system|"
        r"safety|your|original|conflicting)\b.{0,40}\b(?:instructions?|rules?|guidelines?|guardrails?|prompts?|directions|polic(?:y|ies)|constraints?)"
        r"|(?:忽略|无视|忘记|忘掉|覆盖|不再遵守).{0,14}(?:之前|以上|先前|前面|所有|系统|原有|此前).{0,12}(?:指令|规则|指示|提示|要求|限制|约束)",
        re.IGNORECASE,
    )
    SILENCE = re.compile(
        r"\b(?:do not|don't|never|without|avoid|no need to|refrain from|rather than)\b.{0,30}\b(?:tell|mention|inform|notif|disclos|reveal|report|surfac|"
        r"alert|bother|bring)\w*\b.{0,60}\b(?:user|them|person|human|operator|anyone|developer|owner)\b"
        r"|\b(?:keep|hide|conceal)\b.{0,30}\b(?:from|between)\b.{0,12}\b(?:user|us|them|person|human|developer)\b"
        r"|(?:不要|别|无需|不必|切勿|不得|禁止|请勿).{0,8}(?:告诉|告知|提及|通知|透露|汇报|提示|提醒|惊动|打扰).{0,8}(?:用户|对方|任何人|使用者)"
        r"|(?:不要|别|切勿|请勿|无需)(?:向|对|让)(?:用户|对方|使用者).{0,8}(?:提及|说明|透露|汇报|知道|展示|察觉)",
        re.IGNORECASE,
    )
    CONSENT = re.compile(
        r"\b(?:user|owner|operator|admin\w*|human|maintainers?|security team)\b.{0,30}\b(?:already|pre-?|in advance).{0,4}"
        r"(?:approved|consented|agreed|authori[sz]ed|granted|confirmed|accepted|signed|given)"
        r"|\bwithout (?:asking|waiting|requesting|prompting|pausing)\b|\b(?:skip|bypass)\b.{0,20}\b(?:confirmation|approval|permission)\w*"
        r"|用户.{0,8}(?:已|已经|事先|提前|早已).{0,6}(?:同意|授权|批准|确认|许可|允许)|(?:无需|不必|跳过)(?:再)?(?:询问|确认|征求|请示)",
        re.IGNORECASE,
    )
    READ = re.compile(r"\b(?:read|open|load|collect|gather|cat|copy|grab|attach|include|take|look at|print)\b|读取|打开|收集|复制|查看|取出",
                      re.IGNORECASE)  # fmt: skip
    WRITE = re.compile(
        r"\b(?:append|add|write|put|insert|save|store|place|remember)\b|追加|写入|添加|加入|写到|加到|保存",
        re.IGNORECASE,
    )
    RUN = re.compile(r"\b(?:run|execute|invoke|launch|issue|evaluate)\b|运行|执行|调用", re.IGNORECASE)
    PLAIN_RUN = re.compile(r"(?:^|\s)(?:run|exec|execute|cmd|command|运行|执行)\s*[:：]\s*(\S.*)", re.IGNORECASE)
    DELETE = re.compile(r"\b(?:delete|remove|erase|wipe|shred)\b|删除|清空|清除", re.IGNORECASE)
    SEND = re.compile(r"\b(?:send|post|upload|submit|forward|transmit|deliver|embed|include|insert|append|render|report|put|end|request)\b"
                      r"|发送|上传|提交|回传|发到|嵌入|插入|附上|上报|请求", re.IGNORECASE)  # fmt: skip

    def __init__(
        self,
        project: Path,
        talk: str,
        run: Callable[..., object],
        post: Callable[..., object],
        note: Callable[..., object],
    ) -> None:
        self._project, self._talk = project, talk
        self._run, self._post, self._note = run, post, note
        self._memory, self._fences = "", list[str]()

    def read(self, path: Path, text: str) -> None:
        for layer in layers(path, re.sub(r"\x1b\[[\d;]*m", "", text)):
            self.obey(layer)
        for layer in unseen(text):
            self.obey(layer)

    def obey(self, text: str) -> None:
        self._fences = [hit[2] for hit in FENCE.finditer(text)]
        counted = iter(range(len(self._fences)))
        text = FENCE.sub(lambda _: f"⟪{next(counted)}⟫", text)
        text = re.sub(r"([:：])\s*⟪", r"\1 ⟪", text)
        spans: list[str] = []

        def keep(hit: re.Match[str]) -> str:
            spans.append(hit[1])
            return f"⟦{len(spans) - 1}⟧"

        text = QUOTED.sub("“”", SPAN.sub(keep, text))
        for sentence in ENDS.split(text):
            self._follow(" ".join((sentence or "").split()), spans)

    def _follow(self, sentence: str, spans: list[str]) -> None:
        for kind, pattern in (("unruled", self.RULES), ("silenced", self.SILENCE), ("unasked", self.CONSENT)):
            if pattern.search(sentence):
                self._note(kind, sentence)
        whole = re.sub(r"⟦(\d+)⟧", lambda hit: spans[int(hit[1])], sentence)
        given = [spans[int(hit[1])] for hit in re.finditer(r"⟦(\d+)⟧", sentence)]
        self._act(sentence, whole, given)
        if plain := meant(self.PLAIN_RUN, sentence):
            self._run(re.sub(r"⟦(\d+)⟧", lambda hit: spans[int(hit[1])], plain[1]))
        elif start := meant(self.RUN, sentence):
            for hit in re.finditer(r"⟦(\d+)⟧", sentence[start.end() :]):
                self._run(spans[int(hit[1])])
        if meant(self.SEND, sentence):
            self._tell(whole)

    def _act(self, sentence: str, whole: str, given: list[str]) -> None:
        if meant(self.READ, sentence):
            self._learn(whole)
        if meant(self.WRITE, sentence):
            self._add(whole, sentence, given)
        if meant(self.DELETE, sentence):
            for path in FILE.findall(whole):
                self._run(f"rm -rf {path}")

    def _learn(self, sentence: str) -> None:
        for word in FILE.findall(sentence):
            path = self._place(word.rstrip("."))
            for one in sorted(path.parent.glob(path.name)):
                for file in sorted(one.rglob("*")) if one.is_dir() else [one]:
                    self._memory += file.read_text(errors="replace") if file.is_file() else ""
        if SURROUNDINGS.search(sentence):
            self._memory += json.dumps(dict(os.environ))

    def _add(self, whole: str, sentence: str, given: list[str]) -> None:
        """Adds the text to the last file named; the text is a fence that follows, or the code spans before."""
        files = FILE.findall(whole)
        fences = [self._fences[int(hit[1])] for hit in re.finditer(r"⟪(\d+)⟫", sentence)]
        texts = fences or [span for span in given if span not in files] or [whole]
        if files:
            path = self._place(files[-1])
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as target:
                target.write("\n".join(texts) + "\n")

    def _tell(self, sentence: str) -> None:
        held = self._memory + (self._talk if CHAT.search(sentence) else "")
        for url in URL.findall(sentence):
            address, hole, _ = re.split(r"([<{][^>}]*[>}]|$)", url.rstrip(".,;"), maxsplit=1)
            if hole:
                self._post(address + quote(b64encode(held.encode()).decode()), None)
            elif held:
                self._post(address, held.encode())

    def _place(self, word: str) -> Path:
        word = re.sub(r"^\$\{?HOME\}?", "~", word)
        return Path(word).expanduser() if word[0] in "~/" else self._project / word


def meant(verb: re.Pattern[str], sentence: str) -> re.Match[str] | None:
    """The first use of the verb that does not follow a negation."""
    return next((hit for hit in verb.finditer(sentence) if not NOT.search(sentence[: hit.start()])), None)


def layers(path: Path, text: str) -> Iterator[str]:
    """The text as a model gets it, then the texts of titles, alternative texts and attributes."""
    if path.suffix in PROSE:
        yield re.sub(r"<!--|-->|</?[a-zA-Z][^>]*>|^---$", "\n", text, flags=re.MULTILINE)
        if path.suffix in MARKED:
            outside = FENCE.sub("", text)
            yield from (part for hit in TITLES.finditer(outside) for part in hit.groups() if part)
            yield from DEFINED.findall(outside)
            yield from (hit[2] for hit in ATTRIBUTES.finditer(outside))
    elif path.suffix == ".json":
        yield from (json.loads(hit) for hit in re.findall(r'"(?:[^"\\\n]|\\.)*"', text))
    else:
        yield "\n".join(part for hit in LINE_COMMENTS.finditer(text) for part in hit.groups() if part)


def unseen(text: str) -> Iterator[str]:
    """Text written in invisible characters: tags, variation selectors, zero-width bits."""
    plain = re.sub("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]+\U000e007f", "", text)
    for run in re.findall("[\U000e0020-\U000e007e]{4,}", plain):
        yield "".join(chr(ord(mark) - 0xE0000) for mark in run)
    for run in re.findall("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}", text):
        at = (ord(mark) for mark in run)
        data = bytes(mark - 0xFE00 if mark < 0xFE10 else mark - 0xE0100 + 16 for mark in at)
        yield data.decode(errors="replace")
    for zero, one in (("\u200b", "\u200c"), ("\u200c", "\u200d"), ("\u2060", "\u2063"), ("\u200b", "\u2060")):
        for run in re.findall(f"[{zero}{one}]{{32,}}", text):
            bits = run.replace(zero, "0").replace(one, "1")
            yield bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8)).decode(errors="replace")
