from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dari.codetools.engines.locate import find_engine
from dari.codetools.symbols import find
from dari.errors import Denied, InvalidInput
from tests.support.codetools import code_tools

FILES = {
    "shop/cart.py": (
        "from shop.money import price\n\nLIMIT = 3\n\n\nclass Cart:\n    size = LIMIT\n\n    def add(self, item):\n"
        "        return price(item)\n\n    def fill(self):\n        self.add(1)\n        self.add(2)  # add twice\n"
    ),
    "shop/money.py": "def price(item):\n    return item\n\n\ndef add(a, b):\n    return a + b\n",
    "shop/pages.py": (
        "from shop.cart import Cart\nfrom shop import money\n\n\ndef show(add):\n    return add\n\n\n"
        "def page(cart: Cart):\n    cart.add(1)\n    money.add(1, 2)\n    other.add(3)\n    return 'add'\n"
    ),
    "web/app.ts": "import {Cart} from './cart';\n\nexport class Page {\n  cart = new Cart();\n  add(): void {}\n}\n",
    "data.yaml": "add: 1\n",
    "notes.txt": "add this\n",
    "LICENSE": "you may add to this\n",
    "run.bat": "add\n",
}


def make(root: Path) -> Path:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def defined(result: dict[str, Any]) -> list[str]:
    return [f"{one['kind']} {one['symbol']} {one['path']}:{one['line']}" for one in result.get("definitions", [])]


def used(result: dict[str, Any]) -> list[str]:
    return [
        f"{file['path']}:{use['line']} {use.get('kind', 'use')} {use.get('certainty', 'sure')}"
        for file in result.get("references", [])
        for use in file["uses"]
    ]


async def test_definitions_and_references_of_a_name(tmp_path: Path) -> None:
    async with code_tools(make(tmp_path / "r")) as tools:
        result = await tools.call("symbols", name="Cart")
    assert result["definitions"] == [
        {
            "path": "shop/cart.py",
            "line": 6,
            "col": 7,
            "kind": "class",
            "symbol": "Cart",
            "text": "class Cart:",
            "lines": "6-14",
        }
    ]
    assert used(result) == [
        "shop/pages.py:1 import sure",
        "shop/pages.py:9 type sure",
        "web/app.ts:1 import sure",
        "web/app.ts:4 call sure",
    ]
    assert result["references"][0]["uses"][1] == {
        "line": 9,
        "col": 16,
        "text": "def page(cart: Cart):",
        "in": "page",
        "kind": "type",
    }
    assert result["totals"] == {"definitions": 1, "references": 4, "files": 3}


async def test_an_ambiguous_name_says_how_sure_each_reference_is(tmp_path: Path) -> None:
    async with code_tools(make(tmp_path / "r")) as tools:
        result = await tools.call("symbols", name="add")
    assert defined(result) == [
        "method Cart.add shop/cart.py:9",
        "function add shop/money.py:5",
        "method Page.add web/app.ts:5",
    ]
    assert used(result) == [
        "shop/cart.py:13 call sure",
        "shop/cart.py:14 call sure",
        "shop/pages.py:10 call likely",
        "shop/pages.py:11 call sure",
        "shop/pages.py:12 call possible",
    ]
    assert result["totals"]["locals"] == 2
    assert result["note"].startswith("several definitions") and "not parsed" not in result["note"]


@pytest.mark.parametrize(
    ("name", "where", "uses"),
    [
        ("Cart.add", "method Cart.add shop/cart.py:9", ["shop/cart.py:13", "shop/cart.py:14", "shop/pages.py:10"]),
        ("money.add", "function add shop/money.py:5", ["shop/pages.py:11"]),
        ("shop.money.add", "function add shop/money.py:5", ["shop/pages.py:11"]),
        ("Page::add", "method Page.add web/app.ts:5", []),
    ],
)
async def test_a_qualified_name_narrows(tmp_path: Path, name: str, where: str, uses: list[str]) -> None:
    async with code_tools(make(tmp_path / "r")) as tools:
        result = await tools.call("symbols", name=name)
    assert defined(result) == [where]
    assert [one.split()[0] for one in used(result) if not one.endswith("possible")] == uses
    assert result["totals"]["otherDefinitions"] == 2


