"""Finds, reads and writes the workflows in `mybox/workflows/` (WFL-9)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, KernelError
from navigator_kernel.values.workflow import FOLDER, WorkflowPlan
from navigator_kernel.workflows.markdown import NAME, SIZE_LIMIT, dumps, loads

if TYPE_CHECKING:
    from navigator_kernel.ports import Kernel
    from navigator_kernel.text import Language


def stored_names(kernel: Kernel) -> list[str]:
    """The names that `#name` can call."""
    folder = kernel.root / FOLDER
    found = sorted(path.stem for path in folder.glob("*.md")) if folder.is_dir() else []
    return [name for name in found if NAME.fullmatch(name) and name != "README"]


def load_stored(name: str, kernel: Kernel) -> WorkflowPlan:
    """Loads the workflow; NotLoadable with all problems and lines, Damaged if the file is not text."""
    path = kernel.root / FOLDER / f"{name}.md"
    try:
        text = read_bounded(path, 4 * SIZE_LIMIT).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Damaged(f"workflow {name!r} cannot be read: {error}", hint=f"fix or remove {FOLDER}/{name}.md") from error
    return loads(text, name, kernel.settings.steps)


def store(plan: WorkflowPlan, kernel: Kernel, language: Language) -> WorkflowPlan:
    """The plan under the name that its file has; the file is written unless the same steps are there already."""
    plan = with_free_name(plan, kernel)
    path = kernel.root / plan.file
    if not path.exists():
        kernel.writer.make_folder(path.parent)
        data = dumps(plan, language).encode("utf-8", "replace")
        kernel.audit.record("wrote", path=plan.file, sha256=hashlib.sha256(data).hexdigest())
        kernel.writer.write(path, data)
    return plan


def with_free_name(plan: WorkflowPlan, kernel: Kernel) -> WorkflowPlan:
    """The plan under a free name, or under a name that has the same steps already."""
    base, at = plan.name, 1
    while not _is_free(plan, kernel):
        at += 1
        plan = replace(plan, name=f"{base}-{at}")
    return plan


def _is_free(plan: WorkflowPlan, kernel: Kernel) -> bool:
    if not (kernel.root / plan.file).exists():
        return True
    try:
        return load_stored(plan.name, kernel).steps == plan.steps
    except KernelError:
        return False
