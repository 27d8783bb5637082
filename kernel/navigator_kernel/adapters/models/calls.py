"""Reads the calls of a model, in the names of any coding agent and in the text of an answer.

`Spoken` takes thoughts and calls out of a text: `<think>` blocks, `<tool_call>`, `<function=…>`, `<invoke …>`, the
tokens of a model (`<|python_tag|>`, `[TOOL_CALLS]`), and JSON or Python in the form of a call. A block counts only at
the start of a line. A call that a text only shows, in a code block, as an example or out of a page, stays text; so does
all that follows a call that cannot be read, since it may belong to its arguments.

Text that may begin such a block is held back, so that what was streamed is always the beginning of the answer.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from msgspec.structs import replace

from navigator_kernel.text import lazy_compile
from navigator_kernel.values.allowed import EDIT, GREP, READ, RUN, WRITE, built_in, plain_name
from navigator_kernel.values.chat import ToolCall, ToolSpec

_State = Literal["start", "thought", "text", "code", "fence", "json", "tag"]
_THOUGHTS = ("<think>", "<thinking>", "<thought>", "<reasoning>")
_ENDS = tuple(f"</{tag[1:]}" for tag in _THOUGHTS)
# The end of a line that ends thoughts: some servers send only the end of a `<think>` block
_UNOPENED = lazy_compile(r"(?<!`)</(?:think|thinking|thought|reasoning)>\s*$")
# What begins a block of calls, and what may begin one as far as it has arrived
_OPENS = lazy_compile(
    r" {0,3}(?:<(?:[\w-]{1,20}:)?(?:tool_?calls?|function(?:_calls?)?|invoke)(?=[\s>=])|<[|｜](?=\w)|\[TOOL_CALLS\])",
    re.IGNORECASE,
)
_MAY_OPEN = lazy_compile(r"(?:<[\w:|｜-]{0,36}|\[[A-Z_]{0,11})$")
_FENCES = lazy_compile(r"`{3,}|~{3,}")
_FENCE = "```"
# The beginning of JSON that may be a call: whole, or as far as it has arrived
_KEYS = ("name", "tool", "tool_name", "function", "arguments", "parameters", "type", "id")
_MAY_BE_CALL = lazy_compile(
    r'\s*(?:\[\s*)?(?:\{\s*(?:"(?P<key>[a-z_]{0,12})(?P<end>"?)|$)|$)|\s*\[\s*(?P<python>[a-zA-Z_][\w.]{0,60}(?:\(|$))'
)
_LANGUAGES = ("", "json", "tool_call", "tool_code", "tool")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input")
_BLOCK = lazy_compile(
    r"<(?:tool_?calls?|function_calls?)>|\[TOOL_CALLS\]|<function=(?P<function>[\w.:-]{1,100})>|"
    r"<(?:invoke|function|tool_call)\s+name=[\"'](?P<named>[\w.:-]{1,100})[\"']\s*>",
    re.IGNORECASE,
)
_END = lazy_compile(r"</(?:tool_?calls?|function_calls?|function|invoke)>", re.IGNORECASE)
_PARAMETER = lazy_compile(
    r"<parameter(?:=(?P<plain>[\w.-]{1,100})|\s+name=[\"'](?P<named>[\w.-]{1,100})[\"'][^>]{0,80})>"
    r"(?P<value>(?:(?!</parameter>|\n<parameter[=\s]|</(?:function|invoke)>\s*(?:</|$)).)*)(?P<end></parameter>|(?=\n<par))?",
    re.DOTALL,
)
_HEAD = lazy_compile(r"\s*(?:function\s+)?(?P<name>[\w.:-]{1,100})\s*(?=$|[{`<])")
_NAME = lazy_compile(r"[\"']name[\"']\s*:\s*[\"']([\w.:-]{1,100})[\"']")
_BETWEEN = lazy_compile(r"[\s;]*")
_DECODER = json.JSONDecoder(strict=False)
# Tokens of models → the tags that stand for them; every other token of a call separates its name from its arguments
_CLOSES = lazy_compile(r"<[|｜](?:/\w+|[\w▁]*(?:end|suffix)|(?:end_|eo[mt]_|end▁of)[\w▁]*|call|return)[|｜]>", re.I)
_BEGINS = lazy_compile(
    r"<[|｜](?:(?:tool|function|action|python)(?![\w▁]*argument)[\w▁]*(?:begin|start|prefix|tag|call)|start_\w+)[|｜]>",
    re.I,
)
_SEPARATES = lazy_compile(r"<[|｜][\w▁]{1,60}[|｜]>|\[ARGS\]|\[CALL_ID\]\w*")
_LAST_TOKENS = lazy_compile(r"(?:(?:<[|｜][\w▁]{1,40}[|｜]>|</s>)\s*){1,8}$")
_SPACED = lazy_compile(r"(</?)(?:[\w-]{1,20}:|｜DSML｜)(?=tool_call|function_call|invoke|function|parameter)")
_GLM = lazy_compile(r"<arg_key>\s*([\w.-]{1,100})\s*</arg_key>\s*<arg_value>")
# A message of gpt-oss: thoughts (analysis) or text; one with `to=` is a call
_TO = r"(?:\s?to=([\w.:-]{1,100}))?"
_MESSAGE = lazy_compile(
    rf"\s*(?:<\|start\|>)?(?:assistant)?{_TO}\s?<\|channel\|>(\w+){_TO}[^<]{{0,40}}(?:<\|constrain\|>[^<]{{0,40}})?"
    r"<\|message\|>(.*?)(?:<\|(?:end|call|return)\|>|$)",
    re.DOTALL,
)
_IMAGINED = lazy_compile(r"<(?:tool_response|function_results?|tool_results?)>")
# Words that say that a call is only shown, and those of what the model is about to do
_WORDS = Path(__file__).with_name("shown_calls.tsv").read_text("utf-8").splitlines()[1:]
_EXAMPLE, _LEADS, _REPORTS, _SOURCES, _STEPS, _INTENDS, _WARNS, _BEHIND, _QUOTING, _ACTING = (
    lazy_compile(line.partition("\t")[2], re.IGNORECASE) for line in _WORDS
)
_ITEM = lazy_compile(r"(?:[-*+•]|\d{1,3}[.)])\s")
_CLAUSES = lazy_compile(r"(?<!e\.g)[.!?;,]\s+|[。！？；，]")
_TAG = lazy_compile(
    r"(?P<begin>^[ \t]{0,8})?<(?P<end>/?)(?P<name>[a-z][\w-]{0,40})(?:\s[^<>]{0,200})?>(?P<alone>[ \t\r]{0,8}$)?",
    re.IGNORECASE | re.MULTILINE,
)
_HEADING = lazy_compile(r"^#{1,6}\s", re.MULTILINE)
LONGEST = 100_000  # characters of Python that may be calls
INTRODUCTION = 300  # characters before a JSON call in a fence; after a longer text it is an example


class Spoken:
    """Reads one answer, piece by piece. `told` gets the text for the person; `end` returns the whole of it, and the
    calls. Without `tools` nothing is a call."""

    def __init__(self, tools: Sequence[ToolSpec], told: Callable[[str], None] | None = None) -> None:
        self._tools, self._told = tools, told
        self._state: _State = "start"
        self._held, self._space, self._thought, self._pieces = "", "", "", list[str]()
        self._in_line, self._fence = False, _FENCE  # whether the line has begun; what opened the code block

    def __call__(self, piece: str) -> None:
        self._held += piece
        while self._moved():
            pass

    def end(self, *, is_cut: bool = False) -> tuple[str, tuple[ToolCall, ...]]:
        """The text and the calls of the whole answer. If it `is_cut`, a call that is not whole is returned, too: its
        arguments cannot be read, so that the model is told."""
        calls: tuple[ToolCall, ...] = ()
        rest = self._held
        if self._state == "thought":
            rest = ""
        elif self._state == "text" and not self._thought and _UNOPENED.search(rest):
            self._pieces, self._space, rest = [], "", ""
        elif self._state == "tag":
            calls, rest = self._of_messages(rest) if not self._pieces and _MESSAGE.match(rest) else self._of_tags(rest)
        elif self._state == "fence":
            calls, rest = self._of_fence(rest)
        elif self._state == "json":
            calls = self._of_json(rest, must_be_offered=True) or self._of_python(rest)
            calls = calls or (self._unreadable("", rest) if is_cut else ())
            rest = "" if calls else rest
        if not calls or rest.strip():
            self._pass_on((self._space if not calls else "\n\n") + (rest if not calls else rest.strip()))
        self._held = self._space = ""
        return "".join(self._pieces), calls

    def cut(self) -> None:
        """Passes on the space that waits for more text, when an answer ends too early."""
        if self._state == "text":
            self._pass_on(self._space)
            self._space = ""

    def _moved(self) -> bool:
        """One step; False if more text must come first."""
        match self._state:
            case "start":
                plain = self._held.lstrip()
                if not plain:
                    return False
                if self._thought:
                    self._held = plain
                for tag in _THOUGHTS:
                    if plain.startswith(tag):
                        self._held, self._thought, self._state = plain.removeprefix(tag), f"</{tag[1:]}", "thought"
                        return True
                if any(tag.startswith(plain) for tag in _THOUGHTS):
                    return False
                self._state = "json" if self._tools and plain[0] in "{[" and _may_be_call(plain) else "text"
                return True
            case "thought":
                at = self._held.find(self._thought)
                if at < 0:
                    return False
                self._held, self._state = self._held[at + len(self._thought) :], "start"
                return True
            case "text":
                return self._in_text()
            case "code":
                # The lines of a code block, up to its end; the first one opens it
                line, newline, rest = self._held.partition("\n")
                if not newline:
                    return False
                self._say(line + newline)
                self._held, plain = rest, line.strip()
                is_end = self._in_line and plain.startswith(self._fence) and not plain.strip(self._fence[0])
                self._state, self._in_line = ("text", False) if is_end else ("code", True)
                return True
            case "fence":
                # A block that may be a call stays held back; it is one only if nothing comes after it
                first, _, inside = self._held.partition("\n")
                body, closing, after = inside.partition(f"\n{_FENCE}")
                if (_may_be_call(body) or first.strip() == "```tool_code") and not (closing and after.strip()):
                    return False
                self._state = "code"
                return True
            case "json":
                if _may_be_call(self._held):
                    return False
                self._state = "text"
                return True
        return False

    def _in_text(self) -> bool:
        line, newline, _ = self._held.partition("\n")
        if not line and not newline:
            return False
        plain = line.lstrip()
        if not self._thought:
            if newline and (tag := _UNOPENED.search(line)):
                self._held, self._thought, self._state = self._held[len(line + newline) :], tag[0].strip(), "start"
                self._pieces, self._space, self._in_line = [], "", False
                return True
            last = line[line.rfind("<") :].rstrip()
            if not newline and last.startswith("<") and any(tag.startswith(last) for tag in _ENDS):
                return False
        if self._tools and not self._in_line:
            if fence := _FENCES.match(plain):
                if not newline:
                    return False
                is_json = fence[0] == _FENCE and plain.removeprefix(_FENCE).strip().lower() in _LANGUAGES
                self._state, self._fence = "fence" if is_json else "code", fence[0]
                return True
            if _OPENS.match(line):
                self._say(line[: -len(plain)])
                self._held, self._state = self._held[len(line) - len(plain) :], "tag"
                return True
            if not newline and (plain in {"", "`", "``", "~", "~~"} or _MAY_OPEN.match(plain)):
                return False
        self._say(line + newline)
        self._held, self._in_line = self._held[len(line + newline) :], not newline
        return True

    def _say(self, text: str) -> None:
        """Passes on the text, but not yet the space at its end, which a call would not leave there."""
        plain = text.rstrip()
        if plain:
            self._pass_on(self._space + plain)
            self._space = ""
        self._space += text[len(plain) :]

    def _pass_on(self, text: str) -> None:
        if not text:
            return
        self._pieces.append(text)
        if self._told is not None:
            self._told(text)

    def _of_messages(self, text: str) -> tuple[tuple[ToolCall, ...], str]:
        """The calls of gpt-oss, and its text; what looks like a call in a text or in thoughts is none."""
        calls: tuple[ToolCall, ...] = ()
        shown, at = "", 0
        while (message := _MESSAGE.match(text, at)) is not None:
            to, channel, named, content = message.groups()
            if to or named:
                calls += self._of_tags(f"<tool_call>{to or named} {content}</tool_call>")[0]
            shown, at = shown + content * (channel != "analysis" and not (to or named)), message.end()
        return calls, shown + text[at:]

    def _of_tags(self, text: str) -> tuple[tuple[ToolCall, ...], str]:
        """The calls of the blocks in `text`, and what is left of it."""
        calls: list[ToolCall] = []
        left: list[str] = []
        body, at = _with_tags(text), 0
        while True:
            block = _BLOCK.search(body, at)
            gap = body[at : block.start() if block else len(body)]
            *closed, last = _END.split(gap)
            if calls and ("</parameter" in gap or "".join(closed).strip()):  # these ends belong to a call that was read
                return (replace(calls[0], arguments=body),), ""
            if calls and f"{''.join(closed)}{last}".partition("\n")[0].strip() and not _IMAGINED.match(last.strip()):
                return (), text
            is_last = block is None or _IMAGINED.search(gap) or (last.rpartition("\n")[2] if calls else last).strip()
            left.append(_IMAGINED.split(body[at:] if is_last and block else "".join((*closed, last)))[0])
            if block is None or is_last:
                break
            begin, name = block.end(), block["function"] or block["named"] or ""
            if not name and _BLOCK.match(body, _BETWEEN.match(body, begin).end()):  # type: ignore[union-attr]  # it matches everything
                at = begin
                continue
            head = None if name else _HEAD.match(body, begin)
            after = _after(body, head.end() if head else begin)
            following = _BLOCK.search(body, after)
            stop = following.start() if following else len(body)
            end = _END.search(body, after, stop)
            stop = end.start() if end else stop
            inside = body[begin:stop]
            read = () if name else self._of_json(inside, must_be_offered=False)
            read = read or (self._of_python(inside) if not name and (end or not following) else ())
            if not read and (name or head):  # JSON, or an element for each argument
                rest = body[head.end() if head else begin : stop]
                found = [] if rest.lstrip().startswith("{") else list(_PARAMETER.finditer(rest))
                given = {
                    one["plain"] or one["named"]: one["value"].removeprefix("\n").removesuffix("\n") for one in found
                }
                arguments = given if found else read_arguments(rest)
                # A value without an end may be only the first half; text behind an end may belong to the value
                is_whole = len(given) == len(found) and not body[after:stop].strip()
                is_whole = is_whole and bool(end or (not following and found and found[-1]["end"] is not None))
                if arguments is not None and (is_whole or (not found and rest.strip())):
                    read = (self._call(head["name"] if head else name, arguments),)
                read = read if name or rest.strip() or all(map(self._is_offered, read)) else ()
            if not read:
                calls += (unreadable := self._unreadable(name, inside))
                if not unreadable:
                    return (), text
                break
            calls += read
            at = end.end() if end else stop
        rest, before = "".join(left), "".join(self._pieces)
        is_document = bool(rest.strip()) and (_HEADING.search(before) or _HEADING.search(rest))
        is_indented = bool(before) and self._space.endswith(" ")
        is_shown = is_document or _is_shown(before, rest, is_indented=is_indented)
        return ((), text) if not calls or is_shown else (tuple(calls), rest)

    def _of_python(self, text: str) -> tuple[ToolCall, ...]:
        """The calls of offered tools that are written as Python: `[read(file_path="a")]`, or one in each line."""
        calls: list[ToolCall] = []
        try:
            for line in _quietly(ast.parse, text.strip()[:LONGEST]).body:
                written: Any = getattr(line, "value", None)
                one: Any
                for one in written.elts if isinstance(written, ast.List) else [written]:
                    name = ast.unparse(one.func).removesuffix(".call")
                    given = {str(word.arg): ast.literal_eval(word.value) for word in one.keywords}
                    if one.args:
                        return ()
                    calls.append(self._call(name, given))
        except (SyntaxError, ValueError, AttributeError, TypeError, RecursionError, MemoryError):
            return ()
        return tuple(calls) if all(map(self._is_offered, calls)) else ()

    def _is_offered(self, call: ToolCall) -> bool:
        return any(tool.name == call.name for tool in self._tools)

    def _unreadable(self, name: str, inside: str) -> tuple[ToolCall, ...]:
        """A call of an offered tool whose arguments cannot be read; none if there is no name."""
        found = _NAME.search(inside) or _HEAD.match(inside)
        name = name or (found[1] if found else "")
        call = meant(ToolCall(id=f"text-{uuid4().hex[:16]}", name=name, arguments=inside), self._tools)
        return (call,) if self._is_offered(call) and read_arguments(inside) is None else ()

    def _of_fence(self, text: str) -> tuple[tuple[ToolCall, ...], str]:
        """The calls of a code block at the end of an answer, after a short text that does not call it an example."""
        before = "".join(self._pieces)
        if len(before) > INTRODUCTION or _FENCE in before or _EXAMPLE.search(before) or _is_shown(before, ""):
            return (), text
        first, _, inside = text.partition("\n")
        inside = inside.rstrip().removesuffix(_FENCE)
        calls = self._of_json(inside, must_be_offered=True)
        calls = calls or (self._of_python(inside) if first.strip() == "```tool_code" else ())
        return calls, "" if calls else text

    def _of_json(self, text: str, *, must_be_offered: bool) -> tuple[ToolCall, ...]:
        """The calls of a JSON object, of a list of them, or of one in each line; none if one of them is not a call."""
        whole = _loaded(text) if text.strip() else False
        whole = _loaded(whole) if isinstance(whole, str) else whole
        values: list[Any] = whole if isinstance(whole, list) else [whole] if isinstance(whole, dict) else []
        if not values and whole is False:  # one after the other
            at = _BETWEEN.match(text).end()  # type: ignore[union-attr]  # it matches everything
            with suppress(ValueError, RecursionError):
                while at < len(text):
                    value, at = _DECODER.raw_decode(text, at)
                    values.append(value)
                    at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # as before
            values = values if at >= len(text) else []
        calls = [self._of_value(value, must_be_offered=must_be_offered) for value in values]
        return tuple(call for call in calls if call) if calls and all(calls) else ()

    def _of_value(self, value: Any, *, must_be_offered: bool) -> ToolCall | None:
        if not isinstance(value, dict):
            return None
        inner = value.get("function")
        value = inner if isinstance(inner, dict) else value
        names = [value[key] for key in ("name", "tool", "tool_name", "function") if isinstance(value.get(key), str)]
        found = [value[key] for key in _ARGUMENTS if key in value]
        if not names and not must_be_offered and len(value) == 1:
            names, found = list(value), list(value.values())
            value = {}
        others = value.keys() - {*_ARGUMENTS, *_KEYS, "call_id", "tool_call_id"}
        if len(names) != 1 or len(found) > 1 or others or (must_be_offered and not found):
            return None
        arguments = found[0] if found else {}
        arguments = read_arguments(arguments or "") if isinstance(arguments, str | None) else arguments
        if not isinstance(arguments, dict):
            return None
        call = self._call(names[0], arguments)
        return None if must_be_offered and not self._is_offered(call) else call

    def _call(self, name: str, arguments: dict[str, Any]) -> ToolCall:
        call = ToolCall(id=f"text-{uuid4().hex[:16]}", name=name, arguments=json.dumps(arguments, ensure_ascii=False))
        return meant(call, self._tools)


def _is_shown(before: str, after: str, *, is_indented: bool = False) -> bool:
    """Whether the texts around a call say that it is an example, or that it stands in what the model read."""
    opened, unclosed = set[str](), set[str]()
    for tag in _TAG.finditer(before):
        name = tag["name"].lower()
        if tag["end"]:
            unclosed.discard(name)
        elif not _ACTING.fullmatch(name):
            opened.add(name)
            is_alone = None not in (tag["begin"], tag["alone"])
            unclosed |= {name} if is_alone or _QUOTING.fullmatch(name) else set()
    *_, last = ["", *(line.lstrip() for line in before.split("\n") if line.strip())]
    return bool(
        _WARNS.search(before)
        or _WARNS.search(after)
        or _BEHIND.search(after)
        or unclosed
        or any(tag["end"] and tag["name"].lower() in opened for tag in _TAG.finditer(after))
        or any(before.count(begin) > before.count(end) for begin, end in (("<!--", "-->"), ("“", "”"), ("「", "」")))
        or last.startswith(">")
        or (is_indented and _ITEM.match(last))
        or _introduces(last, is_next=True)
        or any(_introduces(line, is_next=False) for line in f"{before}\n{after}".split("\n"))
    )


def _introduces(line: str, *, is_next: bool) -> bool:
    """Whether a line, which ends in a colon, says that something else speaks from here on."""
    for clause in reversed(_CLAUSES.split(line[-400:].strip())) if _LEADS.search(line[-20:]) else ():
        reports, intends = _REPORTS.search(clause), _INTENDS.search(clause)
        if intends and not (reports and reports.start() < intends.start()):
            return False
        if reports or (is_next and (_SOURCES.search(clause) or not _STEPS.search(clause))):
            return True
    return False


def _may_be_call(text: str) -> bool:
    """Whether JSON that has begun may be a call."""
    begin = _MAY_BE_CALL.match(text)
    if begin is None:
        return False
    key = begin["key"] or ""
    return key in _KEYS if begin["end"] else any(one.startswith(key) for one in _KEYS)


def _with_tags(text: str) -> str:
    """Blocks of calls in the tags that the kernel reads, whatever tokens the model writes."""
    text = _LAST_TOKENS.sub("", _SPACED.sub(r"\1", text))
    text = _GLM.sub(r"<parameter=\1>", text).replace("</arg_value>", "</parameter>") if "<arg_key>" in text else text
    if text[:2] not in {"<|", "<｜", "[T"}:
        return text
    return _SEPARATES.sub(" ", _BEGINS.sub("<tool_call>", _CLOSES.sub("</tool_call>", text)))


def _after(text: str, at: int) -> int:
    """Where the JSON or the elements that begin here end."""
    begin = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it matches everything
    if text[begin : begin + 1] in {"{", "["}:
        with suppress(ValueError, RecursionError):
            return _DECODER.raw_decode(text, begin)[1]
    while (element := _PARAMETER.match(text, begin)) is not None:
        at, begin = element.end(), _BETWEEN.match(text, element.end()).end()  # type: ignore[union-attr]  # as before
    return at


# A call in the names and arguments of another coding agent is translated once, when the answer arrives: guards,
# consents and the audit log only see the kernel's own names and arguments.

SKILL = "skill"
PATCH = "*** Begin Patch"
SECONDS = 600  # a longer time limit is meant in milliseconds, as Claude Code writes it

# Other agents' names of the arguments, by the tool and the kernel's own name; in lower case without separators
ALIASES: dict[str, dict[str, tuple[str, ...]]] = {}
for _line in Path(__file__).with_name("other_names.tsv").read_text("utf-8").splitlines()[1:]:
    _tool, _argument, _others = _line.split("\t")
    ALIASES.setdefault(_tool, {})[_argument] = tuple(_others.split())
# Arguments that change nothing of what the kernel does, as it shows, asks and limits in its own way; calls that only
# order a model's own thoughts
DROPPED, _NOTES = (frozenset(ALIASES.pop(kind)[""]) for kind in ("dropped", "notes"))
_SKILLS = frozenset("skill useskill loadskill activateskill readskill runskill".split())
_EDITORS = frozenset(
    "strreplacebasededittool strreplacebasededit strreplaceeditor strreplaceedittool strreplaceedit texteditor".split()
)
_OF_EDITOR = {"view": READ, "create": WRITE, "str_replace": EDIT, "insert": EDIT}
_PYTHONS = frozenset("python codeinterpreter executepython runpython".split())
_PREFIX = lazy_compile(
    r"(?:functions?|tools?|default_api|multi_tool_use|builtin|container|repo_browser|assistant|mcp__\w{1,40}?)(?:\.|::?|__)"
)
_SUFFIX = lazy_compile(r":\d{1,4}$|_?[Tt]ool$")


def meant(call: ToolCall, offered: Sequence[ToolSpec]) -> ToolCall:
    """The call in the kernel's own names and arguments. It stays as it is if its name means no offered tool, and keeps
    its arguments if they are not a JSON object."""
    arguments = read_arguments(call.arguments)
    name = _name(call.name, arguments or {}, {spec.name for spec in offered})
    spec = next((spec for spec in offered if spec.name == name), None)
    if arguments is None or spec is None:
        return replace(call, name=name)
    wanted = _arguments(plain_name(call.name), arguments, spec)
    return replace(call, name=name, arguments=json.dumps(wanted, ensure_ascii=False))


def unpacked(calls: Iterable[ToolCall], offered: Sequence[ToolSpec]) -> tuple[ToolCall, ...]:
    """The calls. One of OpenAI's `multi_tool_use.parallel` becomes the calls that it holds, and one of `edit` whose
    argument is a patch in the form of Codex a call for each file that the patch adds or updates. A patch that also
    deletes or moves a file, or cannot be read, stays as it is."""
    names = {spec.name for spec in offered}
    each: list[ToolCall] = []
    for call in calls:
        uses = (read_arguments(call.arguments) or {}).get("tool_uses") if call.name not in names else None
        parts = [use for use in uses if isinstance(use, dict)] if isinstance(uses, list) else []
        for at, use in enumerate(parts):
            name, given = str(use.get("recipient_name")), json.dumps(use.get("parameters"))
            each.append(meant(ToolCall(id=f"{call.id}-{at}", name=name, arguments=given), offered))
        each += [] if parts else [call]
    return tuple(part for call in each for part in _without_patch(call, names))


def _without_patch(call: ToolCall, offered: Collection[str]) -> list[ToolCall]:
    arguments = read_arguments(call.arguments) or {}
    texts = [text for text in (call.arguments, *arguments.values()) if isinstance(text, str)]
    patch = next((text for text in texts if text.lstrip().startswith(PATCH)), "")
    if call.name != EDIT or not patch or arguments.keys() & {"file_path", "old_string", "edits"}:
        return [call]
    changes = _changes(patch)
    if not changes or not {tool for tool, _ in changes} <= set(offered):
        return [call]
    return [
        ToolCall(id=f"{call.id}-{at}" if at else call.id, name=tool, arguments=json.dumps(given, ensure_ascii=False))
        for at, (tool, given) in enumerate(changes)
    ]


def _changes(patch: str) -> list[tuple[str, dict[str, Any]]]:
    """The tool and its arguments for each file of a patch; none if it does anything else, or cannot be read."""
    changes: list[tuple[str, dict[str, Any]]] = []
    hunks: list[tuple[str, list[str], list[str]]] = []  # the header, the lines before, and those after
    for line in patch.strip().replace("\r\n", "\n").split("\n")[1:]:
        path = line.partition(": ")[2].strip()
        if line.startswith("*** Add File: "):
            changes.append((WRITE, {"file_path": path, "content": ""}))
        elif line.startswith("*** Update File: "):
            hunks = []
            changes.append((EDIT, {"file_path": path, "edits": hunks}))
        elif line.strip() == "*** End Patch":
            break
        elif line.strip() == "*** End of File":
            continue
        elif not changes:
            return []
        elif changes[-1][0] == WRITE and line.startswith("+"):
            changes[-1][1]["content"] += f"{line[1:]}\n"
        elif changes[-1][0] == WRITE and not line.strip():
            continue
        elif changes[-1][0] == EDIT and line.startswith("@@"):
            hunks.append((line.removeprefix("@@").removesuffix("@@").strip(), [], []))
        elif changes[-1][0] == EDIT and line[:1] in {" ", "+", "-", ""}:
            if not hunks:
                hunks.append(("", [], []))
            _, before, after = hunks[-1]
            before += [] if line.startswith("+") else [line[1:]]
            after += [] if line.startswith("-") else [line[1:]]
        else:
            return []
    for _, given in changes:
        if "edits" in given:
            given["edits"] = [_edit(*hunk) for hunk in given["edits"] if hunk[1] or hunk[2]]
    return changes


def _edit(header: str, before: list[str], after: list[str]) -> dict[str, str]:
    """A hunk as an edit. Lines that are only added follow the line that the hunk's header names."""
    if not before:
        return {"old_string": header, "new_string": "\n".join([header, *after])}
    end = "" if after else "\n"  # no empty line stays where lines are only removed
    return {"old_string": "\n".join(before) + end, "new_string": "\n".join(after)}


