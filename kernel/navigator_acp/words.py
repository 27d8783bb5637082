"""The sentences that only an editor shows, each in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from navigator_kernel.text import Language

SENTENCES: Mapping[str, Mapping[Language, str]] = {
    "skill": {"en": "skill {skill}", "zh": "技能 {skill}"},
    "allow": {"en": "Yes, this once", "zh": "同意这一次"},
    "session": {"en": "Yes, in this session", "zh": "同意，本次会话中有效"},
    "reject": {"en": "No", "zh": "不同意"},
}


def say(key: str, language: Language, **values: str) -> str:
    return SENTENCES[key][language].format(**values)
