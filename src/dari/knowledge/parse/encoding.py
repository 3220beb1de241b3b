"""From bytes to text: the encoding is read off the bytes, and a guess is said to be one."""

from __future__ import annotations

import codecs
import re

from dari.knowledge.parse.limits import ParseFailed

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE_BYTES = 64 << 10
_HIGH = re.compile(rb"[\x80-\xff]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_HIGH_TEXT = re.compile(r"[^\x00-\x7f]")
# Seven bits a byte, and escapes that switch alphabets: mail in Japanese or Korean.
_ISO_2022 = re.compile(rb"\x1b\$(?:[@B]|\([CD]|\)C)")
_WANSUNG_HANGUL = re.compile(rb"(?:[\xb0-\xc8][\xa1-\xfe])")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
# One control character in a hundred bytes is a terminal's log; more is a program or a picture.
_MAX_CONTROL_SHARE = 0.01
_MAX_BAD_SHARE = 0.02

# The most frequent characters of running text. They are 45 to 90 % of the letters beyond ASCII in a page of its
# language, at most 30 % where a page is read in another's encoding, and none where it has accents of western Europe
# (150 help pages of each).
_KOREAN = (
    "이다는의에을가고하지로사기한를은인어도아자리시대정스해서있나그라과일수장부주제전들보원상여구조만것면우소"
    "안동으치비성국유신중위무발공세관게결년화생행했적였오까마개모내연재경선요물입간당체되바단계교니러드강실문"
    "직음학양미차영업며방회진분금할말심명속설각통받합터트용없산와운데작든려된법래반불파표크같살알"
)
_KANA = "".join(map(chr, (*range(0x3041, 0x3097), *range(0x30A1, 0x30FB)))) + "ー"
_JAPANESE = (
    "日一国会人年大十二本中長出三同時政事自行社見月分議後前民生連五発間対上部東者党地合市業内相方四定今回新場"
    "金員九入選立開手米力学問高代明実円関決子動京全目表戦経通外最言氏現理調体化田当八六約主題下首意法不来作性"
    "的要用制治度務強気小七成期公野協取都和統以機平総加山思家話世受区領多県続進正安設保改数記院女初北午指権心"
    "界支第産結百派点教報済書府活原先共得解名交資予川向際査勝面委告軍文反元重近千考判認画海参売利組知案道信策"
)
_SIMPLIFIED = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道"
    "行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意"
    "无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什"
    "二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义"
    "各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金"
)
_TRADITIONAL = (
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道"
    "行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日軍者意"
    "無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什"
    "二等產或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義"
    "各入幾口認條平系氣題活爾更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直德資命山金"
)
_FREQUENT = {
    "cp949": frozenset(_KOREAN),
    "cp932": frozenset(_KANA + _JAPANESE),
    "euc_jp": frozenset(_KANA + _JAPANESE),
    "gb18030": frozenset(_SIMPLIFIED),
    "cp950": frozenset(_TRADITIONAL),
}
_MIN_FREQUENT_SHARE = 0.15
# Alphabets of one byte a letter. Only words count: read as Cyrillic, the accents of French are letters inside Latin
# words. The frequent letters are 45 to 60 % of a page of the language, at most 30 % in another's encoding.
_CYRILLIC, _GREEK = frozenset("оеаинтсрвлкм"), frozenset("αοιετσνηρπκς")
_ALPHABETS = {
    "cp1251": _CYRILLIC,
    "koi8_u": _CYRILLIC,
    "cp866": _CYRILLIC,
    "iso8859_5": _CYRILLIC,
    "cp1253": _GREEK,
}
_WORD = re.compile(r"(?<![A-Za-z])[\u0370-\u03ff\u0400-\u045f\u0490\u0491]{3,}(?![A-Za-z])")
_MIN_LETTER_SHARE = 0.4


def decode(data: bytes) -> tuple[str, list[str]]:
    """The text with `\\n` as its only line end, and warnings. ParseFailed `binary` when it is not text."""
    text, warnings = _decode(data)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, warnings


def _decode(data: bytes) -> tuple[str, list[str]]:
    for mark, name in _BOMS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(name, "replace")
            return text, ["some bytes do not fit its byte order mark and were replaced"] if "\ufffd" in text else []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _decode_legacy(data, error.start)
    if "\0" in text:
        return _decode_with_nul(data)
    if escape := _ISO_2022.search(data):
        name = "iso2022_kr" if escape[0].endswith(b")C") else "iso2022_jp_2"
        try:
            return data.decode(name), [f"decoded as {name}: a guess"]
        except UnicodeDecodeError:
            pass
    _refuse_binary(data)
    return text, []


