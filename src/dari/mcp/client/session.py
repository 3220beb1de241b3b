"""One server from opening to closing: the era it speaks, a session that is renewed, the stream that stands."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from msgspec import Raw

from dari.errors import DariError, TimedOut
from dari.mcp.client.callbacks import Callbacks, ServerRequests
from dari.mcp.client.channel import Channel
from dari.mcp.client.errors import RemoteError, SessionExpired
from dari.mcp.client.events import Feed
from dari.mcp.client.multiplexer import MessageMultiplexer
from dari.mcp.client.negotiation import Agreement, Mode, Negotiation
from dari.mcp.client.pending import FOREVER, OnNotice, OnProgress
from dari.mcp.client.versions import StatelessEnvelope
from dari.rpc.codec import encode

RENEWAL_S = 30.0


class McpClientSession:
    """Sends requests in the agreed era. When the server forgets a session, shakes hands again and repeats."""

    def __init__(self, channel: Channel, answers: Callbacks, info: Mapping[str, str], probe_s: float) -> None:
        self.channel = channel
        self.answers = answers
        self.feed = Feed()
        self.agreement: Agreement | None = None
        self.conversation = MessageMultiplexer(
            channel,
            ServerRequests(answers, self._send),
            self.feed,
            on_session_lost=self._on_session_lost,
            on_hold=self._on_hold,
        )
        self._negotiation = Negotiation(
            self.conversation,
            channel,
            info=dict(info),
            capabilities=answers.capabilities,
            reopen=self._reopen,
            probe_s=probe_s,
        )
        self._renewing = asyncio.Lock()
        self._renewals = 0
        self._is_sessionless = False
        self._renewal: asyncio.Task[None] | None = None
        self._deadline: asyncio.Timeout | None = None
        self._limit_s = 0.0
        self._follows = False
        self._level = ""
        self._uris: Counter[str] = Counter()

    @property
    def is_stateless(self) -> bool:
        return self.conversation.era.is_stateless

    @property
    def mirrors(self) -> bool:
        """Whether arguments are repeated in headers: HTTP of the stateless era."""
        return self.channel.carries_headers and self.is_stateless

    async def open(self, mode: Mode, timeout_s: float) -> Agreement:
        try:
            async with self._time_limit(timeout_s):
                await self.channel.open(self.conversation)
                self.agreement = await self._negotiation.agree(mode)
                if self.answers.can_be_asked:
                    await self.follow()
                return self.agreement
        except TimeoutError:
            hint = "allow it more time to start; in a profile that is initTimeoutMs"
            late = TimedOut(f"the server did not answer within {timeout_s:g} s", hint)
            raise self._explained(late) from None
        except DariError as error:
            raise self._explained(error) from None

    async def close(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)
        try:
            await self.conversation.close()
        finally:
            await self.channel.close()

    async def send(
        self,
        method: str,
        params: bytes = b"{}",
        *,
        name: str = "",
        extra_headers: bytes = b"",
        timeout_s: float,
        on_progress: OnProgress | None = None,
        on_notice: OnNotice | None = None,
    ) -> Raw:
        """One request, as its own result or error."""
        conversation = self.conversation
        if self._renewing.locked():
            async with self._renewing:
                pass
        if self._is_sessionless:
            await self._renew(self._renewals)
        renewals = self._renewals
        headers = b""
        if self.channel.carries_headers:
            headers = conversation.era.headers(method, name) + extra_headers
        try:
            return await conversation.ask(
                method, params, headers=headers, timeout_s=timeout_s, on_progress=on_progress, on_notice=on_notice
            )
        except SessionExpired:
            await self._renew(renewals)
        return await conversation.ask(
            method, params, headers=headers, timeout_s=timeout_s, on_progress=on_progress, on_notice=on_notice
        )

    async def follow(self) -> None:
        """Hear what belongs to no request, until the end."""
        self._follows = True
        await self.channel.follow()

    async def set_level(self, level: str, timeout_s: float) -> None:
        era = self.conversation.era
        if isinstance(era, StatelessEnvelope):
            era.set_level(level)
        else:
            await self.send("logging/setLevel", encode({"level": level}), timeout_s=timeout_s)
        self._level = level

    async def subscribe(self, uri: str, timeout_s: float) -> None:
        """Handshake era: two that want the same resource share one subscription."""
        if uri not in self._uris:
            await self.send("resources/subscribe", encode({"uri": uri}), timeout_s=timeout_s)
        self._uris[uri] += 1

    async def unsubscribe(self, uri: str, timeout_s: float) -> None:
        self._uris[uri] -= 1
        if not self._uris[uri]:
            del self._uris[uri]
            await self.send("resources/unsubscribe", encode({"uri": uri}), timeout_s=timeout_s)

    @asynccontextmanager
    async def _time_limit(self, limit_s: float) -> AsyncIterator[None]:
        """A deadline that stands still while a person is asked."""
        self._limit_s = limit_s
        try:
            async with asyncio.timeout(limit_s) as self._deadline:
                yield
        finally:
            self._deadline = None

    def _on_hold(self, is_held: bool) -> None:
        if self._deadline is not None and not self._deadline.expired():
            until_s = asyncio.get_running_loop().time() + self._limit_s
            self._deadline.reschedule(None if is_held else until_s)

    def _send(self, message: bytes) -> None:
        if not self.conversation.ended.done():
            self.channel.tell(message)

    async def _reopen(self) -> None:
        await self.channel.close()
        self.conversation.restart()
        await self.channel.open(self.conversation)

    def _on_session_lost(self) -> None:
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.get_running_loop().create_task(self._renew_quietly(self._renewals))

    async def _renew_quietly(self, renewals: int) -> None:
        try:
            await self._renew(renewals)
        except DariError:
            pass  # the next request finds out, and tells its caller

    async def _renew(self, renewals: int) -> None:
        """A new session in place of the forgotten one, with what belonged to it."""
        async with self._renewing:
            if renewals != self._renewals:
                return
            self._is_sessionless = True
            try:
                async with self._time_limit(RENEWAL_S):
                    await self._start_over()
            except TimeoutError:
                raise TimedOut(f"the server gave no new session within {RENEWAL_S:g} s", "restart it") from None
            self._renewals += 1
            self._is_sessionless = False
        self.feed.missed()

    async def _start_over(self) -> None:
        self.agreement = await self._negotiation.initialize()
        ask = self.conversation.ask
        again = [("resources/subscribe", {"uri": uri}) for uri in self._uris]
        if self._level:
            again.insert(0, ("logging/setLevel", {"level": self._level}))
        for method, params in again:
            with suppress(RemoteError):  # the resource may be gone; the new session is good without it
                await ask(method, encode(params), timeout_s=FOREVER)
        if self._follows:
            await self.channel.follow()

    def _explained(self, error: DariError) -> DariError:
        """A server that fails to start usually says why, on stderr or (wrongly) on stdout."""
        said = self.channel.last_words()
        if said and said not in error.hint:
            error.hint = f"{error.hint}\nit wrote on stderr:\n{said}".strip()
        if self.conversation.noise:
            error.hint = "\n".join([error.hint, "it printed on stdout:", *self.conversation.noise]).strip()
        return error
