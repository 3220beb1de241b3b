"""The version of an engine, asked for once per program file."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from dari.codetools.engines.locate import EngineProgram
from dari.codetools.session import CodeSession
from dari.errors import DariError
from dari.paths import read_regular

_TIMEOUT_S = 10.0
_NUMBER = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")
_ARGUMENTS = {"go": ("version",), "gofmt": ()}
_MAX_MANIFEST_BYTES = 1 << 20
_known: dict[tuple[str, int, int], str] = {}


async def version_of(session: CodeSession, engine: EngineProgram, cwd: Path) -> str:
    """Such as 0.14.2; empty where the engine does not say."""
    program = engine.command[0]
    if Path(program).name == "gofmt":  # it has no option for it, and is of the Go that it lies beside
        program = str(Path(os.path.realpath(program)).with_name("go"))
    try:
        info = os.stat(program)
    except OSError:
        return ""
    key = (program, info.st_mtime_ns, info.st_size)
    if key not in _known:
        found = _packaged_version(Path(os.path.realpath(program)))
        _known[key] = found or await _ask(session, engine, program, cwd)
    return _known[key]


def _packaged_version(program: Path) -> str:
    """Of a program in node_modules, without the 0.3 s that node takes to start."""
    if "node_modules" not in program.parts:
        return ""
    for folder in program.parents:
        if folder.name == "node_modules":
            break
        try:
            manifest = msgspec.json.decode(read_regular(folder / "package.json", _MAX_MANIFEST_BYTES))
        except (OSError, msgspec.MsgspecError, RecursionError):
            continue
        if isinstance(manifest, dict) and isinstance(version := manifest.get("version"), str):
            return version
    return ""


async def _ask(session: CodeSession, engine: EngineProgram, program: str, cwd: Path) -> str:
    asked = msgspec.structs.replace(engine, command=(program, *engine.command[1:]))
    arguments = _ARGUMENTS.get(Path(program).name, ("--version",))
    try:
        run = await session.run(
            asked, arguments, cwd, timeout_s=_TIMEOUT_S, max_output_bytes=1 << 16, is_single=engine.is_single
        )
    except DariError:
        return ""
    found = _NUMBER.search(run.stdout.decode("utf-8", "replace"))
    return found[0] if found else ""
