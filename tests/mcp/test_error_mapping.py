"""One table from failures to the wire: a JSON-RPC error on 2024-11-05, a result afterwards, the same words in both."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dari.core.registry import Registry
from dari.core.tool import tool, typed_tool
from dari.errors import (
    Conflict,
    DariError,
    Denied,
    Failed,
    InvalidInput,
    NeedsApproval,
    NotFound,
    TimedOut,
    Unavailable,
)
from dari.mcp.server import Info, Server
from tests.support.mcp_server import STATELESS, VERSIONS, Rig
from tests.support.wire import Json, call, stateless

FAILURES = [Conflict, Denied, Failed, InvalidInput, NeedsApproval, NotFound, TimedOut, Unavailable]


def raising(error: BaseException) -> Rig:
    @tool(name="later")
    async def later() -> str:
        """Raise in a task."""
        raise error

    @tool(name="now")
    def now() -> str:
        """Raise at once."""
        raise error

    registry = Registry()
    registry.add_tools(typed_tool(later), typed_tool(now))
    return Rig(Server(registry, Info("raising", "1")))


async def asked(rig: Rig, version: str, name: str) -> Json:
    if version == STATELESS:
        return await rig.ask(stateless(call(name)))
    await rig.agree(version)
    return await rig.ask(call(name))


@pytest.mark.parametrize("name", ["later", "now"])
@pytest.mark.parametrize("kind", FAILURES)
async def test_on_2024_11_05_a_failure_is_a_json_rpc_error(kind: type[DariError], name: str) -> None:
    error = kind("the fact", "the next step")
    reply = await asked(raising(error), "2024-11-05", name)
    assert reply["error"] == {
        "code": kind.code,
        "message": kind.prefix + "the fact",
        "data": {"name": kind.name, "hint": "the next step"},
    }


@pytest.mark.parametrize("name", ["later", "now"])
@pytest.mark.parametrize("version", [*VERSIONS[1:], STATELESS])
@pytest.mark.parametrize("kind", FAILURES)
async def test_on_later_versions_it_is_a_result_with_the_same_code_and_words(
    kind: type[DariError], version: str, name: str
) -> None:
    reply = await asked(raising(kind("the fact", "the next step")), version, name)
    message = kind.prefix + "the fact"
    expected: dict[str, Any] = {
        "content": [{"type": "text", "text": f"{message}\nhint: the next step"}],
        "_meta": {"dari/error": {"code": kind.code, "name": kind.name, "message": message, "hint": "the next step"}},
        "isError": True,
    }
    if version == STATELESS:
        expected["resultType"] = "complete"
    assert reply["result"] == expected


async def test_without_a_hint_the_text_ends_with_the_fact() -> None:
    reply = await asked(raising(Failed("the fact")), "2025-11-25", "later")
    assert reply["result"]["content"][0]["text"] == "Tool execution failed: the fact"


@pytest.mark.parametrize("name", ["later", "now"])
@pytest.mark.parametrize("version", [*VERSIONS, STATELESS])
async def test_a_bug_is_told_in_one_line_and_logged_whole(
    version: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        reply = await asked(raising(ZeroDivisionError("division by zero")), version, name)
    told = reply["error"] if "error" in reply else reply["result"]["_meta"]["dari/error"]
    assert told["code"] == -32004
    assert told["message"] == "Tool execution failed: ZeroDivisionError: division by zero"
    assert "Traceback" not in str(reply)
    (record,) = caplog.records
    assert "event=fatal" in record.getMessage()
    assert record.exc_info


async def test_a_failure_of_ours_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="dari.mcp"):
        await asked(raising(NotFound("x", "y")), "2025-11-25", "later")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_what_cannot_be_encoded_is_a_bug_of_the_tool(caplog: pytest.LogCaptureFixture) -> None:
    @tool()
    async def odd() -> Any:
        """Return what JSON cannot say."""
        return {"x": object()}

    registry = Registry()
    registry.add_tools(typed_tool(odd))
    rig = Rig(Server(registry, Info("odd", "1")))
    with caplog.at_level(logging.ERROR):
        reply = await asked(rig, "2025-11-25", "odd")
    assert reply["result"]["_meta"]["dari/error"]["code"] == -32004
    assert len(caplog.records) == 1


async def test_the_server_goes_on_after_a_bug(caplog: pytest.LogCaptureFixture) -> None:
    rig = raising(RuntimeError("boom"))
    with caplog.at_level(logging.CRITICAL):
        for name in ("later", "now", "later"):
            assert "result" in await asked(rig, "2025-11-25", name)
    assert not len(rig.server.calls)


@pytest.mark.parametrize("name", ["later", "now"])
async def test_a_tool_that_wants_to_exit_does_not_take_the_server_with_it(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        reply = await asked(raising(SystemExit(2)), "2025-11-25", name)
    assert reply["result"]["_meta"]["dari/error"]["code"] == -32004
