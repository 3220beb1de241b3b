"""Framing, dispatch and the error table of an established session, over a real socket."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from pathlib import Path

import pytest

from dari.daemon.caller_scopes import CallerIdentity, current_caller, pass_on_call_of
from dari.daemon.client import DaemonClient
from dari.daemon.errors import NotAPerson, ScopeRequired
from dari.daemon.lock import FileLock
from dari.daemon.methods import Method
from dari.daemon.paths import DaemonPaths
from dari.daemon.peer import ConnectedSocket, PeerCredentials, peer_credentials
from dari.daemon.protocol import MAX_LINE_BYTES
from dari.daemon.server import DaemonLimits, DaemonServer
from dari.daemon.session import Refusal
from dari.errors import Conflict, DariError, NotFound
from tests.support.daemons import Demo, code, demo_daemon, session

PING = {"jsonrpc": "2.0", "id": 1, "method": "system.ping"}


async def test_the_built_in_methods_answer_as_the_original(run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        assert (await connection.call("system.ping"))["result"] == {"pong": True}
        assert (await connection.call("system.version"))["result"] == {"engine": "1.2.3", "protocol": 1}
        assert (await connection.call("system.rotate_token"))["result"] == {
            "rotated": True,
            "reconnect_required": True,
        }


@pytest.mark.parametrize(
    "request_id", [0, -1, 1.5, "x", "", None, True, [1, {"a": None}], {"k": "다리"}, 10**30, "x" * 100_000]
)
async def test_an_id_of_any_json_value_is_echoed(request_id: object, run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        reply = await connection.ask({**PING, "id": request_id})
    assert reply == {"jsonrpc": "2.0", "id": request_id, "result": {"pong": True}}


async def test_a_call_without_an_id_is_answered_without_one(run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        assert await connection.ask({"jsonrpc": "2.0", "method": "system.ping"}) == {
            "jsonrpc": "2.0",
            "result": {"pong": True},
        }


@pytest.mark.parametrize(
    "line",
    [b"nonsense", b"{", b'{"id":1}x', b"[]", b"[1]", b"7", b'"text"', b"null", b'{"id":"\xff"}', b"\x00", b"[" * 9999],
)
async def test_a_line_that_is_no_request_is_code_2_without_id_and_the_stream_goes_on(
    line: bytes, run_dir: Path
) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        reply = await connection.ask(line)
        assert code(reply) == 2
        assert "id" not in reply
        assert (await connection.ask(PING))["result"] == {"pong": True}


@pytest.mark.parametrize("version", [None, "1.0", 2.0, "2.0 "])
async def test_jsonrpc_must_be_2_0(version: object, run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        reply = await connection.ask({**PING, "jsonrpc": version})
    assert reply == {"jsonrpc": "2.0", "id": 1, "error": {"code": 2, "message": "jsonrpc must be 2.0"}}


@pytest.mark.parametrize("method", [None, 1, ["system.ping"]])
async def test_a_method_must_be_a_string(method: object, run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        assert code(await connection.ask({**PING, "method": method})) == 2


@pytest.mark.parametrize("params", [[], [1], "text", 1, True])
async def test_params_must_be_an_object(params: object, run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        reply = await connection.ask({**PING, "params": params})
    assert reply["error"] == {"code": 2, "message": "params must be a JSON object"}


@pytest.mark.parametrize("request_", [PING, {**PING, "params": None}, {**PING, "params": {}}])
async def test_null_and_absent_params_are_empty(request_: object, run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        assert (await connection.ask(request_))["result"] == {"pong": True}


async def test_typed_params_fill_their_defaults_and_ignore_unknown_keys(run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        assert (await connection.call("demo.add", a=2, unknown=None))["result"] == {"sum": 2}
        assert (await connection.call("demo.add", a=2, b=3, label="x"))["result"] == {"sum": 5}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"a": None},
        {"a": "1"},
        {"a": 1.0},
        {"a": True},
        {"a": 1, "b": None},
        {"a": 1, "label": None},
        {"a": 1, "label": 5},
    ],
)
async def test_typed_params_are_strict(params: dict[str, object], run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        assert code(await connection.call("demo.add", **params)) == 2


async def test_blank_lines_are_ignored(run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        connection.send(b"", b"  ", b"\r", PING)
        assert (await connection.receive())["id"] == 1


async def test_a_carriage_return_before_the_newline_is_accepted(run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        assert (await connection.ask(json.dumps(PING).encode() + b"\r"))["id"] == 1


async def test_an_unknown_method_fails_closed(run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        reply = await connection.call("no.such.method")
    assert reply["error"] == {"code": 11, "message": "unknown method: no.such.method"}


async def test_a_missing_scope_is_code_9_and_names_it(run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir, "mcp") as connection:
        reply = await connection.call("system.rotate_token")
    assert reply["error"] == {"code": 9, "message": "scope 'admin' required"}


async def test_what_is_refused_to_an_agent_is_reported_also_when_the_method_itself_refuses_it(run_dir: Path) -> None:
    reported: list[Refusal] = []
    refusals = [
        ScopeRequired("insufficient scope", "listening there is decided by a person"),
        NotAPerson("listening there is for a person, and process 1 runs in a pane"),
        Conflict("already running"),
    ]
    demo = Demo()
    async with demo_daemon(run_dir, demo, on_refused=reported.append), session(run_dir, "mcp") as connection:
        for demo.error in refusals:
            await connection.call("demo.fail", port=1)
        await connection.call("system.rotate_token")
    assert [(one.method, one.principal) for one in reported] == [
        ("demo.fail", "mcp"),
        ("demo.fail", "mcp"),
        ("system.rotate_token", "mcp"),
    ]
    assert "decided by a person" in reported[0].reason and reported[0].pid == os.getpid()


async def test_a_rotation_ends_every_session_even_the_callers_own(run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as ours, session(run_dir, "mcp") as other:
        await ours.call("system.rotate_token")
        for connection in (ours, other):
            reply = await connection.call("system.ping")
            assert reply["error"] == {"code": 10, "message": "session expired after token rotation"}
        async with session(run_dir) as renewed:
            assert (await renewed.call("system.ping"))["result"] == {"pong": True}


async def test_a_rotation_that_cannot_write_is_code_4(run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        (run_dir / "mcp.token").unlink()
        (run_dir / "mcp.token").mkdir()
        assert code(await connection.call("system.rotate_token")) == 4
        assert (await connection.call("system.ping"))["result"] == {"pong": True}
        (run_dir / "mcp.token").rmdir()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Conflict("proxy already running"), {"code": 3, "message": "proxy already running"}),
        (
            NotFound("no pane 7", "list the panes"),
            {"code": 4, "message": "no pane 7", "data": {"name": "not_found", "hint": "list the panes"}},
        ),
        (Conflict("file \udcff"), {"code": 3, "message": "file \\udcff"}),
    ],
)
async def test_an_error_of_ours_is_told_as_it_is(error: DariError, expected: dict[str, object], run_dir: Path) -> None:
    async with demo_daemon(run_dir, Demo(error=error)), session(run_dir) as connection:
        assert (await connection.call("demo.fail"))["error"] == expected
        assert "result" in await connection.call("system.ping")


@pytest.mark.parametrize("error", [RuntimeError("a secret"), OSError("a secret"), asyncio.CancelledError()])
async def test_a_bug_is_code_5_without_its_internals_and_stands_in_the_log(
    error: BaseException, run_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with demo_daemon(run_dir, Demo(error=error)), session(run_dir) as connection:
        reply = await connection.call("demo.fail")
        assert reply["error"] == {"code": 5, "message": "internal error"}
        assert "result" in await connection.call("system.ping")
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.getMessage() == "daemon=demo event=fatal method=demo.fail"
    assert record.exc_info is not None


@pytest.mark.parametrize("result", [object(), "\ud800", {"deep": object()}])
async def test_a_result_that_is_no_json_is_code_5(
    result: object, run_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with demo_daemon(run_dir, Demo(result=result)), session(run_dir) as connection:
        assert code(await connection.call("demo.give")) == 5
        assert "result" in await connection.call("system.ping")
    assert "event=fatal" in caplog.text


async def test_a_result_longer_than_a_line_may_be_is_refused_with_advice(run_dir: Path) -> None:
    async with demo_daemon(run_dir, Demo(result="x" * MAX_LINE_BYTES)), session(run_dir) as connection:
        reply = await connection.call("demo.give")
    assert code(reply) == 4
    assert reply["error"]["data"]["hint"]


async def test_replies_come_in_the_order_of_the_calls(run_dir: Path) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo), session(run_dir) as connection:
        connection.send(
            {"jsonrpc": "2.0", "id": "slow", "method": "demo.hold"}, *({**PING, "id": n} for n in range(100))
        )
        await demo.entered.wait()
        demo.release.set()
        replies = [await connection.receive() for _ in range(101)]
    assert [reply["id"] for reply in replies] == ["slow", *range(100)]


async def test_a_slow_call_holds_up_its_own_connection_only(run_dir: Path) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo), session(run_dir) as slow, session(run_dir) as other:
        slow.send({**PING, "method": "demo.hold"})
        await demo.entered.wait()
        assert (await other.ask(PING))["result"] == {"pong": True}
        demo.release.set()
        assert (await slow.receive())["result"] == {"held": True}


async def test_a_line_up_to_the_limit_is_read_and_a_longer_one_ends_the_connection(run_dir: Path) -> None:
    async with demo_daemon(run_dir, limits=DaemonLimits(max_line_bytes=4096)), session(run_dir) as connection:
        assert "result" in await connection.call("demo.echo", text="x" * 4000)
        reply = await connection.call("demo.echo", text="x" * 5000)
        assert code(reply) == 2
        assert "id" not in reply
        assert await connection.ended()


async def test_sixteen_megabytes_travel_in_one_line(run_dir: Path) -> None:
    text = "x" * (MAX_LINE_BYTES - 100)
    async with demo_daemon(run_dir), session(run_dir) as connection:
        assert (await connection.call("demo.echo", text=text))["result"]["text"] == text
        connection.send(b"x" * (MAX_LINE_BYTES + 1))
        assert code(await connection.receive()) == 2
        assert await connection.ended()


async def test_the_hub_says_whose_call_it_passes_on_and_nobody_else_is_believed(run_dir: Path) -> None:
    seen: list[CallerIdentity | None] = []

    async def look(_: dict[str, object]) -> object:
        seen.append(current_caller())
        return {}

    hub = DaemonPaths("bridge", lock_name="host.lock")
    Path(hub.lock_text).parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(hub.lock_text)
    async with DaemonServer(DaemonPaths("demo", run_dir), [Method("demo.look", "read", look)]):
        async with DaemonClient(DaemonPaths("demo", run_dir), "mcp", keep=True) as client:
            with pass_on_call_of("mcp@work-laptop:Cursor"):
                await client.call("demo.look")
                assert lock.try_acquire()
                await client.call("demo.look")
            await client.call("demo.look")
        async with session(run_dir) as connection:
            await connection.ask({**PING, "method": "demo.look", "for": {"is_vouched_for": True}})
        lock.release()
    assert [each.acts_for for each in seen if each] == ["", "mcp@work-laptop:Cursor", "", ""]
    assert not any(each.is_vouched_for for each in seen if each)


@pytest.mark.skipif(sys.platform != "linux", reason="the start is read from /proc")
@pytest.mark.parametrize("ended", ["before there was a hub", "before the hub had its pid"])
async def test_a_caller_whose_process_has_ended_is_not_taken_for_the_hub(ended: str, run_dir: Path) -> None:
    seen: list[CallerIdentity | None] = []

    async def look(_: dict[str, object]) -> object:
        seen.append(current_caller())
        return {}

    has_hub = ended == "before the hub had its pid"

    def credentials(sock: ConnectedSocket) -> PeerCredentials:
        peer = peer_credentials(sock)
        return PeerCredentials(peer.uid, peer.gid, peer.pid if has_hub else None, "1" if has_hub else None)

    hub = DaemonPaths("bridge", lock_name="host.lock")
    Path(hub.lock_text).parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(hub.lock_text)
    assert not has_hub or lock.try_acquire()
    daemon = DaemonServer(
        DaemonPaths("demo", run_dir), [Method("demo.look", "read", look)], peer_credentials=credentials
    )
    async with daemon, session(run_dir) as connection:
        await connection.ask({**PING, "method": "demo.look", "for": "mcp@work-laptop:Cursor"})
    lock.release()
    assert [each.acts_for for each in seen if each] == [""]
