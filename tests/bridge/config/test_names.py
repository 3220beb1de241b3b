"""Which words are names of servers and sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.bridge.config.loader import read_contents
from dari.bridge.config.normalize import check_id

NO_NAMES = [
    *(".", "..", "...", ".hidden", "a/b", "../x", "a\\b", "", " a", "a ", "-x", "--all", "a\nb", "a\x00b", "a\u202eb"),
    *("*", "a?", "[a]", "a:b", "$HOME", "`id`", "a|b", "a'b", 'a"b', "con", "NUL", "com1.txt", "x" * 1000),
    *("p\u0430ypal", "\uff46s", "\ufb01le", "\u0391pi", "a\u200bb"),
]


@pytest.mark.parametrize("name", NO_NAMES, ids=ascii)
def test_a_word_that_misleads_a_person_or_a_program_is_no_name(name: str) -> None:
    assert check_id(name)
    contents = read_contents(b'{"servers": [{"id": %b, "url": "http://h"}]}' % _json(name), Path("mcp.json"), "user")
    assert not contents.profiles
    contents = read_contents(b'{"servers": [], "profiles": {%b: {}}}' % _json(name), Path("mcp.json"), "user")
    assert not contents.sets


@pytest.mark.parametrize(
    "name", ["fs", "my-server", "a.b", "server 2", "시계", "時計", "часы", "naïve", "x_1", "@scope"]
)
def test_ordinary_words_are_names(name: str) -> None:
    assert check_id(name) is None


def _json(text: str) -> bytes:
    import msgspec

    return msgspec.json.encode(text)
