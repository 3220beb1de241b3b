"""A change as its reader sees it: a diff that git applies, within a budget, and a hash of the whole plan."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dari.codetools.edits.change import FileChange, hash_plan, to_edit, to_edits
from dari.codetools.workspace import Workspace, WorkspacePath


def changed(before: bytes | None, after: bytes | None, name: str = "a.py") -> FileChange:
    return FileChange(WorkspacePath(Path("/root"), name), before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n"),
        (b"a\r\nb\r\n", b"a\nb\r\n"),
        (b"one\x0cstill one\n", b"one\x0cstill two\n"),
        (b"no end", b"no end\n"),
        (b"x\n" * 500, b"x\n" * 250 + b"y\n" + b"x\n" * 250),
        ("é\u2028ü\n".encode(), "é\u2028u\n".encode()),
        (b"", b"first\n"),
        (b"a\nb\n", b"b\na\n"),
    ],
    ids=["a line", "line ends", "a form feed", "no line end", "many equal lines", "other separators", "empty", "order"],
)
def test_git_applies_the_diff_and_has_the_new_file(tmp_path: Path, before: bytes, after: bytes) -> None:
    (tmp_path / "a.py").write_bytes(before)
    edit = to_edit(changed(before, after), "a.py")
    command = ["git", "apply", "--whitespace=nowarn", "-"]
    done = subprocess.run(command, input=edit.diff.encode(), cwd=tmp_path, capture_output=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.py").read_bytes() == after


def test_added_and_removed_lines_are_counted_and_new_files_named() -> None:
    edit = to_edit(changed(b"a\nb\n", b"a\nc\nd\n"), "a.py")
    assert (edit.added, edit.removed, edit.note) == (2, 1, "")
    assert to_edit(changed(None, b"a\n"), "a.py").note == "new file"
    assert to_edit(changed(b"a\n", None), "a.py").note == "removed"


def test_what_is_not_text_has_no_diff_and_other_encodings_show_their_bytes() -> None:
    assert to_edit(changed(b"\0\1", b"\0\2"), "a.bin").note == "not text: no diff"
    assert "-caf\\xe9\n+caf\\xe8\n" in to_edit(changed(b"caf\xe9\n", b"caf\xe8\n"), "a.txt").diff


@pytest.mark.parametrize("name", ["a\n+++ b/forged.py", "rtl\u202eyp.exe", 'a"b', "tab\there"])
def test_a_name_cannot_forge_lines_of_the_diff(name: str) -> None:
    rows = to_edit(changed(b"a\n", b"b\n", name), name).diff.split("\n")
    assert len(rows) == 6
    assert rows[0].startswith('--- "a/') and rows[1].startswith('+++ "b/')
    assert "\u202e" not in "".join(rows)


def test_the_budget_leaves_diffs_out_and_says_so(tmp_path: Path) -> None:
    workspace = Workspace([tmp_path])
    changes = [changed(b"a\n" * 100, b"b\n" * 100, f"{number}.py") for number in range(3)]
    edits = to_edits(changes, workspace, 1000)
    assert [bool(edit.diff) for edit in edits] == [True, False, False]
    assert "left out" in edits[2].note and edits[2].added == 100


def test_a_line_of_five_megabytes_and_a_file_of_a_hundred_thousand_lines_are_ordinary(tmp_path: Path) -> None:
    line = b"x" * (5 << 20)
    edits = to_edits([changed(line, line + b"y")], Workspace([tmp_path]))
    assert edits[0].diff == "" and "left out" in edits[0].note
    before = b"".join(b"%d\n" % (number % 7) for number in range(100_000))
    after = b"".join(b"%d\n" % (number % 5) for number in range(100_000))
    assert "too large for a diff" in to_edit(changed(before, after), "a.py").note


def test_the_hash_is_of_names_and_contents_in_any_order() -> None:
    one, two = changed(b"a", b"b", "one"), changed(b"c", None, "two")
    assert hash_plan([one, two]) == hash_plan([two, one])
    others = [
        changed(b"a", b"c", "one"),
        changed(b"a", b"b", "on"),
        changed(None, b"b", "one"),
        changed(b"a", None, "one"),
    ]
    assert len({hash_plan([one]), *(hash_plan([other]) for other in others)}) == 5
    assert hash_plan([changed(b"a", b"b", os.fsdecode(b"\xff"))])
