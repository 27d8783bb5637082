"""The page of workflows in Chromium: run, approve, try again, end, edit under the kernel's check."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from gateway.served import Person, Served, serving
from gateway.web.conftest import Opener
from workflows.project import FAIL, SKILLS, TEXT, put_skill, workflow_file
from workflows.project import SHOUT as SHOUT_SCRIPT

pytestmark = pytest.mark.ci

SHOUT = ("shout-loud", '/shout-loud text="$ARGUMENTS"')
COUNT = ("count-terms", '/count-terms text="one two"')


@pytest.fixture(autouse=True, scope="module")
def skills(person: Person) -> Path:
    """A project with skills that nobody has approved."""
    root = person.here.root
    for name in ("shout-loud", "count-terms", "nap-long"):
        put_skill(root, name, SKILLS[name])
    return root


def started(page: Page, name: str, words: str = "") -> Locator:
    """Starts a run; returns its entry in the list."""
    page.get_by_role("button", name=f"Run {name}", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Arguments").fill(words)
    dialog.get_by_role("button", name="Start").click()
    entry = page.get_by_role("list", name="Runs").locator("> li").filter(has=page.locator("[aria-expanded=true]"))
    expect(entry).to_contain_text(f"#{name}")
    return entry


def agree(page: Page, about: str) -> None:
    question = page.get_by_role("region", name="This run waits for your approval")
    expect(question).to_contain_text(about)
    question.get_by_role("button", name="Yes").click()


def states(client: Any, name: str) -> list[tuple[int, str]]:
    """Step and state of each attempt of the newest run of `name`."""
    run = next(one for one in client.get("/api/workflows").json()["runs"] if one["name"] == name)
    return [(one["step"], one["state"]) for one in client.get(f"/api/workflow-runs/{run['token']}").json()["tries"]]


@pytest.mark.requirement("SAF-1")
def test_a_run_is_begun_with_arguments_approved_and_followed_to_its_end(
    open_page: Opener, served: Served, skills: Path
) -> None:
    workflow_file(skills, "greet", SHOUT, COUNT)
    page = open_page("/workflows")
    entry = started(page, "greet", "hello there")
    agree(page, "hello there")
    agree(page, "count-terms")
    expect(entry).to_contain_text("2 of 2 steps done")
    expect(entry.get_by_role("button", expanded=True)).to_contain_text("done")
    tries = entry.get_by_role("list", name="Tries of step 1").get_by_role("listitem")
    expect(tries).to_have_count(2)
    expect(tries.last).to_contain_text("shout-loud done")
    expect(entry.get_by_role("button", name="End this run")).to_have_count(0)
    with served.client() as client:
        assert states(client, "greet") == [(1, "pending"), (1, "success"), (2, "pending"), (2, "success")]


def test_a_step_that_failed_is_tried_again(open_page: Opener, served: Served, skills: Path) -> None:
    put_skill(skills, "shaky-skill", ("Fails at first", TEXT, FAIL))
    workflow_file(skills, "shaky", ("shaky-skill", '/shaky-skill text="x"'))
    page = open_page("/workflows")
    entry = started(page, "shaky")
    agree(page, "shaky-skill")
    expect(entry.get_by_role("list", name="Tries of step 1")).to_contain_text("exit code 1")
    put_skill(skills, "shaky-skill", ("Fails at first", TEXT, SHOUT_SCRIPT))
    agree(page, "Step 1 did not succeed")
    agree(page, "shaky-skill")  # the skill has changed, so it needs a new approval
    expect(entry).to_contain_text("1 of 1 steps done")
    with served.client() as client:
        assert [state for _, state in states(client, "shaky")] == ["pending", "error", "pending", "success"]


def test_a_run_is_ended_after_a_question(open_page: Opener, served: Served, skills: Path) -> None:
    workflow_file(skills, "ended", SHOUT)
    page = open_page("/workflows")
    entry = started(page, "ended", "x")
    entry.get_by_role("button", name="End this run").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(entry.get_by_role("button", expanded=True)).to_contain_text("waiting")
    entry.get_by_role("button", name="End this run").click()
    page.get_by_role("dialog").get_by_role("button", name="End this run").click()
    expect(entry.get_by_role("button", expanded=True)).to_contain_text("ended")
    expect(entry.get_by_role("button", name="End this run")).to_have_count(0)


def test_a_step_of_a_killed_process_is_repeated_only_on_request(
    open_page: Opener, served: Served, person: Person, skills: Path
) -> None:
    workflow_file(skills, "napping", ("nap-long", "/nap-long"))
    with serving(person) as killed, killed.client() as client:
        begun = client.post("/api/workflows/napping/runs", json={"session": "nap"}).json()
        with client.stream("GET", f"/api/runs/{begun['run']}/events", params={"events": "all"}) as stream:
            assert "ApprovalRequested" in "".join(stream.iter_lines())
        waits = next(one for one in client.get("/api/approvals").json()["approvals"] if one["session"] == "nap")
        again = client.post(f"/api/approvals/{waits['id']}", json={"answer": "yes"}).json()["run"]
        with client.stream("GET", f"/api/runs/{again}/events", params={"events": "all"}) as stream:
            assert any("SkillActivated" in line for line in stream.iter_lines())
        killed.process.kill()
        killed.process.wait()
    page = open_page(f"/workflows?run={begun['run']}")
    expect(page.get_by_text("A process ended while step 1 was under way")).to_be_visible()
    expect(page.get_by_text("cut off")).to_be_visible()
    page.get_by_role("button", name="Repeat step 1 and go on").click()
    expect(page.get_by_role("list", name="Tries of step 1").get_by_role("listitem")).to_have_count(3)


@pytest.mark.requirement("WFL-3")
def test_an_edit_with_four_steps_is_refused_with_the_kernels_message(
    open_page: Opener, served: Served, skills: Path
) -> None:
    file = workflow_file(skills, "edited", COUNT, COUNT, COUNT)
    before = file.read_text()
    page = open_page("/workflows")
    page.get_by_role("button", name="Edit edited").click()
    dialog = page.get_by_role("dialog")
    area = dialog.get_by_label("Text")
    expect(area).to_have_value(before)
    expect(dialog.get_by_text("The plan is valid")).to_be_visible()
    area.fill(f"{before}\n## Step 4: too far\n\n- skill: count-terms\n- input: /count-terms text=x\n")
    expect(dialog.get_by_role("region", name="Check")).to_contain_text("4 steps; a workflow has 1 to 3")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("workflow 'edited' cannot be used")
    assert file.read_text() == before
    area.fill(before.replace("description: edited", "description: shorter"))
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("list", name="Stored workflows")).to_contain_text("shorter")
    assert "description: shorter" in file.read_text()


def test_a_problem_leads_to_its_line(open_page: Opener, skills: Path) -> None:
    workflow_file(skills, "broken", COUNT)
    page = open_page("/workflows")
    page.get_by_role("button", name="Edit broken").click()
    area = page.get_by_role("dialog").get_by_label("Text")
    expect(area).not_to_be_empty()
    area.fill(area.input_value().replace("- skill: count-terms", "- skills: count-terms"))
    page.get_by_role("button", name="Line 10").click()
    assert area.evaluate("(one) => one.value.slice(one.selectionStart, one.selectionEnd)") == "- skills: count-terms"


def test_a_workflow_begins_with_a_template_and_is_deleted_after_a_question(
    open_page: Opener, served: Served, skills: Path
) -> None:
    page = open_page("/workflows")
    page.get_by_role("button", name="New workflow").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("counted")
    expect(dialog.get_by_label("Text")).to_have_value(re.compile("\nname: counted\n"))
    dialog.get_by_role("button", name="Save").click()
    stored = page.get_by_role("list", name="Stored workflows")
    expect(stored).to_contain_text("#counted")
    page.get_by_role("button", name="New workflow").click()
    dialog.get_by_label("Name").fill("counted")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("A workflow with this name exists")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Delete counted").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("#counted")).to_have_count(0)
    assert not (skills / "mybox" / "workflows" / "counted.md").exists()


def test_an_edit_over_a_text_that_somebody_changed_is_refused(open_page: Opener, skills: Path) -> None:
    file = workflow_file(skills, "contested", COUNT)
    page = open_page("/workflows")
    page.get_by_role("button", name="Edit contested").click()
    dialog = page.get_by_role("dialog")
    area = dialog.get_by_label("Text")
    expect(area).to_have_value(file.read_text())
    theirs = file.read_text().replace("description: contested", "description: theirs")
    file.write_text(theirs)
    area.fill(area.input_value().replace("description: contested", "description: mine"))
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Somebody changed it")
    assert file.read_text() == theirs
    dialog.get_by_role("button", name="Read again").click()
    expect(area).to_have_value(theirs)


def test_hostile_workflows_are_text(open_page: Opener, skills: Path) -> None:
    file = workflow_file(skills, "hostile", ("count-terms", "<img src=x onerror=alert(1)>"))
    file.write_text(file.read_text().replace("description: hostile", 'description: "<script>alert(1)</script>"'))
    (file.parent / "worse.md").write_text("---\nname: <img src=x onerror=alert(2)>\n---\n## <b>no</b> step\n")
    page = open_page("/workflows")
    stored = page.get_by_role("list", name="Stored workflows")
    expect(stored).to_contain_text("<script>alert(1)</script>")
    expect(stored).to_contain_text("<img src=x onerror=alert(2)>")
    page.get_by_role("button", name="Edit worse").click()
    expect(page.get_by_role("region", name="Check")).to_contain_text("<b>no</b>")
    assert page.locator("main img, main script, [role=dialog] img, [role=dialog] b").count() == 0


def test_the_page_is_in_chinese(open_page: Opener, skills: Path) -> None:
    workflow_file(skills, "统计词条", COUNT)
    page = open_page("/workflows", language="zh")
    expect(page.get_by_role("list", name="已保存的工作流")).to_contain_text("#统计词条1 个步骤")
    page.get_by_role("button", name="运行 统计词条").click()
    page.get_by_role("dialog").get_by_role("button", name="开始").click()
    question = page.get_by_role("region", name="这次运行在等待你的同意")
    question.get_by_role("button", name="同意", exact=True).click()
    expect(page.get_by_role("list", name="运行").locator("> li").first).to_contain_text("已完成 1/1 步")


@pytest.mark.parametrize(("role", "may"), [("chat", True), ("read", False)])
def test_a_lesser_token_sees_what_it_may(open_page: Opener, skills: Path, role: str, may: bool) -> None:
    workflow_file(skills, "seen", COUNT)
    page = open_page("/workflows", role=role)
    expect(page.get_by_role("button", name="New workflow")).to_have_count(0)
    if not may:
        expect(page.get_by_role("alert")).to_contain_text("this needs a token with the role chat")
        return
    expect(page.get_by_role("button", name="Run seen")).to_be_visible()
    expect(page.get_by_role("button", name="Delete seen")).to_have_count(0)
    page.get_by_role("button", name="Show seen").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Text")).not_to_be_editable()
    expect(dialog.get_by_role("button", name="Save")).to_have_count(0)
