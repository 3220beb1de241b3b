"""Turn one server of a file into a `Profile`: join aliases, refuse contradictions, fill in defaults."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TypeVar
from urllib.parse import urlsplit

from msgspec import UNSET, UnsetType, structs

from dari.bridge.config.auth import build_auth
from dari.bridge.config.errors import FieldProblem
from dari.bridge.config.profile import (
    AllowedPath,
    CircuitSettings,
    HttpFlavour,
    HttpSettings,
    LimitSettings,
    NetworkSettings,
    Profile,
    ProfileSource,
    RestartSettings,
    Roots,
    StdioSettings,
    ToolRules,
)
from dari.bridge.config.schema import DefaultsEntry, EnvValue, PathEntry, RestartEntry, ServerEntry, SharedEntry
from dari.bridge.config.secret import Secret

MAX_ID_CHARS = 128
RLIMITS = ("as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack")
_SIZE = re.compile(r"(\d{1,15})([KMGT]?)(?:i?B)?", re.IGNORECASE)
_SCALE = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(\d{1,5}|\*)")
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VARIABLE = re.compile(r"[^=\0]+")
T = TypeVar("T")

_URL_FIELDS = ("base_url", "url", "server_url", "http_url")


def check_id(id: str) -> str | None:
    """Why this cannot be the name of a server, or None. `/` parts server from tool in `server/tool`."""
    if not id:
        return "the name is empty"
    if len(id) > MAX_ID_CHARS:
        return f"the name has {len(id)} characters, more than {MAX_ID_CHARS}"
    if "/" in id or id.startswith("-") or not id.isprintable() or id != id.strip():
        return "a name has no '/', no control character, no blank at its ends and no '-' in front"
    if id.startswith(".") or any(sign in id for sign in _NOT_IN_IDS):
        return "a name does not begin with '.' and has none of \\ * ? [ ] : \" ' < > | ` $"
    if unicodedata.normalize("NFKC", id) != id:
        return f"a name has its usual letters: write '{unicodedata.normalize('NFKC', id)}'"
    if len({script for sign in id if (script := _lookalike_script(sign))}) > 1:
        return "a name has letters of one alphabet: Latin, Greek or Cyrillic ones look alike"
    if id.split(".")[0].upper() in _DEVICE_NAMES:
        return "the name is reserved by Windows for a device"
    return None


_NOT_IN_IDS = "\\*?[]:\"'<>|`$"
_DEVICE_NAMES = {"CON", "PRN", "AUX", "NUL", *(f"{name}{number}" for name in ("COM", "LPT") for number in range(10))}


def _lookalike_script(sign: str) -> str:
    """LATIN, GREEK or CYRILLIC for a letter of these; other scripts have nothing that is taken for another's."""
    if not sign.isalpha():
        return ""
    script = unicodedata.name(sign, "").split(" ")[0]
    return script if script in ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE") else ""


def build_profile(
    entry: ServerEntry,
    id: str,
    source: ProfileSource,
    defaults: DefaultsEntry,
    dialect: str,
    notes: tuple[str, ...] = (),
) -> Profile:
    """`dialect` is `crewx`, `mcpServers`, `vscode` or `agenthub`; it decides what a bare `http` means."""
    kind = _kind(entry)
    connection = _stdio(entry, defaults) if kind == "stdio" else _http(entry, defaults, kind, dialect)
    if isinstance(entry.sandbox, dict) or entry.sandbox_enabled:
        notes += ("VS Code's own sandbox rules are not used; see allowedPaths, network and sandbox",)
    return Profile(
        id=id,
        source=source,
        connection=connection,
        description=entry.description,
        is_enabled=_is_enabled(entry),
        is_default=entry.default,
        timeout_ms=_first(entry.timeout_ms, entry.timeout, defaults.timeout_ms, 15_000),
        init_timeout_ms=_first(entry.init_timeout_ms, defaults.init_timeout_ms, 10_000),
        idle_exit_ms=_first(entry.idle_exit_ms, defaults.idle_exit_ms, 300_000),
        tools_cache_ttl_ms=_first(entry.tools_cache_ttl_ms, defaults.tools_cache_ttl_ms, 60_000),
        protocol=_first(entry.protocol, defaults.protocol, "auto"),
        isolation=_first(entry.isolation, defaults.isolation, "shared"),
        roots=_roots(entry, defaults, connection),
        tools=_tools(entry),
        limits=_limits(entry, defaults),
        circuit=_circuit(entry, defaults),
        notes=notes,
    )


def _roots(entry: ServerEntry, defaults: DefaultsEntry, connection: StdioSettings | HttpSettings) -> Roots:
    roots: Roots = _first(entry.roots, defaults.roots, "allowedPaths")
    if roots == "client" and isinstance(connection, StdioSettings) and connection.allowed_paths is not None:
        raise FieldProblem(("roots",), "the client's folders contradict allowedPaths", 'remove it, or "allowedPaths"')
    return roots


def _first(*values: T | UnsetType) -> T:
    return next(value for value in values if value is not UNSET)


