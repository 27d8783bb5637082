"""Extracts a skill's parameters from a message; what cannot be inferred is reported as missing (X-10, SEN-2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from navigator_kernel.text import lazy_compile
from navigator_kernel.values.request import FileReference, PreprocessingResult
from navigator_kernel.values.resource import ParamSpec

_PAIR = lazy_compile(r"(?:--)?([A-Za-z_][\w-]*)=(.*)", re.DOTALL)
_FLAG = lazy_compile(r"--([A-Za-z][\w-]*)")
_URL = lazy_compile(r"https?://[^\s<>\"'，。）)]+[^\s<>\"'，。）).,;:!?]")
_EMAIL = lazy_compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]*\w")
_QUOTED = lazy_compile(r"\"([^\"]+)\"|'([^']+)'|“([^”“]+)”|「([^」「]+)」|`([^`]+)`")
# Words that refer to the output of the step before, and are not values themselves
_REFERS = lazy_compile(
    r"(?:(?:on|to|of|with|from|for|into|in)\s+)?(?:it|them|this|that|these|those|(?:the|its|their|that|this|these|those)\s+"
    r"(?:results?|outputs?|reports?|files?|tables?|texts?|lists?|data|summar(?:y|ies)))"
    r"|(?:把|对)?(?:它们?|其|(?:这个|这些|该|上一步的?|其|得到的|刚才的)?(?:结果|输出|报告|文件|表格|数据|内容))",
    re.IGNORECASE,
)
_AFTER_COLON = lazy_compile(r"[:：]\s*(\S.*)$", re.DOTALL)


class Parameters(Struct, frozen=True, kw_only=True):
    """`values` by name, `positional` the remaining arguments, `missing` the required ones without a usable value."""

    values: Mapping[str, str] = field(default_factory=dict)
    positional: tuple[str, ...] = ()
    missing: tuple[ParamSpec, ...] = ()


def parameters(
    specs: Sequence[ParamSpec], arguments: Sequence[str], request: PreprocessingResult, *, named: bool
) -> Parameters:
    """The parameters of a skill. `named` says that the arguments were written for it, so that the remaining words are
    its text."""
    values, positional = _written(specs, arguments)
    if request.handed is not None and _REFERS.fullmatch(" ".join(positional)):
        positional.clear()
    files = [file for file in request.files if not file.problem]
    for spec in specs:
        if spec.name not in values:
            value = _inferred(spec, positional, files, request, named=named)
            if value is not None:
                values[spec.name] = value
    for name in [spec.name for spec in specs if spec.validation == "file_exists" and spec.name in values]:
        values[name] = _as_path(values[name], files, request.base)
    values |= _answered(specs, values, request.answer)
    missing = tuple(s for s in specs if s.required and s.default is None and not fits(s, values.get(s.name)))
    defaults = {s.name: s.default for s in specs if s.default is not None and s.name not in values}
    return Parameters(values={**defaults, **values}, positional=tuple(positional), missing=missing)


def is_file(path: Path) -> bool:
    """Whether the text is the path of a file."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def fits(spec: ParamSpec, value: str | None) -> bool:
    """Whether `value` passes the declared validation (part 3, item 2)."""
    if value is None or not value.strip():
        return spec.validation == "none" and value is not None
    match spec.validation:
        case "url_format":
            return _URL.fullmatch(value) is not None
        case "email":
            return _EMAIL.fullmatch(value) is not None
        case "file_exists":
            return is_file(Path(value))
        case _:
            return True


def _written(specs: Sequence[ParamSpec], arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """`name=value`, `--name value` and `--name=value` for declared names; the rest is positional."""
    known = {spec.name.replace("-", "_"): spec.name for spec in specs}
    values: dict[str, str] = {}
    positional: list[str] = []
    waiting: str | None = None
    for word in arguments:
        pair, flag = _PAIR.fullmatch(word), _FLAG.fullmatch(word)
        if waiting is not None:
            values[waiting], waiting = word, None
        elif pair and (name := known.get(pair.group(1).replace("-", "_"))):
            values[name] = pair.group(2)
        elif flag and (name := known.get(flag.group(1).replace("-", "_"))):
            waiting = name
        else:
            positional.append(word)
    return values, positional


def _inferred(
    spec: ParamSpec, positional: list[str], files: list[FileReference], request: PreprocessingResult, *, named: bool
) -> str | None:
    said = " ".join([*positional, request.need])
    match spec.validation:
        case "file_exists":
            return _taken(positional, lambda word: is_file(request.base / word)) or _path_of(files, request)
        case "url_format":
            return _taken(positional, lambda word: bool(_URL.fullmatch(word))) or _first(_URL, said)
        case "email":
            return _taken(positional, lambda word: bool(_EMAIL.fullmatch(word))) or _first(_EMAIL, said)
        case _:
            return _as_text(spec, positional, files, request, named=named)


def _path_of(files: list[FileReference], request: PreprocessingResult) -> str | None:
    """The message's own file, else one that the previous step wrote."""
    handed = request.handed.files if request.handed else ()
    return next((str(file.path) for file in (*files, *handed)), None)


def _as_text(
    spec: ParamSpec, positional: list[str], files: list[FileReference], request: PreprocessingResult, *, named: bool
) -> str | None:
    if not spec.required:
        return None
    if files:
        return files[0].content
    if named and positional:
        words, positional[:] = " ".join(positional), []
        return "\n".join(part for part in (words, request.cleaned_content if request.commands else "") if part)
    if request.commands and request.need:
        return request.cleaned_content
    if quoted := _QUOTED.search(request.need):
        return next(group for group in quoted.groups() if group)
    if after := _AFTER_COLON.search(request.need):
        return after.group(1)
    return request.handed.subject or None if request.handed else None


def _answered(specs: Sequence[ParamSpec], values: Mapping[str, str], answer: str) -> dict[str, str]:
    """The values of an answer, by name, or the whole answer for one missing value (X-11)."""
    wanted = [
        spec for spec in specs if spec.required and spec.default is None and not fits(spec, values.get(spec.name))
    ]
    if not answer.strip() or not wanted:
        return {}
    names = "|".join(re.escape(spec.name) for spec in specs)
    apart = lazy_compile(rf"[\n;；]\s*+|(?<![\s,，])[\s,，]++(?=(?:{names})=)")
    named, _ = _written(wanted, apart.split(answer.strip()))
    left = [spec for spec in wanted if spec.name not in named]
    return {**named, left[0].name: answer.strip()} if len(left) == 1 and not named else named


def _taken(positional: list[str], wanted: Callable[[str], bool]) -> str | None:
    for word in positional:
        if wanted(word):
            positional.remove(word)
            return word
    return None


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    hit = pattern.search(text)
    return hit.group() if hit else None


def _as_path(value: str, files: list[FileReference], base: Path) -> str:
    held = next((file for file in files if file.written == value), None)
    return str(held.path if held else (base / value).resolve())
