"""Who gets in: links, cookies, Host and Origin, at a real `dari up`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import websockets
from websockets.asyncio.client import connect as Connect
from websockets.typing import Subprotocol

from dari.console.static_files import frame_style_hash
from tests.support.installed_hub import Hub, dari_up
from tests.support.real_clients import DARI

INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"clientInfo":{"name":"test","version":"1"}}}'
)


@dataclass(frozen=True)
class Login:
    """What a browser is given by a link."""

    cookie: str
    page_key: str = "x"


def login_of(reply: httpx.Response) -> Login:
    assert reply.status_code == 303
    place, _, page_key = reply.headers["location"].partition("#")
    assert place == "/"
    return Login(reply.headers["set-cookie"].partition(";")[0], page_key)


@dataclass(frozen=True)
class Door:
    hub: Hub
    home: Path
    base: str
    """http://127.0.0.1:PORT"""

    async def link(self) -> str:
        """As `dari console --print` gives it."""
        process = await asyncio.create_subprocess_exec(
            *(str(DARI), "console", "--print"),
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.home), "DARI_HOME": str(self.home / "dari")},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return out.decode().strip()

    async def log_in(self) -> Login:
        return login_of(await get(await self.link()))

    async def open(self, login: Login, origin: str | None = None, path: str = "/live", **headers: str) -> str:
        """What `initialize` is answered with over the WebSocket, or the status with which it was refused."""
        try:
            async with self.connect(login, origin, path, **headers) as socket:
                await socket.send(INITIALIZE)
                return str(await socket.recv())
        except websockets.InvalidStatus as error:
            return str(error.response.status_code)

    def connect(self, login: Login, origin: str | None = None, path: str = "/live", **headers: str) -> Connect:
        fields = {"Cookie": login.cookie, **headers}
        if origin != "":
            fields["Origin"] = origin or self.base
        return websockets.connect(
            self.base.replace("http", "ws") + path,
            additional_headers=fields,
            subprotocols=[Subprotocol("dari"), Subprotocol(login.page_key)] if login.page_key else None,
            proxy=None,
        )


@asynccontextmanager
async def open_door(home: Path) -> AsyncIterator[Door]:
    async with dari_up(home) as hub:
        yield Door(hub, home, hub.url.removesuffix("/mcp"))


