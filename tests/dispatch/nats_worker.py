"""A worker in a process of its own, with an agent for tests: `python -m dispatch.nats_worker URL NAME FOLDER [digest]`.

The packet's `request` says what it does: `sleep N` notes its begin in FOLDER, sleeps in a child process as a sandboxed
program would, and notes its end; `wait N` only waits; `die` ends the worker at once; `fail` is an error; `nothing` is
done at once.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dispatch.nats_parts import settings, worker
from navigator_kernel.values.packet import packet_from_yaml


class Doer:
    name, description = "skills", "for a test"
    aliases: Sequence[str] = ()

    def __init__(self, host: str, folder: Path) -> None:
        self.host, self.folder = host, folder

    async def handle(self, prompt: str) -> object:
        packet = packet_from_yaml(prompt)
        word, _, seconds = str(packet.params.value("request")).partition(" ")
        if word in {"nothing", "wait"}:
            await asyncio.sleep(float(seconds or 0))
            return {"state": "success", "summary": "done"}
        if word == "die":
            self._note(packet.context.run, "begun")
            os._exit(9)
        if word == "fail":
            self._note(packet.context.run, "begun")
            return {"state": "error", "summary": "it failed"}
        child = await asyncio.create_subprocess_exec("sleep", seconds)
        self._note(packet.context.run, "begun")
        try:
            await child.wait()
        except asyncio.CancelledError:
            child.kill()
            self._note(packet.context.run, "stopped")
            await child.wait()
            raise
        self._note(packet.context.run, "ended")
        return {"state": "success", "summary": self.host}

    def _note(self, run: str, what: str) -> None:
        with (self.folder / run).open("a") as file:
            file.write(f"{self.host} {what}\n")


async def main(url: str, name: str, folder: str, digest: str = "") -> None:
    held = settings(url)
    agents, state = {"skills": Doer(name, Path(folder))}, Path(folder) / f"state-{name}"
    await worker(held, agents, state, digest=digest, name=name, slots=2).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
