from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest

from dispatch.orders import order

COUNT = "open(__file__ + '.log', 'a').write('x'); print('ran')"


def shipped(place: Any, name: str, code: str) -> Any:
    """Adds a script and records its digest, by which the worker knows a shipped script."""
    file = place.script(name, code)
    place.shipped[f"bin/{name}.py"] = f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    return file


def script(place: Any, name: str, *args: str, **given: Any) -> Any:
    return place.ask("worker", f"bin/{name}.py", script=name, args=list(args), **given)


@pytest.mark.requirement("AGT-1")
def test_a_script_that_commands_md_lists_is_run_with_its_arguments(place: Any) -> None:
    shipped(place, "tell", "import sys; print(sys.argv[1:])")
    report = script(place, "tell", "a b", "$(id)")
    assert (report.state, report.data["stdout"]) == ("success", "['a b', '$(id)']")


def test_a_script_that_commands_md_does_not_list_is_not_found(place: Any) -> None:
    shipped(place, "known", "print(1)")
    file = place.script("hidden", COUNT, listed=False)
    report = script(place, "hidden")
    assert (report.state, report.exit_code) == ("error", 4)
    assert "known" in report.data["hint"]
    assert not file.with_name("hidden.py.log").exists()


@pytest.mark.parametrize("name", ["../../etc/x", "/bin/sh", "", "known.py", "KNOWN"])
def test_an_unlisted_script_name_is_not_found(place: Any, name: str) -> None:
    shipped(place, "known", "print(1)")
    assert script(place, name).exit_code == 4


def test_a_script_that_is_not_shipped_waits_for_consent(place: Any) -> None:
    file = place.script("theirs", COUNT)
    report = script(place, "theirs")
    assert (report.state, report.exit_code, file.with_name("theirs.py.log").exists()) == ("pending", 9, False)


def test_a_shipped_script_of_which_a_byte_changed_waits_for_consent(place: Any) -> None:
    shipped(place, "ours", "print(1)").write_text("print(2)")
    assert script(place, "ours").state == "pending"


@pytest.mark.requirement("AGT-7")
def test_both_streams_are_kept(place: Any) -> None:
    shipped(place, "both", "import sys; print('out'); print('err', file=sys.stderr)")
    data = script(place, "both").data
    assert (data["stdout"], data["stderr"], data["status"]) == ("out", "err", 0)


@pytest.mark.requirement("AGT-7")
def test_silence_is_an_error(place: Any) -> None:
    shipped(place, "quiet", "pass")
    report = script(place, "quiet")
    assert (report.state, report.data["type"]) == ("error", "Silence")


def test_an_exit_code_is_an_error_that_keeps_both_streams(place: Any) -> None:
    shipped(place, "fail", "import sys; print('half'); sys.exit('no disk')")
    report = script(place, "fail")
    assert (report.state, report.data["status"], report.data["stdout"], report.data["msg"]) == (
        "error",
        1,
        "half",
        "no disk",
    )


@pytest.mark.wide
def test_a_time_out_keeps_what_was_printed(place: Any) -> None:
    shipped(place, "slow", "import time; print('so far', flush=True); time.sleep(60)")
    report = script(place, "slow", timeout=5)
    assert (report.state, report.data["stdout"], report.raw) == ("timeout", "so far", "so far")


def test_the_same_key_acts_once(place: Any) -> None:
    file = shipped(place, "count", COUNT)
    first, second = script(place, "count", key="k"), script(place, "count", key="k")
    assert (first.state, second.data, file.with_name("count.py.log").read_text()) == ("success", first.data, "x")


def test_the_worker_itself_keeps_a_key_that_is_delivered_twice(place: Any) -> None:
    file = shipped(place, "count", COUNT)
    worker, prompt = place.agents()["worker"], order("worker", "bin/count.py", script="count", key="k").to_yaml()

    async def twice() -> None:
        await worker.handle(prompt)
        await worker.handle(prompt)

    asyncio.run(twice())
    assert file.with_name("count.py.log").read_text() == "x"


