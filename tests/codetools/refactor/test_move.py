"""Moving functions, classes and variables between Python modules: every form of import follows, other lines stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dari.errors import Conflict, DariError, InvalidInput
from tests.support.codetools import code_tools
from tests.support.file_trees import read_tree, write_tree

HOME = """\
from __future__ import annotations

import os
import sys

from .base import LIMIT


def find(name: str) -> str:
    return os.path.join(name, sys.platform, str(LIMIT))


def other() -> str:
    return sys.platform
"""
PACKAGE: dict[str, str | bytes] = {
    "src/pkg/__init__.py": "",
    "src/pkg/base.py": "LIMIT = 3\n",
    "src/pkg/tools.py": HOME,
}


async def moved(root: Path, name: str, to: str) -> Any:
    async with code_tools(root) as tools:
        return await tools.call("refactor", op="move", symbol={"name": name}, to=to, dryRun=False)


def run(root: Path, code: str) -> None:
    command = [sys.executable, "-B", "-c", f"import sys; sys.path[:0] = ['src', '.']; {code}"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from .tools import find\n", "from .new import find\n"),
        ("from .tools import find as find\n", "from .new import find as find\n"),
        ("from .tools import find as search  # kept\n", "from .new import find as search  # kept\n"),
        ("from pkg.tools import find, other\n", "from pkg.tools import other\nfrom pkg.new import find\n"),
        ("from pkg.tools import other, find\n", "from pkg.tools import other\nfrom pkg.new import find\n"),
        (
            "from .tools import (\n    find,  # this\n    other,\n)\n",
            "from .tools import (\n    other,\n)\nfrom .new import find\n",
        ),
        (
            "import typing as t\nif t.TYPE_CHECKING:\n    from .tools import find, other\n",
            "import typing as t\nif t.TYPE_CHECKING:\n    from .tools import other\n    from .new import find\n",
        ),
        ("def use():\n    from .tools import find\n", "def use():\n    from .new import find\n"),
        ("import pkg.tools\nx = pkg.tools.find\n", "import pkg.new\nx = pkg.new.find\n"),
        (
            "import pkg.tools\nx = pkg.tools.find, pkg.tools.other\n",
            "import pkg.tools\nimport pkg.new\nx = pkg.new.find, pkg.tools.other\n",
        ),
        ("from . import tools\nx = tools.find\n", "from . import new\nx = new.find\n"),
        (
            "import pkg.tools as t\nx = t.find, t.other\n",
            "import pkg.tools as t\nfrom pkg import new\nx = new.find, t.other\n",
        ),
        ("from .tools import *\nx = find\n", "from .tools import *\nfrom .new import find\nx = find\n"),
        ("import os; from .tools import find, other\n", "import os; from .tools import other; from .new import find\n"),
        ("from .tools import other\n\n\ndef find(): ...\n", "from .tools import other\n\n\ndef find(): ...\n"),
        ("class A:\n    def find(self, tools):\n        return tools.find\n", ""),
    ],
)  # fmt: skip
async def test_an_importer_follows_in_its_own_form_and_keeps_its_other_lines(
    tmp_path: Path, before: str, after: str
) -> None:
    kept = "\n\nX = ( 1,2 )   # as it was\n"
    root = write_tree(tmp_path / "root", {**PACKAGE, "src/pkg/user.py": before + kept})
    await moved(root, "pkg.tools.find", "src/pkg/new.py")
    assert (root / "src/pkg/user.py").read_text() == (after or before) + kept
    run(root, "import pkg.user, pkg.new, pkg.tools; assert pkg.new.find('a'); assert not hasattr(pkg.tools, 'find')")


async def test_a_new_module_has_the_imports_that_the_code_needs_and_the_old_one_loses_those(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", PACKAGE)
    await moved(root, "pkg.tools.find", "src/pkg/new.py")
    code, rest = HOME.split("def find")[1].split("\n\n\n")
    head = "from __future__ import annotations\n\nimport os\nimport sys\n\nfrom .base import LIMIT\n\n\n"
    assert (root / "src/pkg/new.py").read_text() == f"{head}def find{code}\n"
    assert (root / "src/pkg/tools.py").read_text() == f"from __future__ import annotations\n\nimport sys\n\n\n\n{rest}"


CASES: dict[str, tuple[dict[str, str], str]] = {
    "uses that are left": (
        {"src/pkg/tools.py": "def find():\n    return 1\n\n\nVALUE = find()\n"},
        "import pkg.tools; assert pkg.tools.VALUE == 1",
    ),
    "needs a helper of the old module": (
        {"src/pkg/tools.py": "def _help():\n    return 2\n\n\ndef find():\n    return _help()\n"},
        "import pkg.new; assert pkg.new.find() == 2",
    ),
    "both need each other, later": (
        {"src/pkg/tools.py": "def find(n=0):\n    return n or help()\n\n\ndef help():\n    return find(3)\n"},
        "import pkg.new; assert pkg.new.find() == 3",
    ),
    "both need each other, the old one at once": (
        {"src/pkg/tools.py": "def find(n=0):\n    return n or low()\n\n\ndef low():\n    return 3\n\n\nV = find(4)\n"},
        "import pkg.tools, pkg.new; assert pkg.new.find() == 3 and pkg.tools.V == 4",
    ),
    "__all__": (
        {
            "src/pkg/tools.py": '__all__ = ["find", "rest"]\n\n\ndef find(): ...\n\n\ndef rest(): ...\n',
            "src/pkg/__init__.py": "from .tools import *\n",
        },
        "import pkg.tools, pkg.new; assert pkg.tools.__all__ == ['rest'] and pkg.new.__all__ == ['find'] and pkg.find",
    ),
    "a class with a decorator, a comment and a base": (
        {
            "src/pkg/tools.py": "import dataclasses\n\n\nclass Base: ...\n\n\n# About it.\n@dataclasses.dataclass\n"
            "class find(Base):\n    x: int = 1\n"
        },
        "import pkg.new; assert pkg.new.find(2).x == 2; assert '# About it' in open('src/pkg/new.py').read()",
    ),
    "overloads": (
        {
            "src/pkg/tools.py": "import typing as t\n\n\n@t.overload\ndef find(x: int) -> int: ...\n@t.overload\n"
            "def find(x: str) -> str: ...\ndef find(x):\n    return x\n"
        },
        "import pkg.new, typing; assert pkg.new.find(1) == 1",
    ),
    "imports that differ by version": (
        {
            "src/pkg/tools.py": "try:\n    import tomllib\nexcept ImportError:\n    tomllib = None\n\n\n"
            "def find():\n    return tomllib.loads('a=1')\n"
        },
        "import pkg.new; assert pkg.new.find() == {'a': 1}",
    ),
    "types of a type checker": (
        {
            "src/pkg/tools.py": "from __future__ import annotations\nimport typing as t\n\nif t.TYPE_CHECKING:\n"
            "    from .base import Missing\n\n\ndef find(x: Missing) -> 'Missing':\n    return x\n"
        },
        "import pkg.new; assert 'if t.TYPE_CHECKING:\\n    from .base import Missing' in open('src/pkg/new.py').read()",
    ),
    "a variable": (
        {"src/pkg/tools.py": 'find = 7\n"""What it is."""\nrest = 1\n', "src/pkg/user.py": "from .tools import find\n"},
        "import pkg.user, pkg.new; assert pkg.user.find == 7",
    ),
    "out of a package": (
        {
            "src/pkg/__init__.py": "LOW = 1\n\n\ndef find():\n    return LOW\n",
            "src/pkg/tools.py": "",
            "app.py": "import pkg\nx = pkg.find\n",
        },
        "import pkg, app, pkg.new; assert app.x() == pkg.find() == 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_the_code_loads_and_runs_afterwards(tmp_path: Path, case: str) -> None:
    files, check = CASES[case]
    root = write_tree(tmp_path / "root", {**PACKAGE, **files})
    before = read_tree(root)
    async with code_tools(root) as tools:
        done = await tools.call("refactor", op="move", symbol={"name": "find"}, to="src/pkg/new.py", dryRun=False)
        run(root, check)
        run(root, "import pkg.new")
        run(root, "import pkg.tools")
        await tools.call("undo", undoToken=done["undoToken"])
    assert read_tree(root) == before


@pytest.mark.parametrize("first", ["pkg.base", "pkg.tools", "pkg"])
async def test_code_moves_into_a_module_that_its_old_one_loads(tmp_path: Path, first: str) -> None:
    old = "from .base import LIMIT\n\nLOW = 1\n\n\ndef find():\n    return LIMIT + LOW\n\n\nHIGH = LIMIT + 2\n"
    root = write_tree(tmp_path / "root", {**PACKAGE, "src/pkg/tools.py": old})
    await moved(root, "pkg.tools.find", "src/pkg/base.py")
    run(root, f"import {first}, pkg.base, pkg.tools; assert pkg.base.find() == 4 and pkg.tools.HIGH == 5")


async def test_an_import_that_only_the_moved_code_used_makes_no_circle(tmp_path: Path) -> None:
    old = "from .base import LIMIT\n\nLOW = 1\n\n\ndef find(low=LOW):\n    return LIMIT + low\n"
    root = write_tree(tmp_path / "root", {**PACKAGE, "src/pkg/tools.py": old})
    await moved(root, "pkg.tools.find", "src/pkg/base.py")
    run(root, "import pkg.base; assert pkg.base.find() == 4")


async def test_a_variable_that_only_the_moved_code_changes_is_no_obstacle(tmp_path: Path) -> None:
    old = "_seen = None\n\n\ndef find():\n    global _seen\n    _seen = _seen or 5\n    return _seen\n"
    root = write_tree(tmp_path / "root", {**PACKAGE, "src/pkg/tools.py": old})
    await moved(root, "pkg.tools.find", "src/pkg/new.py")
    run(root, "import pkg.new; assert pkg.new.find() == pkg.new.find() == 5")


async def test_a_module_that_has_the_imports_gets_no_second_ones_and_loses_its_import_of_the_symbol(
    tmp_path: Path,
) -> None:
    into = "import os\n\nfrom .tools import find\n\nPLACE = os.sep + find('x')\n"
    root = write_tree(tmp_path / "root", {**PACKAGE, "src/pkg/into.py": into})
    await moved(root, "pkg.tools.find", "src/pkg/into.py")
    text = (root / "src/pkg/into.py").read_text()
    assert text.count("import os") == 1 and "from .tools" not in text
    run(root, "import pkg.into; assert pkg.into.find('a')")


async def test_what_no_edit_can_follow_is_named(tmp_path: Path) -> None:
    files = {
        "tests/test_it.py": 'from pkg import tools\n\n\ndef test(patch):\n    patch.setattr(tools, "find", 1)\n',
        "docs.md": "See pkg.tools.find.\n",
        "pyproject.toml": '[project.scripts]\nfind = "pkg.tools:find"\n',
    }
    root = write_tree(tmp_path / "root", {**PACKAGE, **files})
    done = await moved(root, "pkg.tools.find", "src/pkg/new.py")
    text = " ".join(done["notes"])
    assert "tests/test_it.py:5" in text and "docs.md:1" in text and "pyproject.toml:2" in text


@pytest.mark.parametrize(
    ("files", "symbol", "to", "kind"),
    [
        ({"src/pkg/tools.py": "class A:\n    def find(self): ...\n"}, "A.find", "src/pkg/new.py", InvalidInput),
        ({}, "pkg.tools.find", "src/pkg", InvalidInput),
        ({}, "pkg.tools.find", "src/pkg/tools.py", InvalidInput),
        ({"src/pkg/into.py": "def find(): ...\n"}, "pkg.tools.find", "src/pkg/into.py", Conflict),
        ({"src/pkg/into.py": "os = 1\n"}, "pkg.tools.find", "src/pkg/into.py", Conflict),
        ({"src/pkg/into.py": "def broken(:\n"}, "pkg.tools.find", "src/pkg/into.py", Conflict),
        ({"src/pkg/tools.py": "if 1:\n    def find(): ...\n"}, "pkg.tools.find", "src/pkg/new.py", DariError),
        (
            {"src/pkg/tools.py": "find = 0\n\n\ndef use():\n    global find\n    find = 1\n"},
            "pkg.tools.find",
            "src/pkg/new.py",
            Conflict,
        ),
        (
            {"src/pkg/tools.py": "BASE = object\n\n\nclass find(BASE): ...\n\n\nV = find()\n"},
            "pkg.tools.find",
            "src/pkg/new.py",
            Conflict,
        ),
        (
            {"src/pkg/tools.py": "from .base import LIMIT\n\nLOW = LIMIT\n\n\ndef find(low=LOW): ...\n"},
            "pkg.tools.find",
            "src/pkg/base.py",
            Conflict,
        ),
        (
            {
                "src/pkg/third.py": "from .base import LIMIT\n",
                "src/pkg/tools.py": "from . import third\n\n\ndef find():\n    return third.LIMIT\n",
            },
            "pkg.tools.find",
            "src/pkg/base.py",
            Conflict,
        ),
        (
            {"src/pkg/tools.py": "n = 0\n\n\ndef find():\n    global n\n    n += 1\n\n\ndef get():\n    return n\n"},
            "pkg.tools.find",
            "src/pkg/new.py",
            Conflict,
        ),
        (
            {"src/pkg/tools.py": "n = 0\n\n\ndef find():\n    return n\n\n\ndef put():\n    global n\n    n = 1\n"},
            "pkg.tools.find",
            "src/pkg/new.py",
            Conflict,
        ),
    ],
    ids=[
        *("method", "folder", "same", "taken", "other name", "broken", "branch", "global", "circle"),
        *("circle by what it needs", "circle by an import", "counted by it", "counted by others"),
    ],
)
async def test_what_cannot_be_moved_is_refused_and_nothing_is_written(
    tmp_path: Path, files: dict[str, str], symbol: str, to: str, kind: type[DariError]
) -> None:
    root = write_tree(tmp_path / "root", {**PACKAGE, **files})
    before = read_tree(root)
    with pytest.raises(kind) as raised:
        await moved(root, symbol, to)
    assert raised.value.message and raised.value.hint
    assert read_tree(root) == before


async def test_code_of_a_file_in_latin_1_moves_into_a_new_file_in_utf_8(tmp_path: Path) -> None:
    head = "#!/usr/bin/env python3\n# -*- coding: latin-1 -*-\n"
    files: dict[str, str | bytes] = {
        "src/pkg/__init__.py": "",
        "src/pkg/old.py": f"{head}def name():\n    return 'é'\n\n\n# Stays.\nX = 'ü'\n".encode("latin-1"),
    }
    root = write_tree(tmp_path / "root", files)
    await moved(root, "pkg.old.name", "src/pkg/new.py")
    assert (root / "src/pkg/new.py").read_bytes() == "def name():\n    return 'é'\n".encode()
    assert (root / "src/pkg/old.py").read_bytes() == f"{head}\n# Stays.\nX = 'ü'\n".encode("latin-1")
    run(root, "from pkg.new import name; from pkg.old import X; assert name() + X == chr(233) + chr(252)")


async def test_the_head_of_a_file_stays_and_the_comment_of_a_definition_goes(tmp_path: Path) -> None:
    text = "# Copyright of somebody.\ndef one():\n    pass\n\n\n# About two.\ndef two():\n    pass\n"
    root = write_tree(tmp_path / "root", {"src/pkg/__init__.py": "", "src/pkg/old.py": text})
    await moved(root, "pkg.old.one", "src/pkg/new.py")
    await moved(root, "pkg.old.two", "src/pkg/new.py")
    assert (root / "src/pkg/old.py").read_text() == "# Copyright of somebody.\n"
    assert (root / "src/pkg/new.py").read_text() == ("def one():\n    pass\n\n\n# About two.\ndef two():\n    pass\n")
