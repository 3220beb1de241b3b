"""Every server of a view as a part of one registry, kept true while servers and files change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

from dari.bridge.gateway.calling import Calling
from dari.bridge.gateway.choice import is_chosen
from dari.bridge.gateway.guidance import guidance
from dari.bridge.gateway.mount import Mount, Names
from dari.bridge.gateway.names import Naming, expose
from dari.bridge.profiles.profile import PrefixRule
from dari.bridge.profiles.watch import Watch
from dari.bridge.upstream.upstream import Upstream
from dari.bridge.view import View
from dari.core.context import LogRecord
from dari.core.events import ListKind
from dari.core.registry import Registry
from dari.core.resource import Resource
from dari.errors import DariError
from dari.log import event

SETTLE_S = 2.0
NEXT_S = 1.0
LONGEST_SETTLE_S = 6.0
RETRY_S = 5.0
LONGEST_RETRY_S = 300.0
RETIRE_S = 30.0
_LOOK_S = 0.05
_log = logging.getLogger("dari.bridge")


class Gateway:
    """Fills a registry and follows every change: of lists, of servers, of the files that name them.

    What is known from earlier runs is there at once. A server that was never seen is asked at the start; the first
    list waits for such servers, two seconds at most, or as long as one of them answers every second and six at most.
    Clients are told when one comes later. `servers` are globs of names; `is_alone` shows one under its own names.
    """

    def __init__(
        self,
        view: View,
        registry: Registry,
        *,
        servers: Sequence[str] = ("*",),
        separator: str = "__",
        prefix: PrefixRule = "always",
        is_alone: bool = False,
        settle_s: float = SETTLE_S,
        retry_s: float = RETRY_S,
        follows_files: bool = True,
    ) -> None:
        self._view = view
        self._registry = registry
        self._servers = tuple(servers)
        self._separator = separator
        self._prefix: PrefixRule = prefix
        self._is_alone = is_alone
        self._settle_s = settle_s
        self._retry_s = retry_s
        self._follows_files = follows_files
        self._calling = Calling()
        self._mounts: dict[str, Mount] = {}
        self._watched: dict[str, tuple[Upstream, str]] = {}
        self._unseen: set[str] = set()
        self._settled = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._latest_s = 0.0
        self._publishing: asyncio.Handle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.on_log: list[Callable[[LogRecord], None]] = []
        """Told of log messages that belong to no call."""

    async def open(self) -> None:
        """Show what is known, ask for the rest behind the caller's back."""
        self.start()

    def start(self) -> None:
        registry = self._registry
        registry.may_grow = True
        registry.settle = self._settle
        registry.watches.append(self._watch)
        registry.fallbacks[self._owner("")] = self._find_by_prefix
        self.reload()
        if self._follows_files:
            self._spawn(self._follow_files())

    async def close(self) -> None:
        """Take everything away again. The servers go on: others may use them."""
        registry = self._registry
        registry.settle = None
        if self._watch in registry.watches:
            registry.watches.remove(self._watch)
        registry.fallbacks.pop(self._owner(""), None)
        for handle in (self._timer, self._publishing):
            if handle is not None:
                handle.cancel()
        for mount in list(self._mounts.values()):
            self._unmount(mount)
        watched, self._watched = self._watched, {}
        for upstream, uri in watched.values():
            await upstream.unsubscribe(uri)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._calling.parking.close()
        registry.guidance = ""

    @property
    def mounts(self) -> tuple[Mount, ...]:
        return tuple(self._mounts.values())

    def reload(self) -> None:
        """Look at the profiles again: mount what is new, replace what changed, take away what is gone."""
        wanted = {one.id: one for one in self._view.upstreams() if self._chooses(one.id)}
        for id, mount in list(self._mounts.items()):
            if wanted.get(id) is not mount.upstream:
                self._unmount(mount)
                self._spawn(_retire(mount.upstream))
        for id, upstream in wanted.items():
            if id not in self._mounts:
                self._mount(upstream)
        self._mounts = {id: self._mounts[id] for id in wanted}
        self._registry.order_offers([self._owner(id) for id in wanted])
        self._publish()
        self._watch_again()
        self._check_settled()

    async def end_session(self, session_key: str) -> None:
        """A client is gone: servers that ran for it alone end."""
        ending = [mount.upstream.end_session(session_key) for mount in self._mounts.values()]
        await asyncio.gather(*ending, return_exceptions=True)

    # Mounting

    def _chooses(self, id: str) -> bool:
        return is_chosen(id, self._servers)

    def _owner(self, id: str) -> str:
        return f"remote:{id}"

    def _mount(self, upstream: Upstream) -> None:
        mount = self._mounts[upstream.id] = Mount(upstream, self._calling)
        mount.undo += [
            upstream.changes.subscribe(lambda _: self._publish_soon()),
            upstream.resource_updates.subscribe(lambda uri: self._updated(mount, uri)),
            upstream.logs.subscribe(self._logged),
        ]
        if upstream.known_tools() is None:
            # Nobody waits for one that is known to be dead.
            if not upstream.has_failed and not upstream.status().failures:
                self._unseen.add(upstream.id)
            self._spawn(self._meet(upstream))
        else:
            upstream.refresh_later()

    def _unmount(self, mount: Mount) -> None:
        for undo in mount.undo:
            undo()
        self._mounts.pop(mount.id, None)
        self._unseen.discard(mount.id)
        self._registry.offer(self._owner(mount.id), None)

    async def _meet(self, upstream: Upstream) -> None:
        """Ask a server that was never seen, again and again, until it has answered once or is gone."""
        pause_s = self._retry_s
        while self._is_mounted(upstream):
            try:
                await upstream.start()
                self._publish()
                return
            except DariError as error:
                _log.warning(event("bridge", "unseen", f"server={upstream.id} {error.message}"))
            except Exception:
                _log.exception(event("bridge", "fatal", f"server={upstream.id}"))
            finally:
                if self._is_mounted(upstream):
                    self._unseen.discard(upstream.id)
                self._check_settled()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_RETRY_S)

    def _is_mounted(self, upstream: Upstream) -> bool:
        mount = self._mounts.get(upstream.id)
        return mount is not None and mount.upstream is upstream

    # What a list waits for

    def _settle(self, kind: ListKind) -> Coroutine[Any, Any, None] | None:
        if self._settled.is_set():
            for mount in self._mounts.values():
                mount.upstream.refresh_later()
            return None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._settle_s, self._settled.set)
            self._latest_s = self._timer.when() - self._settle_s + LONGEST_SETTLE_S
        return self._wait_until_settled()

    async def _wait_until_settled(self) -> None:
        await self._settled.wait()

    def _check_settled(self) -> None:
        if not self._unseen:
            self._settled.set()
        elif self._timer is not None and not self._settled.is_set():
            # Many start at the same time and are slow together: the next one is given a moment more.
            loop = asyncio.get_running_loop()
            until_s = min(max(self._timer.when(), loop.time() + NEXT_S), self._latest_s)
            self._timer.cancel()
            self._timer = loop.call_at(until_s, self._settled.set)

    # Publishing

    def _publish_soon(self) -> None:
        """Several lists of a server change in one turn of the loop; clients are told once."""
        if self._publishing is None:
            self._publishing = asyncio.get_running_loop().call_soon(self._publish)

    def _publish(self) -> None:
        self._publishing = None
        registry, mounts = self._registry, list(self._mounts.values())
        naming = self._naming(len(mounts))
        # With the server in front no name of ours can be meant; to know ours, toolkits would have to be imported.
        tools = set() if naming == "prefixed" else {tool.name for tool in registry.own_tools()}
        prompts, uris, templates = self._own_names()
        for mount in mounts:
            named = self._named(mount.id, [one.name for one in mount.tools], tools, naming)
            asked = self._named(mount.id, [one["name"] for one in mount.prompts], prompts, naming)
            found = _addressed(mount.id, [one["uri"] for one in mount.resources], uris)
            families = _addressed(mount.id, [one["uriTemplate"] for one in mount.templates], templates)
            registry.offer(self._owner(mount.id), mount.offer(named, asked, found, families))
        registry.guidance = guidance(mounts, self._separator, is_prefixed=naming == "prefixed")

    def _own_names(self) -> tuple[set[str], set[str], set[str]]:
        registry = self._registry
        theirs = [offer for owner, offer in registry.offers.items() if owner.startswith(self._owner(""))]
        prompts = set(registry.prompts) - {one.name for offer in theirs for one in offer.prompts}
        uris = set(registry.resources) - {one.uri for offer in theirs for one in offer.resources}
        templates = set(registry.templates) - {one.uri_template for offer in theirs for one in offer.templates}
        return prompts, uris, templates

    def _naming(self, count: int) -> Naming:
        if self._is_alone:
            return "verbatim"
        return "prefixed" if self._prefix == "always" or (self._prefix == "multi" and count > 1) else "plain"

    def _named(self, id: str, names: list[str], taken: set[str], naming: Naming) -> Names:
        exposed = expose(id, names, taken, separator=self._separator, naming=naming)
        taken.update(exposed.values())
        return exposed

    # Resources

    def _find_by_prefix(self, uri: str) -> Resource | None:
        mount = self._claimant(uri)
        return None if mount is None else mount.resource({"uri": uri}, uri)

    def _claimant(self, uri: str) -> Mount | None:
        """Whose URI it may be, though no list names it. Where there is only one server, it is that one's."""
        mounts = list(self._mounts.values())
        claimed = next((mount for mount in mounts if mount.claims(uri)), None)
        return claimed or (mounts[0] if len(mounts) == 1 else None)

    def _locate(self, uri: str) -> tuple[Upstream, str] | None:
        for mount in self._mounts.values():
            for own, shown in mount.uris.items():
                if shown == uri:
                    return mount.upstream, own
        if uri in self._registry.resources:
            return None
        mount_or_none = self._claimant(uri)
        return None if mount_or_none is None else (mount_or_none.upstream, uri)

    def _watch(self, uri: str, wanted: bool) -> Awaitable[None] | None:
        if not wanted:
            found = self._watched.pop(uri, None)
            if found is not None:
                self._spawn(found[0].unsubscribe(found[1]))
            return None
        found = self._locate(uri)
        if found is None:
            return None
        self._watched[uri] = found
        return self._spawn(found[0].subscribe(found[1]))

    def _watch_again(self) -> None:
        """Servers were replaced: what clients watch is watched at the new ones."""
        for uri in self._registry.interests:
            now, before = self._locate(uri), self._watched.get(uri)
            if now == before:
                continue
            if before is not None:
                del self._watched[uri]
                self._spawn(before[0].unsubscribe(before[1]))
            if now is not None:
                self._watched[uri] = now
                self._spawn(now[0].subscribe(now[1]))

    def _updated(self, mount: Mount, uri: str) -> None:
        self._registry.resource_updated(mount.uris.get(uri, uri))

    def _logged(self, record: LogRecord) -> None:
        for tell in self.on_log:
            tell(record)

    # Tasks

    async def _follow_files(self) -> None:
        watch = Watch(self._view.book, self._view.catalog())
        async for change in watch.changes():
            _log.info(
                event("bridge", "reload", f"added={change.added} changed={change.changed} removed={change.removed}")
            )
            self.reload()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _addressed(id: str, uris: Iterable[str], taken: set[str]) -> Names:
    """A URI stays with the first server that lists it; another one's is reached below `dari://<server>/`."""
    shown = {uri: uri if uri not in taken else f"dari://{id}/{uri}" for uri in dict.fromkeys(uris)}
    taken.update(shown.values())
    return shown


async def _retire(upstream: Upstream) -> None:
    """Its profile is gone or another one now: let calls that run end, then end the server."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + RETIRE_S
    while upstream.status().calls and loop.time() < until_s:  # noqa: ASYNC110 (a count, no event)
        await asyncio.sleep(_LOOK_S)
    await upstream.stop()
