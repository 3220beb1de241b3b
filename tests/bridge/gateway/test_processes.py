"""The commands as a person starts them, with the official SDK's client in front of servers of both eras."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.support.bridge import Place
from tests.support.gateway import demo, lab, seen
from tests.support.real_clients import MODES, Person, http_client, unix_client
from tests.support.wire import ROOT, HttpWire, StreamWire, initialize

# One worker: what these tests share would be started in each.
pytestmark = [pytest.mark.local_mcp, pytest.mark.e2e, pytest.mark.xdist_group("gateway processes")]
DOORS = ["http", "unix", "stdio"]
DAEMON_STOP = (sys.executable, "-m", "dari", "remote", "daemon", "stop")


def environment(place: Place) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(place.home), "DARI_HOME": str(place.root / "dari")}


class Hub:
    """A running `dari up`."""

    def __init__(self, place: Place, port: int) -> None:
        self.port = port
        self.token = (place.root / "dari" / "mcp.token").read_text().strip()
        (self.socket,) = (place.root / "dari").rglob("mcp.sock")

    def url(self, path: str = "/mcp") -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@asynccontextmanager
async def hub(place: Place, *words: str) -> AsyncIterator[Hub]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dari", "up", "--http-port", "0", *words),
        cwd=ROOT,
        env=environment(place),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr
    try:
        banner = (await process.stderr.readuntil(b"Ctrl-C stops it.")).decode()
        found = re.search(r"Dari is up at http://127\.0\.0\.1:(\d+)/mcp", banner)
        assert found
        yield Hub(place, int(found[1]))
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


@asynccontextmanager
async def stopping_the_daemon(place: Place) -> AsyncIterator[None]:
    try:
        yield
    finally:
        process = await asyncio.create_subprocess_exec(
            *DAEMON_STOP, env=environment(place), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        await process.wait()


SHARED = {
    "both": (lab(), demo()),
    "asking": (demo("handshake", era="handshake"), demo("stateless", era="stateless")),
}


class Rooms:
    """Places that tests share, with a hub or with a daemon in each; they start when they are first asked for."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self._root = root
        self._stack = stack
        self._hubs: dict[str, Hub] = {}
        self._homes: dict[str, Place] = {}

    def hub(self, name: str) -> Hub:
        if name not in self._hubs:
            place = Place(self._root / f"hub-{name}", *SHARED[name])
            self._hubs[name] = self._stack.enter_context(hub_for_many(place))
        return self._hubs[name]

    def home(self, name: str) -> Place:
        """Where `dari mcp` is started, which starts the daemon."""
        if name not in self._homes:
            place = self._homes[name] = Place(self._root / f"home-{name}", *SHARED[name])
            self._stack.callback(subprocess.run, DAEMON_STOP, env=environment(place), capture_output=True, check=True)
        return self._homes[name]


@pytest.fixture(scope="module")
def rooms() -> Iterator[Rooms]:
    # A short path, for sockets: this folder lives longer than one of the test's.
    with tempfile.TemporaryDirectory(prefix="dari-") as root, ExitStack() as stack:
        yield Rooms(Path(root), stack)


@contextmanager
def hub_for_many(place: Place) -> Iterator[Hub]:
    command = (sys.executable, "-m", "dari", "up", "--http-port", "0")
    with (place.root / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment(place), stdout=log, stderr=subprocess.PIPE)
    with process:
        assert process.stderr
        said = b""
        while b"Ctrl-C stops it." not in said:
            line = process.stderr.readline()
            assert line, said.decode()
            said += line
        found = re.search(rb"Dari is up at http://127\.0\.0\.1:(\d+)/mcp", said)
        assert found
        rest = threading.Thread(target=process.stderr.read, daemon=True)  # nobody else empties the pipe
        rest.start()
        try:
            yield Hub(place, int(found[1]))
        finally:
            process.terminate()
            process.wait()
            rest.join()


