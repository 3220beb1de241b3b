"""`login`, `logout`, `auth-status` against a real authorization server, the way a person sees them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from dari.cli.remote.main import run
from tests.support.authorization_server import Authority, authority
from tests.support.oauth_users import get
from tests.support.remote_user import Person, Screen


@pytest.fixture(autouse=True)
def _no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)


class Reader(Screen):
    """Reads the address off the terminal, and goes there with a browser."""

    def __init__(self, pastes: bool = False) -> None:
        super().__init__(answers=("-",) if pastes else ())
        self._pastes = pastes
        self._arrived: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._visits: list[asyncio.Task[None]] = []

    def err(self, text: str) -> None:
        super().err(text)
        for word in text.split():
            if word.startswith("http://") and "code_challenge" in word:
                self._visits.append(asyncio.create_task(self._visit(word)))

    async def _visit(self, url: str) -> None:
        _, headers, _ = await get(url)
        if self._pastes:
            self._arrived.set_result(headers["location"])
        else:
            await get(headers["location"])

    async def ask(self, prompt: str, *, secret: bool = False) -> str:
        self.asked.append(prompt)
        return await self._arrived


async def log_in(person: Person, *words: str, screen: Reader | None = None) -> tuple[int, Reader]:
    screen = screen or Reader()
    async with person.bridge() as bridge:
        code = await run("dari remote", ["login", "notes", *words], screen, bridge, person.around())
    return code, screen


def profile(them: Authority, **fields: Any) -> dict[str, Any]:
    auth = {"type": "oauth2", "allowPrivate": True, **fields.pop("auth", {})}
    return {"id": "notes", "url": them.resource_url, "auth": auth, **fields}


async def test_a_person_logs_in_calls_and_logs_out(person: Person) -> None:
    async with authority() as them:
        person.write(profile(them))
        before = await person.run("call-tool", "notes/demo_size", "--params", '{"text": "abc"}')
        assert before.code == 2 and "run: dari remote login notes" in before.err
        code, screen = await log_in(person)
        assert code == 0, screen.told
        assert screen.printed.startswith("logged in to 'notes'; the tokens are in a file that only you may read")
        after = await person.run("call-tool", "notes/demo_size", "--params", '{"text": "abc"}', "--raw")
        assert after.code == 0 and '"3"' in after.out, after.err
        status = (await person.run("auth-status", "--json")).json
        assert [(one["server"], one["state"], one["renews"], one["kept_in"]) for one in status] == [
            ("notes", "valid", True, "file")
        ]
        assert (await person.run("logout", "notes")).out == "logged out of 'notes'\n"
        assert (await person.run("logout", "notes")).code == 1
        gone = await person.run("call-tool", "notes/demo_size", "--params", '{"text": "abc"}')
        assert gone.code == 2 and "requires a login" in gone.err
        assert (await person.run("auth-status")).out == "no logins are stored\n"


async def test_nothing_secret_is_printed_or_recorded(person: Person) -> None:
    async with authority() as them:
        person.write(profile(them))
        _, screen = await log_in(person, "--log")
        them.expire()
        await person.run("--log", "call-tool", "notes/demo_size", "--params", '{"text": "abc"}')
        told = screen.printed + screen.told + (await person.run("auth-status", "--json")).out
        recorded = b"".join(path.read_bytes() for path in (person.state / "audit").rglob("*") if path.is_file())
        assert b"login" in recorded and them.refreshes == 1
        for secret in them.secrets_given:
            assert secret not in told and secret.encode() not in recorded


async def test_a_second_login_says_that_there_is_one(person: Person) -> None:
    async with authority() as them:
        person.write(profile(them))
        await log_in(person)
        code, screen = await log_in(person)
        assert (code, screen.printed) == (0, "already logged in to 'notes'\n")
        code, screen = await log_in(person, "--again")
        assert code == 0 and screen.printed.startswith("logged in to 'notes'")
        assert len(them.authorizations) == 2


async def test_the_address_is_pasted_where_the_browser_is_on_another_machine(person: Person) -> None:
    async with authority() as them:
        person.write(profile(them))
        code, screen = await log_in(person, screen=Reader(pastes=True))
        assert code == 0, screen.told
        assert "paste the address" in screen.asked[0]


async def test_a_login_that_is_refused_is_an_error_of_authorization(person: Person) -> None:
    async with authority(says_no=True) as them:
        person.write(profile(them))
        code, screen = await log_in(person)
        assert code == 2 and "access_denied" in screen.told


async def test_a_server_without_login_says_so(person: Person, tmp_path: Path) -> None:
    async with authority() as them:
        them.is_good = lambda authorization: True  # type: ignore[method-assign]
        them.scope_of = lambda authorization: "tools"  # type: ignore[method-assign]
        person.write(profile(them))
        code, screen = await log_in(person)
        assert (code, screen.printed) == (0, "'notes' asks for no login\n")


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "x"}, "is a program on this machine"),
        ({"url": "http://127.0.0.1:1/mcp", "apiKey": "k"}, "uses the key in"),
    ],
)
async def test_there_is_nothing_to_log_in_to(person: Person, entry: dict[str, Any], why: str) -> None:
    person.write({"id": "notes", **entry})
    answer = await person.run("login", "notes")
    assert answer.code == 1 and why in answer.err


async def test_the_browser_is_opened_with_the_persons_own_environment(person: Person, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o700)
    person.environ["BROWSER"] = str(browser)
    async with authority() as them:
        person.write(profile(them))
        code, screen = await log_in(person, "--browser")
        assert code == 0 and "the browser opens" in screen.told
        assert opened.read_text().startswith(f"{them.origin}/authorize?")


@pytest.mark.parametrize("key", ["wrong", ""])
async def test_a_wrong_or_missing_key_is_told_with_the_field_to_change(person: Person, key: str) -> None:
    async with authority(advertises=False) as them:
        person.write({"id": "notes", "url": them.resource_url, **({"apiKey": key} if key else {})})
        answer = await person.run("list-tools", "--server", "notes")
        assert answer.code == 2
        assert "apiKey" in answer.err
        assert ("dari remote login notes" in answer.err) == (not key)


async def test_an_address_without_a_profile_is_told_how_to_get_one(person: Person) -> None:
    async with authority() as them:
        answer = await person.run("list-tools", "--endpoint", them.resource_url)
        assert answer.code == 2
        assert f"dari remote add NAME {them.resource_url}, then dari remote login NAME" in answer.err
        answer = await person.run("list-tools", "--endpoint", them.resource_url, "--key", "wrong")
        assert answer.code == 2 and "--key TOKEN" in answer.err


async def test_servers_that_run_already_use_a_login_at_once_and_miss_a_logout(person: Person) -> None:
    call = ("call-tool", "notes/demo_size", "--params", '{"text": "abc"}')
    async with authority() as them, person.bridge() as bridge:
        person.write(profile(them))
        for _ in range(7):  # whatever waits longer after each failure must not wait after a login
            assert (await person.run(*call, bridge=bridge)).code == 2
        screen = Reader()
        assert await run("dari remote", ["login", "notes"], screen, bridge, person.around()) == 0, screen.told
        used = await person.run(*call, bridge=bridge)
        assert used.code == 0, used.err
        assert (await person.run("logout", "notes", bridge=bridge)).code == 0
        gone = await person.run(*call, bridge=bridge)
        assert gone.code == 2 and "dari remote login notes" in gone.err
