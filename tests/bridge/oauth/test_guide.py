"""What docs/guide/oauth.md shows is what works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dari.bridge.config.schema import AuthEntry
from dari.cli.remote.main import REMOTE, parser_of
from tests.support.bridge_config import contents

GUIDE = (Path(__file__).parents[3] / "docs/guide/oauth.md").read_text()
LINES = [line for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.S) for line in block.splitlines()]


def test_the_profiles_are_read_without_a_complaint() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", GUIDE, re.S)
    found = contents(text)
    assert [one.id for one in found.profiles] == ["notes", "nightly"]
    assert (found.broken, found.problems) == ((), ())


@pytest.mark.parametrize("line", LINES)
def test_every_command_is_understood(line: str) -> None:
    _, _, name, *words = line.split()
    (command,) = [one for one in REMOTE if one.name == name]
    assert parser_of(command, "dari remote").parse_args(words)


def test_every_field_of_oauth_is_explained() -> None:
    fields = AuthEntry.__struct_encode_fields__
    told = [name for name in fields[fields.index("clientId") : fields.index("keyring") + 1] if f"`{name}`" not in GUIDE]
    assert told == []
