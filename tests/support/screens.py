"""Screens for tests, of both engines."""

from __future__ import annotations

import pytest

from dari.terminal.engine.engine import Engine, make_engine

ENGINES = ("ghostty", "bittty")
both_engines = pytest.mark.parametrize("engine_name", ENGINES)


def screen(name: str, data: bytes | str = b"", cols: int = 20, rows: int = 6, history_rows: int = 1000) -> Engine:
    made = make_engine(cols, rows, history_rows, prefer=name)  # type: ignore[arg-type]
    made.feed(data.encode() if isinstance(data, str) else data)
    return made


def shown(engine: Engine) -> list[str]:
    """The rows of the screen without the empty ones at its end."""
    return engine.text(0, engine.rows).rstrip("\n").split("\n")


def everything(engine: Engine) -> list[str]:
    return engine.text(-engine.history, engine.rows).rstrip("\n").split("\n")
