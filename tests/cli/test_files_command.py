"""`navigator files` lists what runs made, and copies it to the project by the person's own hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli.support import Place, below, place_in, type_a

pytestmark = pytest.mark.requirement("X-43")

RUN, OTHER = "20260101-120000000-abcdef", "20260102-120000000-abcdef"
PNG = b"\x89PNG\r\n\x1a\n\0\0"


@pytest.fixture
def here(tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    place.write(
        {f"mybox/workspace/{RUN}/{name}": "x\n" for name in ("out/a.csv", "step-1.json", "out/.envrc.disarmed")}
    )
    place.write({f"mybox/workspace/{OTHER}/b.md": "# B\n"})
    (place.root / f"mybox/workspace/{RUN}/chart.png").write_bytes(PNG)
    os.utime(place.root / f"mybox/workspace/{RUN}", (1, 1))
    return place


def test_without_a_run_the_files_of_the_newest_runs_are_listed_newest_first(here: Place) -> None:
    listed = here.json("files")["files"]
    assert [(one["run"], one["path"]) for one in listed] == [
        (OTHER, "b.md"), (RUN, "chart.png"), (RUN, "out/a.csv"), (RUN, "out/.envrc.disarmed")
    ]  # fmt: skip


def test_each_file_has_its_size_type_time_and_state(here: Place) -> None:
    listed = {one["path"]: one for one in here.json("files", RUN)["files"]}
    chart = listed["chart.png"]
    assert (chart["size"], chart["type"], chart["delivered"], chart["there"]) == (len(PNG), "image/png", "", True)
    assert chart["when"].endswith("+00:00") and listed["out/.envrc.disarmed"]["disarmed"]
    assert "renamed: programs would obey it unasked" in here.said("files", RUN)


@pytest.mark.parametrize(
    ("to", "path"),
    [("docs/", "docs/chart.png"), ("pic.png", "pic.png"), (".", "chart.png"), ("a/b/c.png", "a/b/c.png")],
)
def test_a_file_is_copied_to_a_file_or_a_folder(here: Place, to: str, path: str) -> None:
    assert here.json("files", RUN, "chart.png", "--to", to)["files"][0]["delivered"] == path
    assert here.files()[path] == PNG
    assert here.json("files", RUN)["files"][0]["delivered"] == path


def test_an_existing_file_is_replaced_only_by_force_and_undo_puts_it_back(here: Place) -> None:
    here.write({"mine.csv": "mine\n"})
    done = here.run("files", RUN, "out/a.csv", "--to", "mine.csv")
    assert (done.code, here.files()["mine.csv"]) == (2, b"mine\n") and "--force" in done.err
    here.said("files", RUN, "out/a.csv", "--to", "mine.csv", "--force")
    assert here.files()["mine.csv"] == b"x\n"
    here.said("undo", RUN)
    assert here.files()["mine.csv"] == b"mine\n"


@pytest.mark.parametrize("to", ["../out.png", "/tmp/out.png", ".git/x", "mybox/state/x", ".claude/x", "navigator.toml"])
def test_nothing_is_copied_out_of_the_project_or_to_a_closed_place(here: Place, to: str) -> None:
    before = here.files()
    assert here.run("files", RUN, "chart.png", "--to", to).code != 0
    assert here.files() == before


@pytest.mark.parametrize(
    "words", [("../x",), ("nope",), (RUN, "chart.png"), (RUN, "../b.md", "--to", "x"), (RUN, "absent", "--to", "x")]
)
def test_what_is_not_there_or_not_whole_is_an_error_with_a_hint(here: Place, words: tuple[str, ...]) -> None:
    done = here.run("files", *words)
    assert done.code in {2, 3, 4} and "hint: " in done.err


def test_a_file_that_was_delivered_and_removed_is_still_listed(here: Place) -> None:
    here.said("files", RUN, "chart.png", "--to", "docs/")
    (here.root / f"mybox/workspace/{RUN}/chart.png").unlink()
    (gone,) = [one for one in here.json("files", RUN)["files"] if not one["there"]]
    assert (gone["path"], gone["delivered"]) == ("chart.png", "docs/chart.png")


def test_a_file_that_a_skill_made_and_somebody_removed_is_still_listed(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    place.write(
        below(
            ".claude/skills/maker",
            type_a("maker", "import os\nopen('made.txt', 'w').write('x')\nos.mkdir('.git')\nprint(1)"),
        )
    )
    told = place.json("ask", "/maker", "--yes")
    (made, disarmed) = sorted((place.root / "mybox/workspace" / told["run"]).iterdir(), reverse=True)
    assert (made.name, disarmed.name) == ("made.txt", ".git.disarmed")
    made.unlink()
    assert [(one["path"], one["there"]) for one in place.json("files", told["run"])["files"]] == [("made.txt", False)]
