"""Codex: `[mcp_servers.<name>]` tables of `config.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from dari.bridge.profiles.nodes import JsonValue
from dari.bridge.profiles.programs import Entry, Foreign, Found
from dari.errors import InvalidInput

_SAME = ("command", "args", "cwd", "env", "url")
_TABLE = re.compile(r"^\s*\[mcp_servers\.(\"[^\"]+\"|'[^']+'|[A-Za-z0-9_-]+)\]", re.MULTILINE)


def codex_servers(found: Found, data: bytes) -> Iterator[Foreign]:
    """The servers of the file, in its order."""
    try:
        text = data.decode("utf-8")
        servers = tomllib.loads(text).get("mcp_servers", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{found.path}: {error}", "look at the file") from error
    if not isinstance(servers, dict):
        raise InvalidInput(f"{found.path}: mcp_servers is no table", "look at the file")
    lines = {match[1].strip("\"'"): text.count("\n", 0, match.start(1)) + 1 for match in _TABLE.finditer(text)}
    for id, raw in servers.items():
        if isinstance(raw, dict):
            yield _server(id, raw, lines.get(id, 1))


def _server(id: str, raw: Entry, line: int) -> Foreign:
    entry: Entry = {}
    notes: list[str] = []
    headers: Entry = {}
    tools: Entry = {}
    for name, value in raw.items():
        if name in _SAME:
            entry[name] = _literal(value)
        elif name == "env_vars" and isinstance(value, list):
            entry["inheritEnv"] = [one for one in (_variable_name(item) for item in value) if one]
        elif name == "bearer_token_env_var":
            entry["apiKey"] = f"${{{value}}}"
        elif name == "http_headers" and isinstance(value, dict):
            headers.update({key: _literal(text) for key, text in value.items()})
        elif name == "env_http_headers" and isinstance(value, dict):
            headers.update({key: f"${{{variable}}}" for key, variable in value.items()})
        elif name in ("startup_timeout_sec", "tool_timeout_sec") and isinstance(value, (int, float)):
            entry["initTimeoutMs" if name.startswith("startup") else "timeoutMs"] = max(1, round(value * 1000))
        elif name == "startup_timeout_ms":
            entry["initTimeoutMs"] = value
        elif name == "enabled":
            entry["disabled"] = not value
        elif name in ("enabled_tools", "disabled_tools"):
            tools["allow" if name.startswith("enabled") else "deny"] = value
        elif name == "scopes":
            entry["auth"] = {"type": "oauth2", "scopes": value}
        elif name == "tools" and isinstance(value, dict):
            asks = [
                tool for tool, rule in value.items() if isinstance(rule, dict) and rule.get("approval_mode") == "prompt"
            ]
            if asks:
                tools["confirm"] = [*asks]
        elif name == "default_tools_approval_mode":
            if value == "prompt":
                tools["confirm"] = ["*"]
        else:
            notes.append(f"'{name}' is not carried over: it is not known here")
    if headers:
        entry["headers"] = headers
    if tools:
        entry["tools"] = tools
    if entry.get("disabled") is False:
        del entry["disabled"]
    return Foreign(id, entry, line, tuple(notes))


def _variable_name(item: JsonValue) -> str | None:
    if isinstance(item, dict):
        return str(item.get("name")) if item.get("source", "local") == "local" else None
    return item if isinstance(item, str) else None


def _literal(value: JsonValue) -> JsonValue:
    """Codex fills nothing in, so a `${` of its files stands for itself."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [_literal(one) for one in value]
    return {name: _literal(one) for name, one in value.items()} if isinstance(value, dict) else value
