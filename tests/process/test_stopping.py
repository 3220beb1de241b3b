"""A server that tidies up has five seconds after SIGTERM, whoever stops it and however (design 003)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dari.process.spawner import Spawner
from dari.terminal.panes.pane import Pane
from dari.transport.connect import connect
from tests.support.bridge import LAB, Place
from tests.support.waiting import until

TIDIES = """
import runpy, signal, sys, time
def tidy(*_):
    time.sleep(4)  # longer than the three seconds that it used to be given
    open({done!r}, "w").close()
    raise SystemExit(0)
signal.signal(signal.SIGTERM, tidy)
{before}
open({ready!r}, "w").close()
{serve}
time.sleep(60)
"""


def tidies(root: Path, before: str = "", serve: str = "") -> str:
    return TIDIES.format(done=str(root / "done"), ready=str(root / "ready"), before=before, serve=serve)


def tidy_server(root: Path) -> list[str]:
    """A server that does not end with its stdin, and takes four seconds to end after SIGTERM."""
    return [sys.executable, "-c", tidies(root, serve=f"runpy.run_path({str(LAB)!r}, run_name='__main__')")]


def entry(root: Path) -> dict[str, Any]:
    command = tidy_server(root)
    return {"id": "lab", "kind": "stdio", "command": command[0], "args": command[1:]}


async def test_a_bridge_waits_for_a_server_that_tidies_up(tmp_path: Path) -> None:
    async with Place(tmp_path, entry(tmp_path)).upstream() as upstream:
        await upstream.start()
    assert (tmp_path / "done").exists()


async def test_a_client_waits_for_its_own_server_that_tidies_up(tmp_path: Path) -> None:
    async with connect(tidy_server(tmp_path)):
        pass
    assert (tmp_path / "done").exists()


async def test_a_pane_waits_for_a_program_that_tidies_up(tmp_path: Path) -> None:
    async with Spawner() as keepers:
        program = tidies(tmp_path, before="signal.signal(signal.SIGHUP, signal.SIG_IGN)")
        pane = await Pane.open(keepers, "1", command=[sys.executable, "-c", program], cwd=str(tmp_path))
        await until(lambda: (tmp_path / "ready").exists())
        await pane.close(force=True)
    assert (tmp_path / "done").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_hub_that_is_asked_to_stop_waits_for_its_servers(tmp_path: Path, number: signal.Signals) -> None:
    place = Place(tmp_path, entry(tmp_path))
    environment = {**os.environ, "HOME": str(place.home), "DARI_HOME": str(tmp_path / "dari")}
    command = [sys.executable, "-m", "dari", "up", "--http-port", "0"]
    hub = await asyncio.create_subprocess_exec(*command, env=environment, stdout=subprocess.DEVNULL, cwd=tmp_path)
    try:
        await until(lambda: any("version" in json.loads(one.read_text()) for one in memories(tmp_path)))
        hub.send_signal(number)
        assert await hub.wait() == 0
    finally:
        if hub.returncode is None:
            hub.kill()
            await hub.wait()
    assert (tmp_path / "done").exists()


def memories(root: Path) -> list[Path]:
    return list((root / "dari/bridge/memory").glob("*.json"))
