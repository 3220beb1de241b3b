"""The servers of the daemon inside another process of ours: `dari mcp` has its own tools, and these.

Everything travels in the stateless era, whatever our own client speaks: each request says who asks and what they can
answer, and a question comes back with the result it belongs to. So answers reach the call that asked for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from msgspec import UNSET, Raw

from dari.bridge.gateway.list_items import CAPABILITIES, Label
from dari.bridge.gateway.relayed_offer import Relayer, offer_of, resource_of, tool_of
from dari.core.content import RawResult
from dari.core.context import LEVELS, Context, Level, LoggingMessage, Progress, Relayed
from dari.core.events import ListChanged, ListKind
from dari.core.registry import Registry
from dari.core.tool import Tool
from dari.errors import DariError, Unavailable
from dari.log import format_event
from dari.mcp.client.channel import Channel
from dari.mcp.client.client import Client
from dari.mcp.client.errors import RemoteError
from dari.mcp.client.events import Event, LogMessage
from dari.mcp.client.input_required import read_input_required, with_members
from dari.mcp.client.versions import StatelessEnvelope
from dari.mcp.client_requests import ClientAnsweredError
from dari.mcp.error_mapping import RpcError
from dari.mcp.inflight import to_handshake_result
from dari.mcp.versions import V2026_07
from dari.rpc.codec import decode_any, encode

SETTLE_S = 10.0
RETRY_S = 1.0
LONGEST_RETRY_S = 60.0
LONGEST_LOOK_S = 4.0
MOST_ROUNDS = 100
OWNER = "daemon"
_STATE = "relay"
_log = logging.getLogger("dari.bridge")


class Relay(Relayer):
    """Mounts what the daemon offers, under the names the daemon gives it; connects again whenever it has to.

    `make_channel` is told whether a daemon may be started where there is none.
    """

    def __init__(
        self,
        registry: Registry,
        make_channel: Callable[[bool], Channel],
        *,
        on_log: Callable[[LoggingMessage], None] | None = None,
        settle_s: float = SETTLE_S,
    ) -> None:
        self._registry = registry
        self._make_channel = make_channel
        self._on_log = on_log
        self._settle_s = settle_s
        self._client: Client | None = None
        self._opening = asyncio.Lock()
        self._refresh = asyncio.Event()
        self._settled = asyncio.Event()
        self.connected = asyncio.Event()
        """Set once the daemon has introduced itself."""
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[Context] = set()
        self._envelopes: dict[bytes, StatelessEnvelope] = {}
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        registry.may_grow = True
        registry.settle = self._settle
        registry.watches.append(self._watch)
        # The daemon knows more URIs than it lists.
        registry.tool_fallbacks[OWNER] = self._unlisted_tool
        registry.fallbacks[OWNER] = lambda uri: resource_of({"uri": uri}, self) if self._client is not None else None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def close(self) -> None:
        self._registry.settle = None
        tasks = [task for task in (self._task, *self._watching.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        if self._client is not None:
            await self._client.close()

    def _unlisted_tool(self, name: str) -> Tool | None:
        """The daemon knows why a tool is not listed, and answers for one that nobody knows."""
        return None if self._client is None else tool_of({"name": name}, Label("", ""), self)

    async def pass_on(self, method: str, params: dict[str, Any], context: Context) -> RawResult:
        """The daemon's result for a call of our client, after as many rounds of questions as it takes."""
        encoded = encode(params)
        asked: dict[str, Any] | None = context.state.pop(_STATE, None) if context.is_stateless else None
        added: dict[str, Any] = {} if asked is None else await self._answered(asked, context)
        self._running.add(context)
        try:
            for _ in range(MOST_ROUNDS):
                client = await self._open()
                result = await client.relay(
                    method,
                    with_members(encoded, added),
                    self._envelope(context),
                    progress=_progress(context) if context.wants_progress else None,
                )
                required = read_input_required(result)
                if required is None:
                    return RawResult(result if context.is_stateless else Raw(to_handshake_result(bytes(result))))
                questions = {} if required.input_requests is UNSET else required.input_requests
                asked = {
                    "state": None if required.request_state is UNSET else required.request_state,
                    "questions": {key: (one.method, decode_any(one.params)) for key, one in questions.items()},
                }
                added = await self._answered(asked, context)
        except RemoteError as error:
            raise RpcError(error.remote_code, error.message, error.data) from None
        finally:
            self._running.discard(context)
        raise Unavailable(f"the server asked back more than {MOST_ROUNDS} times", "give it more at once")

    async def _answered(self, asked: dict[str, Any], context: Context) -> dict[str, Any]:
        """The answers to what was asked, as the next round carries them. In the stateless era this may end the call,
        to be taken up again by the retry."""
        added = {} if asked["state"] is None else {"requestState": asked["state"]}
        questions = {
            key: Relayed(method, CAPABILITIES.get(method, method), body)
            for key, (method, body) in asked["questions"].items()
        }
        if not questions:
            return added
        if context.is_stateless:
            context.state[_STATE] = asked
        try:
            answers = await context.ask(questions)
        except ClientAnsweredError as error:
            if any(one.capability != "elicitation" for one in questions.values()):
                raise RemoteError(error.remote_code, error.remote_message, error.data) from None
            answers = {key: {"action": "cancel"} for key in questions}
        context.forget_answers(*questions)
        if context.is_stateless:
            context.state.pop(_STATE, None)
        return {**added, "inputResponses": answers}

    def _envelope(self, context: Context) -> StatelessEnvelope:
        """Who calls and what they can do; the same object for the same client."""
        info = {"name": context.client_name or "dari", "version": ""}
        level = context.log_level
        key = encode((info, context.capabilities, level))
        envelope = self._envelopes.get(key)
        if envelope is None:
            envelope = StatelessEnvelope(V2026_07, dict(context.capabilities), info)
            if level is not None:
                envelope.set_level(level)
            if len(self._envelopes) < 64:
                self._envelopes[key] = envelope
        return envelope

    # The connection

    async def _open(self, *, starts: bool = True) -> Client:
        """The connection; a daemon is started for it only if there is something to do."""
        client = self._client
        if client is not None and client.is_open:
            return client
        async with self._opening:
            client = self._client
            if client is not None and client.is_open:
                return client
            if client is not None:
                await client.close()
            self._client = None
            client = Client(self._make_channel(starts), mode="stateless", on_event=self._on_event)
            await client.open()
            self._client = client
            self._refresh.set()
            return client

    async def _keep(self) -> None:
        """Connect, list, and list again whenever that changed. Whoever hosts the bridge next is found, not started."""
        pause_s, starts = RETRY_S, True
        while True:
            try:
                client = await self._open(starts=starts)
                self._refresh.clear()
                self._take_guidance(await client.request("server/discover") if self.connected.is_set() else None)
                self._registry.offer(OWNER, await offer_of(client, self))
                self._settled.set()
                pause_s, starts = RETRY_S, False
                await self._changed(client)
            except DariError as error:
                self._settled.set()
                _log.log(logging.WARNING if starts else logging.DEBUG, format_event("bridge", "relay", error.message))
                await self._pause(pause_s)
                pause_s = min(pause_s * 2, LONGEST_RETRY_S if starts else LONGEST_LOOK_S)

    async def _pause(self, pause_s: float) -> None:
        """A call that connects ends it."""
        try:
            async with asyncio.timeout(pause_s):
                await self._refresh.wait()
        except TimeoutError:
            pass

    def _take_guidance(self, introduction: Raw | None) -> None:
        """What the servers say about themselves; it grows as they are met."""
        assert self._client is not None
        said: Any = self._client.agreement.instructions
        if introduction is not None:
            said = decode_any(introduction).get("instructions", "")
        self._registry.guidance = said if isinstance(said, str) else ""
        self.connected.set()

    async def _changed(self, client: Client) -> None:
        """Wait until there is something new to list, or nobody to ask any more."""
        ended = asyncio.ensure_future(client.ended())
        changed = asyncio.ensure_future(self._refresh.wait())
        try:
            await asyncio.wait((ended, changed), return_when=asyncio.FIRST_COMPLETED)
            if not changed.done():
                # A hub that takes the daemon's place needs a moment.
                await self._pause(RETRY_S)
        finally:
            for task in (ended, changed):
                task.cancel()
            await asyncio.gather(ended, changed, return_exceptions=True)

    def _on_event(self, told: Event) -> None:
        if isinstance(told, ListChanged):
            self._refresh.set()
        elif isinstance(told, LogMessage):
            level: Level = next((known for known in LEVELS if known == told.level), "info")
            record = LoggingMessage(level, told.data, told.logger or UNSET)
            if len(self._running) == 1:
                next(iter(self._running)).note(record)
            elif self._on_log is not None:
                self._on_log(record)

    # What a list waits for

    def _settle(self, kind: ListKind) -> Coroutine[Any, Any, None] | None:
        if self._settled.is_set():
            return None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._settle_s, self._settled.set)
        return self._wait_until_settled()

    async def _wait_until_settled(self) -> None:
        await self._settled.wait()

    # Updates of resources

    def _watch(self, uri: str, wanted: bool) -> Awaitable[None] | None:
        if not wanted:
            task = self._watching.pop(uri, None)
            if task is not None:
                task.cancel()
            return None
        resource = self._registry.resources.get(uri)
        if resource is not None and resource.shown is None:
            return None  # ours
        placed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watching[uri] = asyncio.get_running_loop().create_task(self._follow(uri, placed))
        return placed

    async def _follow(self, uri: str, placed: asyncio.Future[None]) -> None:
        while True:
            try:
                client = await self._open(starts=not placed.done())
                async with client.events(lists=(), uris=[uri], logs=False) as events:
                    if not placed.done():
                        placed.set_result(None)
                    async for _ in events:
                        self._registry.resource_updated(uri)
            except DariError as error:
                if not placed.done():
                    placed.set_exception(error)
            await asyncio.sleep(RETRY_S)


def _progress(context: Context) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        total = None if progress.total is UNSET else progress.total
        context.report(progress.progress, total, None if progress.message is UNSET else progress.message)

    return tell
