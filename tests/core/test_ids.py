"""Numbers as they were meant: an id is text, and a model that saw a number sends one; 2.0 is an integer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dari.core.tool import Tool, tool, typed_tool
from dari.errors import InvalidInput


@tool(name="ids")
def _ids(request_id: str, ids: list[str] | None = None, paneId: str = "", limit: int = 1, note: str = "") -> str:
    """Say what came."""
    return f"{request_id!r} {ids!r} {paneId!r} {limit!r} {note!r}"


def _call(made: Tool, arguments: dict[str, Any]) -> Any:
    return made.run(msgspec.json.encode(arguments), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"request_id": 6}, "'6' None '' 1 ''"),
        ({"request_id": "6"}, "'6' None '' 1 ''"),
        ({"request_id": 6, "ids": [1, "2", 30]}, "'6' ['1', '2', '30'] '' 1 ''"),
        ({"request_id": "b1", "paneId": 4, "limit": 3}, "'b1' None '4' 3 ''"),
        ({"request_id": 12345678901234567890}, "'12345678901234567890' None '' 1 ''"),
        ({"request_id": 6.0, "limit": 3.0}, "'6' None '' 3 ''"),
    ],
)
def test_an_id_may_come_as_a_number(arguments: dict[str, Any], said: str) -> None:
    assert _call(typed_tool(_ids), arguments) == said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"request_id": True}, "request_id"),
        ({"request_id": 1.5}, "request_id"),
        ({"request_id": None}, "request_id"),
        ({"request_id": {"id": 1}}, "request_id"),
        ({"request_id": 6, "note": 5}, "'note' is 5"),
        ({"request_id": 6, "limit": "x"}, "limit"),
        ({"request_id": 6, "other": 1}, "other"),
    ],
)
def test_what_is_no_id_is_refused_as_before(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput):
        _call(typed_tool(_ids), arguments)


@tool(name="counts")
def _counts(limit: int, ratio: float = 0.5, rows: list[dict[str, int]] | None = None) -> str:
    """Say what came."""
    return f"{limit!r} {ratio!r} {rows!r}"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ('{"limit": 2.0}', "2 0.5 None"),
        ('{"limit": 1e2, "ratio": 2.0, "rows": [{"a": -3.0}]}', "100 2.0 [{'a': -3}]"),
        ('{"limit": -0.0}', "0 0.5 None"),
    ],
)
def test_an_integral_float_is_an_integer(sent: str, said: str) -> None:
    assert typed_tool(_counts).run(sent.encode(), None) == said  # type: ignore[arg-type]


@pytest.mark.parametrize("sent", ['{"limit": 2.5}', '{"limit": 1e300}', '{"limit": "2.0"}', '{"limit": true}'])
def test_any_other_float_is_refused(sent: str) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        typed_tool(_counts).run(sent.encode(), None)  # type: ignore[arg-type]
