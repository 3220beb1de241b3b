"""Traffic as HAR 1.2 files, out and in."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dari.core.tool import tool
from dari.proxy.service import ProxyService
from dari.proxy.tools.arguments import HasError, Host, Methods, SinceMs, Statuses, UrlText, wanted
from dari.proxy.traffic_desk import Exported, ImportedHar


class HarTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._traffic = proxy.traffic

    @tool(scope="control", idempotent=False)
    async def traffic_export_har(
        self,
        path: Annotated[str, Meta(description="absolute path; default a new file of the daemon's own")] | None = None,
        host: Host | None = None,
        method: Methods | None = None,
        status: Statuses | None = None,
        url_contains: UrlText | None = None,
        since_unix_ms: SinceMs | None = None,
        has_error: HasError | None = None,
        limit: Annotated[int, Meta(ge=1, le=100_000, description="requests at most, newest first")] = 10_000,
        include_bodies: Annotated[bool, Meta(description="false leaves bodies out")] = True,
        overwrite: Annotated[bool, Meta(description="replace a file that exists")] = False,
    ) -> Exported:
        """Write the newest requests that fulfil every condition to a HAR file, secrets hidden; returns its path."""
        conditions = wanted(
            host=host,
            method=method,
            status=status,
            url_contains=url_contains,
            since_unix_ms=since_unix_ms,
            has_error=has_error,
        )
        return await self._traffic.export_har(path, conditions, limit, include_bodies, overwrite)

    @tool(scope="control", idempotent=False)
    async def traffic_import_har(
        self, path: Annotated[str, Meta(description="absolute path, such as /home/me/login.har")]
    ) -> ImportedHar:
        """Add the requests of a HAR file to the recorded traffic; returns how many and their ids."""
        return await self._traffic.import_har(path)
