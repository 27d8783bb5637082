"""The sentence and the hint for a model's failure, in the person's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from navigator_kernel.language.wording import COLON, say, sentences
from navigator_kernel.text import Language

WITH_WORDS = frozenset({"forbidden", "rejected", "refused"})  # kinds that need the provider's own words to be useful
_SAME_HINT = {"redirected": "web_page"}


def failure_text(data: Mapping[str, Any], language: Language = "en") -> tuple[str, str]:
    """The sentence and the hint for the data of a `ModelFailed` or `TimedOut`: its `kind`, `model`, `status`, `said`,
    `retry_after`, `in_stream`, `limit` and `seconds`. Both are empty for a kind that has none."""
    kind = str(data.get("kind", ""))
    words = "in_stream" if data.get("in_stream") else str(data.get("limit", kind))
    if f"model.{words}" not in sentences():
        return "", ""
    cost = data.get("cost", 0)
    facts = {"seconds": f"{data.get('seconds', 0):g}", "cost": f" · ${cost:.4f}" if cost else ""}
    why = say(f"model.{words}", language, tokens=data.get("tokens"), **facts)
    status, words_of_provider, wait = data.get("status"), data.get("said"), _wait(data)
    if status and not data.get("in_stream"):
        why += f" ({status})"
    if words_of_provider and (kind in WITH_WORDS or data.get("in_stream")):
        why += f'{COLON[language]}"{words_of_provider}"'
    if wait:
        why = say("model.asks_to_wait", language, why=why, wait=span(wait))
    names = ("after_wait" if wait else words, _SAME_HINT.get(kind, kind), "again")
    hint = next(f"hint.{name}" for name in names if f"hint.{name}" in sentences())
    model = data.get("model")
    return say("model.failed", language, model=model, why=why) if model else why, say(hint, language)


def span(seconds: float) -> str:
    """Seconds as `90 s`, `5 min` or `1 h 30 min`."""
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    hours, rest = divmod(minutes, 60)
    return " ".join([*([f"{hours} h"] if hours else []), *([f"{rest} min"] if rest else [])])


def _wait(data: Mapping[str, Any]) -> float:
    seconds = data.get("retry_after")
    return float(seconds) if isinstance(seconds, int | float) else 0.0