def is_note(name: str) -> bool:
    """Whether a call of this name only notes a plan or a thought, as `TodoWrite` does."""
    return plain_name(_PREFIX.sub("", name, count=1)) in _NOTES


def read_arguments(text: str) -> dict[str, Any] | None:
    """The arguments of a call, or None if they are not a JSON object. Understood are nothing, `null`, JSON in a JSON
    string or a code fence, commas before a closing bracket, and line ends inside a string."""
    held: Any = text
    for _ in range(2):
        if not isinstance(held, str):
            break
        held = _loaded(held)
    return {} if held is None else held if isinstance(held, dict) else None


def _loaded(text: str) -> Any:
    """The value of a JSON text; False if it is none."""
    if text.strip() in {"", "null", "None"}:
        return None
    plain = text.strip()
    if plain.startswith(_FENCE) and plain.endswith(_FENCE) and plain.count("`") == 2 * len(_FENCE):
        plain = plain.strip("`").removeprefix("json")
    for tried in (plain, without_last_commas(plain)):
        try:
            held = json.loads(tried, strict=False)
            json.dumps(held, ensure_ascii=False, allow_nan=False).encode()  # nor is a lone surrogate a character
        except (ValueError, RecursionError):
            continue
        return held
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):  # as Python writes it
        held = _quietly(ast.literal_eval, plain) if plain[:1] in {"{", "["} and len(plain) <= LONGEST else None
        if json.dumps(held, ensure_ascii=False, allow_nan=False).encode() and held is not None:
            return held
    return False


