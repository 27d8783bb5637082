"""Two hundred skills that no message means: twenty domains of ten, and near neighbours of the shipped skills."""

from __future__ import annotations

from pathlib import Path

DOMAINS: dict[str, tuple[str, str]] = {
    "pdf": ("PDF documents", "extract merge split rotate sign compress watermark redact annotate convert"),
    "email": ("e-mail messages", "draft summarise sort archive forward unsubscribe translate schedule label search"),
    "calendar": ("calendar events", "plan move cancel invite remind block sync export colour recap"),
    "kubernetes": ("Kubernetes clusters", "deploy scale debug drain upgrade backup monitor template secure migrate"),
    "sql": ("SQL databases", "query index migrate explain seed dump tune model normalise replicate"),
    "image": ("pictures and photos", "resize crop caption upscale recolour vectorise watermark tag deblur collage"),
    "video": ("video clips", "trim subtitle transcode stabilise storyboard thumbnail mute splice caption loop"),
    "audio": ("audio recordings", "transcribe denoise split master tag convert loop mix pitch fade"),
    "travel": ("trips and journeys", "book compare pack budget visa map insure rebook review itinerary"),
    "cooking": ("recipes and meals", "plan scale substitute shop bake preserve pair cost plate ferment"),
    "legal": ("contracts and terms", "summarise compare redline draft negotiate archive clause risk translate sign"),
    "finance": (
        "budgets and invoices",
        "forecast reconcile invoice tax audit-trail expense payroll hedge price benchmark",
    ),
    "marketing": ("campaigns and adverts", "brief segment schedule slogan landing survey brand report test launch"),
    "hiring": ("candidates and interviews", "screen schedule outreach offer onboard rank survey debrief source reject"),
    "learning": ("courses and lessons", "outline quiz grade explain translate pace tutor exam flashcard certify"),
    "weather": ("forecasts and climate", "forecast warn map compare chart alert archive season pollen tide"),
    "fitness": ("training and health", "plan log stretch diet sleep race recover pace measure coach"),
    "security": (
        "incidents and threats",
        "triage harden rotate phish scan-network respond forensics model patch train",
    ),
    "translation": (
        "texts in other languages",
        "translate proofread localise glossary subtitle align transliterate dub adapt compare",
    ),
    "blockchain": ("wallets and contracts", "deploy audit-chain swap bridge mint stake index simulate verify monitor"),
}

NEIGHBOURS: dict[str, str] = {
    "code-review-checklist": "Prints a checklist that a team fills in before a release meeting",
    "review-queue": "Shows how many pull requests wait in the queue and who is assigned",
    "code-reviewer-notes": "Keeps notes about people who sat on review boards",
    "code-coverage": "Measures which lines the tests reach and draws a coverage badge",
    "code-format": "Formats source files with the house style",
    "code-search": "Searches a large code base by symbol",
    "review-summary": "Summarises customer reviews of a product",
    "git-blame-report": "Lists who last touched each line of a file",
    "csv-merge": "Joins several CSV files by a key column",
    "csv-clean": "Removes duplicate rows and trims cells of a CSV",
    "word-cloud": "Draws a cloud of words as a picture",
    "character-sheet": "Makes character sheets for role-playing games",
}

RUNNER = """---
name: test-runner
description: Runs a project's tests and reports failures. This skill should be used when somebody wants the tests run
metadata:
  navigator-examples: |
    Run tests
    运行测试
---
# Test runner

Find the test command of the project and run it.
"""


def write_distractors(folder: Path) -> int:
    """Writes the skills, test-runner among them; returns their number."""
    found = dict(NEIGHBOURS)
    for domain, (subject, verbs) in DOMAINS.items():
        for verb in verbs.split():
            what = verb.replace("-", " ")
            found[f"{domain}-{verb}"] = (
                f"Helps to {what} {subject}. This skill should be used when somebody wants to {what} {subject}"
            )
    for name, description in list(found.items())[:199]:
        _write(
            folder,
            name,
            f"---\nname: {name}\ndescription: {description}\n---\n# {name}\n\n{description}. Ask for what is missing, then act.\n",
        )
    _write(folder, "test-runner", RUNNER)
    return 200


def _write(folder: Path, name: str, text: str) -> None:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text)
