"""Korean on the 2-beolsik keyboard: letters (jamo) become syllables while they are typed."""

from __future__ import annotations

import unicodedata

from dari.terminal.input_methods.composer import CompositionStep

LEADS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
TAILS = "ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
FIRST_SYLLABLE = 0xAC00
SYLLABLES = len(LEADS) * len(VOWELS) * (len(TAILS) + 1)

_KEYS = dict(zip("qwertyuiopasdfghjklzxcvbnm", "ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔㅁㄴㅇㄹㅎㅗㅓㅏㅣㅋㅌㅊㅍㅠㅜㅡ", strict=True))
# Shift changes seven keys; with the others it does nothing.
_KEYS |= {key.upper(): jamo for key, jamo in _KEYS.items()} | dict(zip("QWERTOP", "ㅃㅉㄸㄲㅆㅒㅖ", strict=True))
_KEY_OF = {jamo: key for key, jamo in reversed(_KEYS.items())}
_JOINED_VOWELS = {"ㅗㅏ": "ㅘ", "ㅗㅐ": "ㅙ", "ㅗㅣ": "ㅚ", "ㅜㅓ": "ㅝ", "ㅜㅔ": "ㅞ", "ㅜㅣ": "ㅟ", "ㅡㅣ": "ㅢ"}
_JOINED_TAILS = {
    "ㄱㅅ": "ㄳ",
    "ㄴㅈ": "ㄵ",
    "ㄴㅎ": "ㄶ",
    "ㄹㄱ": "ㄺ",
    "ㄹㅁ": "ㄻ",
    "ㄹㅂ": "ㄼ",
    "ㄹㅅ": "ㄽ",
    "ㄹㅌ": "ㄾ",
    "ㄹㅍ": "ㄿ",
    "ㄹㅎ": "ㅀ",
    "ㅂㅅ": "ㅄ",
}
_PARTS = {joined: pair for pair, joined in (_JOINED_VOWELS | _JOINED_TAILS).items()}


class HangulComposer:
    """One syllable is open at a time: lead, vowel, tail, each possibly empty."""

    def __init__(self) -> None:
        self._lead = self._vowel = self._tail = ""

    @property
    def preedit(self) -> str:
        return _shown(self._lead, self._vowel, self._tail)

    @property
    def candidates(self) -> tuple[str, ...]:
        return ()

    def feed(self, key: str) -> CompositionStep:
        jamo = _KEYS.get(key)
        if jamo is None:
            return CompositionStep(self.finish().commit, "", False)
        commit = self._vowel_typed(jamo) if jamo in VOWELS else self._consonant_typed(jamo)
        return CompositionStep(commit, self.preedit)

    def backspace(self) -> CompositionStep:
        if self._tail:
            self._tail = _PARTS.get(self._tail, self._tail)[:-1]
        elif self._vowel:
            self._vowel = _PARTS.get(self._vowel, self._vowel)[:-1]
        elif self._lead:
            self._lead = ""
        else:
            return CompositionStep(is_used=False)
        return CompositionStep("", self.preedit)

    def finish(self) -> CompositionStep:
        return CompositionStep(self._begin())

    def _consonant_typed(self, jamo: str) -> str:
        if self._lead and self._vowel:
            tail = _JOINED_TAILS.get(self._tail + jamo, "") if self._tail else jamo if jamo in TAILS else ""
            if tail:
                self._tail = tail
                return ""
        return self._begin(lead=jamo)

    def _vowel_typed(self, jamo: str) -> str:
        if self._tail:
            # The last consonant was the start of the next syllable all along: 값 + ㅏ is 갑사.
            parts = _PARTS.get(self._tail, self._tail)
            self._tail, moved = parts[:-1], parts[-1]
            return self._begin(lead=moved, vowel=jamo)
        if not self._vowel:
            self._vowel = jamo
            return ""
        joined = _JOINED_VOWELS.get(self._vowel + jamo)
        if joined:
            self._vowel = joined
            return ""
        return self._begin(vowel=jamo)

    def _begin(self, lead: str = "", vowel: str = "") -> str:
        """Open a new syllable and return the one that was open."""
        commit = self.preedit
        self._lead, self._vowel, self._tail = lead, vowel, ""
        return commit


def compose(keys: str) -> str:
    """The text that these keys type; other keys stand for themselves."""
    composer = HangulComposer()
    parts: list[str] = []
    for key in keys:
        step = composer.feed(key)
        parts.append(step.commit if step.is_used else step.commit + key)
    return "".join(parts) + composer.finish().commit


def decompose(text: str) -> str:
    """The keys that type this text; other characters stand for themselves."""
    return "".join(_KEY_OF.get(jamo, jamo) for char in unicodedata.normalize("NFC", text) for jamo in _jamo(char))


def is_hangul(char: str) -> bool:
    """Whether the keyboard types it: a syllable, a letter, a joined vowel; ㄺ alone it cannot."""
    return char in _KEY_OF or char in _JOINED_VOWELS.values() or 0 <= ord(char) - FIRST_SYLLABLE < SYLLABLES


def _jamo(char: str) -> list[str]:
    index = ord(char) - FIRST_SYLLABLE
    if not 0 <= index < SYLLABLES:
        return [*_PARTS.get(char, char)]
    rest, tail = divmod(index, len(TAILS) + 1)
    lead, vowel = divmod(rest, len(VOWELS))
    parts = [LEADS[lead], VOWELS[vowel], *([TAILS[tail - 1]] if tail else [])]
    return [jamo for part in parts for jamo in _PARTS.get(part, part)]


def _shown(lead: str, vowel: str, tail: str) -> str:
    if not (lead and vowel):
        return lead + vowel
    index = (LEADS.index(lead) * len(VOWELS) + VOWELS.index(vowel)) * (len(TAILS) + 1)
    return chr(FIRST_SYLLABLE + index + (TAILS.index(tail) + 1 if tail else 0))
