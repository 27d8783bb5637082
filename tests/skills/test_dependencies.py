from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.errors import NotLoadable, Refused
from navigator_kernel.skills.formats.dependencies import (
    BYTES_LIMIT,
    COUNT_LIMIT,
    SCRIPT_LIMIT,
    declared,
    fingerprint,
    running,
)
from navigator_kernel.skills.formats.manifest import read_manifest
from navigator_kernel.values.resource import SkillDef
from tables import cases

pytestmark = pytest.mark.requirement("SAF-3")
SHA = f"sha256:{'a' * 64}"
COMMAND = "python ${SKILL_ROOT}/scripts/go.py {input}"


def skill(folder: Path, written: Any = None, **files: str) -> SkillDef:
    """A skill with a command and these files; `written` is its `dependencies`."""
    for name, text in files.items():
        path = folder / {"file": "requirements.txt", "script": "scripts/go.py"}[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    extra = {} if written is None else {"dependencies": written}
    return SkillDef(name="s", description="d", path=folder / "SKILL.md", folder=folder, command=COMMAND, extra=extra)


def script(body: str) -> str:
    lines = "".join(f"# {line}".rstrip() + "\n" for line in body.split("\n"))
    return f"#!/usr/bin/env python3\n# /// script\n{lines}# ///\nimport sys\n"


def test_a_skill_that_declares_nothing_needs_nothing(tmp_path: Path) -> None:
    assert declared(skill(tmp_path)) == ()
    assert declared(skill(tmp_path, "")) == declared(skill(tmp_path, [])) == declared(skill(tmp_path, {})) == ()
    assert declared(skill(tmp_path, "none")) == ()


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("pandas>=1.5.0, openpyxl", ("pandas>=1.5.0", "openpyxl")),
        ("requests>=2,<3, numpy", ("requests>=2,<3", "numpy")),
        ("[uvicorn[standard,http2]>=0.3 ,rich]", ("uvicorn[http2,standard]>=0.3", "rich")),
        ("pandas[excel]", ("pandas[excel]",)),
        (["pandas >= 1.5.0", " 'rich' "], ("pandas>=1.5.0", "rich")),
        ("pandas，rich、numpy", ("pandas", "rich", "numpy")),
        ("pandas\nrich", ("pandas", "rich")),
        ('tomli; python_version < "3.11"', ('tomli; python_version < "3.11"',)),
        ("Python_Docx==1.1.2, python.docx==1.1.2", ("python-docx==1.1.2",)),
        ("torch==2.*, x!=1.0,~=1.4.2", ("torch==2.*", "x!=1.0,~=1.4.2")),
        ("requests (>=2.0)", ("requests>=2.0",)),
    ],
)
def test_metadata_declares_packages_by_list_or_by_commas(tmp_path: Path, written: Any, found: tuple[str, ...]) -> None:
    assert declared(skill(tmp_path, written)) == found


def test_the_documented_form_is_read_from_a_manifest(tmp_path: Path) -> None:
    data = b"---\nname: s\ndescription: d\ndependencies: python>=3.8, pandas>=1.5.0\n---\ntext\n"
    read = read_manifest(data, path=tmp_path / "s" / "SKILL.md", folder=tmp_path / "s")
    assert declared(read) == ("pandas>=1.5.0",)
    data = b"---\nname: s\ndescription: d\ndependencies:\n  - pandas>=1.5,<3\n  - rich\n---\ntext\n"
    read = read_manifest(data, path=tmp_path / "s" / "SKILL.md", folder=tmp_path / "s")
    assert declared(read) == ("pandas>=1.5,<3", "rich")


def test_system_requirements_are_not_declared_as_packages(tmp_path: Path) -> None:
    """A package index has unrelated packages called node and git."""
    assert declared(skill(tmp_path, "python>=3.10, node>=18, git>=2.35, pip, rich")) == ("rich",)


@pytest.mark.parametrize("versions", [">=3.8", ">=3.8,<4", "==3.*", "~=3.9", "!=2.7", ">3.0.1", "", "<=99"])
def test_a_matching_python_requirement_is_not_a_package(tmp_path: Path, versions: str) -> None:
    assert declared(skill(tmp_path, f"python{versions}, rich")) == ("rich",)


