"""The port of the person's consents; `ports` has the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from navigator_kernel.values.standing import Need


class Consents(Protocol):
    def allow(self, run: str, subject: str, *, once: bool = False) -> None:
        """Records consent to `subject` for this run, or with `once` for one execution in it. `*` has no meaning, as it
        may come from a file."""

    def left(self, run: str, subjects: Sequence[str]) -> tuple[str, ...]:
        """Those of `subjects` that were agreed to for this run and are not used up."""

    def allow_orders(self, run: str) -> None:
        """Records `--yes`: consent to everything that the run asks for, except what needs consent by name."""

    def require(
        self,
        run: str,
        subject: str,
        detail: str,
        *,
        by_name: bool = False,
        for_order: bool = False,
        lasting: str = "",
        unless: Sequence[str] = (),
        also: Sequence[Need] = (),
        **facts: Any,
    ) -> None:
        """Called just before an execution, which uses up a consent for once; `for_order` says that `subject` names a
        kind of access, which no execution uses up. With `by_name`, `allow_orders` does not count.

        ConsentNeeded, with `facts`, unless the person agreed for this run, or permanently, to `subject` and to all of
        `also`. A consent for more than one execution to `lasting` or to a subject in `unless` also covers `subject`.
        One error names all that is missing: the first as its `subject`, which is `lasting` if there is one, the others
        as `also`.
        """

    def trusted(self, subject: str) -> bool: ...

    def subjects(self) -> tuple[str, ...]:
        """All trusted subjects, sorted."""

    def trust(self, *subjects: str, note: str) -> None:
        """Trusts subjects permanently; `note` says why."""

    def distrust(self, *subjects: str) -> None: ...
