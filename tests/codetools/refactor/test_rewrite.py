"""Rewrites by pattern, through the tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dari.errors import Conflict, InvalidInput
from tests.support.codetools import code_tools
from tests.support.file_trees import read_tree, write_tree


async def rewritten(root: Path, **arguments: Any) -> Any:
    async with code_tools(root) as tools:
        return await tools.call("refactor", op="rewrite", dryRun=False, **arguments)


@pytest.mark.parametrize(
    ("name", "before", "pattern", "rewrite", "after"),
    [
        ("a.py", "f(1, 2)\n", "f($A, $B)", "g($B, $A)", "g(2, 1)\n"),
        ("a.py", "f(1, *x, k=2)\nf()\n", "f($$$ARGS)", "g($$$ARGS)", "g(1, *x, k=2)\ng()\n"),
        ("a.py", "f(f(f(1)))\n", "f($A)", "g($A)", "g(g(g(1)))\n"),
        ("a.py", "x = f(1)  # f(2)\ns = 'f(3)'\n", "f($A)", "g($A)", "x = g(1)  # f(2)\ns = 'f(3)'\n"),
        ("a.py", "if x == None:\n    pass\n", "$X == None", "$X is None", "if x is None:\n    pass\n"),
        ("a.py", "한글 = '😀'; f(1)\r\n", "f($A)", "g($A)", "한글 = '😀'; g(1)\r\n"),
        ("a.py", "def x():\n    log(1)\n", "log($A)", "if on:\n    log($A)", "def x():\n    if on:\n        log(1)\n"),
        (
            "a.js",
            "if (x) {\n  foo(`a\nb`);\n}\n",
            "foo($X)",
            "bar(\n  $X\n)",
            "if (x) {\n  bar(\n    `a\nb`\n  );\n}\n",
        ),
        (
            "a.py",
            "if x:\n    f('''a\nb''', 1)\n",
            "f($$$A)",
            "g(\n    $$$A\n)",
            "if x:\n    g(\n        '''a\nb''', 1\n    )\n",
        ),
        ("a.js", "foo(1);\r\nfoo(2);\r\n", "foo($X)", "bar(\n  $X)", "bar(\r\n  1);\r\nbar(\r\n  2);\r\n"),
        ("a.js", "foo(1);\n", "foo($X)", "bar(\r\n  $X)", "bar(\n  1);\n"),
        ("a.js", "console.log(a, b);\n", "console.log($$$A)", "log.info($$$A)", "log.info(a, b);\n"),
        ("a.ts", "const a = <string>b;\n", "<string>$A", "$A as string", "const a = b as string;\n"),
        ("a.go", "package a\n\nfunc f() { g(1) }\n", "g($A)", "h($A)", "package a\n\nfunc f() { h(1) }\n"),
        ("a.rs", "fn f() { x.unwrap(); }\n", "$X.unwrap()", '$X.expect("x")', 'fn f() { x.expect("x"); }\n'),
        ("A.java", "class A { void f() { g(1); } }\n", "g($A)", "h($A)", "class A { void f() { h(1); } }\n"),
        ("a.c", "int f(void) { g(1); }\n", "g($A);", "h($A);", "int f(void) { h(1); }\n"),
        ("a.rb", "puts(1)\n", "puts($A)", "print($A)", "print(1)\n"),
    ],
)
async def test_every_match_takes_the_new_form(
    tmp_path: Path, name: str, before: str, pattern: str, rewrite: str, after: str
) -> None:
    root = write_tree(tmp_path / "root", {name: before})
    result = await rewritten(root, pattern=pattern, rewrite=rewrite, paths=[name])
    assert (root / name).read_bytes().decode() == after
    assert result["engine"].startswith("ast-grep 0.")


async def test_a_codemod_applies_several_rules_in_one_go_without_feeding_one_into_the_other(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a.py": "a(b(1))\nb(a(2))\n", "a.js": "a(1);\n"})
    rules = [{"pattern": "a($X)", "rewrite": "b($X)", "lang": "python"}, {"pattern": "b($X)", "rewrite": "a($X)"}]
    before = read_tree(root)
    async with code_tools(root) as tools:
        done = await tools.call("refactor", op="codemod", rules=rules, paths=["**/*.py"], dryRun=False)
        assert (root / "a.py").read_text() == "b(a(1))\na(b(2))\n"
        assert (root / "a.js").read_text() == "a(1);\n"
        await tools.call("undo", undoToken=done["undoToken"])
    assert read_tree(root) == before


async def test_a_result_that_does_not_parse_is_refused_with_the_line(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a.py": "x = 1\nf(1)\n", "b.js": "f(1);\n"})
    before = read_tree(root)
    for name in ("a.py", "b.js"):
        with pytest.raises(Conflict) as raised:
            await rewritten(root, pattern="f($A)", rewrite="g((((", paths=[name])
        assert name in raised.value.message and "line" in raised.value.message
    assert read_tree(root) == before


async def test_a_file_that_did_not_parse_before_may_be_rewritten_where_it_does(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a.py": "f(1)\n\ndef (:\n"})
    await rewritten(root, pattern="f($A)", rewrite="g($A)", paths=["a.py"])
    assert (root / "a.py").read_text().startswith("g(1)\n")


@pytest.mark.parametrize(
    "arguments",
    [
        {"pattern": "f($A)", "rewrite": "g($B)", "lang": "python"},
        {"pattern": "f($A)", "rewrite": "g($A)", "lang": "klingon"},
        {"pattern": "f($A)", "rewrite": "g($A)"},
        {"pattern": "", "rewrite": "x", "lang": "python"},
    ],
    ids=["unknown name", "unknown language", "several languages", "no pattern"],
)
async def test_arguments_that_make_no_sense_are_named(tmp_path: Path, arguments: Any) -> None:
    root = write_tree(tmp_path / "root", {"a.py": "f(1)\n", "a.js": "f(1);\n"})
    with pytest.raises(InvalidInput):
        await rewritten(root, **arguments)


async def test_no_match_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a.py": "f(1)\n"})
    result = await rewritten(root, pattern="nothing($A)", rewrite="x($A)", lang="python")
    assert result["edits"] == [] and not result["applied"] and result["notes"] == ["no match"]


async def test_many_files_stay_within_the_budget_of_the_result(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {f"{number}.py": "f(1)\n" for number in range(300)})
    async with code_tools(root) as tools:
        result = await tools.call("refactor", op="rewrite", pattern="f($A)", rewrite="g($A)", lang="py", maxTokens=1000)
    assert result["moreFiles"] > 100
    assert len(str(result)) < 8000
    assert result["notes"] == ["300 matches in 300 files"]


async def test_installed_packages_are_left_alone_unless_they_are_named(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.py": "from b import greet\n\n\ngreet(1)\n",
        "b.py": "def greet(x):\n    pass\n",
        "c.js": "function wave(x) {}\nwave(1);\n",
        ".venv/lib/python3.11/site-packages/p.py": "import z\nimport a\n\n\ndef greet(x):\n    pass\n\n\ngreet(1)\n",
        "web/node_modules/p/index.js": "function wave(x) {}\nwave(1);\n",
    }
    root = write_tree(tmp_path / "root", files)
    async with code_tools(root) as tools:

        async def changed(**arguments: object) -> list[str]:
            result = await tools.call("refactor", **arguments)
            return [edit["path"] for edit in result["edits"]]

        rule = {"op": "rewrite", "pattern": "greet(1)", "rewrite": "greet(2)", "lang": "python"}
        assert await changed(**rule) == ["a.py"]
        assert await changed(**rule, includeIgnored=True) == [".venv/lib/python3.11/site-packages/p.py", "a.py"]
        assert await changed(op="rename", symbol={"name": "greet"}, newName="hello") == ["a.py", "b.py"]
        assert await changed(op="rename", symbol={"name": "wave"}, newName="hello") == ["c.js"]
        assert await changed(op="organizeImports", paths=["**/*.py"]) == ["a.py"]
        named = {"paths": ["web/node_modules/p"], "newName": "hello"}
        assert await changed(op="rename", symbol={"name": "wave"}, **named) == ["web/node_modules/p/index.js"]
