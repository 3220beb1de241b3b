"""Two ranked lists made one: by a convex sum of scaled scores, or by reciprocal ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Ranked = Sequence[tuple[int, float]]

FUSION_VERSION = "convex-trust-v1"
# How much of the query's words, weighed by idf, one of the best lexical hits holds. Questions in the documents' own
# words lie above 0.5 (house set, median 0.77); paraphrases at 0.23 and questions in the other language at 0.39 mostly
# meet a passage by accident, and scaling would make the best of bad matches look perfect.
_NO_TRUST_SHARE = 0.2
_FULL_TRUST_SHARE = 0.6


def convex(lexical: Ranked, dense: Ranked, cosines: Mapping[int, float], weight: float) -> dict[int, float]:
    """`weight` · lexical + (1 − `weight`) · dense, each scaled to 0 … 1 between the last and the first of its list.

    `cosines` has the candidates of both halves; what one half does not list, or lists last, gets 0 from it.
    """
    scaled_lexical = _scaled(dict(lexical), lexical)
    scaled_dense = _scaled(cosines, dense)
    return {
        number: weight * scaled_lexical.get(number, 0.0) + (1 - weight) * scaled_dense.get(number, 0.0)
        for number in {**scaled_lexical, **scaled_dense}
    }


def reciprocal_ranks(lists: Sequence[Ranked], constant: int) -> dict[int, float]:
    """Reciprocal rank fusion, scaled so that a first place in every list is 1."""
    scores: dict[int, float] = {}
    for ranked in lists:
        for rank, (number, _) in enumerate(ranked, 1):
            scores[number] = scores.get(number, 0.0) + (constant + 1) / (constant + rank) / len(lists)
    return scores


def trusted_weight(weight: float, coverage: float) -> float:
    """The model's lexical weight, less where the best lexical hits hold little of the query."""
    trust = (coverage - _NO_TRUST_SHARE) / (_FULL_TRUST_SHARE - _NO_TRUST_SHARE)
    return weight * min(max(trust, 0.0), 1.0)


def _scaled(scores: Mapping[int, float], ranked: Ranked) -> dict[int, float]:
    if not ranked:
        return {}
    best, floor = ranked[0][1], ranked[-1][1]
    if best <= floor:
        return {number: 1.0 if score >= best else 0.0 for number, score in scores.items()}
    return {number: max((score - floor) / (best - floor), 0.0) for number, score in scores.items()}
