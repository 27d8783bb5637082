"""How many hosts a load needs: a queueing model, and the plan for 10, 100 and 1,000 hosts that follows from it.

Orders circulate between two stations: owners with their broker, which handle one order after another, and the places
of workers, of which each does one order at a time. `throughput` is the exact mean value analysis of such a closed
network; `wait` is Erlang's formula for orders that come at random. `make bench` checks both against a real broker.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple


class Costs(NamedTuple):
    """Processor seconds for one order: of the owner, of the worker without what the skill does, of the broker, and of
    Postgres, where the order is a step of a journalled plan."""

    owner: float
    worker: float
    broker: float
    postgres: float


MEASURED = Costs(owner=0.0028, worker=0.0013, broker=0.0010, postgres=0.0022)  # of test_nats.py, one worker
BUSY = 0.6  # the part of a processor that is planned for, so that queues stay short
STEPS = 3  # orders of one turn
SECONDS = 2.0  # that a skill works on an order
PLACES = 4  # orders at once on one host
SHARD = 8  # processors of one Postgres or broker, from which on there is a further one
CORE_HOUR = 0.04  # US dollars for an hour of one processor


def throughput(places: int, orders: int, work: float, handling: float) -> float:
    """Orders a second if `orders` circulate among `places` that need `work` seconds each, and a station that needs
    `handling` seconds for one order at a time."""
    shares, rate = [1.0], 0.0  # of the time in which 0, 1, … orders are at the workers
    waiting = 0.0
    for count in range(1, orders + 1):
        at_workers = sum((here + 1) * work / min(here + 1, places) * share for here, share in enumerate(shares[:count]))
        at_owner = handling * (1 + waiting)
        rate = count / (at_workers + at_owner)
        busy = [rate * work / min(here, places) * shares[here - 1] for here in range(1, count + 1)]
        shares = [max(0.0, 1 - sum(busy)), *busy]
        waiting = rate * at_owner
    return rate


def wait(places: int, rate: float, work: float) -> float:
    """Mean seconds that an order waits for one of `places`, if `rate` orders a second come at random (M/M/c)."""
    load = rate * work
    if load >= places:
        return float("inf")
    blocked = 1.0  # Erlang's loss formula, step by step
    for number in range(1, places + 1):
        blocked = load * blocked / (number + load * blocked)
    delayed = blocked / (1 - load / places * (1 - blocked))
    return delayed * work / (places - load)


def plan_rows(costs: Costs = MEASURED) -> list[str]:
    """A table for 10, 100 and 1,000 hosts whose places are busy for `BUSY` of the time."""
    columns = [_plan(hosts, costs) for hosts in (10, 100, 1_000)]
    rows = ["| | 10 hosts | 100 hosts | 1,000 hosts |", "|---|---|---|---|"]
    return rows + [f"| {name} | " + " | ".join(column[name] for column in columns) + " |" for name in columns[0]]


def _plan(hosts: int, costs: Costs) -> dict[str, str]:
    places = hosts * PLACES
    rate = places * BUSY / SECONDS
    postgres, broker = costs.postgres * rate, costs.broker * rate
    return {
        "orders a second": f"{rate:,.0f}",
        "turns a day": f"{rate / STEPS * 86_400 / 1e6:,.1f} million",
        "mean wait for a place (M/M/c)": f"{wait(places, rate, SECONDS) * 1000:,.1f} ms",
        "gateways, of one processor each": f"{ceil(costs.owner * rate / BUSY)}",
        "processors for Postgres": f"{postgres / BUSY:,.1f}",
        "processors for brokers": f"{broker / BUSY:,.1f}",
        "shards": f"{ceil(max(postgres, broker) / BUSY / SHARD)}",
    }


def first_full(costs: Costs = MEASURED) -> str:
    """The part that one processor each limits first, with the orders a second that it takes."""
    shared = {"one gateway": costs.owner, "Postgres": costs.postgres, "the broker": costs.broker}
    limits = sorted((BUSY / seconds, name) for name, seconds in shared.items())
    return ", then ".join(f"{name} at {limit:,.0f}" for limit, name in limits)


def cost_rows(costs: Costs = MEASURED) -> list[str]:
    """A table of what one order costs, and a million turns of `STEPS` orders."""
    parts = {"gateway": costs.owner, "worker, without the skill": costs.worker, "broker": costs.broker}
    parts["Postgres"] = costs.postgres
    parts["all of these"] = sum(parts.values())
    parts[f"a skill that computes for {SECONDS:g} s"] = SECONDS
    rows = ["| part | processor time for one order | for a million turns |", "|---|---|---|"]
    for name, seconds in parts.items():
        hours = seconds * STEPS * 1e6 / 3600
        rows.append(f"| {name} | {seconds * 1000:,.1f} ms | {hours:,.1f} h, ${hours * CORE_HOUR:,.2f} |")
    return rows
