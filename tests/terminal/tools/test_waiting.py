"""Waiting at the speed of a model: what was printed before the call counts."""

from __future__ import annotations

from pathlib import Path

from tests.support.terminal_tools import Client, client_in

SERVER = "sh -c 'echo listening on port 80; sleep 1000'"


async def printed(client: Client, pattern: str, **where: object) -> None:
    """Return once it has been printed, whoever looks for it later."""
    assert (await client.call("crux_wait_for_output", pattern=pattern, since=0, **where))["matched"]


async def test_a_line_that_came_before_the_call_is_found(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        running = await client.call("crux_execute_command", command=SERVER, timeout_ms=50)
        await printed(client, "^listening")
        found = await client.call("crux_wait_for_output", pattern=r"^listening on port (\d+)", timeout_ms=0)
        assert (found["matched"], found["groups"]) == (True, ["80"])
        again = await client.call("crux_wait_for_output", pattern="^listening", timeout_ms=0, since=running["mark"])
        assert again["matched"]
        later = await client.call("crux_wait_for_output", pattern="^listening", timeout_ms=0, since=found["mark"])
        assert not later["matched"], "the mark of an answer goes on behind it"


async def test_a_command_that_was_typed_or_opened_with_its_pane_is_no_different(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        opened = await client.call("crux_create_pane", command=SERVER)
        await printed(client, "^listening", pane_id=opened["id"])
        for where in ({}, {"since": opened["mark"]}):
            found = await client.call("crux_wait_for_output", pattern="^listening", timeout_ms=0, **where)
            assert found["matched"]
        await client.call("crux_create_pane")
        typed = await client.call("crux_send_text", text=SERVER, enter=True)
        await printed(client, "^listening")
        for where in ({}, {"since": typed["mark"]}):
            found = await client.call("crux_wait_for_output", pattern="^listening", timeout_ms=0, **where)
            assert found["matched"]


async def test_an_answer_to_an_earlier_input_is_not_taken_for_one_to_the_last(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_create_pane", command="python3 -q")
        assert (await client.call("crux_wait_for_output", pattern="^>>> $"))["matched"]
        first = await client.call("crux_send_text", text="print('an', 'swer')", enter=True)
        assert (await client.call("crux_wait_for_output", pattern="^an swer"))["matched"]
        await client.call("crux_send_text", text="1 + 1", enter=True)
        assert (await client.call("crux_wait_for_output", pattern="^2$"))["matched"]
        stale = await client.call("crux_wait_for_output", pattern="^an swer", timeout_ms=0)
        assert not stale["matched"]
        named = await client.call("crux_wait_for_output", pattern="^an swer", timeout_ms=0, since=first["mark"])
        assert named["matched"]


async def test_the_output_of_a_command_that_has_ended_is_found_unless_it_was_returned(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        typed = await client.call("crux_send_text", text="echo built in 3 s", enter=True)
        assert (await client.call("crux_wait_for_output", pattern="^built"))["matched"]
        assert (await client.call("crux_wait_for_output", pattern="^built", timeout_ms=0))["matched"]
        await client.call("crux_execute_command", command="echo returned")
        for pattern in ("^built", "^returned"):
            assert not (await client.call("crux_wait_for_output", pattern=pattern, timeout_ms=0))["matched"]
        again = await client.call("crux_wait_for_output", pattern="^built", timeout_ms=0, since=typed["mark"])
        assert again["matched"]


async def test_a_new_pane_is_returned_once_its_command_is_ready(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        opened = await client.call("crux_create_pane", command=SERVER, wait_for=r"port (\d+)")
        assert (opened["waited"]["matched"], opened["waited"]["groups"]) == (True, ["80"])
        late = await client.call("crux_create_pane", command=SERVER, wait_for="never said", timeout_ms=50)
        assert (late["waited"]["matched"], late["waited"]["reason"]) == (False, "timeout")
        wrong = await client.call("crux_create_pane", command=SERVER, wait_for="(")
        assert wrong["error"]["name"] == "invalid_input"
        assert len((await client.call("crux_list_panes"))["panes"]) == 2, "nothing was opened for it"
