"""Chinese: pinyin letters are preedit, space takes the likeliest characters where the dictionary is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from dari.errors import Unavailable
from dari.installation import install_extra
from dari.terminal.input_methods.composer import CompositionStep

_FINALS = {
    "": "a o e ai ei ao ou an en ang eng er",
    "b": "a o ai ei ao an en ang eng i ie iao ian in ing u",
    "p": "a o ai ei ao ou an en ang eng i ie iao ian in ing u",
    "m": "a o e ai ei ao ou an en ang eng i ie iao iu ian in ing u",
    "f": "a o ei ou an en ang eng u",
    "d": "a e ai ei ao ou an en ang eng ong i ia ie iao iu ian ing u uo ui uan un",
    "t": "a e ai ao ou an ang eng ong i ie iao ian ing u uo ui uan un",
    "n": "a e ai ei ao ou an en ang eng ong i ie iao iu ian in iang ing u uo uan v ve ue",
    "l": "a o e ai ei ao ou an ang eng ong i ia ie iao iu ian in iang ing u uo uan un v ve ue",
    "g": "a e ai ei ao ou an en ang eng ong u ua uo uai ui uan un uang",
    "k": "a e ai ei ao ou an en ang eng ong u ua uo uai ui uan un uang",
    "h": "a e ai ei ao ou an en ang eng ong u ua uo uai ui uan un uang",
    "j": "i ia ie iao iu ian in iang ing iong u ue uan un",
    "q": "i ia ie iao iu ian in iang ing iong u ue uan un",
    "x": "i ia ie iao iu ian in iang ing iong u ue uan un",
    "zh": "a e ai ei ao ou an en ang eng ong i u ua uo uai ui uan un uang",
    "ch": "a e ai ao ou an en ang eng ong i u ua uo uai ui uan un uang",
    "sh": "a e ai ei ao ou an en ang eng i u ua uo uai ui uan un uang",
    "r": "e ao ou an en ang eng ong i u ua uo ui uan un",
    "z": "a e ai ei ao ou an en ang eng ong i u uo ui uan un",
    "c": "a e ai ao ou an en ang eng ong i u uo ui uan un",
    "s": "a e ai ao ou an en ang eng ong i u uo ui uan un",
    "y": "a o e ao ou an in ang ing ong i u ue uan un",
    "w": "a o ai ei an en ang eng u",
}
PINYIN_SYLLABLES = frozenset(initial + final for initial, finals in _FINALS.items() for final in finals.split())
_LONGEST = max(map(len, PINYIN_SYLLABLES))


def split_syllables(letters: str) -> tuple[tuple[str, ...], str]:
    """(syllables, letters left over at the end). `'` parts two that would else be read as one: xi'an."""
    done: list[str] = []
    runs = letters.split("'")
    for number, run in enumerate(runs):
        syllables, rest = _split(run)
        done += syllables
        if rest and number < len(runs) - 1:
            return tuple(done), "'".join([rest, *runs[number + 1 :]])
        if rest:
            return tuple(done), rest
    return tuple(done), ""


def _split(run: str) -> tuple[list[str], str]:
    """The division that covers the most letters, then the one with the fewest and longest syllables."""
    best: list[list[str] | None] = [None] * (len(run) + 1)
    best[0] = []
    for end in range(1, len(run) + 1):
        for start in range(max(0, end - _LONGEST), end):
            before = best[start]
            if before is None or run[start:end] not in PINYIN_SYLLABLES:
                continue
            found = [*before, run[start:end]]
            now = best[end]
            if now is None or _rank(found) < _rank(now):
                best[end] = found
    covered = max(end for end, found in enumerate(best) if found is not None)
    return best[covered] or [], run[covered:]


def _rank(syllables: list[str]) -> tuple[int, list[int]]:
    return len(syllables), [-len(syllable) for syllable in syllables]


Convert = Callable[[tuple[str, ...]], list[str]]

