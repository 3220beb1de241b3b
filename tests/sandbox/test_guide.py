"""What docs/guide/sandbox.md shows works as shown."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from dari.sandbox.capabilities import SandboxCapabilities
from dari.sandbox.report import build_report
from tests.support.child_servers import SOURCE
from tests.support.wire import ROOT

GUIDE = (ROOT / "docs" / "guide" / "sandbox.md").read_text()


async def test_the_program_of_the_guide_lists_the_tools_of_a_server(tmp_path: Path) -> None:
    program, folder, server = tmp_path / "program.py", tmp_path / "folder", tmp_path / "server.py"
    folder.mkdir()
    program.write_text(re.findall(r"```python\n(.*?)```", GUIDE, re.S)[-1])
    listing = "{'tools': [{'name': 'one', 'inputSchema': {'type': 'object'}}]}"
    body = f"        pass\n    elif message.get('method') == 'tools/list':\n        reply(message, {listing})"
    server.write_text(SOURCE.replace("BEFORE", "").replace("BODY", body).replace("AFTER", ""))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, program, folder, sys.executable, server), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert output.decode().splitlines()[0] == "one"


def test_the_report_in_the_guide_is_one_that_can_be() -> None:
    machine = SandboxCapabilities("linux", "x86_64", 7, True, True, "/usr/bin/bwrap", "")
    shown = re.findall(r"```text\n(.*?)```", GUIDE, re.S)[0]
    assert shown.splitlines() == build_report(machine=machine).lines()
