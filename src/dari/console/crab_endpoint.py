"""The toggle of design 000 (WS4): `crab-mcp --transport http` as a process of the hub, started and stopped by a person.

It ends with the hub, also when the hub is killed: it is one of its children. crabd is started by the hub and not by it,
since a daemon must not end with one of its clients.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from dari.daemon.launch import python_command
from dari.errors import Conflict, DariError, TimedOut, Unavailable
from dari.process.child import Child, ChildSpec, StopTimeouts
from dari.process.children import Children
from dari.proxy.api.service import ProxyService
from dari.proxy.daemon import CrabPaths
from dari.transport.bind import DEFAULT_PORT, url_port
from dari.transport.health import read_token

START_TIMEOUT_S = 20.0
PORTS_LOOKED_AT = 50
PORTS_TRIED = 5
_POLL_S = 0.02
_ANNOUNCED = re.compile(r"^crab-mcp listening on (\S+)$", re.M)
_COMPLAINT = re.compile(r"^(?:\S+ ERROR|error:) (.+)(?:\nhint: (.+))?$", re.M)
_INHERITED = (
    *("DARI_HOME", "PYTHONPATH", "VIRTUAL_ENV"),
    *("XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"),
)
_NAME = "crab-mcp"


class CrabEndpointState(Struct, frozen=True, kw_only=True):
    """What the person sees beside the toggle."""

    state: Literal["running", "stopped", "error"]
    port: int
    """Where it listens, or would: that of the last time, else the next free one after the hub's."""
    endpoint: str = ""
    token_path: str = ""
    pid: int = 0
    error: str = ""
    """Why it does not run, in its own last words."""
    hint: str = ""


class CrabEndpoint:
    """At most one. `changed` is set at every change, for who follows it."""

    def __init__(self, children: Children, proxy: Callable[[bool], ProxyService], hub_url: Callable[[], str]) -> None:
        self._children = children
        self._proxy = proxy
        self._hub_url = hub_url
        self._place = CrabPaths()
        self._child: Child | None = None
        self._endpoint = ""
        self._port = 0
        self._suggested = 0
        """What was shown for a port that nobody has chosen or used: another one does as well."""
        self._error: DariError | None = None
        self._turn = asyncio.Lock()
        self.changed = asyncio.Event()

    def state(self) -> CrabEndpointState:
        is_running = self._child is not None and bool(self._endpoint)
        if not self._port:
            self._suggested = self._free_port()
        return CrabEndpointState(
            state="running" if is_running else "stopped" if self._error is None else "error",
            port=self._port or self._suggested,
            endpoint=self._endpoint,
            token_path=str(self._place.token("mcp")),
            pid=self._child.pid if self._child is not None else 0,
            error="" if self._error is None else self._error.message,
            hint="" if self._error is None else self._error.hint,
        )

    def token(self) -> str:
        """The token that its callers show; empty before crabd has made one."""
        return read_token(self._place.token("mcp")).decode()

    async def start(self, port: int = 0) -> CrabEndpointState:
        """Serve on this port; 0: the next free one after the hub's."""
        async with self._turn:
            if self._child is not None:
                if port in (0, self._port):
                    return self.state()
                raise Conflict(f"it listens on port {self._port}", f"stop it first, then start it on port {port}")
            is_chosen = port not in (0, self._suggested)
            self._port, self._error, self._suggested = port, None, 0
            try:
                await (self._start(port) if is_chosen else self._start_anywhere())
            except DariError as error:
                self._error = error
                raise
            finally:
                self._tell()
            return self.state()

    async def stop(self) -> CrabEndpointState:
        async with self._turn:
            child, self._child, self._endpoint, self._error = self._child, None, "", None
            if child is not None:
                await child.stop()
            self._tell()
            return self.state()

    async def _start(self, port: int) -> None:
        await self._proxy(True).health.ping()
        words = ("--transport", "http", "--http-port", str(port), "--ensure-daemon", "false", *self._place.arguments())
        spec = ChildSpec(
            name=_NAME,
            command=tuple(python_command("dari.cli.crab_mcp", *words)),
            inherit_env=_INHERITED,
            # It reads nothing from stdin, so the end of that says nothing to it.
            patience=StopTimeouts(after_eof_s=0.0, after_term_s=6.0),
        )
        child = await self._children.start(spec)
        try:
            self._endpoint = await self._announced(child)
        except BaseException:
            await child.stop()
            raise
        self._child = child
        child.on_exit(lambda: self._ended(child))
        if child.has_ended:
            self._ended(child)

    async def _start_anywhere(self) -> None:
        """On the next free port. Another process may take it first: ours needs half a second until it listens."""
        first = 0
        for is_last in (*[False] * (PORTS_TRIED - 1), True):
            self._port = self._free_port(first)
            try:
                return await self._start(self._port)
            except Unavailable:
                if is_last or _is_free(self._port):
                    raise
            first = self._port + 1

    async def _announced(self, child: Child) -> str:
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                while not child.has_ended:
                    if found := _ANNOUNCED.search(child.tail.text()):
                        return found[1]
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise TimedOut(f"{_NAME} did not listen within {START_TIMEOUT_S:g} s", child.tail.text()[-400:]) from None
        await child.last_words()
        raise _complaint(child)

    def _ended(self, child: Child) -> None:
        """It ended by itself: what it said last is the error."""
        if self._child is child:
            self._child, self._endpoint, self._error = None, "", _complaint(child)
            self._tell()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def _free_port(self, first: int = 0) -> int:
        url = self._hub_url()
        first = first or (url_port(url) if url else DEFAULT_PORT) + 1
        return next((port for port in range(first, first + PORTS_LOOKED_AT) if _is_free(port)), first)


def _complaint(child: Child) -> DariError:
    said = child.tail.text()
    if found := _COMPLAINT.findall(said):
        message, hint = found[-1]
    else:
        message, hint = said.splitlines()[-1] if said else "it said nothing", ""
    return Unavailable(
        f"{_NAME} ended ({child.status}): {message}", hint or "start it again; `dari doctor` checks more"
    )


def _is_free(port: int) -> bool:
    if port > 65535:
        return False
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
