"""A client of one MCP server: over any channel, in either era."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

import msgspec
from msgspec import Raw, Struct

from dari.core.context import Level
from dari.core.events import ListKind
from dari.errors import DariError, Denied, Unavailable
from dari.mcp.client.callbacks import Callbacks, OnElicit, OnRoots, OnSample
from dari.mcp.client.channel import Channel
from dari.mcp.client.decode import decode_members, read
from dari.mcp.client.errors import RemoteError
from dari.mcp.client.events import OnEvent
from dari.mcp.client.input_required import answer_input_requests, is_input_required
from dari.mcp.client.listing import Catalogue, Kind, fetch_list
from dari.mcp.client.multiplexer import MessageMultiplexer
from dari.mcp.client.negotiation import PROBE_S, Agreement, Mode
from dari.mcp.client.pending import FOREVER, OnProgress
from dari.mcp.client.results import (
    CallResult,
    CompleteResult,
    Completion,
    ListResult,
    PromptResult,
    ReadResult,
    RemotePrompt,
    RemoteResource,
    RemoteTemplate,
    RemoteTool,
)
from dari.mcp.client.session import McpClientSession
from dari.mcp.client.subscription import EventListener, Subscription
from dari.mcp.client.versions import CAPABILITIES, StatelessEnvelope, name_in, with_meta
from dari.mcp.versions import HEADER_MISMATCH
from dari.rpc.codec import UNREADABLE, encode
from dari.struct_types import ready
from dari.version import VERSION

DEFAULT_TIMEOUT_S = 60.0
DEFAULT_OPEN_TIMEOUT_S = 30.0
_LISTS: tuple[ListKind, ...] = ("tools", "prompts", "resources")
_log = logging.getLogger("dari.mcp.client")
_decode_call = msgspec.json.Decoder(ready(CallResult)).decode

Arguments = Mapping[str, Any] | Struct | Raw | bytes | None


class Client:
    """Open it with `async with`, or with `open` and `close`.

    Cancelling a call cancels it on the server. `timeout_s` is what a call gets that names no limit of its own.
    `on_sample`, `on_elicit` and `on_roots` answer the server's questions and are declared when given;
    `capabilities` adds to what is declared. `on_event` hears every event; see `events` for the alternative.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        mode: Mode = "auto",
        info: Mapping[str, str] | None = None,
        on_sample: OnSample | None = None,
        on_elicit: OnElicit | None = None,
        on_roots: OnRoots | None = None,
        on_event: OnEvent | None = None,
        capabilities: Mapping[str, Any] | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        open_timeout_s: float = DEFAULT_OPEN_TIMEOUT_S,
        probe_s: float = PROBE_S,
    ) -> None:
        self._channel = channel
        self._mode: Mode = mode
        self._info = info or {"name": "dari", "version": VERSION}
        self._answers = Callbacks(
            on_sample=on_sample, on_elicit=on_elicit, on_roots=on_roots, capabilities=capabilities
        )
        self._on_event = on_event
        self._timeout_s = timeout_s
        self._open_timeout_s = open_timeout_s
        self._probe_s = probe_s
        self._catalogue = Catalogue()
        self._current: McpClientSession | None = None
        self._listening: EventListener | None = None

    async def open(self) -> Agreement:
        """Connect and agree on an era; raises what went wrong, with what a child wrote to stderr."""
        session = McpClientSession(self._channel, self._answers, self._info, self._probe_s)
        self._current = session
        try:
            agreement = await session.open(self._mode, self._open_timeout_s)
            if self._on_event is not None:
                await self._listen(session, agreement, self._on_event)
        except BaseException:
            await self.close()
            raise
        return agreement

    async def close(self) -> None:
        """End the session, the process, the connections. Safe to call twice."""
        session, self._current = self._current, None
        if session is None:
            return
        listening, self._listening = self._listening, None
        try:
            if listening is not None:
                await listening.close()
        finally:
            await session.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ended(self) -> DariError:
        """Waits until the server is gone, and tells why."""
        return await asyncio.shield(self._session.conversation.ended)

    @property
    def is_open(self) -> bool:
        return self._current is not None and not self._current.conversation.ended.done()

    @property
    def agreement(self) -> Agreement:
        """The revision, and what the server says about itself."""
        agreement = self._session.agreement
        assert agreement is not None
        return agreement

    @property
    def version(self) -> str:
        return self.agreement.version

    @property
    def era(self) -> Literal["handshake", "stateless"]:
        return "stateless" if self.agreement.is_stateless else "handshake"

    async def request(
        self,
        method: str,
        params: Arguments = None,
        *,
        timeout_s: float | None = None,
        progress: OnProgress | None = None,
        answer_questions: bool = True,
        capabilities: Mapping[str, Any] | None = None,
    ) -> Raw:
        """Any request; its result as the server wrote it.

        With `answer_questions=False` a result that asks back (`input_required`) is returned, not answered.
        `capabilities` are declared for this request instead of the client's own; only the stateless era can do that.
        """
        encoded = _encoded(params)
        session = self._session
        if not session.channel.carries_headers and not session.is_stateless:
            # A pipe of the handshake era adds nothing to a request, and forgets no session.
            limit_s = self._timeout_s if timeout_s is None else timeout_s
            return await session.conversation.ask(method, encoded, timeout_s=limit_s, on_progress=progress)
        if capabilities is not None and session.is_stateless:
            encoded = with_meta(encoded, {CAPABILITIES: dict(capabilities)})
        if not self._session.mirrors:
            return await self._ask(method, encoded, "", b"", timeout_s, progress, answer_questions)
        name = name_in(method, encoded)
        if method != "tools/call":
            return await self._ask(method, encoded, name, b"", timeout_s, progress, answer_questions)
        arguments = bytes(decode_members(encoded).get("arguments", b"{}"))
        return await self._call(name, arguments, encoded, timeout_s, progress, answer_questions)

    @property
    def pipe(self) -> MessageMultiplexer | None:
        """For who asks without a task: the conversation, where a request needs nothing else and can leave now."""
        session = self._current
        if session is None or session.channel.carries_headers or session.is_stateless:
            return None
        return session.conversation if session.conversation.takes_now else None

    async def relay(
        self, method: str, params: bytes, envelope: StatelessEnvelope, *, progress: OnProgress | None = None
    ) -> Raw:
        """A request on behalf of another client: `envelope` says who that is, and what it can do.

        Without a time limit, and for channels without headers. What asks back is returned, not answered.
        """
        conversation = self._session.conversation
        return await conversation.ask(method, params, timeout_s=FOREVER, on_progress=progress, era=envelope)

    def notify(self, method: str, params: Arguments = None) -> None:
        """Any notification."""
        conversation = self._session.conversation
        conversation.tell(method, Raw(_encoded(params)), conversation.era.headers(method, ""))

    async def listing(self, kind: Kind) -> ListResult:
        """A list over all its pages, every item as the server wrote it."""
        listing = await fetch_list(kind, self._ask)
        if kind == "tools" and self._session.mirrors:
            return msgspec.structs.replace(listing, items=self._catalogue.learn(listing.items))
        return listing

    async def list_tools(self) -> list[RemoteTool]:
        return [read(item, RemoteTool, "list of tools") for item in (await self.listing("tools")).items]

    async def list_resources(self) -> list[RemoteResource]:
        return [read(item, RemoteResource, "list of resources") for item in (await self.listing("resources")).items]

    async def list_templates(self) -> list[RemoteTemplate]:
        return [
            read(item, RemoteTemplate, "list of templates") for item in (await self.listing("resourceTemplates")).items
        ]

    async def list_prompts(self) -> list[RemotePrompt]:
        return [read(item, RemotePrompt, "list of prompts") for item in (await self.listing("prompts")).items]

    async def call_tool(
        self,
        name: str,
        arguments: Arguments = None,
        *,
        timeout_s: float | None = None,
        progress: OnProgress | None = None,
    ) -> CallResult:
        """Run a tool. A failure that the tool reports is a result with `is_error`; everything else raises."""
        encoded = _encoded(arguments)
        params = b'{"name":%b,"arguments":%b}' % (encode(name), encoded)
        if self._session.mirrors:
            result = await self._call(name, encoded, params, timeout_s, progress)
        else:
            result = await self._ask("tools/call", params, "", b"", timeout_s, progress)
        try:
            return _decode_call(result)
        except UNREADABLE:
            return read(result, CallResult, f"result of tool '{name}'")

    async def read_resource(self, uri: str, *, timeout_s: float | None = None) -> ReadResult:
        result = await self._ask("resources/read", encode({"uri": uri}), uri, b"", timeout_s)
        return read(result, ReadResult, f"contents of {uri}")

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout_s: float | None = None
    ) -> PromptResult:
        params = encode({"name": name, "arguments": arguments or {}})
        return read(await self._ask("prompts/get", params, name, b"", timeout_s), PromptResult, f"prompt '{name}'")

    async def complete(
        self,
        argument: str,
        value: str,
        *,
        prompt: str = "",
        template: str = "",
        known: Mapping[str, str] | None = None,
    ) -> Completion:
        """Values for an argument of a prompt, or for a variable of a resource template."""
        ref = {"type": "ref/prompt", "name": prompt} if prompt else {"type": "ref/resource", "uri": template}
        params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": value}}
        if known:
            params["context"] = {"arguments": known}
        result = await self._ask("completion/complete", encode(params))
        return read(result, CompleteResult, "completion").completion

    async def ping(self, *, timeout_s: float | None = None) -> None:
        """Whether the server answers. The stateless era has no `ping`; it is asked to introduce itself again."""
        await self._ask("server/discover" if self._session.is_stateless else "ping", timeout_s=timeout_s)

    async def set_level(self, level: Level) -> None:
        """Ask for log messages of this level and above: from the session, or with every request from now on."""
        await self._session.set_level(level, self._timeout_s)

    def roots_changed(self) -> None:
        """Tell the server to ask `on_roots` again. The stateless era has no need of it."""
        if not self._session.is_stateless:
            self._session.conversation.tell("notifications/roots/list_changed")

    def events(
        self, *, lists: Iterable[ListKind] = _LISTS, uris: Iterable[str] = (), logs: bool = True
    ) -> Subscription:
        """Lists that change, resources (by URI) that are updated, log messages; an async context and iterator."""
        return Subscription(self._session, kinds=lists, uris=uris, logs=logs, timeout_s=self._timeout_s)

    @property
    def _session(self) -> McpClientSession:
        if self._current is None:
            raise Unavailable("the client is not open", "open it with `async with`")
        return self._current

    async def _ask(
        self,
        method: str,
        params: bytes = b"{}",
        name: str = "",
        extra_headers: bytes = b"",
        timeout_s: float | None = None,
        progress: OnProgress | None = None,
        answer_questions: bool = True,
    ) -> Raw:
        session = self._session
        limit_s = self._timeout_s if timeout_s is None else timeout_s

        result = await session.send(
            method, params, name=name, extra_headers=extra_headers, timeout_s=limit_s, on_progress=progress
        )
        if not session.is_stateless or not answer_questions or not is_input_required(result):
            return result

        async def repeat(params: bytes) -> Raw:
            return await session.send(
                method, params, name=name, extra_headers=extra_headers, timeout_s=limit_s, on_progress=progress
            )

        return await answer_input_requests(result, self._answers, params, repeat)

    async def _call(
        self,
        name: str,
        arguments: bytes,
        params: bytes,
        timeout_s: float | None,
        progress: OnProgress | None,
        answer_questions: bool = True,
    ) -> Raw:
        """A tool over HTTP of the stateless era, where some arguments stand in headers too."""
        extra = self._catalogue.headers(name, arguments)
        try:
            return await self._ask("tools/call", params, name, extra, timeout_s, progress, answer_questions)
        except RemoteError as error:
            if error.remote_code != HEADER_MISMATCH:
                raise
        # Nothing ran. The tool wants arguments in headers that we do not know of yet, or not any more.
        await self.listing("tools")
        extra = self._catalogue.headers(name, arguments)
        return await self._ask("tools/call", params, name, extra, timeout_s, progress, answer_questions)

    async def _listen(self, session: McpClientSession, agreement: Agreement, on_event: OnEvent) -> None:
        kinds = [kind for kind in _LISTS if (agreement.capabilities.get(kind) or {}).get("listChanged")]
        self._listening = EventListener(session, on_event, kinds=kinds, uris=())
        try:
            await self._listening.open(self._open_timeout_s)
        except DariError as error:
            if isinstance(error, Denied) or session.conversation.ended.done():
                raise
            _log.warning("transport=client event=not_listening %s", error.message)


def _encoded(value: Arguments) -> bytes:
    """The value as a JSON object; what is encoded already is only trimmed."""
    if value is None:
        return b"{}"
    if isinstance(value, bytes | Raw):
        return bytes(value).strip() or b"{}"
    return encode(value)
