"""Finds, reads and writes the workflows in `mybox/workflows/` (WFL-9)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, KernelError, NotFound, UsageProblem
from navigator_kernel.values.workflow import FOLDER, WorkflowPlan
from navigator_kernel.workflows.frontmatter import read_head
from navigator_kernel.workflows.markdown import NAME, SIZE_LIMIT, dumps, loads

if TYPE_CHECKING:
    from navigator_kernel.ports import Kernel


def stored_names(kernel: Kernel) -> list[str]:
    """The names that `#name` can call."""
    folder = kernel.root / FOLDER
    found = sorted(path.stem for path in folder.glob("*.md")) if folder.is_dir() else []
    return [name for name in found if NAME.fullmatch(name) and name != "README"]


def load_stored(name: str, kernel: Kernel) -> WorkflowPlan:
    """Loads the workflow; NotLoadable with all problems and lines, Damaged if the file is not text."""
    return loads(_text(name, kernel), name, kernel.settings.steps)


def stored_text(name: str, kernel: Kernel) -> str:
    """The text of the workflow's file, even if it cannot be used; NotFound if there is none."""
    if name not in stored_names(kernel):
        raise NotFound(f"no workflow is called {name!r}", hint="navigator workflow list shows them")
    return _text(name, kernel)


def check_text(text: str, name: str, kernel: Kernel) -> WorkflowPlan:
    """Parses `text` as the file of `name`; NotLoadable with all problems and lines."""
    if not NAME.fullmatch(name) or name == "README":
        raise UsageProblem(f"{name!r} is not a workflow name", hint="letters, digits, '_' and '-', 1 to 80")
    return loads(text, name, kernel.settings.steps)


def named_in(text: str) -> str:
    """The name in the frontmatter of `text`, or an empty text."""
    return read_head(text.replace("\r\n", "\n").split("\n"), []).name


def store_text(name: str, text: str, kernel: Kernel) -> WorkflowPlan:
    """Writes `text` as the file of `name` if it is a plan that can be used; raises the errors of `check_text`."""
    plan = check_text(text, name, kernel)
    _write(plan, text.encode("utf-8", "replace"), kernel)
    return plan


def remove_stored(name: str, kernel: Kernel) -> None:
    """Removes the workflow's file; the runs that it began stay. NotFound if there is none."""
    if name not in stored_names(kernel):
        raise NotFound(f"no workflow is called {name!r}", hint="navigator workflow list shows them")
    kernel.audit.record("wrote", path=f"{FOLDER}/{name}.md", sha256="")
    kernel.writer.remove(kernel.root / FOLDER / f"{name}.md")


def store(plan: WorkflowPlan, kernel: Kernel) -> WorkflowPlan:
    """Writes the plan's file unless the same steps are there already, and returns the plan under the file's name."""
    plan = with_free_name(plan, kernel)
    if not (kernel.root / plan.file).exists():
        _write(plan, dumps(plan).encode("utf-8", "replace"), kernel)
    return plan


def with_free_name(plan: WorkflowPlan, kernel: Kernel) -> WorkflowPlan:
    """The plan under a free name, or under a name that has the same steps already."""
    base, at = plan.name, 1
    while not _is_free(plan, kernel):
        at += 1
        plan = replace(plan, name=f"{base}-{at}")
    return plan


def _text(name: str, kernel: Kernel) -> str:
    try:
        return read_bounded(kernel.root / FOLDER / f"{name}.md", 4 * SIZE_LIMIT).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Damaged(f"workflow {name!r} cannot be read: {error}", hint=f"fix or remove {FOLDER}/{name}.md") from error


def _write(plan: WorkflowPlan, data: bytes, kernel: Kernel) -> None:
    path = kernel.root / plan.file
    kernel.writer.make_folder(path.parent)
    kernel.audit.record("wrote", path=plan.file, sha256=hashlib.sha256(data).hexdigest())
    kernel.writer.write(path, data)


def _is_free(plan: WorkflowPlan, kernel: Kernel) -> bool:
    if not (kernel.root / plan.file).exists():
        return True
    try:
        return load_stored(plan.name, kernel).steps == plan.steps
    except KernelError:
        return False
