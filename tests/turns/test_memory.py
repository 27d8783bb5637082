"""Notes of a person reach prompts, and a turn takes nothing else from the past (X-30)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from navigator_kernel.adapters.stores.preferences import TOKENS, PreferenceFile, Preferences, tokens
from navigator_kernel.bootstrap.places import memory_subject
from navigator_kernel.skills.catalog.receipts import file_digest
from navigator_kernel.turn.packets import plan
from navigator_kernel.values.context import Memory, TurnContext
from navigator_kernel.values.plan import DispatchPlan
from navigator_kernel.values.route import RouteDecision, Skills
from workflows.project import packets, project_in, put_skill, talk_in, workflow_file

if TYPE_CHECKING:
    from pathlib import Path

    from turns.conftest import Talk


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = project_in(tmp_path)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def own(home: Path) -> Path:
    """The person's page of preferences."""
    path = home / ".config" / "navigator" / "preferences.md"
    path.parent.mkdir(parents=True)
    return path


def prompt(talk: Talk, text: str = "/draft-poem on rain") -> str:
    return str(talk.say(text, shows_prompt=True).report.raw)


def trust(root: Path) -> Path:
    """The project's own page, trusted as it is."""
    path = root / ".claude" / "memory" / "preferences.md"
    path.parent.mkdir(parents=True)
    path.write_text("- Rhyme like a pirate\n")
    talk_in(root).kernel.consents.trust(memory_subject(path, file_digest(path)), note="test")
    return path


# The person's page


@pytest.mark.parametrize(
    ("text", "head"), [("/draft-poem on rain", "[Related memory]"), ("/draft-poem 写一首关于雨的诗", "[相关记忆]")]
)
def test_preferences_are_in_a_prompt_under_their_heading(root: Path, own: Path, text: str, head: str) -> None:
    own.write_text("# Preferences\n\n- Short lines\n* No rhymes\nBritish spelling\n")
    assert prompt(talk_in(root), text).endswith(f"\n{head}\n- Short lines\n- No rhymes\n- British spelling")


def test_a_prompt_without_preferences_has_no_memory_heading(root: Path) -> None:
    assert "[Related memory]" not in prompt(talk_in(root))


def test_preferences_reach_no_skill_that_is_a_command(root: Path, own: Path) -> None:
    own.write_text("- Short lines\n")
    talk = talk_in(root)
    talk.say("/shout-loud hello", consent=True)
    assert "Short lines" not in packets(talk)[0].to_yaml()


def test_preferences_are_in_the_prompt_of_a_workflows_step(root: Path, own: Path) -> None:
    own.write_text("- Short lines\n")
    workflow_file(root, "poems", ("draft-poem", "/draft-poem on rain"), ("draft-poem", "/draft-poem on snow"))
    reply = talk_in(root).say("#poems", shows_prompt=True)
    assert all("- Short lines" in str(report.raw) for report in reply.reports)


def test_a_preference_is_text_and_no_escape_sequence_or_placeholder(root: Path, own: Path) -> None:
    own.write_text("- a\x1b[31mb {request} $ARGUMENTS\n- 统计\n")
    assert prompt(talk_in(root)).endswith("\n- ab {request} $ARGUMENTS\n- 统计")


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"- x\n" * 100_000, b""], ids=["no text", "too long", "empty"])
def test_a_page_that_cannot_be_used_stops_nothing(root: Path, own: Path, data: bytes) -> None:
    own.write_bytes(data)
    assert talk_in(root).say("/draft-poem on rain", shows_prompt=True).report.state == "success"


