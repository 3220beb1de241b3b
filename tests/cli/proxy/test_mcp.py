"""`dari proxy mcp`: the switch of the MCP server, and that it ends nothing but its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dari.cli.proxy.mcp import birth_of
from dari.paths import private_dir
from tests.support.origins.origin import Origin
from tests.support.proxy_command import Shell, dari, is_alive


@pytest.fixture(autouse=True)
def switched_off(shell: Shell) -> Iterator[None]:
    yield
    shell("mcp", "stop")


def ask(url: str, token: str, method: str, **params: object) -> Any:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    headers["Accept"] = "application/json, text/event-stream"
    request = urllib.request.Request(url, body, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=40) as response:
        return response.status


def test_start_serves_agents_until_stop(shell: Shell) -> None:
    assert shell.json("mcp") == {"status": "stopped"}
    started = shell.json("mcp", "start", "--port", "0")
    assert started["status"] == "running" and is_alive(started["pid"])
    token = Path(started["token_path"]).read_text().strip()
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    assert ask(started["url"], token, "initialize", **hello) == 200
    assert shell.json("mcp")["url"] == started["url"]
    said = shell("mcp").out
    assert started["url"] in said and started["token_path"] in said and token not in said
    assert shell.json("mcp", "stop") == {"status": "stopped", "was_running": True}
    assert birth_of(started["pid"]) is None
    assert shell.json("mcp") == {"status": "stopped"}


def test_start_is_idempotent_and_says_that_the_port_stays(shell: Shell) -> None:
    first = shell.json("mcp", "start", "--port", "0")
    said = shell("mcp", "start", "--port", "1")
    assert "runs already" in said.out and first["url"] in said.out
    assert "dari proxy mcp stop" in said.err


def test_it_ends_with_the_daemon_whose_token_it_takes(shell: Shell) -> None:
    pid = shell.json("mcp", "start", "--port", "0")["pid"]
    shell("stop", "--daemon")
    assert birth_of(pid) is None
    assert shell.daemon_pid is None


def test_two_starts_at_once_make_one_server(shell: Shell) -> None:
    starts = [dari("mcp", "start", "--port", "0", "--json") for _ in range(2)]
    answers = [start.communicate(timeout=40) for start in starts]
    assert [start.returncode for start in starts] == [0, 0], answers
    assert len({json.loads(out)["pid"] for out, _ in answers}) == 1


def test_a_taken_port_is_told_with_the_end_of_the_log(shell: Shell, site: Origin) -> None:
    said = shell("mcp", "start", "--port", str(site.port), code=2)
    assert "crab-mcp ended at start with exit status" in said.err
    assert "is in use" in said.err
    assert shell.json("mcp") == {"status": "stopped"}


def test_a_process_that_took_the_number_is_left_alone(shell: Shell) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        record = {"pid": other.pid, "birth": "0", "url": "http://x/", "token_path": "t", "log_path": "l"}
        (private_dir(shell.place.run_dir) / "crab-mcp.json").write_text(json.dumps(record))
        assert shell.json("mcp") == {"status": "stopped"}
        assert shell.json("mcp", "stop")["was_running"] is False
        assert is_alive(other.pid)
        other.communicate(b"\n")
    assert other.returncode == 0


def test_a_birth_names_a_process_until_it_is_gone() -> None:
    assert birth_of(os.getpid()) == birth_of(os.getpid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert birth_of(child.pid) not in (None, birth_of(os.getpid()))
        child.communicate(b"\n")
    assert birth_of(child.pid) is None
