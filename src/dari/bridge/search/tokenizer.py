"""Split text into search words: `readTextFile`, `read_text_file` and "reading text files" give the same ones.

English words lose their endings. Korean has no spaces where a search needs them, so a run of Hangul gives itself,
itself without its particle, and its pairs of syllables; Chinese and Japanese give pairs too.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_RUN = re.compile(r"[가-힣]+|[\u3040-\u30ff\u3400-\u9fff]+|[^\W_가-힣\u3040-\u30ff\u3400-\u9fff]+", re.UNICODE)
_TOKEN = re.compile(r"[^\W_]+")
_HANGUL = re.compile(r"[가-힣]+")
_PAIRED = re.compile(r"[가-힣\u3040-\u30ff\u3400-\u9fff]")
_PARTICLE = re.compile(r"(?:에서|으로|에게|한테|부터|까지|처럼|[을를이가은는에의로와과도만])$")
_STOP_WORDS = """
a an and any are as at be been but by can do does for from has have how if in into is it its of on or so such than that
the their them then there these this those to use used using was what when where which will with you your i me my we our
not no all given via please want need should would
ll re ve don doesn didn isn aren wasn weren won couldn shouldn wouldn hasn haven
"""
_STOP = frozenset(_STOP_WORDS.split())
_SUFFIXES = ("ation", "ion", "ment", "or", "abl")
MAX_TEXT_CHARS = 8_000
"""What a tool is for stands in the beginning; some descriptions are manuals, and some are attacks."""
MAX_WORD_CHARS = 64
"""Longer runs are data, not words."""


def tokenize(text: str) -> list[str]:
    """In the order of the text, with repetitions."""
    found: list[str] = []
    text = text[:MAX_TEXT_CHARS]
    # One character may become eighteen by NFKC, so the limit holds before and after.
    for token in _TOKEN.findall(text if text.isascii() else unicodedata.normalize("NFKC", text)[:MAX_TEXT_CHARS]):
        found += _tokenize_word(token)
    return found


def script_runs(text: str) -> list[str]:
    """The text as runs of one script each, in lower case, split where a reader splits a name."""
    return [run for token in _TOKEN.findall(unicodedata.normalize("NFKC", text)) for run in _runs_of(token)]


def is_stop_word(run: str) -> bool:
    return run in _STOP


def is_hangul(run: str) -> bool:
    return _HANGUL.fullmatch(run) is not None


@lru_cache(maxsize=32768)
def _runs_of(token: str) -> tuple[str, ...]:
    return tuple(run.lower() for run in _RUN.findall(_CASE.sub(" ", token)) if len(run) <= MAX_WORD_CHARS)


@lru_cache(maxsize=32768)
def _tokenize_word(token: str) -> tuple[str, ...]:
    return tuple(word for run in _runs_of(token) for word in _tokenize_run(run))


def _tokenize_run(run: str) -> tuple[str, ...]:
    if not _PAIRED.match(run):
        return () if run in _STOP else (stem(run),)
    if len(run) == 1:
        return (run,)
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    whole = [run] if len(run) > 2 else []
    if _HANGUL.fullmatch(run) and len(run) > 2:
        bare = _PARTICLE.sub("", run)
        whole += [bare] if 2 < len(bare) < len(run) else []
    return (*whole, *pairs)


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """The word without its English ending; `delete`, `deletes`, `deleted` and `deleting` meet in `delet`."""
    if not word.isascii() or len(word) < 4 or word[-1].isdigit():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and re.search("[aeiouy]", word[: -len(ending)]):
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


@lru_cache(maxsize=16384)
def root(stemmed: str) -> str:
    """What the nouns and verbs of one family share: `translat` and `translation` meet; itself where it is short."""
    if not stemmed.isascii() or len(stemmed) < 6:
        return stemmed
    suffix = next((one for one in _SUFFIXES if stemmed.endswith(one) and len(stemmed) - len(one) >= 4), "")
    bare = stemmed.removesuffix(suffix)
    return bare[:-2] if suffix != "ation" and bare.endswith("at") and len(bare) > 5 else bare
