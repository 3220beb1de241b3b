"""Who may use the proxy, and where it may go: the client allowlist and the private-target policy."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

from dari.errors import InvalidInput

Address: TypeAlias = IPv4Address | IPv6Address

_PRIVATE = tuple(
    ip_network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "224.0.0.0/4",
        "255.255.255.255/32",
        "::/128",
        "::1/128",
        "fc00::/7",
        "fe80::/10",
        "ff00::/8",
    )
)
_NAT64 = ip_network("64:ff9b::/96")


class ClientAllowlist:
    """Which peers may connect. Loopback always may; the list counts only when enabled."""

    def __init__(self, enabled: bool = False, ips: Iterable[str] = ()) -> None:
        self.enabled = enabled
        self.ips = tuple(str(parse_ip(ip)) for ip in ips)
        self._allowed = frozenset(self.ips)

    def passes(self, peer_ip: str) -> bool:
        """False also for a peer whose address cannot be read."""
        if not self.enabled:
            return True
        try:
            address = parse_ip(peer_ip)
        except InvalidInput:
            return False
        return address.is_loopback or str(address) in self._allowed


class PrivateTargetPolicy:
    """Off on a loopback bind, where the dev server on localhost is what people debug; worth having on a LAN bind."""

    def __init__(self, enabled: bool = False) -> None:
        self.enabled = enabled

    def refusal(self, host: str, addresses: Iterable[str] = (), *, is_connect: bool = False) -> str | None:
        """The text of the 403, or None to go on.

        Ask with the name first, and again with the resolved addresses just before connecting to one of them:
        a name that resolves to a private address is as private as the address.
        """
        if not self.enabled or not (is_private(host) or any(is_private(address) for address in addresses)):
            return None
        return "CONNECT target blocked by policy" if is_connect else "HTTP target blocked by policy"


class ProxyAccess:
    """Both, replaceable while the proxy runs: what the engine asks for each peer and each address."""

    def __init__(self, targets: PrivateTargetPolicy | None = None) -> None:
        self.clients = ClientAllowlist()
        self.targets = targets or PrivateTargetPolicy()

    def admits(self, peer_ip: str) -> bool:
        return self.clients.passes(peer_ip)

    def permits(self, ip: str) -> bool:
        """Asked with literals and with every address a name resolved to."""
        return not self.targets.enabled or not is_private(ip)


def parse_ip(text: str) -> Address:
    """One IP address; IPv4 inside IPv6 is folded to IPv4, so that both spellings are one peer."""
    try:
        address = ip_address(text.strip().partition("%")[0])
    except ValueError:
        raise InvalidInput(f"invalid IP address: {text}", "give one IPv4 or IPv6 address, no range") from None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def is_private(host: str) -> bool:
    """localhost, or an address that is loopback, RFC 1918, link-local, unspecified, multicast or unique local."""
    name = host.strip().strip("[]").removesuffix(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = _literal(name)
    if address is None:
        return False
    return any(_is_private_address(each) for each in (address, *_inside(address)))


def _literal(name: str) -> Address | None:
    try:
        return parse_ip(name)
    except InvalidInput:
        pass
    try:
        # `127.1`, `0x7f000001` and `2130706433` are loopback to every resolver; no look-up happens here.
        return IPv4Address(socket.inet_aton(name)) if name[:1].isdigit() and " " not in name else None
    except (OSError, UnicodeError, ValueError):
        return None


def _inside(address: Address) -> tuple[Address, ...]:
    """IPv4 addresses that an IPv6 one stands for: 6to4, NAT64 and the old IPv4-compatible form."""
    if isinstance(address, IPv4Address):
        return ()
    inner = [address.sixtofour] if address.sixtofour else []
    if address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1):
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return tuple(inner)


def _is_private_address(address: Address) -> bool:
    return any(address in block for block in _PRIVATE)
