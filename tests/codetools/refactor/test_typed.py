"""Renames in typed code: an annotation makes sure what a value does not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.codetools import code_tools
from tests.support.file_trees import write_tree

CLASSES = "class Box:\n    def open(self): ...\n\n\nclass Door:\n    def open(self): ...\n"
USES = """from __future__ import annotations

from a import Box, Door


def plain(box: Box): box.open()
def optional(box: Box | None): box.open()
def quoted(box: "Box"): box.open()
def other(door: Door): door.open()
def unknown(thing): thing.open()
def local():
    box: Box = make()
    box.open()


class Holder:
    door: Door
    def __init__(self, box: Box, thing):
        self.box = box
        self.thing = thing
    def use(self):
        self.box.open()
        self.door.open()
        self.thing.open()
        open()
"""


async def test_annotated_names_are_renamed_and_those_of_other_classes_are_not(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a.py": CLASSES, "b.py": USES})
    async with code_tools(root) as tools:
        arguments = {"op": "rename", "symbol": {"name": "Box.open"}, "newName": "unlock"}
        result = await tools.call("refactor", **arguments, dryRun=False)
    text = (root / "b.py").read_text()
    assert text.count("box.unlock()") == 5 and "self.box.unlock()" in text
    assert "door.open()" in text and "self.door.open()" in text
    assert "thing.open()" in text and "self.thing.open()" in text and "        open()\n" in text
    assert "class Door:\n    def open" in (root / "a.py").read_text()
    (note,) = [note for note in result["notes"] if "unknown type" in note]
    assert "b.py:10" in note and "b.py:24" in note


@pytest.mark.parametrize("new_name", ["close", "other"], ids=["in the class", "in a module that imports it"])
async def test_a_name_that_is_taken_anywhere_it_would_go_is_refused(tmp_path: Path, new_name: str) -> None:
    from dari.errors import Conflict

    files = {
        "a.py": "class Box:\n    def open(self): ...\n    def close(self): ...\n\n\ndef helper(): ...\n",
        "b.py": "from a import helper\n\n\ndef other(): return helper()\n",
    }
    root = write_tree(tmp_path / "root", files)
    async with code_tools(root) as tools:
        symbol = {"name": "Box.open" if new_name == "close" else "helper"}
        with pytest.raises(Conflict):
            await tools.call("refactor", op="rename", symbol=symbol, newName=new_name)


async def test_a_file_that_rope_cannot_read_does_not_end_the_rename(tmp_path: Path) -> None:
    """rope 1.14 fails in a `match` statement with a sequence of one and a string after it."""
    hard = (
        "from a import Box\n\n\ndef f(x):\n    match x:\n        case ('a',):\n            return 'b'\n    x.open()\n"
    )
    root = write_tree(tmp_path / "root", {"a.py": CLASSES, "hard.py": hard, "b.py": USES})
    async with code_tools(root) as tools:
        result = await tools.call("refactor", op="rename", symbol={"name": "Box.open"}, newName="unlock")
    assert {edit["path"] for edit in result["edits"]} >= {"a.py", "b.py"}
