"""One terminal screen: bytes in, text, cells, cursor and modes out. No I/O happens here.

Two implementations: libghostty-vt (`ghostty/`), and bittty (`fallback/`), which is pure Python and runs anywhere.
Rows are numbered from the top of the screen: 0 … rows-1 are on it, -1 is the newest row that scrolled off,
-history the oldest that is kept. While a program uses the alternate screen there is no history.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from dari.errors import InvalidInput, Unavailable
from dari.installation import install_extra
from dari.terminal.engine.grid import Grid
from dari.terminal.engine.keys import Key

Form = Literal["plain", "vt", "html"]
Shape = Literal["block", "bar", "underline"]
MouseTracking = Literal["off", "x10", "normal", "button", "any"]
MouseFormat = Literal["x10", "utf8", "sgr", "urxvt", "sgr_pixels"]
MouseAction = Literal["press", "release", "move"]
MouseButton = Literal["left", "middle", "right", "wheel_up", "wheel_down", "none"]

DEFAULT_HISTORY_ROWS = 10_000
MAX_COLS = 2000
MAX_ROWS = 2000
MAX_TITLE_CHARS = 2048
MAX_CLIPBOARD_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Cursor:
    col: int
    row: int
    shape: Shape
    is_visible: bool
    is_blinking: bool


@dataclass(frozen=True, slots=True)
class Modes:
    """What the program asked the terminal to do; keys, pastes and mouse reports are encoded by these."""

    alternate: bool = False
    application_cursor: bool = False
    application_keypad: bool = False
    bracketed_paste: bool = False
    mouse: MouseTracking = "off"
    mouse_format: MouseFormat = "x10"
    focus: bool = False
    insert: bool = False
    origin: bool = False
    wrap: bool = True
    reverse_video: bool = False
    synchronized: bool = False
    kitty_keyboard: int = 0


class Mark(Protocol):
    """A place in the text that moves with it: scrolling and reflow keep it, a full history loses it."""

    @property
    def is_lost(self) -> bool:
        """The text at the mark is gone."""
        ...


class Engine(Protocol):
    """What panes, screenshots and readers may ask of a screen."""

    name: str
    on_reply: Callable[[bytes], None]
    """Answers to DA, DSR and other questions; to be written to the program."""
    on_osc: Callable[[int, bytes], None]
    """OSC 133 and 7700…7799, called when exactly the bytes up to their end have been taken in."""
    hears_prompts: bool
    """Whether `on_osc` gets OSC 133; a pane whose shell sends 7701 does not need both."""
    on_bell: Callable[[], None]
    on_clipboard: Callable[[bytes], None]
    """OSC 52 writes of at most CLIPBOARD_BYTES; reads are never answered."""

    @property
    def cols(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def history(self) -> int: ...
    @property
    def history_rows(self) -> int:
        """How many rows are kept at least once they have scrolled off."""
        ...

    @property
    def title(self) -> str: ...
    @property
    def cwd(self) -> str:
        """The path of the last OSC 7; empty when none came or it was about another machine."""
        ...

    @property
    def consumed(self) -> int:
        """Bytes taken in so far. Inside `on_osc` it counts to the end of that sequence."""
        ...

    @property
    def cursor(self) -> Cursor: ...
    @property
    def cursor_column(self) -> int:
        """`cursor.col` alone, which is cheaper to ask for."""
        ...

    @property
    def modes(self) -> Modes: ...
    @property
    def is_alternate(self) -> bool:
        """`modes.alternate` alone, which is cheaper to ask for."""
        ...

    def feed(self, data: bytes) -> None: ...
    def resize(self, cols: int, rows: int) -> None:
        """Soft-wrapped lines are wrapped anew; the alternate screen is cut or filled up."""
        ...

    def text(self, start: int, end: int, *, form: Form = "plain", unwrap: bool = False) -> str:
        """Rows start … end-1, blanks at line ends trimmed; rows that do not exist are left out.

        Without `unwrap` there is one line for each row. `vt` carries colours as SGR and nothing else,
        `html` is a `<pre>` with inline styles.
        """
        ...

    def mark(self) -> Mark: ...
    def place(self, mark: Mark) -> tuple[int, int] | None:
        """The column and row of a mark now; None when it is lost or on the other screen."""
        ...

    def grid(self, start: int = 0, end: int | None = None) -> Grid: ...
    def snapshot(self) -> bytes: ...
    @classmethod
    def restored(cls, data: bytes) -> Self:
        """A screen that looks, scrolls and behaves like the one `snapshot` was taken of."""
        ...

    def encode_key(self, key: Key) -> bytes: ...
    def encode_paste(self, text: str) -> bytes: ...
    def encode_mouse(
        self, action: MouseAction, button: MouseButton, col: int, row: int, modifiers: frozenset[str] = frozenset()
    ) -> bytes:
        """Empty when the program did not ask for this kind of report."""
        ...

    def compress(self) -> None:
        """Free the memory of history that is not shown, where the engine can."""
        ...

    def close(self) -> None:
        """Free the screen now; nothing may be asked of it afterwards."""
        ...


def make_engine(
    cols: int,
    rows: int,
    history_rows: int = DEFAULT_HISTORY_ROWS,
    prefer: Literal["auto", "ghostty", "bittty"] = "auto",
) -> Engine:
    """A blank screen; `auto` takes libghostty-vt where its wheel is installed, else bittty."""
    check_size(cols, rows)
    if prefer == "ghostty" or (prefer == "auto" and _is_installed("pyghostty")):
        if not _is_installed("pyghostty"):
            raise _missing("pyghostty")
        from dari.terminal.engine.ghostty.screen import GhosttyEngine

        return GhosttyEngine(cols, rows, history_rows)
    if not _is_installed("bittty"):
        raise _missing("bittty")
    from dari.terminal.engine.bittty.screen import BitttyEngine

    return BitttyEngine(cols, rows, history_rows)


def restore_engine(data: bytes) -> Engine:
    """The engine that a snapshot was taken from, at the state it was taken in."""
    kind = data.partition(b"\n")[0]
    if kind == b"dari-ghostty-1":
        if not _is_installed("pyghostty"):
            raise _missing("pyghostty")
        from dari.terminal.engine.ghostty.screen import GhosttyEngine

        return GhosttyEngine.restored(data)
    if kind == b"dari-bittty-1":
        from dari.terminal.engine.bittty.screen import BitttyEngine

        return BitttyEngine.restored(data)
    raise InvalidInput(
        f"the bytes must be a snapshot of a terminal, they begin with {kind[:20]!r}",
        "take a snapshot with this version",
    )


def check_size(cols: int, rows: int) -> None:
    if not (1 <= cols <= MAX_COLS and 1 <= rows <= MAX_ROWS):
        raise InvalidInput(
            f"a terminal must have 1…{MAX_COLS} columns and 1…{MAX_ROWS} rows, got {cols}×{rows}", "choose another size"
        )


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _missing(package: str) -> Unavailable:
    return Unavailable(f"{package} is not installed", install_extra("terminal"))
