"""`dari mcp` as a pipe to the hub: what happens when the hub is not there, ends, or is another one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until
from tests.support.wire import ROOT, HttpWire, Json, StreamWire, call, initialize, stateless

pytestmark = pytest.mark.e2e
PIPE = asyncio.subprocess.PIPE
WAITING = """
import json, os, sys
for line in sys.stdin:
    said = json.loads(line)
    if said.get("method") == "initialize":
        info = {"name": "waiting", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif said.get("method") == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("wait", "show")]}
    elif said.get("method") == "tools/call":
        if said["params"]["name"] == "wait":
            open(os.environ["WAITS"], "w").close()
            continue
        result = {"content": [{"type": "text", "text": os.environ.get("SHOWN", "") + " " + os.getcwd()}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": result}), flush=True)
"""
OTHER_VERSION = "0.0.1-other"
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": "list", "method": "tools/list"}


class Person:
    """A home with one server in its `mcp.json`, and the processes that run there."""

    def __init__(self, root: Path) -> None:
        self.home = root
        self.script = root / "waiting.py"
        self.script.write_text(WAITING)
        env = {"WAITS": str(root / "waits"), "SHOWN": "${SHOWN:-nothing}"}
        self.write(root / ".config/crewx/mcp.json", self.server("mine", env=env))

    def server(self, id: str, **fields: Any) -> Json:
        return {"id": id, "kind": "stdio", "command": sys.executable, "args": [str(self.script)], **fields}

    def write(self, path: Path, *servers: Json, **top: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"version": "1", "servers": servers, **top}))
        path.chmod(0o600)

    def environment(self, **more: str) -> dict[str, str]:
        home = str(self.home)
        return {"PATH": os.environ["PATH"], "HOME": home, "DARI_HOME": f"{home}/d", "DARI_BRIDGE_IDLE_S": "1", **more}

    @asynccontextmanager
    async def mcp(self, *words: str, cwd: Path = ROOT, **environ: str) -> AsyncIterator[StreamWire]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "dari", "mcp", *words),
            cwd=cwd,
            env={**self.environment(**environ), "PYTHONPATH": str(ROOT / "src")},
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
        )
        assert process.stdin and process.stdout and process.stderr
        try:
            yield StreamWire(process.stdout, process.stdin)
        finally:
            process.stdin.close()
            await process.stdout.read()
            self.log = (await process.stderr.read()).decode()
            self.code = await process.wait()

    @asynccontextmanager
    async def listener(self, transport: str) -> AsyncIterator[tuple[StreamWire, HttpWire]]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "dari", "mcp", "--transport", transport, "--http-port", "0"),
            cwd=ROOT,
            env={**self.environment(), "PYTHONPATH": str(ROOT / "src")},
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
        )
        assert process.stdin and process.stdout and process.stderr
        try:
            said = (await process.stderr.readuntil(b"/mcp")).decode()
            port = int(said.rpartition(":")[2].partition("/")[0])
            token = (self.home / "d/mcp.token").read_text().strip()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            yield StreamWire(process.stdout, process.stdin), HttpWire(reader, writer, token)
            writer.close()
        finally:
            process.terminate()
            await process.communicate()

    @asynccontextmanager
    async def other_release(self, code: str) -> AsyncIterator[None]:
        """A hub that says it is of another release, until the end of the block."""
        changed = f"import dari.version; dari.version.VERSION = {OTHER_VERSION!r}; {code}"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", changed), cwd=ROOT, env=self.environment(), stdout=PIPE, stderr=PIPE
        )
        try:
            await until(lambda: list(self.home.rglob("door.sock")))
            yield
        finally:
            if process.returncode is None:
                process.terminate()
            await process.communicate()

    async def run(self, *words: str) -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dari", *words), env=self.environment(), cwd=ROOT, stdout=PIPE, stderr=PIPE
        )
        await process.communicate()

    def hub_pid(self) -> int:
        (lock,) = self.home.rglob("host.lock")
        return int(lock.read_text().split()[0])

    async def until_waiting(self) -> None:
        await until(lambda: (self.home / "waits").exists())


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    """A hub whose servers live does not end for want of clients, so it is stopped."""
    person = Person(tmp_path)
    yield person
    command = (sys.executable, "-m", "dari", "remote", "daemon", "stop")
    subprocess.run(command, env=person.environment(), cwd=ROOT, capture_output=True, check=True)


async def open_session(wire: StreamWire, version: str = "2025-06-18") -> Json:
    opened = await wire.ask(initialize(version))
    wire.send(INITIALIZED)
    return opened


async def answer(wire: StreamWire, request_id: object) -> tuple[Json, list[Json]]:
    """The response with this id, and what came before it."""
    before: list[Json] = []
    while True:
        message = await wire.receive()
        if message.get("id") == request_id and "method" not in message:
            return message, before
        before.append(message)


async def list_with(wire: StreamWire, *wanted: str) -> list[str]:
    """The names of the tools, once these are among them."""
    while True:
        wire.send(LIST)
        names = [tool["name"] for tool in (await answer(wire, "list"))[0]["result"]["tools"]]
        if set(wanted) <= set(names):
            return names


def methods(messages: list[Json]) -> set[str]:
    return {str(message.get("method")) for message in messages}


async def test_a_hub_killed_in_a_call_fails_the_call_and_is_replaced(person: Person) -> None:
    async with person.mcp() as wire:
        await open_session(wire)
        await list_with(wire, "mine__wait")
        first = person.hub_pid()
        wire.send(call("mine__wait", "call"))
        await person.until_waiting()
        os.kill(first, signal.SIGKILL)
        failed, _ = await answer(wire, "call")
        assert failed["result"]["isError"] is True
        error = failed["result"]["_meta"]["dari/error"]
        assert error["name"] == "unavailable" and "hub" in error["message"] and error["hint"]
        announced: list[Json] = []
        while len(methods(announced)) < 3:
            announced.append(await wire.receive())
        assert methods(announced) == {
            f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")
        }
        wire.send(call("dari_ping", "again"))
        assert (await answer(wire, "again"))[0]["result"]["structuredContent"] == {"pong": True}
        assert person.hub_pid() != first


@pytest.mark.parametrize(
    "line", [b'{"jsonrpc":"2.0","id":1,"method":"pi', b"\xff", b'{"id":' + b"9" * 5000, b"[" * 9000]
)
async def test_a_line_that_is_not_json_is_answered_and_the_pipe_goes_on(person: Person, line: bytes) -> None:
    async with person.mcp() as wire:
        wire.send(line)
        assert (await wire.receive())["error"]["code"] in (-32700, -32600)
        assert (await open_session(wire))["result"]["protocolVersion"] == "2025-06-18"


async def test_a_stateless_call_and_an_old_one_learn_of_a_killed_hub_in_their_own_form(person: Person) -> None:
    async with person.mcp() as wire:
        await open_session(wire, "2024-11-05")
        await list_with(wire, "mine__wait")
        wire.send(call("mine__wait", "old"))
        await person.until_waiting()
        (person.home / "waits").unlink()
        wire.send(stateless(call("mine__wait", "new")))
        await person.until_waiting()
        os.kill(person.hub_pid(), signal.SIGKILL)
        assert (await answer(wire, "old"))[0]["error"]["data"]["name"] == "unavailable"
        result = (await answer(wire, "new"))[0]["result"]
        assert result["isError"] is True and result["resultType"] == "complete"


async def test_a_hub_that_was_stopped_stays_away_until_it_is_needed(person: Person) -> None:
    async with person.mcp() as wire:
        await open_session(wire)
        await list_with(wire, "mine__show")
        await person.run("remote", "daemon", "stop")
        assert not list(person.home.rglob("door.sock"))
        wire.send(call("dari_ping", "again"))
        assert (await answer(wire, "again"))[0]["result"]["structuredContent"] == {"pong": True}


async def test_variables_folder_and_profile_are_the_clients_own(person: Person, tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        servers = [person.server(f"{name}-only", env={"SHOWN": "${SHOWN}"}, cwd=str(folder)), person.server("spare")]
        person.write(folder / ".crewx/mcp.json", *servers, profiles={name: {"servers": [f"{name}-only"]}})
        await trust(person, folder)
    async with (
        person.mcp("--profile", "one", cwd=tmp_path / "one", SHOWN="first") as one,
        person.mcp("--profile", "two", cwd=tmp_path / "two", SHOWN="second") as two,
    ):
        for wire, name, shown in ((one, "one", "first"), (two, "two", "second")):
            await open_session(wire)
            names = await list_with(wire, f"{name}-only__show")
            assert {each.partition("__")[0] for each in names if "__" in each} == {f"{name}-only"}
            wire.send(call(f"{name}-only__show", "show"))
            said = (await answer(wire, "show"))[0]["result"]["content"][0]["text"]
            assert said == f"{shown} {tmp_path / name}"
    async with person.mcp("--profile", "one", cwd=tmp_path / "one") as later:
        # Nobody sets it now, and what the client before had set is not kept.
        await open_session(later)
        later.send(call("one-only__show", "show"))
        assert "first" not in json.dumps((await answer(later, "show"))[0])


async def trust(person: Person, folder: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "dari", "remote", "trust", "--yes"),
        cwd=folder,
        env={**person.environment(), "PYTHONPATH": str(ROOT / "src")},
        stdout=PIPE,
        stderr=PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, (out + err).decode()


async def test_a_cold_start_answers_as_the_hub_did_last_and_nothing_else(person: Person) -> None:
    async with person.mcp() as wire:
        warm = await open_session(wire)
        discovered = await wire.ask(stateless({"jsonrpc": "2.0", "id": 7, "method": "server/discover"}))
    await person.run("remote", "daemon", "stop")
    kept = list(person.home.rglob("introductions/*.json"))
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    assert not any(str(person.home / "waits") in path.read_text() for path in kept)
    async with person.mcp() as wire:
        assert await wire.ask(initialize("2025-06-18")) == warm
        assert await wire.ask(stateless({"jsonrpc": "2.0", "id": 7, "method": "server/discover"})) == discovered
        assert not list(person.home.rglob("door.sock")) or person.hub_pid()
        wire.send(INITIALIZED)
        assert "dari_ping" in await list_with(wire, "dari_ping")
        changed = await wire.ask(initialize("2024-11-05"))
        assert changed["result"]["protocolVersion"] == "2024-11-05"


async def test_an_answer_is_kept_for_its_options_only(person: Person) -> None:
    async with person.mcp("--protocol", "strict") as wire:
        assert "error" in await wire.ask(initialize("2025-06-18"))
        assert "result" in await wire.ask(initialize("2024-11-05"))
    await person.run("remote", "daemon", "stop")
    async with person.mcp("--protocol", "strict") as wire:
        assert "error" in await wire.ask(initialize("2025-06-18"))
    await person.run("remote", "daemon", "stop")
    async with person.mcp() as wire:
        assert (await wire.ask(initialize("2025-06-18")))["result"]["protocolVersion"] == "2025-06-18"


async def test_no_servers_starts_no_child(person: Person) -> None:
    person.write(
        person.home / ".config/crewx/mcp.json",
        {"id": "mark", "kind": "stdio", "command": "touch", "args": [str(person.home / "started")]},
    )
    async with person.mcp("--no-servers") as wire:
        await open_session(wire)
        names = await list_with(wire, "dari_ping")
        assert not [name for name in names if "__" in name]
    assert not (person.home / "started").exists()


@pytest.mark.parametrize("words", [("--server", ""), ("--server=",), ("--profile", ""), ("--profile=",)])
async def test_an_empty_name_is_refused_and_does_not_stand_for_every_server(
    person: Person, words: tuple[str, ...]
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dari", "mcp", *words), env=person.environment(), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    out, err = await process.communicate(b"")
    assert process.returncode == 2 and out == b"" and b"must be a name, got ''" in err


async def test_a_profile_that_is_not_there_ends_the_command(person: Person) -> None:
    async with person.mcp("--profile", "nosuch") as wire:
        wire.send(initialize())
        with pytest.raises(EOFError):
            while "result" not in await wire.receive():
                pass
    assert person.code == 1
    assert "nosuch" in person.log


async def test_http_is_forwarded_and_goes_on_when_stdin_ends_and_when_the_hub_is_killed(person: Person) -> None:
    async with person.listener("both") as (wire, http):
        await open_session(wire)
        wire.send(call("dari_ping", "one"))
        assert (await answer(wire, "one"))[0]["result"]["structuredContent"] == {"pong": True}
        wire.writer.close()
        assert await wire.reader.read() == b""
        session = await http_session(http)
        asked = asyncio.create_task(http.post(call("mine__wait", 5), **session))
        await person.until_waiting()
        os.kill(person.hub_pid(), signal.SIGKILL)
        assert (await asked).json()["result"]["_meta"]["dari/error"]["name"] == "unavailable"
        pinged = await http.post(call("dari_ping", 6), **session)
        assert pinged.status == 200 and pinged.json()["result"]["structuredContent"] == {"pong": True}


async def test_an_http_session_outlives_its_hub_and_its_stream_announces_every_list(person: Person) -> None:
    async with person.listener("http") as (_, http):
        session, other = await http_session(http), await http_session(http)
        level = {"jsonrpc": "2.0", "id": 4, "method": "logging/setLevel", "params": {"level": "debug"}}
        assert (await http.post(level, **session)).json()["result"] == {}
        os.kill(person.hub_pid(), signal.SIGKILL)
        listed = (await http.post(LIST, **session)).json()["result"]["tools"]
        assert "dari_ping" in {tool["name"] for tool in listed}
        assert (await http.request("DELETE", "/mcp", headers=other)).status == 204
        assert (await http.post(LIST, **other)).status == 404
        assert (await http.post(LIST, **{**session, "mcp-session-id": "never-seen"})).status == 404
        http.send("GET", "/mcp", headers=session)
        assert (await http.head())[0] == 200
        told = b""
        while told.count(b"list_changed") < 3:
            told += await http.chunk()
        assert all(f"notifications/{kind}/list_changed".encode() in told for kind in ("tools", "prompts", "resources"))


async def http_session(http: HttpWire) -> dict[str, str]:
    opened = await http.post(initialize("2025-06-18"))
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
    await http.post(INITIALIZED, **session)
    while "mine__wait" not in (await http.post(LIST, **session)).body.decode():
        pass
    return session


async def test_a_background_hub_of_another_release_is_replaced(person: Person, tmp_path: Path) -> None:
    async with person.other_release("from dari.cli.hub.main import main; raise SystemExit(main(['serve', '--stay']))"):
        before = person.hub_pid()
        async with person.mcp() as wire:
            assert (await open_session(wire))["result"]["serverInfo"]["version"] != OTHER_VERSION
            assert person.hub_pid() != before


async def test_a_dari_up_of_another_release_is_refused_with_the_reason(person: Person) -> None:
    up = "from dari.cli.main import main; raise SystemExit(main(['up', '--http-port', '0']))"
    async with person.other_release(up):
        before = person.hub_pid()
        async with person.mcp() as wire:
            wire.send(initialize())
            with pytest.raises(EOFError):
                await wire.receive()
        assert person.code == 1
        assert OTHER_VERSION in person.log and "dari up" in person.log
        assert person.hub_pid() == before
