"""Rounds of a fuzz: recordings of real programs, cut, bent and mixed with what no program sends; a seed is a round."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

RECORDINGS = Path(__file__).with_name("recordings")
MOST_BYTES = 6000

Deed = Literal["feed", "resize", "restore", "read", "send"]


class Act(msgspec.Struct, frozen=True, array_like=True):
    """One thing that is done to an engine."""

    deed: Deed
    data: bytes = b""
    cols: int = 0
    rows: int = 0


class Round(msgspec.Struct, frozen=True):
    """All that a new engine goes through; as a file, it is what a crash leaves behind."""

    cols: int
    rows: int
    acts: tuple[Act, ...]

    @property
    def size(self) -> int:
        return sum(len(act.data) for act in self.acts)


@cache
def recordings() -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted(RECORDINGS.glob("*.vt")))


def make_round(seed: int) -> Round:
    dice = random.Random(seed)
    acts = tuple(_act(dice) for _ in range(dice.randint(2, 14)))
    return Round(*_size(dice), acts)


def _act(dice: random.Random) -> Act:
    kind = dice.randrange(20)
    if kind < 13:
        return Act("feed", _bytes(dice))
    if kind < 16:
        return Act("resize", b"", *_size(dice))
    return Act(dice.choice(("restore", "restore", "read", "send")))


def _size(dice: random.Random) -> tuple[int, int]:
    if dice.randrange(6) == 0:
        return dice.choice((1, 2, 3, 500)), dice.choice((1, 2, 200))
    return dice.randint(4, 130), dice.randint(2, 50)


def _bytes(dice: random.Random) -> bytes:
    kind = dice.randrange(8)
    if kind == 0:
        return dice.randbytes(dice.randint(1, 300))
    if kind == 1:
        return b"".join(_sequence(dice) for _ in range(dice.randint(1, 60)))
    return _bent(dice, _slice(dice))


def _slice(dice: random.Random) -> bytes:
    data = dice.choice(recordings())
    start = dice.randrange(len(data))
    return data[start : start + dice.randint(1, MOST_BYTES)]


def _bent(dice: random.Random, data: bytes) -> bytes:
    for _ in range(dice.randint(0, 6)):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(8):
            case 0:
                data = data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[at + dice.randint(1, 40) :]
            case 2:
                data = data[:at] + data[max(0, at - dice.randint(1, 200)) :][:MOST_BYTES]
            case 3:
                data = data[:at] + _sequence(dice) + data[at:]
            case 4:
                data = _cut_short(dice, data)
            case 5:
                data = data[:at] + _slice(dice)[:500] + data[at:]
            case 6:
                data = re.sub(rb"\d+", lambda _: b"%d" % dice.choice(_NUMBERS), data, count=dice.randint(1, 20))
            case _:
                data = data[:at] + dice.choice(_TEXTS) * dice.randint(1, 30) + data[at:]
        data = data or b"\x1b"
    return data[:MOST_BYTES]


def _cut_short(dice: random.Random, data: bytes) -> bytes:
    """The end is in the middle of a sequence, as at the end of a read."""
    starts = [found.start() for found in re.finditer(rb"\x1b", data)]
    return data[: dice.choice(starts) + dice.randint(1, 4)] if starts else data[:-1]


_NUMBERS = (0, 1, 2, 3, 5, 7, 25, 69, 80, 999, 1049, 2027, 32767, 65535, 65536, 2147483647, 4294967296, 99999999999999)
_FINALS = b"@ABCDEFGHIJKLMPSTXZ`abcdefghilmnqrstuvwxyz{|}~"
_TEXTS = (
    *(text.encode() for text in (
        "한", "字", "e\u0301", "👨\u200d👩\u200d👧", "🇰🇷", "👍🏽", "☀\ufe0f", "☀\ufe0e\u200d👩", "क्ष", "\u200d",
        "\u0301", "\u202e", "\U000e0041", "a\u0300\u0301\u0302", "ﷺ", "\u1160", "ㅎㅏㄴ", "\uffff", "\t", "\n", "\b",
        "x" * 90,
    )),
    b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f", b"\xc0\x80", b"\x9b31m", b"\x90x\x9c", b"\x00", b"\x7f", b"\x1b[!p",
    b"\x1b[?40h\x1b[?3h",
)  # fmt: skip
_STRINGS = (b"]0;", b"]2;", b"]4;1;", b"]7;file://", b"]8;id=1;", b"]10;", b"]11;?", b"]22;", b"]52;c;", b"]66;s=2;",
            b"]104", b"]133;A", b"]133;D;1", b"]7701;", b"]9;4;1;", b"]1337;File=", b"P$q", b"P+q", b"Pq", b"P1000p",
            b"_G", b"_Gf=32,s=1,v=1,a=T;", b"^", b"X", b"k")  # fmt: skip


def _sequence(dice: random.Random) -> bytes:
    kind = dice.randrange(6)
    if kind < 3:
        prefix, between = (
            dice.choice((b"", b"", b"", b"?", b">", b"=", b"<")),
            dice.choice((b"", b"", b"", b" ", b"$", b"*", b"'")),
        )
        numbers = [
            b"%d" % dice.choice(_NUMBERS) if dice.randrange(5) else b"" for _ in range(dice.choice((0, 1, 1, 2, 3, 40)))
        ]
        return (
            b"\x1b[" + prefix + dice.choice((b";", b";", b":")).join(numbers) + between + bytes([dice.choice(_FINALS)])
        )
    if kind == 3:
        body = dice.choice((b"", b"?", b"x" * dice.randrange(3000), dice.randbytes(20), b"#fff", b"aGk=", b"http://x"))
        return b"\x1b" + dice.choice(_STRINGS) + body + dice.choice((b"\x07", b"\x1b\\", b"\x9c", b"\x18", b""))
    if kind == 4:
        return (
            b"\x1b"
            + bytes([dice.randrange(0x20, 0x7F)])
            + (bytes([dice.randrange(0x20, 0x7F)]) if dice.randrange(2) else b"")
        )
    return dice.choice(_TEXTS)
