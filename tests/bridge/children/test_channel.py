"""The wire to a child: long lines, noise, a child that does not read, last words."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvloop
from msgspec import Raw

from dari.bridge.children import channel as channel_module
from dari.bridge.children.channel import SupervisedChannel
from dari.errors import DariError, Failed, TimedOut, Unavailable
from dari.mcp.client import Client
from dari.mcp.client import lines as lines_module
from dari.process.child import ChildSpec
from dari.process.children import Children
from tests.support.child_servers import server
from tests.support.processes import left_of
from tests.support.waiting import until

pytestmark = pytest.mark.local_mcp


@asynccontextmanager
async def talking_to(spec: ChildSpec, **options: float) -> AsyncIterator[tuple[Client, SupervisedChannel]]:
    async with Children() as children:
        channel = SupervisedChannel(lambda: children.start(spec), **options)  # type: ignore[arg-type]
        async with Client(channel, mode="handshake", open_timeout_s=10) as client:
            yield client, channel


async def test_calls_are_answered() -> None:
    async with talking_to(server()) as (client, _):
        results = await asyncio.gather(*(client.call_tool(str(n)) for n in range(100)))
    assert [result.text for result in results] == [str(n) for n in range(100)]


async def test_a_line_of_twenty_megabytes_is_one_message() -> None:
    async with talking_to(server("text(message, 'x' * int(name))")) as (client, _):
        result = await client.call_tool(str(20_000_000))
    assert len(result.text) == 20_000_000


async def test_arguments_with_line_ends_are_one_message() -> None:
    async with talking_to(server("text(message, str(message['params']['arguments']))")) as (client, _):
        result = await client.call_tool("x", Raw(b'{\n"a":\r\n1\n}'))
    assert result.text == "{'a': 1}"


async def test_a_line_above_the_limit_fails_its_own_call_only() -> None:
    async with talking_to(server("text(message, 'x' * int(name))"), most_bytes=100_000) as (client, _):
        with pytest.raises(Failed, match="100000"):
            await client.call_tool("200000")
        assert (await client.call_tool("3")).text == "xxx"


async def test_a_child_whose_line_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it takes a processor of ours for as long as it writes."""
    monkeypatch.setattr(lines_module, "MAX_SKIPPED_BYTES", 300_000)
    endless = "while True: sys.stdout.write('x' * 65536)"
    async with talking_to(server(endless, name="endless"), most_bytes=100_000) as (client, channel):
        assert channel.child is not None
        mark = channel.child.tag
        with pytest.raises(Failed, match="without the end of a line"):
            await client.call_tool("x")
    assert left_of(mark.as_dict()) == []


async def test_noise_on_stdout_is_passed_over_and_reported() -> None:
    noisy = "print('Welcome \\x1b[31mto\\x1b[0m the server', flush=True)"
    async with talking_to(server("print('debug'); text(message, name)", before=noisy)) as (client, channel):
        assert (await client.call_tool("hello")).text == "hello"
        assert list(channel.noise) == ["Welcome to the server", "debug"]
        assert channel.noise_lines == 2


async def test_a_child_that_stops_reading_is_given_up_and_delays_no_other() -> None:
    deaf = server("time.sleep(600)", name="deaf")
    async with talking_to(deaf, write_s=0.2) as (client, channel), talking_to(server()) as (other, _):
        assert channel.child is not None
        mark = channel.child.tag
        calls = [client.call_tool("x", {"filling": "x" * 1_000_000}) for _ in range(3)]
        stuck = asyncio.gather(*calls, return_exceptions=True)
        assert (await other.call_tool("fine")).text == "fine"
        for error in await stuck:
            assert isinstance(error, DariError)
        assert isinstance(await client.ended(), TimedOut)
    assert left_of(mark.as_dict()) == []


async def test_what_waits_to_be_read_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "MAX_UNREAD_BYTES", 1_000_000)
    async with talking_to(server("time.sleep(600)"), write_s=600) as (client, channel):
        stuck = asyncio.gather(
            *(client.call_tool("x", {"filling": "x" * 300_000}) for _ in range(2)), return_exceptions=True
        )
        await asyncio.sleep(0)
        for _ in range(10):
            channel.tell(b"{}" + b" " * 300_000)
        assert isinstance(await client.ended(), TimedOut)
        await stuck


async def test_the_end_of_a_child_comes_with_its_status_and_its_last_words() -> None:
    async with talking_to(server("sys.stderr.write('out of \\x1b[1mluck\\n'); os._exit(9)")) as (client, _):
        with pytest.raises(Unavailable, match=r"demo: .*exit status 9") as caught:
            await client.call_tool("x")
    assert caught.value.hint == "it wrote on stderr:\nout of luck"


async def test_a_signal_is_told_by_its_name() -> None:
    async with talking_to(server("os.kill(os.getpid(), 11)")) as (client, _):
        with pytest.raises(Unavailable, match="SIGSEGV"):
            await client.call_tool("x")


async def test_a_server_that_crashes_at_its_start_tells_why() -> None:
    with pytest.raises(Unavailable) as caught:
        async with talking_to(server(before="raise SystemExit('no database')")):
            pass
    assert "exit status 1" in caught.value.message and "no database" in caught.value.hint


async def test_a_server_that_hangs_at_its_start_is_given_up_with_what_it_wrote() -> None:
    spec = ChildSpec("hang", (sys.executable, "-c", "import sys, time; print('x', file=sys.stderr); time.sleep(600)"))
    async with Children() as children:
        channel = SupervisedChannel(lambda: children.start(spec))
        with pytest.raises(TimedOut) as caught:
            async with Client(channel, mode="handshake", open_timeout_s=0.5):
                pass
        assert "it wrote on stderr:\nx" in caught.value.hint
        assert not children.running


def test_the_same_holds_under_uvloop() -> None:
    async def main() -> None:
        await test_calls_are_answered()
        await test_a_line_of_twenty_megabytes_is_one_message()
        await test_a_child_that_stops_reading_is_given_up_and_delays_no_other()
        await test_the_end_of_a_child_comes_with_its_status_and_its_last_words()
        await test_a_server_that_hangs_at_its_start_is_given_up_with_what_it_wrote()

    uvloop.run(main())


async def test_a_close_while_the_child_does_not_read_leaves_its_descriptors_alone() -> None:
    async with talking_to(server("time.sleep(600)"), write_s=600) as (client, channel):
        stuck = asyncio.gather(
            *(client.call_tool("x", {"filling": "x" * 1_000_000}) for _ in range(2)), return_exceptions=True
        )
        await until(lambda: channel.is_full)
    assert all(isinstance(error, DariError) for error in await stuck)


async def test_a_grandchild_that_holds_the_pipes_does_not_hide_the_end() -> None:
    body = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True); os._exit(4)"
    async with talking_to(server(body)) as (client, channel):
        assert channel.child is not None
        mark = channel.child.tag
        with pytest.raises(Unavailable, match="exit status 4"):
            await client.call_tool("x")
    assert left_of(mark.as_dict()) == []