@asynccontextmanager
async def stdio(place: Place, *words: str) -> AsyncIterator[Any]:
    with (place.root / "stderr").open("a") as log:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "dari", "mcp", *words], env=environment(place), cwd=ROOT
        )
        yield stdio_client(command, errlog=log)


@asynccontextmanager
async def connected(
    where: Place | tuple[Rooms, str], door: str, mode: str, *words: str, **options: Any
) -> AsyncIterator[tuple[Client, Person]]:
    """The SDK's client behind one of our doors, of a place of its own or in one of the shared rooms."""
    async with AsyncExitStack() as stack:
        person = Person()
        if door == "stdio":
            if isinstance(where, Place):
                place = where
                await stack.enter_async_context(stopping_the_daemon(place))
            else:
                place = where[0].home(where[1])
            transport = await stack.enter_async_context(stdio(place, *words))
        else:
            served = (
                await stack.enter_async_context(hub(where, *words))
                if isinstance(where, Place)
                else where[0].hub(where[1])
            )
            transport = unix_client(served.socket) if door == "unix" else http_client(served.url(), token=served.token)
        yield await stack.enter_async_context(person.client(transport, mode, **options)), person


async def listed(client: Client, *wanted: str) -> list[str]:
    """The names of the tools, once these are among them; a machine under load starts servers slowly."""
    while True:
        names = [tool.name for tool in (await client.list_tools()).tools]
        if set(wanted) <= set(names):
            return names
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("door", DOORS)
async def test_tools_of_ours_and_of_others_are_one_server(rooms: Rooms, door: str, mode: str) -> None:
    async with connected((rooms, "both"), door, mode) as (client, _):
        names = await listed(client, "lab__add", "demo__demo_echo")
        assert {"dari_ping", "crab_proxy_start"} <= set(names)
        assert (await client.call_tool("lab__add", {"a": 1, "b": 2})).structured_content == {"sum": 3}
        assert (await client.call_tool("dari_ping")).structured_content == {"pong": True}
        assert (await client.call_tool("lab__fail")).is_error
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert {name for name in prompts if "__" in name} == {"lab__hi", "demo__letter"}  # the others are our own
        read = await client.read_resource("demo://item/7")
        assert read.contents[0].text == "item 7"  # type: ignore[union-attr]


@pytest.mark.parametrize("server", ["handshake", "stateless"])
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("door", DOORS)
async def test_people_and_models_are_asked_across_the_eras(rooms: Rooms, door: str, mode: str, server: str) -> None:
    async with connected((rooms, "asking"), door, mode, log_level="info") as (client, person):
        await listed(client, f"{server}__demo_greet")
        greeted = await client.call_tool(f"{server}__demo_greet")
        assert greeted.content[0].text == "hello Minji"  # type: ignore[union-attr]
        twice = await client.call_tool(f"{server}__demo_introduce")
        assert twice.content[0].text == "y and y"  # type: ignore[union-attr]
        thought = await client.call_tool(f"{server}__demo_think")
        assert thought.content[0].text == "4"  # type: ignore[union-attr]
        told: list[float] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append(done)

        await client.call_tool(f"{server}__demo_count", {"to": 2}, progress_callback=progress)
        assert told == [1, 2]
        assert [record.data for record in person.logs] == [{"number": 1}, {"number": 2}]


async def test_every_set_and_every_server_has_its_own_address(tmp_path: Path) -> None:
    top: dict[str, Any] = {"profiles": {"few": {"servers": ["lab"]}, "diet": {"servers": ["*"], "mode": "search"}}}
    async with hub(Place(tmp_path, lab(), demo(), **top)) as served:

        async def names(path: str, *wanted: str) -> set[str]:
            async with Client(http_client(served.url(path), token=served.token), mode="auto") as client:
                return set(await listed(client, *wanted))

        assert "dari_ping" in await names("/mcp", "lab__add", "demo__demo_echo")
        assert {name.partition("__")[0] for name in await names("/p/few/mcp", "lab__add")} == {"lab"}
        assert await names("/p/diet/mcp") == {"find_tools", "describe_tool", "call_tool"}
        assert "__" not in "".join(await names("/s/lab/mcp", "add"))
        assert "dari_ping" in await names("/s/dari/mcp")
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        wire = HttpWire(reader, writer, served.token)
        for path, said in (
            ("/s/lob/mcp", "did you mean 'lab'?"),
            ("/p/x/mcp", "known: few, diet"),
            ("/s/lab", "/s/lab/mcp"),
        ):
            reply = await wire.request("POST", path, json.dumps(initialize()).encode())
            assert reply.status == 404
            assert said in reply.json()["error"]
        writer.close()


