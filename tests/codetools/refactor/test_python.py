"""Rename and move in Python, through the tool."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dari.errors import Conflict, DariError, InvalidInput, NotFound
from tests.support.codetools import CodeTools, code_tools
from tests.support.file_trees import read_tree, write_tree

PROJECT: dict[str, str | bytes] = {
    "src/shop/__init__.py": 'from .cart import Cart, total_price\n\n__all__ = ["Cart", "total_price"]\n',
    "src/shop/cart.py": '''"""Carts. total_price is documented here."""
from shop.tax import RATE


def total_price(items, discount=0):
    """Sum items; see total_price."""
    amount = sum(items) - discount
    return amount * (1 + RATE)


class Cart:
    size = 0

    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)
        return total_price(self.items, discount=1)


class BigCart(Cart):
    def add(self, item):
        return super().add(item)


def use(thing):
    return thing.add(3)
''',
    "src/shop/tax.py": "RATE = 0.5\n",
    "tests/test_cart.py": "import shop\nfrom shop.cart import BigCart, total_price as price\n\n\ndef test():\n"
    "    assert shop.total_price([2]) == price([2], discount=0) == 3\n    assert BigCart().add(3) == 3\n",
    "README.md": "Use `total_price` for sums.\n",
}


def check_runs(root: Path) -> None:
    code = "import sys; sys.path[:0] = ['src', 'tests']; import test_cart; test_cart.test(); from shop import *"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr


async def refactored(tools: CodeTools, **arguments: Any) -> Any:
    """A dry run that writes nothing, then the same with its hash."""
    root = (await tools.session.workspace(tools.caller)).base
    before = read_tree(root)
    dry = await tools.call("refactor", **arguments)
    assert read_tree(root) == before
    assert not dry["applied"] and "undoToken" not in dry
    done = await tools.call("refactor", **arguments, dryRun=False, expectHash=dry["hash"])
    assert done["applied"] and "hash" not in done
    assert done["edits"] == [{key: value for key, value in one.items() if key != "diff"} for one in dry["edits"]]
    return done


@pytest.mark.parametrize(
    ("symbol", "new_name", "gone", "files"),
    [
        ({"name": "total_price"}, "sum_up", "def total_price", 3),
        ({"name": "shop.cart.total_price"}, "sum_up", "def total_price", 3),
        ({"path": "src/shop/cart.py", "line": 5, "col": 5}, "sum_up", "def total_price", 3),
        ({"path": "src/shop/cart.py", "line": 5}, "sum_up", "def total_price", 3),
        ({"path": "tests/test_cart.py", "line": 6, "col": 17}, "sum_up", "def total_price", 3),
        ({"name": "BigCart"}, "HugeCart", "class BigCart", 2),
        ({"name": "Cart.add"}, "put", "def add", 2),
        ({"name": "Cart.items"}, "goods", "self.items", 1),
        ({"name": "total_price.discount"}, "off", "discount", 2),
        ({"path": "src/shop/cart.py", "line": 7, "col": 5}, "value", "amount", 1),
        ({"name": "RATE"}, "TAX_RATE", "import RATE", 2),
        ({"name": "shop.tax"}, "vat", "shop.tax", 3),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
async def test_everything_that_has_a_name_is_renamed_and_the_code_still_runs(
    tmp_path: Path, symbol: dict[str, Any], new_name: str, gone: str, files: int
) -> None:
    root = write_tree(tmp_path / "root", PROJECT)
    before = read_tree(root)
    async with code_tools(root) as tools:
        done = await refactored(tools, op="rename", symbol=symbol, newName=new_name, unsure=True)
        assert done["engine"].startswith("rope 1.")
        assert not any(gone.encode() in path.read_bytes() for path in root.rglob("*.py"))
        assert len(done["edits"]) == files
        check_runs(root)
        await tools.call("undo", undoToken=done["undoToken"])
    for cache in root.rglob("__pycache__"):
        for file in cache.iterdir():
            file.unlink()
        cache.rmdir()
    assert read_tree(root) == before


async def test_what_is_left_is_counted_and_named(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", PROJECT)
    async with code_tools(root) as tools:
        method = await tools.call("refactor", op="rename", symbol={"name": "Cart.add"}, newName="put")
        (unsure,) = [note for note in method["notes"] if "unknown type" in note]
        assert unsure.startswith("1 ") and "src/shop/cart.py:28" in unsure
        function = await tools.call("refactor", op="rename", symbol={"name": "total_price"}, newName="sum_up")
        (mentions,) = [note for note in function["notes"] if "mentions" in note]
        assert "README.md:1" in mentions and "src/shop/cart.py:1" in mentions
        documented = await tools.call(
            "refactor", op="rename", symbol={"name": "total_price"}, newName="sum_up", docs=True
        )
        assert any('"""Sum items; see sum_up."""' in edit["diff"] for edit in documented["edits"])
        assert [note.split(" are left")[0] for note in documented["notes"]] == [
            "1 mentions of 'total_price' in documents"
        ]


async def test_docs_renames_comments_docstrings_and_strings_also_in_files_that_only_mention_the_name(
    tmp_path: Path,
) -> None:
    other = '# ``total_price`` counts\ndef test():\n    """:func:`shop.cart.total_price`, not total_prices"""\n'
    root = write_tree(tmp_path / "root", {**PROJECT, "tests/test_other.py": other + "    x = 'a.total_price'\n"})
    async with code_tools(root) as tools:
        await refactored(tools, op="rename", symbol={"name": "total_price"}, newName="sum_up", docs=True)
    text = (root / "tests/test_other.py").read_text()
    assert text.count("sum_up") == 3 and "total_prices" in text and "total_price`" not in text
    check_runs(root)


async def test_nothing_is_written_beside_the_files_that_change(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", PROJECT)
    names = set(read_tree(root))
    async with code_tools(root) as tools:
        await refactored(tools, op="rename", symbol={"name": "RATE"}, newName="TAX")
    assert set(read_tree(root)) == names


async def test_configuration_of_a_hostile_repository_is_not_run(tmp_path: Path) -> None:
    """rope runs .ropeproject/config.py; Python with -m looks for modules in the current folder first."""
    trap = f"open({str(tmp_path / 'trap')!r}, 'w').close()\n"
    hostile = {
        ".ropeproject/config.py": trap,
        "rope.py": trap,
        "msgspec.py": trap,
        "ast_grep_py.py": trap,
        "sitecustomize.py": trap,
        "pyproject.toml": '[tool.rope]\nextension_modules = ["trap"]\npython_path = ["."]\n[broken',
        "trap.py": trap,
        "conftest.py": trap,
    }
    root = write_tree(tmp_path / "root", {**PROJECT, **hostile})
    async with code_tools(root, environ={**os.environ, "PYTHONPATH": str(root)}) as tools:
        await refactored(tools, op="rename", symbol={"name": "RATE"}, newName="TAX")
        await tools.call("refactor", op="rewrite", pattern="sum($A)", rewrite="fsum($A)", lang="python")
    assert not (tmp_path / "trap").exists()


async def test_line_ends_encoding_and_bom_of_every_file_stay(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "crlf.py": b"def old():\r\n    return 1\r\n",
        "mixed.py": b"from crlf import old\r\n\nold()\r\nx = 1\n",
        "bom.py": b"\xef\xbb\xbffrom crlf import old\n",
        "latin.py": "# -*- coding: latin-1 -*-\nfrom crlf import old\nx = 'é'\n".encode("latin-1"),
        "end.py": b"from crlf import old  # no line end",
    }
    root = write_tree(tmp_path / "root", files)
    async with code_tools(root) as tools:
        done = await refactored(tools, op="rename", symbol={"name": "old"}, newName="fresh")
    assert len(done["edits"]) == 5
    for name, content in files.items():
        assert isinstance(content, bytes)
        assert (root / name).read_bytes() == content.replace(b"old", b"fresh"), name


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"symbol": {"name": "nothing_like_it"}, "newName": "x"}, NotFound),
        ({"symbol": {"name": "add"}, "newName": "x"}, Conflict),
        ({"symbol": {"name": "total_price"}, "newName": "Cart"}, Conflict),
        ({"symbol": {"name": "total_price"}, "newName": "not a name"}, InvalidInput),
        ({"symbol": {"name": "total_price"}, "newName": "class"}, InvalidInput),
        ({"symbol": {"path": "src/shop/cart.py", "line": 4, "col": 1}, "newName": "x"}, InvalidInput),
        ({"symbol": {"path": "src/shop/cart.py", "line": 400}, "newName": "x"}, InvalidInput),
        ({"symbol": {"path": "src/shop/gone.py", "line": 1}, "newName": "x"}, NotFound),
        ({"symbol": {"path": "../outside.py", "line": 1}, "newName": "x"}, DariError),
        ({"symbol": {"name": "total_price"}}, InvalidInput),
        ({"newName": "x"}, InvalidInput),
    ],
    ids=["unknown", "ambiguous", "taken", "no name", "keyword", "blank", "line", "file", "outside", "nothing", "all"],
)
async def test_what_cannot_be_renamed_says_why(tmp_path: Path, arguments: Any, kind: type[DariError]) -> None:
    root = write_tree(tmp_path / "root", PROJECT)
    before = read_tree(root)
    async with code_tools(root) as tools:
        with pytest.raises(kind) as raised:
            await tools.call("refactor", op="rename", **arguments, dryRun=False)
    assert raised.value.message and raised.value.hint
    assert read_tree(root) == before


async def test_a_file_that_does_not_parse_is_named_and_the_others_are_renamed(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {**PROJECT, "src/shop/broken.py": "def RATE(:\n"})
    async with code_tools(root) as tools:
        done = await refactored(tools, op="rename", symbol={"name": "shop.tax.RATE"}, newName="TAX")
    assert any("src/shop/broken.py" in note for note in done["notes"])


async def test_ignored_files_are_left_alone(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path / "root", {**PROJECT, ".gitignore": "build/\n", "build/copy.py": "from shop.tax import RATE\n"}
    )
    async with code_tools(root) as tools:
        await refactored(tools, op="rename", symbol={"name": "RATE"}, newName="TAX")
    assert (root / "build/copy.py").read_text() == "from shop.tax import RATE\n"


@pytest.mark.parametrize("target", ["src/shop/tax.py", "src/shop/pricing.py"], ids=["existing module", "new module"])
async def test_a_function_moves_to_another_module_with_its_imports(tmp_path: Path, target: str) -> None:
    files = {**PROJECT, "src/shop/__init__.py": ""}
    files["tests/test_cart.py"] = (
        "from shop.cart import BigCart, total_price\n\n\ndef test():\n    assert total_price([2]) == 3\n"
        "    assert BigCart().add(3) == 3\n"
    )
    root = write_tree(tmp_path / "root", files)
    before = read_tree(root)
    async with code_tools(root) as tools:
        done = await refactored(tools, op="move", symbol={"name": "total_price"}, to=target)
        assert "def total_price" in (root / target).read_text()
        assert "def total_price" not in (root / "src/shop/cart.py").read_text()
        check_runs(root)
        await tools.call("undo", undoToken=done["undoToken"])
    assert {name: row for name, row in read_tree(root).items() if "__pycache__" not in name} == before


async def test_a_module_moves_to_another_package_and_keeps_its_mode(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {**PROJECT, "src/shop/money/__init__.py": ""})
    (root / "src/shop/tax.py").chmod(0o755)
    async with code_tools(root) as tools:
        await refactored(tools, op="move", symbol={"path": "src/shop/tax.py"}, to="src/shop/money")
    assert not (root / "src/shop/tax.py").exists()
    assert (root / "src/shop/money/tax.py").stat().st_mode & 0o777 == 0o755
    check_runs(root)


async def test_a_rename_that_takes_too_long_is_ended_with_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dari.codetools.tools import refactor
    from dari.errors import TimedOut

    monkeypatch.setattr(refactor, "TIMEOUT_S", 0.01)
    root = write_tree(tmp_path / "root", PROJECT)
    async with code_tools(root) as tools:
        with pytest.raises(TimedOut):
            await tools.call("refactor", op="rename", symbol={"name": "RATE"}, newName="TAX")


async def test_a_plan_that_needs_too_much_memory_is_ended_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dari.codetools.refactor import plan
    from dari.errors import Failed

    monkeypatch.setattr(plan, "MAX_MEMORY_BYTES", 160 << 20)
    big = "x = [" + "1, " * 3_000_000 + "]\nold = 1\n"
    root = write_tree(tmp_path / "root", {"a.py": big})
    async with code_tools(root) as tools:
        with pytest.raises(Failed) as raised:
            await tools.call("refactor", op="rename", symbol={"name": "old"}, newName="fresh")
    assert "memory" in raised.value.message.lower()


async def test_every_example_of_the_guide_is_a_valid_call(tmp_path: Path) -> None:
    guide = Path(__file__).parents[3] / "docs" / "guide" / "code-refactor.md"
    block = guide.read_text().split("```json\n")[1].split("```")[0]
    files = {
        **PROJECT,
        "src/a.ts": "export {};\n",
        "src/old.py": "x == None\nassertEquals(1, 2)\n",
        "src/shop/cart.py": str(PROJECT["src/shop/cart.py"]).replace("total_price", "total"),
        "src/shop/__init__.py": "",
        "tests/test_cart.py": "",
    }
    root = write_tree(tmp_path / "root", files)
    async with code_tools(root) as tools:
        for line in block.splitlines():
            arguments = msgspec.json.decode(line)
            if arguments.get("newName") == "total":
                arguments["newName"] = "whole"
            result = await tools.call("refactor", **arguments)
            assert result["hash"] and not result["applied"], line


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
async def test_lines_are_counted_as_python_counts_them(tmp_path: Path, line_end: str) -> None:
    def text(name: str) -> bytes:
        rows = ["import os", "\f", f'__all__ = ["{name}"]', "", "", f"def {name}():", "    return '\x85'", ""]
        return line_end.join(rows).encode()

    def user(name: str) -> bytes:
        return line_end.join(["\f", "import a", f"from a import {name}", f"print(a.{name}, {name})", ""]).encode()

    root = write_tree(tmp_path / "root", {"a.py": text("find"), "b.py": user("find")})
    async with code_tools(root) as tools:
        await tools.call("refactor", op="rename", symbol={"name": "a.find"}, newName="search", dryRun=False)
    assert (root / "a.py").read_bytes() == text("search")
    assert (root / "b.py").read_bytes() == user("search")


@pytest.mark.parametrize(
    "user",
    [
        "from a import foo\n\n\ndef use():\n    bar = 1\n    return foo() + bar\n",
        "from a import foo\n\n\ndef use(bar):\n    return foo() + bar\n",
        "from a import foo\n\nuse = lambda bar: foo() + bar\n",
        "from a import foo\n\nuse = [foo() for bar in range(3)]\n",
        "from a import *\n\n\ndef bar():\n    return foo()\n",
        "from a import foo\n\n\ndef f():\n    try:\n        foo()\n    except E as bar:\n        print(bar)\n",
    ],
)
async def test_a_rename_that_another_name_would_capture_is_refused(tmp_path: Path, user: str) -> None:
    root = write_tree(tmp_path / "root", {"a.py": "def foo():\n    return 1\n", "b.py": user})
    before = read_tree(root)
    async with code_tools(root) as tools:
        with pytest.raises(Conflict) as raised:
            await tools.call("refactor", op="rename", symbol={"name": "a.foo"}, newName="bar", dryRun=False)
    assert "b.py:" in raised.value.message and "'bar'" in raised.value.message
    assert read_tree(root) == before


@pytest.mark.parametrize(
    ("text", "line", "col", "new_name"),
    [
        ("def foo():\n    return len('a')\n", 1, 5, "len"),
        ("bar = 1\n\n\ndef f():\n    foo = 2\n    return foo + bar\n", 5, 5, "bar"),
        ("def f():\n    foo = 2\n\n    def g(bar):\n        return foo + bar\n\n    return g\n", 2, 5, "bar"),
        ("def f():\n    foo, bar = 1, 2\n    return foo + bar\n", 2, 5, "bar"),
    ],
)
async def test_a_name_that_would_hide_another_is_refused(
    tmp_path: Path, text: str, line: int, col: int, new_name: str
) -> None:
    root = write_tree(tmp_path / "root", {"a.py": text})
    symbol = {"path": "a.py", "line": line, "col": col}
    async with code_tools(root) as tools:
        with pytest.raises(Conflict):
            await tools.call("refactor", op="rename", symbol=symbol, newName=new_name, dryRun=False)
    assert (root / "a.py").read_text() == text


async def test_a_local_of_the_new_name_that_meets_no_use_is_no_obstacle(tmp_path: Path) -> None:
    text = "def foo():\n    return 1\n\n\ndef other(bar):\n    return bar\n\n\nclass C:\n    foo = foo\n    bar = 2\n"
    root = write_tree(tmp_path / "root", {"a.py": text + "\n    def bar(self):\n        return foo()\n"})
    async with code_tools(root) as tools:
        await tools.call("refactor", op="rename", symbol={"name": "a.foo"}, newName="bar", dryRun=False)
    assert "def bar():" in (root / "a.py").read_text() and "return bar()" in (root / "a.py").read_text()


FALLBACK: dict[str, str | bytes] = {
    "pkg/__init__.py": "",
    "pkg/a.py": "def helper():\n    return 1\n",
    "fallback.py": "def helper():\n    return 2\n",
}


@pytest.mark.parametrize("order", [("pkg.a", "fallback"), ("fallback", "pkg.a")])
async def test_the_fallback_of_an_import_is_known_by_the_new_name_too(tmp_path: Path, order: tuple[str, str]) -> None:
    form = "try:\n    from {} import {}\nexcept ImportError:\n    from {} import {}\n\nVALUE = {}()\n"
    user = form.format(order[0], "helper", order[1], "helper", "helper")
    root = write_tree(tmp_path / "root", {**FALLBACK, "b.py": user})
    async with code_tools(root) as tools:
        await tools.call("refactor", op="rename", symbol={"name": "pkg.a.helper"}, newName="aid", dryRun=False)
    names = ["aid" if module == "pkg.a" else "helper as aid" for module in order]
    assert (root / "b.py").read_text() == form.format(order[0], names[0], order[1], names[1], "aid")


async def test_a_rename_that_would_leave_a_fallback_behind_is_refused(tmp_path: Path) -> None:
    user = "import os\n\nif os.name:\n    from pkg.a import helper\nelse:\n    from fallback import helper\n"
    root = write_tree(tmp_path / "root", {**FALLBACK, "b.py": f"{user}\nVALUE = helper()\n"})
    before = read_tree(root)
    async with code_tools(root) as tools:
        with pytest.raises(Conflict) as raised:
            await tools.call("refactor", op="rename", symbol={"name": "pkg.a.helper"}, newName="aid", dryRun=False)
    assert "b.py:" in raised.value.message and "'helper'" in raised.value.message
    assert read_tree(root) == before


async def test_imports_that_begin_at_a_folder_of_their_own_follow(tmp_path: Path) -> None:
    files = {f"back/{name}": text for name, text in FALLBACK.items()}
    use = "from pkg.a import helper\nfrom fallback import helper as other\n\nhelper(), other()\n"
    root = write_tree(tmp_path / "root", {**files, "back/pkg/b.py": use})
    async with code_tools(root) as tools:
        await tools.call("refactor", op="rename", symbol={"name": "pkg.a.helper"}, newName="aid", dryRun=False)
    expected = use.replace("import helper\n", "import aid\n").replace("\nhelper()", "\naid()")
    assert (root / "back/pkg/b.py").read_text() == expected
