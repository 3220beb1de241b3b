"""Every tool call of every part, over every transport, is a record that `dari audit` shows. None starts a hub."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.crab_processes import crab_mcp, run_directory
from tests.support.crux_processes import Client, bridge, cruxd, new_home
from tests.support.real_clients import DARI
from tests.support.wire import HttpWire, StreamWire

pytestmark = pytest.mark.e2e
Env = dict[str, str]


def dari(env: Env, *words: str) -> str:
    done = subprocess.run([str(DARI), *words], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    return done.stdout


def shown(env: Env, *words: str) -> list[dict[str, Any]]:
    """Calls, oldest first."""
    lines = dari(env, "audit", "query", "--kind", "call", "--json", *words).splitlines()
    return [json.loads(line) for line in lines][::-1]


def brief(records: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(one["part"], one["tool"], one["outcome"]) for one in records]


def take_over(env: Env) -> None:
    """A hub comes and goes."""
    dari(env, "remote", "daemon", "start")
    dari(env, "remote", "daemon", "stop")


def spools(home: Path) -> list[Path]:
    return list((home / "bridge" / "audit-spool").glob("*"))


def check_log(env: Env, home: Path) -> None:
    assert spools(home) == []
    assert dari(env, "audit", "verify").startswith("ok")


def data_home(env: Env) -> Path:
    return Path(env["HOME"]) / ".local/share/dari"


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_crab_mcp(transport: str) -> None:
    with run_directory() as run_dir:
        env = {"PATH": os.environ["PATH"], "HOME": str(run_dir), "DARI_HOME": str(run_dir / "home")}
        async with crab_mcp(run_dir, transport=transport) as server:
            client = Client(server.stdio() if transport == "stdio" else await server.http())
            await client.start()
            await client.call("crab_ping")
            assert "error" in await client.call("crab_env_snippet")
            await client.call("crab_rules_list", password="maple-olive-zq")
            if transport == "stdio":
                assert server.process.stdin is not None
                server.process.stdin.close()
                await server.process.wait()
            else:
                await server.stop()
        said = [
            ("crab", "crab_ping", "ok"),
            ("crab", "crab_env_snippet", "error"),
            ("crab", "crab_rules_list", "error"),
        ]
        assert brief(shown(env)) == said, "shown while no hub runs"
        assert not (run_dir / "home" / "bridge" / "audit").exists(), "no hub was started"
        take_over(env)
        records = shown(env, "--part", "crab")
        assert brief(records) == said
        assert {one["who"] for one in records} == {"mcp:test"}
        assert all(one["n"] and one["ms"] > 0 for one in records)
        assert "maple-olive-zq" not in json.dumps(records)
        assert shown(env, "--part", "crux") == []
        check_log(env, run_dir / "home")


async def test_cruxd_over_its_socket_http_and_the_bridge() -> None:
    with new_home() as home:
        async with cruxd(home, "--http", "0") as daemon:
            async with bridge(home) as piped:
                await piped.client.call("crux_list_panes")
            reader, writer = await asyncio.open_unix_connection(str(home.place.mcp_socket))
            direct = Client(StreamWire(reader, writer))
            await direct.start()
            assert "error" in await direct.call("crux_get_raw_text", pane_id="none")
            writer.close()
            port = int(daemon.url.rpartition(":")[2].partition("/")[0])
            token = home.place.http_token.read_text().strip()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            http = Client(HttpWire(reader, writer, token=token))
            await http.start()
            await http.call("crux_list_panes")
            writer.close()
            await daemon.stop()
        take_over(home.env)
        assert brief(shown(home.env)) == [
            ("crux", "crux_list_panes", "ok"),
            ("crux", "crux_get_raw_text", "error"),
            ("crux", "crux_list_panes", "ok"),
        ]
        check_log(home.env, data_home(home.env))


async def test_a_call_that_waits_for_a_person_is_one_call_record() -> None:
    with new_home() as home:
        async with cruxd(home) as daemon, bridge(home) as piped:
            refused = await piped.client.call("crux_execute_command", command="rm -rf precious")
            assert refused["error"]["name"] == "needs_approval"
            await daemon.stop()
        dari(home.env, "remote", "daemon", "stop")
        assert brief(shown(home.env)) == [("crux", "crux_execute_command", "held")]
        check_log(home.env, data_home(home.env))


async def test_kill_9_of_cruxd_loses_nothing_that_is_older_than_a_second() -> None:
    with new_home() as home:
        async with cruxd(home) as daemon, bridge(home) as piped:
            await piped.client.call("crux_create_pane", name="idle")
            for _ in range(5):
                await piped.client.call("crux_list_panes")
            # A second passes in the daemon.
            waited = await piped.client.call("crux_wait_for_output", pattern="never", timeout_ms=1000)
            assert waited.get("error", {}).get("name") != "not_found"
            os.kill(daemon.process.pid, signal.SIGKILL)
            await daemon.process.wait()
        take_over(home.env)
        assert brief(shown(home.env))[1:6] == [("crux", "crux_list_panes", "ok")] * 5
        check_log(home.env, data_home(home.env))


async def written(env: Env, tool: str) -> None:
    """Return when the hub has written a call of this tool into its log."""
    follow = ("audit", "--follow", "--json", "--tool", tool)
    process = await asyncio.create_subprocess_exec(DARI, *follow, env=env, stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    try:
        while not json.loads(await process.stdout.readline())["n"]:
            pass  # it waits in a spool
    finally:
        process.terminate()
        await process.communicate()


@asynccontextmanager
async def dari_mcp(env: Env) -> AsyncIterator[Client]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "dari", "mcp"), env=env, stdin=pipe, stdout=pipe, limit=1 << 24
    )
    assert process.stdin and process.stdout
    try:
        client = Client(StreamWire(process.stdout, process.stdin))
        await client.start()
        yield client
    finally:
        process.stdin.close()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]


async def test_the_hub_records_tools_of_every_part_once_and_takes_spools_while_it_runs() -> None:
    with new_home() as home:
        async with dari_mcp(home.env) as client:
            await client.call("dari_doctor")
            await client.call("crux_list_panes")
            await client.ask("tools/call", name="no_such_tool", arguments={})
            async with bridge(home) as piped:
                await piped.client.call("crux_list_sessions")
            await written(home.env, "crux_list_sessions")
        tools = sorted((one.get("part", ""), one["tool"], one["outcome"]) for one in shown(home.env))
        assert tools == [
            ("", "no_such_tool", "error"),
            ("crux", "crux_list_panes", "ok"),
            ("crux", "crux_list_sessions", "ok"),
            ("dari", "dari_doctor", "ok"),
        ]
        dari(home.env, "remote", "daemon", "stop")
        check_log(home.env, data_home(home.env))
