"""`crewx_tools_search` as a client sees it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dari.codetools.tools.search import CodeSearchTools
from dari.core.tool import tools_of
from dari.errors import InvalidInput
from dari.mcp.handlers.tools import render_structured
from dari.process.children import Children
from tests.support.code_searches import make_session


def call(root: Path, arguments: dict[str, Any], *others: Path) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with asyncio.timeout(30), Children() as children:
            (tool,) = tools_of(CodeSearchTools(make_session([root, *others], children)))
            assert tool.name == "crewx_tools_search" and tool.annotations["readOnlyHint"]
            context: Any = None  # `find_roots` of the session does not ask it
            value = await tool.run(msgspec.json.encode(arguments), context)
            found: dict[str, Any] = json.loads(render_structured(value))["structuredContent"]
            return found

    return asyncio.run(run())


def test_a_result_has_no_more_than_it_needs(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\nos.getcwd()\n")
    found = call(tmp_path, {"pattern": "getcwd"})
    stats = found.pop("stats")
    assert found == {
        "truncated": False,
        "matches": [{"path": "a.py", "line": 2, "col": 4, "endCol": 10, "text": "os.getcwd()"}],
    }
    assert set(stats) == {"ms", "engine", "files"} and stats["engine"].startswith("ripgrep 1") and stats["files"] == 1


def test_arguments_are_camel_case_and_a_cursor_goes_on(tmp_path: Path) -> None:
    (tmp_path / ".hidden.py").write_text("x = 1\n" * 5)
    asked = {"pattern": "x", "maxMatches": 2, "includeHidden": True, "context": 1, "globs": ["*.py"]}
    first = call(tmp_path, asked)
    assert first["truncated"] and len(first["matches"]) == 2
    second = call(tmp_path, {**asked, "cursor": first["cursor"]})
    assert [one["line"] for one in second["matches"]] == [3, 4]


def test_paths_are_below_root(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.txt").write_text("needle")
    found = call(tmp_path, {"pattern": "needle", "root": "sub", "paths": ["a.txt"], "output": "files"})
    assert found["files"] == ["a.txt"] and "matches" not in found


def test_secrets_in_a_line_are_hidden_and_its_place_is_not(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text('API_KEY = "sk-abcdefghijklmnopqrstuvwxyz123456"\n')
    (match,) = call(tmp_path, {"pattern": "API_KEY"})["matches"]
    assert (match["line"], match["col"], match["endCol"]) == (1, 1, 8)
    assert "abcdef" not in match["text"] and "redacted" in match["text"]


@pytest.mark.parametrize(
    "wrong", [{"context": 11}, {"maxMatches": 0}, {"mode": "fuzzy"}, {"case": "title"}, {"maxTokens": 1}, {"path": "."}]
)
def test_arguments_out_of_bounds_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        call(tmp_path, {"pattern": "x", **wrong})


def test_a_file_of_another_root_has_its_whole_path(tmp_path: Path) -> None:
    """Also where the name of one root begins with that of the other."""
    for name in ("app", "app-web"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("needle\n")
    asked = {"pattern": "needle", "paths": [".", str(tmp_path / "app-web")], "output": "files"}
    found = call(tmp_path / "app", asked, tmp_path / "app-web")
    assert found["files"] == ["a.txt", str(tmp_path / "app-web/a.txt")]
