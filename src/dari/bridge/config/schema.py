"""The types of `mcp.json` (design 001) and of its relatives: every field and every alias.

One `ServerEntry` serves all dialects: CrewX `servers: [{"id": …}]`, `mcpServers` of Claude and Cursor, `servers: {…}`
of VS Code, AgentHub's YAML. Fields that only another dialect spells that way stand below the line in the struct.
The published JSON Schema is generated from these types.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from dari.bridge.config.jsonc import JsonValue
from dari.bridge.config.profile import (
    AuthType,
    Isolation,
    ListMode,
    PathMode,
    Pinning,
    PrefixRule,
    Protocol,
    RestartPolicy,
    Roots,
    SandboxMode,
)

Ms = Annotated[int, Meta(ge=0, le=7 * 24 * 3600 * 1000)]
SomeMs = Annotated[int, Meta(ge=1, le=7 * 24 * 3600 * 1000)]
Count = Annotated[int, Meta(ge=0)]
SomeCount = Annotated[int, Meta(ge=1)]
Text = Annotated[str, Meta(min_length=1)]
Kind = Literal["http", "stdio", "sse", "streamable-http", "streamableHttp", "streamable_http"]
EnvValue = str | int | float | bool | None
ProgramName = Literal["claude-desktop", "claude-code", "cursor", "vscode", "codex", "gemini", "windsurf", "opencode"]


def _wire(name: str) -> str:
    """`hub_allowed_paths` is AgentHub's `allowed_paths`; Cursor writes capitals; all others write camelCase."""
    if name.startswith("hub_"):
        return name.removeprefix("hub_")
    if name.isupper():
        return name
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=_wire, omit_defaults=True):
    """What all parts of the file share."""


class RestartEntry(_Part, frozen=True):
    policy: RestartPolicy | UnsetType = UNSET
    max_restarts: Count | UnsetType = UNSET
    backoff_ms: Ms | UnsetType = UNSET
    window_ms: SomeMs | UnsetType = UNSET


class PathEntry(_Part, frozen=True):
    path: Text
    mode: PathMode = "rw"


class AuthEntry(_Part, frozen=True):
    type: AuthType | Literal["api_key"] | UnsetType = UNSET
    token: str | UnsetType = UNSET
    header: Text | UnsetType = UNSET
    prefix: str | UnsetType = UNSET
    client_id: Text | None = None
    client_secret: Text | None = None
    client_metadata_url: Text | None = None
    authorization_url: Text | None = None
    token_url: Text | None = None
    auth_server_metadata_url: Text | None = None
    resource: Text | None = None
    redirect_uri: Text | None = None
    callback_port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    scopes: str | list[str] = []
    allow_private: Annotated[
        bool, Meta(description="Its authorization server may be on this machine or a private network.")
    ] = False
    keyring: bool = True
    # Gemini's switch, Cursor's names, AgentHub's AuthConfig:
    enabled: bool = True
    CLIENT_ID: Text | None = None
    CLIENT_SECRET: Text | None = None
    hub_auth_type: AuthType | Literal["api_key"] | UnsetType = UNSET
    headers: dict[str, str] = {}
    hub_api_key: str = ""
    hub_api_key_header: str = "X-API-Key"
    hub_api_key_prefix: str = ""
    hub_oauth2_client_id: str | None = None
    hub_oauth2_client_secret: str | None = None
    hub_oauth2_scopes: str | list[str] = []
    hub_oauth2_authorize_url: str | None = None
    hub_oauth2_token_url: str | None = None


class ToolsEntry(_Part, frozen=True):
    allow: list[Text] | UnsetType = UNSET
    deny: list[Text] = []
    rename: dict[str, Text] = {}
    describe: dict[str, str] = {}
    confirm: list[Text] = []
    pin: Pinning = "tofu"


class LimitsEntry(_Part, frozen=True):
    rps: Annotated[float, Meta(gt=0)] | None = None
    burst: SomeCount | None = None
    concurrency: SomeCount | None = None
    max_result_bytes: SomeCount | None = None


class CircuitEntry(_Part, frozen=True):
    failures: Count = 5
    recover_ms: Ms = 60_000


class StdioConfigEntry(_Part, frozen=True):
    """AgentHub's `stdio_config` (design 003, StdioConfig)."""

    command: Text
    args: list[str] = []
    env: dict[str, EnvValue] = {}
    cwd: str = ""
    hub_allowed_paths: list[Text | PathEntry] | UnsetType = UNSET
    hub_restart_on_crash: bool = True
    hub_max_restart_attempts: Count = 3


