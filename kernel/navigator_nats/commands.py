"""`navigator worker` carries out tasks of other hosts; `navigator cluster` shows and fixes what the broker keeps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from navigator_kernel.commands import dispatch_ports, document, json_option, note, say_lines
from navigator_kernel.errors import NotLoadable, UsageProblem

URL = click.option("--url", default="", metavar="URL", help="The broker, instead of NAVIGATOR_NATS_URL.")


def worker_for(root: Path) -> click.Command:
    """The command `worker` for the project at `root`."""

    @click.command("worker", short_help="Carry out tasks that other hosts send over NATS")
    @click.option(
        "--pool", "pools", multiple=True, metavar="POOL", help="skills, worker or mcp.<server>; may be repeated."
    )
    @click.option("--slots", default=1, type=click.IntRange(1, 64), help="Tasks at once in each pool.")
    @click.option("--agree", "agrees", is_flag=True, help="Say yes to what tasks ask and this host's rules allow.")
    @click.option("--name", default="", help="The worker's name; by default the host's and the process's.")
    @URL
    @json_option
    def worker(*, pools: Sequence[str], slots: int, agrees: bool, name: str, url: str, as_json: bool) -> None:
        """Take tasks of the pools from the broker and carry them out in this machine's sandbox, until it is stopped.

        The first Ctrl-C or SIGTERM ends it after its tasks, the second one at once. It never opens the owner's
        database, and runs a skill only if its bytes are those that the owner named; it fetches a skill that it does
        not have from the broker.
        """
        _needed()
        _work(root, pools, slots, name, url, agrees=agrees, as_json=as_json)

    return worker


def _work(root: Path, pools: Sequence[str], slots: int, name: str, url: str, *, agrees: bool, as_json: bool) -> None:
    import asyncio
    import signal
    import socket

    from navigator_nats.broker import check_pool, settings_of
    from navigator_nats.worker import Worker

    for variable in ("NAVIGATOR_DATABASE_URL", "NAVIGATOR_PROJECT_ID"):
        os.environ.pop(variable, None)
    settings = settings_of(os.environ, url)
    working = Worker(
        ports=dispatch_ports(root),
        settings=settings,
        name=name or f"{socket.gethostname()}-{os.getpid()}",
        pools=tuple(map(check_pool, pools or ("skills",))),
        slots=slots,
        agrees=agrees,
        tell=note,
    )

    async def run() -> None:
        loop, stopping = asyncio.get_running_loop(), set[asyncio.Task[None]]()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, lambda: stopping.add(asyncio.ensure_future(working.stop())))
        await working.run()

    asyncio.run(run())
    if as_json:
        document({"name": working.name, "done": working.done})


def cluster() -> click.Command:
    """The group `cluster`."""

    @click.group("cluster", short_help="Show and fix what the broker keeps")
    def group() -> None:
        """Show hosts, queues and tasks that were given up, and write a broker's configuration."""

    @group.command("status", short_help="Show workers, queues and tasks that were given up")
    @URL
    @json_option
    def status(*, url: str, as_json: bool) -> None:
        """Show workers, queues and tasks that were given up."""
        _needed()
        body = _asked(url, lambda held: held.status())
        if as_json:
            document(body)
            return
        say_lines(_sentences(body)[0])

    @group.command("doctor", short_help="List tasks that were given up; send them again, or drop them")
    @click.option("--retry", default="", metavar="KEY", help="Send this task again.")
    @click.option("--drop", default="", metavar="KEY", help="Delete this task.")
    @URL
    @json_option
    def doctor(*, retry: str, drop: str, url: str, as_json: bool) -> None:
        """List what is wrong: missing streams, pools without a worker, tasks that were given up."""
        _needed()
        if retry and drop:
            raise UsageProblem("--retry and --drop do not go together")
        if retry or drop:
            _asked(url, lambda held: held.retry(retry) if retry else held.drop(drop))
        body = _asked(url, lambda held: held.status())
        problems = _sentences(body)[1]
        if as_json:
            document({"problems": problems, "dead": body["dead"], "exit_code": 1 if problems else 0})
        else:
            say_lines(problems or ["nothing is wrong"])
        if problems:
            click.get_current_context().exit(1)

    @group.command("drain", short_help="Let a worker, or all of a host, end after their tasks")
    @click.argument("host")
    @URL
    @json_option
    def drain(*, host: str, url: str, as_json: bool) -> None:
        """Tell the worker HOST, or all workers of that host, to take no more tasks and to end after those they have."""
        _needed()
        told = _asked(url, lambda held: held.drain(host))
        if as_json:
            document({"workers": told, "exit_code": 0})
        else:
            say_lines(f"worker {name} ends after its tasks" for name in told)

    @group.command("init", short_help="Write a broker's configuration, with a key for each host")
    @click.argument("folder", type=click.Path(path_type=Path))
    @click.option("--owner", "owners", multiple=True, metavar="NAME", help="A host that sends tasks; may be repeated.")
    @click.option(
        "--worker", "workers", multiple=True, metavar="NAME=POOL,…", help="A worker and its pools; may be repeated."
    )
    @click.option("--port", default=4222, type=click.IntRange(1, 65535), help="The broker's port.")
    @click.option("--store", type=click.Path(path_type=Path), help="Where the broker keeps streams, if not in FOLDER.")
    @json_option
    def init(
        *, folder: Path, owners: Sequence[str], workers: Sequence[str], port: int, store: Path | None, as_json: bool
    ) -> None:
        """Write the configuration of a nats-server into a new folder, and a key file for each host.

        A worker may take tasks of its pools, renew them and report; it cannot send tasks, make streams, or read what
        others report. With names such as TENANT/NAME, tenants share the broker and see nothing of each other.
        """
        _needed()
        written = _write_configuration(folder, owners or ("owner",), workers or ("worker=skills",), port, store)
        if as_json:
            document({"files": written})
        else:
            say_lines(written)

    return group


def _needed() -> None:
    try:
        import nats
        import nkeys
    except ImportError as error:
        hint = "pip install 'navigator-kernel[nats]'"
        raise NotLoadable("NATS needs the extra 'nats', which is not installed", hint=hint) from error
    _ = nats, nkeys


def _write_configuration(
    folder: Path, owners: Sequence[str], workers: Sequence[str], port: int, store: Path | None
) -> list[str]:
    from navigator_nats.rights import write_configuration

    return write_configuration(folder, owners, workers, port, store)


def _sentences(body: Any) -> tuple[list[str], list[str]]:
    """What a status shows, and what is wrong in it."""
    from navigator_nats.inspection import lines_of, problems_of

    return lines_of(body), problems_of(body)


def _asked(url: str, ask: Any) -> Any:
    import asyncio

    from navigator_nats.broker import settings_of
    from navigator_nats.inspection import Cluster

    async def asked() -> Any:
        async with Cluster.opened(settings_of(os.environ, url)) as held:
            return await ask(held)

    return asyncio.run(asked())