async def get(url: str, method: str = "GET", **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.request(method, url, headers=headers)


async def test_a_link_logs_in_once_and_its_cookie_opens_the_page_and_the_socket(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        link = await door.link()
        first = await get(link)
        assert first.status_code == 303
        given = first.headers["set-cookie"]
        assert all(each in given for each in ("HttpOnly", "SameSite=Strict", "Path=/"))
        login = login_of(first)
        cookie = login.cookie
        assert (await get(link)).status_code == 401
        assert (await get(door.base, Cookie=cookie)).status_code == 200
        assert (await get(door.base + "/traffic/12?filter=x", Cookie=cookie)).status_code == 200
        assert "protocolVersion" in await door.open(login)


async def test_without_a_cookie_there_is_a_page_that_says_how_to_log_in_and_nothing_else(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        page = await get(door.base)
        assert page.status_code == 401 and "dari console" in page.text
        assert await door.open(Login("")) == "403"
        assert await door.open(Login("dari_console=guess; dari_console_1=guess")) == "403"
        assert (await get(door.base + "/login?key=guess")).status_code == 401
        assert (await get(door.base + "/static/js/main.js")).status_code == 200
        assert (await get(door.base + "/static/../app.py")).status_code == 404


async def test_the_page_comes_in_the_language_that_was_chosen_or_else_in_that_of_the_browser(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        login = await door.log_in()
        for chosen, accepted, expected in (
            ("", "ko-KR,ko;q=0.9,en;q=0.8", "ko"),
            ("", "fr-FR,ko;q=0.9", "en"),
            ("; dari_language=en", "ko", "en"),
            ("; dari_language=ko", "en-US", "ko"),
            ('; dari_language="><script>', "ko", "ko"),
            ("; dari_language=xx", "ko", "ko"),
        ):
            page = await get(door.base, **{"Cookie": login.cookie + chosen, "Accept-Language": accepted})
            assert page.status_code == 200 and f'<html lang="{expected}">' in page.text
            script = page.text.partition('type="module" src="')[2].partition('"')[0]
            assert script.endswith(f"/{expected}/main.js") and (await get(door.base + script)).status_code == 200


async def test_a_page_of_somebody_else_cannot_open_the_socket(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        login = await door.log_in()
        port = door.base.rpartition(":")[2]
        for origin in (
            "http://evil.example",
            "null",
            "",
            f"http://localhost:{port}",
            f"https://127.0.0.1:{port}",
            "http://127.0.0.1:1",
        ):
            assert await door.open(login, origin) == "403", origin
        assert await door.open(login, path="/other") == "403"


async def test_a_host_that_is_not_ours_is_refused_everywhere(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        login = await door.log_in()
        for path in ("/", "/login?key=x", "/static/app.css"):
            assert (await get(door.base + path, Host="evil.example", Cookie=login.cookie)).status_code == 403
        assert await door.open(login, "http://evil.example", Host="evil.example") == "403"


async def test_the_cookie_never_opens_mcp_and_a_token_never_the_console(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        cookie = (await door.log_in()).cookie
        async with httpx.AsyncClient(trust_env=False) as client:
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            reply = await client.post(door.hub.url, content=INITIALIZE, headers={**headers, "Cookie": cookie})
            assert reply.status_code == 401
            bearer = {"Authorization": f"Bearer {door.hub.token}"}
            assert (await client.get(door.base, headers=bearer)).status_code == 401
            reply = await client.post(door.hub.url, content=INITIALIZE, headers={**headers, **bearer})
            assert reply.status_code == 200
        assert await door.open(Login(""), Authorization=f"Bearer {door.hub.token}") == "403"


async def test_a_cookie_that_another_port_was_sent_opens_nothing_by_itself(tmp_path: Path) -> None:
    """Browsers send the cookies of 127.0.0.1 to every port there: a dev server that an agent runs gets ours."""
    async with open_door(tmp_path) as door:
        login, other = await door.log_in(), await door.log_in()
        for page_key in ("", "guess", other.page_key):
            assert await door.open(Login(login.cookie, page_key)) == "403", page_key
        assert await door.open(Login("", login.page_key)) == "403"
        wrong = await get(door.base, "HEAD", Cookie=login.cookie, **{"X-Dari-Page-Key": other.page_key})
        assert wrong.status_code == 401
        right = await get(door.base, "HEAD", Cookie=login.cookie, **{"X-Dari-Page-Key": login.page_key})
        assert right.status_code == 200


async def test_cookies_of_other_ports_neither_log_a_person_out_nor_hide_theirs(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        login = await door.log_in()
        name = login.cookie.partition("=")[0]
        for others in ('theme={"dark": true}', "a[b]=1", "bare", "expires=1", "a=b c", f"{name}=tossed", f"{name}="):
            for cookies in (f"{others}; {login.cookie}", f"{login.cookie}; {others}"):
                assert (await get(door.base, Cookie=cookies)).status_code == 200, cookies
                assert "protocolVersion" in await door.open(Login(cookies, login.page_key)), cookies


async def test_a_browser_that_does_not_read_does_not_keep_the_hub_from_ending(tmp_path: Path) -> None:
    async with asyncio.timeout(60):
        async with open_door(tmp_path) as door:
            socket = await door.connect(await door.log_in())
            await socket.send(INITIALIZE)
            await socket.recv()
            socket.transport.pause_reading()
            for number in range(300):
                await socket.send(f'{{"jsonrpc":"2.0","id":{number + 2},"method":"tools/list"}}')
    socket.transport.abort()


async def test_a_log_out_ends_the_session_and_its_open_page(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        login = await door.log_in()
        cookie = login.cookie
        async with door.connect(login) as socket:
            await socket.send(INITIALIZE)
            await socket.recv()
            assert (await get(door.base + "/logout", "POST", Cookie=cookie)).status_code == 403
            assert (
                await get(door.base + "/logout", "POST", Cookie=cookie, Origin="http://evil.example")
            ).status_code == 403
            assert (await get(door.base + "/logout", "POST", Cookie=cookie, Origin=door.base)).status_code == 303
            with pytest.raises(websockets.ConnectionClosed):
                await socket.recv()
        assert (await get(door.base, Cookie=cookie)).status_code == 401


async def test_every_answer_has_a_strict_policy(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        for path in ("/", "/login?key=x", "/static/app.css", "/nowhere"):
            policy = (await get(door.base + path)).headers["content-security-policy"]
            assert "unsafe" not in policy and "default-src 'none'" in policy
            assert f"style-src 'self' '{frame_style_hash()}';" in policy


async def test_the_console_is_for_loopback_unless_it_is_asked_for(tmp_path: Path) -> None:
    for options, status in (
        (["--no-console"], 404),
        (["--http-bind", "0.0.0.0"], 404),
        (["--http-bind", "0.0.0.0", "--console"], 401),
    ):
        home = tmp_path / str(len(list(tmp_path.iterdir())))
        home.mkdir()
        async with dari_up(home, *options) as hub:
            port = re.search(r":(\d+)/", hub.url)
            assert port
            assert (await get(f"http://127.0.0.1:{port[1]}/")).status_code == status, options
