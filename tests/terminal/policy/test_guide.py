from __future__ import annotations

import re
from pathlib import Path

from dari.terminal.panes.expect import MAX_PATTERN_CHARS
from dari.terminal.policy.config import DENIED, Security, parse_security

GUIDE = Path(__file__).parents[3] / "docs/guide/terminal-policy.md"


def test_the_file_in_the_guide_is_one_that_is_read(tmp_path: Path) -> None:
    text = GUIDE.read_text()
    block = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert block is not None
    assert parse_security(block[1].encode(), "crux.toml", tmp_path).allowed_commands[2] == "git *"


def test_the_guide_names_every_field_and_the_limits_that_hold() -> None:
    text = GUIDE.read_text()
    for field in Security.__struct_fields__:
        assert field == "source" or f"`{field}`" in text
    assert f"`{' '.join(DENIED)}`" in text
    assert (
        f"{Security().calls_per_second:g} a second and client, {Security().calls_at_once} at once" in text
        and f"{MAX_PATTERN_CHARS} characters" in text
    )


def test_the_guide_says_that_the_policy_is_no_wall() -> None:
    assert "guard-rail, not a wall" in GUIDE.read_text()
