"""What the engine tells about each flow: it began, bytes of a body went by, it finished."""

from __future__ import annotations

from collections.abc import Callable

from dari.proxy.flow import Flow, WebSocketFrame
from dari.proxy.recording.bodies import BodyStore
from dari.proxy.recording.ring import Ring
from dari.proxy.recording.store import FlowStore


class Recorder:
    """Called on the event loop, for every request: nothing here waits, and nothing here may fail a request.

    With `next_id` a flow gets its id here, whatever the engine gave it: an engine that is started anew counts from
    one again, and ids must not come twice in the database.
    """

    def __init__(
        self,
        ring: Ring,
        store: FlowStore | None = None,
        bodies: BodyStore | None = None,
        next_id: Callable[[], int] | None = None,
    ) -> None:
        self.is_on = True
        """Whether new flows are recorded; those that began go on to their end."""
        self.keeps_bodies = True
        """Whether whole bodies go to disk; the flow's samples are the engine's."""
        self._ring = ring
        self._store = store
        self._bodies = bodies
        self._next_id = next_id
        self._open: dict[int, Flow] = {}
        if store is not None:
            store.last_seq = lambda: ring.last_seq
            store.open_flows = lambda: list(self._open.values())

    @property
    def spools(self) -> bool:
        """Whether `body` wants to be called."""
        return self._bodies is not None and self.keeps_bodies and self.is_on

    def began(self, flow: Flow) -> None:
        """The request's head is known."""
        if flow.is_recorded and self.is_on:
            if self._next_id is not None:
                flow.id = self._next_id()
            self._open[flow.id] = flow
            self._ring.began(flow)

    def body(self, flow: Flow, from_client: bool, chunk: bytes) -> None:
        """The next bytes of a body, after framing and before content coding is undone."""
        if self._bodies is not None and self._open.get(flow.id) is flow:
            self._bodies.write(flow, from_client, chunk)

    def frame(self, flow: Flow, frame: WebSocketFrame) -> None:
        """A WebSocket message; the flow has it already, and a reader of the flow sees it there."""

    def finished(self, flow: Flow) -> None:
        """The response is complete, or there will be none; the engine changes the flow no more."""
        if self._open.get(flow.id) is flow:
            del self._open[flow.id]
        elif not self._is_news(flow):
            return
        if self._bodies is not None:
            self._bodies.finish(flow)
        self._ring.finished(flow)
        if self._store is not None:
            self._store.put(flow)

    def _is_news(self, flow: Flow) -> bool:
        """A flow that ends without having begun, such as a handshake that failed, is recorded at once."""
        slot = self._ring.get(flow.id)
        if not (flow.is_recorded and self.is_on) or (slot is not None and slot.flow is flow):
            return False
        if self._next_id is not None:
            flow.id = self._next_id()
        return True