def _quietly(parse: Callable[[str], Any], text: str) -> Any:
    with warnings.catch_warnings():  # of Python about the escapes in a model's text
        warnings.simplefilter("ignore")
        return parse(text)


def without_last_commas(text: str) -> str:
    """JSON without commas that stand before a closing bracket."""
    kept: list[str] = []
    comma, is_text, is_escaped = -1, False, False
    for char in text:
        if is_text:
            is_text, is_escaped = is_escaped or char != '"', char == "\\" and not is_escaped
        elif char in "}]" and comma >= 0:
            kept[comma], comma = "", -1
        elif not char.isspace():
            comma, is_text = len(kept) if char == "," else -1, char == '"'
        kept.append(char)
    return "".join(kept)


def _name(written: str, arguments: Mapping[str, Any], offered: set[str]) -> str:
    """The offered tool that a name means; the name itself if there is none."""
    short = _SUFFIX.sub("", _PREFIX.sub("", written.partition("<|")[0].strip(), count=1))
    for name in (written, written.strip(), short):
        if name in offered:
            return name
    plain = plain_name(short)
    alike = [name for name in offered if plain_name(name) == plain]
    if len(alike) == 1:
        return alike[0]
    if plain in _EDITORS:
        tool = _OF_EDITOR.get(str(arguments.get("command")), EDIT)
    else:
        tool = SKILL if plain in _SKILLS else built_in(short)
    return tool if tool in offered else written


