"""A real authorization server, and the demo MCP server behind a check of its tokens.

RFC 8414 and 9728 metadata, dynamic registration, PKCE with S256 only, codes for one use, refresh tokens that rotate:
one that is used twice ends its whole family, as good servers do. Time is a number that the test moves.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from tests.support.demo_server import demo_server
from tests.support.mcp_client import serving

LIFETIME_S = 3600


class AnyLoopback:
    """RFC 8252: a native client may come back to any port of its own machine."""

    def __contains__(self, url: object) -> bool:
        return str(url).startswith("http://127.0.0.1:")


ANY_LOOPBACK = AnyLoopback()


@dataclass
class Family:
    """Everything that came of one permission."""

    client_id: str
    scope: str
    resource: str
    is_revoked: bool = False


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    head: bytes

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))


@dataclass
class Authority:
    """What it gave out, and switches for what a test wants it to do."""

    origin: str = ""
    resource_url: str = ""
    now_s: float = 0.0
    says_no: bool = False
    refresh_status: int = 200
    has_registration: bool = True
    advertises: bool = True
    """Whether a refusal of the resource server names its metadata."""
    methods: list[str] = field(default_factory=lambda: ["none", "client_secret_post", "client_secret_basic"])
    scopes: list[str] = field(default_factory=lambda: ["tools"])
    needs_scope: str = ""
    issuer_path: str = ""
    pkce: Any = field(default_factory=lambda: ["S256"])
    metadata_path: str = "/.well-known/oauth-authorization-server"
    supports_documents: bool = False
    leaks: bool = False
    """The token endpoint answers with a body that is wrong and holds a token."""
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    access: dict[str, tuple[Family, float]] = field(default_factory=dict)
    refresh: dict[str, tuple[Family, bool]] = field(default_factory=dict)
    families: list[Family] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    token_requests: list[dict[str, str]] = field(default_factory=list)
    authorizations: list[dict[str, str]] = field(default_factory=list)
    refusals: int = 0

    @property
    def refreshes(self) -> int:
        return sum(one["grant_type"] == "refresh_token" for one in self.token_requests)

    @property
    def secrets_given(self) -> list[str]:
        """Every value that must never be seen outside."""
        return [*self.access, *self.refresh, *self.codes]

    def expire(self) -> None:
        """Every access token given so far is worth nothing from here on."""
        self.now_s += LIFETIME_S + 1

    def revoke(self) -> None:
        for family in self.families:
            family.is_revoked = True

    def is_good(self, authorization: str) -> bool:
        found = self.access.get(authorization.removeprefix("Bearer "))
        return found is not None and not found[0].is_revoked and found[1] > self.now_s

    def scope_of(self, authorization: str) -> str:
        return self.access[authorization.removeprefix("Bearer ")][0].scope

    # The authorization server.

    def answer(self, request: Request) -> bytes:
        self.seen.append(f"{request.method} {request.path}")
        if request.path == self.metadata_path + self.issuer_path:
            return _json(200, self._metadata())
        if request.path == "/register" and self.has_registration:
            return self._register(request)
        if request.path == "/authorize":
            return self._authorize(request)
        if request.path == "/token":
            return self._token(request)
        return _json(404, {"error": "not_found"})

    def _metadata(self) -> dict[str, Any]:
        about: dict[str, Any] = {
            "issuer": self.origin + self.issuer_path,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "response_types_supported": ["code"],
            **({} if self.pkce is None else {"code_challenge_methods_supported": self.pkce}),
            "token_endpoint_auth_methods_supported": self.methods,
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": self.supports_documents,
        }
        return about | ({"registration_endpoint": f"{self.origin}/register"} if self.has_registration else {})

    def _register(self, request: Request) -> bytes:
        asked = json.loads(request.body)
        client_id = f"client-{len(self.clients) + 1}"
        self.clients[client_id] = {**asked, "client_id": client_id}
        return _json(201, self.clients[client_id])

    def _authorize(self, request: Request) -> bytes:
        query = request.query
        self.authorizations.append(query)
        client = self.clients.get(query.get("client_id", ""))
        if client is None or query.get("redirect_uri") not in client["redirect_uris"]:
            return _json(400, {"error": "invalid_request", "error_description": "unknown client or redirect_uri"})
        back = {"state": query["state"], "iss": self.origin + self.issuer_path}
        if self.says_no:
            return _redirect(query["redirect_uri"], back | {"error": "access_denied"})
        if query.get("code_challenge_method") != "S256" or query.get("response_type") != "code":
            return _redirect(query["redirect_uri"], back | {"error": "invalid_request"})
        code = "code-" + secrets.token_urlsafe(16)
        self.codes[code] = query
        return _redirect(query["redirect_uri"], back | {"code": code})

    def _token(self, request: Request) -> bytes:
        form = request.form
        self.token_requests.append(form)
        client_id = self._client_of(request, form)
        if client_id is None:
            return _json(401, {"error": "invalid_client"})
        if form["grant_type"] == "authorization_code":
            query = self.codes.get(form["code"], {})
            challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode()
            is_right = (
                query.get("code_challenge") == challenge.rstrip("=")
                and query["redirect_uri"] == form["redirect_uri"]
                and query["client_id"] == client_id
                and query.pop("used", "") == ""
            )
            if not is_right:
                return _json(400, {"error": "invalid_grant"})
            query["used"] = "yes"
            family = Family(client_id, query.get("scope", ""), form.get("resource", ""))
            self.families.append(family)
            return self._give(family)
        if form["grant_type"] == "refresh_token":
            if self.refresh_status != 200:
                return _json(self.refresh_status, {"error": "temporarily_unavailable"})
            found = self.refresh.get(form["refresh_token"])
            if found is None or found[0].is_revoked or found[0].client_id != client_id:
                return _json(400, {"error": "invalid_grant"})
            family, is_spent = found
            if is_spent:
                family.is_revoked = True  # stolen, for all it knows
                return _json(400, {"error": "invalid_grant"})
            self.refresh[form["refresh_token"]] = (family, True)
            return self._give(family)
        if form["grant_type"] == "client_credentials" and self.clients[client_id].get("client_secret"):
            family = Family(client_id, form.get("scope", ""), form.get("resource", ""))
            self.families.append(family)
            return self._give(family, can_refresh=False)
        return _json(400, {"error": "unsupported_grant_type"})

    def _client_of(self, request: Request, form: dict[str, str]) -> str | None:
        authorization = request.headers.get("authorization", "")
        method, given = "client_secret_post", (form.get("client_id", ""), form.get("client_secret", ""))
        if authorization.startswith("Basic "):
            name, _, secret = base64.b64decode(authorization[6:]).decode().partition(":")
            method, given = "client_secret_basic", (name, secret)
        elif not given[1]:
            method = "none"
        client = self.clients.get(given[0])
        is_known = client is not None and client.get("client_secret", "") == given[1] and method in self.methods
        return given[0] if is_known else None

    def _give(self, family: Family, can_refresh: bool = True) -> bytes:
        access, refresh = "at-" + secrets.token_urlsafe(24), "rt-" + secrets.token_urlsafe(24)
        self.access[access] = (family, self.now_s + LIFETIME_S)
        if self.leaks:
            return _json(200, {"access_token": [access], "token_type": "Bearer"})
        given = {"access_token": access, "token_type": "Bearer", "expires_in": LIFETIME_S}
        if can_refresh:
            self.refresh[refresh] = (family, False)
            given["refresh_token"] = refresh
        return _json(200, given)

    # The resource server.

    def refuse(self, request: Request) -> bytes | None:
        """The answer of the check in front of the MCP server; None when the request may pass."""
        if request.path.startswith("/.well-known/oauth-protected-resource"):
            if not self.advertises:
                return _json(404, {})
            about = {"resource": self.resource_url, "authorization_servers": [self.origin + self.issuer_path]}
            return _json(200, about | ({"scopes_supported": self.scopes} if self.scopes else {}))
        authorization = request.headers.get("authorization", "")
        where = f"{urlsplit(self.resource_url).scheme}://{urlsplit(self.resource_url).netloc}"
        challenge = f'Bearer resource_metadata="{where}/.well-known/oauth-protected-resource/mcp"'
        challenge = challenge if self.advertises else "Bearer"
        if not self.is_good(authorization):
            self.refusals += 1
            return _json(401, {"error": "invalid_token"}, f"www-authenticate: {challenge}\r\n")
        if self.needs_scope and self.needs_scope not in self.scope_of(authorization).split():
            more = f'{challenge}, error="insufficient_scope", scope="{self.needs_scope}"'
            return _json(403, {"error": "insufficient_scope"}, f"www-authenticate: {more}\r\n")
        return None


@asynccontextmanager
async def authority(**switches: Any) -> AsyncIterator[Authority]:
    """Both servers; `resource_url` is the address of the MCP server."""
    them = Authority(**switches)
    async with serving(demo_server()) as hub, _listening(them, hub.url):
        yield them


@asynccontextmanager
async def _listening(them: Authority, inner_url: str) -> AsyncIterator[None]:
    tasks: set[asyncio.Task[None]] = set()

    def server(serve: Any) -> Any:
        async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await serve(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                tasks.discard(task)
                writer.close()

        return asyncio.start_server(run, "127.0.0.1", 0)

    async def authorize(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(them.answer(await _read(reader)))
        await writer.drain()
        # Like a server that ends a quiet connection just when the next request is on its way: that one is lost.
        if await reader.read(1):
            writer.transport.abort()

    async def resource(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = await _read(reader)
            refusal = them.refuse(request)
            if refusal is None:
                await _pass_on(request, inner_url, writer)
                return
            writer.write(refusal)

    one, two = await server(authorize), await server(resource)
    them.origin = f"http://127.0.0.1:{one.sockets[0].getsockname()[1]}"
    them.resource_url = f"http://127.0.0.1:{two.sockets[0].getsockname()[1]}/mcp"
    try:
        yield
    finally:
        one.close()
        two.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await one.wait_closed()
        await two.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return Request(method, parts.path, query, headers, body, head)


async def _pass_on(request: Request, inner_url: str, writer: asyncio.StreamWriter) -> None:
    """To the MCP server itself, on a connection of its own, without the token that was checked here."""
    parts = urlsplit(inner_url)
    there, back = await asyncio.open_connection(parts.hostname, parts.port)
    kept = [line for line in request.head.split(b"\r\n")[:-2] if not line.lower().startswith((b"auth", b"connection"))]
    back.write(b"\r\n".join([*kept, b"connection: close", b"", b""]) + request.body)
    try:
        while data := await there.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        back.close()


def _json(status: int, body: Any, headers: str = "") -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n{headers}\r\n"
    return head.encode() + data


def _redirect(where: str, query: dict[str, str]) -> bytes:
    return f"HTTP/1.1 302 X\r\nlocation: {where}?{urlencode(query)}\r\ncontent-length: 0\r\n\r\n".encode()
