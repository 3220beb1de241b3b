"""Streams that nobody wrote by hand: text, styles, moves, edits, regions, both screens and sizes, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

Step = str | tuple[int, int]
"""Text to take in, or columns and rows to change to."""

COLS, ROWS = 20, 6
MOST_STEPS = 40

_WORDS = ("a", "word", "two words", "x" * 7, "1,234.5", "longer than a row of it", "=" * 20, "-" * 19)
_WIDE = ("한", "한글", "漢字かな", "表", "字" * 10, "a字", "ｆｕｌｌ")
# No clusters of emoji: the oracle has no mode 2027. The probes ask for those.
_JOINED = ("e\u0301", "n\u0303o", "👩", "👍x", "가\u0301", "a\u0301\u0323")
_ENDS = ("\r\n", "\r\n", "\r\n", "\n", "\r", "\t", "\b")
_STYLES = ("0", "1", "2", "3", "4", "7", "8", "9", "22", "23", "24", "27", "28", "29", "39", "49")


@dataclass(frozen=True, slots=True)
class Stream:
    steps: tuple[Step, ...]
    cols: int = COLS
    rows: int = ROWS

    @property
    def text(self) -> str:
        """All that is taken in, sizes left out."""
        return "".join(step for step in self.steps if isinstance(step, str))

    @property
    def resizes(self) -> bool:
        return any(not isinstance(step, str) for step in self.steps)

    def __str__(self) -> str:
        shown = [repr(step) if isinstance(step, str) else "resize {}×{}".format(*step) for step in self.steps]
        return f"{self.cols}×{self.rows}: " + ", ".join(shown)


def generate(seed: int) -> Stream:
    """The same stream for the same seed, on every machine."""
    dice = random.Random(seed)
    makers = _MAKERS[dice.choice(tuple(_MAKERS))]
    weighted = [maker for maker, weight in makers for _ in range(weight)]
    steps: list[Step] = []
    for _ in range(dice.randint(1, MOST_STEPS)):
        step = dice.choice(weighted)(dice)
        # The oracle loses the cursor of a line that is wrapped anew, so sizes change while it stands on an empty one.
        steps += [step] if isinstance(step, str) else ["\r\n", step]
    return Stream(tuple(steps))


Maker = Callable[[random.Random], Step]


def _word(dice: random.Random) -> Step:
    return dice.choice(_WORDS)


def _wide(dice: random.Random) -> Step:
    return dice.choice(_WIDE)


def _joined(dice: random.Random) -> Step:
    return dice.choice(_JOINED)


def _end(dice: random.Random) -> Step:
    return dice.choice(_ENDS)


def _style(dice: random.Random) -> Step:
    codes = []
    for _ in range(dice.randint(1, 3)):
        kind = dice.randrange(6)
        if kind < 3:
            codes.append(dice.choice(_STYLES))
        elif kind == 3:
            codes.append(str(dice.choice((30, 40, 90, 100)) + dice.randrange(8)))
        elif kind == 4:
            codes.append(f"{dice.choice((38, 48))};5;{dice.randrange(256)}")
        else:
            codes.append("{};2;{};{};{}".format(dice.choice((38, 48)), *(dice.randrange(256) for _ in range(3))))
    return f"\x1b[{';'.join(codes)}m"


def _move(dice: random.Random) -> Step:
    kind = dice.randrange(4)
    if kind == 0:
        return f"\x1b[{dice.randint(0, ROWS + 2)};{dice.randint(0, COLS + 2)}{dice.choice('Hf')}"
    if kind == 1:
        return dice.choice(("\x1b[H", "\x1bM", "\x1bD", "\x1bE", "\x1b7", "\x1b8", "\x1b[s", "\x1b[u"))
    return f"\x1b[{dice.choice(('', *range(1, 10)))}{dice.choice('ABCDEFGde`aIZ')}"


def _edit(dice: random.Random) -> Step:
    if dice.randrange(2):
        return f"\x1b[{dice.choice(('', 0, 1, 2))}{dice.choice('JK')}"
    return f"\x1b[{dice.choice(('', *range(1, 6)))}{dice.choice('@PXLM')}"


def _region(dice: random.Random) -> Step:
    kind = dice.randrange(4)
    if kind == 0:
        top = dice.randint(1, ROWS - 1)
        return f"\x1b[{top};{dice.randint(top + 1, ROWS)}r"
    if kind == 1:
        return "\x1b[r"
    return f"\x1b[{dice.randint(1, 3)}{dice.choice('ST')}"


def _mode(dice: random.Random) -> Step:
    number = dice.choice(("?6", "?7", "4", "?25", "?1", "?2004"))
    return f"\x1b[{number}{dice.choice('hl')}"


def _screen(dice: random.Random) -> Step:
    number = dice.choice((1049, 1049, 1047, 47))
    return f"\x1b[?{number}{dice.choice('hl')}"


def _charset(dice: random.Random) -> Step:
    return dice.choice(("\x1b(0", "\x1b(B", "\x1b)0", "\x0e", "\x0f", "lqqk", "x  x"))


def _silent(dice: random.Random) -> Step:
    """What must leave no trace on the screen."""
    return dice.choice(
        (
            "\x1b]0;title\x07",
            "\x1b]8;;http://example.com\x1b\\",
            "\x1b]133;C\x07",
            "\x1b]9999;x\x07",
            "\x1bPqx\x1b\\",
            "\x1b_app\x1b\\",
            "\x1b[>4;2m",
            "\x1b[?2026h",
            "\x1b[?2026l",
            "\x1b[3 q",
            "\x07",
            "\x1b[c",
            "\x1b[6n",
            "\x00",
        )
    )


def _size(dice: random.Random) -> Step:
    return dice.randint(4, 40), dice.randint(2, 12)


_TEXT = ((_word, 4), (_wide, 2), (_joined, 1), (_end, 4))
_MAKERS: dict[str, tuple[tuple[Maker, int], ...]] = {
    "text": _TEXT,
    "styled": (*_TEXT, (_style, 5)),
    "drawn": (*_TEXT, (_style, 2), (_move, 5), (_edit, 4)),
    "regions": (*_TEXT, (_move, 3), (_edit, 2), (_region, 4)),
    "modes": (*_TEXT, (_style, 1), (_move, 3), (_edit, 2), (_mode, 2), (_charset, 2), (_silent, 2)),
    "screens": (*_TEXT, (_style, 1), (_move, 3), (_edit, 2), (_screen, 3)),
    "sizes": (*_TEXT, (_size, 2)),
    "everything": (
        *_TEXT, (_style, 2), (_move, 3), (_edit, 2), (_region, 1), (_mode, 1), (_charset, 1), (_screen, 1), (_silent, 1)
    ),
}  # fmt: skip
