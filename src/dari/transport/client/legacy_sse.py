"""A server behind the HTTP+SSE transport of 2024-11-05: one stream for everything it says, POSTs for what we say.

The stream's first event names where to POST. The stream is the session: when it ends, so does everything.
"""

from __future__ import annotations

import asyncio
from typing import Unpack

from dari.errors import DariError, Unavailable
from dari.mcp.client.channel import Inbox
from dari.mcp.client.oauth import HttpRefusal, OAuth
from dari.transport.client.get_stream import GetStream
from dari.transport.client.http import HttpChannel, HttpOptions
from dari.transport.client.http_connection import Headers
from dari.transport.client.http_errors import to_error
from dari.transport.client.http_post import Post
from dari.transport.client.sse import EventReader

OPEN_S = 30.0


class SseChannel(HttpChannel):
    """Takes the URL of the stream (often `/sse`), and the same options as `HttpChannel`."""

    # With the stream the session would go, and every call that takes longer; the kernel notices a peer that is gone.
    replaces_silent_streams = False

    def __init__(self, url: str, **options: Unpack[HttpOptions]) -> None:
        super().__init__(url, **options)
        self._stream_address = self.address

    async def open(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.address = self._stream_address
        await self._prepare()
        self._endpoint: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        reader = EventReader(self._receive, self.most_bytes, on_other=self._other)
        self._events = self.spawn(self._listen(reader))
        try:
            async with asyncio.timeout(OPEN_S) as self._limit:
                await self._endpoint
        except TimeoutError:
            await self.close()
            raise Unavailable(
                f"{self.address.shown} did not name its endpoint within {OPEN_S:g} s", "is it an SSE server of MCP?"
            ) from None
        except BaseException:
            await self.close()
            raise

    def ask(self, request_id: int, message: bytes, headers: bytes) -> None:
        post = self._posts[request_id] = _Delivery(self, request_id, message, headers)
        post.start()

    def cancel(self, request_id: int, notice: bytes) -> None:
        if notice:
            self.tell(notice)
        post = self._posts.get(request_id)
        if post is not None:
            post.abort()

    def agreed(self, version: str, *, is_stateless: bool) -> None:
        """The transport is older than the header that would repeat it."""

    async def follow(self) -> None:
        """The stream stands already."""

    def _receive(self, message: bytes) -> None:
        self.inbox.receive(message)

    def _other(self, kind: bytes, data: bytes) -> None:
        if kind != b"endpoint" or self._endpoint.done():
            return
        where = self.address.redirected(data.decode("utf-8", "replace").strip())
        if where is None:
            # Sending our token wherever a server says would hand it to anybody.
            self._endpoint.set_exception(
                Unavailable(f"{self.address.shown} names an endpoint at another origin", "check the server's set-up")
            )
            return
        self.address = where
        self._endpoint.set_result(None)

    async def _listen(self, reader: EventReader) -> None:
        stream = GetStream(self, reader)
        status = await stream.run()
        error = self._ending(stream, status)
        if status == 401 and self.oauth is not None:
            try:
                await self._authorize(self.oauth, stream, status)
            except DariError as refused:
                error = refused
            else:
                stream = GetStream(self, reader)
                status = await stream.run()
                error = self._ending(stream, status)
        if not self._endpoint.done():
            self._endpoint.set_exception(error)
        else:
            self.inbox.lost(error)

    def _ending(self, stream: GetStream, status: int) -> DariError:
        if status in (401, 403):
            return to_error(self._stream_address, status, stream.headers, b"", denied_hint=self.denied_hint)
        what = f"HTTP {status}" if status not in (0, 200) else "the stream ended"
        hint = "connect again; calls that ran may have had effects"
        return Unavailable(f"{self._stream_address.shown}: {what}", hint)

    async def _authorize(self, oauth: OAuth, stream: GetStream, status: int) -> None:
        """A person may be asked, and takes their time."""
        self._limit.reschedule(None)
        self.inbox.hold()
        try:
            await oauth.authorize(HttpRefusal(status, stream.headers, b"", stream.authorization, self.version))
        finally:
            self.inbox.release()
            if not self._endpoint.done():
                self._limit.reschedule(asyncio.get_running_loop().time() + OPEN_S)


class _Delivery(Post):
    """A request whose answer comes by the stream: the response to its POST says only that it was taken."""

    def head(self, status: int, headers: Headers) -> None:
        super().head(status, {b"content-type": b""} if status < 300 else headers)

    def ended(self) -> None:
        if self._is_over or self._status >= 300:
            super().ended()
            return
        self._connection = None
        self._finish()
