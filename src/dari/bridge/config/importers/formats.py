"""Convert servers in files of other programs to our format, with a note on everything that is lost."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from dari.bridge.config import jsonc
from dari.bridge.config.errors import nearest_name
from dari.bridge.config.importers.sources import ForeignServer, ImportSource, JsonEntry
from dari.bridge.config.jsonc import JsonValue, Node
from dari.bridge.config.loader import SERVER_FIELDS
from dari.bridge.config.schema import FOREIGN_FIELDS
from dari.errors import InvalidInput
from dari.struct_types import ready

_SAME = ("command", "args", "cwd", "env", "url")
_MAX_TIMEOUT_S = 1e6
_TABLE = re.compile(r"^\s*\[mcp_servers\.(\"[^\"]+\"|'[^']+'|[A-Za-z0-9_-]+)\]", re.MULTILINE)


def codex_servers(found: ImportSource, data: bytes) -> Iterator[ForeignServer]:
    """The servers of the file, in its order."""
    try:
        text = data.decode("utf-8")
        servers = tomllib.loads(text).get("mcp_servers", {})
    except (ValueError, RecursionError) as error:  # a number of 5000 digits is a plain ValueError to `tomllib`
        raise InvalidInput(f"{found.path}: {error}", "correct the file") from error
    if not isinstance(servers, dict):
        raise InvalidInput(f"{found.path}: mcp_servers must be a table", "correct the file")
    lines = {match[1].strip("\"'"): text.count("\n", 0, match.start(1)) + 1 for match in _TABLE.finditer(text)}
    for id, raw in servers.items():
        if isinstance(raw, dict):
            yield _codex_server(id, raw, lines.get(id, 1))


def _codex_server(id: str, raw: JsonEntry, line: int) -> ForeignServer:
    entry: JsonEntry = {}
    notes: list[str] = []
    headers: JsonEntry = {}
    tools: JsonEntry = {}
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
        elif name in ("startup_timeout_sec", "tool_timeout_sec"):
            if isinstance(value, (int, float)) and abs(value) <= _MAX_TIMEOUT_S:  # TOML has `inf` and `nan`
                entry["initTimeoutMs" if name.startswith("startup") else "timeoutMs"] = max(1, round(value * 1000))
            else:
                notes.append(f"'{name}' is not carried over: it is not a time in seconds")
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
    return ForeignServer(id, entry, line, tuple(notes))


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


LARGE_FILE_BYTES = 256 * 1024
_BARE_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


class ForeignFile(Struct, frozen=True):
    servers: tuple[ForeignServer, ...]
    inputs: dict[str, JsonEntry] = {}
    notes: tuple[str, ...] = ()


def translate(found: ImportSource, data: bytes) -> ForeignFile:
    """The servers of the file; raises InvalidInput for a file of another format."""
    if found.shape == "codex":
        return ForeignFile(tuple(codex_servers(found, data)))
    root = _root(found, data)
    inputs = _inputs(root)
    if found.shape == "claude-code":
        servers = tuple(_claude_code(root, found))
        if len(data) > LARGE_FILE_BYTES:
            servers = tuple(_found_again(one, data.decode("utf-8")) for one in servers)
        return ForeignFile(servers, inputs, _other_projects(root, found))
    if found.shape == "gemini":
        return ForeignFile(tuple(_gemini(root)), inputs)
    if found.shape == "opencode":
        return ForeignFile(tuple(_opencode(root, found.path.parent)), inputs)
    if found.shape == "settings":
        section = root.get("mcp")
        old = root.get("mcp.servers") or (section.get("servers") if section else None)
        inputs = {**inputs, **(_inputs(section) if section else {})}
        return ForeignFile(tuple(map(_untyped, _verbatim(old))), inputs)
    if found.shape == "servers":
        return ForeignFile(tuple(map(_untyped, _verbatim(root.get("servers")))), inputs)
    return ForeignFile(tuple(_verbatim(root.get("mcpServers"))), inputs)


def _root(found: ImportSource, data: bytes) -> Node:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{found.path} must be UTF-8 text (error at byte {error.start})", "save it as UTF-8"
        ) from error
    is_long = found.shape == "claude-code" and len(data) > LARGE_FILE_BYTES
    root = (_parse_large(text) if is_long else None) or jsonc.parse(text, str(found.path))
    if root.shape != "object":
        raise InvalidInput(f"{found.path}:1: the file must hold a JSON object", "correct the file")
    return root


def _parse_large(text: str) -> Node | None:
    """The tree of a long file, of what concerns servers only; None unless it is plain JSON.

    `~/.claude.json` holds megabytes of history: the fast reader finds the servers, a search their lines.
    """
    try:
        plain = msgspec.json.decode(text, type=ready(_LargeFile))
    except msgspec.DecodeError:
        return None
    return jsonc.parse(msgspec.json.encode(plain).decode(), "")


def _found_again(one: ForeignServer, text: str) -> ForeignServer:
    match = re.search(rf'"{re.escape(one.id)}"\s*:\s*\{{', text)
    return structs.replace(one, line=text.count("\n", 0, match.start()) + 1 if match else 1)


class _LargeProject(Struct, rename="camel"):
    mcp_servers: dict[str, Any] = {}
    disabled_mcp_servers: list[str] = []


class _LargeFile(Struct, rename="camel"):
    mcp_servers: dict[str, Any] = {}
    projects: dict[str, _LargeProject] = {}
    inputs: list[Any] = []


def _inputs(root: Node) -> dict[str, JsonEntry]:
    """VS Code's questions, by their name."""
    node = root.get("inputs")
    found: dict[str, JsonEntry] = {}
    for member in node.members if node else ():
        plain = member.value.plain()
        if isinstance(plain, dict) and isinstance(plain.get("id"), str):
            found[str(plain["id"])] = plain
    return found