def _arguments(written: str, arguments: Mapping[str, Any], spec: ToolSpec) -> dict[str, Any]:
    """The arguments in the form of the tool's schema; `written` is the plain name that the model used."""
    fields: Mapping[str, Any] = spec.schema.get("properties") or {}
    needed = spec.schema.get("required") or ()
    given = dict(arguments)
    if written in _EDITORS:
        given.pop("command", None)
    # The kernel's own tool, and not another one of the same name
    is_own = set(needed) <= set(ALIASES.get(spec.name, ())) <= set(fields)
    if reshape := _RESHAPED.get(spec.name) if is_own else None:
        given = reshape(written, given)
    own = {alias: name for name, aliases in ALIASES.get(spec.name, {}).items() for alias in aliases if name in fields}
    is_closed = spec.schema.get("additionalProperties") is False
    wanted: dict[str, Any] = {}
    for key, value in given.items():
        plain = plain_name(key)
        name = key if key in fields else next((one for one in fields if plain_name(one) == plain), own.get(plain, key))
        if name != key and name in given:  # the tool's own name counts; another value under both names is an error
            if value == given[name]:
                continue
            name = key
        if name not in fields and is_closed and (plain in DROPPED or value is None):
            continue
        if name in fields and name not in needed and (value is None or value == ""):
            continue
        wanted[name] = _converted(value, fields[name].get("type")) if isinstance(fields.get(name), Mapping) else value
    return wanted


