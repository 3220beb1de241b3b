"""Settings of the engine, in force as soon as the call returns, without dropping a connection."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dari.core.tool import tool
from dari.proxy.api.ca import CaStatus, KeyType
from dari.proxy.api.service import ProxyService
from dari.proxy.api.settings import ConfigDump, Ok, SettingsChanged
from dari.proxy.configuration import ClientCertificate
from dari.proxy.throttle import PRESETS, ThrottleSettings
from dari.proxy.tools.arguments import Switch

Latency = Annotated[int, Meta(ge=0, description="milliseconds added before each response")]
Jitter = Annotated[int, Meta(ge=0, description="latency varies by up to so many milliseconds")]
BytesPerSecond = Annotated[int, Meta(ge=0, description="bytes per second; 0 for no limit")]
Hosts = Annotated[list[str], Meta(description="hosts to slow down; a host stands for its sub-domains, too")]
PresetName = Annotated[str, Meta(description=f"off, {', '.join(link.name for link in PRESETS)}")]


_PROXY_URL = "empty for none; only a person may name one"


class SettingsTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._settings = proxy.settings

    @tool()
    async def engine_config_get(self) -> ConfigDump:
        """Return every setting of the engine: address, inspection, throttle, allowlist, transparent, CA, upstream."""
        return await self._settings.dump()

    @tool(scope="control")
    async def engine_set_listen_addr(
        self, listen_addr: Annotated[str, Meta(description="IP:port, such as 127.0.0.1:8888")]
    ) -> Ok:
        """Set where the proxy listens; a running one moves there. Returns {ok}."""
        return await self._settings.set_listen_addr(listen_addr)

    @tool(scope="control")
    async def engine_set_inspect_enabled(
        self, enabled: Annotated[bool, Meta(description="true keeps bodies, false only heads")]
    ) -> Ok:
        """Keep bodies of requests and responses, or only their heads; returns {ok}."""
        return await self._settings.set_inspect_enabled(enabled)

    @tool(scope="control")
    async def engine_set_throttle(
        self,
        enabled: Switch,
        latency_ms: Latency,
        downstream_bps: BytesPerSecond,
        upstream_bps: BytesPerSecond,
        only_selected_hosts: Annotated[bool, Meta(description="false slows every host down")],
        selected_hosts: Hosts,
    ) -> Ok:
        """Replace the throttle: latency per response and bytes per second each way; returns {ok}."""
        return await self._settings.set_throttle(
            enabled, latency_ms, downstream_bps, upstream_bps, only_selected_hosts, selected_hosts
        )

    @tool(scope="control")
    async def engine_set_client_allowlist(
        self,
        enabled: Annotated[bool, Meta(description="false admits everybody who reaches the port")],
        ips: Annotated[list[str], Meta(description='IP addresses of other devices, such as ["192.168.1.20"]')],
    ) -> Ok:
        """Let only this machine and the listed addresses use the proxy, or everybody; returns {ok}."""
        return await self._settings.set_client_allowlist(enabled, ips)

    @tool(scope="control")
    async def engine_set_transparent(
        self, enabled: Switch, listen_port: Annotated[int, Meta(ge=1, le=65535, description="port, such as 8889")]
    ) -> Ok:
        """Open or close a second listener for connections that the firewall redirects; returns {ok}."""
        return await self._settings.set_transparent(enabled, listen_port)

    @tool(scope="control")
    async def engine_load_ca(
        self,
        cert_path: Annotated[str, Meta(description="absolute path of the PEM certificate")],
        key_path: Annotated[str, Meta(description="absolute path of its PEM key")],
    ) -> SettingsChanged:
        """Sign with this CA from now on; returns {ok} and warnings. crab_ca_generate makes one instead."""
        return await self._settings.load_ca(cert_path, key_path)

    @tool(scope="control")
    async def engine_set_throttle_preset(
        self, preset: PresetName, selected_hosts: Hosts | None = None, jitter_ms: Jitter = 0
    ) -> ThrottleSettings:
        """Imitate a slow link by name, for all hosts or some; returns the throttle in force."""
        return await self._settings.set_throttle_preset(preset, selected_hosts, jitter_ms)

    @tool(scope="control")
    async def engine_set_upstream(
        self,
        proxy: Annotated[str, Meta(description=_PROXY_URL)] | None = None,
        ca_file: Annotated[str, Meta(description="PEM file of roots to trust; empty for the system's")] | None = None,
        insecure_hosts: Annotated[list[str], Meta(description="hosts whose certificate is not checked")] | None = None,
        client_certificates: Annotated[
            list[ClientCertificate], Meta(description="PEM certificate and key to show to a host")
        ]
        | None = None,
        bypass: Annotated[list[str], Meta(description="hosts reached without that proxy, as in NO_PROXY")]
        | None = None,
    ) -> Ok:
        """Set how origins are reached and trusted; what is left out stays. Returns {ok}."""
        return await self._settings.set_upstream(proxy, ca_file, insecure_hosts, client_certificates, bypass)

    @tool(scope="control")
    async def engine_set_policy(
        self,
        blocks_private_targets: Annotated[bool, Meta(description="refuse loopback and private addresses")]
        | None = None,
        passes_through_pinned: Annotated[bool, Meta(description="tunnel hosts whose clients refused our certificate")]
        | None = None,
    ) -> Ok:
        """Set which targets are refused and which are left encrypted; what is left out stays. Returns {ok}."""
        return await self._settings.set_policy(blocks_private_targets, passes_through_pinned)


class AuthorityTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._ca = proxy.ca

    @tool(scope="control", destructive=True, idempotent=False)
    async def ca_generate(
        self,
        name: Annotated[str, Meta(description="name that people see in a certificate store")] = "Crab Proxy CA",
        days: Annotated[int, Meta(ge=1, le=36500, description="days until it ends")] = 3650,
        key_type: Annotated[KeyType, Meta(description="rsa2048 for clients that know no elliptic curves")] = "ec",
        replace: Annotated[bool, Meta(description="make a new one although clients trust the old")] = False,
    ) -> CaStatus:
        """Make a CA and decrypt with it from now on; returns its path, fingerprint and how clients trust it."""
        return await self._ca.generate(name, days, key_type, replace)

    @tool()
    async def ca_status(self) -> CaStatus:
        """Tell whether a CA is loaded, its path, fingerprint and end, and how clients come to trust it."""
        return await self._ca.status()
