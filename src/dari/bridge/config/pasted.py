"""Servers as people paste them, and what they should know about an entry before it stands in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dari.bridge.config import jsonc
from dari.bridge.config.catalog import Catalog, mask_arguments
from dari.bridge.config.jsonc import JsonValue
from dari.bridge.config.profile import safe_url
from dari.bridge.config.secret import SECRET_MARK, Secret, is_sensitive
from dari.errors import InvalidInput

JsonEntry = dict[str, JsonValue]
_SECTIONS = ("mcpServers", "servers")
_URLS = ("url", "baseUrl", "serverUrl", "httpUrl", "fallbackUrl")
_RUNS = ("command", *_URLS)


def parse_entries(text: str, id: str | None = None, *, what: str = "--json") -> dict[str, JsonEntry]:
    """Servers given as JSON: one entry, or what README files tell people to paste.

    That is an object with `mcpServers` or `servers`, such an object's inside, or a part of it without its braces;
    comments and a comma too many do not matter. `what` names the text in errors.
    """
    value = _parse(text, what)
    if not isinstance(value, dict):
        raise InvalidInput(f"{what} must be a JSON object", """one server: {"command": "npx", "args": […]}""")
    found = dict(_pasted(value)) or _bare(value)
    if not found:
        named = value.pop("id", None) or value.pop("name", None)
        if not (id or isinstance(named, str)):
            raise InvalidInput("the server has no name", """name it: {"mcpServers": {"NAME": {…}}}, or add NAME""")
        return {id or str(named): value}
    if id is None:
        return found
    if len(found) > 1:
        raise InvalidInput(f"{what} holds {len(found)} servers, and '{id}' can name one", "leave the name out")
    return {id: next(iter(found.values()))}


def find_literal_secrets(entry: JsonEntry) -> list[str]:
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


def advise(catalog: Catalog, id: str, entry: JsonEntry, file: Path) -> list[str]:
    """What a person should know about an entry that was just written to the file."""
    warnings = []
    if fields := find_literal_secrets(entry):
        warnings.append(
            f"{', '.join(fields)} of '{id}' stands in {file} in the clear; "
            "better: ${NAME} (a variable of yours) or ${keyring:service/name}"
        )
    listed = catalog.find(id)
    if listed.source.file != str(file):
        warnings.append(f"'{id}' also stands in {listed.source}, and that one counts")
    elif listed.state == "untrusted":
        warnings.append(f"{file} is not trusted, so nothing in it runs: dari remote trust")
    if listed.profile is not None:
        warnings += listed.profile.notes
    return warnings


def _parse(text: str, what: str) -> JsonValue:
    text = text.strip().removesuffix(",")
    try:
        return jsonc.parse(f"{{{text}}}" if text.startswith('"') else text, what).plain()
    except InvalidInput as error:
        raise InvalidInput(f"{what} must be JSON: {error.message}", """such as {"command": "npx", …}""") from None


def _bare(value: JsonEntry) -> dict[str, JsonEntry]:
    """`{"memory": {"command": …}}`: the inside of `mcpServers`."""
    named = {name: one for name, one in value.items() if isinstance(one, dict) and any(one.get(key) for key in _RUNS)}
    return named if len(named) == len(value) else {}


def _has_login(value: JsonValue) -> bool:
    return isinstance(value, str) and "@" in value and "${" not in value and safe_url(value) != value


def _pasted(pasted: JsonEntry) -> Iterator[tuple[str, JsonEntry]]:
    for section in _SECTIONS:
        held = pasted.get(section)
        if isinstance(held, dict):
            for name, entry in held.items():
                if not isinstance(entry, dict):
                    raise InvalidInput(
                        f"{section}.{name} must be a JSON object", "a server is {…} with a command or a url"
                    )
                yield name, entry
        elif isinstance(held, list):
            for one in held:
                if not isinstance(one, dict) or not isinstance(id := one.get("id"), str):
                    raise InvalidInput(f"a server in {section} has no id", 'write {"id": "NAME", …}')
                yield id, {field: value for field, value in one.items() if field != "id"}
