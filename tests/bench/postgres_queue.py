"""Orders through Postgres alone, to compare with a broker: rows that one worker claims, and a bell at both ends.

`python -m bench.postgres_queue URL` is the worker, which answers each order at once.
"""

from __future__ import annotations

import asyncio
import sys

import psycopg

TABLE = (
    "CREATE TABLE orders (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, packet TEXT NOT NULL, report TEXT,"
    " claimed BOOLEAN NOT NULL DEFAULT false)"
)
CLAIM = (
    "UPDATE orders SET claimed = true WHERE n = (SELECT n FROM orders WHERE NOT claimed ORDER BY n LIMIT 1"
    " FOR UPDATE SKIP LOCKED) RETURNING n"
)
REPORT = '{"state": "success", "summary": "done"}'


class Queue:
    """Two connections, because bells that ring during a statement are lost; the second one hears `channel`."""

    def __init__(self, url: str, channel: str) -> None:
        self._url, self._channel = url, channel

    async def __aenter__(self) -> Queue:
        self.rows = await psycopg.AsyncConnection.connect(self._url, autocommit=True)
        self.bells = await psycopg.AsyncConnection.connect(self._url, autocommit=True)
        await self.bells.execute(f"LISTEN {self._channel}".encode())
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.rows.close()
        await self.bells.close()

    async def ask(self, packet: str) -> str:
        """Stores an order and waits for its report."""
        cursor = await self.rows.execute(
            "WITH sent AS (INSERT INTO orders (packet) VALUES (%s) RETURNING n)"
            " SELECT n, pg_notify('ordered', '') FROM sent",
            (packet,),
        )
        (number, _) = await cursor.fetchone() or (0, None)
        async for _bell in self.bells.notifies(stop_after=1):
            pass
        cursor = await self.rows.execute("SELECT report FROM orders WHERE n = %s", (number,))
        (report,) = await cursor.fetchone() or ("",)
        return str(report)

    async def work(self) -> None:
        """Takes orders until the process ends."""
        async for _bell in self.bells.notifies():
            while row := await (await self.rows.execute(CLAIM)).fetchone():
                await self.rows.execute(
                    "WITH done AS (UPDATE orders SET report = %s WHERE n = %s RETURNING n)"
                    " SELECT pg_notify('reported', n::text) FROM done",
                    (REPORT, row[0]),
                )


async def main(url: str) -> None:
    async with Queue(url, "ordered") as queue:
        print("ready", flush=True)
        await queue.work()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