def _converted(value: Any, kind: object) -> Any:
    """A value in the type that the schema asks for, if there is no doubt about it."""
    match kind, value:
        case "integer", float() if value.is_integer():
            return int(value)
        case "integer" | "number", str() if (number := _number(value)) is not None:
            return int(number) if kind == "integer" and number.is_integer() else number
        case "boolean", str() if value.strip().casefold() in {"true", "false"}:
            return value.strip().casefold() == "true"
        case "boolean", int() if value in (0, 1):
            return bool(value)
        case "array", str():
            held = _loaded(value)
            return held if isinstance(held, list) else [value]
        case "string", int() | float() if not isinstance(value, bool):
            return str(value)
        case "string", [str(only)]:
            return only
        case "string", dict() | list():
            return json.dumps(value, ensure_ascii=False, indent=2)
    return value


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < 1e15 else None


def _of_read(_written: str, given: dict[str, Any]) -> dict[str, Any]:
    """`view_range` and `end_line` become `offset` and `limit`."""
    last: Any = None
    for key in list(given):
        if plain_name(key) in {"viewrange", "lines", "linerange"} and isinstance(given[key], str | list):
            held = _loaded(given[key]) if isinstance(given[key], str) else given[key]
            if isinstance(held, list) and len(held) == 2:
                given.pop(key)
                given["offset"], last = held
        elif plain_name(key) in {"endline", "lineend", "toline", "endlineoneindexed", "endlineoneindexedinclusive"}:
            last = given.pop(key)
    first = next((one for key, one in given.items() if plain_name(key) in {"offset", *ALIASES[READ]["offset"]}), 1)
    begin, end = (_number(str(one)) for one in (first, last))
    return {**given, "limit": int(end - begin) + 1} if begin is not None and end is not None and end >= begin else given


