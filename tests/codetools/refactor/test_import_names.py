"""Imports follow a rename by what they say."""

from __future__ import annotations

import pytest

from dari.codetools.refactor.import_names import rename_imported


@pytest.mark.parametrize(
    "before, after",
    [
        ("from a.b import old\nold()\n", "from a.b import new\nnew()\n"),
        ("from a.b import x, old as y\ny()\n", "from a.b import x, new as y\ny()\n"),
        (
            "from a.b import (\n    x,\n    old,\n)\nprint(old)\n",
            "from a.b import (\n    x,\n    new,\n)\nprint(new)\n",
        ),
        ("from .b import old as old\n", "from .b import new as old\n"),
        ("from . import b\nb.old()\n", "from . import b\nb.new()\n"),
        ("import a.b\na.b.old()\nc.old()\n", "import a.b\na.b.new()\nc.old()\n"),
        ("import a.b as m\nm.old()\n", "import a.b as m\nm.new()\n"),
        (
            "def f() -> None:\n    from a.b import old\n    old()\n",
            "def f() -> None:\n    from a.b import new\n    new()\n",
        ),
        (
            "from a.b import old\n\n\ndef f(old):\n    old()\n",
            "from a.b import new as old\n\n\ndef f(old):\n    old()\n",
        ),
        ("s = '한글'; from a.b import old; old()\n", "s = '한글'; from a.b import new; new()\n"),
        ("from a.c import old\nold()\n", "from a.c import old\nold()\n"),
        ("from other import old\nb.old()\n", "from other import old\nb.old()\n"),
        ("from a.b import old\r\nold()\r\n", "from a.b import new\r\nnew()\r\n"),
    ],
)
def test_an_import_of_the_module_is_renamed_with_the_names_it_binds(before: str, after: str) -> None:
    assert rename_imported(before, "a.user", False, "a.b", "old", "new")[0] == after


def test_relative_imports_of_a_package_count_from_the_package_itself() -> None:
    text, lines = rename_imported("from .b import old\n", "a", True, "a.b", "old", "new")
    assert (text, lines) == ("from .b import new\n", [1])
    assert rename_imported("from .b import old\n", "x.y", False, "a.b", "old", "new")[1] == []


def test_what_does_not_parse_is_left_alone() -> None:
    broken = "from a.b import old(\n"
    assert rename_imported(broken, "a.user", False, "a.b", "old", "new") == (broken, [])
