"""What the hub and the daemons leave for later: a client waits for their start."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHIN_S = 50
LATER = {
    "dari.cli.hub.main": (
        "from dari.bridge.service import Bridge;"
        " from dari.cli.hub.daemon import serve; from dari.cli.hub.server import CliSocketServer",
        "ctypes dataclasses difflib tempfile dari.core.audit.query dari.sandbox.builder dari.app uvicorn",
    ),
    "dari.app": (
        "from dari.core.registry import Registry; from dari.settings import ServeSettings;"
        " dari.app.Toolkits(ServeSettings()).add_to(Registry())",
        "dari.proxy.api.service dari.terminal.multiplexer dari.terminal.service dari.knowledge.api dari.codetools",
    ),
    "dari.cli.crabd": ("from dari.proxy.api.service import ProxyService", "difflib http.cookies"),
    "dari.cli.cruxd": (
        "from dari.terminal.multiplexer import Multiplexer; from dari.terminal.policy.config import load_security;"
        " from dari.terminal.out_of_band import load_variables",
        "difflib getpass tomllib",
    ),
}


@pytest.mark.parametrize("program", LATER)
def test_a_daemon_starts_without_what_only_some_calls_need(program: str) -> None:
    imports, later = LATER[program]
    script = f"import sys\nimport {program}\n{imports}\nprint(*sorted(set({later.split()!r}) & set(sys.modules)))"
    done = subprocess.run((sys.executable, "-c", script), capture_output=True, text=True, timeout=WITHIN_S, check=True)
    assert done.stdout.split() == []
