"""A module moves: every way to import it follows, and no file that imports it loses a line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dari.errors import Conflict, NotFound
from tests.support.codetools import code_tools
from tests.support.file_trees import read_tree, write_tree


def run(root: Path, code: str) -> None:
    ran = subprocess.run([sys.executable, "-Bc", code], cwd=root, capture_output=True, text=True, timeout=30)
    assert ran.returncode == 0, ran.stderr


PROJECT: dict[str, str | bytes] = {
    "pkg/__init__.py": "from .core import Widget\n",
    "pkg/core.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from . import other\n\n\n"
    "class Widget:\n    def user(self):\n        from .sub.user import NAME\n\n        return NAME\n",
    "pkg/other.py": "",
    "pkg/sub/__init__.py": "",
    "pkg/sub/user.py": "NAME = 'é'\n",
}


@pytest.mark.parametrize("to", ["pkg/sub", "."])
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("app.py", "import pkg.core as core\n\nx = core.Widget()\n"),
        ("app.py", "import pkg.core as other\n\nx = other.Widget()\n"),
        ("app.py", "import pkg\nimport pkg.core as core\n\nx = core.Widget()\ny = pkg.Widget, pkg.core.Widget\n"),
        ("app.py", "import pkg\nimport pkg.core\r\n\r\nx = pkg.core.Widget()\r\n"),
        ("app.py", "from pkg import core\n\nx = core.Widget()\n"),
        ("app.py", "from pkg import (\n    Widget,  # kept\n    core as c,\n)\n\nx = c.Widget()\n"),
        ("app.py", "def f():\n    import pkg.core as core\n    return core.Widget()\n\n\nx = f()\n"),
        ("app.py", "def f():\n    import pkg.core\n    return pkg.core.Widget()\n\n\nx = f()\n"),
        ("app.py", "def f():\n    from pkg import core\n    return core.Widget()\n\n\nx = f()\n"),
        ("pkg/app.py", "from . import core\n\nx = core.Widget()\n"),
        ("pkg/app.py", "def f():\n    from . import core, other\n    return core.Widget()\n\n\nx = f()\n"),
        ("pkg/app.py", "if True: from . import core\nx = core.Widget()\n"),
        ("pkg/sub/app.py", "from .. import core\n\nx = core.Widget()\n"),
    ],
)
async def test_every_import_of_a_module_follows_it(tmp_path: Path, name: str, code: str, to: str) -> None:
    root = write_tree(tmp_path / "root", {**PROJECT, name: code.encode()})
    before = read_tree(root)
    async with code_tools(root) as tools:
        done = await tools.call("refactor", op="move", symbol={"path": "pkg/core.py"}, to=to, dryRun=False)
        module = name.removesuffix(".py").replace("/", ".")
        run(root, f"import {module} as app; assert app.x.user() == 'é'")
        text = (root / name).read_bytes().decode()
        assert "pkg.core" not in text and ("# kept" in text) == ("# kept" in code) and "x = " in text
        assert ("\r\n" in text) == ("\r\n" in code)
        await tools.call("undo", undoToken=done["undoToken"])
    assert read_tree(root) == before


async def test_a_package_moves_and_its_files_find_what_stays(tmp_path: Path) -> None:
    user = "from ..other import VALUE\nfrom . import near\nfrom .. import other\n\nx = VALUE + near.VALUE + other.VALUE"
    files = {
        "pkg/__init__.py": "",
        "pkg/other.py": "VALUE = 1\n",
        "pkg/sub/__init__.py": "",
        "pkg/sub/near.py": "VALUE = 2\n",
        "pkg/sub/user.py": f"{user}\n\n\ndef f():\n    from ..other import VALUE\n\n    return VALUE\n",
        "lib/__init__.py": "",
        "app.py": "from pkg.sub import user\n\nassert user.x == 4 and user.f() == 1\n",
    }
    root = write_tree(tmp_path / "root", files)
    async with code_tools(root) as tools:
        await tools.call("refactor", op="move", symbol={"name": "pkg.sub"}, to="lib", dryRun=False)
    run(root, "import app")
    assert "from . import near\n" in (root / "lib/sub/user.py").read_text()


async def test_a_module_above_all_packages_moves_with_an_import_as_its_own_name(tmp_path: Path) -> None:
    code = "import top as top\nimport top as t\n\nx = top.X, t.X\n"
    files = {"top.py": "X = 1\n", "pkg/__init__.py": "", "app.py": code}
    root = write_tree(tmp_path / "root", files)
    async with code_tools(root) as tools:
        await tools.call("refactor", op="move", symbol={"path": "top.py"}, to="pkg", dryRun=False)
    run(root, "import app; assert app.x == (1, 1)")


async def test_names_of_the_module_in_strings_are_noted(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {**PROJECT, "app.py": 'import pkg.core\n\nx: "pkg.core.Widget"\n'})
    async with code_tools(root) as tools:
        done = await tools.call("refactor", op="move", symbol={"path": "pkg/core.py"}, to="pkg/sub")
    assert any("pkg.core" in note and "app.py:3" in note for note in done["notes"])


async def test_a_folder_without_init_is_a_parent_too(tmp_path: Path) -> None:
    code = "def f():\n    from folder import mod\n\n    return mod.X\n"
    root = write_tree(tmp_path / "root", {"folder/mod.py": "X = 1\n", "dest/__init__.py": "", "app.py": code})
    async with code_tools(root) as tools:
        await tools.call("refactor", op="move", symbol={"path": "folder/mod.py"}, to="dest", dryRun=False)
    run(root, "import app; assert app.f() == 1")


async def test_a_file_that_would_not_parse_afterwards_stays_as_it_is(tmp_path: Path) -> None:
    code = "import top\n\n\ndef load():\n    global top\n    import top\n"
    root = write_tree(tmp_path / "root", {"top.py": "X = 1\n", "pkg/__init__.py": "", "app.py": code})
    before = read_tree(root)
    async with code_tools(root) as tools:
        with pytest.raises(Conflict, match=r"app\.py"):
            await tools.call("refactor", op="move", symbol={"path": "top.py"}, to="pkg", dryRun=False)
    assert read_tree(root) == before


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"top.py": "X = 1\n", "pkg/__init__.py": ""})
    async with code_tools(root) as tools:
        with pytest.raises(NotFound, match="pkg/fresh"):
            await tools.call("refactor", op="move", symbol={"path": "top.py"}, to="pkg/fresh")
