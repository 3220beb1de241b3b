"""A file of a person's own: who else may read it, who else may write it (design 001 §10)."""

from __future__ import annotations

import pytest

from tests.support.bridge_config import World

LITERAL = {"mcpServers": {"s": {"command": "x", "env": {"API_KEY": "sk-0123456789"}}}}


def test_keys_that_others_may_read_are_told_without_the_keys(world: World) -> None:
    world.user(LITERAL).chmod(0o644)
    (problem,) = world.load().problems
    assert "others may read the keys of s (chmod 600" in problem
    assert "sk-" not in problem
    assert world.states() == {"s": "ready"}


@pytest.mark.parametrize(
    ("entry", "mode"),
    [
        (LITERAL, 0o600),
        ({"mcpServers": {"s": {"command": "x", "env": {"API_KEY": "${API_KEY}", "REGION": "eu"}}}}, 0o644),
        ({"mcpServers": {"s": {"url": "http://h", "apiKey": "${KEY}"}}}, 0o644),
    ],
)
def test_references_may_be_read_by_all(world: World, entry: dict[str, object], mode: int) -> None:
    world.user(entry).chmod(mode)
    assert world.load().problems == ()


def test_a_file_that_others_may_write_runs_nothing_until_it_is_trusted(world: World) -> None:
    world.user(LITERAL).chmod(0o666)
    assert world.states() == {"s": "untrusted"}
    world.book.trust(world.user_file)
    assert world.states() == {"s": "ready"}
    world.user_file.write_text(world.user_file.read_text().replace('"x"', '"evil"'))
    assert world.states() == {"s": "untrusted"}
    world.user_file.chmod(0o600)
    assert world.states() == {"s": "ready"}
