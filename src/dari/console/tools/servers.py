"""The page's Servers, part one: which there are, the form of each (design 003), switch, remove, start and stop."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct, structs, to_builtins

from dari.bridge.config.catalog import CatalogEntry
from dari.bridge.config.form import ServerForm, apply_form, to_form
from dari.bridge.config.jsonc import JsonValue
from dari.bridge.config.loader import read_entry
from dari.bridge.config.pasted import advise
from dari.bridge.config.service import RemovedServer
from dari.bridge.upstream.resolved import pin_name
from dari.console.server_cards import ServerCard, find_card, find_listed, list_cards
from dari.console.tools.path_checks import PathCheck, check_path, suggest_paths
from dari.core.jcs import digest as digest_of
from dari.core.scopes import ADMIN
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.errors import Conflict, Denied, InvalidInput, NotFound

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

MAX_REMOVED = 50
Name = Annotated[str, Meta(description="The server's name, as dari_servers_list shows it", max_length=200)]
SaveLayer = Annotated[
    Literal["user", "project"], Meta(description="Where a new server is written: your own file, or the project's")
]


class ServerList(Struct, frozen=True):
    servers: list[ServerCard]
    problems: list[str]
    """Of the files themselves."""
    file: str
    """Where new servers are written."""


class ServerEdit(Struct, frozen=True):
    """A server to edit, or an empty form for a new one."""

    form: ServerForm
    digest: str
    """Of the form; a save that names it is refused when somebody else has changed the server since."""
    file: str
    suggestions: list[PathCheck]
    """Folders that a person may want to allow, besides those that the form has."""
    notes: list[str]


class SavedServer(Struct, frozen=True):
    server: ServerCard
    file: str
    notes: list[str]
    """What a person should know: secrets in the clear, another file that counts, fields that are not used."""


class RemovalPreview(Struct, frozen=True):
    """What will no longer work."""

    file: str
    tools: int | None
    calls: int
    """Running now; they end."""
    sets: list[str]
    is_default: bool
    next_source: str
    """The file whose server of the same name counts then; empty: none."""
    pins: int
    """They stay, so that a server of this name which comes back is compared with them."""


class RemovedReply(Struct, frozen=True):
    file: str
    can_restore: bool


class PathChecks(Struct, frozen=True):
    paths: list[PathCheck]


class ServerTools:
    """Tools named `dari_servers_<method>`."""

    prefix = "dari_servers"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._bridge = backends.bridge
        self._view = backends.view
        self._removed: dict[str, RemovedServer] = {}

    @tool(scope=ADMIN, read_only=True, name="list")
    async def list_servers(self) -> ServerList:
        """List every server of the files with its state, transport, number of tools and last error."""
        cards = list_cards(self._bridge, self._view)
        return ServerList(cards, [*self._view.problems], str(self._view.around.file_of("user")))

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def form(
        self, name: Annotated[str, Meta(description="The server's name; empty for a new one", max_length=200)] = ""
    ) -> ServerEdit:
        """Return the form of a server, without its secrets: what is `kept` stands for the value in the file."""
        around = self._view.around
        if not name:
            form = ServerForm(name="")
            return ServerEdit(form, "", str(around.file_of("user")), suggest_paths(form, around), [])
        listed = self._find(name)
        if listed.profile is None:
            raise InvalidInput(listed.message, listed.hint or f"correct {listed.source} by hand")
        form = to_form(listed.profile)
        notes = [*listed.profile.notes]
        return ServerEdit(form, _digest(form), listed.source.file, suggest_paths(form, around), notes)

    @tool(scope=ADMIN, idempotent=False)
    async def save(
        self,
        form: Annotated[ServerForm, Meta(description="As dari_servers_form returns it, filled in")],
        was: Annotated[str, Meta(description="Its name until now; empty adds a new server", max_length=200)] = "",
        digest: Annotated[str, Meta(description="Of the form that was opened; empty overwrites", max_length=64)] = "",
        layer: SaveLayer = "user",
    ) -> SavedServer:
        """Write a new server into mcp.json, or change one; what the form does not know stays as it is."""
        book = self._view.book
        if was:
            profile = self._find(was).profile
            if digest and profile is not None and _digest(to_form(profile)) != digest:
                raise Conflict(f"'{was}' was changed since you opened it", "look at it again, or overwrite it")
            if profile is not None:
                form = structs.replace(form, enabled=profile.is_enabled)  # its switch may have been used meanwhile
            entry = self._entry_of(form, was)
            path = book.replace(was, entry, form.name)
        else:
            entry = apply_form(form, {})
            path = book.add(form.name, entry, layer)
        return await self._saved(form.name, entry, path)

    @tool(scope=ADMIN, read_only=True)
    async def check_paths(
        self, paths: Annotated[list[str], Meta(description="As a person typed them", max_length=200)]
    ) -> PathChecks:
        """Tell of each path whether it is there, what it is, and whether a server may be given it."""
        return PathChecks([check_path(path, self._view.around) for path in paths])

    @tool(scope=ADMIN)
    async def switch(self, name: Name, enabled: Annotated[bool, Meta(description="Whether it may run")]) -> SavedServer:
        """Enable or disable a server; a disabled one ends at once and stays in its file."""
        book = self._view.book
        path = book.enable(name) if enabled else book.disable(name)
        if not enabled:
            await self._stop(path, name)
        return await self._saved(name, {}, path)

    @tool(scope=ADMIN, read_only=True)
    async def removal(self, name: Name) -> RemovalPreview:
        """Tell what would no longer work without a server; nothing is removed."""
        listed, book = self._find(name), self._view.book
        catalog = self._view.catalog()
        card = find_card(self._bridge, self._view, name)
        sets = [one.name for one in catalog.sets if name in one.servers]
        pins = len(self._bridge.pins.pinned(pin_name(name, listed)))
        path, _ = book.entry(name)
        next_source = str(listed.shadows[0]) if listed.shadows else ""
        return RemovalPreview(str(path), card.tools, card.calls, sets, card.is_default, next_source, pins)

    @tool(scope=ADMIN, destructive=True, idempotent=False)
    async def remove(self, name: Name) -> RemovedReply:
        """Take a server out of its file and end it; dari_servers_restore puts it back."""
        self._find(name)
        removed = self._view.book.take_out(name)
        await self._stop(removed.path, name)
        self._removed.pop(name, None)
        self._removed[name] = removed
        while len(self._removed) > MAX_REMOVED:
            del self._removed[next(iter(self._removed))]
        self._view.catalog()
        self._bridge.status_changes.publish(name)
        return RemovedReply(str(removed.path), True)

    @tool(scope=ADMIN, idempotent=False)
    async def restore(self, name: Name) -> SavedServer:
        """Put a server back that was removed since the hub was started, with its secrets and into its sets."""
        removed = self._removed.get(name)
        if removed is None:
            known = ", ".join(self._removed) or "none"
            raise NotFound(f"no server '{name}' was removed here", f"removed since the start: {known}")
        path = self._view.book.put_back(removed)
        del self._removed[name]
        return await self._saved(name, {}, path)

    @tool(scope=ADMIN, idempotent=False, open_world=True, timeout_s=INNER_LIMITS_ONLY)
    async def start(self, name: Name) -> SavedServer:
        """Start or reach a server now and fetch its lists; a pause after failures is over."""
        upstream = self._view.upstream(name)
        upstream.retry()
        await upstream.start()
        return SavedServer(find_card(self._bridge, self._view, name), upstream.profile.source.file, [])

    @tool(scope=ADMIN)
    async def stop(self, name: Name) -> SavedServer:
        """End the process or the sessions of a server; its next use starts it again."""
        listed = self._find(name)
        await self._stop(Path(listed.source.file), name)
        return SavedServer(find_card(self._bridge, self._view, name), listed.source.file, [])

    def entry_for_test(self, form: ServerForm, was: str) -> CatalogEntry:
        """A server that is not saved yet, as if it were."""
        around = self._view.around
        entry = self._entry_of(form, was) if was else apply_form(form, {})
        path = around.file_of("user")
        profile = read_entry(form.name or "new server", {**entry, "disabled": False}, path)
        if was:
            listed = self._find(was)
            if listed.state == "untrusted":  # what a cloned project wants to run is not run to see whether it works
                raise Denied(listed.message, listed.hint)
            return structs.replace(listed, state="ready", profile=structs.replace(profile, source=listed.source))
        return CatalogEntry(id=profile.id, source=profile.source, state="ready", profile=profile, workspace=around.cwd)

    def _entry_of(self, form: ServerForm, was: str) -> dict[str, JsonValue]:
        listed = self._find(was)
        _, before = self._view.book.entry(was)
        return apply_form(form, before, listed.profile)

    def _find(self, name: str) -> CatalogEntry:
        return find_listed(self._view, name)

    async def _saved(self, name: str, entry: dict[str, JsonValue], path: Path) -> SavedServer:
        catalog = self._view.catalog()  # takes what changed over: the old server is retired
        self._bridge.status_changes.publish(name)
        return SavedServer(
            find_card(self._bridge, self._view, name), os.fspath(path), advise(catalog, name, entry, path)
        )

    async def _stop(self, path: Path, name: str) -> None:
        for upstream in self._bridge.pool.named(name):
            if upstream.profile.source.file == str(path):
                await upstream.stop()


def _digest(form: ServerForm) -> str:
    """Over what a person edits: neither secrets nor the switch are a part of it."""
    return digest_of(to_builtins(structs.replace(form, enabled=True)))[:16]
