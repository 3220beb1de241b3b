"""A process that writes changes, for tests that kill it, run two of them, or give it a disk that is full.

`python -m tests.support.codetools_writer write ROOT UNDO ROUNDS` rewrites every file of ROOT again and again; `undo
ROOT UNDO 1` takes the last write back. Both print `ready`, then a dot for every file that they open: who reads them
knows how far it is. With STOP_AFTER in the environment they stop at that file, to be killed there. `full ROOT UNDO
SIZE_KB` writes once on a tmpfs of that size (below unshare -rm).
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from dari.codetools.edits.change import FileChange
from dari.codetools.edits.undo import UndoStore
from dari.codetools.edits.write import apply_changes, take_back
from dari.codetools.workspace import Workspace
from dari.errors import DariError
from tests.support.file_trees import read_tree, write_tree

LINE = b"old content of a file\n"


def rewrite_all(root: Path, undo: UndoStore, mark: bytes) -> str:
    """Every file gets `mark` before its lines, `new/N.txt` is made, `gone.txt` removed."""
    workspace = Workspace([root])
    changes = []
    for path in workspace.files(["."]):
        before = workspace.read(path)
        after = None if path.relative == "gone.txt" else mark + before
        changes.append(FileChange(path, before, after))
    for number in range(3):
        changes.append(FileChange(workspace.locate(f"new/deep/{number}-{mark.hex()}.txt"), None, mark))
    return apply_changes(changes, workspace, undo, "rewrite")


def show_steps() -> None:
    print("ready", flush=True)
    left = int(os.environ.get("STOP_AFTER", "-1"))

    def hear(event: str, arguments: object) -> None:
        nonlocal left
        if event == "open":
            os.write(1, b".")
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGSTOP)

    sys.addaudithook(hear)


def write(root: Path, undo: Path, rounds: int) -> None:
    show_steps()
    for number in range(rounds):
        try:
            rewrite_all(root, UndoStore(undo), b"round %d\n" % number)
        except DariError as error:
            print(f"\n{error.name}: {error.message}", flush=True)


def undo_last(root: Path, undo: Path, rounds: int) -> None:
    show_steps()
    asyncio.run(take_back(UndoStore(undo), "last", Workspace([root]), force=False))


def full(root: Path, undo: Path, size_kb: int) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kb}k", "tmpfs", str(root)], check=True)
    write_tree(root, {f"{number}.txt": LINE * 3000 for number in range(5)})
    before = read_tree(root)
    workspace = Workspace([root])
    changes = [FileChange(path, data := workspace.read(path), data * 2) for path in workspace.files()]
    try:
        apply_changes(changes, workspace, UndoStore(undo), "grow")
        said = "written"
    except OSError as error:
        said = f"errno {error.errno} {error.filename}"
    print(said, read_tree(root) == before, len(UndoStore(undo).records()))


if __name__ == "__main__":
    what, root, undo, number = sys.argv[1:]
    {"write": write, "undo": undo_last, "full": full}[what](Path(root), Path(undo), int(number))
