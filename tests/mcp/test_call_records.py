"""Every tool call is one record in the audit log, in both eras, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dari.core.audit.log import AuditLog
from dari.core.audit.query import query
from dari.core.audit.record import AuditRecord
from dari.core.audit.verify import verify
from dari.core.tool import tool, typed_tool
from tests.support import planted_secrets as planted
from tests.support.mcp_server import STATELESS, Rig, notification
from tests.support.wire import Json, call, stateless


class Recorded:
    """A demo server whose calls are recorded."""

    def __init__(self, directory: Path) -> None:
        self.log = AuditLog(directory)
        self.rig = Rig()
        self.rig.server.registry.call_log = lambda: self.log

    def records(self) -> list[AuditRecord]:
        assert self.log.flush()
        return query(self.log.directory, kind="call", limit=1000)[::-1]


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    made = Recorded(tmp_path / "audit")
    yield made
    made.log.close()
    assert verify(made.log.directory).is_whole


def _same(message: Json) -> Json:
    return message


@pytest.mark.parametrize("era", [_same, stateless])
async def test_a_call_is_one_record_with_all_that_a_person_asks_for(
    recorded: Recorded, era: Callable[[Json], Json]
) -> None:
    await recorded.rig.agree()
    await recorded.rig.ask(era(call("demo_echo", text="hello", times=2)))
    (one,) = recorded.records()
    assert (one.part, one.server, one.tool, one.outcome) == ("demo", "demo", "demo_echo", "ok")
    assert one.who == ("mcp:test" if era is _same else "mcp")
    assert one.shown_arguments == {"text": "hello", "times": 2}
    assert one.ms > 0
    assert one.result_bytes > len("hellohello")
    assert one.session


async def test_a_tool_without_a_task_and_one_without_arguments_are_recorded(recorded: Recorded) -> None:
    await recorded.rig.agree()
    await recorded.rig.ask(call("demo_quick", text="a"))
    message = call("demo_picture")
    del message["params"]["arguments"]
    await recorded.rig.ask(message)
    assert [(one.tool, one.outcome, one.shown_arguments) for one in recorded.records()] == [
        ("demo_quick", "ok", {"text": "a"}),
        ("demo_picture", "ok", {}),
    ]


@pytest.mark.parametrize(
    ("tool", "outcome", "code"),
    [
        ("demo_admin", "denied", "insufficient_scope"),
        ("demo_missing", "error", "not_found"),
        ("demo_unreachable", "error", "unavailable"),
        ("demo_late", "timed_out", "timed_out"),
        ("demo_endless", "timed_out", "timed_out"),
        ("demo_broken", "error", "RuntimeError"),
        ("demo_echo", "error", "invalid_input"),
        ("demo_nothing", "error", -32602),
    ],
)
@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", STATELESS])
async def test_what_fails_or_is_refused_is_recorded_with_its_code(
    recorded: Recorded, tool: str, outcome: str, code: object, version: str
) -> None:
    if version == STATELESS:
        await recorded.rig.ask(stateless(call(tool)))
    else:
        await recorded.rig.agree(version)
        await recorded.rig.ask(call(tool))
    (one,) = recorded.records()
    assert (one.tool, one.outcome, one.detail) == (tool, outcome, {"code": code})


async def test_a_cancelled_call_is_recorded(recorded: Recorded) -> None:
    rig = recorded.rig
    await rig.agree()
    rig.send(call("demo_hang", "h"))
    await rig.tools.started.wait()
    rig.send(notification("notifications/cancelled", requestId="h", reason="changed my mind"))
    await rig.tools.cancelled.wait()
    await rig.quiet()
    (one,) = recorded.records()
    assert (one.tool, one.outcome, one.error) == ("demo_hang", "cancelled", "changed my mind")


async def test_a_round_that_ends_with_a_question_is_held_and_the_next_one_is_another_record(
    recorded: Recorded,
) -> None:
    message = stateless(call("demo_greet"), elicitation={})
    first = (await recorded.rig.ask(message))["result"]
    message["params"] |= {
        "requestState": first["requestState"],
        "inputResponses": {"who": {"action": "accept", "content": {"name": "Ada"}}},
    }
    await recorded.rig.ask(message)
    assert [one.outcome for one in recorded.records()] == ["held", "ok"]


async def test_no_planted_secret_reaches_the_log(recorded: Recorded) -> None:
    await recorded.rig.agree()
    given = [{"text": "x", one.name: one.secret} for one in (*planted.of("json"), *planted.of("request_header"))]
    given += [{"text": planted.form().decode()}, {"text": planted.location()}, {"text": planted.query()}]
    for arguments in given:
        await recorded.rig.ask(call("demo_echo", **arguments))
    assert len(recorded.records()) == len(given)
    written = "".join(path.read_text() for path in recorded.log.directory.glob("*.jsonl"))
    assert planted.leaks(written) == []


async def test_a_server_without_a_log_records_nothing() -> None:
    rig = Rig()
    await rig.agree()
    assert "result" in await rig.ask(call("demo_echo", text="a"))


async def test_a_tool_that_takes_keys_of_a_person_leaves_no_record(recorded: Recorded) -> None:
    @tool(is_recorded=False)
    async def press(keys: str) -> str:
        """Press keys."""
        return "pressed"

    recorded.rig.server.registry.add_tools(typed_tool(press))
    await recorded.rig.agree()
    await recorded.rig.ask(call("press", keys="a password"))
    await recorded.rig.ask(call("demo_quick", text="a"))
    assert [one.tool for one in recorded.records()] == ["demo_quick"]
