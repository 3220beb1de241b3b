"""A command behind the socket: what it prints, reads and asks, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from dari.cli.hub import protocol, socket_console
from dari.cli.hub.server import CliSocketServer
from dari.errors import NotFound
from tests.support.hub_socket import Commands, calling, connected, empty, hello, open_socket
from tests.support.waiting import until


async def test_output_comes_in_order_and_the_exit_code_last(run_dir: Path) -> None:
    async with open_socket(run_dir), calling(run_dir, "say", "één\n", "warning\n", "3") as caller:
        assert await caller.frames() == [
            (protocol.OUT, "één\n".encode()),
            (protocol.ERR, b"warning\n"),
            (protocol.OUT, "één\n".encode()),
            (protocol.EXIT, b"\3"),
        ]


async def test_a_command_stands_where_its_caller_does(run_dir: Path) -> None:
    commands = Commands()
    environment = {"HOME": "/home/ada", "KEY": "value", "ODD": "\udcff"}
    async with (
        open_socket(run_dir, commands),
        calling(run_dir, "say", "", "", "0", cwd="/srv/project", env=environment, program="dari remote") as caller,
    ):
        await caller.frames()
    around = commands.around
    assert around is not None
    assert (str(around.home), str(around.cwd), dict(around.environ)) == ("/home/ada", "/srv/project", environment)
    assert commands.program == "dari remote"
    person = commands.terminal
    assert person is not None
    assert (person.columns, person.stdin_is_tty, person.stdout_is_tty, person.stderr_is_tty) == (99, True, False, True)


@pytest.mark.parametrize(
    ("environment", "colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)],
)
async def test_colour_is_what_the_callers_environment_says(
    environment: dict[str, str], colour: bool, run_dir: Path
) -> None:
    commands = Commands()
    async with open_socket(run_dir, commands), calling(run_dir, "say", "", "", "0", env=environment) as caller:
        await caller.frames()
    assert commands.terminal is not None
    assert commands.terminal.colour is colour


async def test_bytes_that_are_no_text_come_out_as_they_went_in(run_dir: Path) -> None:
    odd = os.fsdecode(b"\xff\xfe.txt")
    async with open_socket(run_dir), calling(run_dir, "say", odd, "", "0") as caller:
        assert (protocol.OUT, b"\xff\xfe.txt") in await caller.frames()


async def test_stdin_is_sent_when_it_is_wanted_and_only_once(run_dir: Path) -> None:
    async with open_socket(run_dir), calling(run_dir, "stdin") as caller:
        assert await caller.frame() == (protocol.WANT, b"")
        caller.send(protocol.IN, b"x" * 500_000)
        caller.send(protocol.IN, b"y" * 7)
        caller.send(protocol.IN_END)
        assert await caller.frames() == [(protocol.OUT, b"500007 0"), (protocol.EXIT, b"\0")]


async def test_more_stdin_than_fits_ends_the_command_and_is_not_kept(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_console, "MAX_STDIN_BYTES", 1024 * 1024)
    async with open_socket(run_dir), calling(run_dir, "stdin") as caller:
        assert await caller.frame() == (protocol.WANT, b"")
        caller.send(protocol.IN, b"x" * 600_000)
        caller.send(protocol.IN, b"x" * 600_000)
        frames = await caller.frames()
        assert frames[-1] == (protocol.EXIT, b"\1")
        assert b"stdin has more than 1 MB" in frames[0][1]


async def test_a_question_reaches_the_person_and_the_answer_the_command(run_dir: Path) -> None:
    async with open_socket(run_dir), calling(run_dir, "ask", "Sure? ") as caller:
        assert await caller.frame() == (protocol.ASK, b"\0Sure? ")
        caller.send(protocol.ANSWER, "ja ✓".encode())
        assert await caller.frame() == (protocol.ASK, b"\1Sure? ")
        caller.send(protocol.ANSWER, b"")
        assert await caller.frames() == [(protocol.OUT, "<ja ✓> <>".encode()), (protocol.EXIT, b"\0")]


async def test_without_a_person_a_question_is_a_usage_error(run_dir: Path) -> None:
    async with open_socket(run_dir), calling(run_dir, "ask", "Sure? ", tty={"stdin": False}) as caller:
        frames = await caller.frames()
        assert frames[-1] == (protocol.EXIT, b"\1")
        assert b"stdin is not a terminal" in frames[0][1]


async def test_ctrl_c_cancels_the_command_and_is_exit_code_4(run_dir: Path) -> None:
    commands = Commands()
    async with open_socket(run_dir, commands), calling(run_dir, "wait") as caller:
        caller.send(protocol.CANCEL)
        assert await caller.frames() == [(protocol.EXIT, b"\4")]
    assert commands.cancelled.is_set()


async def test_a_client_that_vanishes_cancels_its_command_and_no_other(run_dir: Path) -> None:
    gone, stays = Commands(), Commands()
    both = {"gone": gone, "stays": stays}

    async def run(program: str, argv: list[str], *more: object) -> int:
        return await both[argv[1]].run(program, argv[:1], *more)  # type: ignore[arg-type]

    async with (
        open_socket(run_dir, run_command=run) as socket,
        calling(run_dir, "wait", "stays") as other,
        calling(run_dir, "wait", "gone") as caller,
    ):
        await gone.entered.wait()
        caller.vanish()
        await gone.cancelled.wait()
        assert not stays.cancelled.is_set()
        stays.release.set()
        assert await other.frames() == [(protocol.EXIT, b"\0")]
        await empty(socket)


async def test_an_error_is_told_with_its_hint_and_its_code(run_dir: Path) -> None:
    async def run(*_: object) -> int:
        raise NotFound("there is no server 'x'", "see: servers")

    async with open_socket(run_dir, run_command=run), calling(run_dir) as caller:
        assert await caller.frames() == [
            (protocol.ERR, b"error: there is no server 'x'\nhint: see: servers\n"),
            (protocol.EXIT, b"\1"),
        ]


async def test_a_bug_in_a_command_is_code_4_and_not_the_end_of_the_door(run_dir: Path) -> None:
    async with open_socket(run_dir):
        async with calling(run_dir, "crash") as caller:
            frames = await caller.frames()
            assert frames[-1] == (protocol.EXIT, b"\4")
            assert b"RuntimeError: a bug" in frames[0][1]
        async with calling(run_dir, "say", "on", "", "0") as caller:
            assert (protocol.OUT, b"on") in await caller.frames()


async def test_twenty_megabytes_in_one_piece_arrive_whole(run_dir: Path) -> None:
    text = "".join(f"{n:07}\n" for n in range(2_500_000))

    async def run(program: str, argv: list[str], person: socket_console.SocketConsole, around: object) -> int:
        person.out(text)
        return 0

    async with open_socket(run_dir, run_command=run), calling(run_dir) as caller:
        [(kind, data), last] = await caller.frames()
        assert (kind, last) == (protocol.OUT, (protocol.EXIT, b"\0"))
        assert data == text.encode()


async def test_a_client_that_does_not_read_makes_its_command_wait(run_dir: Path) -> None:
    commands = Commands()
    async with open_socket(run_dir, commands), calling(run_dir, "flood", "100000") as caller:
        await commands.entered.wait()
        printed = -1
        while printed != commands.printed:
            printed = commands.printed
            for _ in range(20):
                await asyncio.sleep(0)
        # What the kernel and the stream of this test hold, and one high-water mark.
        assert printed < 4_000_000
        await caller.reader.readexactly(2_000_000)
        await until(lambda: commands.printed != printed)
        caller.vanish()
        await commands.cancelled.wait()


async def test_a_command_that_waits_for_nobody_is_ended_when_nobody_reads(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_console, "MAX_UNREAD_BYTES", 5_000_000)
    commands = Commands()
    async with open_socket(run_dir, commands), calling(run_dir, "rush", "100000"):
        await commands.cancelled.wait()
        assert commands.printed < 10_000_000


@pytest.mark.parametrize(
    "frame",
    [
        protocol.IN + b"\xff\xff\xff\xff",
        protocol.encode_frame(b"?", b"what"),
        protocol.encode_frame(protocol.OUT, b"no"),
    ],
)
async def test_a_frame_that_no_client_sends_ends_the_connection(frame: bytes, run_dir: Path) -> None:
    commands = Commands()
    async with open_socket(run_dir, commands), calling(run_dir, "wait") as caller:
        caller.writer.write(frame)
        assert await caller.frames() == []
        await commands.cancelled.wait()


async def test_frames_may_come_byte_by_byte(run_dir: Path) -> None:
    async with open_socket(run_dir), connected(run_dir) as caller:
        whole = json.dumps(hello(run_dir, "stdin")).encode() + b"\n"
        whole += protocol.encode_frame(protocol.IN, b"abc") + protocol.encode_frame(protocol.IN_END)
        for at in range(len(whole)):
            caller.writer.write(whole[at : at + 1])
            await asyncio.sleep(0)
        kinds = [kind for kind, _ in await caller.frames()]
        assert kinds == [protocol.BEGIN, protocol.WANT, protocol.OUT, protocol.EXIT]


async def test_a_door_that_closes_lets_commands_end(run_dir: Path) -> None:
    commands = Commands()
    socket = CliSocketServer(run_dir, commands.run, None)  # type: ignore[arg-type]
    socket.start()
    async with calling(run_dir, "wait") as caller:
        stopping = asyncio.create_task(socket.stop())
        await asyncio.sleep(0)
        with pytest.raises((FileNotFoundError, ConnectionRefusedError)):
            await asyncio.open_unix_connection(str(socket.socket_path))
        commands.release.set()
        assert await caller.frames() == [(protocol.EXIT, b"\0")]
        await stopping


async def test_a_door_that_closes_ends_commands_that_do_not(run_dir: Path) -> None:
    commands = Commands()
    socket = CliSocketServer(run_dir, commands.run, None)  # type: ignore[arg-type]
    socket.start()
    async with calling(run_dir, "wait") as caller:
        await commands.entered.wait()
        await socket.stop(grace_s=0.01)
        [(kind, text), last] = await caller.frames()
        assert (kind, last) == (protocol.ERR, (protocol.EXIT, b"\2"))
        assert b"asked to end" in text