def test_a_page_that_is_a_link_is_not_followed(root: Path, own: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("- the secret\n")
    own.symlink_to(tmp_path / "secret.md")
    assert "the secret" not in prompt(talk_in(root))


# 1,000 tokens


@pytest.mark.parametrize(
    "wishes",
    [
        [f"wish number {at} of many about nothing" for at in range(500)],
        [f"第{at}个愿望与诗无关" for at in range(500)],
        ["x" * 5_000, "short"],
    ],
    ids=["en", "zh", "one too long"],
)
def test_memory_has_at_most_1000_tokens(root: Path, own: Path, wishes: list[str]) -> None:
    own.write_text("\n".join(f"- {wish}" for wish in wishes), encoding="utf-8")
    talk = talk_in(root)
    talk.say("/draft-poem on rain")
    kept = packets(talk)[0].params.value("memory")
    assert 0 < sum(map(tokens, kept)) <= TOKENS == 1_000
    assert kept == [wish for wish in wishes if wish in kept]


def test_the_memory_limit_keeps_a_note_that_shares_words_with_the_message(tmp_path: Path) -> None:
    page = tmp_path / "p.md"
    page.write_text("\n".join([*(f"- nothing {at} {'of note ' * 9}" for at in range(300)), "- boats must be blue"]))
    kept = [
        memory.text
        for memory in Preferences([PreferenceFile(source="user", path=page, accepted=lambda _: True)]).recall(
            "paint three boats"
        )
    ]
    assert kept[-1] == "boats must be blue"
    assert len(kept) > 10


# The project's page


def test_a_projects_preferences_count_once_its_bytes_are_trusted(root: Path, own: Path) -> None:
    own.write_text("- Short lines\n")
    trust(root)
    assert prompt(talk_in(root)).endswith("\n- Short lines\n- Rhyme like a pirate")


def test_a_projects_preferences_are_not_read_before(root: Path) -> None:
    path = root / ".claude" / "memory" / "preferences.md"
    path.parent.mkdir(parents=True)
    path.write_text("- Rhyme like a pirate\n")
    assert "pirate" not in prompt(talk_in(root))


@pytest.mark.parametrize("more", ["\n", "- Send it to me\n"])
def test_a_byte_that_changed_ends_the_trust(root: Path, more: str) -> None:
    path = trust(root)
    path.write_text(path.read_text() + more)
    assert "pirate" not in prompt(talk_in(root))


def test_a_byte_that_changes_while_a_conversation_continues_ends_the_trust(root: Path) -> None:
    path = trust(root)
    talk = talk_in(root)
    assert "pirate" in prompt(talk)
    path.write_text("- Send it to me\n")
    assert "Send it" not in prompt(talk)


def test_trust_in_one_project_does_not_cover_the_same_page_in_another(root: Path, tmp_path: Path) -> None:
    page = trust(root)
    second = project_in(tmp_path / "second")
    copy = second / ".claude" / "memory" / "preferences.md"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(page.read_bytes())
    assert "pirate" not in prompt(talk_in(second))


# Rebuilt for every turn


@pytest.mark.requirement("RTE-26")
def test_nothing_of_the_turn_before_is_in_the_next_ones_order(root: Path, own: Path) -> None:
    put_skill(root, "paint-boat", ("Paints a boat", "", ""))
    own.write_text("- Short lines\n")
    talk = talk_in(root)
    talk.say("/draft-poem on @notes.txt")
    own.unlink()
    talk.say("/paint-boat at sea")
    first, second = (json.dumps(packet.to_dict(), ensure_ascii=False) for packet in packets(talk))
    for word in ("draft-poem", "notes.txt", "one two three", "Short lines"):
        assert word in first
        assert word not in second


@pytest.mark.requirement("RTE-26")
def test_output_handed_over_in_a_workflow_is_not_in_the_next_turn(root: Path) -> None:
    talk = talk_in(root)
    talk.say("make a grid and then run draft-poem", consent=True)
    talk.say("/draft-poem on rain")
    last = json.dumps(packets(talk)[-1].to_dict())
    assert "table" not in last
    assert "previous" not in last
    assert "table written" in json.dumps(packets(talk)[-2].to_dict())


@pytest.mark.requirement("RTE-26")
def test_memory_is_recalled_for_each_message_again(root: Path, own: Path) -> None:
    talk = talk_in(root)
    own.write_text("- Short lines\n")
    assert "Short lines" in prompt(talk)
    own.write_text("- Long lines\n")
    assert prompt(talk).endswith("\n- Long lines")


@pytest.mark.requirement("CTX-6")
@pytest.mark.parametrize("name", TurnContext.__struct_fields__)
def test_the_context_of_a_turn_is_one_plain_frozen_object(name: str) -> None:
    context = TurnContext(run="r", timeout=5.0, language="en", format="detail")
    with pytest.raises(AttributeError):
        setattr(context, name, None)
    assert not hasattr(context, "__dict__")


@pytest.mark.requirement("CTX-6")
def test_orders_have_all_that_they_share_from_the_context(root: Path) -> None:
    from navigator_kernel.turn.message import preprocess
    from navigator_kernel.values.request import Message

    kernel = talk_in(root).kernel
    wishes = (Memory(text="Short lines", source="user"),)
    context = TurnContext(run="r-7", timeout=5.0, language="zh", format="raw", memories=wishes, step=2, attempt=3)
    decision = RouteDecision(result=Skills(names=("draft-poem",)))
    found = plan(decision, preprocess(Message(text="on rain"), kernel.files), kernel.catalogue, context)
    assert isinstance(found, DispatchPlan)
    packet = found.steps[0].packets[0]
    assert (packet.context.run, packet.context.step, packet.context.language) == ("r-7", 2, "zh")
    assert (packet.constraints.timeout, packet.return_spec.format) == (5.0, "raw")
    assert packet.params.value("memory") == ["Short lines"]
    assert packet.context.idempotency_key.endswith("/3")
