"""One external server: its sessions, its lists, and calls that pass every check."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct, field

from dari.bridge.children.start_queue import Priority, StartQueue, StartTurn
from dari.bridge.children.supervision import ServerState
from dari.bridge.config.profile import HttpSettings, StdioSettings
from dari.bridge.trust.pins import Pins
from dari.bridge.upstream.cache import JsonObject, ListName, ServerCache
from dari.bridge.upstream.caller import SYSTEM_CALLER, Caller, ServerRequestRouter
from dari.bridge.upstream.calls import UpstreamCalls
from dari.bridge.upstream.connect import MakeOAuth, UpstreamConnector, UpstreamSession
from dari.bridge.upstream.journal import ServerJournal
from dari.bridge.upstream.lists import UpstreamLists
from dari.bridge.upstream.resolved import ResolvedServer
from dari.bridge.upstream.sessions import UpstreamSessions, UpstreamSupervisor
from dari.bridge.upstream.status import UpstreamInfo, UpstreamStatus
from dari.bridge.upstream.subscriptions import Subscriptions
from dari.bridge.upstream.tool_view import UpstreamTool
from dari.core.approvals import ApprovalQueue
from dari.core.audit.log import AuditLog
from dari.core.context import LEVELS, Level, LoggingMessage, Root
from dari.core.events import EventBus, ListChanged, ListKind, ResourceUpdated
from dari.core.pending import PendingResult
from dari.errors import DariError
from dari.log import format_event
from dari.mcp.client.errors import RemoteError
from dari.mcp.client.events import Event, LogMessage
from dari.mcp.client.results import ListResult
from dari.rpc.codec import METHOD_NOT_FOUND, encode
from dari.transport.connect import ClientOptions

if TYPE_CHECKING:
    from dari.process.children import Children

FIRST_TRY_S = 2.0
_log = logging.getLogger("dari.bridge")
_CAPABILITIES: dict[ListName, str] = {"prompts": "prompts", "resources": "resources", "resourceTemplates": "resources"}
_LIST_NAMES: dict[ListKind, tuple[ListName, ...]] = {
    "tools": ("tools",),
    "prompts": ("prompts",),
    "resources": ("resources", "resourceTemplates"),
}


class UpstreamServices(Struct, frozen=True):
    """What all servers of a process share."""

    children: Callable[[], Children]
    pins: Pins
    approvals: ApprovalQueue
    audit: AuditLog | None
    memory: ServerCache
    make_oauth: MakeOAuth | None = None
    queue: StartQueue = field(default_factory=StartQueue)
    on_status: Callable[[str], object] = lambda id: None
    """Hears the name of a server whose status may be another now."""


class Upstream:
    """Starts nothing before it is used. Names of tools are those after the profile's renames, without the server."""

    def __init__(self, target: ResolvedServer, parts: UpstreamServices) -> None:
        self.target = target
        self.profile = target.profile
        self.id = target.profile.id
        self.mask = target.mask
        self.key = target.key
        self.changes: EventBus[ListKind] = EventBus()
        self.resource_updates: EventBus[str] = EventBus()
        self.logs: EventBus[LoggingMessage] = EventBus()
        """Log messages that belong to no call."""
        self.start_notes: EventBus[str] = EventBus()
        """What a long start is busy with, for people who wait for it."""
        self._start_note = ""
        self._parts = parts
        self.journal = ServerJournal(target.mask)
        self.logs.subscribe(self.journal.note_message)
        self._opening = UpstreamConnector(target, parts.children, parts.make_oauth, self.journal.watch)
        self._sessions = UpstreamSessions(self.profile, self._open, parts.queue, self._on_state)
        self._lists = UpstreamLists(target, parts.memory, parts.pins, self._fetch, self._on_list)
        self._hurried = 0
        self._first_try_s: float | None = None
        self._calls = UpstreamCalls(
            target, self._sessions, self._lists, self._review_session, parts.approvals, parts.audit
        )
        self._subscriptions = Subscriptions(self._sessions, self.resource_updates.publish)

    @property
    def is_active(self) -> bool:
        """Whether a session is open or a call is running."""
        return bool(self._calls.running) or any(one.session is not None for one in self._sessions)

    def status(self, held: int | None = None) -> UpstreamStatus:
        """`held`: how many items are, where the caller has counted those of all servers at once."""
        known, main = self._lists.known, self._sessions.main()
        snapshot = None if main is None else main.snapshot()
        sessions = self._sessions.open_sessions()
        child = next((one.child for one in sessions if one.child is not None), None)
        retry_in_s = None
        if snapshot is not None and snapshot.retry_at is not None:
            retry_in_s = max(0.0, snapshot.retry_at - asyncio.get_running_loop().time())
        state = "configured" if snapshot is None else str(snapshot.state)
        if main is not None and main.turn is not None and main.turn.is_waiting:
            state = "queued"
        circuit = self._calls.limiter.circuit
        connection = self.profile.connection
        return UpstreamStatus(
            id=self.id,
            kind=self.profile.kind,
            address=self.mask(self.profile.address),
            state="known" if snapshot is None and self._lists.has("tools") else state,
            isolation=self.profile.isolation,
            era=known.era or "",
            version=known.version,
            server_name=str(known.server.get("name", "")),
            server_version=str(known.server.get("version", "")),
            pid=None if child is None else child.pid,
            restarts=sum(one.snapshot().restarts for one in self._sessions),
            failures=0 if snapshot is None else snapshot.failures,
            last_error=self.mask(snapshot.last_error) if snapshot is not None else "",
            retry_in_s=retry_in_s,
            doing=self.mask(self._start_note) if state == "starting" else "",
            tools=len(self._lists.tools) if self._lists.has("tools") else None,
            held=len(self._parts.pins.held(self.target.pin_name)) if held is None else held,
            circuit="closed" if circuit is None else circuit.state,
            sessions=len(sessions),
            calls=self._calls.running,
            url=self.mask(self._sessions.url) if isinstance(connection, HttpSettings) else "",
            noise=sum(one.channel.noise_lines for one in sessions if one.channel is not None),
        )

    async def start(self, priority: Priority = Priority.CALL) -> UpstreamInfo:
        """Open a session and fetch every list."""
        supervised = self._sessions.of(SYSTEM_CALLER)
        has_failed = self.has_failed
        if not self._lists.has("tools") and not has_failed:
            # If it never answers, the next run has to know, however this one ends.
            self._lists.learned(failed_unix=self._parts.memory.now())
            self._first_try_s = asyncio.get_running_loop().time()
        try:
            await supervised.ensure(Priority.RETRY if has_failed and priority is Priority.LIST else priority)
            await asyncio.gather(*(self._lists.fetch(name) for names in _LIST_NAMES.values() for name in names))
        except DariError:
            self._lists.learned(failed_unix=self._parts.memory.now())
            self._first_try_s = None
            raise
        finally:
            await self._sessions.finish(supervised)
        return self._about()

    def retry(self) -> None:
        """A person wants it tried now: a pause after failures is over."""
        for supervised in self._sessions:
            if supervised.state in (ServerState.BACKOFF, ServerState.CRASH_LOOP):
                supervised.reset()

    @property
    def has_failed(self) -> bool:
        """Whether its last start did not come to a list of tools, in this run or an earlier one: nobody should wait
        for it. The first try of this run counts as failed when it takes longer than a new client may wait."""
        if not self._lists.known.failed_unix:
            return False
        return self._first_try_s is None or asyncio.get_running_loop().time() - self._first_try_s > FIRST_TRY_S

    async def about(self) -> UpstreamInfo:
        """What the server says about itself; from memory where it is known."""
        if not self._lists.known.version:
            async with self._sessions.lease(SYSTEM_CALLER):
                pass
        return self._about()

    def known_tools(self) -> tuple[UpstreamTool, ...] | None:
        """Without asking the server; None: it was never listed."""
        return tuple(self._lists.tools.values()) if self._lists.has("tools") else None

    def listed_tools(self) -> list[JsonObject] | None:
        """As the server gave them, before any filter: for a person who chooses. None: it was never listed."""
        listed = self._lists.known.lists.get("tools")
        return None if listed is None else listed.items

    def unlisted_tools(self) -> list[str]:
        """Names of tools that are not offered: held because they changed, or filtered by the profile."""
        return self._lists.unlisted_tools()

    def complaints(self) -> list[str]:
        """What was wrong in the lists it sent: items that were left out, or that lack a name or a schema."""
        return [line for lines in self._lists.complaints.values() for line in lines]

    def known_lists(self) -> tuple[tuple[JsonObject, ...], tuple[JsonObject, ...], tuple[JsonObject, ...]]:
        """Prompts, resources and templates, as far as they are known, without asking the server."""
        return self._lists.prompts, self._lists.resources, self._lists.templates

    @property
    def instructions(self) -> str:
        """As pinned, cleaned for a model; empty while they are held or not known."""
        return self._lists.instructions

    def refresh_later(self) -> None:
        """Fetch stale or unknown lists in the background."""
        for names in _LIST_NAMES.values():
            for name in names:
                if self._lists.is_stale(name):
                    self._lists.fetch_later(name)

    def review(self) -> None:
        """A person has decided about held items: compare the lists again."""
        if self._lists.known.lists:
            self._lists.review()

    async def tools(self, *, fresh: bool = False) -> tuple[UpstreamTool, ...]:
        with self._hurry():
            await self._lists.get("tools", fresh=fresh)
        return tuple(self._lists.tools.values())

    async def tool(self, name: str) -> UpstreamTool:
        """One tool, or the error that says why not: unknown, held, or filtered."""
        with self._hurry():
            return self._lists.tools.get(name) or await self._calls.find(name)

    async def prompts(self, *, fresh: bool = False) -> tuple[JsonObject, ...]:
        with self._hurry():
            await self._lists.get("prompts", fresh=fresh)
        return self._lists.prompts

    async def resources(self, *, fresh: bool = False) -> tuple[JsonObject, ...]:
        with self._hurry():
            await self._lists.get("resources", fresh=fresh)
        return self._lists.resources

    async def templates(self, *, fresh: bool = False) -> tuple[JsonObject, ...]:
        with self._hurry():
            await self._lists.get("resourceTemplates", fresh=fresh)
        return self._lists.templates

    async def call_tool(self, name: str, arguments: bytes, caller: Caller, *, timeout_s: float | None = None) -> Raw:
        """The result as the server wrote it, within the limits of its profile. Raises what stood in the way."""
        with self._hurry():
            return await self._calls.tool(name, arguments, caller, timeout_s)

    def begin_call(self, name: str, arguments: bytes, caller: Caller) -> PendingResult | None:
        """`call_tool` without a task; None where it has to wait for more than the answer, or would be refused."""
        return self._calls.begin(name, arguments, caller)

    async def read_resource(self, uri: str, caller: Caller, *, timeout_s: float | None = None) -> Raw:
        return await self._calls.other("resources/read", uri, encode({"uri": uri}), caller, timeout_s)

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str], caller: Caller, *, timeout_s: float | None = None
    ) -> Raw:
        if not self._lists.has("prompts"):
            with self._hurry():
                await self._lists.fetch("prompts")
        self._lists.visibility.check("prompt", name)
        params = encode({"name": name, "arguments": dict(arguments)})
        return await self._calls.other("prompts/get", name, params, caller, timeout_s)

    async def complete(self, params: Mapping[str, Any], caller: Caller, *, timeout_s: float | None = None) -> Raw:
        return await self._calls.other("completion/complete", "", encode(dict(params)), caller, timeout_s)

    async def subscribe(self, uri: str) -> None:
        """Hear of updates of a resource in `resource_updates`, across restarts. Each one is unsubscribed once."""
        await self._subscriptions.add(uri)

    async def unsubscribe(self, uri: str) -> None:
        await self._subscriptions.remove(uri)

    async def end_sessions(self, has_ended: Callable[[str], bool]) -> None:
        await self._sessions.end_sessions(has_ended)

    async def stop(self) -> None:
        """End its sessions; the next use starts it again."""
        await self._sessions.stop()

    async def close_when_idle(self) -> None:
        """For good, after the last call; who cancels this gets the end at once."""
        try:
            await self._calls.ended()
        finally:
            await self.close()

    async def close(self) -> None:
        """For good."""
        await self._subscriptions.close()
        await self._lists.close()
        await self._sessions.close()

    def _on_state(self, supervised: UpstreamSupervisor) -> None:
        snapshot = supervised.snapshot()
        is_fault = snapshot.state in (ServerState.BACKOFF, ServerState.CRASH_LOOP, ServerState.STOPPED)
        self.journal.note_state(str(snapshot.state), snapshot.last_error if is_fault else "")
        self._parts.on_status(self.id)

    def _on_list(self, kind: ListKind) -> None:
        self.changes.publish(kind)
        self._parts.on_status(self.id)

    async def _open(self, url: str, init_s: float, turn: StartTurn | None) -> UpstreamSession:
        known, asking = self._lists.known, ServerRequestRouter()
        era = known.era_at(self._parts.memory.now())
        opened: list[UpstreamSession] = []
        options: ClientOptions = {
            "on_sample": lambda asked: asking.ask("sampling/createMessage", asked.raw),
            "on_elicit": lambda asked: asking.ask("elicitation/create", asked.raw),
            "on_roots": lambda: self._roots(asking),
            "on_event": lambda event: self._on_event(event, asking, opened),
            "timeout_s": self.profile.timeout_ms / 1000,
            "open_timeout_s": init_s,
        }
        if self.target.spec is not None:
            self._start_note = ""
            is_first = not known.version
            session = await self._opening.child(era, options, turn, is_first=is_first, on_note=self._on_start_note)
        else:
            session = await self._opening.http(url, era, known.flavour, options)
        session.asking = asking
        opened.append(session)
        agreement = session.client.agreement
        instructions, server = agreement.instructions, agreement.server
        is_other = instructions != known.instructions
        self._lists.learned(
            era=session.era,
            era_unix=self._parts.memory.now() if session.era != era else known.era_unix,
            flavour=session.flavour,
            version=agreement.version,
            server={"name": server.name, "version": server.version, "title": server.title},
            capabilities=agreement.capabilities,
            instructions=instructions,
        )
        if is_other:
            self._lists.review()
        # Over HTTP every request may reach another process: what counts there is how old the list is.
        if self.target.spec is None and not self._lists.is_stale("tools"):
            session.reviewed = session.changes
        return session

    async def _fetch(self, name: ListName) -> ListResult:
        supervised = self._sessions.of(SYSTEM_CALLER)
        try:
            session = await supervised.acquire(self._priority)
            try:
                capability = _CAPABILITIES.get(name)
                if capability is not None and capability not in session.client.agreement.capabilities:
                    return ListResult(items=[])
                return await self._listing(session, name)
            finally:
                supervised.release()
        finally:
            await self._sessions.finish(supervised)

    @property
    def _priority(self) -> Priority:
        """Of a start for the sake of a list."""
        if self._hurried:
            return Priority.CALL
        return Priority.RETRY if self.has_failed else Priority.LIST

    @contextmanager
    def _hurry(self) -> Iterator[None]:
        """A client waits for a list: its start goes to the front of the queue."""
        self._hurried += 1
        main = self._sessions.main()
        if main is not None and main.turn is not None:
            main.turn.hurry(Priority.CALL)
        try:
            yield
        finally:
            self._hurried -= 1

    def _on_start_note(self, note: str) -> None:
        self._start_note = note
        _log.info(format_event("child", "download", f"server={self.id} {self.mask(note)}"))
        self.start_notes.publish(self.mask(note))
        self._parts.on_status(self.id)

    async def _listing(self, session: UpstreamSession, name: ListName) -> ListResult:
        changes = session.changes  # a change announced while the request runs must not get lost
        try:
            listing = await session.client.listing(name)
        except RemoteError as error:
            if error.remote_code != METHOD_NOT_FOUND:
                raise
            listing = ListResult(items=[])
        if name == "tools":
            session.reviewed = changes
        return listing

    async def _review_session(self, session: UpstreamSession) -> None:
        """What a new process lists is looked at before its first call."""
        await self._lists.take("tools", await self._listing(session, "tools"))

    def _on_event(self, event: Event, asking: ServerRequestRouter, opened: list[UpstreamSession]) -> None:
        if isinstance(event, ListChanged):
            for session in opened:
                session.changes += event.kind == "tools"
            for name in _LIST_NAMES[event.kind]:
                self._lists.changed(name, partial(self._listing, opened[0]) if opened else self._fetch)
        elif isinstance(event, ResourceUpdated):
            self.resource_updates.publish(event.uri)
        elif isinstance(event, LogMessage):
            level: Level = next((known for known in LEVELS if known == event.level), "info")
            record = LoggingMessage(level, event.data, event.logger or self.id)
            caller = asking.sole()
            if caller is not None and caller.on_log is not None:
                caller.on_log(record)
            elif not asking.callers:
                self.logs.publish(record)
            else:  # it may speak of somebody's call, and is not for the others
                self.journal.note_message(record)

    async def _roots(self, asking: ServerRequestRouter) -> list[str | Root]:
        """The profile's allowed paths; the client's roots only where the profile says so, since servers trust them."""
        if self.profile.roots == "client":
            return await asking.roots()
        connection = self.profile.connection
        if not isinstance(connection, StdioSettings) or connection.allowed_paths is None:
            return []
        return [Path(os.path.realpath(one.path)).as_uri() for one in connection.allowed_paths]

    def _about(self) -> UpstreamInfo:
        known = self._lists.known
        return UpstreamInfo(
            name=str(known.server.get("name", "")),
            server_version=str(known.server.get("version", "")),
            title=str(known.server.get("title", "")),
            version=known.version,
            era=known.era or "",
            capabilities=known.capabilities,
            instructions=self._lists.instructions,
        )
