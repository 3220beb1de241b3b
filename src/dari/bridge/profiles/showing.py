"""A profile as people and programs may see it in a listing: everything but what could be a secret."""

from __future__ import annotations

import re

from dari.bridge.profiles.catalog import Listed
from dari.bridge.profiles.nodes import JsonValue
from dari.bridge.profiles.profile import HttpSettings, Profile, StdioSettings, safe_url
from dari.bridge.profiles.secret import MARK, Secret, is_sensitive

_FLAG = re.compile(r"(--?[\w-]+)(=)?(.*)", re.DOTALL)
_PAIR = re.compile(r"([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
_TOKEN = re.compile(r"(?:sk|pk|rk|gh[pousr]|github_pat|glpat|xox[abeoprs]|npm|hf|AKIA|AIza|eyJ)[-_A-Za-z0-9.]{12,}")


def shown(listed: Listed) -> dict[str, JsonValue]:
    """One server of `servers --json`."""
    told: dict[str, JsonValue] = {
        "id": listed.id,
        "state": listed.state,
        "source": {"file": listed.source.file, "line": listed.source.line, "layer": listed.source.layer},
    }
    if listed.source.program:
        told["program"] = listed.source.program
    if listed.message:
        told["error"] = {"message": listed.message, "hint": listed.hint}
    if listed.shadows:
        told["shadows"] = [str(source) for source in listed.shadows]
    if listed.profile:
        told.update(_profile(listed.profile))
    return told


def shown_args(args: tuple[str, ...]) -> list[str]:
    """Arguments without passwords: what a flag of such a name holds, users of addresses, and what looks like a key."""
    told: list[str] = []
    hides_next = False
    for arg in args:
        flag = _FLAG.fullmatch(arg)
        pair = _PAIR.fullmatch(arg)
        if hides_next and not flag:
            told.append(Secret(arg).shown)
        elif flag and flag[2] and is_sensitive(flag[1]):
            told.append(f"{flag[1]}={Secret(flag[3]).shown}")
        elif pair and is_sensitive(pair[1]):
            told.append(f"{pair[1]}={Secret(pair[2]).shown}")
        elif "://" in arg and not flag:
            told.append(safe_url(arg))
        else:
            told.append(_TOKEN.sub(MARK, re.sub(r"(?<=://)[^/@\s]+@", f"{MARK}@", arg)))
        hides_next = bool(flag and not flag[2] and is_sensitive(flag[1]))
    return told


def _profile(profile: Profile) -> dict[str, JsonValue]:
    told: dict[str, JsonValue] = {"kind": profile.kind, "default": profile.is_default, "timeoutMs": profile.timeout_ms}
    if profile.description:
        told["description"] = profile.description
    if profile.notes:
        told["notes"] = list(profile.notes)
    connection = profile.connection
    if isinstance(connection, StdioSettings):
        told["command"] = connection.command
        told["args"] = list[JsonValue](shown_args(connection.args))
        told["env"] = {name: value.shown for name, value in connection.env.items()}
        told["sandbox"] = connection.sandbox
    else:
        told.update(_http(connection))
    return told


def _http(connection: HttpSettings) -> dict[str, JsonValue]:
    told: dict[str, JsonValue] = {"url": safe_url(connection.url), "auth": connection.auth.type}
    if connection.headers:
        told["headers"] = {name: value.shown for name, value in connection.headers.items()}
    if connection.fallback_url:
        told["fallbackUrl"] = safe_url(connection.fallback_url)
    return told
