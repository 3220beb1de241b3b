"""`crewx-tools serve`: the code tools for one agent, over stdin and stdout."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

TYPE_CHECKING = False  # from typing it costs more than the rest of this file
if TYPE_CHECKING:
    from dari.codetools.session import CodeSession

USAGE = """\
usage: crewx-tools serve [--root DIR …] [--log LEVEL]

Serves one agent over stdin and stdout: search, symbols, outline, diff, format, lint, test, check, refactor, undo.

  --root DIR    a folder that the tools may use; repeat it for more
                (default: the folders that the client names, else the working folder)
  --log LEVEL   debug, info, warning (default) or error; logs go to stderr

Messages are lines of JSON, or have Content-Length headers where the client begins with one. `shutdown` and
`exit` end it, as the end of stdin does.

Claude Code:
  claude mcp add crewx-tools -- crewx-tools serve
Cursor, VS Code and others, in mcp.json:
  "crewx-tools": {"command": "crewx-tools", "args": ["serve"]}
From a shell, without any configuration:
  crewx mcp remote list-tools --server crewx-tools

Guide: docs/guide/code-tools.md
"""
_LEVELS = ("debug", "info", "warning", "error")


def main(words: list[str]) -> int:
    """Serve until stdin ends, or the client says `exit`."""
    roots: list[Path] = []
    level = "warning"
    while words:
        word, *words = words
        name, equals, value = word.partition("=")
        if word in ("-h", "--help"):
            sys.stdout.write(USAGE)
            return 0
        if name in ("--root", "--log") and not equals and words:
            value, *words = words
        elif not equals:
            return _refuse(f"crewx-tools serve takes --root DIR and --log LEVEL, got {word!r}")
        if name == "--root":
            if not os.path.isdir(value):
                return _refuse(f"--root must be a folder, got {value!r}")
            roots.append(Path(value).absolute())
        elif name == "--log" and value in _LEVELS:
            level = value
        elif name == "--log":
            return _refuse(f"--log must be {', '.join(_LEVELS)}, got {value!r}")
        else:
            return _refuse(f"crewx-tools serve takes --root DIR and --log LEVEL, got {word!r}")
    # Importing makes no garbage; looking for some costs a tenth of the start. `run_to_exit` turns it on again.
    gc.disable()
    from dari import log
    from dari.runtime import run_to_exit

    log.configure_logging(level)
    return run_to_exit(lambda: _serve(roots))


def _refuse(fact: str) -> int:
    sys.stderr.write(f"error: {fact}\nhint: crewx-tools serve --help\n")
    return 1


async def _serve(roots: list[Path]) -> int:
    from contextlib import AsyncExitStack

    from dari.codetools.server import build_server
    from dari.core.audit.spool import process_spool
    from dari.settings import ServeSettings
    from dari.transport.supervisor import TransportSupervisor

    cwd = Path.cwd()
    async with AsyncExitStack() as held:

        def make_session() -> CodeSession:
            from dari.codetools.roots import client_roots, fixed_roots
            from dari.codetools.session import CodeSession
            from dari.process.children import Children

            children = Children()
            held.push_async_callback(children.close)
            return CodeSession(fixed_roots(roots) if roots else client_roots(cwd), os.environ, children, lasts=True)

        spool = process_spool()
        held.callback(spool.close)
        supervisor: TransportSupervisor
        server = build_server(make_session, spool, on_exit=lambda: supervisor.stop())
        supervisor = TransportSupervisor(server, ServeSettings(transport="stdio"))
        return await supervisor.run()
