"""The 32 tools as `reference/proxy.md` §1.6 has them: name, arguments with type, range and default, result."""

from __future__ import annotations

from typing import Any, NamedTuple


class Argument(NamedTuple):
    name: str
    type: str
    required: bool = False
    least: int | None = None
    most: int | None = None
    default: Any = None
    is_clamped: bool = False
    choices: tuple[str, ...] = ()


class Row(NamedTuple):
    arguments: tuple[Argument, ...]
    scope: str
    result: tuple[str, ...]
    works: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    """Arguments with which it succeeds on a proxy that has just been made."""


def need(name: str, type: str = "string", least: int | None = None, most: int | None = None) -> Argument:
    return Argument(name, type, True, least, most)


def limit(name: str, most: int, default: int) -> Argument:
    return Argument(name, "integer", False, 1, most, default, True)


MATCHER = need("matcher")
AFTER = Argument("after_seq", "integer", False, 0, None, 0)
HEADERS = Argument("include_headers", "boolean", default=True)
SAMPLE = Argument("include_body_sample_b64", "boolean", default=False)
STATUS = Argument("status_code", "integer", False, 100, 599, 200)
CONTENT_TYPE = Argument("content_type", "string")
OK, REMOVED = ("ok",), ("ok", "removed")
ONE = {"matcher": "http://one.test/"}

TOOLS: dict[str, Row] = {
    "crab_ping": Row((), "read", ("pong",)),
    "crab_version": Row((), "read", ("engine", "protocol")),
    "crab_proxy_status": Row((), "read", ("status",)),
    "crab_proxy_start": Row((), "control", ("status",)),
    "crab_proxy_stop": Row((), "control", ("status",)),
    "crab_daemon_doctor": Row(
        (),
        "read",
        ("socket", "state_db", "helper_xpc", "ca", "launch_agent", "principal_verification", "running", "capture"),
    ),
    "crab_engine_config_get": Row(
        (), "read", ("running", "listen_addr", "inspect", "throttle", "client_allowlist", "transparent", "ca")
    ),
    "crab_engine_set_listen_addr": Row((need("listen_addr"),), "control", OK, {"listen_addr": "127.0.0.1:0"}),
    "crab_engine_set_inspect_enabled": Row((need("enabled", "boolean"),), "control", OK, {"enabled": True}),
    "crab_engine_set_throttle": Row(
        (
            need("enabled", "boolean"),
            need("latency_ms", "integer", 0),
            need("downstream_bps", "integer", 0),
            need("upstream_bps", "integer", 0),
            need("only_selected_hosts", "boolean"),
            need("selected_hosts", "array"),
        ),
        "control",
        OK,
        {
            "enabled": False,
            "latency_ms": 0,
            "downstream_bps": 0,
            "upstream_bps": 0,
            "only_selected_hosts": False,
            "selected_hosts": [],
        },
    ),
    "crab_engine_set_client_allowlist": Row(
        (need("enabled", "boolean"), need("ips", "array")), "control", OK, {"enabled": True, "ips": ["10.0.0.7"]}
    ),
    "crab_engine_set_transparent": Row(
        (need("enabled", "boolean"), need("listen_port", "integer", 1, 65535)),
        "control",
        OK,
        {"enabled": False, "listen_port": 8889},
    ),
    "crab_engine_load_ca": Row((need("cert_path"), need("key_path")), "control", OK),
    "crab_logs_tail": Row((AFTER, limit("limit", 1000, 200)), "read", ("next_seq", "records")),
    "crab_traffic_tail": Row(
        (AFTER, limit("limit", 1000, 400), limit("max_entries", 500, 100), HEADERS, SAMPLE),
        "read",
        ("next_seq", "records_scanned", "entry_count", "entries"),
    ),
    "crab_traffic_get": Row(
        (need("request_id"), AFTER, limit("limit", 2000, 1000), HEADERS, SAMPLE),
        "read",
        ("next_seq", "records_scanned", "request_id", "entry"),
    ),
    "crab_rules_dump": Row((), "read", ("allowlist", "map_local", "map_remote", "status_rewrite")),
    "crab_rules_list_allow": Row((), "read", ("allowlist",)),
    "crab_rules_list_map_local": Row((), "read", ("map_local",)),
    "crab_rules_list_map_remote": Row((), "read", ("map_remote",)),
    "crab_rules_list_status_rewrite": Row((), "read", ("status_rewrite",)),
    "crab_rules_clear": Row((), "rules.write", OK),
    "crab_rules_add_allow": Row((MATCHER,), "rules.write", OK, ONE),
    "crab_rules_remove_allow": Row((MATCHER,), "rules.write", REMOVED, ONE),
    "crab_rules_add_map_local_text": Row(
        (MATCHER, need("text"), STATUS, CONTENT_TYPE), "rules.write", OK, {**ONE, "text": "hi"}
    ),
    "crab_rules_add_map_local_file": Row((MATCHER, need("file_path"), STATUS, CONTENT_TYPE), "rules.write", OK),
    "crab_rules_remove_map_local": Row(
        (
            MATCHER,
            Argument("source_kind", "string", choices=("file", "text")),
            Argument("source_value", "string"),
        ),
        "rules.write",
        REMOVED,
        ONE,
    ),
    "crab_rules_add_map_remote": Row(
        (MATCHER, need("destination")), "rules.write", OK, {**ONE, "destination": "http://two.test/"}
    ),
    "crab_rules_remove_map_remote": Row((MATCHER, Argument("destination", "string")), "rules.write", REMOVED, ONE),
    "crab_rules_add_status_rewrite": Row(
        (
            MATCHER,
            need("to_status_code", "integer", 100, 599),
            Argument("from_status_code", "integer", False, -1, 599, -1),
        ),
        "rules.write",
        OK,
        {**ONE, "to_status_code": 503},
    ),
    "crab_rules_remove_status_rewrite": Row(
        (
            MATCHER,
            Argument("from_status_code", "integer", False, -1, 599),
            Argument("to_status_code", "integer", False, 100, 599),
        ),
        "rules.write",
        REMOVED,
        ONE,
    ),
    "crab_rpc": Row(
        (need("method"), Argument("params", "object", default={})), "read", ("pong",), {"method": "system.ping"}
    ),
}

READ_ONLY = {name for name, row in TOOLS.items() if row.scope == "read"} - {"crab_rpc"}
