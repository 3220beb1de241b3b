"""Output as it comes: events while the call runs, the end of a command, and readers that are slow."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dari.terminal.api.streams import StreamEvent
from dari.terminal.service import daemon_methods
from tests.support.terminal_service import house_in
from tests.support.terminal_tools import Client, client_in


async def streamed(client: Client, **arguments: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The result of the call, and the events that were told while it ran."""
    client.notes.clear()
    reply = await client.ask(
        "tools/call", name="crux_stream_output", arguments=arguments, _meta={"progressToken": "stream"}
    )
    told = [note["params"] for note in client.notes if note["method"] == "notifications/progress"]
    assert [note["progress"] for note in told] == list(range(1, len(told) + 1))
    return reply["result"]["structuredContent"], [json.loads(note["message"]) for note in told]


async def test_events_are_those_of_the_design(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        failing = "echo 'error[E0308]: mismatched types'; (exit 1)"
        done, events = await streamed(client, command=failing)
        assert events == [
            {"event": "output", "data": {"pane_id": "1", "text": "error[E0308]: mismatched types\n"}},
            {"event": "exit", "data": {"pane_id": "1", "exit_code": 1}},
        ]
        assert (done["reason"], done["exit_code"], done["text"]) == ("exit", 1, "error[E0308]: mismatched types\n")
        assert done["resource"] == "crux://pane/1/scrollback"


async def test_output_is_told_before_the_command_ends(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        script = "echo first; until test -e go; do sleep 0.02; done; echo second"
        call = asyncio.create_task(streamed(client, command=script))
        note = await client.noted("notifications/progress")
        assert json.loads(note["params"]["message"])["data"]["text"] == "first\n"
        assert not call.done()
        (tmp_path / "go").touch()
        client.notes.insert(0, note)
        done, events = await call
        assert [event["event"] for event in events] == ["output", "output", "exit"]
        assert done["text"] == "first\nsecond\n"


async def test_a_stream_stops_at_the_first_error_while_the_build_goes_on(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        script = "echo compiling; echo 'src/a.c:3: error: no'; until test -e go; do sleep 0.02; done; echo late"
        done, events = await streamed(client, command=script, until=r"error: \w+")
        assert (done["reason"], done["matched"], done["exit_code"]) == ("matched", "src/a.c:3: error: no", None)
        assert [event["event"] for event in events] == ["output"]
        (tmp_path / "go").touch()
        later, _ = await streamed(client)
        assert (later["reason"], later["exit_code"], later["text"]) == ("exit", 0, "late\n")


async def test_a_match_in_a_line_that_came_in_two_pieces_is_found(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        script = "printf 'rea'; touch half; until test -e go; do sleep 0.02; done; printf 'dy\\n'; sleep 60"
        call = asyncio.create_task(streamed(client, command=script, until="^ready$"))
        await client.noted("notifications/progress")
        (tmp_path / "go").touch()
        reply = await call_result(call, client)
        assert (reply["reason"], reply["matched"]) == ("matched", "ready")


async def call_result(call: asyncio.Task[Any], client: Client) -> dict[str, Any]:
    """The result of a call one of whose notifications was read before."""
    client.notes.insert(0, {"method": "notifications/progress", "params": {"progress": 1, "message": "null"}})
    result: dict[str, Any] = (await call)[0]
    return result


async def test_a_question_without_a_line_end_is_told(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        done, _ = await streamed(client, command="read -p 'Proceed? ' answer", until="Proceed", timeout_ms=30_000)
        assert (done["reason"], done["matched"]) == ("matched", "Proceed? ")


async def test_without_a_token_the_result_holds_it_all(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        done = await client.call("crux_stream_output", command="seq 1 3")
        assert (done["text"], done["events"], done["reason"]) == ("1\n2\n3\n", 2, "exit")
        assert not client.notes or all(note["method"] != "notifications/progress" for note in client.notes)


async def test_a_quiet_stream_ends_with_its_time(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        done = await client.call("crux_stream_output", command="sleep 60", timeout_ms=200)
        assert (done["reason"], done["text"], done["exit_code"]) == ("timeout", "", None)


async def test_much_output_keeps_its_end_and_says_so(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        done = await client.call("crux_stream_output", command="seq 1 200000", max_tokens=200)
        assert (done["reason"], done["truncated"]) == ("exit", True)
        assert done["text"].endswith("199999\n200000\n")
        assert len(done["text"]) <= 900


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "sh"])
async def test_a_stream_holds_neither_echo_nor_prompt(shell: str, tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_create_pane", shell=shell)
        done = await client.call("crux_stream_output", command="echo a; echo b")
        assert (done["text"], done["exit_code"], done["reason"]) == ("a\nb\n", 0, "exit")


async def test_a_program_that_is_no_shell_is_followed_to_its_exit(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(
            argv=["sh", "-c", "until test -e go; do sleep 0.02; done; echo up; exit 4"]
        )
        api = house.service.streams
        start = await api.begin()
        (tmp_path / "go").touch()
        events: list[StreamEvent] = []
        mark = start.mark
        while not events or events[-1].event != "exit":
            news = await api.follow(start.pane_id, mark)
            events += news.events
            mark = news.mark
        assert "".join(event.text for event in events) == "up\n"
        assert events[-1].exit_code == 4


async def test_a_reader_that_fell_behind_is_told_how_much_it_missed(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        begun = await house.service.streams.begin(command="yes 0123456 | head -c 12000000")
        await house.service.commands.wait_command(begun.command_id, 30)
        mark = size = lost = 0
        ended = False
        while not ended:
            news = await house.service.streams.follow(begun.pane_id, mark, begun.command_id)
            size += sum(len(event.text) for event in news.events)
            lost += news.lost_bytes
            mark = news.mark
            ended = any(event.event == "exit" for event in news.events)
        assert lost > 5_000_000
        printed = 12_000_000 * 9 // 8  # the terminal makes CR LF of each line end
        assert mark == printed


async def test_a_dangerous_command_is_not_streamed_unasked(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        error = (await client.call("crux_stream_output", command="rm -f x"))["error"]
        assert error["name"] == "needs_approval"


async def test_every_special_desk_is_served_by_the_daemon_too(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        names = {method.name for method in daemon_methods(house.service)}
        assert {
            "crux:output/parse",
            "crux:output/intent",
            "crux:pane/visual-diff",
            "crux:ime/type",
            "crux:clipboard/read",
            "crux:clipboard/paste",
            "crux:workspace/load",
            "crux:stream/follow",
            "crux:pane/coordinate",
            "crux:context/inject",
            "crux:snapshot/create",
            "crux:snapshot/restore",
        } <= names
