"""Romaji to kana: what each run of letters stands for, and how letters are joined while they come."""

from __future__ import annotations

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


def to_kana(letters: str) -> str:
    """Hiragana for a whole text of romaji."""
    done, pending = "", ""
    for letter in letters:
        kana, pending = join_letter(pending, letter)
        done += kana
    return done + end_letters(pending)


def to_katakana(hiragana: str) -> str:
    """Every hiragana as katakana; other characters stay."""
    return "".join(chr(ord(char) + 0x60) if "ぁ" <= char <= "ゖ" else char for char in hiragana)


def to_hiragana(katakana: str) -> str:
    """Every katakana as hiragana; other characters stay."""
    return "".join(chr(ord(char) - 0x60) if "ァ" <= char <= "ヶ" else char for char in katakana)
