"""A profile as a form and back: what the form does not show, and what it does not know, is still there after a save."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from dari.bridge.config.form import FormPath, FormValue, ServerForm, apply_form, to_form
from dari.bridge.config.loader import read_entry
from dari.bridge.config.profile import HttpSettings, StdioSettings
from dari.errors import InvalidInput

FILE = Path("/home/ann/.config/crewx/mcp.json")
STDIO: dict[str, Any] = {
    "command": "npx",
    "args": ["-y", "some-server", "--api-key=sk-abcdefghijklmnop1234", "/data"],
    "env": {"GITHUB_TOKEN": "ghp_secret", "LEVEL": "debug", "HOST": "${HOST}", "KEY": "${MY_KEY}", "NOTE": "a $${b} c"},
    "inheritEnv": ["LANG"],
    "cwd": "/work",
    "allowedPaths": ["/data", {"path": "/usr/share", "mode": "ro"}],
    "network": "loopback",
    "restart": {"policy": "always", "maxRestarts": 7, "backoffMs": 5},
    "tools": {"deny": ["x_*"]},
    "limits": {"rps": 3},
    "description": "does things",
}
HTTP: dict[str, Any] = {
    "url": "https://user:pw@host.example/mcp?key=123",
    "headers": {"X-Team": "blue", "Authorization": "Bearer abc"},
    "apiKey": "secret-key",
    "timeoutMs": 99,
}


def saved(entry: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The entry after a person opened its form, changed this, and saved it."""
    profile = read_entry("one", entry, FILE)
    return apply_form(structs.replace(to_form(profile), **changes), entry, profile)


def test_a_secret_never_stands_in_a_form() -> None:
    for entry in (STDIO, HTTP):
        shown = str(to_form(read_entry("one", entry, FILE)))
        assert not [
            secret for secret in ("ghp_", "sk-abc", "user:pw", "key=123", "abc'", "secret-key") if secret in shown
        ]


def test_values_are_literal_references_passed_through_or_kept() -> None:
    form = to_form(read_entry("one", STDIO, FILE))
    assert {one.name: (one.kind, one.value) for one in form.env} == {
        "GITHUB_TOKEN": ("kept", ""),
        "LEVEL": ("literal", "debug"),
        "HOST": ("reference", "${HOST}"),
        "KEY": ("reference", "${MY_KEY}"),
        "NOTE": ("literal", "a ${b} c"),
        "LANG": ("inherit", ""),
    }


@pytest.mark.parametrize("entry", [STDIO, HTTP], ids=["stdio", "http"])
def test_a_form_that_is_saved_unchanged_changes_nothing(entry: dict[str, Any]) -> None:
    assert saved(entry) == entry


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "x"},
        {"command": "x", "type": "stdio", "disabled": True},
        {"command": "x", "network": ["a.example:443"], "sandbox": "enforce", "rlimits": {"nofile": 9}},
        {"command": "x", "allowedPaths": []},
        {"url": "https://h/mcp", "type": "sse"},
        {"baseUrl": "https://h", "fallbackUrl": "https://g/mcp", "auth": {"type": "oauth2", "scopes": ["a"]}},
        {"url": "https://${HOST}/mcp", "auth": {"type": "header", "header": "X-Key", "token": "t0ken"}},
    ],
)
def test_other_entries_survive_a_save_too(entry: dict[str, Any]) -> None:
    before, after = read_entry("one", entry, FILE), read_entry("one", saved(entry), FILE)
    assert after == before and saved(entry).keys() >= entry.keys() - {"disabled"}


def test_an_entry_of_design_003_keeps_its_meaning() -> None:
    entry = {
        "transport_type": "stdio",
        "stdio_config": {
            "command": "npx",
            "args": ["@modelcontextprotocol/server-filesystem", "/Users/user/Documents"],
            "allowed_paths": ["/Users/user/Documents", "/Users/user/Projects"],
            "restart_on_crash": False,
            "max_restart_attempts": 5,
        },
    }
    assert read_entry("one", saved(entry), FILE).connection == read_entry("one", entry, FILE).connection


def test_a_kept_secret_moves_along_with_its_argument() -> None:
    form = to_form(read_entry("one", STDIO, FILE))
    args = saved(STDIO, args=["--first", form.args[2], "/other"])["args"]
    assert args == ["--first", "--api-key=sk-abcdefghijklmnop1234", "/other"]


def test_what_a_person_writes_is_what_the_server_gets() -> None:
    env = [FormValue("A", "literal", "costs ${5}"), FormValue("B", "reference", "HOME"), FormValue("C", "inherit")]
    paths = [FormPath("/a"), FormPath("/b", "ro")]
    entry = apply_form(ServerForm(name="n", command=" x ", args=["1", ""], env=env, allowed_paths=paths), {})
    assert entry == {
        "command": "x",
        "args": ["1", ""],
        "env": {"A": "costs $${5}", "B": "${HOME}"},
        "inheritEnv": ["C"],
        "allowedPaths": ["/a", {"path": "/b", "mode": "ro"}],
    }
    connection = read_entry("n", entry, FILE).connection
    assert isinstance(connection, StdioSettings) and connection.inherit_env == ("C",)


def test_another_transport_takes_the_fields_of_the_old_one_away() -> None:
    entry = saved(STDIO, transport="sse", url="https://h/sse", headers=[FormValue("X-Key", "reference", "${K}")])
    assert entry == {
        "url": "https://h/sse",
        "headers": {"X-Key": "${K}"},
        "tools": {"deny": ["x_*"]},
        "limits": {"rps": 3},
        "type": "sse",
        "description": "does things",
    }
    back = apply_form(ServerForm(name="one", command="x"), entry, read_entry("one", entry, FILE))
    assert back == {"command": "x", "tools": {"deny": ["x_*"]}, "limits": {"rps": 3}}


def test_a_new_key_replaces_the_old_one_and_none_takes_it_away() -> None:
    assert saved(HTTP, key=FormValue("token", "reference", "${K}"))["apiKey"] == "${K}"
    assert "apiKey" not in saved(HTTP, key=None)
    connection = read_entry("one", saved(HTTP, url="https://new/mcp"), FILE).connection
    assert isinstance(connection, HttpSettings) and connection.url == "https://new/mcp"


@pytest.mark.parametrize(
    "changes",
    [
        {"command": "  "},
        {"env": [FormValue("", "literal", "x")]},
        {"env": [FormValue("A", "literal", "x"), FormValue("A", "literal", "y")]},
        {"env": [FormValue("NEW", "kept")]},
        {"env": [FormValue("A", "reference", "not a name")]},
        {"transport": "http", "url": " "},
        {"transport": "http", "url": "https://h", "headers": [FormValue("A", "inherit")]},
    ],
)
def test_what_cannot_be_saved_is_refused_with_the_next_step(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refusal:
        saved(STDIO, **changes)
    assert refusal.value.hint


def test_the_secret_of_a_refused_form_is_not_in_the_error() -> None:
    with pytest.raises(InvalidInput) as refusal:
        saved(STDIO, env=[FormValue("A", "reference", "hunter2 is secret")])
    assert "hunter2" not in json.dumps([refusal.value.message, refusal.value.hint])
