"""What people paste from README files, in all of its shapes."""

from __future__ import annotations

import pytest

from dari.bridge.config.pasted import parse_entries
from dari.errors import InvalidInput

MEMORY = {"command": "npx", "args": ["-y", "memory"]}


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"memory": {"command": "npx", "args": ["-y", "memory"]}}}',
        '{"servers": {"memory": {"command": "npx", "args": ["-y", "memory"]}}}',
        '{"servers": [{"id": "memory", "command": "npx", "args": ["-y", "memory"]}]}',
        '{"memory": {"command": "npx", "args": ["-y", "memory"]}}',
        '"memory": {"command": "npx", "args": ["-y", "memory"]}',
        '  "mcpServers": {"memory": {"command": "npx", "args": ["-y", "memory"]}},\n',
        '{"id": "memory", "command": "npx", "args": ["-y", "memory"]}',
        '{\n  // from the README\n  "mcpServers": {"memory": {"command": "npx", "args": ["-y", "memory",],},},\n}',
    ],
)
def test_every_shape_of_one_server_is_read(text: str) -> None:
    assert parse_entries(text) == {"memory": MEMORY}


def test_a_name_may_be_given_beside_the_text() -> None:
    assert parse_entries('{"command": "npx", "args": ["-y", "memory"]}', "mine") == {"mine": MEMORY}


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "npx -y memory", '{"command": "x"}', '{"mcpServers": {"a": 1}}', "{}"]
)
def test_what_is_no_server_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_entries(text, what="the text")
    assert refusal.value.hint
