"""Markers for sentences that a model left without one, where exactly what they say stands in a passage.

Small models follow the passages and forget the markers. A sentence nearly all of whose words, and all of whose numbers,
stand in one passage is cited from it; any other stays bare, and an answer without a marker is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from dari.knowledge.ask.verify import MARKER, check_answer
from dari.knowledge.chunk import sentence_spans
from dari.knowledge.index.analyzer import is_stop_word, terms_of_word, words_of
from dari.knowledge.search.coverage import terms_in

_MIN_SHARE = 0.8
_MIN_WORDS = 2


def attribute(answer: str, passages: Sequence[str], question: str) -> str:
    """The answer with a marker after each sentence that one passage holds."""
    if MARKER.search(answer):
        return answer
    held = [terms_in(passage) | terms_in(question) for passage in passages]
    pieces, place = [], 0
    for start, end in sentence_spans(answer):
        sentence = answer[start:end].rstrip()
        number = _source(sentence, passages, held, question)
        marker = f" [#{number}]" if number else ""
        pieces.append(answer[place:start] + sentence + marker)
        place = end
    return ("".join(pieces) + answer[place:]).strip()


def _source(sentence: str, passages: Sequence[str], held: Sequence[frozenset[str]], question: str) -> int:
    """The number of the passage that holds the sentence best; 0 for none."""
    words = [word for word in words_of(sentence) if not is_stop_word(word)]
    if len(words) < _MIN_WORDS:
        return 0
    best, best_share = 0, _MIN_SHARE
    for number, terms in enumerate(held, start=1):
        share = sum(not terms.isdisjoint(terms_of_word(word)) for word in words) / len(words)
        is_better = share > best_share or (share >= best_share and not best)
        if is_better and check_answer(f"{sentence} [#{number}]", passages, question).holds:
            best, best_share = number, share
    return best
