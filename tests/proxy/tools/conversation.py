"""One conversation that calls every tool of the proxy, and what of its replies must be equal on every transport."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.support.proxy_tools import tool_call
from tests.support.wire import Json, Wire, initialize, stateless

ONE = "http://one.test/"
Step = tuple[str, Json]

# Numbers that differ from one run to the next, whatever the transport.
VOLATILE = {
    "next_seq", "seq", "seq_first", "seq_last", "ts_unix_ms", "duration_ms", "head_ms", "p50_ms", "p95_ms",
    "last_seen_unix_ms", "last_id", "id", "replay_of", "revision", "size_bytes", "a", "b", "tokens",
}  # fmt: skip


def masked(value: Any, key: str = "") -> Any:
    """The reply without clock, counters, ports and fingerprints."""
    if isinstance(value, dict):
        return {name: masked(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [masked(part, key) for part in value]
    if isinstance(value, str):
        return re.sub(r"\d+", "#", re.sub(r"([0-9A-F]{2}:)+[0-9A-F]{2}", "#", value))
    return type(value).__name__ if key in VOLATILE else value


def conversation(files: Path) -> list[Step]:
    """Every tool once, on a proxy that is stopped and empty at the start and at the end.

    `files` is a folder of the caller's: no rule reads from the daemon's own.
    """
    (files / "body.json").write_text("{}")
    har = str(files / "out.har")
    body = str(files / "body.json")
    throttle = {"latency_ms": 1, "downstream_bps": 10**9, "upstream_bps": 10**9, "only_selected_hosts": False}
    return [
        ("crab_ping", {}),
        ("crab_version", {}),
        ("crab_daemon_doctor", {}),
        ("crab_engine_set_listen_addr", {"listen_addr": "127.0.0.1:0"}),
        ("crab_proxy_status", {}),
        ("crab_proxy_start", {}),
        ("crab_proxy_info", {}),
        ("crab_engine_config_get", {}),
        ("crab_engine_set_inspect_enabled", {"enabled": True}),
        ("crab_engine_set_throttle", {"enabled": True, "selected_hosts": [], **throttle}),
        ("crab_engine_set_throttle_preset", {"preset": "off"}),
        ("crab_engine_set_client_allowlist", {"enabled": False, "ips": ["10.0.0.7"]}),
        ("crab_engine_set_transparent", {"enabled": False, "listen_port": 8889}),
        ("crab_engine_set_upstream", {"insecure_hosts": ["localhost"]}),
        ("crab_engine_set_policy", {"passes_through_pinned": False}),
        ("crab_ca_generate", {"replace": True}),
        ("crab_ca_status", {}),
        ("crab_engine_load_ca", {"cert_path": "{ca_cert}", "key_path": "{ca_key}"}),
        ("crab_env_snippet", {"shell": "sh"}),
        ("crab_capture_stop", {}),
        ("crab_capture_status", {}),
        ("crab_capture_start", {}),
        ("crab_rules_add_allow", {"matcher": "one.test"}),
        ("crab_rules_add_map_local_text", {"matcher": ONE, "text": '{"hello": "one"}', "content_type": "text/json"}),
        ("crab_rules_add_map_local_file", {"matcher": ONE + "file", "file_path": body, "status_code": 201}),
        ("crab_rules_add_map_remote", {"matcher": "http://two.test/", "destination": ONE}),
        ("crab_rules_add_status_rewrite", {"matcher": ONE, "to_status_code": 503, "from_status_code": 200}),
        ("crab_rules_dump", {}),
        ("crab_rules_list_allow", {}),
        ("crab_rules_list_map_local", {}),
        ("crab_rules_list_map_remote", {}),
        ("crab_rules_list_status_rewrite", {}),
        ("crab_rules_test", {"url": ONE}),
        ("crab_traffic_compose", {"url": ONE + "a?token=secret", "headers": {"Authorization": "Bearer abc"}}),
        ("crab_traffic_tail", {}),
        ("crab_traffic_get", {"request_id": "{request}"}),
        ("crab_traffic_replay", {"request_id": "{request}", "method": "POST", "body": "x"}),
        ("crab_logs_tail", {"limit": 5}),
        ("crab_traffic_search", {"host": "one.test", "status": "5xx"}),
        ("crab_traffic_wait", {"host": "one.test", "timeout_s": 5, "after_seq": 0}),
        ("crab_traffic_summary", {"host": "one.test"}),
        ("crab_traffic_show", {"request_id": "{request}", "fields": ["method", "status", "event", "mime"]}),
        ("crab_traffic_body", {"request_id": "{request}"}),
        ("crab_traffic_diff", {"first_id": "{request}", "second_id": "{request}"}),
        ("crab_traffic_as_curl", {"request_id": "{request}"}),
        ("crab_traffic_as_python", {"request_id": "{request}"}),
        ("crab_traffic_export_har", {"path": har, "overwrite": True}),
        ("crab_traffic_import_har", {"path": har}),
        ("crab_rules_mock", {"request_id": "{request}"}),
        ("crab_rules_add", {"kind": "delay", "matcher": ONE, "delay_ms": 1}),
        ("crab_rules_list", {"kind": "delay"}),
        ("crab_rules_update", {"id": "{rule}", "enabled": False}),
        ("crab_rules_move", {"id": "{rule}"}),
        ("crab_rules_remove", {"id": "{rule}"}),
        ("crab_breakpoints_list", {}),
        ("crab_breakpoints_wait", {"timeout_s": 0}),
        ("crab_breakpoints_resume", {"id": "b0"}),
        ("crab_rules_remove_allow", {"matcher": "one.test"}),
        ("crab_rules_remove_map_local", {"matcher": ONE, "source_kind": "text"}),
        ("crab_rules_remove_map_remote", {"matcher": "http://two.test/", "destination": ONE}),
        ("crab_rules_remove_status_rewrite", {"matcher": ONE, "from_status_code": 200, "to_status_code": 503}),
        ("crab_rpc", {"method": "engine.rules_dump"}),
        ("crab_rules_clear", {}),
        ("crab_logs_clear", {}),
        ("crab_proxy_stop", {}),
    ]


def known_paths(run_dir: Path) -> dict[str, str]:
    ca = run_dir / "state" / "ca"
    return {"ca_cert": str(ca / "ca.pem"), "ca_key": str(ca / "ca-key.pem")}


class Talker:
    """Asks in one version and fills in what earlier replies told."""

    def __init__(self, wire: Wire, version: str, known: dict[str, str]) -> None:
        self.wire = wire
        self.version = version
        self.known = dict(known)

    async def open(self) -> Json:
        if self.version == "2026-07-28":
            return {}
        return await self.wire.ask(initialize(self.version))

    async def ask(self, message: Json) -> Json:
        return await self.wire.ask(stateless(message) if self.version == "2026-07-28" else message)

    async def call(self, name: str, arguments: Json) -> Json:
        filled = {
            key: re.sub(r"^\{(\w+)\}$", lambda found: self.known[found[1]], value) if isinstance(value, str) else value
            for key, value in arguments.items()
        }
        reply = await self.ask(tool_call(name, filled, name))
        told = (reply.get("result") or {}).get("structuredContent") or {}
        if name == "crab_traffic_compose":
            self.known["request"] = told["request_id"]
        if name == "crab_rules_add":
            self.known["rule"] = told["id"]
        return reply


def content(reply: Json) -> Any:
    """What §8.1 compares: id, structuredContent, isError, error. The text is the same content once more."""
    result = reply.get("result", {})
    texts = [part["text"] for part in result.get("content", [])]
    if not result.get("isError") and "error" not in reply:
        assert [json.loads(text) for text in texts] == [result["structuredContent"]]
    return masked({**reply, "result": {**result, "content": []}})


async def talk(wire: Wire, version: str, steps: list[Step], known: dict[str, str]) -> list[Json]:
    """The whole conversation; the first two replies are those to `initialize` and `tools/list`."""
    talker = Talker(wire, version, known)
    replies = [await talker.open(), await talker.ask({"jsonrpc": "2.0", "id": 0, "method": "tools/list"})]
    return replies + [await talker.call(name, arguments) for name, arguments in steps]
