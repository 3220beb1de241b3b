"""A profile after reading: one external MCP server, and how to run or reach it.

    Profile
    ├── connection    StdioSettings (a child process) or HttpSettings (an address)
    ├── tools         what of it is shown, renamed, confirmed, pinned
    └── limits, circuit, timeouts

Every value is checked. Text may still hold `${…}`; `substitution.resolve` gives the profile to run with.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from dari.bridge.config.secret import SECRET_MARK, Secret

Protocol = Literal["auto", "legacy", "2026-07-28"]
Isolation = Literal["shared", "per-client", "per-call"]
Roots = Literal["allowedPaths", "client"]
RestartPolicy = Literal["never", "on-failure", "always"]
SandboxMode = Literal["auto", "enforce", "off"]
PathMode = Literal["ro", "rw"]
Pinning = Literal["tofu", "strict", "off"]
AuthType = Literal["none", "bearer", "header", "oauth2"]
HttpFlavour = Literal["auto", "http", "sse"]
Layer = Literal["env", "project", "user", "import", "argument", "built-in"]
ListMode = Literal["full", "search"]
PrefixRule = Literal["always", "multi", "never"]


class ProfileSource(Struct, frozen=True):
    """Where a profile was written down."""

    file: str
    line: int
    layer: Layer
    program: str = ""
    """Whose file it is when it is not ours: `claude-code`, `vscode` …"""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class RestartSettings(Struct, frozen=True, kw_only=True):
    policy: RestartPolicy = "on-failure"
    max_restarts: int = 3
    backoff_ms: int = 2000
    window_ms: int = 60_000
    """Restarts are counted within this time."""


class AllowedPath(Struct, frozen=True):
    path: str
    mode: PathMode = "rw"


class NetworkSettings(Struct, frozen=True):
    """`listed` allows the `host:port` pairs of `hosts` only."""

    mode: Literal["none", "loopback", "listed", "all"] = "all"
    hosts: tuple[str, ...] = ()


class AuthSettings(Struct, frozen=True, kw_only=True):
    """Credentials for an HTTP server. `header` and `prefix` count for type `header` only."""

    type: AuthType = "none"
    token: Secret | None = None
    header: str = "Authorization"
    prefix: str = ""
    client_id: str | None = None
    client_secret: Secret | None = None
    client_metadata_url: str | None = None
    authorization_url: str | None = None
    token_url: str | None = None
    metadata_url: str | None = None
    """Where the authorization server describes itself, when discovery would not find it."""
    resource: str | None = None
    redirect_url: str | None = None
    callback_port: int | None = None
    scopes: tuple[str, ...] = ()
    allows_private: bool = False
    """Whether its authorization server may be elsewhere on this machine or a private network."""
    uses_keyring: bool = True


class StdioSettings(Struct, frozen=True, kw_only=True):
    """A server that is a child process. Nothing of our environment reaches it but the baseline and what is named."""

    command: str
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: dict[str, Secret] = {}
    env_file: str | None = None
    inherit_env: tuple[str, ...] = ()
    inherits_network: bool = True
    """Whether it gets our CA bundle and proxy variables, too."""
    restart: RestartSettings = RestartSettings()
    allowed_paths: tuple[AllowedPath, ...] | None = None
    """None: nothing is said about files; an empty list: only what the program needs to run."""
    network: NetworkSettings = NetworkSettings()
    sandbox: SandboxMode = "auto"
    rlimits: dict[str, int] = {}
    """Name without RLIMIT_, lower case; bytes, seconds or a count."""

    @property
    def is_confined(self) -> bool:
        """Does the profile ask for any wall at all?"""
        return self.sandbox != "off" and bool(
            self.allowed_paths is not None or self.network.mode != "all" or self.sandbox == "enforce"
        )

    def __repr__(self) -> str:
        return f"StdioSettings({self.command!r}, {len(self.args)} args, env={sorted(self.env)})"


class HttpSettings(Struct, frozen=True, kw_only=True):
    """A server behind an address: Streamable HTTP, or the older HTTP+SSE; `auto` tries them in this order."""

    url: str
    is_base: bool = False
    """The address is given without its final `/mcp`; resolving adds it."""
    flavour: HttpFlavour = "auto"
    fallback_url: str | None = None
    headers: dict[str, Secret] = {}
    auth: AuthSettings = AuthSettings()
    keep_alive: bool = True

    def __repr__(self) -> str:
        host = "/".join(safe_url(self.url).split("/")[:3])  # a key can stand in the path as well
        return f"HttpSettings({host!r}, {self.flavour}, headers={sorted(self.headers)})"


class ToolRules(Struct, frozen=True, kw_only=True):
    """Names are globs in `allow`, `deny` and `confirm`; `deny` wins."""

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    rename: dict[str, str] = {}
    describe: dict[str, str] = {}
    confirm: tuple[str, ...] = ()
    pin: Pinning = "tofu"


class LimitSettings(Struct, frozen=True, kw_only=True):
    """None: unlimited."""

    rps: float | None = None
    burst: int | None = None
    concurrency: int | None = None
    max_result_bytes: int | None = None


class CircuitSettings(Struct, frozen=True, kw_only=True):
    failures: int = 5
    """0: the breaker is off."""
    recover_ms: int = 60_000


class Profile(Struct, frozen=True, kw_only=True):
    id: str
    source: ProfileSource
    connection: StdioSettings | HttpSettings
    description: str = ""
    is_enabled: bool = True
    is_default: bool = False
    timeout_ms: int = 15_000
    init_timeout_ms: int = 10_000
    idle_exit_ms: int = 300_000
    """0: never."""
    tools_cache_ttl_ms: int = 60_000
    protocol: Protocol = "auto"
    isolation: Isolation = "shared"
    roots: Roots = "allowedPaths"
    """Who answers `roots/list`: the profile, or the client that calls."""
    tools: ToolRules = ToolRules()
    limits: LimitSettings = LimitSettings()
    circuit: CircuitSettings = CircuitSettings()
    notes: tuple[str, ...] = ()
    """What a person should know: fields that were ignored, and why."""

    @property
    def kind(self) -> Literal["stdio", "http", "sse"]:
        if isinstance(self.connection, StdioSettings):
            return "stdio"
        return "sse" if self.connection.flavour == "sse" else "http"

    @property
    def address(self) -> str:
        """What a listing shows: the command or the URL, without anything secret."""
        if isinstance(self.connection, StdioSettings):
            return self.connection.command
        return safe_url(self.connection.url)


class Input(Struct, frozen=True, kw_only=True):
    """A value that a person is asked for (VS Code's `inputs`)."""

    id: str
    description: str = ""
    is_password: bool = False
    default: str | None = None
    options: tuple[str, ...] = ()


class ServerSet(Struct, frozen=True):
    """A named choice of servers, offered by the gateway under its own address."""

    name: str
    servers: tuple[str, ...] = ("*",)
    mode: ListMode = "full"


class GatewaySettings(Struct, frozen=True, kw_only=True):
    listen: str = "127.0.0.1:3847"
    unix: bool = True
    tokens: Literal["file", "keyring"] = "file"
    separator: str = "__"
    prefix: PrefixRule = "always"
    mode: ListMode = "full"
    audit: bool = True
    otel: str | None = None


def safe_url(url: str) -> str:
    """The URL without user, password, query and fragment, any of which can be a key; references stay readable."""
    if "${" in url.partition("?")[0]:
        head = url.partition("?")[0]
        return head if "@" not in head else SECRET_MARK
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return SECRET_MARK
    return f"{parts.scheme}://{host}{parts.path}"