class SharedEntry(_Part, frozen=True):
    """What a server may set for itself and `defaults` for all servers of the file."""

    timeout_ms: Annotated[SomeMs, Meta(description="Limit of one request; 15000 when absent.")] | UnsetType = UNSET
    init_timeout_ms: (
        Annotated[SomeMs, Meta(description="How long the start and handshake may take; 10000 when absent.")] | UnsetType
    ) = UNSET
    idle_exit_ms: (
        Annotated[Ms, Meta(description="Stop the process after this time without a call; 0 is never.")] | UnsetType
    ) = UNSET
    tools_cache_ttl_ms: (
        Annotated[Ms, Meta(description="How long a listing of tools stays fresh; 60000 when absent.")] | UnsetType
    ) = UNSET
    keep_alive: Annotated[bool, Meta(description="Reuse HTTP connections.")] | UnsetType = UNSET
    restart: RestartPolicy | RestartEntry | UnsetType = UNSET
    protocol: Protocol | UnsetType = UNSET
    isolation: Isolation | UnsetType = UNSET
    roots: (
        Annotated[Roots, Meta(description="Whose folders the server gets as roots; allowedPaths when absent.")]
        | UnsetType
    ) = UNSET
    limits: LimitsEntry | UnsetType = UNSET
    circuit: CircuitEntry | UnsetType = UNSET
    inherit_env: (
        Annotated[list[Text], Meta(description="Names of our variables that the process gets too.")] | UnsetType
    ) = UNSET
    inherit_network: (
        Annotated[bool, Meta(description="Hand on CA bundle and proxy variables; true when absent.")] | UnsetType
    ) = UNSET


class DefaultsEntry(SharedEntry, frozen=True):
    """Holds for the servers of the same file only: a project cannot change your own profiles."""

    sandbox: SandboxMode | UnsetType = UNSET


class ServerEntry(SharedEntry, frozen=True):
    """One MCP server: `command` for a process, `baseUrl` or `url` for an address."""

    id: Annotated[str, Meta(description="Unique name; the key, where servers stand in an object.")] | UnsetType = UNSET
    kind: Annotated[Kind, Meta(description="Told from `command` or `url` when absent.")] | UnsetType = UNSET
    description: str = ""
    default: Annotated[bool, Meta(description="Used when no server is named; the last one counts.")] = False
    disabled: bool | UnsetType = UNSET
    base_url: Annotated[str, Meta(description="HTTP address without or with the final `/mcp`.")] | None = None
    url: Annotated[str, Meta(description="HTTP address, used as it stands.")] | None = None
    fallback_url: Text | None = None
    api_key: Annotated[str, Meta(description="Bearer token; `${NAME}` keeps it out of the file.")] | None = None
    headers: dict[str, EnvValue] | None = None
    auth: AuthEntry | UnsetType = UNSET
    command: Text | None = None
    args: list[str] | None = None
    cwd: str | None = None
    env: Annotated[dict[str, EnvValue], Meta(description="null leaves a name out.")] | None = None
    env_file: Text | None = None
    allowed_paths: (
        Annotated[list[Text | PathEntry], Meta(description="Absolute paths the process may use; a bare one is rw.")]
        | UnsetType
    ) = UNSET
    network: Annotated[str | list[Text], Meta(description="none, loopback, all, or host:port names.")] | UnsetType = (
        UNSET
    )
    sandbox: SandboxMode | dict[str, Any] | UnsetType = UNSET
    rlimits: Annotated[dict[str, Count | str], Meta(description='Such as {"as": "1G", "nofile": 256}.')] = {}
    tools: ToolsEntry = ToolsEntry()
    managed: bool = True
    # ---- other dialects: VS Code, Claude, Cursor, Windsurf, Gemini, opencode
    type: Kind | UnsetType = UNSET
    transport: Kind | UnsetType = UNSET
    server_url: Text | None = None
    http_url: Text | None = None
    timeout: SomeMs | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    oauth: AuthEntry | bool | UnsetType = UNSET
    include_tools: list[Text] | UnsetType = UNSET
    exclude_tools: list[Text] = []
    disabled_tools: list[Text] = []
    sandbox_enabled: bool = False
    # ---- AgentHub (design 003)
    name: str | UnsetType = UNSET
    hub_transport_type: Kind | UnsetType = UNSET
    hub_stdio_config: StdioConfigEntry | None = None
    hub_allowed_paths: list[Text | PathEntry] | UnsetType = UNSET
    hub_fallback_url: str | None = None
    hub_auth_config: AuthEntry | None = None
    hub_restart_on_crash: bool | UnsetType = UNSET
    hub_max_restart_attempts: Count | UnsetType = UNSET


