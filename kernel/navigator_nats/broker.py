"""What owners and workers share: settings, names of subjects and streams, the connection, and the streams themselves.

    NAV_TASKS     nav.task.<pool>.<key>   a work queue; one message per key, so that the broker refuses a duplicate
    NAV_REPORTS   nav.report.<pool>.<key> one message per key: the first report of a task wins
    NAV_DEAD      the broker's advisories about tasks that it gave up

`key` is the SHA-256 of a packet's idempotency key. `nav.events.<pool>.<key>` (signs of life), `nav.cancel.<key>` and
`nav.hosts` are not stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError, ServiceUnavailableError

from navigator_kernel.errors import FetchFailed, StorageFailed, UsageProblem
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from nats.js import JetStreamContext

    from navigator_kernel.values.packet import Packet

TASKS, REPORTS, DEAD = "NAV_TASKS", "NAV_REPORTS", "NAV_DEAD"
TASK, REPORT, EVENTS, CANCEL, HOSTS = "nav.task", "nav.report", "nav.events", "nav.cancel", "nav.hosts"
MAX_DELIVERIES = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{TASKS}"
TERMINATED = f"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.{TASKS}"
DIGEST = "Nav-Digest"  # header: the digest of the skill that the packet is for
DELIVERIES = 3
WITHDRAWN = "Unacknowledged message was deleted"  # the broker's reason where an owner withdrew a task
EXPIRED = "its time is over"  # the worker's, for a task that nobody waits for any more
NOT_DEAD = {WITHDRAWN, EXPIRED}
SUCCEEDED = {"success", "partial"}  # states of reports whose tasks are not done again
DAY = 24 * 60 * 60.0
STREAM_EXISTS = 10058  # the broker's code
HAS_REPORT, HAS_BEGUN = 10071, 10077  # its codes for a claim of a task that has a report, or that another worker began
FULL = {10023, 10047}  # its codes where its disk, or what it may use of it, is full

GONE = (NoStreamResponseError, NoRespondersError, ServiceUnavailableError)  # nobody keeps such a stream
_POOL = lazy_compile(r"(?:skills|worker|mcp\.[A-Za-z0-9_-]{1,64})")


class Settings(Struct, frozen=True, kw_only=True):
    """Where the broker is and how it is used. `seed` is the file of this host's nkey; `ack_wait` the seconds after
    which an unacknowledged task goes to another worker; `bound` the most tasks that may wait."""

    url: str
    seed: str = ""
    pools: tuple[str, ...] = ("skills",)
    ack_wait: float = 30.0
    bound: int = 10_000

    @property
    def place(self) -> str:
        """The URL for people: without a name or a password of a user."""
        scheme, mark, rest = self.url.rpartition("://")
        return scheme + mark + rest.rpartition("@")[2]

    @property
    def knows_strangers(self) -> bool:
        """Whether the broker can tell hosts from others: by a key or a password, or because it is on this machine."""
        return bool(self.seed) or "@" in self.url or urlsplit(self.url).hostname in {"127.0.0.1", "::1", "localhost"}


def settings_of(environment: Mapping[str, str], url: str = "") -> Settings:
    """The settings in the person's environment; UsageProblem if one is wrong. No file of a project names a broker."""
    url = url or environment.get("NAVIGATOR_NATS_URL", "")
    if not url:
        raise UsageProblem("no broker is named", hint="set NAVIGATOR_NATS_URL, such as nats://127.0.0.1:4222")
    pools = tuple(environment.get("NAVIGATOR_NATS_POOLS", "skills").split())
    for pool in pools:
        check_pool(pool)
    return Settings(
        url=url,
        seed=environment.get("NAVIGATOR_NATS_SEED", ""),
        pools=pools,
        ack_wait=_number(environment, "NAVIGATOR_NATS_ACK_WAIT", 30.0),
        bound=int(_number(environment, "NAVIGATOR_NATS_BOUND", 10_000)),
    )


def _number(environment: Mapping[str, str], name: str, usual: float) -> float:
    try:
        number = float(environment.get(name) or usual)
    except ValueError:
        number = 0.0
    if not 1 <= number < 1e9:
        raise UsageProblem(f"{name} is {environment[name]!r}", hint="a number of at least 1 is needed")
    return number


def check_pool(pool: str) -> str:
    """The pool; UsageProblem if there is no such pool."""
    if not _POOL.fullmatch(pool):
        raise UsageProblem(f"no pool is called {pool!r}", hint="pools are skills, worker and mcp.<server>")
    return pool


def pool_of(packet: Packet) -> str:
    """The pool of workers that can carry out the packet; empty if only this machine can, as for what it installs."""
    if packet.agent == "skills":
        return "skills"
    if packet.agent == "worker" and packet.task_spec.operation in {"run", "shell"}:
        return "worker"
    server = packet.task_spec.target.partition("://")[0].partition(":")[0]
    pool = f"mcp.{server}"
    return pool if packet.agent == "mcp" and _POOL.fullmatch(pool) else ""


def key_of(packet: Packet) -> str:
    return sha256(packet.context.idempotency_key.encode()).hexdigest()


def subject_of(kind: str, packet: Packet) -> str:
    """The subject of the packet's task, report or events: a worker of other pools has no right to it."""
    return f"{kind}.{pool_of(packet)}.{key_of(packet)}"


