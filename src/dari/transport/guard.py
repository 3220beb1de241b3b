"""Who may talk to the HTTP endpoint: the user of the peer, bearer token, Host, Origin, rate."""

from __future__ import annotations

from collections.abc import Iterable

from dari.core.scopes import Grant
from dari.transport.authority import BadAuthority, parse_authority, parse_origin
from dari.transport.client_tokens import ClientTokens
from dari.transport.peer_uids import PeerCheck
from dari.transport.token_file import TokenFile

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class HttpGuard:
    """The checks every HTTP request passes before its body is read."""

    def __init__(
        self,
        token: TokenFile | None,
        hosts: Iterable[str] | None = (),
        origins: Iterable[str] = (),
        peers: PeerCheck | None = None,
        clients: ClientTokens | None = None,
    ) -> None:
        """`hosts` are names besides those of loopback; None takes any, for a socket that no page can reach.

        `peers` says who may connect at all; None: somebody else has looked at that. `clients` are tokens of single
        clients, each as good as `token`.
        """
        self.token = token
        self.clients = clients
        self.peers = peers
        self._hosts = None if hosts is None else LOOPBACK_NAMES | {_host_name(host) for host in hosts}
        self._origins = frozenset(origin.rstrip("/").encode() for origin in origins)
        self._known_hosts: set[bytes] = set()

    def allows_host(self, header: bytes | None) -> bool:
        """A name we answer to, with any port: a page that rebinds its own name to 127.0.0.1 is refused."""
        if self._hosts is None:
            return True
        if header is None:
            return False
        if header in self._known_hosts:
            return True
        try:
            allowed = parse_authority(header).host in self._hosts
        except BadAuthority:
            return False
        if allowed and len(self._known_hosts) < 64:
            self._known_hosts.add(header)
        return allowed

    def allows_origin(self, header: bytes) -> bool:
        """A page from this machine, or one that was named by option."""
        if header in self._origins:
            return True
        try:
            return parse_origin(header)[1].host in LOOPBACK_NAMES
        except BadAuthority:
            return False

    def identify(self, authorization: bytes | None, now_s: float, grant: Grant) -> Grant | None:
        """What the sender of a request may do: `grant` with the token that all share (or where none is asked for), that
        of its client with the client's own; None with neither."""
        if self.token is None:
            return grant
        if authorization is None:
            return None
        found = self._find(self.token, authorization, now_s, grant)
        if found is None:
            # One that was made a moment ago: nobody is refused by what a file said before.
            self.token.refresh()
            if self.clients is not None:
                self.clients.refresh()
            found = self._find(self.token, authorization, now_s, grant)
        return found

    def _find(self, token: TokenFile, authorization: bytes, now_s: float, grant: Grant) -> Grant | None:
        if token.accepts(authorization, now_s):
            return grant
        return None if self.clients is None else self.clients.find(authorization, now_s)


def _host_name(host: str) -> str:
    """The name of `--allow-host` or `--http-bind`, which may come with brackets and a port."""
    try:
        return parse_authority((f"[{host}]" if host.count(":") > 1 and "[" not in host else host).encode()).host
    except BadAuthority:
        return host.lower()
