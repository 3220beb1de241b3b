"""stdio: framing, order, ends and signals, as a real process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from tests.support.transports import start_process
from tests.support.wire import Json, StreamWire, call, initialize, stateless

ODD = ("-m", "tests.transport.odd")
PING: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
PIPE = asyncio.subprocess.PIPE


class Stdio:
    """The odd server over pipes; ended when the block ends."""

    def __init__(self, directory: Path, *options: str, lsp: bool = False) -> None:
        self._directory = directory
        self._options = options
        self._lsp = lsp

    async def __aenter__(self) -> StreamWire:
        self.process = await start_process(self._directory, *ODD, *self._options, stderr=PIPE)
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.wire = StreamWire(self.process.stdout, self.process.stdin, lsp=self._lsp)
        return self.wire

    async def exit_code(self) -> int:
        return await self.process.wait()

    async def begun(self) -> None:
        """A call of `demo_say` runs."""
        assert self.process.stderr
        await self.process.stderr.readuntil(b"the call has begun\n")

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        self.process._transport.close()  # type: ignore[attr-defined]


async def output_of(directory: Path, sent: bytes, *options: str) -> tuple[list[Json], int, str]:
    """What the server writes when all of it is piped in at once."""
    process = await start_process(directory, *ODD, *options, stderr=PIPE)
    out, err = await process.communicate(sent)
    return [json.loads(line) for line in out.splitlines()], process.returncode or 0, err.decode()


def lines(*messages: Json) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


async def test_everything_piped_in_is_answered_before_the_end(tmp_path: Path) -> None:
    sent = lines(initialize(), *(call("demo_echo", n, text="x" * n) for n in range(300)), PING | {"id": "last"})
    replies, code, log = await output_of(tmp_path, sent)
    assert code == 0
    assert {reply["id"] for reply in replies} == {"init", "last", *range(300)}
    assert "transport=stdio event=start" in log
    assert "transport=stdio event=eof" in log


async def test_an_empty_input_is_the_end(tmp_path: Path) -> None:
    assert (await output_of(tmp_path, b""))[:2] == ([], 0)


async def test_a_last_line_needs_no_end(tmp_path: Path) -> None:
    replies, code, _ = await output_of(tmp_path, lines(PING) + json.dumps(PING | {"id": 2}).encode())
    assert code == 0
    assert [reply["id"] for reply in replies] == [1, 2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("busy", [False, True])
async def test_a_signal_ends_the_process_at_once_with_0(tmp_path: Path, number: int, busy: bool) -> None:
    stdio = Stdio(tmp_path)
    async with stdio as wire:
        await wire.ask(initialize())
        if busy:
            wire.send(call("demo_say", 1))
            await stdio.begun()
        stdio.process.send_signal(number)
        assert await stdio.exit_code() == 0
        assert stdio.process.stderr
        assert b"transport=stdio event=stop" in await stdio.process.stderr.read()


async def test_malformed_lines_are_answered_and_the_stream_goes_on(tmp_path: Path) -> None:
    broken = [b"{", b"nonsense", b'{"jsonrpc":"2.0","id":1,"method":"ping"', b"\xff\xfe\x00", b'"text"', b"[", b"\x00"]
    async with Stdio(tmp_path) as wire:
        for line in broken:
            wire.writer.write(line + b"\n")
            reply = await wire.receive()
            assert reply["id"] is None, line
            assert reply["error"]["code"] in (-32700, -32600), line
            assert (await wire.ask(PING))["result"] == {}
        wire.writer.write(b"\n\r\n  \n")
        assert (await wire.ask(PING | {"id": 9}))["id"] == 9


@pytest.mark.parametrize("step", [1, 3, 17, 4096])
async def test_content_length_framing_is_read_however_it_is_cut(tmp_path: Path, step: int) -> None:
    async with Stdio(tmp_path, lsp=True) as wire:
        sent = b""
        for number, message in enumerate([initialize(), PING, call("demo_echo", 2, text="안녕")]):
            body = json.dumps(message, ensure_ascii=False).encode()
            extra = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n" if number else b""
            sent += b"Content-Length: %d\r\n%b\r\n%b" % (len(body), extra, body)
        for start in range(0, len(sent), step):
            wire.writer.write(sent[start : start + step])
            await asyncio.sleep(0)
        assert [(await wire.receive())["id"] for _ in range(3)] == ["init", 1, 2]


async def test_a_stray_print_cannot_corrupt_the_stream(tmp_path: Path) -> None:
    replies, code, log = await output_of(tmp_path, lines(initialize(), call("demo_stray", 1), call("demo_stdin", 2)))
    assert code == 0
    assert [reply["id"] for reply in replies if reply["id"] == 1] == [1]
    for how in ("print", "write", "descriptor", "child"):
        assert f"stray {how}\n" in log
    assert next(r for r in replies if r["id"] == 2)["result"]["content"][0]["text"] == "b''"


async def test_a_slow_tool_does_not_block_ping(tmp_path: Path) -> None:
    stdio = Stdio(tmp_path)
    async with stdio as wire:
        await wire.ask(initialize())
        wire.send(call("demo_say", "slow"))
        await stdio.begun()
        assert (await wire.ask(PING))["id"] == 1
        stdio.process.send_signal(signal.SIGUSR2)
        assert (await wire.receive())["id"] == "slow"


async def test_an_id_in_flight_is_refused_and_free_again_afterwards(tmp_path: Path) -> None:
    stdio = Stdio(tmp_path)
    async with stdio as wire:
        await wire.ask(initialize())
        wire.send(call("demo_say", 1))
        await stdio.begun()
        refused = await wire.ask(call("demo_echo", 1, text="x"))
        assert (refused["id"], refused["error"]["code"]) == (1, -32600)
        assert (await wire.ask(stateless(call("demo_echo", 1, text="x"))))["error"]["code"] == -32600
        stdio.process.send_signal(signal.SIGUSR2)
        assert (await wire.receive())["result"]["content"][0]["text"] == "said"
        assert "result" in await wire.ask(call("demo_echo", 1, text="x"))


async def test_discover_and_initialize_work_on_one_pipe(tmp_path: Path) -> None:
    async with Stdio(tmp_path) as wire:
        discovered = await wire.ask(stateless({"jsonrpc": "2.0", "id": 0, "method": "server/discover"}))
        assert "2026-07-28" in discovered["result"]["supportedVersions"]
        assert (await wire.ask(initialize()))["result"]["protocolVersion"] == "2025-11-25"
        assert "result" in await wire.ask(call("demo_echo", 2, text="x"))
        assert (await wire.ask(stateless(call("demo_echo", 3, text="x"))))["result"]["resultType"] == "complete"


async def test_regular_files_work_as_input_and_output(tmp_path: Path) -> None:
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_bytes(lines(initialize(), *(call("demo_echo", n, text="x" * 1000) for n in range(1000))))
    with source.open("rb") as stdin, sink.open("wb") as stdout:
        process = await start_process(tmp_path, *ODD, stdin=stdin, stdout=stdout)
        assert await process.wait() == 0
    ids = [json.loads(line)["id"] for line in sink.read_bytes().splitlines()]
    assert sorted(map(str, ids)) == sorted(map(str, ["init", *range(1000)]))


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "</dev/null", ">/dev/full", "2>&-"])
async def test_closed_and_odd_descriptors_end_the_process_in_order(tmp_path: Path, closed: str) -> None:
    command = f"printf '{json.dumps(PING)}\\n' | exec \"$0\" -m tests.transport.odd {closed}"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd()}
    import sys

    process = await asyncio.create_subprocess_exec(
        "sh", "-c", command, sys.executable, env=environment, stdout=PIPE, stderr=PIPE
    )
    _, log = await process.communicate()
    assert process.returncode == 0, log.decode()


async def test_a_client_that_closes_its_reading_end_ends_the_process(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    process = await start_process(tmp_path, *ODD, stdout=writing)
    os.close(writing)
    os.close(reading)
    assert process.stdin
    process.stdin.write(lines(initialize(), call("demo_hang", 1)))
    assert await process.wait() == 0
