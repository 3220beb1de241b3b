"""Is the daemon there, what is it, is it well; and any method of it by name."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from dari.core.tool import tool
from dari.errors import InvalidInput, NotFound
from dari.proxy.health import Diagnosis, Pong, Version
from dari.proxy.service import ProxyService


class SystemTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._proxy = proxy

    @tool()
    async def ping(self) -> Pong:
        """Ask whether the proxy daemon answers; returns {pong: true}."""
        return await self._proxy.health.ping()

    @tool()
    async def version(self) -> Version:
        """Tell the versions of the engine and of the daemon's protocol."""
        return await self._proxy.health.version()

    @tool()
    async def daemon_doctor(self) -> Diagnosis:
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
            raise InvalidInput(error.message, f"correct the params of {method}; a null is no value here") from error
        return result if isinstance(result, dict) else {"result": result}
