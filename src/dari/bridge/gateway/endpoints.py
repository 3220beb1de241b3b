"""Servers behind addresses: all of them, a chosen set, or one; each a complete MCP server of ours."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

from dari.bridge.gateway.gateway import Gateway
from dari.bridge.gateway.search_mode import search_registry
from dari.bridge.gateway.selection import OWN, ServerSelection, select_servers, selected_patterns
from dari.bridge.view import ServerView
from dari.core.approvals import ApprovalQueue
from dari.core.audit.writer import RecordWriter
from dari.core.registry import Registry
from dari.errors import DariError
from dari.mcp.server import Info, Server
from dari.version import VERSION

AddBuiltIns = Callable[[Registry], None]
_PATH = re.compile(r"/([ps])/([^/]+)(/mcp/?)?")


_INFO = Info(name="dari", version=VERSION, title="Dari")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How our server introduces itself, and what it offers besides other people's servers."""

    info: Info = _INFO
    instructions: str = ""
    is_strict: bool = False
    add_built_ins: AddBuiltIns | None = None
    approvals: ApprovalQueue | None = None
    call_log: Callable[[], RecordWriter | None] | None = None


class GatewayEndpoint:
    """One MCP server over a choice of a view's servers. `server` can be used before it is opened."""

    def __init__(
        self, view: ServerView, choice: ServerSelection | None = None, options: ServerOptions | None = None
    ) -> None:
        """Raises NotFound or what is wrong with the one server when the choice names nothing that may run."""
        choice, options = choice or ServerSelection(), options or ServerOptions()
        catalog = view.catalog()
        meant = select_servers(catalog, choice, has_own=options.add_built_ins is not None)
        self.full = Registry()
        # Our own tools count as a server; one that a person gave their name to is meant before them.
        has_own = meant.has(OWN) and not any(one.id == OWN for one in catalog.listed)
        if options.add_built_ins is not None and has_own:
            options.add_built_ins(self.full)
        self._approvals = options.approvals
        self._ending: set[asyncio.Task[None]] = set()
        self.gateway = Gateway(
            view,
            self.full,
            servers=lambda now: selected_patterns(now, choice),
            is_alone=bool(choice.server),
            has_code_tools=options.add_built_ins is not None and has_own,
        )
        shown = search_registry(self.full) if meant.mode == "search" else self.full
        shown.call_log = options.call_log
        self.server = Server(shown, options.info, instructions=options.instructions, strict=options.is_strict)
        self.server.on_sessions_end(self._sessions_ended)
        self.gateway.on_log.append(self.server.log_to_sessions)

    def start(self) -> None:
        self.gateway.start()

    async def close(self) -> None:
        self.server.close()
        await self.gateway.close()
        self.full.close()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _sessions_ended(self, has_ended: Callable[[str], bool]) -> None:
        if self._approvals is not None:
            self._approvals.end_sessions(has_ended)
        task = asyncio.ensure_future(self.gateway.end_sessions(has_ended))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


class GatewayEndpoints:
    """The fronts of all addresses, made when they are first asked for: `/p/<set>/mcp` and `/s/<server>/mcp`."""

    def __init__(self, view: ServerView, options: ServerOptions, choice: ServerSelection | None = None) -> None:
        self._view = view
        self._options = options
        self.main = GatewayEndpoint(view, choice, options)
        self._others: dict[str, GatewayEndpoint] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def servers(self) -> list[Server]:
        """Those of the addresses that were asked for so far."""
        return [self.main.server, *(one.server for one in self._others.values())]

    def start(self) -> None:
        self.main.start()

    async def close(self) -> None:
        others, self._others = list(self._others.values()), {}
        await asyncio.gather(*(one.close() for one in (self.main, *others)), *self._closing)

    def find(self, path: str) -> Server | str | None:
        """The server at a path, the reason for its absence, or None where the path is not an MCP address."""
        found = _PATH.fullmatch(path)
        if found is None:
            return None
        kind, name, ending = found.groups()
        if ending is None:
            return f"nothing is served at {path}; use {path}/mcp"
        choice = ServerSelection(profile=name) if kind == "p" else ServerSelection(server=name)
        key = f"{kind}/{name}"
        try:
            select_servers(self._view.catalog(), choice, has_own=self._options.add_built_ins is not None)
        except DariError as error:
            self._drop(key)
            return f"{error.message}; {error.hint}" if error.hint else error.message
        front = self._others.get(key)
        if front is None:
            front = self._others[key] = GatewayEndpoint(self._view, choice, self._options)
            front.start()
        return front.server

    def _drop(self, key: str) -> None:
        front = self._others.pop(key, None)
        if front is not None:
            task = asyncio.ensure_future(front.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
