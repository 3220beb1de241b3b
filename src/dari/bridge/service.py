"""Other people's MCP servers, in plain Python: one `Bridge` per process holds what all of its users share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self
from weakref import WeakSet

from dari.bridge.children.start_queue import StartQueue
from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.service import ConfigService
from dari.bridge.config.trust import TrustStore
from dari.bridge.trust.pin_store import PinStore
from dari.bridge.trust.pins import Pins
from dari.bridge.upstream.cache import ServerCache
from dari.bridge.upstream.connect import MakeOAuth
from dari.bridge.upstream.resolved import ResolvedServer
from dari.bridge.upstream.status import UpstreamStatus
from dari.bridge.upstream.upstream import Upstream, UpstreamServices
from dari.bridge.usage import ServerUsage
from dari.bridge.view import ServerView
from dari.core.approval_service import ApprovalService
from dari.core.approvals import FIRST_WAIT_S, LONG_WAIT_S, ApprovalQueue
from dari.core.audit.log import AuditLog
from dari.core.events import EventBus
from dari.core.proposal_redaction import redact_proposal
from dari.core.standing_approvals import FILE_NAME, StandingApprovals
from dari.errors import Conflict
from dari.paths import home as dari_home

if TYPE_CHECKING:
    from dari.bridge.config.profile import Profile
    from dari.core.audit.activity import ActivityIndex
    from dari.mcp.client.oauth import OAuth
    from dari.mcp.server import Server
    from dari.process.children import Children


class BridgeUpstreams:
    def __init__(self, parts: Callable[[], UpstreamServices]) -> None:
        """`parts` is asked when the first server is needed: a listing of profiles needs none of them."""
        self._parts = parts
        self._upstreams: dict[str, Upstream] = {}
        self._retiring: set[asyncio.Task[None]] = set()

    def get(self, target: ResolvedServer) -> Upstream:
        upstream = self._upstreams.get(target.key)
        if upstream is None:
            upstream = self._upstreams[target.key] = Upstream(target, self._parts())
        return upstream

    def __iter__(self) -> Iterator[Upstream]:
        return iter(list(self._upstreams.values()))

    def named(self, id: str) -> list[Upstream]:
        return [one for one in self if one.id == id]

    async def drop(self, upstream: Upstream) -> None:
        """Its profile is gone or has changed: end it, and make it anew at the next use."""
        if self._upstreams.get(upstream.key) is upstream:
            del self._upstreams[upstream.key]
        await upstream.close()

    def retire(self, upstream: Upstream) -> None:
        """Its profile was changed or removed: give it to no new caller, and close it after its last call."""
        if self._upstreams.get(upstream.key) is upstream:
            del self._upstreams[upstream.key]
            task = asyncio.get_running_loop().create_task(upstream.close_when_idle())
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    async def close(self) -> None:
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        every, self._upstreams = list(self), {}
        await asyncio.gather(*(one.close() for one in every), return_exceptions=True)


MAX_VIEWS = 64
MAX_SIDE_LOGS = 32


def bridge_home() -> Path:
    """Pins, the audit log, and what is remembered of servers."""
    return dari_home() / "bridge"


class Bridge:
    """`async with Bridge() as bridge`: leaving it ends every server. Nothing is opened before it is needed."""

    def __init__(
        self,
        home: Path | None = None,
        *,
        protected: Sequence[Path] = (),
        first_wait_s: float = FIRST_WAIT_S,
        long_wait_s: float = LONG_WAIT_S,
        audits: bool = True,
        is_guest: bool = False,
        make_oauth: MakeOAuth | None = None,
    ) -> None:
        """`protected`: folders with our own sockets and tokens, which no sandboxed child may see. A guest runs beside
        the daemon, and leaves the daemon's audit log alone."""
        self.home = home or bridge_home()
        self._protected = (*protected, self.home)
        self._waits_s = (first_wait_s, long_wait_s)
        self._audits = audits
        self.is_guest = is_guest
        self.make_oauth = make_oauth or self._make_oauth
        self._views: dict[ClientEnvironment | tuple[object, ...], ServerView] = {}
        self.pool = BridgeUpstreams(lambda: self._parts)
        self.client_servers: WeakSet[Server] = WeakSet()
        """What clients on the hub's socket talk to, one for each client while it is connected."""
        self.status_changes: EventBus[str] = EventBus()
        """The names of servers whose status may be another now."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @cached_property
    def children(self) -> Children:
        from dari.process.children import Children

        return Children(protected=self._protected)

    @cached_property
    def start_queue(self) -> StartQueue:
        """Whose turn it is to start, for every server of this process."""
        return StartQueue()

    @cached_property
    def pins(self) -> Pins:
        return Pins(self._pin_store, on_change=self._pins_changed)

    @cached_property
    def approvals(self) -> ApprovalQueue:
        first_wait_s, long_wait_s = self._waits_s
        return ApprovalQueue(
            redact=redact_proposal,
            first_wait_s=first_wait_s,
            long_wait_s=long_wait_s,
            standing=self.standing_approvals.find,
        )

    @cached_property
    def standing_approvals(self) -> StandingApprovals:
        """What a person has approved for good."""
        return StandingApprovals(self.home / FILE_NAME, lambda: self.audit)

    @cached_property
    def approval_service(self) -> ApprovalService:
        """The queue as other processes and people see it."""
        from dari.bridge.held_decisions import HeldPins, UntrustedFiles

        sources = (HeldPins(self), UntrustedFiles(self))
        return ApprovalService(self.approvals, lambda: self.audit, sources, self.standing_approvals)

    @cached_property
    def audit(self) -> AuditLog | None:
        """None where calls are not recorded. A log has one writer: a run beside the daemon has one of its own."""
        if not self._audits:
            return None
        beside = [f"audit-beside/{number}" for number in range(1, MAX_SIDE_LOGS + 1)]
        for folder in beside if self.is_guest else ["audit", *beside]:
            try:
                return AuditLog(self.home / folder)
            except Conflict as error:
                taken = error
        raise taken

    @cached_property
    def activity(self) -> ActivityIndex | None:
        """Counters over the log for charts; None where nothing is recorded. Open it in a thread first."""
        from dari.core.audit.activity import ActivityIndex

        return None if self.audit is None else ActivityIndex(self.audit)

    @cached_property
    def usage(self) -> ServerUsage:
        """Memory and processor time of the servers that run here."""
        return ServerUsage(lambda: self.children.running if "children" in vars(self) else ())

    @cached_property
    def memory(self) -> ServerCache:
        return ServerCache(self.home / "memory")

    def view(self, around: ClientEnvironment) -> ServerView:
        """The servers as a caller in this directory, with this environment, means them."""
        key = (around.home, around.cwd, tuple(sorted(around.environ.items())))
        view = self._views.get(key)
        if view is None:
            if len(self._views) >= MAX_VIEWS:
                del self._views[next(iter(self._views))]
            book = ConfigService(around, TrustStore())
            view = self._views[key] = ServerView(around, book, self.pool.get, self.pool.retire)
        return view

    def views(self) -> list[ServerView]:
        """Of the callers lately."""
        return list(self._views.values())

    def statuses(self) -> list[UpstreamStatus]:
        """Of the servers that were used since the start."""
        return [one.status() for one in self.pool]

    @property
    def is_active(self) -> bool:
        """Whether a server runs, a call is under way, or a person is asked."""
        return any(one.is_active for one in self.pool) or bool("approvals" in vars(self) and self.approvals.pending())

    async def stop_server(self, id: str) -> int:
        """End the sessions of every server of this name; returns how many servers that were."""
        found = self.pool.named(id)
        for one in found:
            await one.stop()
        return len(found)

    async def close(self) -> None:
        made = vars(self)
        if "approvals" in made:
            self.approvals.close()
        await self.pool.close()
        if "children" in made:
            await self.children.close()
        if "activity" in made and self.activity is not None:
            self.activity.close()
        if "audit" in made and self.audit is not None:
            self.audit.close()
        if "_pin_store" in made:
            self._pin_store.close()

    @cached_property
    def _oauth_maker(self) -> MakeOAuth:
        from dari.bridge.oauth.persistent import oauth_maker

        return oauth_maker(self.home)

    def _make_oauth(self, profile: Profile, url: str) -> OAuth | None:
        return self._oauth_maker(profile, url)

    @cached_property
    def _pin_store(self) -> PinStore:
        return PinStore(self.home / "pins.db")

    @cached_property
    def _parts(self) -> UpstreamServices:
        return UpstreamServices(
            children=lambda: self.children,
            pins=self.pins,
            approvals=self.approvals,
            audit=self.audit,
            memory=self.memory,
            make_oauth=self.make_oauth,
            queue=self.start_queue,
            on_status=self.status_changes.publish,
        )

    def _pins_changed(self, server: str) -> None:
        for one in self.pool:
            if one.target.pin_name == server:
                one.review()
                self.status_changes.publish(one.id)