_MOST_CANDIDATES = 9
MAX_OPEN_LETTERS = 64
"""When so many are typed without a choice, all but the last syllable is chosen."""
_SIGNS = {",": "，", ".": "。", "?": "？", "!": "！", ":": "：", ";": "；", "\\": "、", "(": "（", ")": "）"}


class PinyinComposer:
    """Letters gather in the preedit; `space` or a digit chooses, `enter` commits the letters as they are."""

    def __init__(self, convert: Convert | None = None) -> None:
        self._convert = convert or hanzi_candidates
        self._letters = ""

    @property
    def preedit(self) -> str:
        """Letters with the syllables apart, as far as they are syllables."""
        syllables, rest = split_syllables(self._letters)
        return "'".join([*syllables, rest] if rest else syllables)

    @property
    def candidates(self) -> tuple[str, ...]:
        syllables, _ = split_syllables(self._letters)
        return tuple(self._convert(syllables)[:_MOST_CANDIDATES]) if syllables else ()

    def feed(self, key: str) -> CompositionStep:
        if len(key) == 1 and key.isascii() and (key.isalpha() or (key == "'" and self._letters)):
            commit = self._choose_most() if len(self._letters) >= MAX_OPEN_LETTERS else ""
            self._letters += key.lower()
            return CompositionStep(commit, self.preedit)
        if self._letters and (key == "space" or (len(key) == 1 and key in "123456789")):
            return self._choose(0 if key == "space" else int(key) - 1)
        if self._letters and key == "enter":
            commit, self._letters = self._letters, ""
            return CompositionStep(commit)
        if self._letters and key == "escape":
            self._letters = ""
            return CompositionStep()
        commit = self.finish().commit
        if key in _SIGNS:
            return CompositionStep(commit + _SIGNS[key])
        return CompositionStep(commit, "", False)

    def backspace(self) -> CompositionStep:
        if not self._letters:
            return CompositionStep(is_used=False)
        self._letters = self._letters[:-1]
        return CompositionStep("", self.preedit)

    def finish(self) -> CompositionStep:
        return self._choose(0) if self._letters else CompositionStep()

    def _choose_most(self) -> str:
        """The likeliest characters for all but the last syllable, which the next letter may still change."""
        syllables, rest = split_syllables(self._letters)
        if len(syllables) < 2:  # no text of that language
            commit, self._letters = self._letters, ""
            return commit
        found = self._convert(syllables[:-1])
        self._letters = syllables[-1] + rest
        return found[0] if found else "".join(syllables[:-1])

    def _choose(self, index: int) -> CompositionStep:
        found = self.candidates
        if found and index >= len(found):
            return CompositionStep("", self.preedit)
        _, rest = split_syllables(self._letters)
        commit = (found[index] if found else "") + rest
        self._letters = ""
        return CompositionStep(commit)


def hanzi_candidates(syllables: tuple[str, ...]) -> list[str]:
    """Characters for these syllables, the likeliest first; Unavailable where the dictionary is not installed."""
    dag, dag_words, viterbi, hmm, simplify = _dictionary()
    asked = tuple(simplify(syllable) for syllable in syllables)
    # By words first. Where no path of words covers all syllables, by single characters.
    found = ["".join(each.path) for each in dag(dag_words, asked, path_num=_MOST_CANDIDATES, log=True)]
    if len(found) < _MOST_CANDIDATES:
        try:
            found += ["".join(each.path) for each in viterbi(hmm, asked, path_num=_MOST_CANDIDATES, log=True)]
        except KeyError:
            pass  # a syllable that the table of characters does not have
    return list(dict.fromkeys(found))


@cache
def _dictionary() -> tuple[Any, Any, Any, Any, Any]:
    try:
        # About a second and 6 MB: only when somebody types Chinese.
        from Pinyin2Hanzi import DefaultDagParams, DefaultHmmParams, dag, simplify_pinyin, viterbi
    except ImportError as error:
        raise Unavailable("the Chinese dictionary is not installed", install_extra("chinese")) from error
    return dag, DefaultDagParams(), viterbi, DefaultHmmParams(), simplify_pinyin
