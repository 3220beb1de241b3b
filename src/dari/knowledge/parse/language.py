"""The language of a text by its scripts, and English by its function words. A heuristic: `und` where it is not sure."""

from __future__ import annotations

import re

_SAMPLE_CHARS = 3_000
_HANGUL = re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]+")
_KANA = re.compile(r"[\u3041-\u30ff\u31f0-\u31ff]+")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_ENGLISH_WORDS = (
    "the of and to in is a that it for on with as are be this by an not or from at can you which will if was has have "
    "when its one all your may use we i they but how what"
)
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
_MIN_LETTERS = 4
# Technical Korean is full of Latin names and code: a tenth of Hangul is a Korean text.
_MIN_HANGUL_SHARE = 0.10
_MIN_CJK_SHARE = 0.15
_MIN_FUNCTION_WORD_SHARE = 0.12


def detect_language(text: str) -> str:
    """`ko`, `ja`, `zh`, `en`, or `und`."""
    sample = text if len(text) <= _SAMPLE_CHARS else text[:_SAMPLE_CHARS]
    if sample.isascii():
        return _latin_language(sample)
    hangul = sum(map(len, _HANGUL.findall(sample)))
    kana = sum(map(len, _KANA.findall(sample)))
    han = sum(map(len, _HAN.findall(sample)))
    letters = hangul + kana + han + sum(map(len, _LATIN.findall(sample)))
    if letters < _MIN_LETTERS and hangul + kana + han < 2:
        return "und"
    if hangul > letters * _MIN_HANGUL_SHARE and hangul >= kana:
        return "ko"
    if kana + han > letters * _MIN_CJK_SHARE:
        return "ja" if kana > (kana + han) * 0.1 else "zh"
    return _latin_language(sample)


def _latin_language(sample: str) -> str:
    words = _LATIN.findall(sample.lower())
    if len(words) < 3:
        return "und"
    known = sum(1 for word in words if word in _ENGLISH)
    return "en" if known > len(words) * _MIN_FUNCTION_WORD_SHARE else "und"
