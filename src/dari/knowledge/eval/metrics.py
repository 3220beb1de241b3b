"""Measures of a ranked list, and how sure a mean of them is.

nDCG, recall and the reciprocal rank look at the first ten documents. Gains are linear and discounts logarithmic, as
trec_eval and BEIR compute them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from msgspec import Struct

DEPTH = 10
RESAMPLES = 2000
SEED = 20261117
INTERVAL = 0.95


class Estimate(Struct, frozen=True):
    """A mean with its 95 % interval by bootstrap over the questions."""

    value: float
    low: float
    high: float


def ndcg(ranked: Sequence[str], relevant: Mapping[str, float], depth: int = DEPTH) -> float:
    gained = sum(relevant.get(doc, 0.0) / math.log2(rank + 1) for rank, doc in enumerate(ranked[:depth], 1))
    ideal = sorted(relevant.values(), reverse=True)[:depth]
    best = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(ideal, 1))
    return gained / best if best else 0.0


def recall(ranked: Sequence[str], relevant: Mapping[str, float], depth: int = DEPTH) -> float:
    return sum(doc in relevant for doc in ranked[:depth]) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranked: Sequence[str], relevant: Mapping[str, float], depth: int = DEPTH) -> float:
    return next((1 / rank for rank, doc in enumerate(ranked[:depth], 1) if doc in relevant), 0.0)


def estimate(values: Sequence[float]) -> Estimate:
    """The mean, with the percentiles of means of resampled questions. The seed is fixed: a run can be repeated."""
    if not values:
        return Estimate(0.0, 0.0, 0.0)
    size, rng = len(values), random.Random(SEED)
    means = sorted(sum(rng.choices(values, k=size)) / size for _ in range(RESAMPLES))
    edge = round(RESAMPLES * (1 - INTERVAL) / 2)
    mean = math.fsum(values) / size
    return Estimate(round(mean, 5), round(means[edge], 5), round(means[-edge - 1], 5))


def paired(first: Mapping[str, float], second: Mapping[str, float]) -> Estimate:
    """The mean gain of `second` over `first` on the questions that both have; above zero when `low` is."""
    return estimate([second[name] - first[name] for name in sorted(first.keys() & second.keys())])