@pytest.mark.parametrize("versions", [">=99", "<3", "==2.7", "~=2.7", "<=3.1", ">3.99", ">=3.8,!=3.{minor}"])
def test_another_python_is_named(tmp_path: Path, versions: str) -> None:
    with pytest.raises(NotLoadable, match="needs Python") as caught:
        declared(skill(tmp_path, f"python{versions.format(minor=sys.version_info[1])}, rich"))
    assert caught.value.data["reason"] == "python"
    assert caught.value.hint


def test_a_file_of_requirements_is_read_where_metadata_names_none(tmp_path: Path) -> None:
    text = f"\ufeff# what it needs\r\n\r\npandas >= 1.5  # tables\r\nrich==13.0 \\\r\n  --hash={SHA} \\\r\n  --hash={SHA[:-1]}b\r\n"
    assert declared(skill(tmp_path, "python>=3.8", file=text)) == (
        "pandas>=1.5",
        f"rich==13.0 --hash={SHA} --hash={SHA[:-1]}b",
    )
    assert declared(skill(tmp_path, "numpy", file=text)) == ("numpy",)


def test_packages_are_read_from_another_folder_if_one_is_given(tmp_path: Path) -> None:
    held = skill(tmp_path / "there")
    (tmp_path / "staged").mkdir()
    (tmp_path / "staged" / "requirements.txt").write_text("rich\n")
    assert declared(held, tmp_path / "staged") == ("rich",)


def test_the_script_that_a_command_starts_is_read_if_nothing_else_names_any(tmp_path: Path) -> None:
    body = script('requires-python = ">=3.8"\ndependencies = [\n  "rich>=13",\n\n  "Pandas",\n]')
    assert declared(skill(tmp_path, script=body)) == ("rich>=13", "pandas")
    assert declared(skill(tmp_path, script=body.replace("\n", "\r\n"))) == ("rich>=13", "pandas")
    assert declared(skill(tmp_path, file="numpy\n", script=body)) == ("numpy",)


@pytest.mark.parametrize(
    "text",
    ["", "print(1)\n", "# /// script\n# dependencies = ['rich']\nprint(1)\n", "# /// pyproject\n# a = 1\n# ///\n"],
)
def test_a_script_without_a_whole_block_declares_nothing(tmp_path: Path, text: str) -> None:
    assert declared(skill(tmp_path, script=text)) == ()


def test_only_the_skills_own_script_is_read(tmp_path: Path) -> None:
    (tmp_path / "go.py").write_text(script('dependencies = ["rich"]'))
    for command in ("python ${SKILL_ROOT}/../go.py", "python {file}", "python go.py", f"python {tmp_path}/go.py", "'"):
        held = SkillDef(name="s", description="d", path=tmp_path, folder=tmp_path / "s", command=command)
        assert declared(held) == ()


@pytest.mark.parametrize(
    ("body", "error", "reason"),
    [
        ("dependencies = [", NotLoadable, "script-metadata"),
        ("dependencies = 'rich'", NotLoadable, "script-metadata"),
        ("dependencies = [1]", NotLoadable, "script-metadata"),
        ("a = 1\n///\n# \n/// script", NotLoadable, "script-metadata"),
        ("requires-python = '>=99'", NotLoadable, "python"),
        ("dependencies = ['rich']\n[tool.uv.sources]\nrich = {git = 'https://x.invalid/r'}", Refused, "index"),
        ("dependencies = ['rich']\n[[tool.uv.index]]\nurl = 'https://x.invalid/'", Refused, "index"),
        (f"a = '{'x' * BYTES_LIMIT}'", NotLoadable, "script-metadata"),
    ],
)
def test_a_script_that_says_more_or_less_is_refused(tmp_path: Path, body: str, error: Any, reason: str) -> None:
    with pytest.raises(error) as caught:
        declared(skill(tmp_path, script=script(body)))
    assert caught.value.data["reason"] == reason


def test_a_long_script_is_not_looked_at(tmp_path: Path) -> None:
    assert declared(skill(tmp_path, script=script('dependencies = ["rich"]') + "#" * SCRIPT_LIMIT)) == ()


