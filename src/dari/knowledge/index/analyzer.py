"""Text to index terms, for documents and queries alike: one regular expression, and a cache of the terms of a word.

| text | terms |
|---|---|
| `Running tests` | `run test` (English Snowball stems) |
| `SearchRequest.max_tokens` | the whole, `searchrequest`, `max_tokens`, and the parts `search request max token` |
| `v1.2.3`, `3.14`, `1,234` | `v1.2.3` and `1.2.3`; `3.14`; `1234` |
| `학교에서` | `=학교` (the eojeol without its particle) and bigrams `학교` |
| `東京都` | bigrams `東京 京都` |
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from operator import add
from typing import TYPE_CHECKING

from dari.knowledge.index.korean import is_stop_word as is_korean_stop_word
from dari.knowledge.index.korean import strip_particle, trusted_stem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ANALYZER_VERSION = "ko-en-v1"
MAX_TERM_CHARS = 64
_MAX_CACHED_WORDS = 100_000  # about 20 MB

_HANGUL = "가-힣ㄱ-ㆎ"
# Scripts without spaces between words: kana, Han, Thai, Lao, Burmese, Khmer.
_UNSPACED = (
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff々"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_LETTER = rf"[^\W_{_HANGUL}{_UNSPACED}]"
# A word, identifier, version or number, with C++ and C#; or a run of one of the other scripts. The first line is a
# plain word that ends before a blank, which the second would read the same, and two times slower. No group
# is possessive: Python 3.11.2 cuts what it matched short.
_WORD = re.compile(
    r"[A-Za-z0-9]++(?=[ \n]|[.,]?(?:[ \n]|\Z))"
    rf"|{_LETTER}++(?:(?:[.'’-]|_++|(?<=\d),(?=\d)){_LETTER}++)*(?:\+\+|\#)?"
    rf"|[{_HANGUL}]++|[{_UNSPACED}]++"
)
# Anything but letters that stand for themselves, and marks that are not letters (①, ½ and Ａ are).
_FOLDED_LETTER = re.compile(
    rf"[^\x00-\x7f{_HANGUL}{_UNSPACED}\xa0\xa7\xab\xb0\xb1\xb7\xbb\xd7\u2000-\u206f\u2190-\u22ff\u2500-\u2775"
    r"\u3000-\u3004\u3008-\u3020\u3030\ufe00-\ufe0f\uff01-\uff0f\uff1a-\uff20\U0001f300-\U0001faff]"
)
_UNSPACED_LETTER = re.compile(f"[{_UNSPACED}]")
_PLAIN = re.compile(r"[a-z]+|[A-Z][a-z]*")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NUMERIC = re.compile(r"\d[\d.]*")
_HUMPED = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_ENGLISH_STOP_WORDS = """
a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my
no not of on or our shall she should so some such than that the their them then there these they this those to
was we were what when where which while who whom whose why will with would you your about also am any because
being between both during each he her him his may might must nor only other over own same too under until up
very tell give show please many much
"""
_STOP_WORDS = frozenset(_ENGLISH_STOP_WORDS.split())


def words_of(text: str) -> list[str]:
    """The words of a text in its order, as they stand there."""
    return _WORD.findall(composed(text))


def word_spans(text: str, first: int = 0, last: int = sys.maxsize) -> Iterator[re.Match[str]]:
    """The words of a composed text with their places, in a piece of it that begins and ends at a blank or its ends."""
    return _WORD.finditer(text, first, last)


def is_plain(text: str) -> bool:
    """Has a composed text no letter that is folded into another, as é and Ａ are?"""
    return text.isascii() or _FOLDED_LETTER.search(text) is None


def lower_letters(text: str) -> str:
    """A plain text of the same length, in which `letters_of` a term can be found."""
    return text.lower().replace("’", "'")


def letters_of(term: str) -> str:
    """Letters one after another that every word of a plain text has which the term was made of."""
    if not term.isascii():
        return term[1:] if term[0] == "=" else term
    if term[0].isdigit():
        return term[0]  # 1,234 becomes 1234
    if term.endswith(("ie", "ble")) and len(term) > 2:
        return term[:-2]  # dying: die, possibility: possible
    if term.endswith(("e", "i", "y", "bl")) and len(term) > 2:
        return term[:-1]  # hoping: hope, happy: happi, skies: sky, possibility: possibl
    return term[: MAX_TERM_CHARS // 2]


def composed(text: str) -> str:
    """NFC: Hangul typed as jamo (file names of macOS) becomes syllables."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def index_terms(words: list[str]) -> str:
    """All terms of the words, joined by spaces: what the lexical index stores of a chunk."""
    return " ".join(map(_TERMS.__getitem__, words))


def phrase_terms(words: list[str]) -> str:
    """One term for each word, in order, joined by spaces: what a quoted phrase is compared with."""
    return " ".join(map(_TERMS.heads.__getitem__, words))


