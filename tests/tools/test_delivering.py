"""`deliver` copies files of any type from the workspace to the project, after one question (JIT-12)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.files import changes
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import Policy
from navigator_kernel.errors import ConsentNeeded
from navigator_kernel.sandbox.guard import of_built_in
from navigator_kernel.tools import delivering
from navigator_kernel.tools.guarded import GuardedTools
from tables import cases
from tools.bench_of_tools import Toolbox, toolbox

pytestmark = pytest.mark.requirement("JIT-12")

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
PDF = b"%PDF-1.7\n" + b"\xff\xfe" * 500


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    made = toolbox(tmp_path.resolve(), named=("notes.txt",))
    made.call("write", 99, file_path="report.md", content="# Report\n")
    for name, data in {"chart.png": PNG, "out/a.pdf": PDF, "out/deep/b.csv": b"x,y\n1,2\n"}.items():
        (made.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (made.workspace / name).write_bytes(data)
    return made


def given(source: list[str], to: str = "") -> dict[str, Any]:
    return {"from": source, "to": to} if to else {"from": source}


def question(box: Toolbox, number: int = 1, **arguments: Any) -> ConsentNeeded:
    with pytest.raises(ConsentNeeded) as asked:
        box.call("deliver", number, **arguments)
    return asked.value


def test_a_picture_is_copied_after_a_question_with_its_name_size_and_type(box: Toolbox) -> None:
    asked = question(box, **given(["chart.png"], "docs/chart.png"))
    assert (
        asked.message
        == f"let the skill painter put into your project:\ndocs/chart.png (new, {len(PNG):,} bytes, image/png)"
    )
    assert "docs/chart.png" not in box.project()
    answer = box.agreed("deliver", **given(["chart.png"], "docs/chart.png"))
    assert answer.changed and box.project()["docs/chart.png"] == PNG
    assert (box.workspace / "chart.png").read_bytes() == PNG  # it is a copy


@cases("arguments", lists=True)
def test_the_names_that_models_use_are_understood(box: Toolbox, arguments: dict[str, Any]) -> None:
    def filled(text: str) -> str:
        return text.format(root=box.root, workspace=box.workspace)

    words: dict[str, Any] = {
        name: [filled(one) for one in value] if isinstance(value, list) else filled(value)
        for name, value in arguments.items()
    }
    assert not box.agreed("deliver", **words).failed
    assert box.project()["chart.png"] == PNG


def test_several_files_and_a_folder_are_one_question_with_a_line_each(box: Toolbox) -> None:
    (box.root / "results").mkdir()
    (box.root / "results/report.md").write_text("old\n")
    asked = question(box, **given(["report.md", "out"], "results/"))
    assert asked.message.splitlines()[1:] == [
        "results/report.md (9 bytes, text/markdown; replaces a file of 4 bytes)",
        f"results/out/a.pdf (new, {len(PDF):,} bytes, application/pdf)",
        "results/out/deep/b.csv (new, 8 bytes, text/csv)",
    ]
    box.agreed("deliver", **given(["report.md", "out"], "results/"))
    assert len(box.asked) == 1
    assert (
        box.project()["results/out/deep/b.csv"] == b"x,y\n1,2\n" and box.project()["results/report.md"] == b"# Report\n"
    )


def test_a_text_is_shown_as_write_shows_it(box: Toolbox) -> None:
    asked = question(box, **given(["report.md"], "notes.txt"))
    assert "notes.txt (9 bytes, text/markdown" in asked.message or "notes.txt (9 bytes, text/plain" in asked.message
    assert "\n-one\n-two\n-three\n+# Report\n" in asked.message


def test_undo_puts_back_what_was_replaced_and_removes_what_is_new(box: Toolbox) -> None:
    before = box.project()
    box.agreed("deliver", 1, **given(["chart.png"], "notes.txt"))
    box.agreed("deliver", 2, **given(["out"]))
    assert dict(Project(box.root, agents=False).changes.undo(box.work.run)) == {
        "notes.txt": "undone", "out/a.pdf": "undone", "out/deep/b.csv": "undone"
    }  # fmt: skip
    assert box.project() == before


def test_a_large_file_is_copied_in_pieces_and_undone(box: Toolbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "LARGEST", 1000)
    (box.root / "big.bin").write_bytes(b"\x00old" * 600)
    (box.root / "big.bin").chmod(0o600)
    before = box.project()
    assert not box.agreed("deliver", 1, **given(["chart.png"], "big.bin")).failed
    box.agreed("deliver", 2, **given(["chart.png"], "new.bin"))
    assert box.project()["big.bin"] == PNG == box.project()["new.bin"]
    assert (box.root / "big.bin").stat().st_mode & 0o777 == 0o600
    store = Project(box.root, agents=False).changes
    assert [(one.path, one.size, one.is_large, one.source) for one in store.of(box.work.run)] == [
        ("big.bin", len(PNG), True, "run-1/chart.png"), ("new.bin", len(PNG), True, "run-1/chart.png")
    ]  # fmt: skip
    assert not store.is_undone(box.work.run)
    (box.root / "new.bin").write_bytes(b"mine")
    assert dict(store.undo(box.work.run)) == {"big.bin": "undone", "new.bin": "changed since"}
    store.undo(box.work.run, force=True)
    assert box.project() == before and store.is_undone(box.work.run)


@pytest.mark.parametrize("changed", ["source", "target"])
def test_a_file_that_changes_after_the_question_is_asked_about_again(box: Toolbox, changed: str) -> None:
    arguments = given(["chart.png"], "notes.txt")
    asked = question(box, **arguments)
    box.yes(asked)
    (box.workspace / "chart.png" if changed == "source" else box.root / "notes.txt").write_bytes(b"\x89PNG other")
    assert question(box, **arguments).data["subject"] != asked.data["subject"]
    assert box.project()["notes.txt"] != PNG


def test_a_file_that_changes_between_the_yes_and_the_copy_is_refused(
    box: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = type(box.tools).copy.__get__(box.tools)

    def later(run: str, one: delivering.Delivery) -> None:
        (box.workspace / "chart.png").write_bytes(b"other")
        copy(run, one)

    from msgspec.structs import replace

    box.tools = replace(box.tools, copy=later)
    answer = box.agreed("deliver", **given(["chart.png"], "a.png"))
    assert answer.failed and "changed meanwhile" in answer.text and "a.png" not in box.project()


@cases("to, why")
def test_what_write_may_not_change_deliver_may_not_either(box: Toolbox, to: str, why: str) -> None:
    before = box.project()
    answer = box.call("deliver", **given(["chart.png"], to))
    assert answer.failed and box.project() == before, why


@pytest.mark.parametrize("source", ["/etc/passwd", "../run-0/x", "notes.txt", "SKILL.md", "absent.txt"])
def test_only_files_of_the_workspace_are_delivered(box: Toolbox, source: str) -> None:
    assert box.call("deliver", **given([source], "x.txt")).failed


def test_a_link_in_the_workspace_is_not_followed(box: Toolbox) -> None:
    (box.workspace / "link.txt").symlink_to("/etc/passwd")
    (box.workspace / "folder").symlink_to("/etc")
    assert box.call("deliver", 1, **given(["link.txt"], "x.txt")).failed
    assert box.call("deliver", 2, **given(["folder/passwd"], "x.txt")).failed


@pytest.mark.parametrize("to", ["Makefile", "bin/tool", ".github/workflows/x.yml", "CLAUDE.md", "x.sh"])
def test_a_file_that_others_run_or_obey_is_asked_about_alone_with_its_content(box: Toolbox, to: str) -> None:
    asked = question(box, **given(["report.md"], to))
    assert "run or obey" in asked.message and "+# Report" in asked.message and "wider" not in asked.data
    answer = box.call("deliver", **given(["chart.png", "out/deep/b.csv", "report.md"], "bin/"))
    assert answer.failed and "alone" in answer.text


def test_a_program_is_asked_about_alone_and_is_not_executable_afterwards(box: Toolbox) -> None:
    (box.workspace / "run.dat").write_bytes(b"#!/bin/sh\necho x\n")
    (box.workspace / "run.dat").chmod(0o755)
    (box.workspace / "tool").write_bytes(b"\x7fELF\0\0\0")
    assert "run or obey" in question(box, 1, **given(["run.dat"])).message
    assert "(new, 7 bytes, program)" in question(box, 2, **given(["tool"])).message
    box.agreed("deliver", 1, **given(["run.dat"]))
    assert (box.root / "run.dat").stat().st_mode & 0o111 == 0


def test_a_repository_is_not_delivered_in_pieces(box: Toolbox) -> None:
    for name in ("HEAD", "objects/x", "refs/x", "config"):
        (box.workspace / "pkg" / name).parent.mkdir(parents=True, exist_ok=True)
        (box.workspace / "pkg" / name).write_text("ref: refs/heads/main\n")
    answer = box.agreed("deliver", **given(["pkg"]))
    assert answer.failed and not {"pkg/HEAD", "pkg/refs/x"} <= box.project().keys()


def test_a_consent_to_edits_of_a_folder_covers_its_deliveries(box: Toolbox) -> None:
    asked = question(box, **given(["chart.png"], "docs/a.png"))
    box.kernel.consents.allow(box.work.run, str(asked.data["wider"]))
    assert not box.call("deliver", 2, **given(["chart.png"], "docs/b.png")).failed
    question(box, 3, **given(["chart.png"], "b.png"))


def test_the_same_content_is_not_copied_again(box: Toolbox) -> None:
    box.agreed("deliver", **given(["chart.png"]))
    answer = box.call("deliver", 2, **given(["chart.png"]))
    assert not answer.changed and "already" in answer.text


def test_what_does_not_fit_is_refused_before_the_question(box: Toolbox, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(box.root)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1024))
    assert "make room" in box.call("deliver", **given(["chart.png"])).text
    monkeypatch.setattr(delivering, "LARGEST", 100)
    assert "over 0 MiB" in box.call("deliver", **given(["chart.png"])).text


@pytest.mark.parametrize(
    ("allowed", "has"), [((), True), (("Write",), True), (("Read", "Edit"), False), (("Bash",), False)]
)
def test_a_skill_that_may_write_may_deliver(tmp_path: Path, allowed: tuple[str, ...], has: bool) -> None:
    made = toolbox(tmp_path.resolve(), allowed=allowed)
    assert ("deliver" in {spec.name for spec in made.tools.offered(made.work)}) == has


@pytest.mark.parametrize("rule", ["tool:deliver", "tool:write", "tool:*"])
def test_a_denial_of_write_denies_deliver(box: Toolbox, rule: str) -> None:
    policy = Policy(deny=frozenset({rule}))
    assert of_built_in("deliver", box.kernel.catalogue.create_executor("skill:painter"), policy).verdict == "deny"
    held = box.kernel
    tools = GuardedTools(tools=dict, always=box.tools, consents=held.consents, audit=held.audit, policy=policy)
    assert "deliver" not in {spec.name for spec in tools.offered(box.work)}
