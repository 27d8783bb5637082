from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.sample(2)

RUN = "python ${SKILL_ROOT}/run.py"
TELL = "import json, os, sys; print(json.dumps({'argv': sys.argv[1:], 'cwd': os.getcwd()}))"


@pytest.mark.requirement("AGT-2", "AGT-8")
def test_a_skill_with_a_command_is_run_with_its_template_filled(place: Any) -> None:
    place.skill("tell", f"{RUN} --mode {{mode}} {{request}}", TELL)
    report = place.ask("skills", "skill:tell", request="a b", mode="fast")
    assert (report.state, report.data["argv"]) == ("success", ["--mode", "fast", "a b"])


@pytest.mark.parametrize(
    "value", ["a b", "$(id); `x` | y", 'it\'s "q"', "*", "多 字\n行", "{request} $1 ${SKILL_ROOT}"]
)
def test_a_value_is_one_whole_argument_whatever_is_in_it(place: Any, value: str) -> None:
    place.skill("tell", f"{RUN} {{request}}", TELL)
    assert place.ask("skills", "skill:tell", request=value).data["argv"] == [value]


@pytest.mark.parametrize("value", ["-rf", "--delete=all", "-"])
def test_a_value_that_would_be_an_option_is_refused_and_nothing_runs(place: Any, value: str) -> None:
    folder = place.skill("tell", f"{RUN} {{request}}", "open('ran', 'w').write('x'); print(1)")
    report = place.ask("skills", "skill:tell", request=value)
    if value == "-":
        assert report.state == "success"
        return
    assert (report.state, report.exit_code, report.data["type"]) == ("error", 3, "Refused")
    assert list(place.root.rglob("ran")) == []
    assert folder.is_dir()


def test_it_works_in_the_workspace_of_the_run_and_names_the_files_it_made(place: Any) -> None:
    place.skill("make", RUN, "open('out.txt', 'w').write('x'); import os; os.mkdir('d'); open('d/e', 'w').write('y')")
    report = place.ask("skills", "skill:make", run="run-7")
    folder = "mybox/workspace/run-7"
    assert (report.state, report.data["files"]) == ("success", [f"{folder}/d/e", f"{folder}/out.txt"])
    assert (place.root / report.data["files"][1]).read_text() == "x"


def test_one_json_object_that_is_printed_is_the_data(place: Any) -> None:
    place.skill("sum", RUN, 'print(\'{"n": 3, "summary": "three"}\')')
    report = place.ask("skills", "skill:sum")
    assert (report.data, report.summary) == ({"n": 3}, "three")


@pytest.mark.parametrize(
    ("code", "output"), [("print('plain 文字')", "plain 文字"), ("print('[1, 2]')", [1, 2]), ("print(5)", 5)]
)
def test_anything_else_that_is_printed_is_the_output(place: Any, code: str, output: object) -> None:
    place.skill("say", RUN, code)
    report = place.ask("skills", "skill:say")
    assert (report.state, report.data) == ("success", {"output": output})


def test_a_nonzero_exit_code_is_an_error_with_stderr_as_message_and_stdout_as_output(place: Any) -> None:
    place.skill("fail", RUN, "import sys; print('half'); sys.exit('disk full')")
    report = place.ask("skills", "skill:fail")
    assert (report.state, report.data["status"], report.data["msg"]) == ("error", 1, "disk full")
    assert (report.raw, report.data["output"]) == ("half", "half")


def test_a_skill_that_failed_after_it_wrote_says_what_it_changed(place: Any) -> None:
    place.skill("fail", RUN, "open('half.txt', 'w').write('x'); raise SystemExit(2)")
    assert place.ask("skills", "skill:fail", run="run-3").effects == ("mybox/workspace/run-3/half.txt",)


def test_silence_is_an_error(place: Any) -> None:
    place.skill("quiet", RUN, "pass")
    report = place.ask("skills", "skill:quiet")
    assert (report.state, report.data["type"]) == ("error", "Silence")


def test_files_of_an_earlier_step_of_the_run_are_not_taken_for_its_own(place: Any) -> None:
    place.skill("make", RUN, "open('out.txt', 'w').write('x')")
    place.skill("quiet", RUN, "pass")
    place.ask("skills", "skill:make", run="run-8")
    assert place.ask("skills", "skill:quiet", run="run-8").state == "error"


