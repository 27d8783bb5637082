"""The figures of the routing benchmark, computed from answers with known figures."""

from __future__ import annotations

import pytest

from bench.routing_metrics import Answered, auroc, coverage, ece, ndcg, routed, stray, top


def said(*ranks: int, labels: int = 1, confidence: float = 0.5, taken: bool = False) -> Answered:
    return Answered(ranks, labels, confidence, taken)


def test_top_counts_questions_with_a_label_among_the_first() -> None:
    answers = [said(0), said(3), said(), said(labels=0)]
    assert (top(answers, 1), top(answers, 5)) == (1 / 3, 2 / 3)


def test_ndcg_is_one_for_the_best_order_and_falls_with_the_place() -> None:
    assert ndcg([said(0, 1, labels=2)]) == 1
    assert ndcg([said(1)]) == pytest.approx(0.6309, abs=1e-4)


def test_auroc_is_one_where_confidence_parts_the_two_kinds_and_a_half_where_it_does_not() -> None:
    yes, no = said(0, confidence=0.9), said(labels=0, confidence=0.1)
    assert auroc([yes, no]) == 1
    assert auroc([said(0), said(labels=0)]) == 0.5
    assert auroc([yes]) is None


def test_coverage_is_the_longest_beginning_that_is_right_often_enough() -> None:
    answers = [
        said(0, confidence=0.9),
        said(1, confidence=0.8),
        said(0, confidence=0.7),
        said(labels=0, confidence=0.1),
    ]
    assert coverage(answers, 0.9) == 1 / 4
    assert coverage(answers, 0.6) == 3 / 4


def test_routed_gives_the_taken_and_the_right_share_and_stray_the_wrongly_taken_share() -> None:
    answers = [said(0, taken=True), said(1, taken=True), said(labels=0, taken=True), said(labels=0)]
    assert routed(answers) == (3 / 4, 1 / 3)
    assert stray(answers) == 0.5


def test_the_calibration_error_is_the_gap_between_predicted_and_true_shares() -> None:
    assert ece([said(0, confidence=1.0), said(0, confidence=1.0)]) == 0
    assert ece([said(1, confidence=0.8), said(1, confidence=0.8)]) == pytest.approx(0.8)
