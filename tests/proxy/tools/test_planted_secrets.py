"""Two hundred secrets go through a real proxy; then every tool is called, and none of them may show one."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dari.errors import InvalidInput
from dari.proxy.flow import WebSocketFrame
from dari.text.redact import MARK
from tests.support import planted_secrets
from tests.support.proxy_tools import Crab, Refused, crab, tool_call
from tests.support.wire import Json

HARMLESS = "harmless-and-wanted"
PAGES: dict[str, tuple[str, bytes]] = {
    "/json": ("application/json", planted_secrets.json_body()),
    "/xml": ("application/xml", planted_secrets.xml()),
    "/text": ("text/plain", planted_secrets.text()),
    "/events": ("text/event-stream", planted_secrets.events()),
    "/login": ("text/html", b"<p>harmless-and-wanted</p>"),
}


@asynccontextmanager
async def origin() -> AsyncIterator[str]:
    """Answers with what was planted in responses."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"(?i)content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        path = head.split(" ")[1].partition("?")[0]
        mime, body = PAGES.get(path, ("text/plain", b"ok"))
        lines = [f"Content-Type: {mime}", f"Content-Length: {len(body)}", "Connection: close"]
        if path == "/login":
            lines += [*planted_secrets.headers("response_header"), f"Location: {planted_secrets.location()}"]
        writer.write("\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def seeded(directory: Path) -> AsyncIterator[tuple[Crab, str]]:
    """A proxy that has seen everything, with rules that hold secrets as well."""
    async with origin() as site, crab(directory, starts=True) as made:
        get = made.proxy.get
        await get(f"{site}/login?{planted_secrets.query()}&page={HARMLESS}", *planted_secrets.headers("request_header"))
        await get(
            f"{site}/a", "Content-Type: application/x-www-form-urlencoded", method="POST", body=planted_secrets.form()
        )
        head = "Content-Type: multipart/form-data; boundary=x"
        await get(f"{site}/b", head, method="POST", body=planted_secrets.multipart())
        for path, (mime, body) in PAGES.items():
            await get(f"{site}{path}", f"Content-Type: {mime}", method="POST", body=body)
        flow = await made.proxy.runtime.recording.flow(1)
        flow.frames = [WebSocketFrame(True, 1, one, len(one), 1) for one in planted_secrets.messages()]
        edits = {one.name: one.secret for one in planted_secrets.of("request_header")}
        await made.call("rules_add", kind="header_rewrite", matcher="quiet.test", set_headers=edits)
        text = planted_secrets.json_body().decode()
        await made.call("rules_add", kind="map_local", matcher="/quiet", text=text)
        await made.call("rules_add", kind="body_replace", matcher="quiet.test", text=planted_secrets.text().decode())
        remote = f"https://deploy:maple-syrup-9@quiet.test/?{planted_secrets.query()}"
        await made.call("rules_add", kind="map_remote", matcher="quiet.test/r", destination=remote)
        await made.call("rules_add", kind="breakpoint", matcher=f"{site}/held", time_limit_s=60)
        upstream = made.proxy.service.settings.set_upstream
        await upstream(proxy="http://deploy:maple-syrup-9@127.0.0.1:9", bypass=["*"])
        yield made, site


def calls(site: str, directory: Path) -> list[tuple[str, Json]]:
    """Every tool with arguments that make it show what it has; those of failing calls hold a secret themselves."""
    har = str(directory / "out.har")
    every = [str(number) for number in range(1, 9)]
    bodies = [
        ("traffic_body", {"request_id": one, "direction": way}) for one in every for way in ("request", "response")
    ]
    each = [
        (name, {"request_id": one})
        for one in every
        for name in ("traffic_get", "traffic_show", "traffic_as_curl", "traffic_as_python", "traffic_replay")
    ]
    mocks = [("rules_mock", {"request_id": one, "matcher": f"mock{one}.test"}) for one in every]
    fields = ["url", "request_headers", "response_headers", "request_body", "response_body", "frames", "error"]
    sampled = {"include_body_sample_b64": True}
    return [
        *(("ping", {}), ("version", {}), ("daemon_doctor", {}), ("proxy_status", {}), ("proxy_info", {})),
        *(("capture_status", {}), ("env_snippet", {}), ("engine_config_get", {}), ("ca_status", {})),
        *(("logs_tail", {"limit": 1000}), ("traffic_tail", sampled), ("traffic_get", {"request_id": "1", **sampled})),
        ("traffic_search", {"fields": fields, "token_budget": 100_000}),
        *(("traffic_summary", {}), ("traffic_wait", {"timeout_s": 0, "after_seq": 0})),
        *(("traffic_diff", {"first_id": "1", "second_id": one}) for one in every),
        *bodies,
        *each,
        *mocks,
        ("traffic_compose", {"url": f"{site}/json", "method": "POST"}),
        *(("rules_dump", {}), ("rules_list", {}), ("rules_list_allow", {}), ("rules_list_map_local", {})),
        *(("rules_list_map_remote", {}), ("rules_list_status_rewrite", {}), ("rules_test", {"url": f"{site}/json"})),
        ("rules_update", {"id": "1", "enabled": False}),
        *(("breakpoints_list", {}), ("breakpoints_wait", {"timeout_s": 30})),
        ("breakpoints_resume", {"id": "b1"}),
        *(("rpc", {"method": one}) for one in ("rules.list", "engine.rules_dump", "logs.tail", "traffic.search")),
        ("rpc", {"method": "traffic.reveal", "params": {"request_id": "1"}}),
        ("rpc", {"method": "breakpoints.list"}),
        ("traffic_export_har", {"path": har}),
        ("traffic_import_har", {"path": har}),
        *(("capture_start", {}), ("capture_stop", {}), ("rules_add_allow", {"matcher": site})),
        *(("rules_remove_allow", {"matcher": site}), ("rules_add", {"kind": "block", "matcher": "x.test"})),
        ("rules_add_map_local_text", {"matcher": "t.test", "text": planted_secrets.text().decode()}),
        (
            "rules_add_map_local_file",
            {"matcher": "f.test", "file_path": "/absent/AKIAZQ3DRSTUVWXY2345"},
        ),
        ("rules_remove_map_local", {"matcher": "t.test"}),
        ("rules_add_map_remote", {"matcher": "m.test", "destination": "https://m2.test"}),
        *(("rules_remove_map_remote", {"matcher": "m.test"}), ("rules_move", {"id": "r2", "before": "r1"})),
        ("rules_remove", {"id": "r2"}),
        ("rules_add_status_rewrite", {"matcher": "s.test", "to_status_code": 500}),
        ("rules_remove_status_rewrite", {"matcher": "s.test"}),
        ("engine_set_listen_addr", {"listen_addr": "password=amber-amber-aq"}),
        ("engine_set_inspect_enabled", {"enabled": True}),
        (
            "engine_set_throttle",
            {
                "enabled": False,
                "latency_ms": 0,
                "downstream_bps": 0,
                "upstream_bps": 0,
                "only_selected_hosts": False,
                "selected_hosts": [],
            },
        ),
        ("engine_set_client_allowlist", {"enabled": False, "ips": ["Bearer mF_9.B5f-4.1JqM"]}),
        ("engine_set_transparent", {"enabled": False, "listen_port": 8889}),
        ("engine_load_ca", {"cert_path": "/absent/password=amber-amber-aq", "key_path": "/absent"}),
        *(("engine_set_throttle_preset", {"preset": "off"}), ("engine_set_policy", {})),
        ("engine_set_upstream", {"proxy": "http://deploy:maple-syrup-9@127.0.0.1:9"}),
        ("engine_config_get", {}),
        *(("ca_generate", {}), ("rules_clear", {}), ("logs_clear", {}), ("proxy_stop", {}), ("proxy_start", {})),
    ]


def readable(reply: str) -> str:
    """The reply, and beside it what its base64 says."""
    found = re.findall(r'"(?:sample_b64|headers_b64|body|data)\\*": ?\\*"([A-Za-z0-9+/=]{8,})', reply)
    return "\n".join([reply, *(base64.b64decode(one + "===").decode("latin-1") for one in found)])


async def test_no_tool_of_the_proxy_shows_one_of_200_planted_secrets(tmp_path: Path) -> None:
    shown: list[tuple[str, str]] = []
    called: set[str] = set()
    async with seeded(tmp_path) as (made, site):
        held = asyncio.create_task(
            made.proxy.get(
                f"{site}/held", *planted_secrets.headers("request_header"), method="POST", body=planted_secrets.text()
            )
        )
        assert (await made.call("breakpoints_wait", timeout_s=30))["held"]
        for name, arguments in calls(site, tmp_path):
            called.add(f"crab_{name}")
            reply = await made.wire.ask(tool_call(f"crab_{name}", arguments))
            text = readable(json.dumps(reply, ensure_ascii=False))
            shown += [(name, f"{one.place} {one.name}") for one in planted_secrets.leaks(text)]
            if name == "breakpoints_resume":
                await held
            if name in ("traffic_search", "traffic_tail"):
                assert HARMLESS in text and MARK in text
        assert called == set(made.server.registry.tools)
    har = readable((tmp_path / "out.har").read_text())
    shown += [("the HAR file", f"{one.place} {one.name}") for one in planted_secrets.leaks(har)]
    assert HARMLESS in har
    assert shown == []


async def test_neither_digest_nor_exact_size_of_a_body_with_a_secret_is_shown(tmp_path: Path) -> None:
    async with origin() as site, crab(tmp_path, starts=True) as made:
        sent = b'{"user": "ann", "password": "plum"}'
        await made.proxy.get(f"{site}/a", "Content-Type: application/json", method="POST", body=sent)
        seen = [
            await made.call("traffic_body", request_id="1", direction="request"),
            await made.call("traffic_show", request_id="1"),
            await made.call("traffic_tail"),
            await made.call("traffic_search", fields=["request_bytes", "request_headers"]),
            await made.call("logs_tail"),
        ]
    text = readable(json.dumps(seen))
    assert "sha256" not in text and not re.search(rf"\D{len(sent)}\D", text)
    assert seen[0]["size_bytes"] == 64


async def test_a_rule_is_not_overwritten_with_the_mark_that_hides_its_secret(tmp_path: Path) -> None:
    async with crab(tmp_path) as made:
        rule = await made.call("rules_add", kind="header_rewrite", matcher="a.test", set_headers={"X-Auth": "plum"})
        assert "plum" not in json.dumps(rule)
        with pytest.raises(Refused) as refused:
            await made.call("rules_update", id=rule["id"], changes={"edits": rule["settings"]["edits"]})
        assert refused.value.code == InvalidInput.code
        kept: Any = made.proxy.runtime.book.get(rule["id"])
        assert kept.edits[0].value == "plum"
