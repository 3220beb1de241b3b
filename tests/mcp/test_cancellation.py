"""A call ends once: by its result, by its sender, by its time limit, or with its link."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dari.core.registry import Registry
from dari.core.tool import tool, tools_of
from dari.mcp.server import Info, Server
from tests.support.mcp_server import VERSIONS, Rig, failure_of, notification, ready, request, text_of
from tests.support.wire import call, stateless


async def hanging(*, envelope: bool = False, version: str = "2025-11-25") -> Rig:
    """A rig with one call in flight, id `h`."""
    rig = await ready(version)
    message = call("demo_hang", "h")
    rig.send(stateless(message) if envelope else message)
    await rig.tools.started.wait()
    return rig


@pytest.mark.parametrize("envelope", [False, True])
@pytest.mark.parametrize("reason", [{}, *({"reason": text} for text in ("changed my mind", None, "", "time limit"))])
async def test_a_cancelled_call_sees_it_and_a_pipe_gets_no_reply(envelope: bool, reason: dict[str, Any]) -> None:
    rig = await hanging(envelope=envelope)
    rig.send(notification("notifications/cancelled", requestId="h", **reason))
    await rig.tools.cancelled.wait()
    await rig.quiet()
    assert not len(rig.server.calls)
    assert not rig.wire.session.running


@pytest.mark.parametrize("reason", [{}, {"reason": ""}])
async def test_a_call_cancelled_before_its_first_step_never_runs_and_leaves_nothing_behind(
    reason: dict[str, Any],
) -> None:
    rig = await ready()
    rig.send(call("demo_hang", "h"))
    rig.send(notification("notifications/cancelled", requestId="h", **reason))
    while rig.wire.session.running:
        await asyncio.wait([one.task for one in rig.server.calls])
    await rig.quiet()
    assert not rig.tools.started.is_set()
    assert not len(rig.server.calls)


@pytest.mark.parametrize("unknown", [{"requestId": "other"}, {"requestId": 99}, {}])
async def test_cancelling_what_does_not_run_changes_nothing(unknown: dict[str, Any]) -> None:
    rig = await hanging()
    rig.send(notification("notifications/cancelled", **unknown))
    await rig.quiet()
    rig.tools.release.set()
    assert text_of(await rig.next()) == "released"


async def test_an_id_of_another_kind_is_another_request() -> None:
    rig = await ready()
    rig.send(call("demo_hang", 1))
    await rig.tools.started.wait()
    rig.send(notification("notifications/cancelled", requestId="1"))
    rig.tools.release.set()
    assert (await rig.next())["id"] == 1


async def test_one_client_cannot_cancel_the_call_of_another() -> None:
    rig = await hanging()
    other = Rig(rig.server)
    await other.agree()
    other.send(notification("notifications/cancelled", requestId="h"))
    await other.quiet()
    rig.tools.release.set()
    assert text_of(await rig.next()) == "released"


async def test_a_call_that_was_answered_cannot_be_cancelled_any_more() -> None:
    rig = await hanging()
    rig.tools.release.set()
    assert text_of(await rig.next()) == "released"
    rig.send(notification("notifications/cancelled", requestId="h"))
    await rig.quiet()


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_call_past_its_time_limit_is_cancelled_and_told_so(version: str) -> None:
    rig = await ready(version)
    reply = await rig.ask(call("demo_endless", "e"))
    error = reply["error"] if version == "2024-11-05" else failure_of(reply)
    assert error["code"] == -32004
    assert error["message"] == "Tool execution failed: the time limit of 0.05 s passed"
    assert not len(rig.server.calls)
    assert not rig.wire.session.running


async def test_the_end_of_a_session_cancels_its_calls_and_no_others() -> None:
    rig = await hanging()
    other = Rig(rig.server)
    await other.agree()
    other.send(call("demo_hang", "o"))
    rig.server.close_session(rig.wire.session)
    await rig.tools.cancelled.wait()
    assert [*other.wire.session.running] == ["o"]
    rig.tools.release.set()
    assert text_of(await other.next()) == "released"


async def test_the_end_of_the_server_cancels_every_call() -> None:
    rig = await hanging()
    rig.server.close()
    await rig.tools.cancelled.wait()
    await rig.quiet()
    assert not len(rig.server.calls)


class Stubborn:
    """Tools that do not take cancellation as they should."""

    prefix = "s"

    def __init__(self) -> None:
        self.asked_to_stop = asyncio.Event()

    @tool()
    async def itself(self) -> str:
        """Be cancelled from inside."""
        raise asyncio.CancelledError

    @tool(timeout_s=0.03)
    async def deaf(self) -> str:
        """Swallow the cancellation and go on for ever."""
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self.asked_to_stop.is_set():
                    raise
                self.asked_to_stop.set()


def stubborn() -> Rig:
    registry = Registry()
    for one in tools_of(Stubborn()):
        registry.add_tools(one)
    return Rig(Server(registry, Info("stubborn", "1")))


async def test_a_tool_that_cancels_itself_is_a_failure_and_not_silence() -> None:
    rig = stubborn()
    await rig.agree()
    assert failure_of(await rig.ask(call("s_itself")))["code"] == -32004


async def test_a_tool_that_ignores_its_time_limit_is_asked_again() -> None:
    rig = stubborn()
    await rig.agree()
    assert "time limit" in failure_of(await rig.ask(call("s_deaf")))["message"]


async def test_cancelling_twice_is_cancelling_once() -> None:
    rig = await hanging()
    for _ in range(2):
        rig.send(notification("notifications/cancelled", requestId="h"))
    await rig.tools.cancelled.wait()
    await rig.quiet()


@pytest.mark.parametrize("method", ["prompts/get", "resources/read", "completion/complete"])
async def test_other_calls_can_be_cancelled_too(method: str) -> None:
    rig = await ready()
    reference = {"ref": {"type": "ref/prompt", "name": "letter"}, "argument": {"name": "to", "value": ""}}
    rig.send(request(method, "x", name="letter", arguments={"to": "a"}, uri="demo://note", **reference))
    rig.send(notification("notifications/cancelled", requestId="x"))
    while rig.wire.session.running:
        await asyncio.wait([one.task for one in rig.server.calls])
    await rig.quiet()
