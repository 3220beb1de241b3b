"""A server as a form shows it (design 003, "MCP Server Registry"), and the entry of mcp.json that a filled form makes.

Secrets do not go out: a value that is one is `kept`, which stands for what the file has. Fields that the form does not
know stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from dari.bridge.config.catalog import mask_arguments
from dari.bridge.config.jsonc import JsonValue
from dari.bridge.config.profile import (
    AllowedPath,
    HttpSettings,
    PathMode,
    Profile,
    RestartPolicy,
    RestartSettings,
    StdioSettings,
    safe_url,
)
from dari.bridge.config.secret import Secret, is_sensitive
from dari.errors import InvalidInput
from dari.text.redact import redact_string

JsonEntry = dict[str, JsonValue]
ValueKind = Literal["literal", "reference", "inherit", "kept"]
_KIND_FIELDS = ("kind", "type", "transport", "transport_type")
_URL_FIELDS = ("baseUrl", "url", "serverUrl", "httpUrl")
_HTTP_FIELDS = (*_URL_FIELDS, "fallbackUrl", "fallback_url", "headers", "apiKey", "auth", "oauth", "auth_config")
_STDIO_FIELDS = (
    *("command", "args", "env", "inheritEnv", "envFile", "cwd", "stdio_config", "allowedPaths", "allowed_paths"),
    *("network", "sandbox", "rlimits", "restart", "restart_on_crash", "max_restart_attempts"),
)
_REFERENCE = re.compile(r"(?<!\$)\$\{")


class FormValue(Struct, frozen=True):
    """A variable or a header. `reference`: `value` holds `${NAME}`; `inherit`: our variable of that name."""

    name: Annotated[str, Meta(max_length=500)]
    kind: ValueKind = "literal"
    value: Annotated[str, Meta(max_length=100_000)] = ""


class FormPath(Struct, frozen=True):
    path: Annotated[str, Meta(max_length=4096)]
    mode: PathMode = "rw"


class ServerForm(Struct, frozen=True, kw_only=True):
    """What a person can fill in; `command` and what follows count for stdio, `url` and what follows for an address."""

    name: Annotated[str, Meta(description="Its name, unique in the file", max_length=200)]
    transport: Literal["stdio", "http", "sse"] = "stdio"
    description: Annotated[str, Meta(max_length=2000)] = ""
    enabled: bool = True
    command: Annotated[str, Meta(description="The program to start", max_length=4096)] = ""
    args: Annotated[list[str], Meta(description="Its arguments, one each", max_length=1000)] = []
    env: Annotated[list[FormValue], Meta(description="Its variables", max_length=1000)] = []
    cwd: Annotated[str, Meta(description="Where it runs; empty: your home", max_length=4096)] = ""
    allowed_paths: Annotated[
        list[FormPath] | None, Meta(description="What it may open; null: files are not confined")
    ] = None
    network: Annotated[
        Literal["", "all", "loopback", "none"], Meta(description="What it may reach; empty: as it stands in the file")
    ] = ""
    restart: RestartPolicy = "on-failure"
    max_restarts: Annotated[int, Meta(ge=0, le=1000, description="Within a minute; then it is left alone")] = 3
    url: Annotated[str, Meta(description="Its address", max_length=8192)] = ""
    headers: Annotated[list[FormValue], Meta(description="Sent with every request", max_length=200)] = []
    key: Annotated[FormValue | None, Meta(description="Sent as Authorization: Bearer")] = None


def to_form(profile: Profile) -> ServerForm:
    """The form of a profile, without its secrets."""
    connection = profile.connection
    if isinstance(connection, HttpSettings):
        token = connection.auth.token if connection.auth.type == "bearer" else None
        return ServerForm(
            name=profile.id,
            transport="sse" if connection.flavour == "sse" else "http",
            description=profile.description,
            enabled=profile.is_enabled,
            url=_shown_url(connection.url),
            headers=[_to_value(name, value.reveal()) for name, value in connection.headers.items()],
            key=None if token is None else _to_value("token", token.reveal()),
        )
    paths = connection.allowed_paths
    mode = connection.network.mode
    return ServerForm(
        name=profile.id,
        description=profile.description,
        enabled=profile.is_enabled,
        command=connection.command,
        args=shown_arguments(connection.args),
        env=[
            *(_to_value(name, value.reveal()) for name, value in connection.env.items()),
            *(FormValue(name, "inherit") for name in connection.inherit_env),
        ],
        cwd=connection.cwd or "",
        allowed_paths=None if paths is None else [FormPath(one.path, one.mode) for one in paths],
        network="" if mode == "listed" else mode,
        restart=connection.restart.policy,
        max_restarts=connection.restart.max_restarts,
    )


def apply_form(form: ServerForm, before: JsonEntry, profile: Profile | None = None) -> JsonEntry:
    """The entry that the form asks for. `before` and `profile` are what stands in the file now, for what is kept."""
    if form.transport == "stdio":
        entry = {**_stdio_entry(form, before, profile), **_without(before, *_STDIO_FIELDS, *_HTTP_FIELDS)}
        if profile is not None and isinstance(profile.connection, StdioSettings):
            entry |= {name: before[name] for name in ("envFile", "sandbox", "rlimits") if name in before}
    else:
        entry = {**_http_entry(form, before, profile), **_without(before, *_STDIO_FIELDS, *_HTTP_FIELDS)}
        if profile is not None and isinstance(profile.connection, HttpSettings):
            kept = ("fallbackUrl", "fallback_url", "oauth", *(() if form.key else ("auth", "auth_config")))
            entry |= {name: before[name] for name in kept if name in before}
    if profile is None or to_form(profile).transport != form.transport:
        entry = _without(entry, *_KIND_FIELDS)
        if form.transport == "sse":
            entry["type"] = "sse"
    entry = _without(entry, "enabled", "disabled", "description")
    if form.description:
        entry["description"] = form.description
    if not form.enabled:
        entry["disabled"] = True
    return entry


def shown_arguments(args: Iterable[str]) -> list[str]:
    """The arguments without passwords and keys."""
    return [redact_string(arg) for arg in mask_arguments(tuple(args))]


def _stdio_entry(form: ServerForm, before: JsonEntry, profile: Profile | None) -> JsonEntry:
    if not form.command.strip():
        raise InvalidInput("command must not be empty", "name the program to start, such as npx")
    old = profile.connection if profile is not None and isinstance(profile.connection, StdioSettings) else None
    entry: JsonEntry = {"command": form.command.strip()}
    if form.args:
        entry["args"] = list[JsonValue](_restore_arguments(form.args, old.args if old else ()))
    written = [one for one in form.env if one.kind != "inherit"]
    if written:
        entry["env"] = _from_values(written, {} if old is None else old.env, "variable")
    if inherited := [_checked_name(one, "variable") for one in form.env if one.kind == "inherit"]:
        entry["inheritEnv"] = list[JsonValue](inherited)
    if form.cwd.strip():
        entry["cwd"] = form.cwd.strip()
    if form.allowed_paths is not None:
        entry["allowedPaths"] = [_to_path(one) for one in form.allowed_paths]
    if form.network:
        if form.network != "all" or "network" in before:
            entry["network"] = form.network
    elif "network" in before:
        entry["network"] = before["network"]
    if restart := _restart(form, before, old.restart if old else RestartSettings()):
        entry["restart"] = restart
    return entry


def _restart(form: ServerForm, before: JsonEntry, old: RestartSettings) -> JsonValue:
    """What to write; nothing where the file says nothing and nothing was changed."""
    standing = before.get("restart")
    is_same = (form.restart, form.max_restarts) == (old.policy, old.max_restarts)
    if is_same and (standing is not None or not ("restart_on_crash" in before or "stdio_config" in before)):
        return standing
    rest = standing if isinstance(standing, dict) else {}
    return {**rest, "policy": form.restart, "maxRestarts": form.max_restarts}


def _http_entry(form: ServerForm, before: JsonEntry, profile: Profile | None) -> JsonEntry:
    old = profile.connection if profile is not None and isinstance(profile.connection, HttpSettings) else None
    url = form.url.strip()
    if not url:
        raise InvalidInput("url must not be empty", "write it as https://host:port/mcp")
    field = next((name for name in _URL_FIELDS if before.get(name)), "url") if old else "url"
    entry: JsonEntry = {field: old.url if old is not None and url == _shown_url(old.url) else url}
    if form.headers:
        entry["headers"] = _from_values(form.headers, {} if old is None else old.headers, "header")
    if form.key is not None and (form.key.value or form.key.kind == "kept"):
        if form.key.kind == "kept":
            if "apiKey" in before:
                entry["apiKey"] = before["apiKey"]
            entry |= {name: before[name] for name in ("auth", "auth_config") if name in before}
        else:
            entry["apiKey"] = _written(form.key)
    return entry


def _to_value(name: str, value: str) -> FormValue:
    if _REFERENCE.search(value):
        is_shown = Secret(value).shown == value or not is_sensitive(name)
        return FormValue(name, "reference", value) if is_shown else FormValue(name, "kept")
    plain = value.replace("$${", "${")
    is_secret = is_sensitive(name) or redact_string(plain) != plain or ("@" in plain and "://" in plain)
    return FormValue(name, "kept") if is_secret else FormValue(name, "literal", plain)


def _from_values(values: Iterable[FormValue], old: dict[str, Secret], what: str) -> JsonEntry:
    entry: JsonEntry = {}
    for one in values:
        name = _checked_name(one, what)
        if name in entry:
            raise InvalidInput(f"the {what} {name} is given twice", "keep one of the two")
        if one.kind == "kept":
            if name not in old:
                raise InvalidInput(f"the {what} {name} has no value in the file", "write its value")
            entry[name] = old[name].reveal()
        elif one.kind == "inherit":
            raise InvalidInput(f"the {what} {name} cannot be passed through", "write ${NAME} instead")
        else:
            entry[name] = _written(one)
    return entry


def _checked_name(one: FormValue, what: str) -> str:
    if not one.name.strip():
        raise InvalidInput(f"a {what} must have a name", "name it, or remove the line")
    return one.name.strip()


def _written(one: FormValue) -> str:
    """As the file has it: a literal's `${` stands for itself."""
    if one.kind == "reference" and not _REFERENCE.search(one.value):
        name = one.value.strip()
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise InvalidInput(f"{one.name} must refer to a variable", "write it as ${NAME}")
        return f"${{{name}}}"
    return one.value if one.kind == "reference" else one.value.replace("${", "$${")


def _to_path(one: FormPath) -> JsonValue:
    allowed = AllowedPath(one.path.strip(), one.mode)
    return allowed.path if allowed.mode == "rw" else {"path": allowed.path, "mode": allowed.mode}


def _restore_arguments(args: Iterable[str], old: tuple[str, ...]) -> list[str]:
    """Arguments that are still shown with their secret hidden get it back."""
    hidden: dict[str, list[str]] = {}
    for shown, real in zip(shown_arguments(old), old, strict=True):
        if shown != real:
            hidden.setdefault(shown, []).append(real)
    return [hidden[arg].pop(0) if hidden.get(arg) else arg for arg in args]


def _shown_url(url: str) -> str:
    """Without a login and, where it may hold a key, without its query."""
    if "${" in url and "@" not in url:
        return url
    return url if safe_url(url) == url else safe_url(url)


def _without(entry: JsonEntry, *names: str) -> JsonEntry:
    return {name: value for name, value in entry.items() if name not in names}
