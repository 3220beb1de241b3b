"""Every server of a view as part of one registry, kept up to date while servers and files change.

`StartupWait` bounds how long a first list waits for servers that were never seen; `write_instructions` makes the
instructions that a model reads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from dari.bridge.children.start_queue import Priority
from dari.bridge.config.built_in import is_code_tools
from dari.bridge.config.catalog import Catalog
from dari.bridge.config.profile import PrefixRule, Profile
from dari.bridge.config.reload import POLL_INTERVAL_S, ConfigWatcher
from dari.bridge.gateway.forward import CallForwarder
from dari.bridge.gateway.mounted_server import MountedServer, Names, failing_tool
from dari.bridge.gateway.resource_subscriptions import ResourceSubscriptions, make_unique_uris
from dari.bridge.gateway.selection import Naming, expose, fit, is_selected
from dari.bridge.upstream.upstream import Upstream
from dari.bridge.view import ServerView
from dari.core.context import LoggingMessage
from dari.core.events import ListKind
from dari.core.registry import Registry
from dari.core.tool import Tool
from dari.errors import DariError
from dari.log import format_event
from dari.text.sanitize import sanitize_for_model

WAIT_S = 2.0
EXTEND_S = 1.0
MAX_WAIT_S = 6.0


class StartupWait:
    """Two seconds from the first question, or as long as one server after another answers, and six at most."""

    def __init__(self, limit_s: float = WAIT_S) -> None:
        self.limit_s = limit_s
        self._unseen: set[str] = set()
        self._is_over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._latest_s = 0.0

    @property
    def is_over(self) -> bool:
        """Whether lists are answered at once from now on."""
        return self._is_over.is_set()

    def expect(self, id: str) -> None:
        self._unseen.add(id)

    def arrived(self, id: str) -> None:
        """It has answered, failed, or is not wanted any more."""
        self._unseen.discard(id)
        if self._timer is not None and not self.is_over:
            # Many start at the same time and are slow together: the next one is given a moment more.
            loop = asyncio.get_running_loop()
            until_s = min(max(self._timer.when(), loop.time() + EXTEND_S), self._latest_s)
            self._timer.cancel()
            self._timer = loop.call_at(until_s, self._is_over.set)

    def check(self) -> None:
        """End the wait when every server has answered."""
        if not self._unseen:
            self._is_over.set()

    def wait(self) -> Coroutine[Any, Any, None] | None:
        """What a list has to wait for; None: nothing."""
        if self.is_over:
            return None
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self.limit_s, self._is_over.set)
            self._latest_s = loop.time() + max(MAX_WAIT_S, self.limit_s)
        return self._wait()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._is_over.set()

    async def _wait(self) -> None:
        await self._is_over.wait()


MAX_CHARS = 8000
MAX_CHARS_PER_SERVER = 1500
_LINE_CHARS = 160


def write_instructions(mounts: Sequence[MountedServer], separator: str, *, is_prefixed: bool) -> str:
    """One line per server first, then what each says about itself, until the text is full."""
    if not mounts:
        return ""
    lines = [_line(mount, separator if is_prefixed else "") for mount in mounts]
    parts = ["Other MCP servers are reached through this one:\n" + "\n".join(lines)] if len(mounts) > 1 else lines
    left = MAX_CHARS - len(parts[0])
    for mount in mounts:
        said = mount.upstream.instructions.strip()
        if not said:
            continue
        text = f"## {mount.id}\n{_cut(said, MAX_CHARS_PER_SERVER)}"
        if len(text) > left:
            break
        left -= len(text) + 2
        parts.append(text)
    return "\n\n".join(parts)[:MAX_CHARS]


def _line(mount: MountedServer, separator: str) -> str:
    tools = mount.upstream.known_tools()
    known = "its tools are not known yet" if tools is None else f"{len(tools)} tools"
    named = f", named {mount.id}{separator}…" if separator else ""
    about = mount.upstream.profile.description
    return f"- {mount.id}: {_cut(sanitize_for_model(about)[0], _LINE_CHARS) + '; ' if about else ''}{known}{named}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


RETRY_S = 5.0
MAX_RETRY_S = 300.0
_OWNER = "remote:"
_log = logging.getLogger("dari.bridge")

Choose = Callable[[Catalog], Sequence[str]]
"""Globs of the servers that are meant, as the files stand now."""


class Gateway:
    """Fills a registry and follows every change: of lists, of servers, of the files that name them.

    What is known from earlier runs is there at once, and no list waits then. Where nothing is known of any server, the
    first list waits a little (see `StartupWait`) for those that may answer soon; later ones are announced to clients.
    `servers` are globs of names, or a function that chooses them from the files; `is_alone` shows one server under its
    own names. `has_code_tools`: the registry has those of `crewx-tools` itself.
    """

    def __init__(
        self,
        view: ServerView,
        registry: Registry,
        *,
        servers: Sequence[str] | Choose = ("*",),
        is_alone: bool = False,
        has_code_tools: bool = False,
    ) -> None:
        self._view = view
        self._registry = registry
        self._servers = servers
        self._patterns: Sequence[str] = ()
        self._separator = "__"
        self._prefix: PrefixRule = "always"
        self._is_alone = is_alone
        self._has_code_tools = has_code_tools
        self._mounts: dict[str, MountedServer] = {}
        self._catalog: Catalog | None = None
        self._has_memories = False
        self._publishing: asyncio.Handle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._watching = ResourceSubscriptions(registry, lambda: self._mounts, self._spawn)
        self.settling = StartupWait()
        self.calling = CallForwarder()
        self.on_log: list[Callable[[LoggingMessage], None]] = []
        """Called with log messages that do not belong to a call."""

    async def open(self) -> None:
        self.start()

    def start(self) -> None:
        """Show the known lists, and fetch the rest in the background."""
        registry = self._registry
        registry.may_grow = True
        registry.settle = self._settle
        registry.watches.append(self._watching.watch)
        registry.fallbacks[_OWNER] = self._watching.find
        registry.tool_fallbacks[_OWNER] = self._refused_tool
        self.reload()
        self._spawn(self._follow_files())

    async def close(self) -> None:
        """Take everything away again. The servers go on: others may use them."""
        registry = self._registry
        registry.settle = None
        if self._watching.watch in registry.watches:
            registry.watches.remove(self._watching.watch)
        registry.fallbacks.pop(_OWNER, None)
        registry.tool_fallbacks.pop(_OWNER, None)
        self.settling.close()
        if self._publishing is not None:
            self._publishing.cancel()
        for mount in list(self._mounts.values()):
            self._unmount(mount)
        await self._watching.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.calling.parking.close()
        registry.guidance = ""

    @property
    def mounts(self) -> tuple[MountedServer, ...]:
        return tuple(self._mounts.values())

    def reload(self) -> None:
        """Read the profiles again: add new servers, replace changed ones, remove missing ones."""
        catalog = self._catalog = self._view.catalog()  # first: files that change meanwhile are looked at again
        upstreams = {one.id: one for one in self._view.upstreams()}
        self._patterns = self._servers(catalog) if callable(self._servers) else self._servers
        wanted = {id: one for id, one in upstreams.items() if self._is_wanted(id, one.profile)}
        for id, mount in list(self._mounts.items()):
            if wanted.get(id) is not mount.upstream:
                self._unmount(mount)
        for id, upstream in wanted.items():
            if id not in self._mounts:
                self._mount(upstream)
        self._mounts = {id: self._mounts[id] for id in wanted}
        self._separator, self._prefix = catalog.gateway.separator, catalog.gateway.prefix
        self._registry.order_offers([_OWNER + id for id in wanted])
        self._publish()
        self._watching.refresh()
        self.settling.check()

    async def end_sessions(self, has_ended: Callable[[str], bool]) -> None:
        """Clients are gone, by the keys of their sessions: servers that ran for one alone end, and calls that wait for
        its answer."""
        self.calling.parking.end_sessions(has_ended)
        ending = [mount.upstream.end_sessions(has_ended) for mount in self._mounts.values()]
        await asyncio.gather(*ending, return_exceptions=True)

    # Mounting

    def _mount(self, upstream: Upstream) -> None:
        mount = self._mounts[upstream.id] = MountedServer(upstream, self.calling)
        mount.undo += [
            upstream.changes.subscribe(lambda _: self._publish_soon()),
            upstream.resource_updates.subscribe(lambda uri: self._updated(mount, uri)),
            upstream.logs.subscribe(self._logged),
        ]
        if upstream.known_tools() is not None:
            self._has_memories = True
            upstream.refresh_later()
            return
        if _may_answer_soon(upstream):
            self.settling.expect(upstream.id)
        self._spawn(self._meet(upstream))

    def _unmount(self, mount: MountedServer) -> None:
        for undo in mount.undo:
            undo()
        self._mounts.pop(mount.id, None)
        self.settling.arrived(mount.id)
        self._registry.offer(_OWNER + mount.id, None)

    async def _meet(self, upstream: Upstream) -> None:
        """Ask a server that was never seen, again and again, until it has answered once or is gone."""
        pause_s = RETRY_S
        while self._is_mounted(upstream):
            try:
                await upstream.start(Priority.LIST)
                self._publish()
                return
            except DariError as error:
                _log.warning(format_event("bridge", "unseen", f"server={upstream.id} {error.message}"))
            except Exception:
                _log.exception(format_event("bridge", "fatal", f"server={upstream.id}"))
            finally:
                if self._is_mounted(upstream):
                    self.settling.arrived(upstream.id)
                self.settling.check()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, MAX_RETRY_S)

    def _is_wanted(self, id: str, profile: Profile | None) -> bool:
        # The hub has the code tools as its own: a profile of the same server would list them twice.
        is_ours = self._has_code_tools and profile is not None and is_code_tools(profile)
        return is_selected(id, self._patterns) and not is_ours

    def _is_mounted(self, upstream: Upstream) -> bool:
        mount = self._mounts.get(upstream.id)
        return mount is not None and mount.upstream is upstream

    # Publishing

    def _settle(self, kind: ListKind) -> Coroutine[Any, Any, None] | None:
        self._publish_pending()
        if self._has_memories:
            # What is known is an answer: one server that hangs, or is new, costs a client nothing. It comes later.
            self.settling.close()
        for mount in self._mounts.values():
            if mount.upstream.known_tools() is None and not _may_answer_soon(mount.upstream):
                self.settling.arrived(mount.id)
        self.settling.check()
        if self.settling.is_over:
            for mount in self._mounts.values():
                mount.upstream.refresh_later()
        return self.settling.wait()

    def _publish_soon(self) -> None:
        """Several lists of a server change in one turn of the loop; clients get one notification."""
        if self._publishing is None:
            self._publishing = asyncio.get_running_loop().call_soon(self._publish)

    def _publish_pending(self) -> None:
        """A list that came in this turn of the loop is known to whoever asks now."""
        if self._publishing is not None:
            self._publishing.cancel()
            self._publish()

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
            found = make_unique_uris(mount.id, [one["uri"] for one in mount.resources], uris)
            families = make_unique_uris(mount.id, [one["uriTemplate"] for one in mount.templates], templates)
            registry.offer(_OWNER + mount.id, mount.offer(named, asked, found, families))
        registry.guidance = write_instructions(mounts, self._separator, is_prefixed=naming == "prefixed")

    def _refused_tool(self, name: str) -> Tool | None:
        """A tool that is known but not listed: calling it gives the reason. None for an unknown name.

        A server may have been written to a file just now: its first call does not wait for the next look at the files.
        """
        self._publish_pending()
        found = self._registry.tools.get(name) or self._unlisted_tool(name)
        if found is None and self._view.catalog() is not self._catalog:
            self.reload()
            found = self._registry.tools.get(name) or self._unlisted_tool(name)
        return found or self._unusable_tool(name)

    def _unlisted_tool(self, name: str) -> Tool | None:
        naming = self._naming(len(self._mounts))
        for mount in self._mounts.values():
            own = mount.upstream.unlisted_tools()
            exposed = expose(mount.id, own, (), separator=self._separator, naming=naming)
            found = next((one for one, shown in exposed.items() if shown == name), None)
            if found is None and naming == "prefixed" and mount.upstream.known_tools() is None:
                # Nothing is known of this server: whatever has its name in front is tried, or has its error.
                prefix = self._prefix_of(mount.id)
                found = name.removeprefix(prefix) if name.startswith(prefix) else None
            if found is not None:
                return mount.unlisted_tool(found, name)
        return None

    def _unusable_tool(self, name: str) -> Tool | None:
        """A tool of a server that stands in the files and is not mounted: its call has the reason."""
        for listed in self._view.catalog().listed:
            is_meant = self._is_wanted(listed.id, listed.profile) and listed.id not in self._mounts
            if is_meant and (self._is_alone or name.startswith(self._prefix_of(listed.id))):
                try:
                    self._view.upstream(listed.id)
                except DariError as error:
                    return failing_tool(listed.id, name, error)
                self.reload()  # what it lacked, a secret in the keychain, say, is there now
                return self._registry.tools.get(name) or self._unlisted_tool(name)
        return None

    def _prefix_of(self, id: str) -> str:
        return fit(f"{id}{self._separator}")

    def _own_names(self) -> tuple[set[str], set[str], set[str]]:
        registry = self._registry
        theirs = [offer for owner, offer in registry.offers.items() if owner.startswith(_OWNER)]
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

    def _updated(self, mount: MountedServer, uri: str) -> None:
        self._registry.resource_updated(mount.uris.get(uri, uri))

    def _logged(self, record: LoggingMessage) -> None:
        for tell in self.on_log:
            tell(record)

    # Tasks

    async def _follow_files(self) -> None:
        watch = ConfigWatcher(self._view.book, self._view.catalog())
        while True:
            seen = watch.catalog
            change = await asyncio.to_thread(watch.poll)
            if watch.catalog is seen:
                await asyncio.sleep(POLL_INTERVAL_S)
                continue
            if change is not None:
                counts = f"added={change.added} changed={change.changed} removed={change.removed}"
                _log.info(format_event("bridge", "reload", counts))
            self.reload()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _may_answer_soon(upstream: Upstream) -> bool:
    """Do not wait for a server that did not answer the last time, in this run or an earlier one."""
    return not upstream.has_failed and not upstream.status().failures
