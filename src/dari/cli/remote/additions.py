"""What `add` was told, as an entry of `mcp.json`, and the secrets that it would write out in the clear."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path

from dari.bridge.config.catalog import mask_arguments
from dari.bridge.config.jsonc import JsonValue
from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.profile import safe_url
from dari.bridge.config.secret import SECRET_MARK, Secret, is_sensitive
from dari.bridge.config.writer import JsonEntry
from dari.errors import InvalidInput

_SECTIONS = ("mcpServers", "servers")
_URLS = ("url", "baseUrl", "serverUrl", "httpUrl", "fallbackUrl")


def entry_of(arguments: argparse.Namespace, command: list[str], around: ClientEnvironment) -> JsonEntry:
    """One server from options; a field that was not given is left out, so that its default counts."""
    if bool(command) == bool(arguments.url):
        raise InvalidInput(
            "a server is either a command or an address" + (", not both" if command else ""),
            f"add {arguments.id or 'NAME'} -- npx some-server, or add {arguments.id or 'NAME'} --url https://host/mcp",
        )
    entry: JsonEntry = {}
    if command:
        _refuse(arguments, ("header", "key"), "counts for an address only")
        entry["command"] = command[0]
        if command[1:]:
            entry["args"] = list[JsonValue](command[1:])
        if arguments.env:
            entry["env"] = dict(_pair(text, "=", "--env", "NAME=VALUE") for text in arguments.env)
        if arguments.cwd:
            entry["cwd"] = _placed(arguments.cwd, around)
        if arguments.allow:
            entry["allowedPaths"] = [_allowed(text, around) for text in arguments.allow]
        for name in ("network", "sandbox"):
            if (value := getattr(arguments, name)) is not None:
                entry[name] = value
    else:
        _refuse(arguments, ("env", "cwd", "allow", "network", "sandbox"), "counts for a command only")
        entry["url"] = arguments.url
        if arguments.key:
            entry["apiKey"] = arguments.key
        if arguments.header:
            entry["headers"] = dict(_pair(text, ":", "--header", "'NAME: VALUE'") for text in arguments.header)
    if arguments.default:
        entry["default"] = True
    return entry


def entries_in(text: str, id: str | None) -> dict[str, JsonEntry]:
    """Servers given as JSON: one entry, or what README files tell people to paste (`mcpServers`, `servers`)."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"--json holds no JSON: {error}", """quote it: --json '{"command": "npx", …}'""") from None
    if not isinstance(value, dict):
        raise InvalidInput("--json holds no object", """one server: --json '{"command": "npx", "args": […]}'""")
    found = dict(_pasted(value))
    if not found:
        named = value.pop("id", None) or value.pop("name", None)
        if not (id or isinstance(named, str)):
            raise InvalidInput("the server has no name", "add NAME --json '{…}'")
        return {id or str(named): value}
    if id is None:
        return found
    if len(found) > 1:
        raise InvalidInput(f"--json holds {len(found)} servers, and '{id}' can name one", "leave the name out")
    return {id: next(iter(found.values()))}


def literal_secrets(entry: JsonEntry) -> list[str]:
    """Fields whose value looks like a secret and is written out, not referred to."""
    found = []
    for field in ("env", "headers"):
        values = entry.get(field)
        for name, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, str) and is_sensitive(name) and Secret(value).shown == SECRET_MARK:
                found.append(f"{field}.{name}")
    key = entry.get("apiKey")
    if isinstance(key, str) and key and Secret(key).shown == SECRET_MARK:
        found.append("apiKey")
    args = entry.get("args")
    texts = tuple(arg for arg in args if isinstance(arg, str)) if isinstance(args, list) else ()
    if any(SECRET_MARK in shown for shown in mask_arguments(texts)):
        found.append("args")
    return found + [name for name in _URLS if _has_login(entry.get(name))]


def _has_login(value: JsonValue) -> bool:
    return isinstance(value, str) and "@" in value and "${" not in value and safe_url(value) != value


def _pasted(pasted: JsonEntry) -> Iterator[tuple[str, JsonEntry]]:
    for section in _SECTIONS:
        held = pasted.get(section)
        if isinstance(held, dict):
            for name, entry in held.items():
                if not isinstance(entry, dict):
                    raise InvalidInput(f"{section}.{name} is no object", "a server is {…} with a command or a url")
                yield name, entry
        elif isinstance(held, list):
            for one in held:
                if not isinstance(one, dict) or not isinstance(id := one.get("id"), str):
                    raise InvalidInput(f"a server in {section} has no id", 'write {"id": "NAME", …}')
                yield id, {field: value for field, value in one.items() if field != "id"}


def _pair(text: str, separator: str, option: str, shape: str) -> tuple[str, JsonValue]:
    name, found, value = text.partition(separator)
    if not found or not name.strip():
        # The text may be a secret without its name: it is not repeated.
        raise InvalidInput(f"{option} needs {shape}", f"such as {option} {shape}")
    return name.strip(), value.strip() if separator == ":" else value


def _allowed(text: str, around: ClientEnvironment) -> JsonValue:
    path, colon, mode = text.rpartition(":")
    if not colon or mode not in ("ro", "rw"):
        path, mode = text, "rw"
    return {"path": _placed(path, around), "mode": mode}


def _placed(path: str, around: ClientEnvironment) -> str:
    """Absolute, seen from where the person is; what is filled in later stays as it is."""
    if not path:
        raise InvalidInput("an empty path", "name a folder or a file")
    if path.startswith("${"):
        return path
    if path == "~" or path.startswith("~/"):
        path = str(around.home) + path[1:]
    return os.path.normpath(Path(around.cwd, path))


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if getattr(arguments, name):
            raise InvalidInput(f"--{name} {why}", "leave it out")
