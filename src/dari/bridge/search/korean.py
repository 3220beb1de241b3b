"""Korean queries: what each word stands for, its role in the sentence, and English words written in Hangul.

A word is an entry of the lexicon with endings, several entries in a row, or unknown. The particle says whether the
action happens there (`에`) or to it. `스크린샷` matches `screenshot` without a dictionary: both are reduced to the
consonants that a Korean ear keeps. Vowels are dropped, since Hangul puts one between any two consonants and writers
choose different ones (`스크린셧`); r and l count as one letter, as do p and f, b and v, s and j.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from dari.bridge.search.synonyms import Expansion, Synonyms, TermWeights

CONTEXT_WEIGHT = 0.85
"""Where something is done says less than what it is done to."""
GENERIC_WEIGHT = 0.6
"""What a verb counts that hundreds of tools have."""
_LITERAL = 1.6
_ASIDE = 0.6
"""For the verb of a clause that somebody wants to know about (`보내는지`)."""
_NOT_WORDS = """
을 를 이 가 은 는 에 의 로 와 과 도 만 좀 다 걸 게 거 것 수 줘 해 한 할 된 될 인 해줘 해서 하고 하는 했던
에서 으로 에게 한테 부터 까지 처럼 이랑 랑 하나 해라 해주 주세요 해주세요 합니다 하기 하게 해봐 해보 이야 야 지 나 있
있어 있는지 있나 없 없어 뭐 뭐야 뭐가 무엇 어떤 얼마 얼마나 얼마야 언제 왜 이렇게 그 저 이거 그거 저거 내 우리 너 제
더 또 및 등 중 중에 대해 대한 관련 관련된 통해 위해 여기 거기 저기 지금 줘라 둬 싶어 싶다 같은 같이 라고 라는 이라는
다고 는다는
"""
_PARTICLES = frozenset(_NOT_WORDS.split())
_ENDING = re.compile(
    r"(?:이라는|라는|에서는|에서|으로는|으로|에게서|에게|한테|부터|까지|처럼|이랑|하고|해줘|해주세요|해서|해봐|했어|하는|하기|"
    r"할게|합니다|이야|인지|들을|들이|들|을|를|이|가|은|는|에|의|로|와|과|도|만|용|좀|랑|해|한|할|된|야|줘)$"
)


class QueryTerm(NamedTuple):
    """One part of a question."""

    groups: list[TermWeights]
    """Words of tools it may stand for, with what they count; one group for each thing that it names."""
    weight: float
    word: str = ""
    """The word itself, where it may also be a slip of the keyboard or written by its sound."""
    is_name: bool = False
    """Somebody or something that has a name: data, unless it names a server."""


def korean_terms(found: list[str], words: Synonyms) -> list[QueryTerm]:
    """Korean words one after another: the longest entries that begin where a word begins, over spaces as well."""
    parts: list[QueryTerm] = []
    whole = "".join(found)
    begins = {0}
    for run in found:
        begins.add(max(begins) + len(run))
    at, rest_from = 0, 0
    while at < len(whole):
        end = min(one for one in (*begins, len(whole)) if one > at)
        goal, length = _longest(whole, at, end if at in begins else 0, words)
        if goal is None:
            # An entry in the middle of a word that begins otherwise is an accident: 리스트 in 애널리스트.
            parts += _unknown(whole[at:end])
            at = rest_from = end
            continue
        if rest_from < at:
            parts += _unknown(whole[rest_from:at])
        key = whole[at : at + length]
        # A tool that says it in Korean is meant before one that says it in English.
        itself = {key: _LITERAL, **dict.fromkeys(_pairs(key), _LITERAL * 0.6)}
        groups = words.groups(goal.targets)
        groups[0] = {**itself, **groups[0]}
        at += length
        parts.append(QueryTerm(groups, goal.weight * _korean_weight(goal, words) * _role(whole[at:end])))
        # What follows inside a word is an ending as long as no entry begins there.
        end = min(one for one in (*begins, len(whole)) if one >= at)
        while at < end and _longest(whole, at, 0, words)[0] is None:
            at += 1
        rest_from = at
    if rest_from < len(whole):
        parts += _unknown(whole[rest_from:])
    return parts


def _role(ending: str) -> float:
    if ending.startswith(("는지", "은지", "던데")):
        return _ASIDE
    return CONTEXT_WEIGHT if ending.startswith(("에", "의", "중", "이랑", "으로", "로", "용")) else 1.0


def _longest(whole: str, at: int, word_end: int, words: Synonyms) -> tuple[Expansion | None, int]:
    """`word_end`: where the word ends that begins at `at`; 0 inside a word, where one syllable is an accident."""
    for length in range(min(words.longest_korean, len(whole) - at), 0, -1):
        goal = words.korean.get(whole[at : at + length])
        if goal is None:
            continue
        if length > 1 or (word_end and (at + 1 == word_end or whole[at + 1 : word_end] in _PARTICLES)):
            return goal, length
    return None, 0


def _korean_weight(goal: Expansion, words: Synonyms) -> float:
    first = max(goal.targets, key=lambda word: goal.targets[word])
    if goal.targets[first] < 0.5:
        return 0.5
    return GENERIC_WEIGHT if first in words.kinds else 1.0


def _unknown(run: str) -> list[QueryTerm]:
    """A Korean word that no entry explains: itself, for tools that are described in Korean, or an English word."""
    bare = run
    while (shorter := _ENDING.sub("", bare)) != bare and len(shorter) >= 2:
        bare = shorter
    if run in _PARTICLES or bare in _PARTICLES or len(bare) < 2:
        return []
    return [QueryTerm([{**dict.fromkeys(_pairs(bare), 0.6), run: 1.0, bare: 1.0}], 0.8, bare)]


def _pairs(run: str) -> list[str]:
    """How tools that are described in Korean are indexed, beside whole words."""
    return [run[at : at + 2] for at in range(len(run) - 1)] if len(run) > 2 else []


MIN_SOUNDS = 3
"""Two consonants are shared by too many words."""
_ONSETS = "kkntt" + "lmppss" + " sss" + "ktph"
"""ㄱㄲㄴㄷㄸ ㄹㅁㅂㅃㅅㅆ ㅇㅈㅉㅊ ㅋㅌㅍㅎ, in the order of Unicode."""
_CODAS = " kkknnntlkmplpplmpptt" + "ntt" + "ktpt"
"""None, then ㄱ to ㅎ; ㅅ at the end of a syllable is heard as t, ㅇ as n."""
_ENGLISH = (
    (r"[^a-z]", ""),
    (r"[st]ions?|ssion", "SN"),
    (r"ture?$", "S"),
    (r"tch|ch(?=[^rl]|$)|sh|th|dg(?=[ei])|z|j", "S"),
    (r"sch|ck|ch|q", "K"),
    (r"ph", "P"),
    (r"gh(?![aeiou])|^k(?=n)|^w(?=r)", ""),
    (r"ng(?![aeiouylr])|ng$", "N"),
    (r"x", "KS"),
    (r"c(?=[eiy])|g(?=[eiy])", "S"),
    (r"[cgk]", "K"),
    (r"r(?![aeiouy])", ""),
    (r"[lr]", "L"),
    (r"[bpfv]", "P"),
    (r"[dt]", "T"),
    (r"s", "S"),
)
_REPLACEMENTS = tuple((re.compile(pattern), given) for pattern, given in _ENGLISH)
_DOUBLED = re.compile(r"([A-Zmnh])\1+")
_VOWELS = re.compile(r"[aeiouyw]+")


@lru_cache(maxsize=4096)
def hangul_sounds(run: str) -> str:
    """The consonants of a run of Hangul, `.` in front where it begins with a vowel; empty for what has too few."""
    sounds: list[str] = []
    coda = " "
    for syllable in run:
        code = ord(syllable) - 0xAC00
        onset, before, coda = _ONSETS[code // 588], coda, _CODAS[code % 28]
        if onset == " ":
            sounds.append("" if sounds else ".")
        elif onset != before:  # 클릭 has one l
            sounds.append(onset)
        if coda != " ":
            sounds.append(coda)
    found = "".join(sounds)
    return found if len(found) >= MIN_SOUNDS else ""


@lru_cache(maxsize=32768)
def english_sounds(word: str) -> tuple[str, ...]:
    """The same for an English word. One that lost its last vowel with its ending (`namespac`) has two readings."""
    readings = (word, word + "e") if word.endswith(("c", "g")) else (word,)
    return tuple(found for found in map(_english_sounds, readings) if len(found) >= MIN_SOUNDS)


def _english_sounds(word: str) -> str:
    begins = "." if word[:1] in "aeiouyw" else ""
    for pattern, given in _REPLACEMENTS:
        word = pattern.sub(given, word)
    return begins + _VOWELS.sub("", _DOUBLED.sub(r"\1", word)).lower()
