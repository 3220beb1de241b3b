"""Settings of the engine, changed while it runs: `engine.set_*`, and the whole of it as `engine.config_dump`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from dari.daemon.caller_scopes import current_caller, require_person, require_scope
from dari.daemon.stub import expose
from dari.errors import Failed, InvalidInput
from dari.proxy.access import parse_ip
from dari.proxy.configuration import (
    ClientCertificate,
    ClientRule,
    Configuration,
    Transparent,
    UpstreamSettings,
    read_address,
)
from dari.proxy.flow import SAMPLE_BYTES
from dari.proxy.local_files import check_kind
from dari.proxy.throttle import ThrottleSettings

if TYPE_CHECKING:
    from dari.proxy.runtime import ProxyRuntime


class Ok(Struct, frozen=True):
    ok: bool = True


class SettingsChanged(Struct, frozen=True, omit_defaults=True):
    """`warnings`: what its author should know about the change."""

    ok: bool
    warnings: tuple[str, ...] = ()


class InspectDump(Struct, frozen=True):
    enabled: bool
    sample_bytes: int
    spool: bool
    spool_dir: str
    spool_max_bytes: int


class CaDump(Struct, frozen=True):
    loaded: bool
    cert_path: str | None
    key_path: str | None


class UpstreamDump(Struct, frozen=True):
    """Like the settings, without the password of the proxy."""

    proxy: str | None
    ca_file: str | None
    insecure_hosts: tuple[str, ...]
    client_certificates: tuple[ClientCertificate, ...]
    bypass: tuple[str, ...] = ()


class ConfigDump(Struct, frozen=True):
    running: bool
    listen_addr: str
    inspect: InspectDump
    throttle: ThrottleSettings
    client_allowlist: ClientRule
    transparent: Transparent
    ca: CaDump
    upstream: UpstreamDump
    blocks_private_targets: bool
    passes_through_pinned: bool


class SettingsApi:
    def __init__(self, runtime: ProxyRuntime) -> None:
        self._runtime = runtime

    @expose("engine.config_dump", "read")
    async def dump(self) -> ConfigDump:
        runtime = self._runtime
        now = runtime.configuration
        bodies = runtime.recording.bodies
        upstream = now.upstream
        return ConfigDump(
            running=runtime.engine.is_running,
            listen_addr=now.listen_addr,
            inspect=InspectDump(
                now.inspect,
                SAMPLE_BYTES,
                now.inspect and bodies is not None,
                str(bodies.directory) if bodies is not None else "",
                bodies.body_bytes if bodies is not None else 0,
            ),
            throttle=now.throttle,
            client_allowlist=now.client_allowlist,
            transparent=now.transparent,
            ca=CaDump(runtime.authority is not None, now.ca_cert_path, now.ca_key_path),
            upstream=UpstreamDump(
                upstream.proxy and runtime.recording.redactor.url(upstream.proxy),
                upstream.ca_file,
                upstream.insecure_hosts,
                upstream.client_certificates,
                upstream.bypass,
            ),
            blocks_private_targets=now.refuses_private_targets,
            passes_through_pinned=now.passes_through_pinned,
        )

    @expose("engine.set_listen_addr", "control")
    async def set_listen_addr(self, listen_addr: str) -> Ok:
        """`IP:port`. While it runs the new address is bound first, then the old one let go; connections live on."""
        read_address(listen_addr)
        await self._configure_listeners(
            f"`dari proxy set listen {listen_addr.strip()}`", listen_addr=listen_addr.strip()
        )
        return Ok()

    @expose("engine.set_inspect_enabled", "control")
    async def set_inspect_enabled(self, enabled: bool) -> Ok:
        await self._runtime.configure(inspect=enabled)
        return Ok()

    @expose("engine.set_transparent", "control")
    async def set_transparent(self, enabled: bool = False, listen_port: int = 8889) -> Ok:
        if not 1 <= listen_port <= 65535:
            raise InvalidInput(f"listen_port must be between 1 and 65535, got {listen_port}", "choose another port")
        wanted = Transparent(enabled, listen_port)
        await self._configure_listeners(f"`dari proxy set transparent on --port {listen_port}`", transparent=wanted)
        return Ok()

    @expose("engine.set_client_allowlist", "control")
    async def set_client_allowlist(self, enabled: bool = False, ips: list[str] | None = None) -> Ok:
        """Loopback always passes; other peers must be listed once it is enabled."""
        parsed = tuple(str(parse_ip(ip)) for ip in ips or ())
        now = self._runtime.configuration
        admits_more = not enabled or bool(now.client_allowlist.enabled and set(parsed) - set(now.client_allowlist.ips))
        if now.is_open_to_network and admits_more and now.client_allowlist != ClientRule(enabled, parsed):
            _require_person(f"admitting other machines to {now.listen_addr}", "`dari proxy set allowlist`")
        await self._runtime.configure(client_allowlist=ClientRule(enabled, parsed))
        return Ok()

    @expose("engine.set_throttle", "control")
    async def set_throttle(
        self,
        enabled: bool = False,
        latency_ms: int = 0,
        downstream_bps: int = 0,
        upstream_bps: int = 0,
        only_selected_hosts: bool = False,
        selected_hosts: list[str] | None = None,
        jitter_ms: int = 0,
    ) -> Ok:
        """Replaces the whole throttle. Rates are bytes per second, 0 for no limit."""
        wanted = ThrottleSettings(
            enabled,
            latency_ms,
            downstream_bps,
            upstream_bps,
            only_selected_hosts,
            tuple(selected_hosts or ()),
            jitter_ms,
        )
        wanted.check()
        await self._runtime.configure(throttle=wanted)
        return Ok()

    @expose("engine.set_throttle_preset", "control")
    async def set_throttle_preset(
        self, preset: str, selected_hosts: list[str] | None = None, jitter_ms: int = 0
    ) -> ThrottleSettings:
        """A link by its name, such as 3G or ADSL-2M; `off` lifts the throttle."""
        wanted = ThrottleSettings()
        if preset.strip().lower() not in ("off", "none"):
            wanted = ThrottleSettings.of_preset(preset, selected_hosts=tuple(selected_hosts or ()), jitter_ms=jitter_ms)
            wanted.check()
        await self._runtime.configure(throttle=wanted)
        return wanted

    @expose("engine.set_upstream", "control")
    async def set_upstream(
        self,
        proxy: str | None = None,
        ca_file: str | None = None,
        insecure_hosts: list[str] | None = None,
        client_certificates: list[ClientCertificate] | None = None,
        bypass: list[str] | None = None,
    ) -> Ok:
        """How origins are reached. What is left out stays; an empty text or list takes a setting back."""
        now = self._runtime.configuration.upstream
        if proxy and proxy != now.proxy:
            # It sees every secret of plain HTTP, and with an insecure host those of HTTPS.
            command = "`dari proxy set upstream --proxy URL`"
            require_scope("admin", f"which proxy all requests go to is decided by a person; ask them to run {command}")
        for path in (ca_file, *(file for one in client_certificates or () for file in (one.cert_path, one.key_path))):
            if path:
                _check_pem_path(path, "give the absolute path of a PEM file")
        _check_certificates(ca_file, client_certificates or ())
        wanted = UpstreamSettings(
            proxy=now.proxy if proxy is None else proxy or None,
            ca_file=now.ca_file if ca_file is None else ca_file or None,
            insecure_hosts=now.insecure_hosts if insecure_hosts is None else tuple(insecure_hosts),
            client_certificates=now.client_certificates if client_certificates is None else tuple(client_certificates),
            bypass=now.bypass if bypass is None else tuple(bypass),
        )
        await self._runtime.configure(upstream=wanted)
        return Ok()

    @expose("engine.set_policy", "control")
    async def set_policy(
        self, blocks_private_targets: bool | None = None, passes_through_pinned: bool | None = None
    ) -> Ok:
        """Refuse private addresses as targets; tunnel a host whose clients refused our certificate."""
        changes: dict[str, object] = {}
        if passes_through_pinned is not None:
            changes["passes_through_pinned"] = passes_through_pinned
        if blocks_private_targets is not None:
            now = self._runtime.configuration
            if now.is_open_to_network and not blocks_private_targets and now.refuses_private_targets:
                what = f"private targets for the other machines that reach {now.listen_addr}"
                _require_person(what, "`dari proxy set policy --block-private off`")
            changes["blocks_private_targets"] = blocks_private_targets
            changes["permits_private_targets"] = not blocks_private_targets and now.is_open_to_network
        await self._runtime.configure(**changes)
        return Ok()

    async def _configure_listeners(self, command: str, **changes: object) -> None:
        """A listener that other machines reach is for a person to open, by whatever setting it comes about."""
        now = self._runtime.configuration
        wanted = msgspec.structs.replace(now, **changes)
        if wanted.is_open_to_network and _listeners(wanted) - _listeners(now):
            _require_person(f"listening on {wanted.listen_addr}, which other machines reach,", command)
        if not wanted.is_open_to_network or not now.is_open_to_network:
            changes["permits_private_targets"] = False
        await self._runtime.configure(**changes)

    @expose("engine.load_ca", "control")
    async def load_ca(self, cert_path: str, key_path: str) -> SettingsChanged:
        """Sign with this CA from now on. Both files are read at once, so a wrong one fails here."""
        for path in (cert_path, key_path):
            _check_pem_path(path, "give the absolute paths of the PEM certificate and its key")
        from dari.proxy.ca import CertificateAuthority

        authority = await asyncio.to_thread(CertificateAuthority.load, Path(cert_path), Path(key_path))
        await self._runtime.configure(ca_cert_path=os.path.abspath(cert_path), ca_key_path=os.path.abspath(key_path))
        self._runtime.trust(authority)
        return SettingsChanged(True, authority.warnings())


def _listeners(configuration: Configuration) -> set[tuple[str, str, int]]:
    """What it binds: kind, host and port."""
    host, port = read_address(configuration.listen_addr)
    bound = {("proxy", host, port)}
    if configuration.transparent.enabled:
        bound.add(("transparent", host, configuration.transparent.listen_port))
    return bound


def _require_person(what: str, command: str) -> None:
    """Refuse it to agents. Our own process, when it starts with these settings, has no caller to judge."""
    require_scope("admin", f"{what} is decided by a person; ask them to run {command}")
    if current_caller() is not None:
        require_person(what)


def _check_pem_path(path: str, hint: str) -> None:
    if "\0" in path or not os.path.exists(path):
        raise Failed(f"file not found: {path}", hint)
    check_kind(path, "the PEM file")


def _check_certificates(ca_file: str | None, pairs: Iterable[ClientCertificate]) -> None:
    """Read them once now: a wrong file would otherwise show as a 502 for every request."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if ca_file:
            context.load_verify_locations(ca_file)
    except (ssl.SSLError, OSError) as error:
        raise InvalidInput(
            f"{ca_file} holds no PEM certificates: {error}", "give the roots of your CA as PEM"
        ) from None
    for pair in pairs:
        try:
            # A password would be asked for on the terminal of the daemon.
            context.load_cert_chain(pair.cert_path, pair.key_path, password="")
        except (ssl.SSLError, OSError) as error:
            raise InvalidInput(
                f"{pair.cert_path} and {pair.key_path} must be a certificate with its key: {error}",
                "give both as PEM, the key without a password",
            ) from None