def test_a_key_that_is_delivered_twice_at_once_acts_once(place: Any) -> None:
    file = shipped(place, "count", COUNT)
    worker, prompt = place.agents()["worker"], order("worker", "bin/count.py", script="count", key="k").to_yaml()

    async def together() -> None:
        await asyncio.gather(worker.handle(prompt), worker.handle(prompt))

    asyncio.run(together())
    assert file.with_name("count.py.log").read_text() == "x"


# skill commands


@pytest.mark.requirement("AGT-6")
@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["list"], ("list",)),
        (["search", "pdf", "table", "--json"], ("search", "pdf table")),
        (["info", "a/b"], ("info", "a/b")),
    ],
)
def test_skill_manager_goes_to_the_lifecycle_port_and_starts_no_process(
    place: Any, words: list[str], asked: Any
) -> None:
    file = place.script("skill_manager", COUNT)
    report = script(place, "skill_manager", *words)
    assert (report.state, place.lifecycle.asked) == ("success", [asked])
    assert not file.with_name("skill_manager.py.log").exists()


def test_a_skill_command_that_writes_waits_for_consent(place: Any) -> None:
    report = script(place, "skill_manager", "install", "a/b", "--skill", "x")
    assert (report.state, report.exit_code, place.lifecycle.asked) == ("pending", 9, [])


@pytest.mark.requirement("AGT-6")
def test_a_skill_command_that_was_agreed_to_is_done_and_names_its_effect(place: Any) -> None:
    place.consents.allow("run-1", "skill.install a/b x")
    report = script(place, "skill_manager", "install", "a/b", "--skill=x")
    assert place.lifecycle.asked == [("install", "a/b", ["x"])]
    assert (report.state, report.effects) == ("success", ("install a/b x",))


def test_an_operation_of_the_lifecycle_needs_no_script(place: Any) -> None:
    place.lifecycle.answer = {"skills": [{"name": "a"}, {"name": "b"}]}
    report = place.ask("worker", "skills", "skill.list")
    assert (report.summary, place.lifecycle.asked) == ("2 skills", [("list",)])


def test_a_list_has_a_line_for_each_skill_own_skills_first_and_says_how_many_more_there_are(place: Any) -> None:
    own = [{"name": f"s{number}", "description": "Does it. " * 40, "status": "installed"} for number in range(60)]
    shipped = {"name": "first", "description": "Comes with it", "status": "shipped"}
    place.lifecycle.answer = {"skills": [shipped, {**own[0], "enabled": False}, *own[1:]]}
    lines = (place.ask("worker", "skills", "skill.list").raw or "").splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["s0 (disabled)", "s1"]
    assert (len(lines), max(map(len, lines)) <= 120, lines[-1]) == (51, True, "and 11 more: navigator skill list")
    assert not any(line.startswith("first") for line in lines)


@pytest.mark.parametrize("words", [[], ["explode"], ["install"], ["install", "a/b", "--force"]])
def test_an_invalid_skill_command_is_a_usage_error(place: Any, words: list[str]) -> None:
    report = script(place, "skill_manager", *words)
    assert (report.state, report.exit_code, place.lifecycle.asked) == ("error", 2, [])


# a shell line


def test_a_shell_line_waits_for_consent(place: Any) -> None:
    report = place.ask("worker", "shell", "shell", command="touch owned; echo done")
    assert (report.state, report.exit_code, list(place.root.rglob("owned"))) == ("pending", 9, [])


def test_a_shell_line_that_was_agreed_to_starts_in_the_project(place: Any) -> None:
    place.consents.allow_orders("run-1")
    report = place.ask("worker", "shell", "shell", command="pwd")
    assert (report.state, report.data["stdout"]) == ("success", str(place.root))
