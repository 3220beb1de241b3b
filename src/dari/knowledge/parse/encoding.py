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
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_WANSUNG_HANGUL = re.compile(rb"(?:[\xb0-\xc8][\xa1-\xfe])")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
# One control character in a hundred bytes is a terminal's log; more is a program or a picture.
_MAX_CONTROL_SHARE = 0.01
_MAX_BAD_SHARE = 0.02


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
    good = sum(1 for one in repaired[: _SAMPLE_BYTES * 4] if one > "\x7f") - bad
    # A cut or a slip in a UTF-8 file: nearly all that is not ASCII decodes.
    if good > 0 and bad <= max(1, good * _MAX_BAD_SHARE) and bad < good:
        return repaired, [f"{bad} bytes are not UTF-8 and were replaced, the first at {first_bad}"]
    if _is_cp949(data[:_SAMPLE_BYTES]):
        text = data.decode("cp949", "replace")
        bad = text.count("\ufffd")
        if not bad:
            return text, ["decoded as cp949: a guess"]
        # A slip or a cut, as in UTF-8: a log that counts its columns in bytes has many, and its words are still words.
        if bad <= max(1, sum(map(_is_hangul, text[: _SAMPLE_BYTES * 4])) * _MAX_BAD_SHARE):
            return text, [f"decoded as cp949: a guess; {bad} bytes were replaced"]
    name = "cp1252" if _is_cp1252(data) else "latin-1"
    return data.decode(name, "replace"), [f"decoded as {name}: a guess"]


def _is_hangul(letter: str) -> bool:
    return "가" <= letter <= "힣"


def _is_cp949(sample: bytes) -> bool:
    """Korean bytes stand in pairs, most of them among the 2,350 common syllables; accents of Latin-1 stand alone."""
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