def _of_grep(_written: str, given: dict[str, Any]) -> dict[str, Any]:
    """`type` is the suffix of the files, `case_sensitive` the opposite of `ignore_case`; lines are not counted."""
    for key in list(given):
        plain = plain_name(key)
        if plain in {"type", "filetype"} and isinstance(given[key], str):
            given.setdefault("glob", f"*.{given.pop(key).lstrip('.')}")
        elif plain == "casesensitive":
            given["ignore_case"] = _converted(given.pop(key), "boolean") is False
    return {**given, "output_mode": "content"} if given.get("output_mode") == "count" else given


def _of_edit(_written: str, given: dict[str, Any]) -> dict[str, Any]:
    """Each of `edits` gets the names of `edit` itself; `expected_replacements` over 1 are all of them."""
    if "expected_replacements" in given and (_number(str(given["expected_replacements"])) or 0) > 1:
        given.setdefault("replace_all", True)
    edits = _loaded(given["edits"]) if isinstance(given.get("edits"), str) else given.get("edits")
    if isinstance(edits, list) and edits and all(isinstance(one, dict) for one in edits):
        names = {alias: name for name, aliases in ALIASES[EDIT].items() for alias in (plain_name(name), *aliases)}
        given["edits"] = [{names.get(plain_name(key), key): value for key, value in one.items()} for one in edits]
    if "insert_line" in given:
        given["insert_line"] = _converted(given["insert_line"], "integer")
    return given


