"""The lifecycle table of design 000 §5.5 and WS3: modes, ends, exit codes and log keywords."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

import pytest

from dari.errors import Conflict
from dari.runtime import PANIC_EXIT, run_to_exit
from dari.settings import ServeSettings
from dari.transport.supervisor import TransportSupervisor
from tests.support.demo_server import demo_server
from tests.support.transports import Events, logged, start_process
from tests.support.waiting import turn_until
from tests.support.wire import DemoProcess, HttpWire, Json, call, demo_process, envelope_headers, initialize, stateless

ODD = "tests.transport.odd"
PING: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
SIGNALS = [signal.SIGINT, signal.SIGTERM]
LESS_THAN_THE_GRACE_S = 4.5


async def rest_of_log(server: DemoProcess) -> str:
    assert server.process.stderr
    return (await server.process.stderr.read()).decode()


async def until_logged(server: DemoProcess, text: str) -> str:
    assert server.process.stderr
    seen = ""
    while text not in seen:
        line = (await server.process.stderr.readline()).decode()
        assert line, seen
        seen += line
    return seen


async def is_open(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def ready(wire: HttpWire) -> HttpWire:
    await wire.ask(initialize())
    return wire


async def test_http_runs_until_it_is_stopped_and_logs_start_and_stop(tmp_path: Path) -> None:
    settings = ServeSettings(transport="http", http_port=0, token_path=tmp_path / "token")
    told: list[tuple[str, str]] = []
    supervisor = TransportSupervisor(demo_server(), settings, announce=lambda url, token: told.append((url, token)))
    with logged() as lines:
        run = asyncio.create_task(supervisor.run())
        await turn_until(lambda: told)
        supervisor.stop()
        assert await run == 0
    url = told[0][0]
    assert told == [(url, str(tmp_path / "token"))]
    assert lines == [
        f"transport=http event=start url={url} token_path={tmp_path / 'token'}",
        "transport=http event=stop",
    ]


@pytest.mark.parametrize("transport", ["http", "both"])
async def test_a_taken_port_at_start_ends_the_process_with_1(tmp_path: Path, transport: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        options = ("--transport", transport, "--http-port", str(busy.getsockname()[1]))
        process = await start_process(tmp_path, "-m", ODD, *options, stderr=-1)
        assert process.stdin
        _, log = await process.communicate()
    assert process.returncode == 1
    assert "is in use" in log.decode()
    assert "transport=stdio event=start" not in log.decode()


async def test_a_live_socket_at_start_ends_the_process_with_1(tmp_path: Path) -> None:
    async with demo_process(tmp_path, transport="http") as server:
        options = ("--transport", "http", "--http-port", "0", "--socket", str(server.socket))
        process = await start_process(tmp_path, "-m", ODD, *options, stderr=-1)
        _, log = await process.communicate()
        assert process.returncode == 1
        assert f"another server listens on {server.socket}\nhint: " in log.decode()
        assert (await (await server.unix()).ask(PING))["result"] == {}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("transport", ["http", "both"])
async def test_a_signal_stops_gracefully_with_0(tmp_path: Path, transport: str, number: int) -> None:
    async with demo_process(tmp_path, transport=transport) as server:
        wire = await ready(await server.http())
        wire.send("GET", "/mcp")
        await wire.head()
        events = Events(wire)
        await events.block()
        listener = await server.http()
        params = {"notifications": {"toolsListChanged": True}}
        listen = stateless({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params})
        listener.send("POST", "/mcp", json.dumps(listen).encode(), envelope_headers(listen))
        await listener.head()
        server.process.send_signal(number)
        assert await events.block() == ""
        heard = Events(listener)
        await heard.message()
        assert (await heard.message())["result"]["resultType"] == "complete"
        async with asyncio.timeout(LESS_THAN_THE_GRACE_S):
            assert await server.process.wait() == 0
        assert not server.socket.exists()
        log = await rest_of_log(server)
        assert "transport=http event=stop" in log
        assert ("transport=stdio event=stop" in log) == (transport == "both")
        assert "Traceback" not in log


@pytest.mark.parametrize("way", ["stdio", "http", "unix"])
async def test_a_running_call_is_answered_before_a_graceful_stop(tmp_path: Path, way: str) -> None:
    async with demo_process(tmp_path, module=ODD) as server:
        wire = server.stdio() if way == "stdio" else await (server.http() if way == "http" else server.unix())
        await wire.ask(initialize())
        asking = asyncio.create_task(wire.ask(call("demo_say", 1)))
        await until_logged(server, "the call has begun")
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGUSR2)
        assert (await asking)["result"]["content"][0]["text"] == "said"
        assert await server.process.wait() == 0


async def test_both_keeps_http_when_stdin_ends(tmp_path: Path) -> None:
    async with demo_process(tmp_path) as server:
        stdio = server.stdio()
        await stdio.ask(initialize())
        assert server.process.stdin
        server.process.stdin.close()
        await until_logged(server, "transport=stdio event=eof")
        wire = await ready(await server.http())
        assert (await wire.ask(call("demo_echo", 2, text="x")))["id"] == 2
        assert (await (await server.unix()).ask(PING))["result"] == {}
        server.process.send_signal(signal.SIGTERM)
        assert await server.process.wait() == 0


async def test_both_keeps_stdio_when_http_breaks(tmp_path: Path) -> None:
    async with demo_process(tmp_path, module=ODD) as server:
        stdio = server.stdio()
        await stdio.ask(initialize())
        params = {"notifications": {"toolsListChanged": True}}
        await stdio.ask(stateless({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params}))
        wire = await ready(await server.http())
        os.kill(server.process.pid, signal.SIGUSR1)
        log = await until_logged(server, "event=fatal")
        assert "transport=http event=fatal the listener is gone" in log
        assert await wire.reader.read() == b""
        assert not await is_open(server.port)
        assert (await stdio.ask(call("demo_echo", 2, text="x")))["id"] == 2
        assert server.process.stdin
        server.process.stdin.close()
        assert await server.process.wait() == 0
        assert "transport=stdio event=eof" in await rest_of_log(server)


@pytest.mark.parametrize("transport", ["http", "both"])
async def test_http_that_breaks_while_nothing_else_runs_ends_the_process_with_1(tmp_path: Path, transport: str) -> None:
    async with demo_process(tmp_path, module=ODD, transport=transport) as server:
        if transport == "both":
            assert server.process.stdin
            server.process.stdin.close()
            await until_logged(server, "event=eof")
        os.kill(server.process.pid, signal.SIGUSR1)
        assert await server.process.wait() == 1
        log = await rest_of_log(server)
        assert log.count("transport=http event=fatal the listener is gone") == 1
        assert "Traceback" not in log


async def test_a_panic_ends_the_process_with_101(tmp_path: Path) -> None:
    process = await start_process(tmp_path, "-c", f"import os; os.environ['ODD_PANIC'] = '1'; {RUN_ODD}", stderr=-1)
    _, log = await process.communicate()
    assert process.returncode == PANIC_EXIT == 101
    assert "transport=process event=fatal" in log.decode()
    assert "TypeError" in log.decode()


RUN_ODD = "import runpy; runpy.run_module('tests.transport.odd', run_name='__main__')"


@pytest.mark.parametrize(
    ("error", "code"),
    [(RuntimeError("boom"), 101), (Conflict("taken", "free it"), 1), (KeyboardInterrupt(), 0), (OSError("io"), 101)],
)
def test_every_failure_has_its_exit_code(error: BaseException, code: int) -> None:
    async def main() -> int:
        raise error

    with logged() as lines:
        assert run_to_exit(main) == code
    if code == 1:
        assert lines == ["taken\nhint: free it"]


async def test_stdio_and_http_answer_at_the_same_time_without_disturbing_each_other(tmp_path: Path) -> None:
    async with demo_process(tmp_path) as server:
        stdio, http = server.stdio(), await ready(await server.http())
        await stdio.ask(initialize())

        async def talk(wire: object, name: str) -> list[str]:
            texts = []
            for number in range(200):
                reply = await wire.ask(call("demo_echo", number, text=f"{name}{number}"))  # type: ignore[attr-defined]
                texts.append(reply["result"]["structuredContent"]["text"])
            return texts

        first, second = await asyncio.gather(talk(stdio, "s"), talk(http, "h"))
        assert first == [f"s{number}" for number in range(200)]
        assert second == [f"h{number}" for number in range(200)]
