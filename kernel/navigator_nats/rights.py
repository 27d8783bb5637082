"""Writes the configuration of a broker: an nkey for each host, and what it may publish and read, by subject."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from navigator_kernel.errors import UsageProblem
from navigator_kernel.text import lazy_compile
from navigator_nats.broker import CANCEL, EVENTS, HOSTS, REPORT, TASKS, check_pool, consumer_of
from navigator_nats.skills import BUCKET, READ

PAYLOAD = 8 * 1024 * 1024  # bytes: the most that a report's data can be
_NAME = lazy_compile(r"(?:[A-Za-z0-9][A-Za-z0-9_-]{0,62}/)?[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def write_configuration(
    folder: Path, owners: Sequence[str], workers: Sequence[str], port: int, store: Path | None = None
) -> list[str]:
    """Writes `nats.conf` and `<host>.nk` for each host into a new folder, readable by the person only, and returns the
    files. A worker is `name=pool,pool`; a name may be `tenant/host`, and tenants see nothing of each other. `store` is
    where the broker keeps its streams, by default in the folder. UsageProblem for a wrong name, and where the folder
    exists."""
    # An owner sends tasks, makes the streams, and reads all reports
    subscribe = ["nav.>", "$JS.EVENT.ADVISORY.CONSUMER.>"]
    owner = {"publish": ["nav.>", "$JS.API.>", f"$O.{BUCKET}.>"], "subscribe": subscribe}
    users = [(name, owner) for name in owners]
    for each in workers:
        name, _, pools = each.partition("=")
        users.append((name, _worker([check_pool(pool) for pool in (pools or "skills").split(",")])))
    names = [name for name, _ in users]
    for name in names:
        if not _NAME.fullmatch(name) or names.count(name) > 1:
            hint = "use letters, digits and -, each name once; before a '/' the name of a tenant"
            raise UsageProblem(f"{name!r} cannot be the name of a host", hint=hint)
        if ("/" in name) != ("/" in names[0]):
            hint = "name all hosts as tenant/host, or none"
            raise UsageProblem(f"only one of {names[0]!r} and {name!r} has a tenant", hint=hint)
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise UsageProblem(f"{str(folder)!r} exists already", hint="name a new folder") from None
    tenants: dict[str, list[object]] = {}
    for name, rights in users:
        seed, public = new_nkey()
        _write(folder / f"{name}.nk", seed + "\n")
        inbox = {"subscribe": [f"_INBOX_{public}.>", *rights["subscribe"]]}
        permissions = {"publish": rights["publish"], **inbox, "allow_responses": {"max": 1, "expires": "1m"}}
        entry = {"nkey": public, "permissions": permissions}
        tenants.setdefault(name.rpartition("/")[0], []).append(entry)
    accounts = {tenant: {"jetstream": "enabled", "users": entries} for tenant, entries in tenants.items()}
    hosts = f"authorization: {json.dumps({'users': tenants['']}, indent=1)}" if "" in tenants else ""
    lines = [
        f"port: {port}",
        f"max_payload: {PAYLOAD}",
        f"jetstream: {{ store_dir: {json.dumps(str((store or folder / 'store').absolute()))} }}",
        "# With a certificate, add: tls { cert_file: …, key_file: … }, and give hosts a URL that begins with tls://",
        hosts or f"accounts: {json.dumps(accounts, indent=1)}",
    ]
    _write(folder / "nats.conf", "\n".join(lines) + "\n")
    return [str(folder / "nats.conf"), *(str(folder / f"{name}.nk") for name in names)]


def _worker(pools: Sequence[str]) -> dict[str, list[str]]:
    publish = [f"{kind}.{pool}.*" for kind in (REPORT, EVENTS) for pool in pools]
    for consumer in map(consumer_of, pools):
        publish += [f"$JS.API.CONSUMER.MSG.NEXT.{TASKS}.{consumer}", f"$JS.API.CONSUMER.INFO.{TASKS}.{consumer}"]
        publish.append(f"$JS.ACK.{TASKS}.{consumer}.>")
    publish += [READ, f"{READ}.>"] if "skills" in pools else []
    return {"publish": publish, "subscribe": [f"{CANCEL}.*", HOSTS]}


def new_nkey() -> tuple[str, str]:
    """A new key of a user: its seed, which is secret, and its public part."""
    import nkeys

    seed: bytes = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    public: bytes = nkeys.from_seed(bytearray(seed)).public_key
    return seed.decode(), public.decode()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
