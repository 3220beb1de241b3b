"""crewx_tools_lint with ruff: diagnostics, pages, rules and fixes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dari.codetools.engines.rewrite import MAX_BY_STDIN
from dari.errors import InvalidInput
from tests.support.code_engines import require_engine
from tests.support.codetools import code_tools

UNUSED = "import os\n\nx = 1\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    require_engine("ruff", "pip install ruff")
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").write_text("[tool.ruff.lint]\nselect = ['F', 'E7', 'B']\n")
    return root


async def test_a_diagnostic_says_where_what_and_whether_it_can_be_fixed(project: Path) -> None:
    (project / "a.py").write_text(UNUSED)
    async with code_tools(project) as tools:
        result = await tools.call("lint", paths=["."])
    assert result["diagnostics"] == [
        {
            "path": "a.py",
            "line": 1,
            "col": 8,
            "rule": "F401",
            "severity": "error",
            "message": "`os` imported but unused",
            "endCol": 10,
            "fixable": True,
        }
    ]
    assert result["summary"] == {"total": 1, "errors": 1, "files": 1, "fixable": 1, "byRule": {"F401": 1}}
    assert [(use["name"], use["files"]) for use in result["engines"]] == [("ruff", 1)]
    assert "applied" not in result and "edits" not in result
    assert sorted(os.listdir(project)) == ["a.py", "pyproject.toml"], "no cache is left"


@pytest.mark.parametrize(
    "setting", ["fix = true", "fix-only = true", "fix = true\nunsafe-fixes = true", "show-fixes = true"]
)
async def test_a_configuration_that_fixes_writes_nothing_while_we_look(project: Path, setting: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.ruff]\n{setting}\n[tool.ruff.lint]\nselect = ['F']\n")
    (project / "a.py").write_text(UNUSED)
    async with code_tools(project) as tools:
        result = await tools.call("lint", paths=["."])
        assert [one["rule"] for one in result["diagnostics"]] == ["F401"]
        planned = await tools.call("lint", paths=["."], fix="safe")
        assert planned["edits"] and planned["applied"] is False
    assert (project / "a.py").read_text() == UNUSED


@pytest.mark.parametrize("count", [1, MAX_BY_STDIN + 1], ids=["on stdin", "on copies"])
async def test_a_safe_fix_is_shown_then_written_then_undone(project: Path, count: int) -> None:
    files = [project / f"m{number}.py" for number in range(count)]
    for file in files:
        file.write_text(UNUSED + "if x == None:\n    l = 1\n")
    before = [file.read_bytes() for file in files]
    async with code_tools(project) as tools:
        shown = await tools.call("lint", paths=["."], fix="safe")
        assert [file.read_bytes() for file in files] == before
        assert shown["applied"] is False and shown["summary"]["fixed"] == count
        assert [(one["rule"], one["line"]) for one in shown["diagnostics"][:2]] == [("E711", 3), ("E741", 4)], (
            "what remains is where it will be"
        )
        written = await tools.call("lint", paths=["."], fix="safe", dryRun=False, expectHash=shown["hash"])
        assert written["applied"] and all(b"import os" not in file.read_bytes() for file in files)
        await tools.call("undo", undoToken=written["undoToken"])
    assert [file.read_bytes() for file in files] == before


async def test_an_unsafe_fix_needs_to_be_asked_for(project: Path) -> None:
    (project / "a.py").write_text("x = 1\nif x == None:\n    pass\n")
    (project / "pyproject.toml").write_text("[tool.ruff]\nunsafe-fixes = true\n[tool.ruff.lint]\nselect = ['E711']\n")
    async with code_tools(project) as tools:
        looked = await tools.call("lint", paths=["a.py"])
        safe = await tools.call("lint", paths=["a.py"], fix="safe", dryRun=False)
        unsafe = await tools.call("lint", paths=["a.py"], fix="unsafe", dryRun=False)
    assert looked["diagnostics"][0]["unsafeFix"] and "fixable" not in looked["diagnostics"][0]
    assert safe["applied"] is False and unsafe["applied"] is True
    assert (project / "a.py").read_text() == "x = 1\nif x is None:\n    pass\n"


async def test_a_fix_may_leave_an_empty_file(project: Path) -> None:
    (project / "a.py").write_text("import os\n")
    async with code_tools(project) as tools:
        result = await tools.call("lint", paths=["a.py"], fix="safe", dryRun=False)
    assert result["applied"] and result["diagnostics"] == [] and (project / "a.py").read_bytes() == b""


async def test_pages_of_diagnostics_have_no_gap_and_notice_a_change(project: Path) -> None:
    (project / "a.py").write_text("".join(f"import m{number}\n" for number in range(25)))
    async with code_tools(project) as tools:
        pages, cursor = [], None
        while True:
            result = await tools.call("lint", paths=["."], maxDiagnostics=10, cursor=cursor)
            pages.append([one["line"] for one in result["diagnostics"]])
            assert result["summary"]["total"] == 25
            if "cursor" not in result:
                break
            cursor = result["cursor"]
        assert pages == [list(range(1, 11)), list(range(11, 21)), list(range(21, 26))]
        (project / "b.py").write_text("import y\n")
        with pytest.raises(InvalidInput):
            await tools.call("lint", paths=["."], maxDiagnostics=10, cursor=cursor)
        with pytest.raises(InvalidInput):
            await tools.call("lint", paths=["."], cursor="all of it")


async def test_rules_are_selected_and_ignored(project: Path) -> None:
    (project / "a.py").write_text("import os\nimport sys\nl = 1\ndef f(x=[]):\n    pass\n")
    async with code_tools(project) as tools:

        async def rules(**given: list[str]) -> dict[str, int]:
            summary = (await tools.call("lint", paths=["a.py"], rules=given))["summary"]
            return summary.get("byRule", {})

        assert await rules(select=["F"]) == {"F401": 2}
        assert await rules(select=["N", "E741"]) == {"E741": 1}
        assert await rules(ignore=["F401", "E"]) == {"B006": 1}
        assert await rules(select=["suspicious/noDebugger"]) == {}, "of another linter"
        for wrong in ("--fix", "F401,E501 --fix", "../x", ""):
            with pytest.raises(InvalidInput, match="names of rules"):
                await rules(select=[wrong])


async def test_a_syntax_error_is_a_diagnostic_and_an_unknown_rule_an_error(project: Path) -> None:
    (project / "a.py").write_text("def (:\n")
    (project / "b.py").write_text(UNUSED)
    async with code_tools(project) as tools:
        result = await tools.call("lint", paths=["."])
        fixed = await tools.call("lint", paths=["."], fix="unsafe")
        unknown = await tools.call("lint", paths=["b.py"], rules={"select": ["ZZZ999"]})
    assert ("a.py", 1, "syntax") in {(one["path"], one["line"], one["rule"]) for one in result["diagnostics"]}
    assert [edit["path"] for edit in fixed["edits"]] == ["b.py"]
    assert "ZZZ999" in unknown["errors"][0]["message"] and unknown["diagnostics"] == []


async def test_names_that_look_like_options_are_names(project: Path) -> None:
    for name in ("-rf.py", "--fix.py", "a\nb.py", "@x.py"):
        (project / name).write_text(UNUSED)
    async with code_tools(project) as tools:
        result = await tools.call("lint", paths=["."], fix="safe", dryRun=False)
        single = await tools.call("lint", paths=["--fix.py"])
    assert result["summary"]["fixed"] == 4 and single["diagnostics"] == []


async def test_first_party_packages_are_known_in_copies_too(project: Path) -> None:
    """Fixes of many files run in a mirror: import sorting there must see the packages of the project."""
    (project / "pyproject.toml").write_text("[tool.ruff.lint]\nselect = ['I']\n")
    (project / "ours").mkdir()
    (project / "ours" / "__init__.py").write_text("")
    for number in range(MAX_BY_STDIN + 2):
        (project / f"m{number}.py").write_text("import ours\nimport msgspec\nprint(msgspec, ours)\n")
    async with code_tools(project) as tools:
        await tools.call("lint", paths=["*.py"], fix="safe", dryRun=False)
    tidy = "import msgspec\n\nimport ours\n\nprint(msgspec, ours)\n"
    assert {file.read_text() for file in project.glob("m*.py")} == {tidy}


async def test_a_broken_configuration_is_an_error_that_names_the_engine(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.ruff]\nline-length = 'long'\n")
    (project / "a.py").write_text(UNUSED)
    async with code_tools(project) as tools:
        result = await tools.call("lint", paths=["."])
        formatted = await tools.call("format", paths=["."])
    assert "line-length" in result["errors"][0]["message"]
    assert "line-length" in formatted["errors"][0]["message"]


async def test_findings_stay_where_the_look_after_a_fix_fails(project: Path) -> None:
    """A linter that crashes on its second look has not shown that anything is mended."""
    real = require_engine("ruff", "pip install ruff")
    planted = project / ".venv" / "bin" / "ruff"
    planted.parent.mkdir(parents=True)
    # The second look is at a copy, in a mirror of ours.
    planted.write_text(
        f'#!/bin/sh\ncase "$*" in *--no-fix*dari-mirror*) echo "broken at $PWD" >&2; exit 2;; esac\nexec {real} "$@"\n'
    )
    planted.chmod(0o755)
    (project / "a.py").write_text(UNUSED)
    async with code_tools(project) as tools:
        result = await tools.call("lint", paths=["a.py"], fix="safe")
    assert [one["rule"] for one in result["diagnostics"]] == ["F401"] and "fixed" not in result["summary"]
    (error,) = result["errors"]
    assert error["path"] == "a.py" and "broken" in error["message"] and "dari-mirror" not in error["message"]
    assert [edit["path"] for edit in result["edits"]] == ["a.py"]