def _is_enabled(entry: ServerEntry) -> bool:
    if entry.disabled is not UNSET and entry.enabled is not UNSET and entry.disabled == entry.enabled:
        raise FieldProblem(("enabled",), "contradicts 'disabled'", "keep one of the two")
    if entry.disabled is not UNSET:
        return not entry.disabled
    return _first(entry.enabled, True)


def _kind(entry: ServerEntry) -> str:
    named = {
        wire: "http" if value.lower().startswith("streamable") else value
        for wire, value in (
            ("kind", entry.kind),
            ("type", entry.type),
            ("transport", entry.transport),
            ("transport_type", entry.hub_transport_type),
        )
        if value is not UNSET
    }
    if len(set(named.values())) > 1:
        first, second = list(named)[:2]
        raise FieldProblem((second,), f"contradicts '{first}'", "keep one of the two")
    has_command = entry.command is not None or entry.hub_stdio_config is not None
    address = _address_field(entry)
    if has_command and address:
        raise FieldProblem((_wire_name(address),), "a server has a command or an address, not both", "remove one")
    kind = next(iter(named.values()), "stdio" if has_command else "")
    if kind == "stdio" and not has_command:
        raise FieldProblem(("command",), "is missing", "name the program to start")
    if kind != "stdio" and has_command:
        raise FieldProblem(("command",), f"a server of kind '{kind}' has no command", "use kind 'stdio', or baseUrl")
    if kind != "stdio" and not address:
        raise FieldProblem(("baseUrl",), "is missing", "give baseUrl (or url), or command for a local process")
    return kind


def _address_field(entry: ServerEntry) -> str | None:
    given = [name for name in _URL_FIELDS if getattr(entry, name)]
    if len(given) > 1:
        raise FieldProblem((_wire_name(given[1]),), f"contradicts '{_wire_name(given[0])}'", "keep one of the two")
    return given[0] if given else None


def _wire_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _http(entry: ServerEntry, defaults: DefaultsEntry, kind: str, dialect: str) -> HttpSettings:
    field = _address_field(entry) or "url"
    url = str(getattr(entry, field))
    check_url(url, _wire_name(field))
    fallback = entry.fallback_url or entry.hub_fallback_url or None
    if fallback:
        check_url(fallback, "fallbackUrl")
    flavour: HttpFlavour = "auto"
    if kind == "sse":
        flavour = "sse"
    elif field in ("base_url", "http_url") or (kind == "http" and dialect != "vscode"):
        flavour = "http"
    headers = {name: value for name, value in (entry.headers or {}).items() if value is not None}
    auth, more = build_auth(entry)
    for name in headers:
        if fact := check_header(name):
            raise FieldProblem(("headers", name), fact, "use letters, digits and '-'")
    return HttpSettings(
        url=url,
        is_base=field == "base_url",
        flavour=flavour,
        fallback_url=fallback,
        headers={name: Secret(_text(value)) for name, value in {**more, **headers}.items()},
        auth=auth,
        keep_alive=_first(entry.keep_alive, defaults.keep_alive, True),
    )


def check_header(name: str) -> str | None:
    return None if _HEADER_NAME.fullmatch(name) else "must be the name of an HTTP header"


def check_url(url: str, field: str) -> None:
    """Refuses what no HTTP client could dial. References are left for the moment they are filled in."""
    if url.startswith("${") or ("${" in url and "://" not in url):
        return
    try:
        parts = urlsplit(re.sub(r"\$\{[^}]*\}", "0", url))
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_good = False
    if not is_good or any(ord(char) <= 32 for char in url):
        raise FieldProblem((field,), "must be an http or https address", "write it as https://host:port/mcp")


def _stdio(entry: ServerEntry, defaults: DefaultsEntry) -> StdioSettings:
    hub = entry.hub_stdio_config
    command = entry.command or (hub.command if hub else "")
    args = entry.args if entry.args is not None else hub.args if hub else []
    env = entry.env if entry.env is not None else hub.env if hub else {}
    where = () if entry.command else ("stdio_config",)
    for index, text in enumerate(args):
        if "\0" in text:
            raise FieldProblem((*where, "args", index), "holds a NUL character", "remove it")
    if "\0" in command:
        raise FieldProblem((*where, "command"), "holds a NUL character", "remove it")
    for name in env:
        if not _VARIABLE.fullmatch(name):
            raise FieldProblem((*where, "env", name), "must be the name of a variable", "a name has no '='")
    sandbox = entry.sandbox if isinstance(entry.sandbox, str) else UNSET
    return StdioSettings(
        command=command,
        args=tuple(args),
        cwd=entry.cwd or (hub.cwd if hub else "") or None,
        env={name: Secret(_text(value)) for name, value in env.items() if value is not None},
        env_file=entry.env_file,
        inherit_env=tuple(_first(entry.inherit_env, defaults.inherit_env, [])),
        inherits_network=_first(entry.inherit_network, defaults.inherit_network, True),
        restart=_restart(entry, defaults),
        allowed_paths=_allowed_paths(entry),
        network=_network(entry.network),
        sandbox=_first(sandbox, defaults.sandbox, "auto"),
        rlimits={name: _rlimit(name, value) for name, value in entry.rlimits.items()},
    )


