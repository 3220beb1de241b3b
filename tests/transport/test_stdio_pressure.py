"""stdio under pressure: clients that stop reading, messages that are too long, clients that are killed."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
from pathlib import Path

from dari.rpc import framing
from tests.support.transports import start_process
from tests.support.waiting import turn_until
from tests.support.wire import StreamWire, call, initialize

ODD = ("-m", "tests.transport.odd")

# A client in a process of its own: starts the server, has a call running, says so, and waits to be killed.
CLIENT = """
import json, subprocess, sys
server = subprocess.Popen([sys.executable, "-m", "tests.transport.odd"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for message in json.loads(sys.argv[1]):
    server.stdin.write(json.dumps(message).encode() + b"\\n")
server.stdin.flush()
server.stdout.readline()
print(server.pid, flush=True)
server.wait()
"""


def memory_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fill(descriptor: int, data: bytes, most_bytes: int) -> tuple[int, bytes]:
    """Write copies of the data until the reader takes no more for half a second; how many, and the rest of the last."""
    copies, rest = 0, b""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    while (copies * len(data) < most_bytes or rest) and poll.poll(500):
        rest = rest or data
        try:
            sent = os.write(descriptor, rest)
        except BlockingIOError:
            continue
        rest = rest[sent:]
        copies += not rest
    return copies + bool(rest), rest


async def test_a_client_that_asks_and_does_not_read_is_not_read_either(tmp_path: Path) -> None:
    process = await start_process(tmp_path, *ODD)
    assert process.stdin and process.stdout
    wire = StreamWire(process.stdout, process.stdin)
    await wire.ask(initialize())
    pipe, before = process.stdin.transport.get_extra_info("pipe").fileno(), memory_bytes(process.pid)
    process.stdout._transport.pause_reading()  # type: ignore[attr-defined]
    request = json.dumps(call("demo_quick", 1, text="x" * 10_000)).encode() + b"\n"
    asked, rest = await asyncio.to_thread(fill, pipe, request, 100_000_000)
    assert asked * len(request) < 20_000_000
    assert memory_bytes(process.pid) - before < 50_000_000
    process.stdout._transport.resume_reading()  # type: ignore[attr-defined]
    process.stdin.write(rest)
    for _ in range(asked):
        assert (await wire.receive())["id"] == 1
    process.stdin.close()
    assert await process.wait() == 0


async def test_a_tool_that_talks_to_a_client_that_does_not_read_waits(tmp_path: Path) -> None:
    process = await start_process(tmp_path, *ODD)
    assert process.stdin and process.stdout
    wire = StreamWire(process.stdout, process.stdin)
    await wire.ask(initialize())
    before = memory_bytes(process.pid)
    wire.send(call("demo_flood", 1, megabytes=50))
    assert (await wire.receive())["method"] == "notifications/message"
    process.stdout._transport.pause_reading()  # type: ignore[attr-defined]
    await wire.writer.drain()
    assert memory_bytes(process.pid) - before < 20_000_000
    process.stdout._transport.resume_reading()  # type: ignore[attr-defined]
    size = 0
    while "id" not in (message := await wire.receive()):
        size += len(message["params"]["data"])
    assert size == 49_900_000
    assert memory_bytes(process.pid) - before < 20_000_000
    process.stdin.close()
    assert await process.wait() == 0


async def test_a_slow_reader_that_closed_its_end_gets_everything(tmp_path: Path) -> None:
    process = await start_process(tmp_path, *ODD, stderr=asyncio.subprocess.PIPE)
    assert process.stdin and process.stdout and process.stderr
    wire = StreamWire(process.stdout, process.stdin)
    await wire.ask(initialize())
    wire.send(call("demo_flood", 1, megabytes=8, waits=True))
    await process.stderr.readuntil(b"the call has begun\n")
    process.stdout._transport.pause_reading()  # type: ignore[attr-defined]
    descriptors = Path(f"/proc/{process.pid}/fd")
    before = len(list(descriptors.iterdir()))
    process.stdin.close()
    await turn_until(lambda: len(list(descriptors.iterdir())) < before)
    process.send_signal(signal.SIGUSR2)
    process.stdout._transport.resume_reading()  # type: ignore[attr-defined]
    size = 0
    while "id" not in (message := await wire.receive()):
        size += len(message["params"]["data"])
    assert size == 8_000_000
    assert await process.wait() == 0
    assert b"Traceback" not in await process.stderr.read()


async def test_a_message_over_the_limit_is_refused_and_the_stream_goes_on(tmp_path: Path) -> None:
    process = await start_process(tmp_path, *ODD)
    assert process.stdin and process.stdout
    wire = StreamWire(process.stdout, process.stdin)
    await wire.ask(initialize())
    wire.send(call("demo_echo", 1, text="x" * framing.MAX_MESSAGE_BYTES))
    refused = await wire.receive()
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert (await wire.ask({"jsonrpc": "2.0", "id": 2, "method": "ping"}))["id"] == 2
    process.stdin.close()
    assert await process.wait() == 0


async def test_killing_the_client_in_the_middle_of_a_call_ends_the_server(tmp_path: Path) -> None:
    messages = json.dumps([initialize(), call("demo_hang", 1)])
    client = await start_process(tmp_path, "-c", CLIENT, messages, stdin=asyncio.subprocess.DEVNULL)
    assert client.stdout
    server = int(await client.stdout.readline())
    gone = asyncio.Event()
    watch = os.pidfd_open(server)
    asyncio.get_running_loop().add_reader(watch, gone.set)
    client.send_signal(signal.SIGKILL)
    await client.wait()
    await gone.wait()
    asyncio.get_running_loop().remove_reader(watch)
    os.close(watch)
    assert sys.platform == "linux"
