"""What reaches the program when something is typed with an input method: commits and plain keys, never the preedit."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from dari.errors import InvalidInput
from dari.terminal.engine.keys import Key, parse_key
from dari.terminal.input_methods.chinese import PinyinComposer
from dari.terminal.input_methods.composer import Composer, CompositionStep
from dari.terminal.input_methods.hangul import HangulComposer, decompose, is_hangul
from dari.terminal.input_methods.japanese import KanaComposer, Script

Language = Literal["korean", "japanese", "chinese"]
Mode = Literal["auto", "keys", "text"]
MAX_TYPED_CHARS = 100_000
MAX_PREEDIT_CHARS = 1 << 20
"""Of all preedits together: each key shows the whole phrase again."""

_NAMED = re.compile(r"<([A-Za-z][A-Za-z0-9+-]*)>")
_NAMES = {
    "\n": "enter",
    "\r": "enter",
    "\t": "tab",
    " ": "space",
    "\x1b": "escape",
    "\x7f": "backspace",
    "\b": "backspace",
}
_PLAIN = {"enter": "\r", "tab": "\t", "space": " "}


@dataclass(frozen=True, slots=True)
class InputPlan:
    """`writes`: each is one write to the program, a text or a key. `preedits`: what was shown after each key.

    Preedit is what a person has not said yet, so it is empty unless it was asked for.
    """

    writes: tuple[str | Key, ...]
    key_count: int
    preedits: tuple[str, ...] = ()

    @property
    def committed(self) -> str:
        """All text that reaches the program."""
        return "".join(write for write in self.writes if isinstance(write, str))


def make_composer(language: Language, script: Script = "hiragana") -> Composer:
    """The input method of a language; `script` is for Japanese."""
    if language == "korean":
        return HangulComposer()
    return KanaComposer(script) if language == "japanese" else PinyinComposer()


def type_with_ime(
    typed: str,
    language: Language,
    mode: Mode = "auto",
    *,
    script: Script = "hiragana",
    shows_preedit: bool = False,
) -> InputPlan:
    """Plan the typing of `typed`.

    `keys`: Latin letters as on the keyboard, with `<Backspace>`, `<Enter>`, `<Escape>` between them: `gksrmf` is 한글.
    `text`: the text that shall arrive; Korean goes through the automaton key by key, other text is committed as it is.
    `auto`: keys when all is ASCII, else text.
    """
    if len(typed) > MAX_TYPED_CHARS:
        raise InvalidInput(f"{len(typed)} characters are too many to type", f"type at most {MAX_TYPED_CHARS}, or paste")
    if mode == "auto":
        mode = "keys" if typed.isascii() else "text"
    if mode == "keys":
        return _Typing(make_composer(language, script), shows_preedit).run(_read_keys(typed))
    return _plan_text(typed, language, shows_preedit)


class _Typing:
    def __init__(self, composer: Composer, shows_preedit: bool) -> None:
        self._composer = composer
        self._shows_preedit = shows_preedit
        self.writes: list[str | Key] = []
        self._preedits: list[str] = []
        self._preedit_chars = 0
        self._count = 0

    def run(self, keys: list[str | Key]) -> InputPlan:
        for key in keys:
            self.press(key)
        return self.end()

    def press(self, key: str | Key) -> None:
        self._count += 1
        if isinstance(key, Key):
            # A chord such as C-c is for the program; what is open is committed first, as desktops do.
            self._take(CompositionStep(self._composer.finish().commit, "", False), key)
        elif key == "backspace":
            self._take(self._composer.backspace(), Key("backspace"))
        else:
            self._take(self._composer.feed(key), _PLAIN.get(key, Key("escape") if key == "escape" else key))
        if self._shows_preedit:
            self._preedits.append(self._composer.preedit)
            self._preedit_chars += len(self._preedits[-1])
            if self._preedit_chars > MAX_PREEDIT_CHARS:
                raise InvalidInput(
                    f"the preedits have more than {MAX_PREEDIT_CHARS} characters",
                    "type less at once, or leave them out",
                )

    def flush(self) -> None:
        self._take(self._composer.finish(), "")

    def end(self) -> InputPlan:
        self.flush()
        return InputPlan(tuple(self.writes), self._count, tuple(self._preedits))

    def _take(self, step: CompositionStep, key: str | Key) -> None:
        if step.commit:
            self.writes.append(unicodedata.normalize("NFC", step.commit))
        if not step.is_used and key != "":
            self.writes.append(key)


def _plan_text(text: str, language: Language, shows_preedit: bool) -> InputPlan:
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n"))
    for char in text:
        if unicodedata.category(char) == "Cc" and char not in "\n\r\t":
            raise InvalidInput(f"{char!r} is a control character, not text", "send it as a key")
    if language != "korean":
        runs = re.findall(r"[\x00-\x7f]+|[^\x00-\x7f]+", text)
        return InputPlan(tuple(run.replace("\n", "\r") for run in runs), len(text))
    typing = _Typing(HangulComposer(), shows_preedit)
    for char in text:
        if not is_hangul(char):
            typing.flush()
            # Not through the automaton: an `a` in a Korean text is an a, not ㅁ.
            typing.writes.append("\r" if char == "\n" else char)
            continue
        is_jamo = not "가" <= char <= "힣"
        if is_jamo:
            typing.flush()
        for key in decompose(char):
            typing.press(key)
        if is_jamo:
            # Letters that stand alone must not join with what follows: ㅋㅏ is not 카.
            typing.flush()
    return typing.end()


def _read_keys(typed: str) -> list[str | Key]:
    keys: list[str | Key] = []
    at = 0
    while at < len(typed):
        if match := _NAMED.match(typed, at):
            try:
                key = parse_key(match[0])
            except InvalidInput:
                key = None
            if key is not None:
                keys.append(key.name if key == Key(key.name) and key.name in _NAMES.values() else key)
                at = match.end()
                continue
        char = typed[at]
        if unicodedata.category(char) == "Cc" and char not in _NAMES:
            raise InvalidInput(f"{char!r} is a control character, not a key of the keyboard", "write it as <Ctrl-C>")
        keys.append(_NAMES.get(char, char))
        at += 1
    return keys
