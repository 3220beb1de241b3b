"""Options of a command line: a server without a profile, and values that override a profile's (design 001 §6)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from urllib.parse import urlsplit

from msgspec import structs

from dari.bridge.config.errors import FieldProblem
from dari.bridge.config.normalize import check_header, check_url
from dari.bridge.config.profile import AuthSettings, HttpSettings, Profile, ProfileSource, StdioSettings
from dari.bridge.config.secret import Secret
from dari.errors import InvalidInput


def endpoint_profile(url: str) -> Profile:
    """The profile of `--endpoint`. An address without a path gets `/mcp`; references in it are filled in as always."""
    try:
        check_url(url, "--endpoint")
        parts = urlsplit(url)
        name = parts.netloc.rpartition("@")[2]
    except (FieldProblem, ValueError):
        raise InvalidInput("--endpoint must be an http or https address", "write it as https://host:port/mcp") from None
    is_base = parts.path in ("", "/")
    return Profile(
        id=name or "endpoint",
        source=ProfileSource("--endpoint", 0, "argument"),
        connection=HttpSettings(url=url, is_base=is_base),
    )


def stdio_profile(line: str, timeout_ms: int | None = None) -> Profile:
    """The profile of `--stdio`: a command line as a shell splits it. It is a person's own, typed just now."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InvalidInput(
            f"--stdio cannot be split into words: {error}", "quote it: --stdio 'npx -y some-server'"
        ) from None
    if not words:
        raise InvalidInput("--stdio needs a command", "such as --stdio 'npx -y some-server'")
    profile = Profile(
        id=re.sub(r"[^A-Za-z0-9._-]", "-", PurePath(words[0]).name) or "stdio",
        source=ProfileSource("--stdio", 0, "argument"),
        connection=StdioSettings(command=words[0], args=tuple(words[1:])),
    )
    # It was never started here: a first `npx` may take as long as the person allows.
    return profile if timeout_ms is None else apply_overrides(profile, timeout_ms=timeout_ms)


def parse_headers(given: Iterable[str]) -> dict[str, str]:
    """`--header 'K:V'`, repeated; the value keeps its own colons. Errors do not repeat the value."""
    headers: dict[str, str] = {}
    for text in given:
        name, colon, value = text.partition(":")
        name = name.strip()
        if not colon or check_header(name):
            raise InvalidInput(
                f"--header must be 'Name: value', got '{name if colon else '…'}'", "quote it: --header 'X-Key: 1'"
            )
        headers[name] = value.strip()
    return headers


def apply_overrides(
    profile: Profile,
    *,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_ms: int | None = None,
) -> Profile:
    """The profile with what the command line says instead; names of headers match whatever their case."""
    if timeout_ms is not None:
        if timeout_ms < 1:
            raise InvalidInput(f"--timeout must be 1 or more milliseconds, got {timeout_ms}", "leave it out for 15000")
        profile = structs.replace(profile, timeout_ms=timeout_ms)
    if not key and not headers:
        return profile
    connection = profile.connection
    if not isinstance(connection, HttpSettings):
        raise InvalidInput(f"'{profile.id}' is a local process: it takes no key and no header", "set its env instead")
    named = {name.lower() for name in headers or {}}
    kept = {name: value for name, value in connection.headers.items() if name.lower() not in named}
    auth = connection.auth
    if key:
        auth = AuthSettings(type="bearer", token=Secret(_escape_references(key)))
        kept = {name: value for name, value in kept.items() if name.lower() != "authorization"}
    elif "authorization" in named:
        auth = AuthSettings()
    added = {name: Secret(_escape_references(value)) for name, value in (headers or {}).items()}
    return structs.replace(profile, connection=structs.replace(connection, headers={**kept, **added}, auth=auth))


def _escape_references(value: str) -> str:
    """The shell has filled in what was to be filled in."""
    return value.replace("${", "$${")
