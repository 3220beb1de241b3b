from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dari.errors import Denied, InvalidInput, NotFound
from tests.support.codetools import code_tools

SOURCE = '''"""A module."""

LIMIT = 3


class Shop(Base):
    """Sells things."""

    name: str

    def sell(self, what: str, count: int = 1) -> bool:
        """Sell it.

        At once."""
        def helper():
            pass
        return True


def main() -> None:
    Shop().sell("x")
'''


async def test_the_outline_of_a_file_is_its_definitions(tmp_path: Path) -> None:
    root = tmp_path / "r"
    root.mkdir()
    (root / "shop.py").write_text(SOURCE)
    async with code_tools(root) as tools:
        result = await tools.call("outline", path="shop.py")
    assert result["engine"].startswith("tree-sitter 0.25")
    assert result["files"] == [
        {
            "path": "shop.py",
            "language": "python",
            "symbols": [
                {"name": "LIMIT", "kind": "constant", "lines": "3", "signature": "LIMIT = 3"},
                {
                    "name": "Shop",
                    "kind": "class",
                    "lines": "6-17",
                    "signature": "class Shop(Base)",
                    "doc": "Sells things.",
                },
                {"name": "Shop.name", "kind": "field", "lines": "9", "signature": "name: str"},
                {
                    "name": "Shop.sell",
                    "kind": "method",
                    "lines": "11-17",
                    "signature": "def sell(self, what: str, count: int = 1) -> bool",
                    "doc": "Sell it.",
                },
                {"name": "main", "kind": "function", "lines": "20-21", "signature": "def main() -> None"},
            ],
        }
    ]


async def test_depth_says_how_far_it_looks_inside(tmp_path: Path) -> None:
    root = tmp_path / "r"
    root.mkdir()
    (root / "shop.py").write_text(SOURCE)
    async with code_tools(root) as tools:
        top = await tools.call("outline", path="shop.py", depth=1)
        deep = await tools.call("outline", path="shop.py", depth=3)
    assert [one["name"] for one in top["files"][0]["symbols"]] == ["LIMIT", "Shop", "main"]
    assert "Shop.sell.helper" in [one["name"] for one in deep["files"][0]["symbols"]]


async def test_folders_and_globs_give_the_files_in_known_languages(tmp_path: Path) -> None:
    root = tmp_path / "r"
    (root / "a" / "b").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("*.gen.py\n")
    for name, text in {
        "a/x.py": "def x(): pass\n",
        "a/b/y.go": "package b\nfunc Y() {}\n",
        "a/z.gen.py": "def z(): pass\n",
        "a/data.bin": "\0\0",
        "a/README.md": "# Title\n",
    }.items():
        (root / name).write_text(text)
    async with code_tools(root) as tools:
        folder = await tools.call("outline", path="a")
        glob = await tools.call("outline", paths=["a/**/*.go", "a/x.py"])
    assert [(one["path"], one["symbols"][0]["name"]) for one in folder["files"]] == [
        ("a/README.md", "Title"),
        ("a/b/y.go", "Y"),
        ("a/x.py", "x"),
    ]
    assert [one["path"] for one in glob["files"]] == ["a/b/y.go", "a/x.py"]


async def test_what_cannot_be_parsed_says_why(tmp_path: Path) -> None:
    root = tmp_path / "r"
    root.mkdir()
    (root / "notes").write_text("plain words\n")
    (root / "blob.py").write_bytes(b"\0\1\2")
    (root / "odd.bat").write_text("echo\n")
    (root / "evil.yaml").write_text("- ? " * 5_000)
    (root / "broken.py").write_text("def f(:\n\ndef g(): pass\n")
    (root / "tool").write_text("#!/usr/bin/env python3\ndef go(): pass\n")
    async with code_tools(root) as tools:
        result = await tools.call("outline", paths=["notes", "blob.py", "odd.bat", "evil.yaml", "broken.py", "tool"])
    notes = {one["path"]: one.get("note", "") for one in result["files"]}
    assert "says a language" in notes["notes"]
    assert "binary" in notes["blob.py"]
    assert "no grammar of batch" in notes["odd.bat"]
    assert "crashed" in notes["evil.yaml"]
    assert "syntax errors" in notes["broken.py"]
    assert notes["tool"] == ""
    names = {one["path"]: [symbol["name"] for symbol in one.get("symbols", [])] for one in result["files"]}
    assert "g" in names["broken.py"]
    assert names["tool"] == ["go"]


async def test_a_budget_leaves_out_docs_then_depth_then_files(tmp_path: Path) -> None:
    root = tmp_path / "r"
    root.mkdir()
    for number in range(30):
        methods = "".join(f'    def m{n}(self):\n        """About {n} in many words."""\n' for n in range(20))
        (root / f"f{number:02}.py").write_text(f"class C{number}:\n{methods}")
    async with code_tools(root) as tools:
        whole = await tools.call("outline", path="f00.py")
        for max_tokens in (100, 300, 1000, 3000, 9000):
            result = await tools.call("outline", path=".", maxTokens=max_tokens)
            assert result["more"]
            assert len(msgspec.json.encode(result["files"])) <= max_tokens * 4 + 300
        flat = await tools.call("outline", path=".", maxTokens=1000)
    assert "more" not in whole
    assert whole["files"][0]["symbols"][1]["doc"] == "About 0 in many words."
    assert {len(one["symbols"]) for one in flat["files"]} == {1}
    assert len(flat["files"]) == 30


async def test_a_minified_line_of_five_megabytes_is_cut_not_hung(tmp_path: Path) -> None:
    root = tmp_path / "r"
    root.mkdir()
    (root / "min.js").write_text("function a(b){return b?c(d[1]):e.f(g)};" * 130_000)
    async with code_tools(root) as tools:
        result = await tools.call("outline", path="min.js", maxTokens=500)
    assert len(msgspec.json.encode(result)) < 3_000


async def test_bad_paths_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "r"
    root.mkdir()
    (tmp_path / "secret.py").write_text("x = 1\n")
    async with code_tools(root) as tools:
        with pytest.raises(InvalidInput):
            await tools.call("outline")
        with pytest.raises(NotFound):
            await tools.call("outline", path="missing.py")
        with pytest.raises(Denied):
            await tools.call("outline", path="../secret.py")
