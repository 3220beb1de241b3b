"""The sentences that an answer may be made of, and where exactly they stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from dari.knowledge.chunk import sentence_spans
from dari.knowledge.document import Location
from dari.knowledge.search.coverage import terms_in
from dari.knowledge.search.request import Hit

MAX_SENTENCE_CHARS = 600


class Sentence(Struct, frozen=True):
    """A sentence of a hit. `hit` is the hit's place in the list, from 0; `start` and `end` are places in its text."""

    hit: int
    text: str
    start: int
    end: int
    terms: frozenset[str]


def sentences_of(hits: Sequence[Hit]) -> Iterator[Sentence]:
    """The sentences of every hit, in order; a very long one is cut, not dropped."""
    for place, hit in enumerate(hits):
        text = hit.chunk.text
        for start, end in sentence_spans(text):
            cut = min(end, start + MAX_SENTENCE_CHARS)
            sentence = " ".join(text[start:cut].split())
            if sentence:
                yield Sentence(place, sentence, start, cut, terms_in(sentence))


def heading_terms(hit: Hit) -> frozenset[str]:
    """The terms of a hit's title and headings: a sentence speaks about them without repeating them."""
    return terms_in(" ".join((hit.document.title, *hit.chunk.heading_path)))


def narrow(location: Location, text: str, start: int, end: int) -> Location:
    """The lines of one span of a chunk's text, where the chunk's lines and its text agree; else the whole chunk's."""
    if location.kind not in ("line", "code") or not location.line_start:
        return location
    if text.rstrip("\n").count("\n") != location.line_end - location.line_start:
        return location
    first = location.line_start + text.count("\n", 0, start)
    last = first + text[start:end].rstrip("\n").count("\n")
    return replace(location, line_start=first, line_end=last)
