"""The findings of `skill scan` as SARIF 2.1.0, for code hosts and editors (OASIS standard)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(skills: Sequence[Mapping[str, Any]], version: str) -> dict[str, Any]:
    """One SARIF run for `skills`, in the form of `skill scan`. A path is the skill's path followed by the file's."""
    found = [(one, finding) for one in skills for finding in one["findings"]]
    rules = {finding["code"]: finding["message"] for _, finding in reversed(found)}
    driver = {
        "name": "navigator",
        "version": version,
        "rules": [{"id": code, "shortDescription": {"text": rules[code]}} for code in sorted(rules)],
    }
    results = [_result(one, finding) for one, finding in found]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(skill: Mapping[str, Any], finding: Mapping[str, Any]) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(str(skill["path"]), str(finding["path"]))}}
    if finding["line"]:
        place["region"] = {"startLine": finding["line"]}
    return {
        "ruleId": finding["code"],
        "level": finding["level"],
        "message": {"text": f"{skill['name']}: {finding['message']}"},
        "locations": [{"physicalLocation": place}],
    }


def _uri(skill: str, file: str) -> str:
    return quote("/".join(part for part in (skill, file) if part), safe="/:.~")
