"""Changes one value of a settings file and keeps the rest unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from navigator_kernel.errors import Damaged, UsageProblem


def changed(path: Path, keys: Sequence[str], value: Any, root: Path) -> Path:
    """Sets `value` at `keys` of the TOML file; None removes it. Damaged for a file that is not TOML."""
    import tomlkit
    from tomlkit.exceptions import ParseError, TOMLKitError

    from navigator_kernel.bootstrap.project import Project

    try:
        held = tomlkit.parse(path.read_text(encoding="utf-8")) if path.exists() else tomlkit.document()
        table: Any = held
        for key in keys[:-1]:
            table = table.setdefault(key, tomlkit.table()) if value is not None else table.get(key, {})
        if value is None:
            table.pop(keys[-1], None)
        else:
            table[keys[-1]] = value
    except (ParseError, UnicodeDecodeError) as error:
        raise Damaged(f"{str(path)!r} is not TOML: {error}", hint="fix or remove the file") from error
    except (AttributeError, TypeError, TOMLKitError) as error:
        raise UsageProblem(f"{'.'.join(keys[:-1])!r} is not a table in {str(path)!r}", hint="fix the file") from error
    Project(root).writer_for("setup").write(path, tomlkit.dumps(held).encode())
    return path
