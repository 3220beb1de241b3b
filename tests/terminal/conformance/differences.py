"""Where libghostty-vt and @xterm/headless are known to differ, and who is right.

A stream on which the two disagree is accepted only when one of these touches it and the disagreement is of a kind
that it explains. Each carries an example, and a test shows that the example still differs: what is mended in
either library has to leave this list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from dari.terminal.engine.ghostty.screen import GhosttyEngine
from tests.terminal.conformance.streams import Step, Stream

Aspect = Literal["text", "cursor", "style", "fall"]
TEXT: frozenset[Aspect] = frozenset({"text", "cursor", "style"})
STYLE: frozenset[Aspect] = frozenset({"style"})
FALL: frozenset[Aspect] = frozenset({"fall"})


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of our screen just before a step."""

    step: Step
    waits_to_wrap: bool
    history: int
    is_alternate: bool
    col: int

    def is_like(self, pattern: re.Pattern[str]) -> bool:
        return isinstance(self.step, str) and pattern.search(self.step) is not None


@dataclass(frozen=True, slots=True)
class Difference:
    name: str
    right: Literal["ours", "theirs", "open"]
    """Whose behaviour xterm itself has; `open` where no rule decides."""
    why: str
    example: Stream
    aspects: frozenset[Aspect]
    touches: Callable[[Stream, Sequence[Moment]], bool]


def moments(stream: Stream) -> list[Moment]:
    engine = GhosttyEngine(stream.cols, stream.rows, 1000)
    found = []
    for step in stream.steps:
        waits = bool(engine._values.read(engine._native.pointer, "CURSOR_PENDING_WRAP"))
        found.append(Moment(step, waits, engine.history, engine.is_alternate, engine.cursor.col))
        if isinstance(step, str):
            engine.feed(step.encode())
        else:
            engine.resize(*step)
    engine.close()
    return found


def explain(stream: Stream, aspects: frozenset[Aspect]) -> list[Difference]:
    """The known differences that explain these aspects of a disagreement; none when part of it stays unexplained."""
    history = moments(stream)
    found = [known for known in KNOWN if known.aspects & aspects and known.touches(stream, history)]
    return found if aspects <= frozenset().union(*(known.aspects for known in found)) else []


_ACTS = re.compile(r"\x1b[78]|\x1b\[[?\d;]*[A-Za-ln-z@`]")  # all but styles
_SAVES = re.compile(r"\x1b7|\x1b\[s|\x1b\[\?1049h")
_RESTORES = re.compile(r"\x1b8|\x1b\[u|\x1b\[\?1049l")
_SWITCHES = re.compile(r"\x1b\[\?(?:1049|1047|47)[hl]")
_ENTERS = re.compile(r"\x1b\[\?(?:1049|1047|47)h")
_REGION = re.compile(r"\x1b\[\d+;\d+r")
_PAINTS = re.compile(r"\x1b\[(?:[\d;]*;)?(?:4[0-8]|10[0-7])[;m]")


def _has(pattern: str) -> Callable[[Stream, Sequence[Moment]], bool]:
    found = re.compile(pattern)
    return lambda stream, _: found.search(stream.text) is not None


def _acts_at_edge(_: Stream, history: Sequence[Moment]) -> bool:
    return any(moment.waits_to_wrap and moment.is_like(_ACTS) for moment in history)


def _restores_after_scrolling(_: Stream, history: Sequence[Moment]) -> bool:
    saved = [at for at, moment in enumerate(history) if moment.is_like(_SAVES)]
    restored = [at for at, moment in enumerate(history) if moment.is_like(_RESTORES)]
    has_scrolled = any(moment.history for moment in history)
    return has_scrolled and bool(restored) and (not saved or saved[0] < restored[-1])


def _region_and_screens(stream: Stream, _: Sequence[Moment]) -> bool:
    return _REGION.search(stream.text) is not None and _SWITCHES.search(stream.text) is not None


def _enters_twice(_: Stream, history: Sequence[Moment]) -> bool:
    return any(moment.is_alternate and moment.is_like(_ENTERS) for moment in history)


def _paints_and(pattern: re.Pattern[str]) -> Callable[[Stream, Sequence[Moment]], bool]:
    return lambda stream, _: _PAINTS.search(stream.text) is not None and pattern.search(stream.text) is not None


def _draws_lines_with_wide(stream: Stream, _: Sequence[Moment]) -> bool:
    return re.search(r"\x1b[()]0", stream.text) is not None and not stream.text.isascii()