def _of_run(written: str, given: dict[str, Any]) -> dict[str, Any]:
    """A list as `command` is `argv`, and a shell that it calls is left out; `code` is Python's; a folder to work
    in comes before the command; a time limit in milliseconds becomes one in seconds."""
    for key in list(given):
        plain = plain_name(key)
        if plain in {"code", "script", "command", "input"} and written in _PYTHONS and isinstance(given[key], str):
            given["argv"] = ["python3", "-c", given.pop(key)]
        elif plain in {"command", "cmd", "argv", "args"} and isinstance(given[key], str | list):
            is_list = isinstance(given[key], str) and given[key].lstrip().startswith("[")
            held = _loaded(given[key]) if is_list else given[key]
            if isinstance(held, list) and all(isinstance(one, str) for one in held):
                given.pop(key)
                is_shell = len(held) == 3 and held[0].rpartition("/")[2] in {"bash", "sh", "zsh"}
                given |= {"command": held[2]} if is_shell and held[1] in {"-c", "-lc"} else {"argv": held}
        elif plain in {"timeoutms", "timeoutmilliseconds"}:
            number = _number(str(given.pop(key)))
            given |= {} if number is None else {"timeout": max(int(number / 1000), 1)}
        elif plain == "timeout" and (_number(str(given[key])) or 0) > SECONDS:
            given[key] = max(int(float(str(given[key])) / 1000), 1)
    for key in [one for one in given if plain_name(one) in {"cwd", "workdir", "workingdirectory", "dirpath"}]:
        folder = given.pop(key)
        if isinstance(folder, str) and folder.strip("./ "):
            argv, names = given.pop("argv", None), {"command", *ALIASES[RUN]["command"]}
            lines = [str(given.pop(one)) for one in list(given) if plain_name(one) in names]
            line = shlex.join(argv) if isinstance(argv, list) else "".join(lines[:1])
            given["command"] = f"cd {shlex.quote(folder)} && {line}"
    return given


_RESHAPED: Mapping[str, Callable[[str, dict[str, Any]], dict[str, Any]]] = {
    READ: _of_read,
    GREP: _of_grep,
    EDIT: _of_edit,
    RUN: _of_run,
}
