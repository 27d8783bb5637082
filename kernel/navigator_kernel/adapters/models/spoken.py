"""Takes thoughts and calls out of a model's text: `<think>` blocks, `<tool_call>`, `<function=…>`, `<invoke …>`, and
JSON in the form of a call.

Text that may begin such a block is held back, so that what was streamed is always the beginning of the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal
from uuid import uuid4

from navigator_kernel.text import lazy_compile
from navigator_kernel.values.called import meant, read_arguments
from navigator_kernel.values.chat import ToolCall, ToolSpec

_State = Literal["start", "thought", "text", "code", "fence", "json", "tag"]
_THOUGHTS = ("<think>", "<thinking>", "<thought>", "<reasoning>")
_TAGS = ("<tool_call>", "<tool_calls>", "<function=", "<function_call>", "<function_calls>", "<invoke ", "[TOOL_CALLS]")
_FENCE = "```"
# The beginning of JSON that may be a call: whole, or as far as it has arrived
_KEYS = ("name", "tool", "tool_name", "function", "arguments", "parameters", "type", "id")
_MAY_BE_CALL = lazy_compile(r'\s*(?:\[\s*)?(?:\{\s*(?:"(?P<key>[a-z_]{0,12})(?P<end>"?)|$)|$)')
_LANGUAGES = ("", "json", "tool_call", "tool_code", "tool")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input")
_BLOCK = lazy_compile(
    r"<tool_calls?>|<function_call>|<function=(?P<function>[\w.:-]{1,100})>|"
    r"<invoke\s+name=[\"'](?P<invoke>[\w.:-]{1,100})[\"']\s*>|\[TOOL_CALLS\]"
)
_INNER = lazy_compile(r"\s*(?:<tool_call>|<function_call>|<function=|<invoke\s)")
_END = lazy_compile(r"</(?:tool_calls?|function_calls?|function|invoke)>|<function_calls>")
_PARAMETER = lazy_compile(
    r"<parameter(?:=(?P<plain>[\w.-]{1,100})|\s+name=[\"'](?P<named>[\w.-]{1,100})[\"'][^>]{0,80})>"
)
_PARAMETER_END = "</parameter>"
# Words that introduce an example, not a call
_EXAMPLE = lazy_compile(
    r"\b(?:examples?|e\.g\.|for instance|such as|would|could|can|looks? like|format|schema|sample|returns?|"
    r"responds?|response|output|payload|template)\b|例如|比如|示例|格式|样例|返回|输出",
    re.IGNORECASE,
)
INTRODUCTION = 300  # characters before a JSON call in a fence; after a longer text it is an example


class Spoken:
    """Reads one answer, piece by piece. `told` gets the text for the person; `end` returns the whole of it, and the
    calls. Without `tools` nothing is a call."""

    def __init__(self, tools: Sequence[ToolSpec], told: Callable[[str], None] | None = None) -> None:
        self._tools, self._told = tools, told
        self._state: _State = "start"
        self._held, self._space, self._thought, self._pieces = "", "", "", list[str]()
        self._in_line = False  # whether the beginning of the line was passed on

    def __call__(self, piece: str) -> None:
        self._held += piece
        while self._moved():
            pass

    def end(self) -> tuple[str, tuple[ToolCall, ...]]:
        """The text and the calls of the whole answer."""
        calls: tuple[ToolCall, ...] = ()
        rest = self._held
        if self._state == "thought":
            rest = ""
        elif self._state == "tag":
            calls, rest = self._of_tags(rest)
        elif self._state == "fence":
            calls, rest = self._of_fence(rest)
        elif self._state == "json":
            calls = self._of_json(rest, must_be_offered=True)
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
                return self._at_start()
            case "thought":
                at = self._held.find(self._thought)
                if at < 0:
                    return False
                self._held, self._state = self._held[at + len(self._thought) :], "start"
                return True
            case "text":
                return self._in_text()
            case "code":
                return self._in_code()
            case "fence":
                return self._in_fence()
            case "json":
                if _may_be_call(self._held):
                    return False
                self._state = "text"
                return True
        return False

    def _at_start(self) -> bool:
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

    def _in_text(self) -> bool:
        line, newline, _ = self._held.partition("\n")
        if not line and not newline:
            return False
        plain = line.lstrip()
        if self._tools and not self._in_line:
            if plain.startswith(_TAGS):
                self._state = "tag"
                return True
            if plain.startswith(_FENCE):
                if not newline:
                    return False
                is_json = plain.removeprefix(_FENCE).strip().lower() in _LANGUAGES
                self._state = "fence" if is_json else "code"
                return True
            if not newline and any(tag.startswith(plain) for tag in (*_TAGS, _FENCE)):
                return False
        self._say(line + newline)
        self._held, self._in_line = self._held[len(line + newline) :], not newline
        return True

    def _in_code(self) -> bool:
        """The lines of a code block, up to its end; the first one opens it."""
        line, newline, rest = self._held.partition("\n")
        if not newline:
            return False
        self._say(line + newline)
        self._held = rest
        if line.strip() == _FENCE and self._in_line:
            self._state, self._in_line = "text", False
        else:
            self._in_line = True
        return True

    def _in_fence(self) -> bool:
        """A block that may be a call stays held back; it is one only if nothing comes after it."""
        _, _, inside = self._held.partition("\n")
        body, closing, after = inside.partition(f"\n{_FENCE}")
        if _may_be_call(body) and not (closing and after.strip()):
            return False
        self._state = "code"
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

    def _of_tags(self, text: str) -> tuple[tuple[ToolCall, ...], str]:
        """The calls of the blocks in `text`, and what is left of it."""
        calls: list[ToolCall] = []
        left: list[str] = []
        at = 0
        while (block := _BLOCK.search(text, at)) is not None:
            name = block["function"] or block["invoke"]
            if not name and _INNER.match(text, block.end()):
                left.append(text[at : block.start()])
                at = block.end()
                continue
            end = _END.search(text, block.end())
            inside = text[block.end() : end.start() if end else len(text)]
            found = self._named(name, inside) if name else self._of_json(inside, must_be_offered=False)
            if not found:
                return (), text
            calls += found
            left.append(text[at : block.start()])
            at = end.end() if end else len(text)
        return tuple(calls), _END.sub("", "".join((*left, text[at:])))

    def _named(self, name: str, inside: str) -> tuple[ToolCall, ...]:
        """The call of a block that has the name in its tag, with JSON or with an element for each argument."""
        if "parameter" not in inside or inside.lstrip().startswith("{"):
            arguments = read_arguments(inside)
        else:
            arguments = dict(_parameters(inside))
        return () if arguments is None else (self._call(name, arguments),)

    def _of_fence(self, text: str) -> tuple[tuple[ToolCall, ...], str]:
        """The calls of a code block at the end of an answer, after a short text that does not call it an example."""
        before = "".join(self._pieces)
        if len(before) > INTRODUCTION or _FENCE in before or _EXAMPLE.search(before):
            return (), text
        inside = text.partition("\n")[2].rstrip().removesuffix(_FENCE)
        calls = self._of_json(inside, must_be_offered=True)
        return calls, "" if calls else text

    def _of_json(self, text: str, *, must_be_offered: bool) -> tuple[ToolCall, ...]:
        """The calls of a JSON object, of a list of them, or of one in each line; none if one of them is not a call."""
        values = _values(text)
        calls = [self._of_value(value, must_be_offered=must_be_offered) for value in values or ()]
        return tuple(call for call in calls if call) if calls and all(calls) else ()

    def _of_value(self, value: Any, *, must_be_offered: bool) -> ToolCall | None:
        if not isinstance(value, dict):
            return None
        inner = value.get("function")
        value = inner if isinstance(inner, dict) else value
        names = [value[key] for key in ("name", "tool", "tool_name", "function") if isinstance(value.get(key), str)]
        found = [value[key] for key in _ARGUMENTS if key in value]
        others = value.keys() - {*_ARGUMENTS, *_KEYS, "call_id"}
        if len(names) != 1 or len(found) > 1 or others or (must_be_offered and not found):
            return None
        arguments = found[0] if found else {}
        arguments = read_arguments(arguments) if isinstance(arguments, str) else arguments
        if not isinstance(arguments, dict):
            return None
        call = self._call(names[0], arguments)
        return None if must_be_offered and call.name not in {tool.name for tool in self._tools} else call

    def _call(self, name: str, arguments: dict[str, Any]) -> ToolCall:
        call = ToolCall(id=f"text-{uuid4().hex[:16]}", name=name, arguments=json.dumps(arguments, ensure_ascii=False))
        return meant(call, self._tools)


def _may_be_call(text: str) -> bool:
    """Whether JSON that has begun may be a call."""
    begin = _MAY_BE_CALL.match(text)
    if begin is None:
        return False
    key = begin["key"] or ""
    return key in _KEYS if begin["end"] else any(one.startswith(key) for one in _KEYS)


def _values(text: str) -> list[Any]:
    """The JSON values of a text: one, the items of a list, or one in each line; none if the text is something else."""
    held = read_arguments(text) if text.strip() else None
    if held is not None:
        return [held]
    try:
        values = [json.loads(text, strict=False)]
    except (ValueError, RecursionError):
        try:
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            return []
    return values[0] if len(values) == 1 and isinstance(values[0], list) else values


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    """The arguments that have an element each, as text."""
    for begin in _PARAMETER.finditer(text):
        value = text[begin.end() :].partition(_PARAMETER_END)[0]
        yield begin["plain"] or begin["named"], value.removeprefix("\n").removesuffix("\n")
