"""Keys in code stay out of every result that shows code, and names that only sound like keys stay in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.codetools import code_tools
from tests.support.repositories import new_repository

KEY = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
CODE = f'''def login(user, token="{KEY}"):
    """Uses {KEY}."""
    return send(user,token)


value = login("a",  "{KEY}")
'''


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("diff", {}),
        ("outline", {"paths": ["app.py"]}),
        ("symbols", {"name": "login"}),
        ("search", {"pattern": "login"}),
        ("format", {"paths": ["app.py"]}),
        ("lint", {"paths": ["app.py"], "rules": {"select": ["ALL"]}, "fix": "unsafe"}),
        ("refactor", {"op": "rename", "symbol": {"name": "app.login"}, "newName": "enter"}),
    ],
)
async def test_a_key_in_code_is_in_no_result(tmp_path: Path, tool: str, arguments: dict[str, object]) -> None:
    root = new_repository(tmp_path / "r", {"app.py": "x = 1\n"})
    async with code_tools(root) as tools:
        (root / "app.py").write_text(CODE)
        shown = json.dumps(await tools.call(tool, **arguments))
    assert KEY not in shown
    assert "login" in shown or tool == "lint"


async def test_what_only_sounds_like_a_key_is_shown_and_an_undo_token_works(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {"app.py": "def check(token: str, password=None) ->   bool: ...\n"})
    async with code_tools(root) as tools:
        (outline,) = (await tools.call("outline", paths=["app.py"]))["files"]
        assert "token: str, password=None" in json.dumps(outline)
        written = await tools.call("format", paths=["app.py"], dryRun=False)
        assert (await tools.call("undo", undoToken=written["undoToken"]))["restored"] == ["app.py"]
