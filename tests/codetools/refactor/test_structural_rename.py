"""Rename in languages other than Python, moves of files, and imports, through the tool."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from dari.errors import Conflict, DariError, NotFound, Unavailable
from tests.support.code_engines import node_project
from tests.support.codetools import code_tools
from tests.support.file_trees import read_tree, write_tree

Files = dict[str, str | bytes]


async def refactored(root: Path, **arguments: Any) -> Any:
    async with code_tools(root) as tools:
        return await tools.call("refactor", dryRun=False, **arguments)


TS: Files = {
    "src/price.ts": "export function total(items: number[]) {\n  return items.length;\n}\n\n"
    "export class Cart {\n  size = 0;\n  add(n: number) { return this.size + n; }\n}\n",
    "src/app.tsx": "import { total, Cart } from './price';\nimport * as price from './price';\n"
    "const o = { total, other: total };\nexport const x = total([1]) + price.total([2]);\n"
    "function local(total: number) { return total + 1; }\nconst c = new Cart();\nc.add(1);\nc.total;\n",
    "src/other.ts": "import { total } from 'lodash';\ntotal([1]);\n",
}


async def test_a_function_of_typescript_is_renamed_with_its_imports_but_not_its_namesakes(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", TS)
    result = await refactored(root, op="rename", symbol={"path": "src/price.ts", "line": 1, "col": 17}, newName="sum")
    app = (root / "src/app.tsx").read_text()
    assert "export function sum(" in (root / "src/price.ts").read_text()
    assert "import { sum, Cart }" in app and "{ total: sum, other: sum }" in app
    assert "sum([1]) + price.sum([2])" in app
    assert "function local(total: number) { return total + 1; }" in app, "a parameter of that name is another one"
    assert "c.total;" in app
    assert (root / "src/other.ts").read_text() == TS["src/other.ts"], "lodash has its own"
    assert any("types are not checked" in note for note in result["notes"])
    assert any("src/app.tsx:8" in note for note in result["notes"]), "what may be something else is named"


@pytest.mark.parametrize(
    ("files", "symbol", "new_name", "expected"),
    [
        (TS, {"name": "Cart"}, "Basket", {"src/price.ts": "class Basket", "src/app.tsx": "new Basket()"}),
        (TS, {"name": "add"}, "put", {"src/price.ts": "put(n: number)", "src/app.tsx": "c.put(1)"}),
        (
            {"a.js": "function f(a) {\n  const b = a;\n  { const b = 2; g(b); }\n  return b;\n}\nconst b = 3;\n"},
            {"path": "a.js", "line": 2, "col": 9},
            "z",
            {"a.js": "function f(a) {\n  const z = a;\n  { const b = 2; g(b); }\n  return z;\n}\nconst b = 3;\n"},
        ),
        (
            {"m.go": "package m\n\nfunc Old(n int) int { return n }\n", "c.go": "package m\n\nvar X = Old(1)\n"},
            {"name": "Old"},
            "New",
            {"m.go": "func New(", "c.go": "= New(1)"},
        ),
        (
            {"m/m.go": "package m\n\nfunc Old() {}\n", "c.go": 'package c\n\nimport "x/m"\n\nfunc f() { m.Old() }\n'},
            {"name": "Old"},
            "New",
            {"m/m.go": "func New(", "c.go": "m.New()"},
        ),
        (
            {"a.rs": "fn old(x: i32) -> i32 { x }\nfn main() { old(1); crate::old(2); }\n"},
            {"name": "old"},
            "fresh",
            {"a.rs": "fn fresh(x: i32) -> i32 { x }\nfn main() { fresh(1); crate::fresh(2); }\n"},
        ),
        (
            {
                "a.h": "int old(int);\n",
                "a.c": '#include "a.h"\nint old(int x) { return x; }\nint m(void) { return old(1); }\n',
            },
            {"name": "old"},
            "fresh",
            {"a.h": "int fresh(int);", "a.c": "return fresh(1)"},
        ),
        (
            {"A.java": "class A {\n  int old(int x) { return x; }\n  int g() { return old(1) + this.old(2); }\n}\n"},
            {"name": "old"},
            "fresh",
            {"A.java": "return fresh(1) + this.fresh(2)"},
        ),
        (
            {"a.ts": "interface Old { a: number }\nfunction f(x: Old): Old { return x; }\n"},
            {"name": "Old"},
            "Fresh",
            {"a.ts": "function f(x: Fresh): Fresh"},
        ),
        (
            {"a.js": b"function old() {}\r\nold();\r\n"},
            {"path": "a.js", "line": 2, "col": 1},
            "fresh",
            {"a.js": "function fresh() {}\r\nfresh();\r\n"},
        ),
    ],
    ids=["class", "method", "inner scope", "go", "go package", "rust", "c header", "java", "interface", "crlf"],
)
async def test_names_follow_their_scope(
    tmp_path: Path, files: Files, symbol: Any, new_name: str, expected: dict[str, str]
) -> None:
    root = write_tree(tmp_path / "root", files)
    await refactored(root, op="rename", symbol=symbol, newName=new_name)
    for name, text in expected.items():
        assert text in (root / name).read_bytes().decode(), name


@pytest.mark.parametrize(
    ("files", "symbol", "new_name", "kind"),
    [
        ({"a.ts": "export const x = 1;\n", "b.ts": "export const x = 2;\n"}, {"name": "x"}, "y", Conflict),
        ({"a.js": "class A { f() {} }\nclass B { f() {} }\n"}, {"name": "f"}, "g", Conflict),
        ({"a.js": "function f() {}\nfunction g() {}\n"}, {"name": "f"}, "g", Conflict),
        ({"a.js": "f();\n"}, {"name": "f"}, "g", NotFound),
        ({"a.js": "function f() {}\n"}, {"path": "a.js", "line": 1, "col": 10}, "no name", DariError),
        ({"a.js": "function f() {}\n"}, {"path": "a.js", "line": 1, "col": 10}, "class", Conflict),
        ({"a.xyz": "f\n"}, {"path": "a.xyz", "line": 1, "col": 1}, "g", DariError),
    ],
    ids=["two files", "two classes", "taken", "no definition", "no name", "keyword", "no language"],
)
async def test_what_the_syntax_cannot_tell_is_refused(
    tmp_path: Path, files: Files, symbol: Any, new_name: str, kind: type[DariError]
) -> None:
    root = write_tree(tmp_path / "root", files)
    before = read_tree(root)
    with pytest.raises(kind):
        await refactored(root, op="rename", symbol=symbol, newName=new_name)
    assert read_tree(root) == before


async def test_paths_narrow_an_ambiguous_name(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a/x.ts": "export const x = 1;\n", "b/x.ts": "export const x = 2;\n"})
    await refactored(root, op="rename", symbol={"name": "x"}, newName="y", paths=["a"])
    assert (root / "a/x.ts").read_text() == "export const y = 1;\n"
    assert (root / "b/x.ts").read_text() == "export const x = 2;\n"


async def test_a_moved_file_of_typescript_takes_its_imports_along_in_both_directions(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path / "root",
        {
            "src/a.ts": "import { b } from './b';\nimport x from '../lib/x.js';\nexport const a = b;\n",
            "src/b.ts": "export const b = 1;\n",
            "lib/x.ts": "export default 1;\n",
            "lib/use.ts": "import { a } from '../src/a';\nexport * from '../src/a.js';\n"
            "const l = import('../src/a');\n",
            "src/near.js": "const { a } = require('./a');\njest.mock('./a');\nconst s = './a';\n",
            "src/index.ts": "export { b } from './b';\n",
        },
    )
    (root / "src/a.ts").chmod(0o755)
    before = read_tree(root)
    async with code_tools(root) as tools:
        done = await tools.call(
            "refactor", op="move", symbol={"path": "src/a.ts"}, to="src/deep/er/a2.ts", dryRun=False
        )
        assert not (root / "src/a.ts").exists()
        moved = root / "src/deep/er/a2.ts"
        assert (
            moved.read_text()
            == "import { b } from '../../b';\nimport x from '../../../lib/x.js';\nexport const a = b;\n"
        )
        assert stat.S_IMODE(moved.stat().st_mode) == 0o755
        assert (root / "lib/use.ts").read_text() == (
            "import { a } from '../src/deep/er/a2';\nexport * from '../src/deep/er/a2.js';\n"
            "const l = import('../src/deep/er/a2');\n"
        )
        assert (root / "src/near.js").read_text() == (
            "const { a } = require('./deep/er/a2');\njest.mock('./deep/er/a2');\nconst s = './a';\n"
        )
        await tools.call("undo", undoToken=done["undoToken"])
    assert read_tree(root) == before


async def test_a_file_moves_to_a_new_folder_also_without_a_slash_behind_it(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path / "root", {"src/a.ts": "export const a = 1;\n", "src/use.ts": "import { a } from './a';\n"}
    )
    async with code_tools(root) as tools:
        await tools.call("refactor", op="move", symbol={"path": "src/a.ts"}, to="src/models", dryRun=False)
    assert (root / "src/models/a.ts").is_file()
    assert (root / "src/use.ts").read_text() == "import { a } from './models/a';\n"


async def test_a_move_never_overwrites_a_file_nor_leaves_the_workspace(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a.ts": "export {};\n", "b.ts": "export {};\n", "c.txt": "x"})
    before = read_tree(root)
    for target in ("b.ts", "../a.ts", "/etc/a.ts"):
        with pytest.raises(DariError):
            await refactored(root, op="move", symbol={"path": "a.ts"}, to=target)
    assert read_tree(root) == before


async def test_imports_of_python_are_sorted_by_the_projects_rules_and_unused_ones_go_when_asked(tmp_path: Path) -> None:
    text = "import sys\nimport os\n\nprint(sys)\n"
    root = write_tree(tmp_path / "root", {"a.py": text, "ok.py": "import os\n\nprint(os)\n", "empty.py": ""})
    result = await refactored(root, op="organizeImports")
    assert [edit["path"] for edit in result["edits"]] == ["a.py"] and result["engine"].startswith("ruff 0.")
    assert (root / "a.py").read_text() == "import os\nimport sys\n\nprint(sys)\n"
    await refactored(root, op="organizeImports", paths=["*.py"], removeUnused=True)
    assert (root / "a.py").read_text() == "import sys\n\nprint(sys)\n"


async def test_an_engine_that_is_missing_is_named_with_its_install_command(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a.ts": "import b from 'b';\n"})
    async with code_tools(root, environ={"PATH": "/nowhere", "HOME": os.environ["HOME"]}) as tools:
        with pytest.raises(Unavailable) as raised:
            await tools.call("refactor", op="organizeImports")
    assert "@biomejs/biome" in raised.value.hint


async def test_imports_of_typescript_are_sorted_by_the_projects_biome(tmp_path: Path) -> None:
    root = node_project(tmp_path / "root", "biome")
    write_tree(root, {"a.ts": "import { b } from 'b';\nimport { a } from 'a';\nconsole.log(a, b)\n"})
    result = await refactored(root, op="organizeImports", paths=["a.ts"])
    assert result["engine"].startswith("biome 2.")
    text = (root / "a.ts").read_text()
    assert text.startswith("import { a } from 'a';\nimport { b } from 'b';\n") and text.endswith("console.log(a, b)\n")


ONE_FILE = {
    "a.kt": "fun old(x: Int): Int = x\nfun main() { old(1) }\n",
    "a.rb": "def old(x)\n  x\nend\nold(1)\n",
    "a.php": "<?php\nfunction old($x) { return $x; }\nold(1);\n",
    "a.cs": "class A { int old(int x) { return x; } int G() { return old(1); } }\n",
    "a.swift": "func old(x: Int) -> Int { return x }\nlet y = old(x: 1)\n",
    "a.lua": "local function old(x) return x end\nprint(old(1))\n",
    "a.sh": "old() { echo 1; }\nold\n",
    "a.scala": "object A { def old(x: Int): Int = x; val y = old(1) }\n",
    "a.rs": "struct S { old: i32 }\nimpl S { fn get(&self) -> i32 { self.old } }\nfn m() { S { old: 1 }.old; }\n",
    "a.go": "package a\ntype T struct { old int }\nfunc (t *T) Get() int { return t.old }\nvar x = T{old: 1}\n",
    "a.cpp": "class A { public: int old(int x); };\nint A::old(int x) { return x; }\nint m(A a) { return a.old(1); }\n",
    "a.tsx": "export default function old(p: { l: string }) { return <b>{p.l}</b>; }\n"
    "export const X = () => <old l='x'></old>;\n",
}


@pytest.mark.parametrize("name", ONE_FILE)
async def test_a_name_is_renamed_wherever_a_language_writes_it(tmp_path: Path, name: str) -> None:
    root = write_tree(tmp_path / "root", {name: ONE_FILE[name]})
    await refactored(root, op="rename", symbol={"name": "old"}, newName="fresh")
    assert (root / name).read_text() == ONE_FILE[name].replace("old", "fresh")


async def test_an_export_of_commonjs_keeps_its_name_for_those_who_load_it(tmp_path: Path) -> None:
    use = "const { old } = require('./a');\nold();\n"
    root = write_tree(tmp_path / "root", {"a.js": "function old() {}\nmodule.exports = { old };\n", "b.js": use})
    await refactored(root, op="rename", symbol={"path": "a.js", "line": 1}, newName="fresh")
    assert (root / "a.js").read_text() == "function fresh() {}\nmodule.exports = { old: fresh };\n"
    assert (root / "b.js").read_text() == use


async def test_what_a_file_passes_on_from_another_is_renamed(tmp_path: Path) -> None:
    files: Files = {
        "a.ts": "export function foo() { return 1; }\n",
        "index.ts": "export { other } from 'lodash';\nexport { foo } from './a';\nexport type { T } from './a';\n",
        "use.ts": "import { foo } from './index';\nfoo();\n",
        "foreign.ts": "export { foo } from 'lodash';\n",
    }
    root = write_tree(tmp_path / "root", files)
    await refactored(root, op="rename", symbol={"path": "a.ts", "line": 1, "col": 17}, newName="bar")
    assert (root / "index.ts").read_text() == str(files["index.ts"]).replace("foo", "bar")
    assert (root / "use.ts").read_text() == "import { bar } from './index';\nbar();\n"
    assert (root / "foreign.ts").read_text() == files["foreign.ts"]


@pytest.mark.parametrize(
    ("text", "line", "col"),
    [
        ("function foo() { return 1; }\nfunction use(bar) {\n  return foo() + bar;\n}\n", 1, 10),
        ("function foo() { return 1; }\nfunction use() {\n  const bar = 1;\n  return foo() + bar;\n}\n", 1, 10),
        ("import { bar } from './b';\nfunction foo() { return bar; }\n", 2, 10),
        ("function foo() { return bar(); }\n", 1, 10),
        ("const bar = 1;\nfunction use() {\n  const foo = 2;\n  return foo + bar;\n}\n", 3, 9),
    ],
)
async def test_a_rename_that_another_name_would_capture_is_refused(
    tmp_path: Path, text: str, line: int, col: int
) -> None:
    root = write_tree(tmp_path / "root", {"a.js": text})
    with pytest.raises(Conflict) as raised:
        await refactored(root, op="rename", symbol={"path": "a.js", "line": line, "col": col}, newName="bar")
    assert "a.js:" in raised.value.message and "'bar'" in raised.value.message
    assert (root / "a.js").read_text() == text


async def test_a_local_of_the_new_name_that_meets_no_use_is_no_obstacle(tmp_path: Path) -> None:
    text = (
        "import { bar as b } from './b';\nfunction foo() { return { bar: b.bar }; }\n"
        "function other(bar) { return bar.foo; }\nfoo();\n"
    )
    root = write_tree(tmp_path / "root", {"a.js": text})
    await refactored(root, op="rename", symbol={"path": "a.js", "line": 2, "col": 10}, newName="bar")
    assert (root / "a.js").read_text() == text.replace("foo()", "bar()")


@pytest.mark.parametrize(
    ("name", "text", "symbol", "expected"),
    [
        (
            "a.go",
            "package a\n\ntype Server int\n\nfunc (s *Server) Serve() int { return 1 }\n",
            {"line": 5},
            "package a\n\ntype Server int\n\nfunc (s *Server) fresh() int { return 1 }\n",
        ),
        ("a.js", "use(items); function item() {}\n", {"line": 1}, "use(items); function fresh() {}\n"),
        ("a.js", "let totals, total\r\nlet more\n", {"line": 2}, "let totals, total\r\nlet fresh\n"),
        ("a.js", "let $box = 1\n$box\n", {"line": 2, "col": 1}, "let fresh = 1\nfresh\n"),
        ("a.js", "let $box = 1\n$box\n", {"line": 1, "col": 6}, "let fresh = 1\nfresh\n"),
    ],
    ids=["method of Go", "two names", "mixed line ends", "dollar", "behind the dollar"],
)
async def test_a_line_stands_for_the_whole_name_that_it_defines(
    tmp_path: Path, name: str, text: str, symbol: dict[str, int], expected: str
) -> None:
    root = write_tree(tmp_path / "root", {name: text})
    await refactored(root, op="rename", symbol={"path": name, **symbol}, newName="fresh")
    assert (root / name).read_bytes().decode() == expected
