"""An id is text, and a model that saw a number sends a number."""

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
