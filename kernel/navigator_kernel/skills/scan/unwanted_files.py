"""Finds files that a skill should not contain: files that hosts start by themselves, binary programs, and model files
that run code when they are loaded (pickles, also compressed or in archives of torch and numpy)."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import pickletools
import re
import zipfile
import zlib
from typing import TYPE_CHECKING

from msgspec import Struct, field

from navigator_kernel.skills.scan.context import is_aside
from navigator_kernel.skills.scan.finding import Level, finding
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.receipt import NOT_SCANNED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from navigator_kernel.values.resource import Diagnostic


_TORCH = 5  # pickles at the start of a torch file from before version 1.6; the numbers of the model follow
_MARK = object()
_KEEP = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
_FETCH = {"GET", "BINGET", "LONG_BINGET"}
_NO_TEXT = {"GLOBAL", "INST", "PERSID", "INT", "LONG", "FLOAT"}


class Imports(Struct):
    """The `names` that pickles import when they are loaded, each (module, name), in order; ("", "") for one that the
    pickle computes. `whole` is False if not all of them could be read. At most `steps` more operations are read."""

    names: list[tuple[str, str]] = field(default_factory=list)
    whole: bool = True
    steps: int = 200_000

    def read(self, data: bytes) -> None:
        """Adds what the pickles in `data`, one after another, import."""
        stream, ended = io.BytesIO(data), 0
        while stream.tell() < len(data):
            try:
                self._read_one(stream)
            except Exception:  # noqa: BLE001 - bytes that are not a pickle fail in many ways
                self.whole = self.whole and ended >= _TORCH
                return
            if self.steps <= 0:
                self.whole = False
                return
            ended += 1

    def _read_one(self, stream: io.BytesIO) -> None:
        """Follows the texts that the operations of one pickle put on the stack and take from it."""
        stack: list[object] = []
        memo: dict[object, object] = {}
        for code, argument, _ in pickletools.genops(stream):
            self.steps -= 1
            if self.steps <= 0:
                return
            if code.name in {"GLOBAL", "INST"}:
                module, _, name = str(argument).partition(" ")
                self.names.append((module, name))
            elif code.name == "STACK_GLOBAL":
                of, own = stack[-2:]
                self.names.append((of, own) if isinstance(of, str) and isinstance(own, str) else ("", ""))
            if code.name in _KEEP:
                memo[len(memo) if argument is None else argument] = stack[-1]
                continue
            value = memo[argument] if code.name in _FETCH else argument
            operands = code.stack_before
            if pickletools.markobject in operands or (code.name == "POP" and stack[-1] is _MARK):
                while stack.pop() is not _MARK:
                    pass
                is_marked = pickletools.markobject in operands
                operands = operands[: operands.index(pickletools.markobject)] if is_marked else []
            if len(operands) > len(stack):
                raise IndexError(code.name)
            result = stack[-1] if code.name == "DUP" else value if code.name not in _NO_TEXT else None
            del stack[len(stack) - len(operands) :]
            text = result if isinstance(result, str) else None
            stack.extend(_MARK if kind is pickletools.markobject else text for kind in code.stack_after)


_PICKLES = (".pkl", ".pickle", ".dill", ".joblib", ".sav")
_NAMES = (*_PICKLES, ".pt", ".pth", ".ckpt", ".npy", ".npz", ".bin", ".model")
_PACKED = lazy_compile(r"\.(?:gz|bz2|xz|lzma|z|zst|lz4)$")
_NUMPY = b"\x93NUMPY"
_PROTOCOLS = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_MOST = 16 * 1024 * 1024  # decompressed bytes of pickles that are checked in one file
# Imports of plain model data: from these packages, classes, number types and the functions that rebuild objects
_PACKAGES = frozenset({
    "collections", "numpy", "torch", "datetime", "decimal", "fractions", "uuid", "array", "copyreg", "copy_reg",
    "sklearn", "scipy", "pandas", "joblib", "pathlib", "_codecs", "xgboost", "lightgbm", "transformers", "builtins",
    "__builtin__",
})  # fmt: skip
_REBUILT = lazy_compile(
    r"_*[A-Z]\w*|(?:q?u?int|b?float|complex)\w*|(?:_rebuild|_?_reconstruct|_unpickle|__pyx_unpickle|_new_|__newobj)\w*"
    r"|__\w+_ctor|_array_reconstructor|_frombuffer|encode|set|frozenset|list|dict|tuple|bool_?|str_?|bytes_?|bytearray"
    r"|slice|x?range|object_?|long|unicode|void|date|datetime|time|timedelta|timezone|array|deque|defaultdict|scalar|dtype"
    r"|ndarray|new_block|newObj|device|[a-z]{3}_(?:matrix|array)|\w+_gen|rv_frozen|interp1d",
    re.ASCII,
)
_RUNS = frozenset({"Popen", "CDLL", "PyDLL", "Process", "Pool", "Thread", "Unpickler", "NumpyUnpickler"})
_NAME = lazy_compile(r"[\w.-]+", re.ASCII)
_OBJECT_TYPE = lazy_compile(rb"['|]O['\d]")


def model_findings(path: str, data: bytes) -> Iterator[Diagnostic]:
    """A warning if loading the file imports more than plain model data, or if not all of its pickles can be read."""
    low = _PACKED.sub("", path.lower())
    begun = data.startswith(_PROTOCOLS)
    if not (begun or low.endswith(_NAMES)):
        return
    imports, packed = Imports(), data.startswith(b"PK\x03\x04")
    if packed:
        _read_archive(data, imports)
    elif data.startswith(_NUMPY):
        _read_numpy(data, imports)
    else:
        imports.read(_unpacked(data, imports))
    # Bytes of another format may look like an import, but with a name that no module has
    surely = begun or packed or low.endswith(_PICKLES)
    names = [name for name in imports.names if surely or all(map(_NAME.fullmatch, name))]
    for module, name in names:
        rebuilds = all(_REBUILT.fullmatch(part) and part not in _RUNS for part in name.split("."))
        if module.partition(".")[0] in _PACKAGES and rebuilds:
            continue
        shown = f"a pickle that imports {f'{module}.{name}'.strip('.') or 'a name it computes'}"
        kind = f"archive with {shown}" if packed else shown
        message = "runs code of its own when it is loaded"
        yield finding("pickled-model", "warning", path, message, None, kind, judged=data)
        return
    if not imports.whole and (surely or names):
        message = "not all of it was scanned: its pickles cannot be read to their end"
        yield finding(NOT_SCANNED, "warning", path, message, None, f"a model file of {len(data):,} bytes", judged=data)


def _read_archive(data: bytes, imports: Imports) -> None:
    remaining = _MOST
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as pack:
            for entry in pack.infolist():
                if not entry.filename.lower().endswith((".pkl", ".npy")):
                    continue
                with pack.open(entry) as member:
                    content = member.read(remaining + 1)
                remaining -= len(content)
                if remaining < 0:
                    imports.whole = False
                    return
                _read_numpy(content, imports) if content.startswith(_NUMPY) else imports.read(content)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, NotImplementedError, RuntimeError, EOFError):
        imports.whole = False


def _read_numpy(data: bytes, imports: Imports) -> None:
    """An array of objects is a pickle behind a header (numpy.lib.format)."""
    size, begin = (2, 10) if data[6:7] == b"\x01" else (4, 12)
    end = begin + int.from_bytes(data[8 : 8 + size], "little")
    if _OBJECT_TYPE.search(data[begin:end]):
        imports.read(data[end:])


def _unpacked(data: bytes, imports: Imports) -> bytes:
    """The data behind zlib, gzip, bzip2 or xz, as joblib and pandas write it; `data` itself if it is not compressed."""
    try:
        if data.startswith((b"\x1f\x8b", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")):
            unpacked = zlib.decompressobj(47).decompress(data, _MOST + 1)
        elif data.startswith(b"BZh"):
            unpacked = bz2.BZ2Decompressor().decompress(data, _MOST + 1)
        elif data.startswith((b"\xfd7zXZ\0", b"\x5d\0\0")):
            unpacked = lzma.LZMADecompressor(memlimit=256 * 1024 * 1024).decompress(data, _MOST + 1)
        else:
            return data
    except (zlib.error, OSError, lzma.LZMAError, EOFError):
        imports.whole = False
        return b""
    imports.whole = imports.whole and len(unpacked) <= _MOST
    return unpacked[:_MOST]


_HOSTS = r"\.(?:claude|codex|gemini|cursor|windsurf|vscode|agents|opencode|github/copilot)"
_STARTED = lazy_compile(
    rf"(?:^|/)(?:{_HOSTS}/(?:settings(?:\.local)?\.json|hooks(?:\.json|/(?s:.+))|mcp\.json|tasks\.json|config\.toml)"
    r"|hooks/hooks\.json|\.?mcp\.json|\.husky/(?s:.+)|\.githooks/(?s:.+)|\.envrc|\.direnvrc|sitecustomize\.py|usercustomize\.py|[^/]+\.pth"
    r"|\.devcontainer/devcontainer\.json|\.devcontainer\.json|claude_desktop_config\.json)$",
    re.IGNORECASE,
)
_WORDS = (b"mcpServers", b"PreToolUse", b"PostToolUse", b"SessionStart", b"UserPromptSubmit")
_INSTRUCTIONS = lazy_compile(
    rf"(?:^|/)(?:{_HOSTS}/(?:commands|agents|rules|memory)/(?s:.+)|CLAUDE(?:\.local)?\.md|AGENTS\.md|GEMINI\.md|\.cursorrules"
    r"|\.windsurfrules|copilot-instructions\.md)$",
)
_PROGRAM = lazy_compile(
    r"\.(?:pyc|pyo|pyd|so(?:\.\d+)*|dll|dylib|exe|msi|class|jar|pyz|pyzw|egg|whl|xpi|crx|vsix|phar|asar|node|scr|deb|rpm|dmg|pkg|apk)$",
    re.IGNORECASE,
)
_MAGIC = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa\xcf")
_LFS = b"version https://git-lfs.github.com/spec/"
_LFS_SIZE = lazy_compile(rb"(?m)^size (\d{1,18})$")
_PYTHON = lazy_compile(rb"..\r\n", re.DOTALL)  # beginning of Python's own bytecode
_UNCHECKED = 1  # fifth byte of bytecode: Python does not compare it with its source (PEP 552)
# Actions of a start-up command that no honest skill needs: it fetches code, sends something, or allows everything
_ACTS = lazy_compile(
    r"\b(?:curl|wget|iwr|irm|nc)\b|https?://\S{1,400}\.(?:tgz|tar\.gz|zip|sh|py|js)\b|\bfetch\s*\(|urlopen|base64|\beval\b|bypassPermissions|Bash\(\*\)"
    r"|auto_?approve\"?\s*:\s*true|/dev/tcp/|ANTHROPIC_BASE_URL|OPENAI_BASE_URL|\$\{?\w*(?:TOKEN|SECRET|API_KEY)\b",
    re.IGNORECASE,
)
_PACKAGE = lazy_compile(r"(?:^|/)package\.json$")
_STRING = lazy_compile(r'"(?:[^"\\]|\\.)*+"')
_INSTALLED = ("preinstall", "install", "postinstall", "prepare")
_COMMANDS = (
    "initializeCommand", "onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand",
    "postAttachCommand",
)  # fmt: skip
_SETTINGS = lazy_compile(r"(?:^|/)\.\w+/settings(?:\.local)?\.json$", re.IGNORECASE)
_CONFIGURED = lazy_compile(r"\"(?:hooks|mcpServers|servers|command|tasks)\"\s*:")
_BYTECODE = lazy_compile(r"(?:__pycache__/)?(?<![^/.])([^/.]++)(?:\.[\w-]+)?\.py[co]$")


def findings(path: str, data: bytes, files: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    if _is_started(path, data):
        yield _started(path, data, files)
    elif _INSTRUCTIONS.search(path):
        message = "an agent may read these instructions by itself, without choosing the skill"
        yield _of_file("shipped-instructions", "note", path, data, message)
    elif _PACKAGE.search(path):
        package = _json(data)
        scripts = package.get("scripts") if isinstance(package, dict) else None
        commands = [scripts.get(name) for name in _INSTALLED] if isinstance(scripts, dict) else []
        command = next((one for one in commands if isinstance(one, str) and _ACTS.search(one)), "")
        if command:
            # The line of the text in the file, however it is escaped there
            text = data.decode(json.detect_encoding(data), "replace")
            at = next((hit.start() for hit in _STRING.finditer(text) if _json(hit[0]) == command), 0)
            message = "a package runs this while it is installed"
            yield finding("shipped-start", "error", path, message, text.count("\n", 0, at) + 1, command)
    if data.startswith(_LFS):
        size = _LFS_SIZE.search(data)
        message = (
            "a pointer of Git LFS stands in the file's place: its contents are kept elsewhere and were not fetched"
        )
        missing = f"{int(size[1]):,} bytes are missing" if size else "its contents are missing"
        yield finding("lfs-pointer", "warning", path, message, None, missing, judged=data)
    elif _PROGRAM.search(path) or data.startswith(_MAGIC) or (_PYTHON.match(data) and b"\x00" in data[:16]):
        source = _BYTECODE.sub(r"\1.py", path)
        level: Level = "error"
        if source == path or source not in files:
            message = "a program comes without its source"
        elif data[4:5] == bytes([_UNCHECKED]):
            message = "Python takes this compiled file whatever its source says"
        else:
            level, message = "warning", "a compiled file is beside its source"
        yield _of_file("unreadable-program", level, path, data, message)
    else:
        yield from model_findings(path, data)


def _is_started(path: str, data: bytes) -> bool:
    """Whether a host starts the file by itself and the file starts something, or it has the form of a host's own
    settings, whatever its name."""
    name = path.lower()
    if _STARTED.search(path):
        if name.endswith(".pth"):  # Python code, or the weights of a model
            starts = data.lstrip().startswith(b"import")
        elif not name.endswith(".json") or _SETTINGS.search(path):
            starts = data.strip() not in {b"", b"{}"}
        elif (value := _json(data)) is None:
            starts = bool(_CONFIGURED.search(data.decode("utf-8", "replace")))
        else:
            starts = _names_command(value)
        if starts:
            return True
    if name.endswith(".toml"):
        return b"[mcp_servers." in data
    is_settings = name.endswith((".json", ".jsonc")) and any(word in data for word in _WORDS)
    return is_settings and _names_command(_json(data))


def _started(path: str, data: bytes, files: Mapping[str, bytes]) -> Diagnostic:
    """A file that a host starts is not harmful by itself; one that fetches, sends or allows everything is."""
    text = data.decode("utf-8", "replace")
    named = [file for name, file in files.items() if name != path and name.rpartition("/")[2] in text and len(name) > 3]
    hit = _ACTS.search(text)
    acts = hit or any(_ACTS.search(file.decode("utf-8", "replace")) for file in named[:8])
    level: Level = "error" if path.endswith(".pth") or (acts and not is_aside(path)) else "warning"
    number = text.count("\n", 0, hit.start()) if hit else 0
    line = text.split("\n")[number]
    shown = line if line.strip() else text.strip()[:80] or "(empty)"
    message = "a host may start this by itself: hooks, servers or tasks come with the skill"
    return finding("shipped-start", level, path, message, number + 1, shown, judged=data or shown)


def _of_file(code: str, level: Level, path: str, data: bytes, message: str) -> Diagnostic:
    """A finding for a whole file, judged by all its bytes; it shows the first line, or the size and first bytes."""
    readable = b"\x00" not in data[:4096] and data.strip()
    text = data.decode("utf-8", "replace").lstrip("\ufeff").strip().split("\n")[0] if readable else ""
    kind = f"{len(data):,} bytes that begin with {data[:8].hex(' ') or 'nothing'}"
    line = data[: len(data) - len(data.lstrip())].count(b"\n") + 1 if readable else None
    return finding(code, level, path, message, line if text else None, text or kind, judged=data or kind)


def _json(data: bytes | str) -> object:
    """The value in `data`; None if it is not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _names_command(value: object) -> bool:
    """Whether `value` names a command or a server at any depth."""
    values = [value]
    while values:
        item = values.pop()
        if isinstance(item, dict):
            if any(item.get(key) for key in ("command", "hooks", "mcpServers", "servers", "tasks", "url", *_COMMANDS)):
                return True
            values += item.values()
        elif isinstance(item, list):
            values += item
    return False
