"""Questions of a server of the stateless era: answered for one caller, handed on as they are to another."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from dari.bridge.upstream.caller import Caller, Unanswered
from dari.errors import DariError, TimedOut, Unavailable
from dari.mcp.client.errors import RemoteError
from tests.support.bridge import Place
from tests.support.mcp_client import DEMO, DEMO_ENV

pytestmark = pytest.mark.local_mcp


def demo(root: Path) -> Place:
    entry = {"id": "demo", "kind": "stdio", "command": sys.executable, "args": list(DEMO[1:]), "env": DEMO_ENV}
    return Place(root, entry)


async def test_a_caller_that_answers_gets_the_final_result(tmp_path: Path) -> None:
    asked: list[str] = []

    async def answer(method: str, params: Raw) -> Any:
        asked.append(method)
        return {"action": "accept", "content": {"name": "Ada"}}

    async with demo(tmp_path).upstream("demo") as server:
        result = json.loads(bytes(await server.call_tool("demo_greet", b"{}", Caller("a", ask=answer))))
    assert asked == ["elicitation/create"] and result["resultType"] == "complete"


@pytest.mark.parametrize("error", [None, TimedOut("nobody answered in 300 s"), Unavailable("the client is gone")])
async def test_questions_that_nobody_answers_do_not_open_the_circuit_for_others(
    tmp_path: Path, error: DariError | None
) -> None:
    asked = 0

    async def answer(method: str, params: Raw) -> Any:
        nonlocal asked
        asked += 1
        assert error is not None
        raise error

    async with demo(tmp_path).upstream("demo") as server:
        for _ in range(6):
            with pytest.raises(Unanswered):
                await server.call_tool("demo_greet", b"{}", Caller("a", ask=None if error is None else answer))
        assert asked == (0 if error is None else 6)
        assert b"hello" in bytes(await server.call_tool("demo_echo", b'{"text":"hello"}', Caller("b")))


async def test_a_caller_that_takes_questions_gets_them_and_brings_the_answers_with_its_next_request(
    tmp_path: Path,
) -> None:
    async with demo(tmp_path).upstream("demo") as server:
        first = json.loads(bytes(await server.call_tool("demo_greet", b"{}", Caller("a", takes_questions=True))))
        assert first["resultType"] == "input_required"
        ((key, question),) = first["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        responses = {key: {"action": "accept", "content": {"name": "Ada"}}}
        members = json.dumps({"inputResponses": responses, "requestState": first["requestState"]})[1:-1].encode()
        caller = Caller("a", takes_questions=True, answered=members)
        second = json.loads(bytes(await server.call_tool("demo_greet", b"{}", caller)))
    assert second["resultType"] == "complete" and "Ada" in str(second)


async def test_the_server_is_told_what_the_caller_can_do(tmp_path: Path) -> None:
    async with demo(tmp_path).upstream("demo") as server:
        caller = Caller("a", takes_questions=True, capabilities={})
        with pytest.raises(RemoteError, match="elicitation") as refused:
            await server.call_tool("demo_greet", b"{}", caller)
    assert refused.value.data == {"requiredCapabilities": {"elicitation": {}}}