def _text(value: EnvValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _restart(entry: ServerEntry, defaults: DefaultsEntry) -> RestartSettings:
    hub = entry.hub_stdio_config
    restarts = _first(entry.hub_restart_on_crash, hub.hub_restart_on_crash if hub else None)
    most = _first(entry.hub_max_restart_attempts, hub.hub_max_restart_attempts if hub else None)
    if entry.restart is not UNSET and (entry.hub_restart_on_crash is not UNSET):
        raise FieldProblem(("restart_on_crash",), "contradicts 'restart'", "keep one of the two")
    restart = _restart_of(RestartSettings(), defaults)
    if restarts is not None:
        restart = structs.replace(restart, policy="on-failure" if restarts else "never")
    if most is not None:
        restart = structs.replace(restart, max_restarts=most)
    return _restart_of(restart, entry)


def _restart_of(below: RestartSettings, entry: SharedEntry) -> RestartSettings:
    if isinstance(entry.restart, str):
        return structs.replace(below, policy=entry.restart)
    if isinstance(entry.restart, RestartEntry):
        return structs.replace(below, **_given(entry.restart))
    return below


def _given(part: RestartEntry) -> dict[str, object]:
    return {name: value for name, value in structs.asdict(part).items() if value is not UNSET}


def _allowed_paths(entry: ServerEntry) -> tuple[AllowedPath, ...] | None:
    hub = entry.hub_stdio_config
    given: list[tuple[tuple[str | int, ...], list[str | PathEntry]]] = []
    if entry.allowed_paths is not UNSET:
        given.append((("allowedPaths",), entry.allowed_paths))
    if entry.hub_allowed_paths is not UNSET:
        given.append((("allowed_paths",), entry.hub_allowed_paths))
    if hub and hub.hub_allowed_paths is not UNSET:
        given.append((("stdio_config", "allowed_paths"), hub.hub_allowed_paths))
    if len(given) > 1:
        raise FieldProblem(given[1][0], f"contradicts '{given[0][0][-1]}'", "keep one of the two")
    if not given:
        return None
    paths = []
    for where, items in given:
        for index, item in enumerate(items):
            one = AllowedPath(item) if isinstance(item, str) else AllowedPath(item.path, item.mode)
            if fact := check_allowed_path(one.path):
                raise FieldProblem((*where, index), fact, "write the whole path, or ${PWD}/… for the working folder")
            paths.append(one)
    return tuple(paths)


def check_allowed_path(path: str) -> str | None:
    """Design 003, Security: relative paths and `..` are refused. References are left for later."""
    if ".." in path.replace("\\", "/").split("/"):
        return "an allowed path has no '..' in it"
    if not path.startswith(("/", "~/", "${")) and path != "~":
        return "an allowed path is absolute"
    return None


def _network(given: str | list[str] | UnsetType) -> NetworkSettings:
    if given is UNSET:
        return NetworkSettings()
    if isinstance(given, str) and given in ("none", "loopback", "all"):
        return NetworkSettings(given)  # type: ignore[arg-type]
    hosts = tuple(given.replace(",", " ").split()) if isinstance(given, str) else tuple(given)
    for host in hosts:
        match = _HOST_PORT.fullmatch(host)
        if "${" not in host and (match is None or (match[2] != "*" and not 0 < int(match[2]) < 65536)):
            raise FieldProblem(
                ("network",), f"each entry must be host:port, got '{host}'", "use none, loopback, all, or host:443"
            )
    return NetworkSettings("listed" if hosts else "none", hosts)


def _rlimit(name: str, value: int | str) -> int:
    if name not in RLIMITS:
        raise FieldProblem(("rlimits", name), "is not a known limit", f"known: {', '.join(RLIMITS)}")
    if isinstance(value, int):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise FieldProblem(("rlimits", name), "must be a size", "write a number, or one such as 512M or 1G")
    return int(match[1]) << _SCALE[match[2].upper()]


def _tools(entry: ServerEntry) -> ToolRules:
    tools = entry.tools
    targets = list(tools.rename.values())
    for name, target in tools.rename.items():
        if targets.count(target) > 1:
            raise FieldProblem(("tools", "rename", name), f"two tools would be called '{target}'", "choose another")
    return ToolRules(
        allow=tuple(_first(tools.allow, entry.include_tools, ["*"])),
        deny=tuple(dict.fromkeys([*tools.deny, *entry.exclude_tools, *entry.disabled_tools])),
        rename=tools.rename,
        describe=tools.describe,
        confirm=tuple(tools.confirm),
        pin=tools.pin,
    )


def _limits(entry: ServerEntry, defaults: DefaultsEntry) -> LimitSettings:
    given = entry.limits if entry.limits is not UNSET else defaults.limits
    return LimitSettings(**structs.asdict(given)) if given is not UNSET else LimitSettings()


def _circuit(entry: ServerEntry, defaults: DefaultsEntry) -> CircuitSettings:
    given = entry.circuit if entry.circuit is not UNSET else defaults.circuit
    return CircuitSettings(**structs.asdict(given)) if given is not UNSET else CircuitSettings()
