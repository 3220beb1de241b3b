"""Starting and stopping the proxy and its recording, and what a program needs to use it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dari.core.tool import tool
from dari.proxy.client_environment import Shell, Snippet
from dari.proxy.control import ProxyInfo, State
from dari.proxy.service import ProxyService


class ControlTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._control = proxy.control

    @tool()
    async def proxy_status(self) -> State:
        """Tell whether the proxy listens; returns {status: running|stopped}."""
        return await self._control.status()

    @tool(scope="control", idempotent=False)
    async def proxy_start(self) -> State:
        """Start the proxy on its listen address; returns {status: running}, fails when it runs already."""
        return await self._control.start()

    @tool(scope="control", destructive=True)
    async def proxy_stop(self) -> State:
        """Stop the proxy and end its connections; returns {status: stopped}, also when it was stopped."""
        return await self._control.stop()

    @tool()
    async def proxy_info(self) -> ProxyInfo:
        """Tell the proxy's state at a glance: address, recording, connections, rules, CA, hosts that refused it."""
        return await self._control.info()

    @tool(scope="control")
    async def capture_start(self) -> State:
        """Record requests from now on; returns {status: running}."""
        return await self._control.capture_start()

    @tool(scope="control")
    async def capture_stop(self) -> State:
        """Let requests pass without recording them; returns {status: stopped}."""
        return await self._control.capture_stop()

    @tool()
    async def capture_status(self) -> State:
        """Tell whether requests are recorded; returns {status: running|stopped}."""
        return await self._control.capture_status()

    @tool()
    async def env_snippet(
        self, shell: Annotated[Shell, Meta(description="whose syntax the script has")] = "sh"
    ) -> Snippet:
        """Return the variables and shell lines that make a program use the running proxy and trust its CA."""
        return await self._control.environment(shell)