@cases("line, reason")
def test_unsupported_options_and_outside_sources_of_packages_are_refused_with_a_reason(
    tmp_path: Path, line: str, reason: str
) -> None:
    for given in (skill(tmp_path / "m", [line]), skill(tmp_path / "f", file=f"numpy\n{line}\n")):
        with pytest.raises(Refused) as caught:
            declared(given)
        assert caught.value.data["reason"] == reason
        assert caught.value.hint


@pytest.mark.parametrize(
    "line",
    ["two words", "rich=1", "1>=rich>", "${PACKAGE}", "ri\x1b[1mch", "пакет", "rich>=1; import os\n;", "x" * 2000],
)
def test_an_invalid_requirement_is_reported_without_escape_characters(tmp_path: Path, line: str) -> None:
    with pytest.raises(NotLoadable) as caught:
        declared(skill(tmp_path, [line]))
    assert caught.value.data["reason"] == "requirement"
    assert "\x1b" not in caught.value.message


def test_a_map_is_not_a_list_of_packages(tmp_path: Path) -> None:
    for written in ({"python": ["rich"]}, [{"role": "common"}]):
        with pytest.raises(NotLoadable):
            declared(skill(tmp_path, written))


def test_bytes_are_named_only_of_one_version(tmp_path: Path) -> None:
    for line in (f"rich>=1 --hash={SHA}", f"rich==1.* --hash={SHA}", f"rich --hash={SHA}"):
        with pytest.raises(NotLoadable) as caught:
            declared(skill(tmp_path, file=line))
        assert caught.value.data["reason"] == "hash"


def test_a_password_in_an_address_is_not_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        declared(skill(tmp_path, ["rich @ https://me:hunter2@x.invalid/y.whl"]))
    assert "hunter2" not in str(caught.value.to_dict())


def test_too_much_is_refused(tmp_path: Path) -> None:
    most = [f"p{number}" for number in range(COUNT_LIMIT)]
    assert len(declared(skill(tmp_path / "a", most))) == COUNT_LIMIT
    for given in (
        skill(tmp_path / "b", [*most, "one-more"]),
        skill(tmp_path / "c", file="# long\n" * BYTES_LIMIT),
        skill(tmp_path / "d", file="\n".join([*most, "one-more"])),
    ):
        with pytest.raises(Refused):
            declared(given)


def test_a_file_that_is_a_link_or_no_text_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_text("rich\n")
    held = skill(tmp_path / "s")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "requirements.txt").symlink_to("../elsewhere.txt")
    with pytest.raises(Refused, match="link"):
        declared(held)
    (tmp_path / "s" / "requirements.txt").unlink()
    (tmp_path / "s" / "requirements.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(NotLoadable, match="UTF-8"):
        declared(held)


@pytest.mark.parametrize("unit", ["a,", "a[,", "- ", "a ", "(", "a;", "#/// ", "--hash=", "a.", ">=1,", "\\\n", "a@"])
def test_hostile_text_takes_no_time(tmp_path: Path, unit: str) -> None:
    started = time.process_time()
    text = (unit * BYTES_LIMIT)[:BYTES_LIMIT]
    lines = "# /// script\n" + f"# {unit}\n".replace("\\\n", "") * (SCRIPT_LIMIT // (len(unit) + 3) - 10)
    for given in (skill(tmp_path / "a", text), skill(tmp_path / "b", file=text), skill(tmp_path / "c", script=lines)):
        try:
            declared(given)
        except (NotLoadable, Refused):
            continue
    assert time.process_time() - started < 2


def test_a_name_is_for_packages_and_interpreter_in_any_order(tmp_path: Path) -> None:
    name = fingerprint(["rich", "numpy"])
    assert name == fingerprint(["numpy", "rich", "rich"]) == fingerprint(["rich", "numpy"], running())
    assert len(name) == 64 and set(name) <= set("0123456789abcdef")
    others = [fingerprint(["rich"]), fingerprint(["rich", "numpy>=1"])]
    others += [fingerprint(["rich", "numpy"], (*running()[:at], "other", *running()[at + 1 :])) for at in range(5)]
    assert len({name, *others}) == 8