class InputEntry(_Part, frozen=True):
    id: Text
    type: Literal["promptString", "pickString", "command"] = "promptString"
    description: str = ""
    password: bool = False
    default: str | None = None
    options: list[str | dict[str, str]] = []
    command: str = ""
    args: Any = None


class SetEntry(_Part, frozen=True):
    servers: list[Text] | UnsetType = UNSET
    mode: ListMode = "full"


class GatewayAuthEntry(_Part, frozen=True):
    tokens: Literal["file", "keyring"] = "file"


class GatewayEntry(_Part, frozen=True):
    listen: Text = "127.0.0.1:3847"
    unix: bool = True
    auth: GatewayAuthEntry = GatewayAuthEntry()
    separator: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,8}$")] = "__"
    prefix: PrefixRule = "always"
    mode: ListMode = "full"
    audit: bool = True
    otel: Text | None = None


class EndpointsEntry(_Part, frozen=True):
    """AgentHub's `mcp: {endpoints: […]}` (design 003)."""

    endpoints: list[ServerEntry] = []


class ImportsEntry(_Part, frozen=True):
    imports: list[ProgramName]


class Document(Struct, frozen=True, kw_only=True, rename="camel"):
    """A file of profiles."""

    schema_: str | UnsetType = UNSET
    version: str | int | UnsetType = UNSET
    imports: list[ProgramName] = []
    defaults: DefaultsEntry = DefaultsEntry()
    mcp_servers: dict[str, ServerEntry] = {}
    servers: list[ServerEntry] | dict[str, ServerEntry] = []
    profiles: dict[str, SetEntry] = {}
    gateway: GatewayEntry = GatewayEntry()
    inputs: list[InputEntry] = []
    mcp: EndpointsEntry = EndpointsEntry()


FOREIGN_FIELDS = {
    "alwaysAllow": "use tools.confirm for what needs a yes",
    "autoApprove": "use tools.confirm for what needs a yes",
    "trust": "use tools.confirm for what needs a yes",
    "headersHelper": "it runs a command, which is never done; set the header with ${…}",
    "authProviderType": "use auth",
    "dev": "development mode of VS Code",
    "gallery": "where VS Code found it",
    "version": "where VS Code found it",
    "alwaysLoad": "the gateway decides what it lists",
    "extensionName": "belongs to Gemini",
}
"""Fields of other programs that say nothing to us, and what to use instead."""
SCHEMA_ID = "urn:dari:schema:mcp.json"
Schema = dict[str, JsonValue]
_REF = "#/$defs/{name}"


def profile_schema() -> Schema:
    """JSON Schema 2020-12 of one file. Servers in a list are closed; in an object they may have foreign fields."""
    (_,), defs = msgspec.json.schema_components([Document], ref_template=_REF)
    root = defs.pop("Document")
    properties = root["properties"]
    properties["$schema"] = {"type": "string"}
    del properties["schema"]
    open_entry = {**defs["ServerEntry"], "additionalProperties": True}
    open_entry["properties"] = {**open_entry["properties"], **dict.fromkeys(FOREIGN_FIELDS, True)}
    defs["NamedServer"] = open_entry
    defs["ServerEntry"] = _closed(defs["ServerEntry"])
    named = {"type": "object", "additionalProperties": {"$ref": _REF.format(name="NamedServer")}}
    listed = {"type": "array", "items": {"$ref": _REF.format(name="ServerEntry")}}
    properties["servers"] = {"anyOf": [listed, named], "description": "CrewX writes a list, VS Code an object."}
    properties["mcpServers"] = {**named, "description": "As Claude, Cursor and Windsurf write it."}
    defs["EndpointsEntry"]["properties"]["endpoints"] = {
        "type": "array",
        "items": {"$ref": _REF.format(name="NamedServer")},
    }
    schema: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Profiles of MCP servers (mcp.json)",
        "description": root["description"],
        "type": "object",
        "properties": properties,
        "$defs": defs,
    }
    return schema


def schema_text() -> str:
    """As it is published."""
    return json.dumps(profile_schema(), indent=2, ensure_ascii=False) + "\n"


def _closed(entry: Schema) -> Schema:
    """An entry of our own dialect: it has a name, and no field we do not know, but for `x-…`."""
    return {**entry, "required": ["id"], "patternProperties": {"^(x-|_|\\$|//)": True}, "additionalProperties": False}
