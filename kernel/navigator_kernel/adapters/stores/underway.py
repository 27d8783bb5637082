"""Records the message of a turn, and the calls of its models one by one, so that a turn that was cut off can continue
without making a call twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.adapters.files.database import own_lock
from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Busy, KernelError
from navigator_kernel.values.job import is_lasting
from navigator_kernel.values.packet import Packet, message_packet, packet_from
from navigator_kernel.values.redact import Redact, same
from navigator_kernel.values.request import INTERRUPTED, PendingApproval, Session
from navigator_kernel.values.work import PROGRESS, AgentState, progress_of, redacted

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock, SharedStores, Writer

ENDED = "the process ends"  # the message of a turn's cancellation, if what it does is to be kept
LARGEST = 64 * 1024 * 1024  # bytes of one file
PATIENCE = 1.0  # seconds to wait while another process reads a new file
_FORM = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


class Left(Struct, frozen=True, kw_only=True):
    """The order that a killed process left, with its session and the number of its turn, `turn`."""

    session: str
    turn: int
    order: PendingApproval


class _Run(Struct, kw_only=True):
    """`expected` is the size in bytes of the file that is continued, None for a new one; `count` is the number of
    messages kept so far."""

    head: dict[str, Any]
    expected: int | None
    count: int = 0
    keeps_orders: bool = True
    open: ExitStack = field(default_factory=ExitStack)  # the file and its lock
    add: Callable[[bytes], None] | None = None  # None until the file is open


class FileLines(Struct, frozen=True):
    """Lines by name, in one file each below `folder`. Nothing waits for the disk."""

    folder: Path
    writer: Writer

    def names(self) -> Sequence[str]:
        return sorted(file.stem for file in self.folder.glob("*.jsonl"))

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Busy if another process has opened them."""
        return own_lock(self.folder / f"{name}.jsonl")

    def idle(self, name: str) -> bytes:
        """The lines, if no process has them open, else Busy; FileNotFoundError if there are none."""
        file = self.folder / f"{name}.jsonl"
        with own_lock(file, is_reader=True):
            return read_bounded(file, LARGEST)

    @contextmanager
    def open(self, name: str, expected: int | None) -> Iterator[Callable[[bytes], None]]:
        """Yields a function that appends to them, and locks them until the block ends. They are new, or have the size
        `expected`, else Busy."""
        file = self.folder / f"{name}.jsonl"
        with ExitStack() as stack:
            add = None if expected is not None else stack.enter_context(self.writer.appending(file))
            if add or file.is_file():
                stack.enter_context(own_lock(file, PATIENCE))
            if add is None and (not file.is_file() or file.stat().st_size != expected):
                raise Busy("another process has continued this", hint="navigator session list shows what waits")
            yield add or stack.enter_context(self.writer.appending(file))

    def remove(self, name: str) -> None:
        """The caller has opened or locked them."""
        self.writer.remove(self.folder / f"{name}.jsonl", durable=False)


