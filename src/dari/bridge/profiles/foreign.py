"""Files of other programs → servers as ours are written, with a note on everything that cannot come along."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, structs

from dari.bridge.profiles import jsonc
from dari.bridge.profiles.codex import codex_servers
from dari.bridge.profiles.complaints import near
from dari.bridge.profiles.nodes import JsonValue, Node
from dari.bridge.profiles.programs import Entry, Foreign, Found
from dari.bridge.profiles.reading import FOREIGN, SERVER_FIELDS
from dari.errors import InvalidInput

LONG_BYTES = 256 * 1024
_BARE_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


class ForeignFile(Struct, frozen=True):
    servers: tuple[Foreign, ...]
    inputs: dict[str, Entry] = {}
    notes: tuple[str, ...] = ()


def translate(found: Found, data: bytes) -> ForeignFile:
    """The servers of the file; raises InvalidInput when it is no such file."""
    if found.shape == "codex":
        return ForeignFile(tuple(codex_servers(found, data)))
    root = _root(found, data)
    inputs = _inputs(root)
    if found.shape == "claude-code":
        servers = tuple(_claude_code(root, found))
        if len(data) > LONG_BYTES:
            servers = tuple(_found_again(one, data.decode("utf-8")) for one in servers)
        return ForeignFile(servers, inputs, _other_projects(root, found))
    if found.shape == "gemini":
        return ForeignFile(tuple(_gemini(root)), inputs)
    if found.shape == "opencode":
        return ForeignFile(tuple(_opencode(root)), inputs)
    if found.shape == "settings":
        section = root.get("mcp")
        old = root.get("mcp.servers") or (section.get("servers") if section else None)
        inputs = {**inputs, **(_inputs(section) if section else {})}
        return ForeignFile(tuple(map(_untyped, _verbatim(old))), inputs)
    if found.shape == "servers":
        return ForeignFile(tuple(map(_untyped, _verbatim(root.get("servers")))), inputs)
    return ForeignFile(tuple(_verbatim(root.get("mcpServers"))), inputs)


def _root(found: Found, data: bytes) -> Node:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{found.path} is no UTF-8 text (byte {error.start})", "save it as UTF-8") from error
    is_long = found.shape == "claude-code" and len(data) > LONG_BYTES
    root = (_long(text) if is_long else None) or jsonc.parse(text, str(found.path))
    if root.shape != "object":
        raise InvalidInput(f"{found.path}:1: the file holds no object", "look at the file")
    return root


def _long(text: str) -> Node | None:
    """The tree of a long file, of what concerns servers only; None if it is no plain JSON.

    `~/.claude.json` holds megabytes of history: the fast reader finds the servers, a search their lines.
    """
    try:
        plain = msgspec.json.decode(text, type=_Long)
    except msgspec.DecodeError:
        return None
    return jsonc.parse(msgspec.json.encode(plain).decode(), "")


def _found_again(one: Foreign, text: str) -> Foreign:
    match = re.search(rf'"{re.escape(one.id)}"\s*:\s*\{{', text)
    return structs.replace(one, line=text.count("\n", 0, match.start()) + 1 if match else 1)


class _LongProject(Struct, rename="camel"):
    mcp_servers: dict[str, Any] = {}
    disabled_mcp_servers: list[str] = []


class _Long(Struct, rename="camel"):
    mcp_servers: dict[str, Any] = {}
    projects: dict[str, _LongProject] = {}
    inputs: list[Any] = []


def _inputs(root: Node) -> dict[str, Entry]:
    """VS Code's questions, by their name."""
    node = root.get("inputs")
    found: dict[str, Entry] = {}
    for member in node.members if node else ():
        plain = member.value.plain()
        if isinstance(plain, dict) and isinstance(plain.get("id"), str):
            found[str(plain["id"])] = plain
    return found


def _verbatim(servers: Node | None) -> Iterator[Foreign]:
    """`mcpServers` and VS Code's `servers`: our own reader knows their fields."""
    for member in servers.members if servers and servers.shape == "object" else ():
        plain = member.value.plain()
        if not isinstance(plain, dict):
            yield Foreign(member.key, {}, member.line, ("is no object",))
            continue
        yield _carried(member.key, plain, member.line)


def _untyped(one: Foreign) -> Foreign:
    """What VS Code calls `http` may be SSE as well; without a type we try both, as it does."""
    entry = {name: value for name, value in one.entry.items() if (name, value) != ("type", "http")}
    return structs.replace(one, entry=entry)


def _carried(id: str, plain: Entry, line: int, notes: tuple[str, ...] = ()) -> Foreign:
    """The fields we know; a note on each other one. A probable typo is carried, for the reader to complain about."""
    entry: Entry = {}
    for name, value in plain.items():
        if name in SERVER_FIELDS and name not in ("id", "name", "sandbox", "sandboxEnabled"):
            entry[name] = value
        elif name in ("sandbox", "sandboxEnabled"):
            notes += (f"'{name}' is not carried over: set allowedPaths, network and sandbox",)
        elif name in FOREIGN:
            notes += (f"'{name}' is not carried over: {FOREIGN[name]}",)
        elif near(name, SERVER_FIELDS) and name not in ("id", "name"):
            entry[name] = value
        elif name not in ("id", "name"):
            notes += (f"'{name}' is not carried over: it is not known here",)
    return Foreign(id, entry, line, notes)


def _claude_code(root: Node, found: Found) -> Iterator[Foreign]:
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


def _project(root: Node, found: Found) -> Node | None:
    projects = root.get("projects")
    return projects.get(str(found.cwd)) if projects and found.cwd else None


def _other_projects(root: Node, found: Found) -> tuple[str, ...]:
    projects = root.get("projects")
    others = []
    for member in projects.members if projects else ():
        servers = member.value.get("mcpServers")
        if servers and servers.members and member.key != str(found.cwd):
            others.append(member.key)
    if not others:
        return ()
    return (f"servers of {len(others)} other projects are left out: {', '.join(others[:3])}",)


def _off(one: Foreign) -> Foreign:
    return Foreign(one.id, {**one.entry, "disabled": True}, one.line, one.notes)


def _names(node: Node | None) -> set[str]:
    return {str(member.value.scalar) for member in node.members} if node else set()


def _gemini(root: Node) -> Iterator[Foreign]:
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
        yield Foreign(one.id, entry, one.line, one.notes)


def _with_braces(entry: Entry) -> Entry:
    """Gemini writes `$NAME` where we write `${NAME}`."""

    def braced(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return _BARE_VARIABLE.sub(r"${\1}", value)
        if isinstance(value, list):
            return [braced(one) for one in value]
        return {name: braced(one) for name, one in value.items()} if isinstance(value, dict) else value

    return {name: braced(value) for name, value in entry.items()}


def _opencode(root: Node) -> Iterator[Foreign]:
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
        yield _carried(member.key, _with_env_references(entry), member.line)


def _with_env_references(entry: Entry) -> Entry:
    """opencode writes `{env:NAME}` and `{file:path}`."""
    text = msgspec.json.encode(entry).decode()
    changed: Entry = msgspec.json.decode(re.sub(r"(?<!\$)\{((?:env|file):[^{}\"]+)\}", r"${\1}", text))
    return changed