async def test_kind_include_and_text_choose_what_comes(tmp_path: Path) -> None:
    async with code_tools(make(tmp_path / "r")) as tools:
        methods = await tools.call("symbols", name="add", kind="method", include="definitions")
        keys = await tools.call("symbols", name="add", kind="key")
        calls = await tools.call("symbols", name="add", kind="call", include="references")
        text = await tools.call("symbols", name="add", inText=True, include="references")
        constant = await tools.call("symbols", name="LIMIT")
    assert defined(methods) == ["method Cart.add shop/cart.py:9", "method Page.add web/app.ts:5"]
    assert "references" not in methods
    assert defined(keys) == ["key add data.yaml:1"]
    assert "definitions" not in calls
    assert {one.split()[1] for one in used(calls)} == {"call"}
    assert {"shop/cart.py:14 comment possible", "shop/pages.py:13 string_content possible"} <= set(used(text))
    assert defined(constant) == ["constant LIMIT shop/cart.py:3"]
    assert used(constant) == ["shop/cart.py:7 use sure"]


async def test_paths_narrow_and_ignored_files_stay_out(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("build/\n")
    (root / "build").mkdir()
    (root / "build" / "x.py").write_text("def add(): pass\n")
    (root / ".hidden.py").write_text("def add(): pass\n")
    async with code_tools(root) as tools:
        everywhere = await tools.call("symbols", name="add", include="definitions")
        folder = await tools.call("symbols", name="add", paths=["web"], include="definitions")
        glob = await tools.call("symbols", name="add", paths=["shop/m*.py"], include="definitions")
        below = await tools.call("symbols", name="add", root="web", include="definitions")
        with pytest.raises(Denied):
            await tools.call("symbols", name="add", paths=["../x"])
    assert len(everywhere["definitions"]) == 4
    assert defined(folder) == ["method Page.add web/app.ts:5"]
    assert defined(glob) == ["function add shop/money.py:5"]
    assert defined(below) == ["method Page.add app.ts:5"]


async def test_without_ripgrep_the_result_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "r")
    async with code_tools(root) as tools:
        fast = await tools.call("symbols", name="add", inText=True)
        assert fast["engine"].startswith("ripgrep 1")
        monkeypatch.setattr(find, "find_engine", lambda *_, **__: None)
        slow = await tools.call("symbols", name="add", inText=True)
    assert slow.pop("engine").startswith("python, tree-sitter")
    del fast["engine"]
    assert slow == fast


async def test_pages_go_on_to_the_end(tmp_path: Path) -> None:
    root = tmp_path / "r"
    root.mkdir()
    for number in range(7):
        (root / f"f{number}.py").write_text("from m import thing\n" + "thing()\n" * 20)
    (root / "m.py").write_text("def thing(): pass\n")
    async with code_tools(root) as tools:
        seen: list[str] = []
        cursor = None
        for _ in range(100):
            page = await tools.call("symbols", name="thing", maxTokens=300, limit=40, cursor=cursor)
            assert len(msgspec.json.encode(page)) < 300 * 4 + 400
            seen += defined(page) + used(page)
            cursor = page.get("cursor")
            if cursor is None:
                break
        with pytest.raises(InvalidInput):
            await tools.call("symbols", name="other", cursor="40-deadbeef")
    assert len(seen) == len(set(seen)) == 1 + 7 * 21


@pytest.mark.parametrize("name", ["-rf", "--files", "a b", "", "\0", ".", "x" * 400])
async def test_a_name_is_never_an_option(tmp_path: Path, name: str) -> None:
    root = make(tmp_path / "r")
    (root / "-rf").write_text("#!/bin/sh\nrun() { rm -rf x; }\n")
    async with code_tools(root) as tools:
        try:
            result = await tools.call("symbols", name=name)
        except (InvalidInput, msgspec.ValidationError):
            return
    assert result["totals"]["definitions"] == 0


async def test_a_file_that_crashes_its_grammar_is_named_and_the_rest_is_there(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    (root / "evil.yaml").write_text("# add\n" + "- ? " * 5_000)
    async with code_tools(root) as tools:
        result = await tools.call("symbols", name="add", include="definitions")
    assert len(result["definitions"]) == 3
    assert "evil.yaml" in result["note"]


def test_a_program_of_the_project_is_not_run(tmp_path: Path) -> None:
    """`symbols` reads: the rg that a repository brings in node_modules is not what it starts."""
    from dari.codetools.workspace import Workspace

    trap = tmp_path / "node_modules" / ".bin" / "rg"
    trap.parent.mkdir(parents=True)
    trap.write_text("#!/bin/sh\ntouch ran\n")
    trap.chmod(0o755)
    found = find_engine("rg", Workspace([tmp_path]), tmp_path, {}, origins=("path", "dari"))
    assert found is None or found.command[0] != str(trap)