class Underway:
    """The lines of each run, from the message, or from the model's first answer, to the end of the turn. They are
    locked as long as the process lives. A power failure may lose the last of them, or bring back those of a turn that
    has ended, whose calls are then not made again."""

    def __init__(
        self, folder: Path, writer: Writer, clock: Clock, redact: Redact = same, shared: SharedStores | None = None
    ) -> None:
        lines = getattr(shared, "lines", None)
        self._lines = FileLines(folder, writer) if lines is None else lines("underway")
        self._folder, self._clock, self._redact = folder, clock, redact
        self._runs: dict[str, _Run] = {}

    @contextmanager
    def kept(
        self,
        run: str,
        session: Session,
        agreed: Sequence[str],
        expected: int | None = None,
        *,
        message: str = "",
        is_open: bool = False,
    ) -> Iterator[None]:
        """Keeps `message`, if it is not empty, and the orders that models work on, until the turn ends. They stay if
        the process ends in it, or if the turn fails for a reason that nobody expected. `agreed` lists what the person
        agreed to for the orders; `expected` is the size of the file that is continued. With `is_open` the session still
        waits with what a killed process left; otherwise that is forgotten then."""
        from asyncio import CancelledError  # takes 20 ms, and most commands take no turn

        head = {"v": 1, "session": session.id, "turn": session.turn, "ts": self._clock.now(), "agreed": list(agreed)}
        run_file = self._runs[run] = _Run(head={**head, "message": message}, expected=expected)
        if message and expected is None:
            run_file.add = run_file.open.enter_context(self._lines.open(run, None))
            _write(run_file.add, run_file.head)
        try:
            yield
        except BaseException as error:
            if ENDED in error.args or not isinstance(error, KernelError | CancelledError | KeyboardInterrupt):
                self._runs.pop(run, None)
                run_file.open.close()
            raise
        finally:
            if run in self._runs:
                self.leave(run)
                if not is_open:
                    self.forget(session.id)

    def drop_orders(self, run: str) -> None:
        """Keeps no order of the run from now on, only its message."""
        if record := self._runs.get(run):
            record.keeps_orders = False

    def leave(self, run: str) -> None:
        """Stops keeping the run and removes its file."""
        record = self._runs.pop(run, None)
        if record is None:
            return
        if record.add is not None:
            self._lines.remove(run)
        record.open.close()

    def start(self, packet: Packet, count: int) -> None:
        """Records that a model starts to work on an order, or continues it after `count` messages. Busy if another
        process has continued it."""
        run = packet.context.run
        record = self._runs.get(run)
        if record is None or not record.keeps_orders:
            return
        first = () if record.add else (record.head,)
        record.add = record.add or record.open.enter_context(self._lines.open(run, record.expected))
        record.count = count
        _write(record.add, *first, {"packet": packet.to_dict()})

    def note(self, run: str, progress: AgentState) -> None:
        """Records the progress of the order, before and after each call."""
        record = self._runs.get(run)
        if record is None or record.add is None:
            return
        more = redacted(replace(progress, messages=progress.messages[record.count :]), self._redact)
        _write(record.add, {"from": record.count, "kept": more.kept()})
        record.count = len(progress.messages)

    def intend(self, run: str, before: str, after: str) -> None:
        """Records that the current call changes a file from the digest `before`, "" for none, to `after`."""
        record = self._runs.get(run)
        if record is not None and record.add is not None:
            _write(record.add, {"intent": [before, after]})

    def left(self, damaged: list[Path] | None = None) -> list[Left]:
        """The orders that ended processes left, oldest first. Files that cannot be read are added to `damaged`."""
        orders = []
        for run in self._lines.names():
            try:
                orders.append(_read(run, self._lines.idle(run)))
            except (Busy, FileNotFoundError):
                continue
            except (KernelError, OSError, ValueError, KeyError, TypeError, AttributeError):
                if damaged is not None:
                    damaged.append(self._folder / f"{run}.jsonl")
        return orders

    def forget(self, session: str) -> None:
        """Removes what killed processes left in a session."""
        for order in self.left():
            run, _ = run_of(order.order.subject)
            if order.session == session:
                with suppress(KernelError), self._lines.lock(run):
                    self._lines.remove(run)


def _write(add: Callable[[bytes], None], *lines: dict[str, Any]) -> None:
    text = "".join(f"{_FORM.encode(line)}\n" for line in lines)
    add(text.encode("utf-8", "backslashreplace"))


def run_of(subject: str) -> tuple[str, int]:
    """The run of an interrupted order and the size of its file; ValueError for another subject."""
    kind, run, size = subject.rsplit(":", 2)
    if f"{kind}:" != INTERRUPTED:
        raise ValueError(f"{subject!r} is not the subject of an interrupted order")
    return run, int(size)


def _read(run: str, data: bytes) -> Left:
    """Leaves out an incomplete last line: the process was killed while it wrote the line."""
    lines = [json.loads(line) for line in data.split(b"\n")[:-1]]
    if not lines:  # the file was just created, or its process was killed then
        raise ValueError("it is empty")
    head, packet, progress, has_acted = lines[0], None, None, False
    for line in lines:
        if "session" in line:
            head = line
        elif "packet" in line:
            packet = packet_from(line["packet"])
            kept = packet.params.optional.get(PROGRESS)
            progress = progress_of(str(kept)) if kept else None
        elif "kept" in line:
            before = progress.messages[: line["from"]] if progress else ()
            more = progress_of(line["kept"])
            has_acted = has_acted or any(message.role == "tool" for message in more.messages)
            progress = replace(more, messages=(*before, *more.messages))
        elif progress is not None:
            progress = replace(progress, intent=tuple(map(str, line["intent"])))
    if packet is None:
        packet = message_packet(head["message"], run)
    if progress is not None:
        optional = {**packet.params.optional, PROGRESS: progress.kept()}
        packet = replace(packet, params=replace(packet.params, optional=optional))
    order = PendingApproval(
        packets=(packet,),
        subject=f"{INTERRUPTED}{run}:{len(data)}",
        asked_at=head["ts"],
        agreed=tuple(
            subject for subject in map(str, head["agreed"]) if not has_acted or is_lasting(subject)
        ),  # used up
    )
    return Left(session=head["session"], turn=head["turn"], order=order)
