"""Every linter, really run: biome, eslint, flake8, shellcheck, go vet."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.codetools.engines.rewrite import MAX_BY_STDIN
from tests.support.code_engines import node_project, python_project, require_engine, with_node, with_toolchains
from tests.support.codetools import code_tools


def rows(result: dict[str, list[dict[str, object]]]) -> list[tuple[object, ...]]:
    return [(one["path"], one["line"], one["rule"], one["severity"]) for one in result["diagnostics"]]


async def test_biome_finds_marks_and_fixes(tmp_path: Path) -> None:
    root = tmp_path / "web"
    root.mkdir()
    node_project(root, "biome")
    (root / "biome.json").write_text("{}")
    (root / "a.ts").write_text("let a = 1;\nif (!!a) {\n\ta.b == 1;\n}\nexport { a };\n")
    (root / "bad.ts").write_text("const = 3\n")
    async with code_tools(root, environ=with_node()) as tools:
        result = await tools.call("lint", paths=["."])
        only = await tools.call("lint", paths=["a.ts"], rules={"select": ["suspicious/noDoubleEquals"]})
        fixed = await tools.call("lint", paths=["."], fix="safe", dryRun=False)
        unsafe = await tools.call("lint", paths=["."], fix="unsafe", dryRun=False)
    found = {one["rule"]: one for one in result["diagnostics"] if one["path"] == "a.ts"}
    assert found["style/useConst"]["fixable"] and "fixable" not in found["suspicious/noDoubleEquals"]
    assert ("bad.ts", 1, "syntax", "error") in rows(result)
    assert rows(only) == [("a.ts", 3, "suspicious/noDoubleEquals", "error")]
    assert [edit["path"] for edit in fixed["edits"]] == ["a.ts"] and fixed["summary"]["fixed"] >= 2
    assert [edit["path"] for edit in unsafe["edits"]] == ["a.ts"]
    assert (root / "a.ts").read_text() == "const a = 1;\nif (a) {\n\ta.b === 1;\n}\nexport { a };\n"


async def test_biome_fixes_many_files_on_copies(tmp_path: Path) -> None:
    root = tmp_path / "web"
    root.mkdir()
    node_project(root, "biome")
    (root / "biome.json").write_text("{}")
    for number in range(MAX_BY_STDIN + 2):
        (root / f"m{number}.ts").write_text("let a = 1;\nexport { a };\n")
    async with code_tools(root, environ=with_node()) as tools:
        result = await tools.call("lint", paths=["*.ts"], fix="safe", dryRun=False)
    assert result["diagnostics"] == [] and result["summary"]["fixed"] == MAX_BY_STDIN + 2
    assert {file.read_text() for file in root.glob("*.ts")} == {"const a = 1;\nexport { a };\n"}


async def test_eslint_runs_with_the_projects_configuration_and_never_writes_itself(tmp_path: Path) -> None:
    root = tmp_path / "web"
    root.mkdir()
    node_project(root, "eslint")
    (root / "eslint.config.mjs").write_text(
        "export default [{rules: {eqeqeq: 'error', 'no-var': 'error', 'no-debugger': 'warn'}}];\n"
    )
    (root / "a.js").write_text("var x = 1;\nif (x == 2) { debugger }\n")
    (root / "--fix.js").write_text("var y = 1;\n")
    (root / "bad.js").write_text("var = 1;\n")
    async with code_tools(root, environ=with_node()) as tools:
        result = await tools.call("lint", paths=["*.js"])
        only = await tools.call("lint", paths=["a.js"], rules={"select": ["eqeqeq"]})
        shown = await tools.call("lint", paths=["*.js"], fix="safe")
        assert (root / "a.js").read_text().startswith("var"), "eslint must not write"
        fixed = await tools.call("lint", paths=["*.js"], fix="safe", dryRun=False, expectHash=shown["hash"])
    assert rows(result) == [
        ("--fix.js", 1, "no-var", "error"),
        ("a.js", 1, "no-var", "error"),
        ("a.js", 2, "eqeqeq", "error"),
        ("a.js", 2, "no-debugger", "warning"),
        ("bad.js", 1, "syntax", "error"),
    ]
    assert rows(only) == [("a.js", 2, "eqeqeq", "error")]
    assert fixed["summary"]["fixed"] == 2 and fixed["applied"]
    assert (root / "a.js").read_text() == "let x = 1;\nif (x == 2) { debugger }\n"
    assert (root / "--fix.js").read_text() == "let y = 1;\n"


@pytest.mark.parametrize("rules", [{"select": ["no-var"]}, {"ignore": ["prefer-const"]}])
async def test_eslint_fixes_nothing_where_only_some_rules_are_wanted(tmp_path: Path, rules: dict[str, object]) -> None:
    root = tmp_path / "web"
    root.mkdir()
    node_project(root, "eslint")
    (root / "eslint.config.mjs").write_text("export default [{rules: {'no-var': 'error', 'prefer-const': 'error'}}];\n")
    text = "var x = 1;\nlet y = 2;\nf(x, y);\n"
    for name in ("a.js", "b.js"):
        (root / name).write_text(text)
    async with code_tools(root, environ=with_node()) as tools:
        result = await tools.call("lint", paths=["*.js"], fix="safe", rules=rules, dryRun=False)
        fixed = await tools.call("lint", paths=["a.js"], fix="safe", rules={"select": ["ALL"]}, dryRun=False)
    assert [one["rule"] for one in result["diagnostics"]] == ["no-var", "no-var"] and "edits" not in result
    (error,) = result["errors"]
    assert error["path"] == "a.js" and "cannot fix single rules" in error["message"] and "2 files" in error["message"]
    assert (root / "b.js").read_text() == text
    assert "errors" not in fixed and (root / "a.js").read_text() != text


async def test_flake8_runs_where_the_project_asks_for_it(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    python_project(root, "flake8")
    (root / ".flake8").write_text("[flake8]\nmax-line-length = 20\noutput-file = written.txt\n")
    (root / "a.py").write_text("import os\nx = 'a line that is long'\n")
    async with code_tools(root) as tools:
        result = await tools.call("lint", paths=["."])
        only = await tools.call("lint", paths=["a.py"], rules={"select": ["F"]})
    assert rows(result) == [("a.py", 1, "F401", "error"), ("a.py", 2, "E501", "warning")]
    assert rows(only) == [("a.py", 1, "F401", "error")]
    assert [use["name"] for use in result["engines"]] == ["flake8"]
    assert not (root / "written.txt").exists()


async def test_shellcheck_finds_what_shells_do_not_say(tmp_path: Path) -> None:
    require_engine("shellcheck", "shellcheck")
    (tmp_path / "a.sh").write_text("#!/bin/sh\ncd $1\n")
    (tmp_path / "-x.sh").write_text("#!/bin/sh\nif\n")
    async with code_tools(tmp_path, undo=tmp_path / "undo") as tools:
        result = await tools.call("lint", paths=["."])
        only = await tools.call("lint", paths=["a.sh"], rules={"select": ["SC2086"]})
    assert ("a.sh", 2, "SC2164", "warning") in rows(result)
    assert any(row[0] == "-x.sh" and row[2] == "syntax" for row in rows(result))
    assert [row[2] for row in rows(only)] == ["SC2086"]


async def test_go_vet_looks_at_the_packages_of_the_files(tmp_path: Path) -> None:
    require_engine("go", "golang-go")
    (tmp_path / "go.mod").write_text("module x\n\ngo 1.18\n")
    for name, text in {
        "p/a.go": 'package p\n\nimport "fmt"\n\nfunc F() { fmt.Printf("%d", "x") }\n',
        "q/b.go": "package q\n\nfunc F() { x := 1 }\n",
        "r/c.go": 'package r\n\nimport "fmt"\n\nfunc F() { fmt.Printf("%d", "x") }\n',
    }.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    async with code_tools(tmp_path, undo=tmp_path / "undo", environ=with_toolchains()) as tools:
        result = await tools.call("lint", paths=["p/a.go", "q"])
    assert rows(result) == [("p/a.go", 5, "printf", "warning"), ("q/b.go", 3, "compile", "error")]


async def test_every_missing_linter_is_said_once_and_the_others_are_run(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    python_project(root, "ruff")
    for name in ("a.sh", "b.sh"):
        (root / name).write_text("cd $1\n")
    (root / "a.py").write_text("import os\n")
    (root / "eslint.config.js").write_text("")
    (root / "a.js").write_text("")
    async with code_tools(root, environ={"PATH": "/nowhere"}) as tools:
        result = await tools.call("lint", paths=["."])
    assert [one["rule"] for one in result["diagnostics"]] == ["F401"]
    assert [(error["path"], "Install it: " in error["message"]) for error in result["errors"]] == [
        ("a.js", True),
        ("a.sh", True),
    ]
