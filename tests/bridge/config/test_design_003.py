"""The YAML of design 003 (AgentHub): `StdioConfig`, `Endpoint`, and its security rules."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dari.bridge.config.loader import read_contents
from dari.bridge.config.profile import AllowedPath, Profile, RestartSettings
from dari.errors import InvalidInput
from dari.installation import install_extra
from tests.support.bridge_config import World, contents, http, put, stdio

EXAMPLE = """\
mcp:
  endpoints:
    - name: "filesystem-server"
      transport_type: "stdio"
      stdio_config:
        command: "npx"
        args:
          - "@modelcontextprotocol/server-filesystem"
          - "/Users/user/Documents"
        env: {}
        cwd: ""
        allowed_paths:
          - "/Users/user/Documents"
          - "/Users/user/Projects"
        restart_on_crash: true
        max_restart_attempts: 3
"""


def profile(text: str) -> Profile:
    found = contents(text, "mcp.yaml")
    assert found.broken == () and found.problems == ()
    return found.profiles[0]


@pytest.mark.parametrize(
    ("look", "value"),
    [
        pytest.param(lambda p: p.id, "filesystem-server", id="name"),
        pytest.param(lambda p: p.kind, "stdio", id="transport_type"),
        pytest.param(lambda p: stdio(p).command, "npx", id="stdio_config.command"),
        pytest.param(
            lambda p: stdio(p).args,
            ("@modelcontextprotocol/server-filesystem", "/Users/user/Documents"),
            id="stdio_config.args",
        ),
        pytest.param(lambda p: stdio(p).env, {}, id="stdio_config.env"),
        pytest.param(lambda p: stdio(p).cwd, None, id="stdio_config.cwd"),
        pytest.param(
            lambda p: stdio(p).allowed_paths,
            (AllowedPath("/Users/user/Documents"), AllowedPath("/Users/user/Projects")),
            id="stdio_config.allowed_paths",
        ),
        pytest.param(
            lambda p: stdio(p).restart,
            RestartSettings(policy="on-failure", max_restarts=3),
            id="stdio_config.restart_on_crash, max_restart_attempts",
        ),
        pytest.param(lambda p: p.source.line, 3, id="the line it stands in"),
    ],
)
def test_the_example_of_the_design_is_read(look: Callable[[Profile], Any], value: Any) -> None:
    assert look(profile(EXAMPLE)) == value


def test_restart_on_crash_false_means_never() -> None:
    found = profile(EXAMPLE.replace("restart_on_crash: true", "restart_on_crash: false"))
    assert stdio(found).restart.policy == "never"


def test_the_aliases_count_in_a_json_server_too() -> None:
    found = contents(
        {
            "mcpServers": {
                "s": {
                    "command": "x",
                    "transport_type": "stdio",
                    "allowed_paths": ["/data"],
                    "restart_on_crash": True,
                    "max_restart_attempts": 7,
                }
            }
        }
    ).profiles[0]
    assert stdio(found).allowed_paths == (AllowedPath("/data"),)
    assert stdio(found).restart == RestartSettings(policy="on-failure", max_restarts=7)


def test_an_http_endpoint_with_its_auth_config_is_read() -> None:
    text = """\
mcp:
  endpoints:
    - name: api
      url: https://h/mcp
      type: mcp
      transport_type: http
      enabled: false
      fallback_url: https://spare/mcp
      auth_config: {auth_type: api_key, api_key: "${KEY}", api_key_header: X-Key, api_key_prefix: "Key "}
      registered_at: 2026-02-07
"""
    found = contents(text, "mcp.yml").profiles[0]
    auth = http(found).auth
    assert auth.token is not None
    assert (auth.type, auth.header, auth.prefix, auth.token.reveal()) == ("header", "X-Key", "Key ", "${KEY}")
    assert (http(found).fallback_url, found.is_enabled) == ("https://spare/mcp", False)
    assert found.notes == ("'registered_at' is not known here and is not used",)


@pytest.mark.parametrize("path", [".", "..", "data", "./data", "/data/../etc", "../x"])
def test_relative_allowed_paths_are_refused(path: str) -> None:
    """Design 003, Security: 상대 경로 금지."""
    found = contents({"servers": [{"id": "s", "command": "x", "allowedPaths": ["/ok", path]}]})
    assert found.profiles == ()
    assert "servers[0].allowedPaths[1]: an allowed path" in found.broken[0].message


def test_a_reference_cannot_smuggle_a_relative_path_in(world: World) -> None:
    world.environ["WHERE"] = "../etc"
    world.user({"servers": [{"id": "s", "command": "x", "allowedPaths": ["${WHERE}"]}]})
    with pytest.raises(InvalidInput, match=r"allowedPaths\.0"):
        world.resolve("s")


def test_yaml_errors_name_the_line() -> None:
    found = contents("mcp:\n  endpoints:\n    - name: [\n", "mcp.yaml")
    assert not found.is_readable
    assert found.problems[0].startswith("/somewhere/mcp.yaml:4:1:")


@pytest.mark.parametrize(
    "text",
    [
        "mcp: !!python/object/apply:os.system ['true']\n",
        "mcp: &m {endpoints: *m}\n",
    ],
    ids=["a tag that would run code", "a loop"],
)
def test_yaml_never_builds_objects_or_runs_away(text: str) -> None:
    found = contents(text, "mcp.yaml")
    assert not found.is_readable
    assert found.problems[0].startswith("/somewhere/mcp.yaml:1")


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "aliases expand without end" in contents("\n".join(lines), "mcp.yaml").problems[0]


def test_without_pyyaml_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    found = read_contents(EXAMPLE.encode(), Path("/x/mcp.yaml"), "user")
    assert install_extra("bridge") in found.problems[0]


def test_a_yaml_file_beside_the_json_one_is_read_after_it(world: World) -> None:
    world.user({"servers": [{"id": "filesystem-server", "baseUrl": "http://h"}]})
    put(world.user_file.with_name("mcp.yaml"), EXAMPLE)
    listed = world.load().find("filesystem-server")
    assert listed.kind == "http"
    assert [source.file for source in listed.shadows] == [str(world.user_file.with_name("mcp.yaml"))]
