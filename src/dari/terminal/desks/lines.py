"""Lines of a screen and its history, as they were printed: a line that was wrapped is one line."""

from __future__ import annotations

import re

from dari.terminal.engine.engine import Engine


def last_lines(engine: Engine, count: int) -> str:
    """The last lines with text, at most `count`; empty rows below the last one are left out."""
    wanted = max(count, 1) + engine.rows
    while True:
        text = engine.text(-min(engine.history, wanted), engine.rows, unwrap=True).rstrip("\n ")
        lines = text.split("\n")
        if len(lines) > count or wanted >= engine.history:
            return "\n".join(lines[-count:]) if count else ""
        wanted *= 4


def all_lines(engine: Engine) -> list[str]:
    """Everything that is kept, oldest first."""
    text = engine.text(-engine.history, engine.rows, unwrap=True).rstrip("\n ")
    return text.split("\n") if text else []


_SGR = re.compile(r"\x1b\[[\d;:]*m")


def last_formatted(engine: Engine, count: int) -> str:
    """The last rows with their colours as SGR sequences."""
    used = _used_rows(engine)
    start = max(-engine.history, used - count)
    return engine.text(start, used, form="vt")


def _used_rows(engine: Engine) -> int:
    rows = engine.text(0, engine.rows).split("\n")
    used = len(rows)
    while used and not rows[used - 1].strip():
        used -= 1
    return used
