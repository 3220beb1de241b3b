"""What a bittty board has to say: replies, titles, bells, clips and the rows that scroll off its top."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from dari.terminal.engine.engine import DEFAULT_HISTORY_ROWS, MAX_CLIPBOARD_BYTES


class Cable:
    """The host side of a board: it only collects what the board wants to send."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def write(self, data: str) -> int:
        self.sent.append(data.encode(errors="replace"))
        return len(data)

    def write_bytes(self, data: bytes) -> int:
        self.sent.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def configure_line(self, line: object) -> None:
        pass

    def resize(self, rows: int, cols: int) -> None:
        pass

    def close(self) -> None:
        pass

    def taken(self) -> bytes:
        sent, self.sent = self.sent, []
        return b"".join(sent)


class Display:
    """The screen side of a board: keeps history, and remembers events until the engine tells them on."""

    keeps_scrollback = True

    def __init__(self, cols: int, history_rows: int = DEFAULT_HISTORY_ROWS) -> None:
        from bittty.terminals.scrollback import MemoryScrollback

        self.store: Any = MemoryScrollback(_most_cells(cols, history_rows))
        self.scrolled = 0  # rows that ever left the screen
        self.cleared = 0  # how many of them were there when history was last cleared
        self.title = ""
        self.told_cwd = ""
        self.bells = 0
        self.clips: list[bytes] = []

    def present(self, event: Any) -> None:
        match type(event).__name__:
            case "RowsScrolledOff":
                self._keep(event.lines)
            case "ScrollbackCleared":
                self.store.clear()
                self.cleared = self.scrolled
            case "Bell":
                self.bells += 1
            case "TitleChanged":
                self.title = event.title
            case "CwdChanged":
                self.told_cwd = event.cwd

    def _keep(self, lines: Any) -> None:
        from bittty.terminals.scrollback import ScrollbackLine

        for line in lines:
            row = ScrollbackLine.of(line.cells, not line.wrapped, line.attribute)
            self.store.append(row, line.wrapped)
        self.scrolled += len(lines)

    def limit(self, cols: int, history_rows: int) -> None:
        self.store.max_cells = _most_cells(cols, history_rows)

    def take_clip(self, operation: Any) -> None:
        """OSC 52 in place of the board's own handler, which would answer reads."""
        _selection, payload = operation.args
        if payload == "?" or len(payload) > MAX_CLIPBOARD_BYTES * 4 // 3 + 4:
            return
        try:
            clip = base64.b64decode(payload, validate=True)
        except (binascii.Error, ValueError):
            return
        if len(clip) <= MAX_CLIPBOARD_BYTES:
            self.clips.append(clip)


def _most_cells(cols: int, history_rows: int) -> int:
    return history_rows * (cols + 1)