def consumer_of(pool: str) -> str:
    """The name of the pool's consumer, which has no dot."""
    return pool.replace(".", "_")


async def connect(
    settings: Settings,
    name: str,
    *,
    waits: Callable[[str], None] | None = None,
    tries: int = 3,
    changed: Callable[[], Awaitable[None]] | None = None,
) -> Client:
    """A connection that comes back by itself after a cut; `changed` is called at both. FetchFailed if there is no
    broker within some seconds, or UsageProblem if it refuses this host; with `waits`, it waits for the
    broker, and calls `waits` once with a message that says so."""
    seed, prefix, problems, is_begun = "", "_INBOX", list[str](), False

    async def heard(error: Exception) -> None:
        """Failures are seen where they matter, at a request that has no answer; but for those of the first try."""
        if is_refusal(error) and not is_begun:
            raise error  # later a host waits: the broker may get its key back
        if waits is not None and not problems:
            waits(f"waiting for the broker at {settings.place}: {str(error) or type(error).__name__}")
        problems[:] = [str(error)]

    client = Client()
    if settings.seed:
        seed = _seed(settings.seed)
        prefix = inbox_of(seed)
    try:
        await client.connect(
            settings.url,
            name=name,
            nkeys_seed_str=seed or None,
            inbox_prefix=prefix,
            max_reconnect_attempts=tries if waits is None else -1,
            reconnect_time_wait=0.2,  # type: ignore[arg-type]  # any number of seconds
            connect_timeout=2,
            ping_interval=3,
            error_cb=heard,
            disconnected_cb=changed,
            reconnected_cb=changed,
        )
        is_begun = True
    except (OSError, NatsError, TimeoutError) as error:
        if any(map(is_refusal, (error, *problems))):
            raise UsageProblem(
                f"the broker at {settings.place!r} refuses this host", hint="NAVIGATOR_NATS_SEED names its nkey"
            ) from None
        raise unreachable(settings, error) from None
    finally:
        if not client.is_connected:
            with suppress(OSError, NatsError):
                await client.close()
    return client


def is_refusal(error: object) -> bool:
    """Whether the broker does not accept the key or the password of this host."""
    return "authorization" in str(error).lower()


def _seed(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise UsageProblem(f"the nkey {path!r} cannot be read: {why}") from error


def unreachable(settings: Settings, error: BaseException) -> FetchFailed:
    why = str(error) or type(error).__name__
    return FetchFailed(f"the broker at {settings.place!r} cannot be reached: {why}", hint="navigator cluster status")


def check_room(settings: Settings, error: APIError) -> None:
    """StorageFailed if the broker refused for want of room."""
    if error.err_code in FULL:
        message, hint = f"the disk of the broker at {settings.place!r} is full", "free space there, then try again"
        raise StorageFailed(message, hint=hint, kind="full") from error


def inbox_of(seed: str) -> str:
    """Where answers to this host go, which no other host may read."""
    import nkeys

    try:
        public: bytes = nkeys.from_seed(bytearray(seed.encode())).public_key
    except Exception:  # noqa: BLE001 - the package raises errors of several kinds, and they can contain the seed
        raise UsageProblem("NAVIGATOR_NATS_SEED names a file that is not an nkey", hint="use the .nk file") from None
    return f"_INBOX_{public.decode()}"


async def make_streams(
    jetstream: JetStreamContext, settings: Settings, storage: StorageType = StorageType.FILE
) -> None:
    """Makes the streams that do not exist; those that exist stay as they are."""
    one: dict[str, Any] = {"max_msgs_per_subject": 1, "discard": DiscardPolicy.NEW, "discard_new_per_subject": True}
    one |= {"storage": storage, "allow_direct": True}
    tasks = StreamConfig(
        name=TASKS,
        subjects=[f"{TASK}.>"],
        retention=RetentionPolicy.WORK_QUEUE,
        max_msgs=settings.bound,
        **one,
    )
    reports = StreamConfig(name=REPORTS, subjects=[f"{REPORT}.>"], max_age=DAY, **one)
    advisories = [f"{MAX_DELIVERIES}.*", f"{TERMINATED}.*"]
    dead = StreamConfig(name=DEAD, subjects=advisories, max_age=7 * DAY, max_msgs=10_000, storage=storage)
    for config in (tasks, reports, dead):
        try:
            await jetstream.add_stream(config)
        except APIError as error:
            check_room(settings, error)
            if error.err_code != STREAM_EXISTS:
                raise


async def make_consumer(jetstream: JetStreamContext, pool: str, settings: Settings) -> None:
    """Makes the consumer of a pool, or leaves the one that exists as it is."""
    config = ConsumerConfig(
        durable_name=consumer_of(pool),
        filter_subject=f"{TASK}.{pool}.*",
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=settings.ack_wait,
        max_deliver=DELIVERIES,
        max_ack_pending=settings.bound,
    )
    try:
        await jetstream.consumer_info(TASKS, consumer_of(pool))
    except NotFoundError:
        await jetstream.add_consumer(TASKS, config)


async def last(jetstream: JetStreamContext, stream: str, subject: str) -> Any:
    """The message of the subject, or None; NoRespondersError if there is no such stream."""
    try:
        return await jetstream.get_msg(stream, subject=subject, direct=True)
    except NotFoundError:
        return None
