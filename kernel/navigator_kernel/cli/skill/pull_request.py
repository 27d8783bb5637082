"""`navigator outdated --pr`: one JSON file for each update, for a bot that opens pull requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import to_builtins
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.cli.project import App
from navigator_kernel.skills.install.plans import PlannedSkill
from navigator_kernel.skills.install.update import OutdatedResult
from navigator_kernel.text import clean


def write_updates(app: App, result: OutdatedResult, plans: Mapping[str, PlannedSkill], folder: Path) -> int:
    """Writes `NAME.json` for each skill with an update, and returns how many. `evals` are the figures of the update's
    own evals with its new description, null if it has none; `problem` says why the update would be refused."""
    from navigator_kernel.cli.skill.eval import tried
    from navigator_kernel.evals.cases import cases_in
    from navigator_kernel.evals.score import score

    writer = FolderWriter([folder])
    writer.make_folder(folder)
    updates = [update for update in result.skills if update.state in {"changed", "moved"} and update.name in plans]
    for update in updates:
        plan, here, figures = plans[update.name], app.bare.catalogue.find(update.name), None
        with TemporaryDirectory(prefix="navigator-") as scratch:
            evals, index, inner = Path(scratch) / "evals", Path(scratch) / "index", FolderWriter([Path(scratch)])
            inner.make_folder(index)
            for path, data in plan.contents.items():
                above, _, file = path.rpartition("/")
                if above == "evals" and file.endswith(".json"):
                    inner.write(evals / file, data)
            cases, _ = cases_in(update.name, evals)
            if cases and here is not None:
                place = {"path": here.path, "folder": here.folder, "level": here.level, "enabled": here.enabled}
                skill = replace(plan.skill, name=update.name, **place)
                figures = score(tried(app.bare, cases, app.settings, [skill], index)).to_dict()
        source = clean(plan.receipt.source, lines=False)
        more = {"source": source, "ref": plan.receipt.ref, "digest": plan.receipt.digest, "evals": figures}
        body = {"v": 1, **to_builtins(update), **more}
        text = json.dumps(body, ensure_ascii=False, indent=1)
        writer.write(folder / f"{update.name}.json", f"{text}\n".encode("utf-8", errors="backslashreplace"))
    return len(updates)
