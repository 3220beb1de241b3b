"""The sentences that an answer may be made of: what of the question each speaks about, in words and in meaning.

A model compares the question with single sentences below their title, since the vector of a passage of ten sentences
is near to no one of them. That is what a question in other words or in another language is judged and answered by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dari.knowledge.ask.instructions import instruction_spans
from dari.knowledge.ask.nearness import is_latin
from dari.knowledge.ask.verify import without_markers
from dari.knowledge.chunk import sentence_spans
from dari.knowledge.document import LINE_MEDIA, Location
from dari.knowledge.parse.lines import has_words
from dari.knowledge.search.coverage import QuestionWords, terms_in
from dari.knowledge.search.request import Hit

if TYPE_CHECKING:
    from dari.knowledge.ask.nearness import Nearness

MAX_SENTENCE_CHARS = 600
READ_HITS = 10
# A sentence takes 1.7 ms with use-m and 7 ms with minilm. Where words find the sentence, meaning only orders the best.
MAX_EMBEDDED_SENTENCES = 48
MAX_EMBEDDED_BESIDE_WORDS = 16
FULL_SHARE = 0.6
"""Of the question's words in one sentence with its headings: words have found what there is to find."""
_NOT_PROSE_PENALTY = 0.3
# Lines of Markdown that name or separate what follows; they say nothing themselves.
_STRUCTURE = re.compile(r"#{1,6}\s|```|~~~|<!--|[-=*_|:\s]+$")
_ASKS = re.compile(r"[?？][\"'”’」』)\]*_`]*$")
_MAX_LEADING_QUESTIONS = 2  # more in a row are a list of questions, not the first half of an answer
_ENDED = re.compile(r"[.!?。！？…][\"'”’」』)\]*_`]*$|[다요음함됨임까]$")


class Sentence(Struct, frozen=True):
    """A sentence of a hit. `hit` is the hit's place in the list, from 0; `start` and `end` are places in its text.
    `lead` is the question in the text that it answers, as in a list of questions and answers."""

    hit: int
    text: str
    start: int
    end: int
    lead: str = ""
    share: float = 0.0  # of the question's words, in the sentence and its lead
    headed_share: float = 0.0  # in the sentence, or in the title and headings above it
    cosine: float = 0.0  # with the question; 0 without a model, or where other sentences were more promising

    @property
    def is_prose(self) -> bool:
        """Not a line of code, a cell, a list of words."""
        return _ENDED.search(self.text) is not None


def read_evidence(
    question: str, words: QuestionWords, hits: Sequence[Hit], nearness: Nearness | None = None
) -> tuple[Sentence, ...]:
    """The sentences of the best hits, in order. A model gives the most promising ones their cosine; all would take
    too long."""
    read = hits[:READ_HITS]
    headings = [terms_in(" ".join((hit.document.title, *hit.chunk.heading_path))) for hit in read]
    sentences = []
    for one in _sentences_of(read):
        terms = terms_in(f"{one.lead} {one.text}")
        headed = words.share_in(terms | headings[one.hit])
        sentences.append(replace(one, share=words.share_in(terms), headed_share=headed))
    if nearness is None or not sentences:
        return tuple(sentences)
    top = max(hit.score for hit in read) or 1.0

    def promise(place: int) -> tuple[float, int]:
        one = sentences[place]
        prose = 0.0 if one.is_prose else _NOT_PROSE_PENALTY
        return prose - one.headed_share - read[one.hit].score / top, place

    is_covered = max(one.headed_share for one in sentences) >= FULL_SHARE
    count = MAX_EMBEDDED_BESIDE_WORDS if is_covered else MAX_EMBEDDED_SENTENCES
    chosen = sorted(range(len(sentences)), key=promise)[:count]
    cosines = nearness.cosines(
        question,
        [_below_title(sentences[place], read) for place in chosen],
        [_is_english(sentences[place], read) for place in chosen],
        second_opinion=not is_covered,
    )
    for place, cosine in zip(chosen, cosines, strict=True):
        sentences[place] = replace(sentences[place], cosine=cosine)
    return tuple(sentences)


def _sentences_of(hits: Sequence[Hit]) -> Iterator[Sentence]:
    """A very long one is cut, not dropped; one that addresses a model answers nobody. Neither does a question: it leads
    the sentence behind it, and those that follow in the paragraph."""
    for place, hit in enumerate(hits):
        text, questions, lead, before = hit.chunk.text, list[Sentence](), "", 0
        for one in _plain_sentences(place, text):
            if _ASKS.search(one.text):
                questions.append(one)
                continue
            if questions:
                yield from questions[:-_MAX_LEADING_QUESTIONS]
                lead = " ".join(question.text for question in questions[-_MAX_LEADING_QUESTIONS:])
                questions = []
            elif "\n\n" in text[before : one.start]:
                lead = ""
            before = one.end
            yield replace(one, lead=lead)
        yield from questions


def _plain_sentences(place: int, text: str) -> Iterator[Sentence]:
    instructions = set(instruction_spans(text))
    for start, end in sentence_spans(text):
        if (start, end) in instructions:
            continue
        cut = min(end, start + MAX_SENTENCE_CHARS)
        sentence = " ".join(text[start:cut].split())
        if has_words(without_markers(sentence)) and not _STRUCTURE.match(sentence):
            yield Sentence(place, sentence, start, cut)


def _below_title(sentence: Sentence, hits: Sequence[Hit]) -> str:
    hit = hits[sentence.hit]
    title = sentence.lead or (hit.chunk.heading_path[-1] if hit.chunk.heading_path else hit.document.title)
    return f"{title}: {sentence.text}" if title and not sentence.text.startswith(title) else sentence.text


def _is_english(sentence: Sentence, hits: Sequence[Hit]) -> bool:
    return hits[sentence.hit].document.lang in ("en", "und", "") and is_latin(sentence.text)


def narrow(hit: Hit, start: int, end: int) -> Location:
    """The lines of one span of a hit's text where these are lines of the file; else those of the whole chunk."""
    location, text = hit.chunk.location, hit.chunk.text
    if hit.document.media not in LINE_MEDIA or not location.line_start:
        return location
    if text.rstrip("\n").count("\n") != location.line_end - location.line_start:
        return location
    first = location.line_start + text.count("\n", 0, start)
    last = first + text[start:end].rstrip("\n").count("\n")
    return replace(location, line_start=first, line_end=last)
