"""Chinese: pinyin letters are preedit, space takes the likeliest characters where the dictionary is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from dari.errors import Unavailable
from dari.installation import install_extra
from dari.terminal.ime.composer import Step
from dari.terminal.ime.pinyin import split_syllables

Convert = Callable[[tuple[str, ...]], list[str]]

_MOST_CANDIDATES = 9
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

    def feed(self, key: str) -> Step:
        if len(key) == 1 and key.isascii() and (key.isalpha() or (key == "'" and self._letters)):
            self._letters += key.lower()
            return Step("", self.preedit)
        if self._letters and (key == "space" or (len(key) == 1 and key in "123456789")):
            return self._choose(0 if key == "space" else int(key) - 1)
        if self._letters and key == "enter":
            commit, self._letters = self._letters, ""
            return Step(commit)
        if self._letters and key == "escape":
            self._letters = ""
            return Step()
        commit = self.finish().commit
        if key in _SIGNS:
            return Step(commit + _SIGNS[key])
        return Step(commit, "", False)

    def backspace(self) -> Step:
        if not self._letters:
            return Step(is_used=False)
        self._letters = self._letters[:-1]
        return Step("", self.preedit)

    def finish(self) -> Step:
        return self._choose(0) if self._letters else Step()

    def _choose(self, index: int) -> Step:
        found = self.candidates
        if found and index >= len(found):
            return Step("", self.preedit)
        _, rest = split_syllables(self._letters)
        commit = (found[index] if found else "") + rest
        self._letters = ""
        return Step(commit)


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
