"""`prefix M` in a real terminal: a tool of the hub picked by typing, filled in, and its result seen or typed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from dari.cli.crux.view.palette import ToolPalette, _value_of
from dari.text.width import char_width
from tests.support.crux_command import Crux
from tests.support.terminal_user import person

PREFIX = "\x02"
ESCAPE = "\x1b"


def test_a_tool_is_picked_by_typing_and_its_result_is_typed_into_the_pane(crux: Crux) -> None:
    with person("attach") as someone:
        someone.until_text("$")
        someone.type(PREFIX + "M")
        someone.until_text("tools of the hub")
        someone.until_text("dari_ping")
        someone.type("current_dir")
        someone.until(lambda: not any("dari_ping" in row for row in someone.screen))
        someone.type("\r")
        someone.until_text("pane_id (string)")
        someone.type("\r")
        someone.until_text("types it into the pane")
        someone.until_text(os.getcwd())
        someone.type("t")
        someone.until(lambda: not any("┌─" in row for row in someone.screen))
        someone.until(lambda: any(row.startswith("$ ") and '"cwd"' in row for row in someone.screen))
        someone.type("\x15")
        someone.type(PREFIX + "d")
        assert someone.end() == 0


def test_an_error_is_shown_and_escape_goes_back_step_by_step(crux: Crux) -> None:
    with person("attach") as someone:
        someone.until_text("$")
        someone.type(PREFIX + "M")
        someone.until_text("dari_ping")
        someone.type("crux_focus_pane\r")
        someone.until_text("pane_id* (string)")
        someone.type("nowhere\r")
        someone.until_text("reported an error")
        someone.until_text("nowhere")
        someone.type(ESCAPE)
        someone.until_text("pane_id* (string): nowhere")
        someone.type(ESCAPE)
        someone.until_text("tools of the hub")
        someone.type(ESCAPE)
        someone.until(lambda: not any("┌─" in row for row in someone.screen))
        someone.type("echo st''ill\r")
        someone.until_text("still")
        someone.type(PREFIX + "d")
        assert someone.end() == 0


class _Hub:
    """Tools without a hub behind them."""

    def __init__(self, *tools: dict[str, Any]) -> None:
        self.tools: list[dict[str, Any]] | None = list(tools)
        self.result: tuple[str, bool] | None = None
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.is_closed = False

    def call(self, tool: str, arguments: dict[str, Any]) -> None:
        self.calls.append((tool, arguments))

    def cancel(self) -> None:
        self.calls.append(("cancelled", {}))

    def read(self) -> None:
        pass

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self.is_closed = True


def _palette(hub: _Hub) -> tuple[ToolPalette, list[str]]:
    typed: list[str] = []
    return ToolPalette(hub, typed.append), typed  # type: ignore[arg-type]


_TOOL = {
    "name": "count",
    "description": "Counts \u202ethings",
    "inputSchema": {
        "type": "object",
        "properties": {"note": {"type": "string"}, "n": {"type": "integer", "description": "how many"}},
        "required": ["n"],
    },
}


def test_required_arguments_come_first_and_values_are_checked_before_the_call() -> None:
    hub = _Hub(_TOOL)
    palette, typed = _palette(hub)
    palette.feed("\r")
    for key in "x\x12":
        palette.feed(key)
    assert "n must be integer, got 'x'" in palette.draw(100, 30)
    assert hub.calls == []
    for key in ("\x7f", "4", "2", "\r", "h", "i", "\r"):
        palette.feed(key)
    assert hub.calls == [("count", {"n": 42, "note": "hi"})]
    hub.result = ("forty\x1b[2J-two", False)
    palette.read()
    drawn = palette.draw(100, 30)
    assert "forty" in drawn
    assert "\x1b[2J" not in drawn
    palette.feed("t")
    assert typed and "forty" in typed[0]
    assert "\x1b" not in typed[0]
    assert hub.is_closed


def test_escape_cancels_a_call_that_runs() -> None:
    hub = _Hub({"name": "slow", "inputSchema": {"type": "object"}})
    palette, _ = _palette(hub)
    palette.feed("\r")
    assert hub.calls == [("slow", {})]
    palette.feed("escape")
    assert hub.calls[-1] == ("cancelled", {})


def test_names_and_descriptions_of_servers_do_not_reach_the_terminal_as_they_are() -> None:
    hub = _Hub({"name": "evil\x1b]0;x\x07", "description": "a\x1b[31mb\u202ec", "inputSchema": {}})
    drawn = _palette(hub)[0].draw(80, 24)
    assert "\x1b]0;" not in drawn
    assert "\u202e" not in drawn


def test_a_value_is_what_its_schema_says() -> None:
    assert _value_of("7", {"type": "integer"}) == 7
    assert _value_of("true", {"anyOf": [{"type": "null"}, {"type": "boolean"}]}) is True
    assert _value_of("[1]", {"type": "array"}) == [1]
    assert _value_of("b", {"enum": ["a", "b"]}) == "b"
    assert _value_of(json.dumps({"a": 1}), {}) == {"a": 1}


def test_a_long_result_and_long_descriptions_are_measured_once() -> None:
    hub = _Hub(*({"name": f"tool{number}", "description": "한" * 20_000} for number in range(20)))
    palette, _ = _palette(hub)
    assert _measured(lambda: palette.draw(100, 30)) < 50_000
    hub.tools = [{"name": "tool"}]
    palette.feed("\r")
    hub.result = ("한" * 50_000, False)
    palette.read()
    assert _measured(lambda: palette.draw(100, 30)) < 250_000
    assert _measured(lambda: palette.draw(100, 30)) < 50_000
    assert "한한" in palette.draw(100, 30)


def _measured(work: Callable[[], object]) -> int:
    """How often the width of a character was asked for."""
    before = char_width.cache_info()
    work()
    after = char_width.cache_info()
    return after.hits + after.misses - before.hits - before.misses
