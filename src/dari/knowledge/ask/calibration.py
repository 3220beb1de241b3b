"""Where the cosines of a model begin to mean something, found on the documents themselves.

The small models of the catalog have a fitted gate. Any other (`gte-small`, a folder of one's own, a server) has a band
of its own, which moves with the documents too. Questions about nothing in particular show it: how near the nearest
sentences are to a question that has no answer here. One standard deviation above their mean is the bar. Measured with
use-m and MiniLM on three corpora as if they were not known: docs/decisions/0015-knowledge.md.
"""

from __future__ import annotations

from statistics import fmean, pstdev
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from msgspec import Struct

from dari.errors import DariError
from dari.knowledge.ask.evidence import read_evidence
from dari.knowledge.ask.gate import DenseFit, nearest_cosine
from dari.knowledge.ask.nearness import TYPICAL_QUESTIONS, Nearness, is_latin
from dari.knowledge.search.coverage import read_question
from dari.knowledge.search.request import SearchRequest

if TYPE_CHECKING:
    from dari.knowledge.models.model import EmbeddingModel
    from dari.knowledge.search.searcher import Searcher

_DEVIATIONS = 1.0
_MIN_DEVIATION = 0.02
_READ_HITS = 3
_STEEPNESS = 2.0  # of the logistic function, in deviations: a chance of .12 at the mean, of .5 at the bar
_GROWTH = 1.5  # measured again when there are so many times more passages, or fewer


class _Measured(Struct, frozen=True):
    fit: DenseFit
    passages: int


_LOCK = Lock()
_MEASURED: WeakKeyDictionary[Searcher, dict[bool, _Measured]] = WeakKeyDictionary()
"""By searcher, then by whether questions are in Latin letters. A searcher has one model."""


def measured_fit(question: str, searcher: Searcher, model: EmbeddingModel) -> DenseFit | None:
    """The gate's function for questions of this script. The first call of a process embeds some hundred sentences; None
    where the model fails or nothing is embedded."""
    latin, passages = is_latin(question), searcher.embedded_passages
    with _LOCK:
        known = _MEASURED.setdefault(searcher, {})
        found = known.get(latin)
        if found is None or not found.passages / _GROWTH <= passages <= found.passages * _GROWTH:
            fit = _measure([one for one in TYPICAL_QUESTIONS if is_latin(one) == latin], searcher, model)
            if fit is None:
                return None
            found = known[latin] = _Measured(fit, passages)
    return found.fit


def _measure(questions: list[str], searcher: Searcher, model: EmbeddingModel) -> DenseFit | None:
    nearness = Nearness(model)
    cosines = []
    try:
        for question in questions:
            result = searcher.search(SearchRequest(query=question, k=_READ_HITS, mode="vector"))
            if not result.hits:
                return None
            words = read_question(question, result.query)
            cosines.append(nearest_cosine(read_evidence(question, words, result.hits, nearness)))
    except (DariError, OSError):
        return None
    deviation = max(pstdev(cosines), _MIN_DEVIATION)
    slope = _STEEPNESS / deviation
    return DenseFit(-slope * (fmean(cosines) + _DEVIATIONS * deviation), slope)