def _decode_with_nul(data: bytes) -> tuple[str, list[str]]:
    """UTF-16 without a mark has a NUL in every second place wherever the text is ASCII."""
    sample = data[:_SAMPLE_BYTES]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    for name, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if zeros > max(3, len(sample) // 10) and others * 6 < zeros:
            try:
                return data.decode(name), [f"decoded as {name}: a guess, it has no byte order mark"]
            except UnicodeDecodeError:
                break
    raise ParseFailed("binary", "a text file must not hold NUL bytes", "it is binary data under a text file's name")


def _decode_legacy(data: bytes, first_bad: int) -> tuple[str, list[str]]:
    if b"\0" in data[:_SAMPLE_BYTES]:
        return _decode_with_nul(data)
    _refuse_binary(data)
    repaired = data.decode("utf-8", "replace")
    bad = repaired.count("\ufffd")
    good = _count_beyond_ascii(repaired) - bad
    # A cut or a slip in a UTF-8 file: nearly all that is not ASCII decodes.
    if good > 0 and bad <= max(1, good * _MAX_BAD_SHARE) and bad < good:
        return repaired, [f"{bad} bytes are not UTF-8 and were replaced, the first at {first_bad}"]
    first = _HIGH.search(data)
    sample = data[first.start() if first else 0 :][:_SAMPLE_BYTES]  # from the first byte of a pair
    if name := _east_asian(sample) or _alphabet(sample) or ("cp949" if _is_cp949(sample) else ""):
        text = data.decode(name, "replace")
        bad = text.count("\ufffd")
        if not bad:
            return text, [f"decoded as {name}: a guess"]
        # A slip or a cut, as in UTF-8: a log that counts its columns in bytes has many, and its words are still words.
        if bad <= max(1, _count_beyond_ascii(text) * _MAX_BAD_SHARE):
            return text, [f"decoded as {name}: a guess; {bad} bytes were replaced"]
    name = "cp1252" if _is_cp1252(data) else "latin-1"
    return data.decode(name, "replace"), [f"decoded as {name}: a guess"]


def _count_beyond_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _east_asian(sample: bytes) -> str:
    """The encoding in which the sample reads as running text of its language; "" when it does so in none."""
    shares: dict[str, float] = {}
    for name, frequent in _FREQUENT.items():
        high = _HIGH_TEXT.findall(sample.decode(name, "replace"))
        letters = list(filter(str.isalpha, high))  # not the lines of tables, which stand in the same place for all
        found = sum(map(frequent.__contains__, letters))
        if found > 1 and high.count("\ufffd") <= max(1, len(letters) * _MAX_BAD_SHARE):
            shares[name] = found / len(letters)
    return _best(shares, _MIN_FREQUENT_SHARE)


def _alphabet(sample: bytes) -> str:
    """The same for Cyrillic and Greek."""
    shares: dict[str, float] = {}
    for name, frequent in _ALPHABETS.items():
        text = sample.decode(name, "replace")
        letters = sum(map(str.isalpha, _HIGH_TEXT.findall(text)))
        found = sum(map(frequent.__contains__, "".join(_WORD.findall(text))))
        shares[name] = found / max(1, letters)
    return _best(shares, _MIN_LETTER_SHARE)


def _best(shares: dict[str, float], least: float) -> str:
    best = max(shares, key=shares.__getitem__, default="")
    return best if best and shares[best] >= least else ""


def _is_cp949(sample: bytes) -> bool:
    """Korean bytes stand in pairs, most of them among the 2,350 common syllables; accents of Latin-1 stand alone. For
    lists of names, which have few of the frequent syllables."""
    runs = _HIGH_RUN.findall(sample)
    total = sum(map(len, runs))
    hangul = 2 * sum(len(_WANSUNG_HANGUL.findall(run)) for run in runs)
    return hangul >= total * 0.6


def _is_cp1252(data: bytes) -> bool:
    return any(0x80 <= byte < 0xA0 for byte in data[:_SAMPLE_BYTES])


def _refuse_binary(data: bytes) -> None:
    sample = data[:_SAMPLE_BYTES]
    controls = len(_CONTROL.findall(sample))
    if controls > max(8, len(sample) * _MAX_CONTROL_SHARE):
        raise ParseFailed(
            "binary",
            f"a text file must be text, got {controls} control bytes in its first {len(sample)}",
            "it is binary data under a text file's name",
        )