@pytest.mark.wide
def test_a_time_out_keeps_what_was_printed(place: Any) -> None:
    place.skill("slow", RUN, "import time; print('so far', flush=True); time.sleep(60)")
    report = place.ask("skills", "skill:slow", timeout=5)
    assert (report.state, report.raw, report.data["output"], report.data["limit"]) == ("timeout", "so far", "so far", 5)


def test_output_that_was_cut_is_marked(place: Any) -> None:
    place.skill("flood", RUN, "print('x' * 1_100_000)")
    assert place.ask("skills", "skill:flood").data["truncated"] is True


@pytest.mark.requirement("AGT-8")
def test_a_success_is_recorded_as_a_use_and_a_failure_is_not(place: Any) -> None:
    place.skill("good", RUN, "print(1)")
    place.skill("bad", RUN, "raise SystemExit(1)")
    place.ask("skills", "skill:good")
    place.ask("skills", "skill:bad")
    assert place.used == ["good"]


@pytest.mark.requirement("AGT-3")
def test_a_skill_without_a_command_hands_back_its_prompt(place: Any) -> None:
    place.skill(
        "write", "", body="# write\n\n## System Prompt\nBe brief.\n\n## User Prompt Template\nDo {request} now."
    )
    report = place.ask("skills", "skill:write", request="{this} $1")
    assert (report.state, report.data["kind"]) == ("success", "B")
    assert report.data["prompt"] == report.raw == "Be brief.\n\nDo {this} $1 now."


def test_a_skill_that_is_not_there_is_not_found_with_suggestions(place: Any) -> None:
    place.skill("word-count", RUN, TELL)
    report = place.ask("skills", "skill:word-cuont")
    assert (report.state, report.exit_code, report.data["suggestions"]) == ("error", 4, ["word-count"])
    assert report.recoverable


# skills that are not shipped


def touching(place: Any) -> Any:
    return place.skill("theirs", RUN, "open('ran', 'w').write('x'); print('done')", shipped=False)


def subject(place: Any) -> str:
    return f"type_a:theirs@{place.digest('theirs')}"


def test_a_skill_that_is_not_shipped_waits_for_consent_and_nothing_runs(place: Any) -> None:
    touching(place)
    report = place.ask("skills", "skill:theirs")
    assert (report.state, report.exit_code, report.data["subject"]) == ("pending", 9, subject(place))
    assert list(place.root.rglob("ran")) == []


def test_a_shipped_skill_of_which_a_byte_changed_waits_for_consent(place: Any) -> None:
    folder = place.skill("ours", RUN, "print('done')")
    (folder / "run.py").write_text("print('Done')")
    assert place.ask("skills", "skill:ours").state == "pending"


def test_a_skill_that_is_trusted_by_digest_runs(place: Any) -> None:
    touching(place)
    place.consents.trust(subject(place), note="test")
    report = place.ask("skills", "skill:theirs", run="run-2")
    assert (report.state, report.data["files"]) == ("success", ["mybox/workspace/run-2/ran"])


@pytest.mark.parametrize("change", ["byte", "mode", "file"])
def test_trust_ends_when_anything_in_the_folder_changes(place: Any, change: str) -> None:
    folder = touching(place)
    place.consents.trust(subject(place), note="test")
    match change:
        case "byte":
            (folder / "run.py").write_text((folder / "run.py").read_text().replace("done", "Done"))
        case "mode":
            (folder / "run.py").chmod(0o755)
        case "file":
            (folder / "helper.py").write_text("")
    assert place.ask("skills", "skill:theirs").state == "pending"
    assert list(place.root.rglob("ran")) == []


def test_trust_ends_when_a_byte_changes_while_the_program_runs(place: Any) -> None:
    folder = touching(place)
    place.consents.trust(subject(place), note="test")
    first = place.ask("skills", "skill:theirs", run="run-3", key="one")
    (folder / "run.py").write_text("print('other')")
    second = place.ask("skills", "skill:theirs", run="run-4", key="two")
    assert (first.state, second.state) == ("success", "pending")


def test_consent_for_one_run_is_not_consent_for_the_next(place: Any) -> None:
    touching(place)
    place.consents.allow("run-1", subject(place))
    first = place.ask("skills", "skill:theirs", run="run-1", key="one")
    second = place.ask("skills", "skill:theirs", run="run-2", key="two")
    assert (first.state, second.state) == ("success", "pending")
