"""What reference §7.2 adds to the designs, field by field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dari.bridge.config.profile import (
    AllowedPath,
    CircuitSettings,
    GatewaySettings,
    LimitSettings,
    NetworkSettings,
    Profile,
    RestartSettings,
    ServerSet,
    ToolRules,
)
from tests.support.bridge_config import World, complaint, contents, http, one, stdio

CHILD = {"command": "x"}
OAUTH = {"type": "oauth2", "clientMetadataUrl": "https://c", "keyring": False, "scopes": "a b", "callbackPort": 7777}

FIELDS: list[Any] = [
    pytest.param({"auth": {"type": "none"}}, lambda p: http(p).auth.type, "none", id="auth none"),
    pytest.param({"auth": {"type": "bearer", "token": "${T}"}}, lambda p: http(p).auth.token.reveal(), "${T}",
                 id="auth bearer"),
    pytest.param({"auth": {"type": "header", "header": "X-Key", "token": "${T}", "prefix": "Key "}},
                 lambda p: (http(p).auth.header, http(p).auth.prefix), ("X-Key", "Key "), id="auth header"),
    pytest.param({"auth": OAUTH}, lambda p: (http(p).auth.type, http(p).auth.client_metadata_url,
                 http(p).auth.uses_keyring, http(p).auth.scopes, http(p).auth.callback_port),
                 ("oauth2", "https://c", False, ("a", "b"), 7777), id="auth oauth2"),
    *[pytest.param({"protocol": value}, lambda p: p.protocol, value, id=f"protocol {value}")
      for value in ("auto", "legacy", "2026-07-28")],
    *[pytest.param({"isolation": value}, lambda p: p.isolation, value, id=f"isolation {value}")
      for value in ("shared", "per-client", "per-call")],
    pytest.param({"fallbackUrl": "http://spare"}, lambda p: http(p).fallback_url, "http://spare", id="fallbackUrl"),
    pytest.param({**CHILD, "restart": {"windowMs": 1000}}, lambda p: stdio(p).restart, RestartSettings(window_ms=1000),
                 id="restart.windowMs"),
    pytest.param({**CHILD, "restart": "always"}, lambda p: stdio(p).restart, RestartSettings(policy="always"),
                 id="restart as a word"),
    pytest.param({**CHILD, "inheritEnv": ["LANG"]}, lambda p: stdio(p).inherit_env, ("LANG",), id="inheritEnv"),
    pytest.param({**CHILD, "allowedPaths": [{"path": "${PWD}", "mode": "rw"}, {"path": "/usr", "mode": "ro"}, "/x"]},
                 lambda p: stdio(p).allowed_paths,
                 (AllowedPath("${PWD}", "rw"), AllowedPath("/usr", "ro"), AllowedPath("/x", "rw")), id="allowedPaths"),
    pytest.param(CHILD, lambda p: stdio(p).allowed_paths, None, id="allowedPaths absent"),
    pytest.param({**CHILD, "allowedPaths": []}, lambda p: stdio(p).allowed_paths, (), id="allowedPaths empty"),
    *[pytest.param({**CHILD, "network": value}, lambda p: stdio(p).network, NetworkSettings(value),
                   id=f"network {value}")
      for value in ("none", "loopback", "all")],
    pytest.param({**CHILD, "network": "api.example.com:443, [::1]:80"}, lambda p: stdio(p).network,
                 NetworkSettings("listed", ("api.example.com:443", "[::1]:80")), id="network host:port"),
    pytest.param({**CHILD, "network": ["a:1", "b:*"]}, lambda p: stdio(p).network,
                 NetworkSettings("listed", ("a:1", "b:*")),
                 id="network as a list"),
    *[pytest.param({**CHILD, "sandbox": value}, lambda p: stdio(p).sandbox, value, id=f"sandbox {value}")
      for value in ("auto", "enforce", "off")],
    pytest.param({**CHILD, "rlimits": {"as": "1G", "nofile": 256, "fsize": "10MB"}}, lambda p: stdio(p).rlimits,
                 {"as": 1 << 30, "nofile": 256, "fsize": 10 << 20}, id="rlimits"),
    pytest.param({"tools": {"allow": ["a*"], "deny": ["ab"], "rename": {"a": "b"}, "describe": {"a": "…"},
                            "confirm": ["*delete*"], "pin": "strict"}}, lambda p: p.tools,
                 ToolRules(allow=("a*",), deny=("ab",), rename={"a": "b"}, describe={"a": "…"},
                           confirm=("*delete*",), pin="strict"), id="tools"),
    pytest.param({"limits": {"rps": 5, "burst": 10, "concurrency": 4, "maxResultBytes": 4194304}},
                 lambda p: p.limits,
                 LimitSettings(rps=5, burst=10, concurrency=4, max_result_bytes=4194304), id="limits"),
    pytest.param({"circuit": {"failures": 5, "recoverMs": 60000}}, lambda p: p.circuit, CircuitSettings(),
                 id="circuit"),
    pytest.param({"disabled": True}, lambda p: p.is_enabled, False, id="disabled"),
    pytest.param({"enabled": False}, lambda p: p.is_enabled, False, id="enabled"),
    pytest.param({**CHILD, "url": None, "headers": None}, lambda p: p.kind, "stdio", id="null is absent"),
    pytest.param({**CHILD, "envFile": ".env"}, lambda p: stdio(p).env_file, ".env", id="envFile"),
    pytest.param({"x-mine": 1, "_note": "…"}, lambda p: p.notes, (), id="x- and _ are yours"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "look", "value"), FIELDS)
def test_an_extension_is_read(entry: dict[str, Any], look: Callable[[Profile], Any], value: Any) -> None:
    assert look(one(entry)) == value


WRONG: list[Any] = [
    pytest.param({**CHILD, "network": "example.com"}, "network: each entry must be host:port", id="network"),
    pytest.param({**CHILD, "network": "h:99999"}, "must be host:port", id="port"),
    pytest.param({**CHILD, "rlimits": {"ass": 1}}, "rlimits.ass: is not a known limit", id="rlimits name"),
    pytest.param({**CHILD, "rlimits": {"as": "big"}}, "rlimits.as: must be a size", id="rlimits size"),
    pytest.param({**CHILD, "allowedPaths": [{"path": "/x", "mode": "w"}]}, "allowedPaths[0].mode", id="mode"),
    pytest.param({**CHILD, "allowedPaths": ["/a"], "allowed_paths": ["/b"]}, "contradicts 'allowedPaths'", id="two"),
    pytest.param({**CHILD, "restart": "always", "restart_on_crash": False}, "contradicts 'restart'", id="restarts"),
    pytest.param({"tools": {"rename": {"a": "c", "b": "c"}}}, "two tools would be called 'c'", id="rename"),
    pytest.param({"limits": {"rps": 0}}, "limits.rps", id="rps"),
    pytest.param({"auth": {"type": "bearer"}}, "auth.token: is missing", id="bearer without token"),
    pytest.param({"auth": {"type": "oauth2"}, "apiKey": "k"}, "contradicts 'apiKey'", id="two credentials"),
    pytest.param({"auth": {}, "oauth": {}}, "oauth: contradicts 'auth'", id="auth and oauth"),
    pytest.param({"disabled": True, "enabled": True}, "enabled: contradicts 'disabled'", id="on and off"),
    pytest.param({"kind": "http", "type": "sse"}, "type: contradicts 'kind'", id="two kinds"),
    pytest.param({"url": "http://other"}, "url: contradicts 'baseUrl'", id="two addresses"),
    pytest.param({"headers": {"bad name": "x"}}, 'headers["bad name"]: must be the name', id="header name"),
    pytest.param({**CHILD, "args": ["a\0b"]}, "args[0]: holds a NUL", id="NUL"),
    pytest.param({**CHILD, "env": {"A=B": "x"}}, 'env["A=B"]: must be the name of a variable', id="variable name"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "fact"), WRONG)
def test_a_contradiction_or_a_bad_value_breaks_the_server(entry: dict[str, Any], fact: str) -> None:
    where = {} if "command" in entry else {"baseUrl": "http://h"}
    assert fact in complaint({"id": "s", **where, **entry})[0]


def test_defaults_hold_where_a_server_says_nothing() -> None:
    defaults = {
        "timeoutMs": 1,
        "initTimeoutMs": 2,
        "idleExitMs": 3,
        "toolsCacheTtlMs": 4,
        "restart": {"policy": "always", "maxRestarts": 9},
        "isolation": "per-call",
        "sandbox": "enforce",
        "limits": {"rps": 2},
    }
    servers = [{"id": "a", "command": "x"}, {"id": "b", "command": "x", "timeoutMs": 7, "restart": {"maxRestarts": 1}}]
    first, second = contents({"defaults": defaults, "servers": servers}).profiles
    assert (first.timeout_ms, first.init_timeout_ms, first.idle_exit_ms, first.tools_cache_ttl_ms) == (1, 2, 3, 4)
    assert (first.isolation, stdio(first).sandbox, first.limits.rps) == ("per-call", "enforce", 2)
    assert stdio(first).restart == RestartSettings(policy="always", max_restarts=9)
    assert (second.timeout_ms, stdio(second).restart) == (7, RestartSettings(policy="always", max_restarts=1))


def test_broken_defaults_break_every_server_of_the_file() -> None:
    """A mistyped `sandbox` must not mean: no sandbox."""
    found = contents({"defaults": {"sandbox": "enforced"}, "servers": [{"id": "a", "command": "x"}]})
    assert found.profiles == ()
    assert "defaults.sandbox: invalid enum value" in found.broken[0].message
    assert found.broken[0].hint == "use one of: auto, enforce, off"


def test_sets_and_the_gateway_are_read() -> None:
    found = contents(
        {
            "profiles": {"dev": {"servers": ["fs", "crewx-tools"], "mode": "search"}, "all": {}},
            "gateway": {
                "listen": "127.0.0.1:7431",
                "unix": False,
                "auth": {"tokens": "keyring"},
                "separator": "-",
                "prefix": "multi",
                "mode": "search",
                "audit": False,
                "otel": None,
            },
        }
    )
    assert found.sets == (ServerSet("dev", ("fs", "crewx-tools"), "search"), ServerSet("all"))
    assert found.gateway == GatewaySettings(
        listen="127.0.0.1:7431", unix=False, tokens="keyring", separator="-", prefix="multi", mode="search", audit=False
    )


def test_a_project_cannot_set_the_gateway(world: World) -> None:
    world.project({"gateway": {"listen": "0.0.0.0:1"}})
    world.book.trust()
    catalog = world.load()
    assert catalog.gateway == GatewaySettings()
    assert "gateway: is not used in a project" in catalog.problems[0]


def test_servers_of_other_programs_join_in_when_the_file_imports_them(world: World) -> None:
    (world.home / ".cursor").mkdir()
    (world.home / ".cursor/mcp.json").write_text('{"mcpServers": {"fs": {"command": "a"}, "git": {"command": "b"}}}')
    world.user({"imports": ["cursor"], "servers": [{"id": "fs", "command": "mine"}]})
    catalog = world.load()
    assert stdio(catalog.find("fs").profile).command == "mine"  # type: ignore[arg-type]
    git = catalog.find("git")
    assert (git.source.program, git.source.layer, git.source.line) == ("cursor", "import", 1)


def test_an_unknown_program_in_imports_is_told() -> None:
    assert "imports" in contents({"imports": ["emacs"]}).problems[0]


def test_a_server_is_confined_when_it_asks_for_a_wall() -> None:
    assert not stdio(one(CHILD)).is_confined
    assert stdio(one({**CHILD, "allowedPaths": ["/x"]})).is_confined
    assert stdio(one({**CHILD, "allowedPaths": []})).is_confined
    assert stdio(one({**CHILD, "network": "none"})).is_confined
    assert not stdio(one({**CHILD, "network": "none", "sandbox": "off"})).is_confined
