"""The console, put together: its own tools, its topics, and the server that a page talks to."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dari.console.app import SUBPROTOCOL, AgentRefusal, ConsoleApp, Receive, Send
from dari.console.channel import ConsoleChannel
from dari.console.live import Follow, Topics
from dari.core.scopes import ALL_SCOPES, Grant
from dari.daemon.caller_scopes import CallerIdentity, serve_caller
from dari.log import format_event

if TYPE_CHECKING:
    from dari.bridge.gateway.endpoints import GatewayEndpoint
    from dari.console.backends import ConsoleBackends
    from dari.console.login import ConsoleSession
    from dari.core.registry import Registry
    from dari.core.tool import Toolkit
    from dari.transport.guard import HttpGuard
    from dari.transport.health import HealthApp

GRANT = Grant("app", ALL_SCOPES)
CLOSE_S = 1.0
_log = logging.getLogger("dari.console")


def console_toolkits(backends: ConsoleBackends, registry: Registry) -> Iterable[Toolkit]:
    """What a person does in the console and an agent may not: every tool has the scope `admin`. `registry` is what the
    pages are served."""
    from dari.console.tools.activity import ActivityTools
    from dari.console.tools.approvals import ApprovalTools
    from dari.console.tools.audit import AuditTools
    from dari.console.tools.connect import ConnectTools
    from dari.console.tools.crab_endpoint import CrabEndpointTools
    from dari.console.tools.doctor import DoctorTools
    from dari.console.tools.knowledge import KnowledgeFolderTools
    from dari.console.tools.policies import PolicyTools
    from dari.console.tools.proxy import ProxyPageTools
    from dari.console.tools.server_import import server_toolkits
    from dari.console.tools.terminals import ConsoleTerminalTools
    from dari.console.tools.tokens import TokenTools
    from dari.console.tools.tool_origins import ToolOriginTools
    from dari.console.tools.traffic import TrafficPageTools

    yield DoctorTools(backends)
    yield ApprovalTools(backends)
    yield AuditTools(backends)
    yield ActivityTools(backends)
    yield KnowledgeFolderTools(backends)
    yield TokenTools(backends)
    yield ConnectTools(backends)
    yield CrabEndpointTools(backends)
    yield PolicyTools(backends)
    yield ProxyPageTools(backends)
    yield from server_toolkits(backends)
    yield ConsoleTerminalTools(backends)
    yield TrafficPageTools(backends)
    yield ToolOriginTools(backends.view, registry)


def console_topics() -> dict[str, Follow]:
    from dari.console.topics.activity import follow_activity
    from dari.console.topics.approvals import follow_approvals
    from dari.console.topics.audit import follow_audit
    from dari.console.topics.breakpoints import follow_breakpoints
    from dari.console.topics.clients import follow_clients
    from dari.console.topics.crab_endpoint import follow_crab_endpoint
    from dari.console.topics.hub import follow_hub
    from dari.console.topics.panes import follow_pane, follow_panes
    from dari.console.topics.proxy import follow_proxy
    from dari.console.topics.rules import follow_rules
    from dari.console.topics.servers import follow_server_log, follow_servers
    from dari.console.topics.traffic import follow_traffic

    return {
        "hub": follow_hub,
        "approvals": follow_approvals,
        "audit": follow_audit,
        "activity": follow_activity,
        "clients": follow_clients,
        "crab-endpoint": follow_crab_endpoint,
        "breakpoints": follow_breakpoints,
        "proxy": follow_proxy,
        "rules": follow_rules,
        "servers": follow_servers,
        "server-log": follow_server_log,
        "pane": follow_pane,
        "panes": follow_panes,
        "traffic": follow_traffic,
    }


class WebConsole:
    """Everything behind the page. The server that pages talk to is made when the first one connects."""

    def __init__(self, backends: ConsoleBackends, make_endpoint: Callable[[], GatewayEndpoint]) -> None:
        self._backends = backends
        self._make_endpoint = make_endpoint
        self._endpoint: GatewayEndpoint | None = None
        self._topics = Topics(backends)
        for name, follow in console_topics().items():
            self._topics.add(name, follow)
        self._pages: dict[asyncio.Task[None], str] = {}
        backends.logins.on_end.append(self._log_out)
        backends.activity.start()

    def app(self, health: HealthApp, guard: HttpGuard) -> ConsoleApp:
        return ConsoleApp(health, guard, self._backends.logins, self._serve, self._record_refusal)

    def login_url(self) -> str:
        """A link that logs one browser in, once."""
        return f"{self._backends.url().removesuffix('/mcp')}/login?key={self._backends.logins.new_key()}"

    async def close(self) -> None:
        pages = list(self._pages)
        for page in pages:
            page.cancel()
        await asyncio.gather(*pages, return_exceptions=True)
        if self._endpoint is not None:
            await self._endpoint.close()
        self._backends.activity.stop()
        await self._backends.children.close()

    def _record_refusal(self, refusal: AgentRefusal) -> None:
        if (audit := self._backends.bridge.audit) is not None:
            audit.refuse("app", pid=refusal.pid, reason=refusal.reason, what=refusal.what)

    async def _serve(self, receive: Receive, send: Send, caller: CallerIdentity, session: ConsoleSession) -> None:
        """One page, from the acceptance of its WebSocket to its end, or to that of the session."""
        page = asyncio.get_running_loop().create_task(self._serve_page(receive, send, caller))
        self._pages[page] = session.id
        try:
            await asyncio.wait({page}, timeout=max(0.0, session.expires_unix - time.time()))
        finally:
            page.cancel()
            await asyncio.gather(page, return_exceptions=True)
            del self._pages[page]

    async def _serve_page(self, receive: Receive, send: Send, caller: CallerIdentity) -> None:
        await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})

        async def send_text(text: str) -> None:
            await send({"type": "websocket.send", "text": text})

        with serve_caller(caller):
            channel = ConsoleChannel(self._open_endpoint().server, GRANT, self._topics, send_text)
            loop = asyncio.get_running_loop()
            ways = {
                loop.create_task(channel.write()),
                loop.create_task(_read(receive, channel)),
                loop.create_task(channel.overrun.wait()),
            }
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in ways:
                    task.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                await channel.close()
                await _close(send)

    def _open_endpoint(self) -> GatewayEndpoint:
        if self._endpoint is None:
            self._endpoint = self._make_endpoint()
            for toolkit in console_toolkits(self._backends, self._endpoint.full):
                self._endpoint.full.add_toolkit(toolkit)
            self._endpoint.start()
        return self._endpoint

    def _log_out(self, session_id: str) -> None:
        for page, of_session in self._pages.items():
            if of_session == session_id:
                page.cancel()


async def _read(receive: Receive, channel: ConsoleChannel) -> None:
    while True:
        event: dict[str, Any] = await receive()
        if event["type"] == "websocket.disconnect":
            return
        text = event.get("text")
        if text is None:
            _log.warning(format_event("console", "binary_message"))
            return
        channel.receive(text.encode())


async def _close(send: Send) -> None:
    try:
        async with asyncio.timeout(CLOSE_S):  # uvicorn waits for a browser that does not read
            await send({"type": "websocket.close", "code": 1001})
    except Exception as error:  # the browser has closed it; uvicorn says so in its own ways
        _log.debug(format_event("console", "closed", f"{type(error).__name__}"))
