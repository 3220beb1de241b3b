"""English words written in Hangul: `스크린샷` is found as `screenshot` though no dictionary names it.

Both are reduced to the consonants that a Korean ear keeps. Vowels are left out, since Hangul puts one between any two
consonants and every writer chooses others (`스크린셧`); r and l are one letter, as are p and f, b and v, s and j.
"""

from __future__ import annotations

import re
from functools import lru_cache

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
