"""Open a session with a server as its profile says: child process, Streamable HTTP, or the older HTTP+SSE."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from msgspec import Struct, field

from dari.bridge.children.supervisor import INIT_S, SessionEnd
from dari.bridge.config.profile import AuthSettings, HttpSettings, Profile
from dari.bridge.upstream.cache import Era
from dari.bridge.upstream.caller import ServerRequestRouter
from dari.bridge.upstream.resolved import ResolvedServer
from dari.core.context import LEVELS, Level
from dari.errors import DariError
from dari.mcp.client.client import Client
from dari.mcp.client.errors import ServerRefused
from dari.mcp.client.negotiation import Mode
from dari.mcp.client.oauth import OAuth
from dari.transport.connect import ClientOptions

if TYPE_CHECKING:
    from dari.bridge.children.channel import SupervisedChannel
    from dari.bridge.children.start_queue import StartTurn
    from dari.process.child import Child
    from dari.process.children import Children

Flavour = Literal["http", "sse"]
# What a server of 2024-11-05 says to a POST on its event stream's address.
_NOT_STREAMABLE = (400, 404, 405, 406, 415)


class MakeOAuth(Protocol):
    def __call__(self, profile: Profile, url: str) -> OAuth | None: ...


class UpstreamSession(Struct, eq=False):
    """An open client, who uses it now, and whether its lists have been looked at."""

    client: Client
    url: str = ""
    flavour: Flavour | None = None
    child: Child | None = None
    channel: SupervisedChannel | None = None
    asking: ServerRequestRouter = field(default_factory=ServerRequestRouter)
    changes: int = 0
    """How often the server has said that its tools changed."""
    reviewed: int = -1
    """Up to which of these changes its tools have been compared with the pins."""
    reviewing: asyncio.Task[None] | None = None
    level: Level | Literal[""] = ""
    """The level of log messages that it was asked for."""

    @property
    def is_reviewed(self) -> bool:
        return self.reviewed == self.changes

    def hears(self, level: Level | None) -> bool:
        """Whether it was asked for log messages that are as detailed as a caller wants."""
        if level is None or level == self.level:
            return True
        return bool(self.level) and LEVELS.index(self.level) <= LEVELS.index(level)

    @property
    def era(self) -> Era:
        return self.client.era

    @property
    def is_open(self) -> bool:
        return self.client.is_open

    async def ended(self) -> SessionEnd:
        error = await self.client.ended()
        return SessionEnd(error, is_fault=self.child is None or self.child.returncode != 0)

    async def close(self) -> None:
        await self.client.close()


class UpstreamConnector(Struct):
    """Opens sessions of one target. `options` are made per session, because callbacks belong to it."""

    target: ResolvedServer
    children: Callable[[], Children]
    """Asked for when the first child is started: what starts processes takes 40 ms to import."""
    make_oauth: MakeOAuth | None = None
    on_child: Callable[[Child], None] = lambda child: None
    """Hears of each process as soon as it runs, whether it will answer or not."""

    async def child(
        self,
        era: Era | None,
        options: ClientOptions,
        turn: StartTurn | None = None,
        *,
        is_first: bool = False,
        on_note: Callable[[str], None] | None = None,
    ) -> UpstreamSession:
        """`is_first`: it has never answered, so that its command may have to download it; `on_note` hears of that."""
        from dari.bridge.children.channel import SupervisedChannel
        from dari.bridge.children.downloads import download_of
        from dari.bridge.children.start_watch import StartLimits, StartWatch

        spec = self.target.spec
        assert spec is not None
        limits = StartLimits(options.get("open_timeout_s", INIT_S), download_of(spec.command), is_first)
        options = {**options, "open_timeout_s": limits.whole_s}

        async def start() -> Child:
            child = await self.children().start(spec)
            self.on_child(child)
            return child

        channel = SupervisedChannel(start)
        async with StartWatch(channel, limits, turn, on_note):
            client = await self._agreed(lambda mode: Client(channel, **_with(options, mode)), era)
        return UpstreamSession(client, child=channel.child, channel=channel)

    async def http(self, url: str, era: Era | None, flavour: Flavour | None, options: ClientOptions) -> UpstreamSession:
        connection = cast(HttpSettings, self.target.profile.connection)
        wanted = connection.flavour if connection.flavour != "auto" else flavour
        if wanted != "sse":
            try:
                client = await self._agreed(lambda mode: self._streamable(url, _with(options, mode)), era)
                return UpstreamSession(client, url=url, flavour="http")
            except ServerRefused as refused:
                if wanted == "http" or refused.status not in _NOT_STREAMABLE:
                    raise
                first: DariError = refused
            try:
                return await self._legacy(url, options)
            except DariError:
                raise first from None
        return await self._legacy(url, options)

    async def _legacy(self, url: str, options: ClientOptions) -> UpstreamSession:
        from dari.transport.client.legacy_sse import SseChannel

        client = Client(SseChannel(url, **self._http_options(url)), **_with(options, "handshake"))
        await client.open()
        return UpstreamSession(client, url=url, flavour="sse")

    async def _agreed(self, make: Callable[[Mode], Client], era: Era | None) -> Client:
        """Opened in the era that is remembered; in whatever the server speaks now when that has become wrong."""
        protocol = self.target.profile.protocol
        if protocol != "auto":
            mode: Mode = "handshake" if protocol == "legacy" else "stateless"
        else:
            mode = era or "auto"
        client = make(mode)
        try:
            await client.open()
        except (DariError, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) or mode == "auto" or protocol != "auto" or _is_gone(error):
                raise
            client = make("auto")
            await client.open()
        return client

    def _streamable(self, url: str, options: ClientOptions) -> Client:
        from dari.transport.client.http import HttpChannel

        return Client(HttpChannel(url, **self._http_options(url)), **options)

    def _http_options(self, url: str) -> Any:
        profile = self.target.profile
        connection = cast(HttpSettings, profile.connection)
        headers = {name: value.reveal() for name, value in connection.headers.items()}
        bearer = _bearer(connection.auth)
        if connection.auth.type == "header" and connection.auth.token is not None:
            headers[connection.auth.header] = f"{connection.auth.prefix}{connection.auth.token.reveal()}"
        if not connection.keep_alive:
            headers["Connection"] = "close"
        given: dict[str, Any] = {"headers": headers, "bearer": bearer, "denied_hint": denied_hint(profile)}
        if self.make_oauth is not None and not bearer and "authorization" not in {name.lower() for name in headers}:
            given["oauth"] = self.make_oauth(profile, url)
        return given


def denied_hint(profile: Profile) -> str:
    """The next step when a server does not accept what a profile tells it."""
    connection = cast(HttpSettings, profile.connection)
    if profile.source.layer == "argument":
        return "give a token that it accepts: --key TOKEN, or --header 'Authorization: …'"
    if connection.auth.type in ("bearer", "header"):
        return f"check apiKey (or auth.token) of the profile '{profile.id}' in {profile.source}"
    if any(name.lower() == "authorization" for name in connection.headers):
        return f"check the header Authorization of the profile '{profile.id}' in {profile.source}"
    return f"set apiKey in the profile '{profile.id}', or log in: dari remote login {profile.id}"


def _bearer(auth: AuthSettings) -> str:
    return auth.token.reveal() if auth.type == "bearer" and auth.token is not None else ""


def _with(options: ClientOptions, mode: Mode) -> ClientOptions:
    return {**options, "mode": mode}


def _is_gone(error: BaseException) -> bool:
    """The server is not there, or takes no one: another era would not help."""
    from dari.errors import Denied, TimedOut, Unavailable

    return isinstance(error, (Denied, TimedOut)) or (
        isinstance(error, Unavailable) and not isinstance(error, ServerRefused)
    )
