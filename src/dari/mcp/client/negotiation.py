"""Which era and revision: `server/discover` first, `initialize` where that is not understood."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

from dari.errors import DariError, Denied, Failed, Unavailable
from dari.mcp.client.channel import Channel
from dari.mcp.client.decode import read
from dari.mcp.client.errors import RemoteError, ServerRefused, Unauthorized
from dari.mcp.client.multiplexer import MessageMultiplexer
from dari.mcp.client.pending import FOREVER
from dari.mcp.client.results import Implementation
from dari.mcp.client.versions import PREFIX, HandshakeEnvelope, StatelessEnvelope
from dari.mcp.versions import HANDSHAKE, LATEST_HANDSHAKE, STATELESS, UNSUPPORTED_VERSION, V2024_11
from dari.rpc.codec import METHOD_NOT_FOUND, decode_any, encode

Mode = Literal["auto", "stateless", "handshake"]

# A server of the old era may say nothing at all to a method it does not know. After this time, the first answer wins.
PROBE_S = 3.0
MAX_AGREEMENT_BYTES = 1024 * 1024
"""Of what a server says about itself: it is kept, shown, and written to a file with every list."""


class Agreement(Struct, frozen=True, kw_only=True):
    """What the two sides settled."""

    version: str
    is_stateless: bool
    server: Implementation
    capabilities: dict[str, Any]
    instructions: str
    raw: Raw
    """The result of `initialize` or `server/discover`, as it came."""


class _Initialized(Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any] = {}
    server_info: Raw = Raw(b"{}")
    instructions: str = ""


class _Discovered(Struct, rename="camel"):
    supported_versions: list[str]
    capabilities: dict[str, Any] = {}
    instructions: str = ""
    server_info: Raw | UnsetType = UNSET
    meta: dict[str, Raw] = field(default_factory=dict, name="_meta")


class Negotiation:
    """Opens a conversation in the era that the server speaks."""

    def __init__(
        self,
        conversation: MessageMultiplexer,
        channel: Channel,
        *,
        info: dict[str, str],
        capabilities: dict[str, Any],
        reopen: Callable[[], Awaitable[None]],
        probe_s: float = PROBE_S,
    ) -> None:
        self._conversation = conversation
        self._channel = channel
        self._info = info
        self._capabilities = capabilities
        self._reopen = reopen
        self._probe_s = probe_s

    async def agree(self, mode: Mode) -> Agreement:
        if mode == "handshake":
            return await self.initialize()
        if mode == "stateless":
            return await self._discover()
        probe = asyncio.ensure_future(self._discover())
        try:
            await asyncio.wait({probe}, timeout=self._probe_s)
            while self._conversation.is_held and not probe.done():
                await asyncio.wait({probe}, timeout=self._probe_s)
            return await self._judge(probe) if probe.done() else await self._race(probe)
        finally:
            probe.cancel()
            await asyncio.gather(probe, return_exceptions=True)

    async def initialize(self) -> Agreement:
        """The handshake. Also the way to a new session when the server has forgotten ours."""
        try:
            return await self._initialize(LATEST_HANDSHAKE)
        except RemoteError as error:
            if error.remote_code == METHOD_NOT_FOUND and self._channel.carries_headers:
                return await self._go_without(error)
            # MCP lets a server answer with the revision it prefers; a strict one names it in an error instead.
            older = [known for known in HANDSHAKE if known in _supported(error)]
            if not older or LATEST_HANDSHAKE in older:
                raise
        return await self._initialize(older[-1])

    async def _initialize(self, version: str) -> Agreement:
        conversation, channel = self._conversation, self._channel
        channel.agreed("", is_stateless=False)
        params = {"protocolVersion": version, "capabilities": self._capabilities, "clientInfo": self._info}
        raw = await conversation.ask("initialize", encode(params), timeout_s=FOREVER, era=HandshakeEnvelope())
        _check_size(raw, "initialize")
        result = read(raw, _Initialized, "answer to initialize")
        if result.protocol_version not in HANDSHAKE:
            raise Failed(
                f"the server wants protocol {result.protocol_version!r}", f"this client speaks {', '.join(HANDSHAKE)}"
            )
        conversation.era = HandshakeEnvelope(result.protocol_version)
        channel.agreed(result.protocol_version, is_stateless=False)
        conversation.tell("notifications/initialized")
        return Agreement(
            version=result.protocol_version,
            is_stateless=False,
            server=_implementation(result.server_info),
            capabilities=result.capabilities,
            instructions=result.instructions,
            raw=raw.copy(),
        )

    async def _go_without(self, error: RemoteError) -> Agreement:
        """Single JSON-RPC calls without a handshake (design 001 §14.1), if the server lists tools like that."""
        conversation, channel = self._conversation, self._channel
        try:
            await conversation.ask("tools/list", b"{}", timeout_s=FOREVER, era=HandshakeEnvelope())
        except DariError:
            raise error from None
        conversation.era = HandshakeEnvelope(V2024_11)
        channel.agreed(V2024_11, is_stateless=False)
        return Agreement(
            version=V2024_11,
            is_stateless=False,
            server=Implementation(name=""),
            capabilities={"tools": {}},
            instructions="",
            raw=Raw(b"{}"),
        )

    async def _judge(self, probe: asyncio.Future[Agreement]) -> Agreement:
        """The probe has ended: that settles it, unless the server just is of the other era."""
        try:
            return probe.result()
        except Unauthorized:
            raise
        except RemoteError as error:
            if _is_of_neither_era(error):
                raise
        except (ServerRefused, Failed, Denied):
            pass
        except Unavailable:
            if not self._conversation.ended.done():
                raise
            # Some servers (Rust's rmcp) end themselves when the first message is not `initialize`.
            await self._reopen()
        return await self.initialize()

    async def _race(self, probe: asyncio.Future[Agreement]) -> Agreement:
        """The server is slow, or deaf to the probe: send the handshake too, and take what comes first."""
        handshake = asyncio.ensure_future(self.initialize())
        try:
            await asyncio.wait({probe, handshake}, return_when=asyncio.FIRST_COMPLETED)
            if probe.done() and probe.exception() is None:
                return self._adopt(probe.result())
            if not handshake.done():
                await asyncio.wait({handshake})
            if handshake.exception() is not None and not probe.done():
                # The server took the probe and now refuses to change: its answer must be on the way.
                await asyncio.wait({probe}, timeout=self._probe_s)
                if probe.done() and probe.exception() is None:
                    return self._adopt(probe.result())
            return handshake.result()
        finally:
            handshake.cancel()
            await asyncio.gather(handshake, return_exceptions=True)

    async def _discover(self) -> Agreement:
        version = STATELESS[-1]
        try:
            return await self._ask_discover(version)
        except RemoteError as error:
            mutual = [known for known in STATELESS if known in _supported(error)]
            if error.remote_code != UNSUPPORTED_VERSION or not mutual:
                raise
            return await self._ask_discover(mutual[-1])

    async def _ask_discover(self, version: str) -> Agreement:
        era = StatelessEnvelope(version, self._capabilities, self._info)
        headers = era.headers("server/discover", "")
        raw = await self._conversation.ask("server/discover", b"{}", headers=headers, timeout_s=FOREVER, era=era)
        _check_size(raw, "server/discover")
        result = read(raw, _Discovered, "answer to server/discover")
        mutual = [known for known in STATELESS if known in result.supported_versions]
        if not mutual:
            raise Failed(
                f"the server speaks {', '.join(result.supported_versions)}",
                f"this client speaks {', '.join(STATELESS)}",
            )
        info = result.meta.get(PREFIX + "serverInfo", result.server_info)
        agreement = Agreement(
            version=mutual[-1],
            is_stateless=True,
            server=_implementation(Raw(b"{}") if info is UNSET else info),
            capabilities=result.capabilities,
            instructions=result.instructions,
            raw=raw.copy(),
        )
        return self._adopt(agreement)

    def _adopt(self, agreement: Agreement) -> Agreement:
        self._conversation.era = StatelessEnvelope(agreement.version, self._capabilities, self._info)
        self._channel.agreed(agreement.version, is_stateless=True)
        return agreement


def _check_size(raw: Raw, method: str) -> None:
    size_bytes = len(bytes(raw))
    if size_bytes > MAX_AGREEMENT_BYTES:
        limit = f"the server's answer to {method} must have at most {MAX_AGREEMENT_BYTES:,} bytes"
        raise Failed(f"{limit}, got {size_bytes:,}", "ask its author for shorter instructions")


def _supported(error: RemoteError) -> list[Any]:
    supported = error.data.get("supported") if isinstance(error.data, dict) else None
    return supported if isinstance(supported, list) else []


def _is_of_neither_era(error: RemoteError) -> bool:
    """The server names the revisions it speaks, and none of them is ours."""
    supported = _supported(error)
    return (
        error.remote_code == UNSUPPORTED_VERSION
        and bool(supported)
        and not any(known in supported for known in (*STATELESS, *HANDSHAKE))
    )


def _implementation(raw: Raw) -> Implementation:
    """For display only, so nothing about it can fail a connection."""
    try:
        return read(raw, Implementation, "name")
    except Failed:
        return Implementation(name=str(decode_any(raw))[:100])
