"""Runs the planning process, and turns its plan into changes of files as they are now."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import msgspec

from dari.codetools.edits.change import FileChange
from dari.codetools.edits.undo import hash_content
from dari.codetools.engines.locate import EngineProgram
from dari.codetools.refactor.jobs import Job, Plan
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Conflict, DariError, Denied, Failed, InvalidInput, NotFound, TimedOut, Unavailable
from dari.struct_types import ready

MAX_PLAN_BYTES = 256 << 20
MAX_MEMORY_BYTES = 4 << 30
"""Of the address space of the planning process."""
_ERRORS: Mapping[str, type[DariError]] = {
    kind.name: kind for kind in (InvalidInput, NotFound, Denied, Conflict, Unavailable, Failed)
}


async def make_changes(
    session: CodeSession, workspace: Workspace, job: Job, timeout_s: float
) -> tuple[list[FileChange], Plan]:
    """Plan in a process of its own, within limits of time and memory. Raises what the plan says, or TimedOut."""
    # -I: a folder of the workspace with a rope.py or an msgspec.py must not become our code.
    engine = EngineProgram("refactor", (sys.executable, "-I", "-m", "dari.codetools.refactor.worker"), "dari")
    run = await session.run(
        engine,
        (),
        workspace.base,
        stdin=msgspec.msgpack.encode(job),
        timeout_s=timeout_s,
        max_output_bytes=MAX_PLAN_BYTES,
        limits={"as": MAX_MEMORY_BYTES},
        is_single=True,
    )
    if run.end == "timed_out":
        raise TimedOut(f"{job.op} took more than {timeout_s:g} s", "narrow it with paths or root")
    if run.end == "output_limit":
        raise Failed(f"the plan has more than {MAX_PLAN_BYTES >> 20} MB", "narrow it with paths")
    if run.returncode != 0:
        reason = "it ran out of memory" if "MemoryError" in run.stderr or run.returncode < 0 else run.stderr[-300:]
        raise Failed(f"the process that plans the {job.op} failed: {reason}", "narrow it with paths or root")
    plan = msgspec.msgpack.decode(run.stdout, type=ready(Plan))
    if plan.error is not None:
        raise _ERRORS.get(plan.error.name, Failed)(plan.error.message, plan.error.hint)
    return _to_changes(plan, workspace), plan


def _to_changes(plan: Plan, workspace: Workspace) -> list[FileChange]:
    changes = []
    for file in plan.files:
        path = _place(file.path, workspace)
        is_new = file.before_hash == hash_content(None)
        before = None if is_new else workspace.read(path)
        if hash_content(before) != file.before_hash:
            raise Conflict(f"{workspace.show(path)} changed while the plan was made", "call again")
        changes.append(
            FileChange(path, before, file.after, None if file.like is None else _place(file.like, workspace))
        )
    return sorted(changes, key=lambda one: one.path)


def _place(path: bytes, workspace: Workspace) -> WorkspacePath:
    found = workspace.place(os.fsdecode(path))
    if found is None:
        raise Denied(f"the plan names {os.fsdecode(path)}, which is outside of the workspace", "name another target")
    return found
