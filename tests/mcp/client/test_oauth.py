"""Servers that ask for OAuth: one flow at a time, no clock while a person is asked, no SDK before it is needed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx2
import pytest

from dari.errors import Denied
from dari.mcp.client.errors import Unauthorized
from dari.mcp.client.oauth import OAuth
from dari.transport.connect import connect
from tests.support.mcp_client import DISCOVERED, Peer, http_script

TEXT = {"content": [{"type": "text", "text": "ok"}]}
CHALLENGE = 'Bearer resource_metadata="http://x/.well-known/oauth-protected-resource"'


class Provider:
    """Flows like the SDK's: sends what it has, and after a refusal gets a token from the server's own endpoint."""

    def __init__(self, url: str, stored: str = "", fail: str = "") -> None:
        self.flows = 0
        self.waiting = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self._url = url
        self._token = stored
        self._fail = fail

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        self.flows += 1
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        response = yield request
        if response.status_code not in (401, 403):
            return
        self.waiting.set()
        await self.may_go_on.wait()
        if self._fail:
            raise RuntimeError(self._fail)
        token = yield httpx2.Request("POST", self._url.replace("/mcp", "/token"), data={"grant_type": "x"})
        self._token = token.json()["access_token"]
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


def guarded(accepts: Callable[[str, Peer], bool], refuse: int = 401) -> Any:
    """A stateless server that wants a token it accepts, and gives out good-1, good-2, … at /token."""
    given = 0

    async def handler(peer: Peer) -> None:
        nonlocal given
        while await peer.request():
            if peer.target == "/token":
                given += 1
                peer.respond(200, b'{"access_token":"good-%d"}' % given, content_type="application/json")
            elif not accepts(peer.headers.get("authorization", ""), peer):
                error = ', error="insufficient_scope"' if refuse == 403 else ""
                peer.respond(refuse, b"no", www_authenticate=CHALLENGE + error)
            else:
                peer.reply(DISCOVERED if peer.body["method"] == "server/discover" else TEXT)

    return handler


def is_good(header: str, peer: Peer) -> bool:
    return header.startswith("Bearer good")


async def test_a_token_is_got_when_the_server_asks_for_one() -> None:
    async with http_script(guarded(is_good)) as url:
        provider = Provider(url)
        async with connect(url, oauth=OAuth(url, lambda: provider)) as client:
            assert (await client.call_tool("x")).text == "ok"
    assert provider.flows == 1


async def test_a_stored_token_is_used_without_asking_anybody() -> None:
    async with http_script(guarded(is_good)) as url:
        provider = Provider(url, stored="good-stored")
        oauth = OAuth(url, lambda: provider)
        async with connect(url, oauth=oauth) as client:
            await client.call_tool("x")
    assert oauth.token == "good-stored"
    assert not provider.waiting.is_set()


async def test_many_refusals_at_once_make_one_flow() -> None:
    current = "good-1"

    async with http_script(guarded(lambda header, peer: header == f"Bearer {current}")) as url:
        provider = Provider(url)
        async with connect(url, oauth=OAuth(url, lambda: provider)) as client:
            current = "good-2"  # the first token is worth nothing from here on
            results = await asyncio.gather(*(client.call_tool("x") for _ in range(20)))
    assert len(results) == 20
    assert provider.flows == 2


async def test_a_call_that_needs_more_scope_gets_a_new_token() -> None:
    def accepts(header: str, peer: Peer) -> bool:
        return header == "Bearer good-2" or (bool(header) and peer.body["method"] == "server/discover")

    async with http_script(guarded(accepts, refuse=403)) as url:
        provider = Provider(url, stored="")
        async with connect(url, oauth=OAuth(url, lambda: provider)) as client:
            assert (await client.call_tool("x")).text == "ok"
    assert provider.flows == 2


async def test_a_server_that_is_never_satisfied_is_asked_once_per_request() -> None:
    async with http_script(guarded(lambda header, peer: False)) as url:
        provider = Provider(url)
        with pytest.raises(Unauthorized):
            await connect(url, oauth=OAuth(url, lambda: provider)).open()
    assert provider.flows == 1


async def test_a_flow_that_fails_is_told_with_its_reason() -> None:
    async with http_script(guarded(is_good)) as url:
        provider = Provider(url, fail="the person closed the window")
        with pytest.raises(Denied, match="the person closed the window"):
            await connect(url, oauth=OAuth(url, lambda: provider)).open()


async def test_time_limits_stand_still_while_a_person_is_asked() -> None:
    async with http_script(guarded(is_good)) as url:
        provider = Provider(url)
        provider.may_go_on.clear()
        client = connect(url, oauth=OAuth(url, lambda: provider), open_timeout_s=0.1, probe_s=0.02)
        opening = asyncio.create_task(client.open())
        await provider.waiting.wait()
        await asyncio.sleep(0.3)
        assert not opening.done()
        provider.may_go_on.set()
        await opening
        assert (await client.call_tool("x")).text == "ok"
        await client.close()


async def test_a_person_who_never_answers_ends_the_flow_at_its_own_limit() -> None:
    async with http_script(guarded(is_good)) as url:
        provider = Provider(url)
        provider.may_go_on.clear()
        with pytest.raises(Denied):
            await connect(url, oauth=OAuth(url, lambda: provider, timeout_s=0.05)).open()


async def test_without_oauth_the_hint_says_what_the_server_wants() -> None:
    async with http_script(guarded(is_good)) as url:
        with pytest.raises(Unauthorized) as caught:
            await connect(url).open()
    assert "oauth" in caught.value.hint.lower()


def test_the_client_loads_neither_the_sdk_nor_tls_until_they_are_needed() -> None:
    script = (
        "import sys; import dari.transport.connect, dari.mcp.client.oauth\n"
        "from dari.transport.connect import connect; connect(['x']); connect('unix:/x')\n"
        "print([name for name in ('mcp', 'httpx2', 'pydantic', 'uvicorn', 'httptools') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert output.stdout == "[]\n"