def index_term_of(phrase_term: str) -> str | None:
    """The index term of every text that has this term of a phrase; None where there is none: letters of scripts without
    spaces are indexed in pairs."""
    first = phrase_term[0]
    if "가" <= first <= "힣" or "ㄱ" <= first <= "ㆎ":
        return f"={phrase_term}"
    return None if not first.isascii() and _UNSPACED_LETTER.match(first) else phrase_term


def terms_of_word(word: str) -> list[str]:
    """The terms of one word: the whole first, then its parts or bigrams."""
    return _TERMS[word].split()


def is_stop_word(word: str) -> bool:
    """Does the word say nothing of a question's subject? Asked of queries only."""
    return is_korean_stop_word(word) if "가" <= word[0] <= "힣" else word.lower() in _STOP_WORDS


class _WordCache(dict[str, str]):
    """The terms of a word, joined; `heads` has its terms in a phrase. Both are emptied when full, so that a stream of
    hashes cannot grow them."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = _HeadCache(self)

    def __missing__(self, word: str) -> str:
        return self.remember(word)[0]

    def remember(self, word: str) -> tuple[str, str]:
        if len(self) >= _MAX_CACHED_WORDS:
            self.clear()
            self.heads.clear()
        found = _analyse(word)
        if len(word) > MAX_TERM_CHARS:
            found = _cut(found[0]), _cut(found[1])
        self[word], self.heads[word] = found
        return found


class _HeadCache(dict[str, str]):
    def __init__(self, terms: _WordCache) -> None:
        super().__init__()
        self._terms = terms

    def __missing__(self, word: str) -> str:
        return self._terms.remember(word)[1]


def _analyse(word: str) -> tuple[str, str]:
    """All terms of a word, and those that stand for it in a phrase, joined by spaces."""
    first = word[0]
    if "가" <= first <= "힣" or "ㄱ" <= first <= "ㆎ":
        stem = strip_particle(word)
        if len(word) == 1:
            return f"={stem}", stem
        whole = trusted_stem(word, stem)
        return f"={stem} {' '.join(map(add, whole, whole[1:]))}", stem
    if _PLAIN.fullmatch(word):
        stem = _stem(word.lower())
        return stem, stem
    if not first.isascii() and _UNSPACED_LETTER.match(first):
        return " ".join(_bigrams(word)), " ".join(word)
    terms = _latin(word)
    # state-of-the-art has no whole term: its parts stand one after another, as in "state of the art".
    heads = terms if "-" in word and "-" not in terms[0] else terms[:1]
    return " ".join(terms), " ".join(heads)


def _cut(terms: str) -> str:
    return " ".join(term[:MAX_TERM_CHARS] for term in terms.split())


def _bigrams(text: str) -> list[str]:
    return [*map(add, text, text[1:])] or [text]


def _latin(word: str) -> list[str]:
    if _PLAIN.fullmatch(word):
        return [_stem(word.lower())]
    word = _folded(word)
    if word.endswith(("++", "#")):
        bare = word.rstrip("+#")
        return [word.lower(), bare.lower()] if len(bare) <= 2 else _latin(bare)
    if _GROUPED.fullmatch(word):
        return [word.replace(",", "")]
    if "," in word:
        return [term for part in word.split(",") for term in _latin(part)]
    lowered = word.lower()
    if _NUMERIC.fullmatch(lowered):
        return [lowered]
    if lowered[0] == "v" and _NUMERIC.fullmatch(lowered[1:]):
        return [lowered, lowered[1:]]
    return _identifier(word, lowered)


def _identifier(word: str, lowered: str) -> list[str]:
    for mark in (".", "-", "_"):
        if mark in word:
            terms = [term for part in word.split(mark) if part for term in _identifier(part, part.lower())]
            # A hyphen joins ordinary words too: the whole is kept where a digit says that it is a name (IL-6, utf-8).
            is_name = mark != "-" or any(letter.isdigit() for letter in word)
            return [lowered, *terms] if is_name else terms
    if _HUMPED.search(word):
        return [lowered, *(_stem(hump.lower()) for hump in _HUMPS.findall(word) if len(hump) > 1)]
    return [_stem(lowered) if lowered.replace("'", "").isalpha() else lowered]


def _folded(word: str) -> str:
    """Without accents and full widths, so that `cafe` finds `café`."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word.replace("’", "'"))
    return unicodedata.normalize("NFC", "".join(mark for mark in decomposed if not unicodedata.combining(mark))) or word


def _stem(word: str) -> str:
    stemmed: str = _stemmer()(word)
    return stemmed


@lru_cache(maxsize=1)
def _stemmer() -> Callable[[str], str]:
    import Stemmer  # a C library: 10 ms that only a search or an ingest pays

    stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord
    return stem


_TERMS = _WordCache()
