"""What the console's tools and topics work on: the hub's own objects, and the daemons as principal `app`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dari.bridge.gateway.endpoints import GatewayEndpoints
    from dari.bridge.service import Bridge
    from dari.bridge.view import ServerView
    from dari.console.client_activity import ClientActivity
    from dari.console.crab_endpoint import CrabEndpoint
    from dari.console.login import Logins
    from dari.core.approval_service import ApprovalService
    from dari.knowledge.api import KnowledgeApi
    from dari.process.children import Children
    from dari.proxy.api.service import ProxyService
    from dari.settings import ServeSettings
    from dari.terminal.service import TerminalService
    from dari.transport.token_service import TokenService


@dataclass(slots=True, kw_only=True)
class ConsoleBackends:
    settings: ServeSettings
    bridge: Bridge
    view: ServerView
    """The servers as `dari up` sees them, from its folder and environment."""
    endpoints: GatewayEndpoints
    """What agents are served; their sessions are at `endpoints.main.server.sessions`."""
    logins: Logins
    url: Callable[[], str]
    """The address of `/mcp`; empty before the listener is open."""
    proxy: Callable[[bool], ProxyService]
    """crabd's api; True: the first call starts the daemon, False: it fails with Unavailable where none runs."""
    terminal: Callable[[bool], TerminalService]
    knowledge: Callable[[bool], KnowledgeApi]
    children: Children
    """Programs that the console starts; they end with the hub."""
    tokens: TokenService
    activity: ClientActivity
    crab_endpoint: CrabEndpoint

    @property
    def approvals(self) -> ApprovalService:
        return self.bridge.approval_service
