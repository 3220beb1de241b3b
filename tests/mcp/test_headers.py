"""Headers of the stateless era: any text travels in one, and each says what the body says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.mcp.headers import decode_value, encode_value
from tests.support.mcp_server import Rig, request
from tests.support.wire import META, Json, stateless

MISMATCH = -32020


class HttpRig(Rig):
    """A memory wire that carries HTTP headers."""

    async def post(self, message: Json, **headers: str | bytes | None) -> Json:
        params = message["params"]
        plain = {
            "mcp-protocol-version": params["_meta"]["io.modelcontextprotocol/protocolVersion"],
            "mcp-method": message["method"],
            "mcp-name": params.get("uri") if message["method"] == "resources/read" else params.get("name"),
        }
        shown = {**plain, **{name.replace("_", "-"): value for name, value in headers.items()}}
        self.wire.headers = {
            name.encode(): value if isinstance(value, bytes) else value.encode()
            for name, value in shown.items()
            if value is not None
        }
        return await self.ask(message)


def routed(**arguments: Any) -> Json:
    return stateless(request("tools/call", name="demo_routed", arguments=arguments))


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=40))
def test_any_text_survives_the_way_through_a_header(text: str) -> None:
    value = encode_value(text)
    assert decode_value(value.encode()) == text
    assert value.isascii()
    assert value == value.strip()
    assert not set(value) & {chr(code) for code in [*range(32), 127]}


@pytest.mark.parametrize("text", ["eu", "a b", "~!@#$%^&*()", "=?base64?", "?=", "demo://item/1", ""])
def test_plain_text_is_sent_as_it_is(text: str) -> None:
    assert encode_value(text) == text


@pytest.mark.parametrize("text", ["안녕", " a", "a ", "a\nb", "\t", "\x7f", "é", "=?base64?YQ==?=", "=?base64??="])
def test_what_a_header_cannot_carry_or_would_misread_is_wrapped(text: str) -> None:
    value = encode_value(text)
    assert value.startswith("=?base64?")
    assert value.endswith("?=")
    assert decode_value(value.encode()) == text


@pytest.mark.parametrize(
    "raw",
    [
        b"\xff",
        "안녕".encode(),
        b"=?base64?!!?=",
        b"=?base64?YQ?=",
        b"=?base64?/w==?=",
        b"=?base64?YR==?=",
        b"=?base64?Y Q==?=",
    ],
)
def test_a_malformed_header_equals_nothing(raw: bytes) -> None:
    assert decode_value(raw) is None


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_no_header_makes_the_decoder_raise(raw: bytes) -> None:
    assert decode_value(raw) is None or isinstance(decode_value(raw), str)


@pytest.mark.parametrize(
    "message",
    [
        request("tools/list"),
        request("tools/call", name="demo_quick", arguments={"text": "a"}),
        request("prompts/get", name="letter", arguments={"to": "x"}),
        request("resources/read", uri="demo://item/1"),
        request("server/discover"),
    ],
    ids=lambda message: message["method"],
)
async def test_headers_that_say_what_the_body_says_pass(message: Json) -> None:
    assert "result" in await HttpRig().post(stateless(message))


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp_protocol_version": None},
        {"mcp_protocol_version": "2025-11-25"},
        {"mcp_protocol_version": ""},
        {"mcp_method": None},
        {"mcp_method": "tools/list"},
        {"mcp_method": "TOOLS/CALL"},
        {"mcp_name": None},
        {"mcp_name": "demo_echo"},
        {"mcp_name": "DEMO_QUICK"},
        {"mcp_name": ""},
        {"mcp_name": "=?base64?!!?="},
        {"mcp_name": b"\xff"},
    ],
)
async def test_a_header_that_says_something_else_is_refused(headers: dict[str, str | bytes | None]) -> None:
    message = stateless(request("tools/call", name="demo_quick", arguments={"text": "a"}))
    assert (await HttpRig().post(message, **headers))["error"]["code"] == MISMATCH


async def test_a_name_may_be_wrapped_and_then_must_be() -> None:
    rig = HttpRig()
    message = stateless(request("tools/call", name="demo_quick", arguments={"text": "a"}))
    assert "result" in await rig.post(message, mcp_name="=?base64?ZGVtb19xdWljaw==?=")
    unknown = stateless(request("tools/call", name="도구"))
    assert (await rig.post(unknown, mcp_name=encode_value("도구")))["error"]["code"] == -32602
    assert (await rig.post(unknown, mcp_name=encode_value("다른")))["error"]["code"] == MISMATCH


async def test_a_missing_name_is_the_bodys_mistake() -> None:
    reply = await HttpRig().post(stateless(request("tools/call")))
    assert reply["error"]["code"] == -32602


async def test_a_version_that_nobody_speaks_is_told_when_header_and_body_agree() -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    assert (await HttpRig().post(request("tools/list", _meta=meta)))["error"]["code"] == -32022


async def test_a_session_is_not_asked_for_these_headers() -> None:
    rig = HttpRig()
    rig.wire.headers = {}
    await rig.agree()
    assert "result" in await rig.ask(request("tools/list"))


@pytest.mark.parametrize(
    ("arguments", "header"),
    [
        ({"region": "eu"}, "eu"),
        ({"region": "안녕"}, encode_value("안녕")),
        ({"region": " eu"}, encode_value(" eu")),
        ({"region": "eu"}, "=?base64?ZXU=?="),
        ({"region": ""}, ""),
    ],
)
async def test_a_mirrored_argument_that_agrees_with_its_header_passes(arguments: Json, header: str) -> None:
    reply = await HttpRig().post(routed(**arguments), mcp_param_region=header)
    assert "result" in reply, reply


@pytest.mark.parametrize(
    ("arguments", "header"),
    [
        ({"region": "eu"}, None),
        ({"region": "eu"}, "us"),
        ({"region": "eu"}, "EU"),
        ({"region": "eu"}, ""),
        ({"region": "eu"}, "=?base64?!!?="),
        ({"region": "eu"}, b"\xff"),
        ({}, "eu"),
        ({"region": None}, "eu"),
        ({"region": ["eu"]}, "eu"),
        ({"region": 5}, "9" * 5000),
        ({"region": 5}, "6"),
        ({"region": True}, "1"),
    ],
)
async def test_a_mirrored_argument_that_differs_from_its_header_is_refused(
    arguments: Json, header: str | bytes | None
) -> None:
    reply = await HttpRig().post(routed(**arguments), mcp_param_region=header)
    assert reply["error"]["code"] == MISMATCH


@pytest.mark.parametrize(
    ("arguments", "header"),
    [({"region": 5}, "5"), ({"region": 5}, "5.0"), ({"region": 5.0}, "5"), ({"region": True}, "true"), ({}, None)],
)
async def test_headers_compare_values_and_leave_their_types_to_the_tool(arguments: Json, header: str | None) -> None:
    reply = await HttpRig().post(routed(**arguments), mcp_param_region=header)
    assert reply["result"]["_meta"]["dari/error"]["code"] == -32602


@pytest.mark.parametrize("arguments", [b'{"region":"\xff"}', b'{"region":1e999}', b"[1]", b"5", b"null"])
async def test_arguments_that_cannot_be_compared_are_the_tools_complaint_or_a_mismatch_and_no_bug(
    arguments: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    rig = HttpRig()
    await rig.post(routed(region="eu"), mcp_param_region="eu")
    message = json.dumps(routed(region="@")).encode().replace(b'{"region": "@"}', arguments)
    rig.server.receive(message, rig.wire)
    reply = await rig.next()
    code = reply["error"]["code"] if "error" in reply else reply["result"]["_meta"]["dari/error"]["code"]
    assert code in (-32602, MISMATCH)
    assert caplog.records == []


async def test_a_parameter_header_that_no_argument_declares_is_ignored() -> None:
    message = stateless(request("tools/call", name="demo_quick", arguments={"text": "a"}))
    assert "result" in await HttpRig().post(message, mcp_param_text="other")
