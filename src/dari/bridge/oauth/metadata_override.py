"""Apply what a profile says about its authorization server, by changing the metadata that the SDK fetches.

The SDK asks two documents where to go: the resource's metadata (RFC 9728) and the authorization server's (RFC 8414).
Where a profile names addresses, those questions are answered from the profile and never leave this machine.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from msgspec.structs import replace

from dari.bridge.config.profile import AuthSettings
from dari.errors import Denied, InvalidInput
from dari.mcp.client.oauth import Http, HttpRefusal, answer, exchange

_ABOUT_RESOURCE = "/.well-known/oauth-protected-resource"
_ABOUT_SERVER = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
_FORM = "application/x-www-form-urlencoded"
_SCOPE = re.compile(rb'\s*,?\s*\bscope=(?:"[^"]*"|[^\s,]+)')
_RESOURCE_METADATA = re.compile(rb'\s*,?\s*\bresource_metadata=(?:"[^"]*"|[^\s,]+)')
JsonObject = dict[str, Any]


class MetadataOverride:
    """Carries the requests of one flow, and answers those that the profile has settled."""

    def __init__(self, auth: AuthSettings, url: str) -> None:
        self._auth = auth
        self._url = url
        self._document: JsonObject | None = None
        self.on_methods: Callable[[list[str]], None] | None = None
        """Called with the authorization server's method for a client's secret, once its metadata are read."""
        self.last_error = ""
        """The `error` of the last refused token request, such as `invalid_client`."""
        self.last_status = 0
        named = (auth.authorization_url, auth.token_url, auth.metadata_url)
        self._trusted = {urlsplit(one).hostname for one in (url, *named) if one}
        self._trusted_origins = {_origin(one) for one in (url, *named) if one}

    @property
    def are_complete(self) -> bool:
        """Whether nothing is left to be discovered."""
        return bool(self._auth.metadata_url or self._auth.token_url)

    def refusal(self, given: HttpRefusal) -> HttpRefusal:
        """The server's refusal with the profile's scopes, and without a way to metadata that the profile replaces."""
        challenge = given.headers.get(b"www-authenticate", b"")
        if self.are_complete:
            challenge = _RESOURCE_METADATA.sub(b"", challenge)
        if self._auth.scopes and given.status == 401:
            scopes = " ".join(self._auth.scopes).replace('"', "").encode("ascii", "ignore")
            challenge = _SCOPE.sub(b"", challenge)
            challenge = (challenge or b"Bearer") + (b", " if b"=" in challenge else b" ") + b'scope="%b"' % scopes
        return replace(given, headers={**given.headers, b"www-authenticate": challenge})

    def authorization_url(self, url: str) -> str:
        """The address to show, with the profile's resource; refused when it would travel in the clear."""
        self._check(url)
        if self._auth.resource is None:
            return url
        parts = urlsplit(url)
        return urlunsplit(parts._replace(query=_with_resource(parts.query, self._auth.resource)))

    async def send(self, http: Http, request: Any) -> Any:
        path = request.url.path
        if path.startswith(_ABOUT_RESOURCE) and self.are_complete:
            document = await self._server_document(http, request)
            about = {"resource": self._url.partition("?")[0], "authorization_servers": [document["issuer"]]}
            return answer(request, 200, json.dumps(about).encode())
        if any(mark in path for mark in _ABOUT_SERVER) and request.method == "GET":
            return await self._about_server(http, request)
        await self._check_target(str(request.url))
        if request.headers.get("content-type", "").startswith(_FORM):
            return await self._token(http, request)
        return await exchange(http, request)

    async def _about_server(self, http: Http, request: Any) -> Any:
        if self.are_complete:
            document = await self._server_document(http, request)
            response = answer(request, 200, json.dumps(document).encode())
        else:
            await self._check_target(str(request.url))
            response = await exchange(http, request)
            document = _object(response.content) if response.status_code == 200 else {}
            if document and self._auth.authorization_url:
                document["authorization_endpoint"] = self._auth.authorization_url
                response = answer(request, 200, json.dumps(document).encode())
        if document:
            self._check_pkce(document)
        methods = document.get("token_endpoint_auth_methods_supported")
        if isinstance(methods, list) and methods and self.on_methods is not None:
            self.on_methods([str(one) for one in methods])
        return response

    async def _server_document(self, http: Http, request: Any) -> JsonObject:
        if self._document is None:
            self._document = await self._made_document(http, request)
        return self._document

    async def _made_document(self, http: Http, request: Any) -> JsonObject:
        auth = self._auth
        document: JsonObject = {}
        if auth.metadata_url:
            import httpx2

            await self._check_target(auth.metadata_url)
            response = await exchange(http, httpx2.Request("GET", auth.metadata_url))
            document = _object(response.content)
            if response.status_code != 200 or not isinstance(document.get("issuer"), str):
                raise InvalidInput(
                    f"{auth.metadata_url} holds no metadata of an authorization server (HTTP {response.status_code})",
                    "correct auth.authServerMetadataUrl, or remove it to have it discovered",
                )
        if auth.token_url:
            origin = _origin(auth.token_url)
            document.setdefault("issuer", origin)
            document.setdefault("authorization_endpoint", f"{origin}/authorize")
            document.setdefault("response_types_supported", ["code"])
            document["token_endpoint"] = auth.token_url
        if auth.authorization_url:
            document["authorization_endpoint"] = auth.authorization_url
        return document

    async def _token(self, http: Http, request: Any) -> Any:
        import httpx2

        if self._auth.resource is not None:
            body = _with_resource(request.content.decode(), self._auth.resource)
            kept = {name: value for name, value in request.headers.items() if name.lower() != "content-length"}
            request = httpx2.Request(request.method, request.url, headers=kept, content=body.encode())
        response = await exchange(http, request)
        self.last_status = response.status_code
        self.last_error = "" if response.status_code == 200 else str(_object(response.content).get("error", ""))[:100]
        return response

    def _check_pkce(self, document: JsonObject) -> None:
        """We send S256 (RFC 7636). A server that only knows `plain` would let anybody who sees a code use it."""
        methods = document.get("code_challenge_methods_supported")
        if methods is None and (self.are_complete or document.get("issuer") is None):
            return
        if not isinstance(methods, list) or "S256" not in methods:
            said = ", ".join(map(str, methods)) if isinstance(methods, list) else "none"
            raise Denied(
                f"the authorization server of {self._url} must offer PKCE with S256, it offers: {said}",
                "ask its operator for S256, or name auth.tokenUrl in the profile if its metadata are wrong",
            )

    async def _check_target(self, url: str) -> None:
        """`_check`, and: a server somewhere must not make us ask this machine, or the network behind us.

        What is here or on a private network may be asked only where the person named it: by the server's own address,
        port included, or in the profile's auth.
        """
        self._check(url)
        if self._auth.allows_private or _origin(url) in self._trusted_origins:
            return
        host = urlsplit(url).hostname or ""
        if await _is_inside(host):
            raise Denied(
                f"{self._url} wants us to ask {_origin(url)}, which is on this machine or a private network",
                "if that is right, set auth.allowPrivate in its profile, or name auth.authServerMetadataUrl",
            )

    def _check(self, url: str) -> None:
        """A server chooses who authorizes for it; in the clear it may send us only to hosts that the person named."""
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in self._trusted:
            raise Denied(
                f"{self._url} wants us to be authorized by {parts.scheme}://{parts.netloc}, without encryption",
                "ask its operator for https, or name the addresses in the profile's auth",
            )


def _with_resource(form: str, resource: str) -> str:
    pairs = [pair for pair in parse_qsl(form, keep_blank_values=True) if pair[0] != "resource"]
    return urlencode([*pairs, ("resource", resource)])


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


async def _is_inside(host: str) -> bool:
    """Whether a name or an address leads to this machine, or into a network that the internet does not reach."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return host == "localhost" or host.endswith(".localhost")
    addresses = (ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found)
    return any(not _plain(one).is_global for one in addresses)


def _plain(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def _object(body: bytes) -> JsonObject:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
