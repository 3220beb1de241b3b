"""Requests of our own, sent through the running proxy: rules apply to them and they are recorded like any other."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dari.errors import Conflict, Failed, TimedOut
from dari.proxy.configuration import shown_address
from dari.proxy.flow import Flow
from dari.proxy.traffic.fields import row_of
from dari.proxy.traffic.replay import Replay

if TYPE_CHECKING:
    from dari.proxy.machine import Machine

_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_PIECE_BYTES = 64 * 1024
_FIELDS = (
    "id",
    "method",
    "url",
    "status",
    "event",
    "duration_ms",
    "error",
    "replay_of",
    "response_headers",
    "response_body",
)


class Answered(Struct, frozen=True):
    """The new request as it was recorded, and what could not be sent again as it was."""

    request_id: str
    flow: dict[str, Any]
    notes: list[str]


class Sender:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def send(self, request: Replay, timeout_s: float) -> Answered:
        """Send it and wait for the whole response."""
        machine = self._machine
        machine.need_running()
        if request.missing:
            raise Conflict(
                f"request {request.replay_of} cannot be sent again as it was: {'; '.join(request.missing)}",
                "give a body of your own",
            )
        try:
            async with asyncio.timeout(timeout_s):
                flow = await self._exchange(request)
        except TimeoutError:
            raise TimedOut(f"no whole answer from {request.url} within {timeout_s:g} s", "allow more time") from None
        row = await machine.traffic.apart(row_of, flow, _FIELDS, machine.traffic.bodies, machine.traffic.redactor)
        return Answered(str(flow.id), row, _notes(request))

    async def _exchange(self, request: Replay) -> Flow:
        from dari.proxy.live_rules import Sent

        machine = self._machine
        bound = machine.engine.address
        assert bound is not None
        reader, writer = await asyncio.open_connection(_ANY.get(bound[0], bound[0]), bound[1])
        name = writer.get_extra_info("sockname")
        peer = shown_address(name[0], name[1])
        arrived: asyncio.Future[Flow] = asyncio.get_running_loop().create_future()
        machine.rules.sent[peer] = Sent(request.replay_of, arrived)
        try:
            writer.write(_wire(request))
            # The proxy closes after one response, so the end of the stream is the end of the response.
            while await reader.read(_PIECE_BYTES):
                pass
        except ConnectionError:
            pass  # a fault rule, or the origin: the flow tells
        finally:
            machine.rules.sent.pop(peer, None)
            writer.close()
        if not arrived.done():
            raise Failed(f"the proxy did not take the request for {request.url}", "look at crab_logs_tail")
        flow = arrived.result()
        await self._finished(flow)
        return flow

    async def _finished(self, flow: Flow) -> None:
        """The client's end of the stream may come a turn before the flow is closed."""
        deadline = time.monotonic() + 1
        while flow.state != "done" and time.monotonic() < deadline:  # noqa: ASYNC110 (a flow has no event)
            await asyncio.sleep(0.005)


def _notes(request: Replay) -> list[str]:
    if not request.dropped:
        return []
    dropped = ", ".join(request.dropped)
    return [f"not sent, since the URL is of another origin than the one they were recorded for: {dropped}"]


def _wire(request: Replay) -> bytes:
    head = b"%b %b HTTP/1.1\r\n" % (request.method.encode(), request.url.encode())
    fields = b"".join(b"%b: %b\r\n" % field for field in request.headers)
    return head + fields + b"Connection: close\r\n\r\n" + request.body
