"""`dari_proxy_*`: what a person does with the proxy in a page and an agent has no need or no leave for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from dari.core.scopes import ADMIN
from dari.core.tool import tool
from dari.proxy.api.ca import CaExport
from dari.proxy.api.rules import RuleView
from dari.proxy.api.traffic import HarImport, HarPart
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.throttle import PRESETS

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends
    from dari.proxy.api.service import ProxyService


class ThrottlePreset(Struct, frozen=True):
    """Rates are bytes per second."""

    name: str
    latency_ms: int
    downstream_bps: int
    upstream_bps: int


class ThrottlePresets(Struct, frozen=True):
    presets: list[ThrottlePreset]


class ProxyPageTools:
    prefix = "dari_proxy"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._backends = backends

    @property
    def _proxy(self) -> ProxyService:
        return self._backends.proxy(True)

    @tool(scope=ADMIN, read_only=True)
    async def throttle_presets(self) -> ThrottlePresets:
        """Return the links that crab_engine_set_throttle_preset knows, with their latency and rates."""
        return ThrottlePresets([ThrottlePreset(*each) for each in PRESETS])

    @tool(scope=ADMIN, read_only=True)
    async def har_part(
        self,
        wanted: Annotated[
            TrafficFilter | None,
            Meta(description="conditions as crab_traffic_search has them; default all requests"),
        ] = None,
        before_id: Annotated[int, Meta(ge=1, description="next_before_id of the part before")] | None = None,
        include_bodies: Annotated[bool, Meta(description="false leaves bodies out")] = True,
    ) -> HarPart:
        """Return a part of the recorded requests as HAR entries, newest first, secrets hidden."""
        return await self._proxy.traffic.har_part(wanted or TrafficFilter(), before_id, include_bodies)

    @tool(scope=ADMIN, idempotent=False)
    async def import_har(
        self, text: Annotated[str, Meta(description="JSON of a HAR file, or of a part of its entries")]
    ) -> HarImport:
        """Add the requests of a HAR to the recorded traffic; returns how many and their ids."""
        return await self._proxy.traffic.import_har_text(text)

    @tool(scope=ADMIN, read_only=True)
    async def ca_certificate(self) -> CaExport:
        """Return the CA's certificate as PEM, without its key, for a client that is to trust it."""
        return await self._proxy.ca.export()

    @tool(scope=ADMIN)
    async def restore_rule(self, id: Annotated[str, Meta(description="id that the removed rule had")]) -> RuleView:
        """Bring back one of the last removed rules with its place and hits; returns it with its warnings."""
        return await self._proxy.rules.restore(id)

    @tool(scope=ADMIN)
    async def keep_credentials(
        self,
        id: Annotated[str, Meta(description="id of a map_remote rule")],
        keeps: Annotated[bool, Meta(description="true sends cookies and tokens to the other origin, too")],
    ) -> RuleView:
        """Let a map_remote rule send credentials to another origin, or stop it; returns the rule."""
        return await self._proxy.rules.keep_credentials(id, keeps)