KNOWN: tuple[Difference, ...] = (
    Difference(
        "zero is not one",
        "theirs",
        "libghostty-vt takes an explicit 0 of HPR, VPR, CBT, IL, DL, ICH and DCH for nothing to do, not for 1",
        Stream(("abc", "\x1b[0L", "x")),
        TEXT,
        _has(r"\x1b\[0[@aeIZLMPSTX]"),
    ),
    Difference(
        "an empty last style is not reset",
        "theirs",
        "libghostty-vt leaves the empty parameter at the end of `CSI 3 ; m` out; others take it for 0",
        Stream(("\x1b[3;m", "x")),
        STYLE,
        _has(r"\x1b\[[\d;]*;m"),
    ),
    Difference(
        "while the cursor waits to wrap",
        "ours",
        "xterm.js keeps the cursor behind the last column there: EL erases nothing, CBT stays, DECRC forgets the wait; "
        "a VT's cursor is in the last column",
        Stream(("x" * 20, "\x1b[K")),
        TEXT,
        _acts_at_edge,
    ),
    Difference(
        "a saved cursor scrolls along",
        "ours",
        "xterm.js saves the row of its buffer, so a restored cursor is higher by what has scrolled since",
        Stream(("\x1b[6;1H", "\x1b7", "\n\n", "\x1b8", "x")),
        TEXT,
        _restores_after_scrolling,
    ),
    Difference(
        "each screen has its scroll region",
        "ours",
        "xterm.js keeps a region for each screen; in xterm and here there is one",
        Stream(("\x1b[?1047h", "\x1b[2;4r", "\x1b[?1047l", "a", "\x1bM", "b")),
        TEXT,
        _region_and_screens,
    ),
    Difference(
        "entering the alternate screen twice",
        "theirs",
        "libghostty-vt clears it again, others only when it is entered from the main screen",
        Stream(("\x1b[?1049h", "a", "\x1b[?1049h")),
        TEXT,
        _enters_twice,
    ),
    Difference(
        "the alternate screen is not painted",
        "theirs",
        "libghostty-vt clears it in the terminal's own background, others in the one that is set",
        Stream(("\x1b[41m", "\x1b[?1049h")),
        STYLE,
        _paints_and(_SWITCHES),
    ),
    Difference(
        "scrolled-in lines are painted",
        "ours",
        "xterm.js fills the lines of SD with the terminal's own background, xterm with the one that is set",
        Stream(("\x1b[41m", "\x1b[2T")),
        STYLE,
        _paints_and(re.compile(r"\x1b\[\d*T")),
    ),
    Difference(
        "links are underlined",
        "open",
        "xterm.js underlines the text of OSC 8 in its cells; here the link is a fact of its own",
        Stream(("\x1b]8;;http://example.com\x1b\\", "link")),
        STYLE,
        _has(r"\x1b\]8;"),
    ),
    Difference(
        "line drawing and characters beyond ASCII",
        "theirs",
        "libghostty-vt shows a blank for a character that the line-drawing set does not have, others the character",
        Stream(("\x1b(0", "한글")),
        TEXT,
        _draws_lines_with_wide,
    ),
    Difference(
        "the cursor after reflow",
        "ours",
        "xterm.js wraps the line anew but leaves the cursor in its column, away from the text it stood behind",
        Stream(("longer than a row of it", (38, 5), "x")),
        TEXT,
        lambda _, history: any(moment.col and not isinstance(moment.step, str) for moment in history),
    ),
    Difference(
        "painted blanks are wrapped anew",
        "open",
        "libghostty-vt takes blanks with a background for text when the width changes, xterm.js drops them",
        Stream(("\x1b[41m", "\r\n" * 8, (10, 6), "\r\n", (30, 6), "x")),
        TEXT,
        lambda stream, _: stream.resizes and _PAINTS.search(stream.text) is not None,
    ),
    Difference(
        "a blank before a wide character at the edge",
        "ours",
        "xterm.js takes an empty last column before a wrapped wide character for padding and loses it on widening",
        Stream(("\t", "👍x", "\r\n", (8, 3), (29, 5))),
        TEXT,
        lambda stream, _: stream.resizes and re.search(r"[\t\b]|(?<!\r)\n", stream.text) is not None,
    ),
    Difference(
        "no wrapping and a wide character too many",
        "open",
        "xterm.js cuts the wide character in the last columns in half when another does not fit behind it",
        Stream(("字" * 10, "\x1b[?7l", "한글")),
        TEXT,
        lambda stream, _: "\x1b[?7l" in stream.text and not stream.text.isascii(),
    ),
    Difference(
        "inserting a wide character that wraps",
        "theirs",
        "libghostty-vt overwrites in the next row what insert mode has to move",
        Stream(("\r\nb", "\x1b[1;20H", "\x1b[4h", "字")),
        TEXT,
        lambda stream, _: "\x1b[4h" in stream.text and not stream.text.isascii(),
    ),
    Difference(
        "inserting inside a wide character",
        "ours",
        "xterm.js loses the blank that its second half becomes, so the rest is one column short",
        Stream(("\x1b[6;1f", "한글", "\x1b[8;2f", "\x1b[@")),
        TEXT,
        lambda stream, _: re.search(r"\x1b\[\d*@", stream.text) is not None and not stream.text.isascii(),
    ),
    Difference(
        "lines up in origin mode",
        "ours",
        "xterm.js moves CPL and CNL by the rows of the screen and not those of the region",
        Stream(("\x1b[?6h", "\x1b[4;5r", "\x1b[6F")),
        TEXT,
        lambda stream, _: "\x1b[?6h" in stream.text and re.search(r"\x1b\[\d*[EF]", stream.text) is not None,
    ),
    Difference(
        "what the alternate screen still shows",
        "ours",
        "xterm.js clears it whenever it is left; xterm only for 1047, so that 47 shows what was there",
        Stream(("\x1b[?47h", "word", "\x1b[?47l", "\x1b[?47h")),
        TEXT,
        lambda _, history: sum(moment.is_like(_ENTERS) for moment in history) > 1,
    ),
    Difference(
        "erasing above from the last column of the screen",
        "ours",
        "xterm.js marks the row below, which is not there, and throws",
        Stream(("\x1b[6;20H", "\x1b[1J")),
        FALL,
        _has(r"\x1b\[1J"),
    ),
)
