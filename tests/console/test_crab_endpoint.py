"""The toggle of design 000 (WS4, lines 528–580 of the document, and the end-to-end rows 647 and 648), as tools."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dari.app import new_children, proxy_client, proxy_service
from dari.console import crab_endpoint
from dari.console.backends import ConsoleBackends
from dari.console.crab_endpoint import CrabEndpoint
from dari.console.live import TopicOptions
from dari.console.tools.crab_endpoint import CrabEndpointTools
from dari.console.topics.crab_endpoint import follow_crab_endpoint
from dari.daemon.ancestry import read_process
from dari.errors import Conflict, Unavailable
from dari.paths import runtime_path
from tests.support.crab_processes import end_crabd, run_directory
from tests.support.ports import reserved_port
from tests.support.waiting import until
from tests.support.wire import ROOT, HttpWire, call, initialize


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with run_directory() as folder:
        monkeypatch.setenv("DARI_HOME", str(folder))
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        yield folder
        end_crabd(runtime_path("crabd"))


@pytest.fixture
def free_port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


@asynccontextmanager
async def toggle(hub_port: int = 1) -> AsyncIterator[CrabEndpoint]:
    async with new_children() as children, proxy_client("app") as client:
        service = proxy_service(client)
        yield CrabEndpoint(children, lambda starts: service, lambda: f"http://127.0.0.1:{hub_port}/mcp")


async def test_lines_574_to_578_the_toggle_starts_and_stops_the_server_and_shows_its_state(
    home: Path, free_port: int
) -> None:
    async with toggle() as endpoint:
        tools = CrabEndpointTools(cast(ConsoleBackends, SimpleNamespace(crab_endpoint=endpoint)))
        assert (await tools.status()).state == "stopped"
        on = await tools.start(free_port)
        assert (on.state, on.port, on.endpoint) == ("running", free_port, f"http://127.0.0.1:{free_port}/mcp")
        assert await tools.start(free_port) == on  # it is on already
        off = await tools.stop()
        assert (off.state, off.endpoint, off.error) == ("stopped", "", "")
        assert read_process(on.pid) is None
        assert (await tools.stop()).state == "stopped"


async def test_a_port_that_nobody_chose_gives_way_when_another_process_takes_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    was_free, looks = crab_endpoint._is_free, 0

    def is_free(port: int) -> bool:
        nonlocal looks
        looks += 1
        return looks <= 2 or was_free(port)  # what was shown, and what is tried first: taken a moment later

    monkeypatch.setattr(crab_endpoint, "_is_free", is_free)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        async with toggle(taken - 1) as endpoint:
            shown = endpoint.state().port
            on = await endpoint.start(shown)
            assert (shown, on.state) == (taken, "running") and taken < on.port
            await endpoint.stop()
            assert (await endpoint.start(on.port)).port == on.port
            await endpoint.stop()
            with pytest.raises(Unavailable):
                await endpoint.start(taken)


async def test_line_576_the_token_is_a_private_file_and_its_value_opens_the_endpoint_line_647(
    home: Path, free_port: int
) -> None:
    async with toggle() as endpoint:
        tools = CrabEndpointTools(cast(ConsoleBackends, SimpleNamespace(crab_endpoint=endpoint)))
        on = await tools.start(free_port)
        assert stat.S_IMODE(os.stat(on.token_path).st_mode) == 0o600
        secret = (await tools.token()).secret
        assert secret == Path(on.token_path).read_text().strip()
        wire = HttpWire(*await asyncio.open_connection("127.0.0.1", on.port), token=secret)
        await wire.ask(initialize())
        assert "result" in await wire.ask(call("crab_rules_list_allow"))
        wire.headers["Authorization"] = "Bearer wrong"
        assert (await wire.post(initialize())).status == 401
        wire.writer.close()


async def test_line_577_the_port_is_the_next_free_one_after_the_hubs_and_can_be_changed(
    home: Path, free_port: int
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        async with toggle(hub_port=number - 1) as endpoint:
            assert endpoint.state().port > number
            on = await endpoint.start()
            assert on.port > number
            with pytest.raises(Conflict):
                await endpoint.start(free_port)


async def test_line_579_a_port_in_use_is_the_last_error_and_the_next_start_forgets_it(
    home: Path, free_port: int
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with toggle() as endpoint:
            with pytest.raises(Unavailable) as caught:
                await endpoint.start(port)
            assert "in use" in caught.value.message
            shown = endpoint.state()
            assert (shown.state, shown.port) == ("error", port)
            assert "in use" in shown.error
            assert (await endpoint.start(free_port)).state == "running"


async def test_line_579_a_server_that_is_killed_is_shown_as_an_error_to_who_follows_it(
    home: Path, free_port: int
) -> None:
    async with toggle() as endpoint:
        backends = cast(ConsoleBackends, SimpleNamespace(crab_endpoint=endpoint))
        on = await endpoint.start(free_port)
        events = follow_crab_endpoint(backends, "", TopicOptions())
        assert (await anext(events)).state == "running"
        os.kill(on.pid, 9)
        async with asyncio.timeout(20):
            shown = await anext(events)
        assert shown.state == "error"
        assert "SIGKILL" in shown.error
        assert (await endpoint.start(free_port)).state == "running"


@pytest.mark.parametrize("number", [9, 15])
async def test_line_648_it_ends_with_the_hub_also_when_that_is_killed(home: Path, number: int, free_port: int) -> None:
    hub = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.crab_endpoint_hub", str(free_port)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert hub.stdout
    state = json.loads(await hub.stdout.readline())
    assert state["state"] == "running"
    hub.send_signal(number)
    await hub.wait()
    await until(lambda: (found := read_process(state["pid"])) is None or found.is_ended)
