"""Whatever comes in, every line gets one reply, in order, and the session lives on."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from dari.daemon.methods import method_table
from dari.daemon.peer import PeerCredentials
from dari.daemon.session import DaemonSession, SessionAccess, prove_nothing
from dari.daemon.tokens import CLI, Tokens, make_token
from tests.support.daemons import Demo, demo_daemon, session

PING = {"jsonrpc": "2.0", "id": "last", "method": "system.ping"}

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
methods = st.sampled_from(["system.ping", "demo.add", "demo.echo", "system.version", "no.such", "", 1, None])
requests = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "2.0", "1.0", 2, None]),
        "id": values,
        "method": methods,
        "params": values | st.fixed_dictionaries({"a": values}, optional={"b": values, "label": values}),
    },
)
noise = st.binary(min_size=1, max_size=60).map(lambda line: line.replace(b"\n", b" "))
broken = st.builds(lambda value, cut: json.dumps(value).encode()[:cut], requests, st.integers(1, 80))
lines = noise | broken | (values | requests).map(lambda value: json.dumps(value).encode())


@settings(max_examples=400, deadline=None)
@given(lines)
def test_every_line_is_answered_by_one_line_of_json(line: bytes) -> None:
    async def answer() -> bytes:
        tokens = Tokens(Path("/nowhere"))
        access = SessionAccess("demo", method_table(Demo().methods()), tokens, prove_nothing)
        fuzzed = DaemonSession(access, PeerCredentials(0, 0, 0), asyncio.ensure_future)
        token = make_token(tokens._key, CLI)
        params = {"protocol_version": 1, "token": token}
        await fuzzed.answer(json.dumps({**PING, "method": "system.handshake", "params": params}).encode())
        assert fuzzed.is_established
        return await fuzzed.answer(line)

    reply = asyncio.run(answer())
    assert reply.endswith(b"\n")
    assert reply.count(b"\n") == 1
    body = json.loads(reply)
    assert body["jsonrpc"] == "2.0"
    assert ("result" in body) != ("error" in body)
    assert body.get("error", {"code": 2})["code"] in (2, 11)


@settings(max_examples=25, deadline=None)
@given(st.lists(lines, max_size=10))
def test_nonsense_on_a_socket_never_costs_the_session(garbage: list[bytes]) -> None:
    async def visit() -> None:
        with tempfile.TemporaryDirectory(prefix="dari-") as run_dir:
            async with demo_daemon(Path(run_dir)), session(Path(run_dir)) as connection:
                connection.send(*garbage, PING)
                answered = [line for line in garbage if not (line + b"\n").isspace()]
                replies = [await connection.receive() for _ in range(len(answered) + 1)]
        assert replies[-1] == {"jsonrpc": "2.0", "id": "last", "result": {"pong": True}}

    asyncio.run(asyncio.wait_for(visit(), 20))
