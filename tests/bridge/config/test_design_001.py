"""Every field of `mcp.json` in design 001, §5 and §14.2; the ids name the line of the design."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dari.bridge.config.profile import Profile, RestartSettings
from tests.support.bridge_config import World, complaint, contents, http, one, stdio

FIELDS: list[Any] = [
    pytest.param({"id": "s"}, lambda p: p.id, "s", id="§5 servers[].id"),
    pytest.param({"baseUrl": "https://mcp.example.com:3000"}, lambda p: http(p).url, "https://mcp.example.com:3000",
                 id="§5 servers[].baseUrl"),
    pytest.param({"apiKey": "${CREWX_MCP_KEY}"}, lambda p: (http(p).auth.type, http(p).auth.token.reveal()),
                 ("bearer", "${CREWX_MCP_KEY}"), id="§5 servers[].apiKey"),
    pytest.param({"headers": {"User-Agent": "CrewX/1.0"}}, lambda p: http(p).headers["User-Agent"].reveal(),
                 "CrewX/1.0", id="§5 servers[].headers"),
    pytest.param({"timeoutMs": 300000}, lambda p: p.timeout_ms, 300_000, id="§5 servers[].timeoutMs"),
    pytest.param({}, lambda p: p.timeout_ms, 15_000, id="§5 timeoutMs, default 15000"),
    pytest.param({"default": True}, lambda p: p.is_default, True, id="§5 servers[].default"),
    pytest.param({}, lambda p: p.kind, "http", id="§14.1 kind, default http"),
    pytest.param({"kind": "http"}, lambda p: p.kind, "http", id="§14.1 kind http"),
    pytest.param({"kind": "stdio", "command": "gh"}, lambda p: p.kind, "stdio", id="§14.1 kind stdio"),
    pytest.param({"kind": "stdio", "command": "gh"}, lambda p: stdio(p).command, "gh", id="§14.2 command"),
    pytest.param({"command": "gh", "args": ["copilot", "mcp", "serve"]}, lambda p: stdio(p).args,
                 ("copilot", "mcp", "serve"), id="§14.2 args"),
    pytest.param({"command": "gh", "cwd": "/path/to/project"}, lambda p: stdio(p).cwd, "/path/to/project",
                 id="§14.2 cwd"),
    pytest.param({"command": "gh", "env": {"EXAMPLE": "${ENV_EXAMPLE}"}},
                 lambda p: stdio(p).env["EXAMPLE"].reveal(), "${ENV_EXAMPLE}", id="§14.2 env"),
    pytest.param({"command": "gh", "initTimeoutMs": 9000}, lambda p: p.init_timeout_ms, 9000,
                 id="§14.2 initTimeoutMs"),
    pytest.param({"command": "gh", "idleExitMs": 200000}, lambda p: p.idle_exit_ms, 200_000, id="§14.2 idleExitMs"),
    pytest.param({"command": "gh", "restart": {"policy": "on-failure", "maxRestarts": 5, "backoffMs": 1000}},
                 lambda p: stdio(p).restart, RestartSettings(policy="on-failure", max_restarts=5, backoff_ms=1000),
                 id="§14.2 restart"),
    *[pytest.param({"command": "gh", "restart": {"policy": policy}}, lambda p: stdio(p).restart.policy, policy,
                   id=f"§14.2 restart.policy {policy}") for policy in ("never", "on-failure", "always")],
    pytest.param({"keepAlive": False}, lambda p: http(p).keep_alive, False, id="§14.2 keepAlive"),
    pytest.param({"toolsCacheTtlMs": 61000}, lambda p: p.tools_cache_ttl_ms, 61_000, id="§14.2 toolsCacheTtlMs"),
    pytest.param({"managed": True}, lambda p: p.notes, (), id="§16.3 managed"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "look", "value"), FIELDS)
def test_a_field_of_the_design_is_read(entry: dict[str, Any], look: Callable[[Profile], Any], value: Any) -> None:
    assert look(one(entry)) == value


WRONG: list[Any] = [
    pytest.param({"baseUrl": "http://h"}, "field 'id' is missing", id="§5 id is required"),
    pytest.param({"id": "s"}, "baseUrl: is missing", id="§5 baseUrl is required"),
    pytest.param({"id": "s", "baseUrl": "ftp://h"}, "baseUrl: must be an http", id="§5 baseUrl is HTTP"),
    pytest.param({"id": "s", "kind": "stdio"}, "command: is missing", id="§14.2 command is required"),
    pytest.param({"id": "s", "baseUrl": "http://h", "timeoutMs": "fast"}, "timeoutMs: expected int, got str",
                 id="§5 timeoutMs is a number"),
    pytest.param({"id": "s", "baseUrl": "http://h", "timeoutMs": 0}, "timeoutMs: expected int >= 1",
                 id="§5 timeoutMs is positive"),
    pytest.param({"id": "s", "command": "x", "restart": {"policy": "sometimes"}}, "restart.policy: invalid enum value",
                 id="§14.2 restart.policy is one of three"),
    pytest.param({"id": "s", "kind": "ws", "baseUrl": "http://h"}, "kind: invalid enum value", id="§14.1 kind"),
    pytest.param({"id": "s", "kind": "http", "command": "x"}, "has no command", id="§14.2 command is stdio only"),
    pytest.param({"id": "a/b", "baseUrl": "http://h"}, "a name has no '/'", id="§16.4 serverId/toolName"),
    pytest.param({"id": "s", "command": "x", "baseUrl": "http://h"}, "not both", id="§14.1 one kind"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "fact"), WRONG)
def test_what_the_design_forbids_is_broken(entry: dict[str, Any], fact: str) -> None:
    assert fact in complaint(entry)[0]


def test_the_examples_of_the_design_are_read_as_they_stand() -> None:
    first = contents(
        """{
          "$schema": "https://example.com/schemas/crewx.mcp.json",
          "version": "1",
          "servers": [
            { "id": "prod-backend", "baseUrl": "https://mcp.example.com:3000", "apiKey": "${CREWX_MCP_KEY}",
              "headers": { "User-Agent": "CrewX/1.0" }, "timeoutMs": 300000, "default": true }
          ]
        }"""
    )
    second = contents(
        """{
          "servers": [
            { "id": "crewx-tools", "kind": "stdio", "command": "crewx-tools", "args": ["serve"], "cwd": "${PWD}",
              "env": { "CREWX_ENV": "dev" }, "initTimeoutMs": 10000, "idleExitMs": 300000,
              "restart": { "policy": "on-failure", "maxRestarts": 3, "backoffMs": 2000 } },
            { "id": "prod-backend", "kind": "http", "baseUrl": "https://mcp.example.com:3000",
              "apiKey": "${CREWX_MCP_KEY}", "keepAlive": true, "toolsCacheTtlMs": 60000 }
          ]
        }"""
    )
    assert (first.broken, first.problems, second.broken, second.problems) == ((), (), (), ())
    assert [profile.id for profile in (*first.profiles, *second.profiles)] == [
        *("prod-backend", "crewx-tools", "prod-backend"),
    ]


@pytest.mark.parametrize(
    ("base", "endpoint"),
    [
        ("https://h:3000", "https://h:3000/mcp"),
        ("https://h:3000/", "https://h:3000/mcp"),
        ("https://h:3000/mcp", "https://h:3000/mcp"),
        ("https://h/api/mcp/", "https://h/api/mcp"),
        ("https://h/api?v=1", "https://h/api/mcp?v=1"),
        ("${BASE}", "https://from.env/mcp"),
        ("${BASE}/mcp", "https://from.env/mcp"),
    ],
)
def test_a_base_url_counts_with_and_without_mcp(world: World, base: str, endpoint: str) -> None:
    world.environ["BASE"] = "https://from.env"
    world.user({"servers": [{"id": "s", "baseUrl": base}]})
    assert http(world.resolve("s").profile).url == endpoint


def test_a_base_url_from_the_environment_may_hold_mcp_already(world: World) -> None:
    world.environ["BASE"] = "https://from.env/mcp"
    world.user({"servers": [{"id": "s", "baseUrl": "${BASE}"}]})
    assert http(world.resolve("s").profile).url == "https://from.env/mcp"


def test_the_last_default_of_a_file_counts(world: World) -> None:
    server = {"baseUrl": "http://h", "default": True}
    world.user({"servers": [{"id": "a", **server}, {"id": "b", **server}, {"id": "c", "baseUrl": "http://h"}]})
    assert world.load().default_id == "b"
