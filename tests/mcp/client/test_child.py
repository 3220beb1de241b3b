"""Servers that are child processes: started, talked to, ended, and what happens when they misbehave."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from dari.errors import Failed, InvalidInput, TimedOut, Unavailable
from dari.mcp.client import Client
from dari.process.stderr_tail import MAX_TAIL_BYTES
from dari.transport.client import child as child_module
from dari.transport.client.child import ChildChannel
from dari.transport.connect import connect
from tests.support.child_servers import server_source
from tests.support.leftovers import open_descriptors
from tests.support.mcp_client import DEMO, DEMO_ENV, ERAS
from tests.support.waiting import until


def child(body: str = "text(message, name)", *, before: str = "", after: str = "") -> list[str]:
    return [sys.executable, "-c", server_source(body, before, after)]


def client_of(command: list[str], **options: Any) -> Client:
    return connect(command, mode="handshake", **options)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def pid_of(client: Client) -> int:
    channel = client._channel
    assert isinstance(channel, ChildChannel) and channel.pid is not None
    return channel.pid


@pytest.mark.parametrize("mode", ERAS)
async def test_our_own_server_answers_over_its_pipes(mode: Any) -> None:
    async with connect(DEMO, env=DEMO_ENV, mode=mode) as client:
        results = await asyncio.gather(*(client.call_tool("demo_echo", {"text": str(n)}) for n in range(200)))
        pid = pid_of(client)
    assert [result.structured_content["text"] for result in results] == [str(n) for n in range(200)]
    assert not is_running(pid)


async def test_lines_that_are_no_messages_are_passed_over() -> None:
    before = 'print("Welcome to the server!"); print(""); print("{not json}"); print("[1]"); print("123", flush=True)'
    async with client_of(child("print('debug'); text(message, name)", before=before)) as client:
        assert (await client.call_tool("hello")).text == "hello"


async def test_a_huge_line_arrives_whole() -> None:
    async with client_of(child('text(message, "x" * 10_000_000)')) as client:
        assert len((await client.call_tool("big")).text) == 10_000_000


async def test_huge_arguments_are_sent_while_the_server_answers() -> None:
    async with client_of(child("text(message, str(len(line)))")) as client:
        sizes = await asyncio.gather(*(client.call_tool("n", {"text": "y" * 1_000_000}) for _ in range(10)))
    assert all(int(size.text) > 1_000_000 for size in sizes)


async def test_an_answer_above_the_limit_fails_its_call_alone() -> None:
    body = """
    if name == "big":
        text(message, "x" * 3_000_000)
    else:
        text(message, name)
    """
    channel = ChildChannel(child(body), most_bytes=1_000_000)
    async with Client(channel, mode="handshake") as client:
        with pytest.raises(Failed, match="1000000"):
            await client.call_tool("big")
        assert (await client.call_tool("small")).text == "small"


async def test_a_server_that_dies_in_the_middle_of_a_call_leaves_its_last_words() -> None:
    body = 'sys.stderr.write("\\x1b[31mdisk full\\x1b[0m\\n"); sys.stderr.flush(); os._exit(3)'
    async with client_of(child(body)) as client:
        with pytest.raises(Unavailable, match="exit status 3") as caught:
            await client.call_tool("x")
        assert caught.value.hint == "it wrote on stderr:\ndisk full"
        with pytest.raises(Unavailable, match="exit status 3"):
            await client.call_tool("x")
        assert (await client.ended()).message.endswith("ended (exit status 3)")
        assert not client.is_open


async def test_a_server_that_is_killed_in_the_middle_of_a_call_is_noticed() -> None:
    async with client_of(child("time.sleep(60)")) as client:
        calls = [asyncio.create_task(client.call_tool("x")) for _ in range(3)]
        await asyncio.sleep(0.05)
        os.kill(pid_of(client), signal.SIGKILL)
        for call in calls:
            with pytest.raises(Unavailable, match="SIGKILL"):
                await call


async def test_a_grandchild_that_keeps_the_pipes_does_not_hide_the_end_of_its_parent() -> None:
    before = 'import subprocess; subprocess.Popen(["sleep", "60"])'
    async with client_of(child("os._exit(1)", before=before)) as client:
        with pytest.raises(Unavailable, match="exit status 1"):
            await client.call_tool("x")


async def test_a_command_that_does_not_exist_is_named() -> None:
    with pytest.raises(Unavailable, match="'no-such-command-here'"):
        await connect(["no-such-command-here", "x"]).open()
    with pytest.raises(Unavailable, match="/no/such/dir"):
        await connect([sys.executable], cwd=Path("/no/such/dir")).open()
    with pytest.raises(InvalidInput):
        await connect([]).open()


async def test_a_server_that_crashes_at_the_start_tells_why() -> None:
    script = "import sys; print('no API key', file=sys.stderr); sys.exit(7)"
    with pytest.raises(Unavailable, match="exit status 7") as caught:
        await connect([sys.executable, "-c", script]).open()
    assert "no API key" in caught.value.hint


async def test_a_server_that_hangs_at_the_start_runs_into_the_limit_and_is_ended(monkeypatch: Any) -> None:
    monkeypatch.setattr(child_module, "AFTER_EOF_S", 0.1)
    monkeypatch.setattr(child_module, "AFTER_TERM_S", 0.1)
    script = "import sys, time; print('loading', file=sys.stderr, flush=True); time.sleep(60)"
    client = connect([sys.executable, "-c", script], open_timeout_s=0.5, probe_s=0.1)
    with pytest.raises(TimedOut, match=r"0\.5 s") as caught:
        await client.open()
    assert caught.value.hint.endswith("it wrote on stderr:\nloading")


async def test_the_environment_is_bare() -> None:
    os.environ["DARI_TEST_SECRET"] = "s3cret"
    try:
        async with client_of(child("text(message, json.dumps(dict(os.environ)))"), env={"GIVEN": "yes"}) as client:
            text = (await client.call_tool("x")).text
    finally:
        del os.environ["DARI_TEST_SECRET"]
    assert '"GIVEN": "yes"' in text and '"PATH"' in text and "s3cret" not in text


async def test_the_working_directory_is_the_one_that_is_given(tmp_path: Path) -> None:
    async with client_of(child("text(message, os.getcwd())"), cwd=tmp_path) as client:
        assert (await client.call_tool("x")).text == str(tmp_path)


async def test_the_child_leads_a_session_of_its_own() -> None:
    async with client_of(child('text(message, f"{os.getsid(0)} {os.getpgid(0)}")')) as client:
        pid = pid_of(client)
        assert (await client.call_tool("x")).text == f"{pid} {pid}"


async def test_a_child_that_ignores_the_end_of_input_and_sigterm_is_killed(monkeypatch: Any) -> None:
    monkeypatch.setattr(child_module, "AFTER_EOF_S", 0.1)
    monkeypatch.setattr(child_module, "AFTER_TERM_S", 0.1)
    before = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    client = client_of(child(before=before, after="time.sleep(60)"))
    async with client:
        pid = pid_of(client)
    assert not is_running(pid)


async def test_what_a_child_has_started_ends_with_it() -> None:
    before = 'import subprocess; grandchild = subprocess.Popen(["sleep", "60"]).pid'
    async with client_of(child("text(message, str(grandchild))", before=before)) as client:
        grandchild = int((await client.call_tool("x")).text)
        assert is_running(grandchild)
    await until(lambda: not is_running(grandchild))


async def test_a_child_that_stops_reading_blocks_only_its_own_callers() -> None:
    async with client_of(child("time.sleep(60)")) as stuck, client_of(child()) as other:
        calls = [asyncio.create_task(stuck.call_tool("x", {"t": "y" * 100_000}, timeout_s=0.4)) for _ in range(30)]
        await asyncio.sleep(0.05)
        assert (await other.call_tool("quick")).text == "quick"
        late = asyncio.create_task(stuck.call_tool("x", timeout_s=0.2))
        for call in [*calls, late]:
            with pytest.raises(TimedOut):
                await call
        os.kill(pid_of(stuck), signal.SIGKILL)


async def test_stderr_is_read_however_much_there_is() -> None:
    body = 'sys.stderr.write(("noise" + chr(10)) * 200_000 + "the end"); sys.stderr.flush(); text(message, name)'
    async with client_of(child(body)) as client:
        assert (await client.call_tool("x")).text == "x"
        channel = client._channel
        assert isinstance(channel, ChildChannel)
        await until(lambda: channel.last_words().endswith("the end"))
        assert len(channel.last_words()) <= MAX_TAIL_BYTES


async def test_cancelling_reaches_the_child() -> None:
    body = """
    asked = message["id"]
    note = json.loads(sys.stdin.readline())
    ping = json.loads(sys.stdin.readline())
    text(ping, f"{note['method']} {note['params']['requestId'] == asked}")
    """
    async with client_of(child(body)) as client:
        task = asyncio.create_task(client.call_tool("x"))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (await client.call_tool("y")).text == "notifications/cancelled True"


async def test_where_the_kernel_has_no_pidfd_the_end_is_noticed_too(monkeypatch: Any) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    async with client_of(child("os._exit(4)")) as client:
        with pytest.raises(Unavailable, match="exit status 4"):
            await client.call_tool("x")
    async with client_of(child()) as client:
        pid = pid_of(client)
    assert not is_running(pid)


async def test_nothing_is_left_behind() -> None:
    async with client_of(child()) as client:
        await client.call_tool("x")
    files, tasks = open_descriptors(), asyncio.all_tasks()
    pids = []
    for _ in range(5):
        async with client_of(child()) as client:
            await client.call_tool("x")
            pids.append(pid_of(client))
        with pytest.raises(Unavailable):
            await connect([sys.executable, "-c", "raise SystemExit(1)"], probe_s=5).open()
        async with client_of(child("os._exit(1)")) as client:
            with pytest.raises(Unavailable):
                await client.call_tool("x")
    assert open_descriptors() <= files and asyncio.all_tasks() <= tasks
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
