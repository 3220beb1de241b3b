"""Starting and stopping the proxy and its recording, and what a program needs to use it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from dari.core.tool import tool
from dari.errors import InvalidInput, NotFound
from dari.proxy.api.control import ProxyInfo, ProxyState
from dari.proxy.api.health import ProxyDiagnosis, ProxyPong, ProxyVersion
from dari.proxy.api.service import ProxyService
from dari.proxy.client_environment import Shell, Snippet


class ControlTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._control = proxy.control

    @tool()
    async def proxy_status(self) -> ProxyState:
        """Tell whether the proxy listens; returns {status: running|stopped}."""
        return await self._control.status()

    @tool(scope="control", idempotent=False)
    async def proxy_start(self) -> ProxyState:
        """Start the proxy on its listen address; returns {status: running}, fails when it runs already."""
        return await self._control.start()

    @tool(scope="control", destructive=True)
    async def proxy_stop(self) -> ProxyState:
        """Stop the proxy and end its connections; returns {status: stopped}, also when it was stopped."""
        return await self._control.stop()

    @tool()
    async def proxy_info(self) -> ProxyInfo:
        """Tell the proxy's state at a glance: address, recording, connections, rules, CA, hosts that refused it."""
        return await self._control.info()

    @tool(scope="control")
    async def capture_start(self) -> ProxyState:
        """Record requests from now on; returns {status: running}."""
        return await self._control.capture_start()

    @tool(scope="control")
    async def capture_stop(self) -> ProxyState:
        """Let requests pass without recording them; returns {status: stopped}."""
        return await self._control.capture_stop()

    @tool()
    async def capture_status(self) -> ProxyState:
        """Tell whether requests are recorded; returns {status: running|stopped}."""
        return await self._control.capture_status()

    @tool()
    async def env_snippet(
        self, shell: Annotated[Shell, Meta(description="whose syntax the script has")] = "sh"
    ) -> Snippet:
        """Return the variables and shell lines that make a program use the running proxy and trust its CA."""
        return await self._control.environment(shell)


class DaemonTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._proxy = proxy

    @tool()
    async def ping(self) -> ProxyPong:
        """Ask whether the proxy daemon answers; returns {pong: true}."""
        return await self._proxy.health.ping()

    @tool()
    async def version(self) -> ProxyVersion:
        """Tell the versions of the engine and of the daemon's protocol."""
        return await self._proxy.health.version()

    @tool()
    async def daemon_doctor(self) -> ProxyDiagnosis:
        """Check socket, database, disk, CA, listener and clients; returns one finding per check with a hint."""
        return await self._proxy.health.doctor()

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def rpc(
        self,
        method: Annotated[str, Meta(description="such as engine.rules_dump; the daemon checks the scope")],
        params: Annotated[
            dict[str, Any],
            Meta(description='arguments by name, such as {"kind": "allow"}', extra_json_schema={"default": {}}),
        ]
        | None = None,
    ) -> dict[str, Any]:
        """Call any method of the daemon by name; returns its result as it is."""
        try:
            result = await self._proxy.rpc(method, params or {})
        except NotFound as error:
            if error.message != f"unknown method: {method}":
                raise
            hint = "methods are named like proxy.status, engine.rules_dump, rules.list, traffic.search, ca.export"
            raise NotFound(error.message, hint) from error
        except InvalidInput as error:
            if error.hint:
                raise
            raise InvalidInput(error.message, f"correct the params of {method}; null is not allowed here") from error
        return result if isinstance(result, dict) else {"result": result}
