"""What the proxy is set to: one immutable value, kept on disk, changed as a whole."""

from __future__ import annotations

import ipaddress

from msgspec import Struct

from dari.errors import InvalidInput
from dari.proxy.engine.config import EngineConfig
from dari.proxy.flow import SAMPLE_BYTES
from dari.proxy.throttle import ThrottleSettings

DEFAULT_LISTEN = "127.0.0.1:8888"


class Transparent(Struct, frozen=True):
    enabled: bool = False
    listen_port: int = 8889


class ClientRule(Struct, frozen=True):
    """The client allowlist."""

    enabled: bool = False
    ips: tuple[str, ...] = ()


class ClientCertificate(Struct, frozen=True):
    """Shown to the origin of this name when it asks for one; both files PEM."""

    host: str
    cert_path: str
    key_path: str


class UpstreamSettings(Struct, frozen=True):
    """How origins are reached and trusted."""

    proxy: str | None = None
    """`http://`, `https://` or `socks5://[user:password@]host:port`; origins are reached through it."""
    bypass: tuple[str, ...] = ()
    """Hosts that are reached without it, written as in `NO_PROXY`."""
    ca_file: str | None = None
    insecure_hosts: tuple[str, ...] = ()
    client_certificates: tuple[ClientCertificate, ...] = ()


class Configuration(Struct, frozen=True, kw_only=True):
    """Survives a restart. Unknown members of a newer version are ignored when read."""

    listen_addr: str = DEFAULT_LISTEN
    inspect: bool = True
    capture: bool = True
    throttle: ThrottleSettings = ThrottleSettings()
    client_allowlist: ClientRule = ClientRule()
    transparent: Transparent = Transparent()
    ca_cert_path: str | None = None
    ca_key_path: str | None = None
    upstream: UpstreamSettings = UpstreamSettings()
    blocks_private_targets: bool = False
    """Asked for. An address that other machines reach has it anyway, see `refuses_private_targets`."""
    permits_private_targets: bool = False
    """A person with the admin scope said so for the address that other machines reach."""
    passes_through_pinned: bool = False
    is_running: bool = False
    """Whether the proxy ran when the daemon ended without being asked to stop it; it then starts again with it."""

    @property
    def is_open_to_network(self) -> bool:
        """Whether other machines reach the address it listens on."""
        return not ipaddress.ip_address(read_address(self.listen_addr)[0]).is_loopback

    @property
    def refuses_private_targets(self) -> bool:
        """On a LAN bind everybody near could reach what listens on this machine alone, through us."""
        return self.blocks_private_targets or (self.is_open_to_network and not self.permits_private_targets)

    def engine_config(self) -> EngineConfig:
        host, port = read_address(self.listen_addr)
        return EngineConfig(
            host=host,
            port=port,
            transparent_host=host if self.transparent.enabled else "127.0.0.1",
            transparent_port=self.transparent.listen_port if self.transparent.enabled else None,
            sample_bytes=SAMPLE_BYTES if self.inspect else 0,
            insecure_hosts=frozenset(self.upstream.insecure_hosts),
            client_certificates={one.host: (one.cert_path, one.key_path) for one in self.upstream.client_certificates},
            ca_file=self.upstream.ca_file,
            upstream_proxy=self.upstream.proxy,
            upstream_bypass=self.upstream.bypass,
            finds_process=True,
            passes_through_pinned=self.passes_through_pinned,
        )


def read_address(text: str) -> tuple[str, int]:
    """`IP:port`, IPv6 in brackets. Names are refused: which of its addresses to bind would be a guess."""
    host, colon, digits = text.strip().rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        address = ipaddress.ip_address(bare)
        is_good = bool(colon) and digits.isascii() and digits.isdigit() and len(digits) <= 5 and int(digits) <= 65535
        is_good = is_good and (address.version == 4) == (bare == host)
    except ValueError:
        is_good = False
    if not is_good:
        raise InvalidInput(
            "listen_addr must be host:port", f"not {text[:80]!r}; give an IP and a port: {DEFAULT_LISTEN}"
        )
    return bare, int(digits)


def shown_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
