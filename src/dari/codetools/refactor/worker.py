"""The process that plans refactorings: rope and ast-grep may hang, or take all memory, and then only it is ended.

It reads a job from stdin and writes a plan to stdout, both msgpack. Files are read as the tools read them, below the
roots; nothing is written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from dari.codetools.refactor.jobs import Job, Plan, PlanError
from dari.codetools.workspace import Workspace
from dari.errors import DariError
from dari.os_errors import from_os_error
from dari.struct_types import ready

MAX_RECURSION = 5000


def main() -> None:
    sys.setrecursionlimit(MAX_RECURSION)
    out = os.dup(1)
    os.dup2(2, 1)  # whatever prints must not disturb the answer
    job = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=ready(Job))
    data = msgspec.msgpack.encode(make_plan(job))
    with open(out, "wb") as stream:
        stream.write(data)


def make_plan(job: Job) -> Plan:
    workspace = Workspace([Path(os.fsdecode(root)) for root in job.roots], Path(os.fsdecode(job.base)))
    try:
        return _choose(job)(job, workspace)
    except BaseException as error:
        known = error if isinstance(error, DariError) else from_os_error(error)
        if known is None:
            text = " ".join(str(error).split())[:300]
            return Plan(error=PlanError("failed", f"{job.op} failed: {type(error).__name__} {text}", _HINT))
        return Plan(error=PlanError(known.name, known.message, known.hint))


_HINT = "narrow it with paths, or change the places by hand"


def _choose(job: Job) -> Callable[[Job, Workspace], Plan]:
    from dari.codetools.refactor import js_move, python_ops, rewrite, structural_rename
    from dari.codetools.refactor.sources import language_of

    if job.op in ("rewrite", "codemod"):
        return rewrite.rewrite
    language = language_of(job.symbol.path)
    is_python = language == "python" or (not language and job.symbol.path and not os.path.splitext(job.symbol.path)[1])
    if job.op == "move":
        return python_ops.move if is_python or not job.symbol.path else js_move.move
    if job.symbol.path:
        return python_ops.rename if is_python else structural_rename.rename
    return python_ops.rename_by_name


if __name__ == "__main__":
    main()
