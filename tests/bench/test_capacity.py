"""The model of capacity where its answer is known from a formula; `test_nats.py` compares it with a real broker."""

from __future__ import annotations

import pytest

from bench.capacity import Costs, first_full, plan_rows, throughput, wait


@pytest.mark.parametrize("busy", [0.1, 0.5, 0.9])
def test_orders_that_come_at_random_wait_for_one_place_as_the_formula_says(busy: float) -> None:
    assert wait(1, busy / 2.0, 2.0) == pytest.approx(busy * 2.0 / (1 - busy))


def test_two_places_at_half_load_and_more_orders_than_places_can_do() -> None:
    assert wait(2, 1.0, 1.0) == pytest.approx(1 / 3)  # the table of Erlang C: a third of the orders wait for 1 s
    assert wait(4, 4.0, 1.0) == float("inf")


@pytest.mark.parametrize("places", [1, 2, 4, 8])
def test_the_scarcer_station_limits_what_circulates(places: int) -> None:
    assert throughput(places, 16, 0.05, 0.0) == pytest.approx(places / 0.05)
    assert throughput(places, 16, 0.0, 0.01) == pytest.approx(100)
    assert throughput(places, 1, 0.05, 0.01) == pytest.approx(1 / 0.06)


def test_one_place_and_one_owner_share_the_orders_as_two_queues_in_a_circle() -> None:
    assert throughput(1, 3, 1.0, 1.0) == pytest.approx(3 / 4)  # N / (N + 1) of either one's rate


def test_the_plan_names_what_is_full_first() -> None:
    dear = Costs(owner=0.001, worker=0.001, broker=0.001, postgres=0.01)
    assert first_full(dear).startswith("Postgres at 60, then")
    assert plan_rows(dear)[-1] == "| shards | 1 | 1 | 3 |"
