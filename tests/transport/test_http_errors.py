"""The HTTP error table of design 000 §5.7, row by row, in the default and in the strict policy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.transports import running
from tests.support.wire import Json, call, initialize, stateless

PING: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
INITIALIZED: Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}
BOTH = pytest.mark.parametrize("strict", [False, True])


@BOTH
@pytest.mark.parametrize("authorization", ["", "Bearer wrong", "Bearer ", "Basic dTpw", "{token}"])
async def test_a_missing_or_wrong_token_is_401(tmp_path: Path, strict: bool, authorization: str) -> None:
    async with running(strict=strict, token_path=tmp_path / "token") as rig:
        wire = await rig.http()
        reply = await wire.post(initialize("2024-11-05"), Authorization=authorization.format(token=rig.token))
        assert (reply.status, reply.json()) == (401, {"error": "invalid or missing token"})
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert reply.headers["content-type"] == "application/json"
        assert len(rig.hub.sessions) == 0


@BOTH
async def test_a_refused_origin_is_403(strict: bool) -> None:
    async with running(strict=strict) as rig:
        reply = await (await rig.http()).post(initialize("2024-11-05"), Origin="https://evil.example")
        assert (reply.status, reply.json()) == (403, {"error": "origin not allowed"})
        assert "access-control-allow-origin" not in reply.headers


@BOTH
@pytest.mark.parametrize("content_type", ["text/plain", "application/jsonp", "", "multipart/form-data; boundary=x"])
async def test_another_content_type_is_415(strict: bool, content_type: str) -> None:
    async with running(strict=strict) as rig:
        reply = await (await rig.http()).post(initialize("2024-11-05"), **{"Content-Type": content_type})
        assert (reply.status, reply.json()) == (415, {"error": "expected application/json"})


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON", "application/json ;x"])
async def test_parameters_and_case_of_the_content_type_do_not_matter(content_type: str) -> None:
    async with running() as rig:
        reply = await (await rig.http()).post(initialize(), **{"Content-Type": content_type})
        assert reply.status == 200


@pytest.mark.parametrize(("strict", "status"), [(False, 404), (True, 401)])
async def test_an_unknown_session_is_404_and_in_strict_mode_401(strict: bool, status: int) -> None:
    async with running(strict=strict) as rig:
        wire = await rig.http()
        for method, body in (("POST", json.dumps(PING).encode()), ("GET", b""), ("DELETE", b"")):
            reply = await wire.request(method, "/mcp", body, {"Mcp-Session-Id": "gone"})
            assert (reply.status, reply.json()) == (status, {"error": "session expired or invalid"}), method


@BOTH
async def test_a_request_without_a_session_is_400(strict: bool) -> None:
    async with running(strict=strict) as rig:
        wire = await rig.http()
        for method, body in (("POST", json.dumps(PING).encode()), ("GET", b""), ("DELETE", b"")):
            reply = await wire.request(method, "/mcp", body)
            assert (reply.status, reply.json()) == (400, {"error": "missing Mcp-Session-Id header"}), method


@BOTH
async def test_a_bug_in_the_server_is_500_and_the_connection_goes_on(strict: bool) -> None:
    async with running(strict=strict) as rig:
        wire = await rig.session("2024-11-05")
        before, rig.server.dispatch = rig.server.dispatch, None  # type: ignore[method-assign, assignment]
        reply = await wire.post(PING)
        rig.server.dispatch = before  # type: ignore[method-assign]
        assert reply.status == 500
        assert "TypeError" in reply.json()["error"]
        assert (await wire.post(PING)).json()["result"] == {}


@BOTH
async def test_a_bug_in_the_checks_of_the_head_is_500(strict: bool) -> None:
    async with running(strict=strict) as rig:
        rig.endpoint.guard.allows_host = None  # type: ignore[method-assign, assignment]
        reply = await (await rig.http()).post(PING)
        assert reply.status == 500
        assert "TypeError" in reply.json()["error"]


@pytest.mark.parametrize(("strict", "status"), [(False, 202), (True, 204)])
async def test_a_notification_is_202_and_in_strict_mode_204(strict: bool, status: int) -> None:
    async with running(strict=strict) as rig:
        wire = await rig.session("2024-11-05")
        for message in (INITIALIZED, {"jsonrpc": "2.0", "id": "s1", "result": {}}):
            reply = await wire.post(message)
            assert (reply.status, reply.body) == (status, b"")
        assert (await wire.post(PING)).status == 200


@BOTH
async def test_failures_of_a_call_are_json_rpc_inside_200(strict: bool) -> None:
    async with running(strict=strict) as rig:
        wire = await rig.session("2024-11-05")
        reply = await wire.post(call("demo_admin"))
        assert (reply.status, reply.json()["error"]["code"]) == (200, -32001)
        reply = await wire.post({**PING, "method": "no/such"})
        assert (reply.status, reply.json()["error"]["code"]) == (200, -32601)


@BOTH
@pytest.mark.parametrize("body", [b"{", b"", b"\xff\xfe", b'{"jsonrpc":"2.0","id":1,"method":"ping"'])
async def test_an_unreadable_body_is_400_with_a_parse_error(strict: bool, body: bytes) -> None:
    async with running(strict=strict) as rig:
        wire = await rig.session("2024-11-05")
        reply = await wire.post(body)
        assert (reply.status, reply.json()["error"]["code"], reply.json()["id"]) == (400, -32700, None)
        assert (await wire.post(PING)).status == 200


@BOTH
async def test_an_unknown_path_is_404_and_an_unknown_method_405(strict: bool) -> None:
    async with running(strict=strict) as rig:
        wire = await rig.http()
        reply = await wire.request("POST", "/other", b"{}")
        assert (reply.status, reply.json()) == (404, {"error": "not found"})
        reply = await wire.request("PUT", "/mcp")
        assert (reply.status, reply.json()) == (405, {"error": "method not allowed"})
        assert "POST" in reply.headers["allow"]


async def test_a_strict_server_does_not_look_at_the_version_header() -> None:
    async with running(strict=True) as rig:
        wire = await rig.session("2024-11-05")
        for version in ("2024-11-05", "2026-07-28", "2099-01-01"):
            assert (await wire.post(PING, **{"MCP-Protocol-Version": version})).status == 200


async def test_a_strict_server_names_its_version_to_a_stateless_request_whatever_its_headers_are() -> None:
    async with running(strict=True) as rig:
        wire = await rig.session("2024-11-05")
        for headers in ({}, {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "ping"}):
            reply = await wire.post(stateless(PING), **headers)
            assert reply.json()["error"]["data"] == {"supported": ["2024-11-05"]}, headers


async def test_liveness_needs_no_token(tmp_path: Path) -> None:
    async with running(token_path=tmp_path / "token") as rig:
        wire = await rig.http()
        reply = await wire.request("GET", "/healthz", headers={"Authorization": ""})
        assert (reply.status, reply.json()) == (200, {"status": "ok"})
        reply = await wire.request("POST", "/healthz", b"{}", {"Authorization": ""})
        assert (reply.status, reply.json()) == (405, {"error": "method not allowed"})


async def test_a_query_does_not_hide_the_endpoint() -> None:
    async with running() as rig:
        reply = await (await rig.http()).request("POST", "/mcp?from=here", json.dumps(initialize()).encode())
        assert reply.status == 200