@pytest.mark.parametrize("door", ["http", "stdio"])
async def test_search_is_a_word_on_the_command_line(tmp_path: Path, door: str) -> None:
    async with connected(Place(tmp_path, lab()), door, "auto", "--mode", "search") as (client, _):
        assert await listed(client) == ["find_tools", "describe_tool", "call_tool"]
        found = await client.call_tool("find_tools", {"query": "add numbers"})
        assert found.structured_content is not None
        assert found.structured_content["tools"][0]["name"] == "lab__add"
        inner = {"name": "lab__add", "arguments": {"a": 1, "b": 2}}
        assert (await client.call_tool("call_tool", inner)).structured_content == {"sum": 3}


@pytest.mark.parametrize("door", ["http", "stdio"])
async def test_other_servers_can_be_left_out(tmp_path: Path, door: str) -> None:
    marks = ["-c", f"open({str(tmp_path / 'started')!r}, 'w')"]
    other = {"id": "other", "kind": "stdio", "command": sys.executable, "args": marks}
    async with connected(Place(tmp_path, other), door, "auto", "--no-servers") as (client, _):
        names = await listed(client)
        assert "dari_ping" in names
        assert not [name for name in names if "__" in name]
        assert not (tmp_path / "started").exists()


async def test_a_file_that_changes_is_seen_by_every_client(tmp_path: Path) -> None:
    place = Place(tmp_path, lab())
    async with hub(place) as served, AsyncExitStack() as stack:
        people = [Person(), Person()]
        for person, transport in zip(
            people, (http_client(served.url(), token=served.token), unix_client(served.socket)), strict=True
        ):
            client = await stack.enter_async_context(person.client(transport, "legacy"))
            await listed(client, "lab__add")
            person.seen.clear()
        place.write(lab(), lab("two"))
        for person in people:
            await person.until(lambda person=person: bool(person.seen))  # type: ignore[misc]
        assert "two__add" in await listed(client, "two__add")


async def test_up_takes_the_daemons_place_and_mcp_then_relays_from_it(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(env={"LAB_LOG": str(tmp_path / "lab.log")}))
    async with stopping_the_daemon(place):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dari", "mcp"),
            cwd=ROOT,
            env=environment(place),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=2**24,
        )
        assert process.stdin and process.stdout
        wire = StreamWire(process.stdout, process.stdin)
        try:
            await wire.ask(initialize())
            first = await asked(wire, "lab__pid")
            async with hub(place):
                await seen(lambda: not Path(f"/proc/{first}").exists())
                second = await asked(wire, "lab__pid")
                assert second != first
            await seen(lambda: not Path(f"/proc/{second}").exists())
            assert (await asked(wire, "lab__pid")) not in (first, second), "a daemon was started again"
        finally:
            process.stdin.close()
            await process.wait()
            process._transport.close()  # type: ignore[attr-defined]


async def asked(wire: StreamWire, name: str) -> str:
    """The text of a call, made again while a server or a daemon is on its way out."""
    for number in range(1000):
        wire.send({"jsonrpc": "2.0", "id": f"{name}-{number}", "method": "tools/call", "params": {"name": name}})
        while (reply := await wire.receive()).get("id") != f"{name}-{number}":
            pass
        if "result" in reply and not reply["result"].get("isError"):
            return str(reply["result"]["content"][0]["text"])
        await asyncio.sleep(0.05)
    raise AssertionError(reply)
