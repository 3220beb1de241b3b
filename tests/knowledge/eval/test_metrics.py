"""Measures, compared with values worked out by hand and with trec_eval's definition."""

from __future__ import annotations

import math

import pytest

from dari.knowledge.eval.metrics import estimate, ndcg, paired, recall, reciprocal_rank


def test_ndcg_discounts_by_rank_and_divides_by_the_best_order() -> None:
    relevant = {"a": 2.0, "b": 1.0}
    assert ndcg(["a", "b"], relevant) == 1.0
    assert ndcg(["x", "a"], relevant) == pytest.approx((2 / math.log2(3)) / (2 + 1 / math.log2(3)))
    assert ndcg([*"0123456789", "a"], relevant) == 0.0
    assert ndcg([], relevant) == ndcg(["a"], {}) == 0.0


def test_recall_and_reciprocal_rank_look_at_ten_documents() -> None:
    relevant = {"a": 1.0, "b": 1.0, "c": 1.0}
    assert recall(["a", "x", "c"], relevant) == pytest.approx(2 / 3)
    assert reciprocal_rank(["x", "y", "b"], relevant) == pytest.approx(1 / 3)
    assert reciprocal_rank([*"0123456789", "a"], relevant) == recall([*"0123456789", "a"], relevant) == 0.0


def test_an_estimate_holds_its_mean_and_narrows_with_more_questions() -> None:
    few, many = estimate([0.0, 1.0] * 5), estimate([0.0, 1.0] * 500)
    assert few.low < few.value == many.value == 0.5 < few.high
    assert many.high - many.low < (few.high - few.low) / 4
    assert estimate([0.25] * 7) == estimate([0.25] * 7)
    assert (estimate([0.25] * 7).low, estimate([]).value) == (0.25, 0.0)


def test_pairing_finds_a_small_steady_gain_that_two_intervals_would_hide() -> None:
    first = {f"q{n}": (n % 10) / 10 for n in range(100)}
    second = {name: value + (0.02 if int(name[1:]) % 3 else 0.0) for name, value in first.items()}
    gain = paired(first, second)
    assert 0 < gain.low < gain.value < gain.high < 0.02
    assert estimate(list(second.values())).low < estimate(list(first.values())).high