def _verbatim(servers: Node | None) -> Iterator[ForeignServer]:
    """`mcpServers` and VS Code's `servers`: our own reader knows their fields."""
    for member in servers.members if servers and servers.shape == "object" else ():
        plain = member.value.plain()
        if not isinstance(plain, dict):
            yield ForeignServer(member.key, {}, member.line, ("must be an object",))
            continue
        yield _carried(member.key, plain, member.line)


def _untyped(one: ForeignServer) -> ForeignServer:
    """What VS Code calls `http` may be SSE as well; without a type we try both, as it does."""
    entry = {name: value for name, value in one.entry.items() if (name, value) != ("type", "http")}
    return structs.replace(one, entry=entry)


def _carried(id: str, plain: JsonEntry, line: int) -> ForeignServer:
    """The fields we know; a note on each other one. A probable typo is carried, for the reader to complain about."""
    entry: JsonEntry = {}
    notes: tuple[str, ...] = ()
    for name, value in plain.items():
        if name in SERVER_FIELDS and name not in ("id", "name", "sandbox", "sandboxEnabled"):
            entry[name] = value
        elif name in ("sandbox", "sandboxEnabled"):
            notes += (f"'{name}' is not carried over: set allowedPaths, network and sandbox",)
        elif name in FOREIGN_FIELDS:
            notes += (f"'{name}' is not carried over: {FOREIGN_FIELDS[name]}",)
        elif nearest_name(name, SERVER_FIELDS) and name not in ("id", "name"):
            entry[name] = value
        elif name not in ("id", "name"):
            notes += (f"'{name}' is not carried over: it is not known here",)
    return ForeignServer(id, entry, line, notes)


def _claude_code(root: Node, found: ImportSource) -> Iterator[ForeignServer]:
    project = _project(root, found)
    seen = set()
    if project:
        off = _names(project.get("disabledMcpServers"))
        for one in _verbatim(project.get("mcpServers")):
            seen.add(one.id)
            yield _off(one) if one.id in off else one
    for one in _verbatim(root.get("mcpServers")):
        if one.id not in seen:
            yield one


def _project(root: Node, found: ImportSource) -> Node | None:
    projects = root.get("projects")
    return projects.get(str(found.cwd)) if projects and found.cwd else None


def _other_projects(root: Node, found: ImportSource) -> tuple[str, ...]:
    projects = root.get("projects")
    others = []
    for member in projects.members if projects else ():
        servers = member.value.get("mcpServers")
        if servers and servers.members and member.key != str(found.cwd):
            others.append(member.key)
    if not others:
        return ()
    return (f"servers of {len(others)} other projects are left out: {', '.join(others[:3])}",)


def _off(one: ForeignServer) -> ForeignServer:
    return ForeignServer(one.id, {**one.entry, "disabled": True}, one.line, one.notes)


def _names(node: Node | None) -> set[str]:
    return {str(member.value.scalar) for member in node.members} if node else set()


def _gemini(root: Node) -> Iterator[ForeignServer]:
    section = root.get("mcp")
    allowed = section.get("allowed") if section else None
    excluded = _names(section.get("excluded") if section else None)
    for one in _verbatim(root.get("mcpServers")):
        entry = _with_braces(one.entry)
        if "url" in entry and "type" not in entry:
            entry["type"] = "sse"  # Gemini's `url` is an SSE address, `httpUrl` a streamable one
        if "httpUrl" in entry:
            entry = {**entry, "type": "http", "url": entry["httpUrl"]}
            del entry["httpUrl"]
        if one.id in excluded or (allowed is not None and one.id not in _names(allowed)):
            entry["disabled"] = True
        yield ForeignServer(one.id, entry, one.line, one.notes)


def _with_braces(entry: JsonEntry) -> JsonEntry:
    """Gemini writes `$NAME` where we write `${NAME}`."""

    def braced(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return _BARE_VARIABLE.sub(r"${\1}", value)
        if isinstance(value, list):
            return [braced(one) for one in value]
        return {name: braced(one) for name, one in value.items()} if isinstance(value, dict) else value

    return {name: braced(value) for name, value in entry.items()}


def _opencode(root: Node, folder: Path) -> Iterator[ForeignServer]:
    node = root.get("mcp")
    for member in node.members if node else ():
        plain = member.value.plain()
        if not isinstance(plain, dict):
            continue
        entry = dict(plain)
        command = entry.get("command")
        if isinstance(command, list) and command:
            entry["command"], entry["args"] = command[0], command[1:]
        if "environment" in entry:
            entry["env"] = entry.pop("environment")
        entry.pop("type", None)
        yield _carried(member.key, _with_references(entry, folder), member.line)


def _with_references(entry: JsonEntry, folder: Path) -> JsonEntry:
    """opencode writes `{env:NAME}` and `{file:path}`; a path is relative to the folder of its configuration."""
    text = msgspec.json.encode(entry).decode()
    start = msgspec.json.encode(f"{folder}/").decode()[1:-1]

    def written_as_ours(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind == "file" and not name.startswith(("/", "~")):
            name = start + name.removeprefix("./")
        return f"${{{kind}:{name}}}"

    changed: JsonEntry = msgspec.json.decode(re.sub(r"(?<!\$)\{(env|file):([^{}\"]+)\}", written_as_ours, text))
    return changed
