"""Where tokens lie and where they never appear: the keyring, the file, logs, errors."""

from __future__ import annotations

import asyncio
import io
import logging
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.bridge.oauth.keychain import Keychain
from dari.bridge.oauth.store import Login, LoginSecrets, LoginStore
from dari.errors import DariError, Unavailable
from dari.mcp.client.errors import Unauthorized
from tests.support.authorization_server import authority
from tests.support.oauth_users import Browser, Drawer, echo, log_in, oauth_at


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Everything that any logger of this process says, at its most talkative."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield text
    root.removeHandler(handler)
    root.setLevel(before)


async def test_no_token_code_or_secret_is_in_a_log_or_an_error(tmp_path: Path, logged: io.StringIO) -> None:
    errors: list[DariError] = []
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        them.expire()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url)) == "5"
        them.revoke()
        for interact in (None, Browser()):
            them.leaks = True
            oauth = oauth_at(tmp_path, them.resource_url, **({"interact": interact} if interact else {}))
            with pytest.raises(DariError) as caught:
                await echo(them.resource_url, oauth)
            errors.append(caught.value)
        told = logged.getvalue() + "".join("".join(traceback.format_exception(error)) + error.hint for error in errors)
        assert len(them.secrets_given) >= 6
        assert "HTTP" in told  # something was said at all
        for secret in them.secrets_given:
            assert secret not in told


async def test_secrets_lie_in_the_keyring_and_the_file_only_says_so(tmp_path: Path) -> None:
    drawer = Drawer()
    async with authority() as them:
        await log_in(tmp_path, them.resource_url, keyring=drawer)
        [path] = (tmp_path / "oauth").glob("*.json")
        assert '"place":"keyring"' in path.read_text()
        assert not any(secret in path.read_text() for secret in them.secrets_given)
        assert len(drawer.kept) == 1
        them.expire()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, keyring=drawer)) == "5"
        assert them.refreshes == 1


async def test_a_locked_keyring_is_named_and_nobody_has_to_log_in_again(tmp_path: Path) -> None:
    drawer = Drawer()
    async with authority() as them:
        await log_in(tmp_path, them.resource_url, keyring=drawer)
        drawer.fails = True
        with pytest.raises(Unavailable) as caught:
            await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, keyring=drawer))
        assert "unlock" in caught.value.hint
        drawer.fails = False
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, keyring=drawer)) == "5"
        assert len(them.authorizations) == 1


async def test_a_keyring_that_takes_nothing_is_replaced_by_the_file(tmp_path: Path) -> None:
    drawer = Drawer()
    drawer.fails = True
    async with authority() as them:
        await log_in(tmp_path, them.resource_url, keyring=drawer)
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, keyring=drawer)) == "5"
        assert len(them.authorizations) == 1


async def test_a_keyring_that_never_answers_blocks_nothing() -> None:
    may_end = threading.Event()

    class Stuck(Drawer):
        def _check(self) -> None:
            may_end.wait(40)

    keychain = Keychain(Stuck(), timeout_s=0.05)
    with pytest.raises(Unavailable, match=r"within 0\.05 s"):
        await keychain.get("x")
    with pytest.raises(Unavailable):
        await keychain.get("x")  # at once: no second thread waits beside the first
    may_end.set()
    async with asyncio.timeout(30):
        while True:
            try:
                assert await keychain.get("x") is None
                break
            except Unavailable:
                await asyncio.sleep(0)


async def test_a_profile_may_keep_its_login_out_of_the_keyring(tmp_path: Path) -> None:
    drawer = Drawer()
    kept = LoginStore(tmp_path, Keychain(drawer)).login("a", "https://a/mcp", uses_keyring=False)
    await kept.save(Login(profile="a", url="https://a/mcp", secrets=LoginSecrets(access_token="t0ken")))
    assert drawer.kept == {} and "t0ken" in kept.path.read_text()


async def test_logging_out_takes_the_keyring_entry_along(tmp_path: Path) -> None:
    drawer = Drawer()
    store = LoginStore(tmp_path, Keychain(drawer))
    kept = store.login("a", "https://a/mcp?key=1")
    await kept.save(Login(profile="a", url="https://a/mcp", secrets=LoginSecrets(access_token="t0ken")))
    assert [one.profile for one in store.all()] == ["a"] and len(drawer.kept) == 1
    assert await kept.remove() and not await kept.remove()
    assert drawer.kept == {} and store.all() == []


@pytest.mark.parametrize("name", ["../../etc/x", "a/b", "ü" * 300, "", "."])
async def test_a_profile_of_any_name_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    kept = LoginStore(tmp_path, Keychain(Drawer())).login(name, "https://a/mcp")
    await kept.save(Login(profile=name, url="https://a/mcp"))
    assert kept.path.parent == tmp_path / "oauth" and kept.path.exists()


async def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    kept = LoginStore(tmp_path, Keychain(Drawer())).login("a", "https://a/mcp", uses_keyring=False)
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text('{"profile":"a","url":"x","secrets":{"access_token":"t"}}')
    kept.path.parent.mkdir(parents=True, mode=0o700)
    kept.path.symlink_to(elsewhere)
    assert await kept.load() is None


async def test_a_login_that_somebody_else_holds_is_waited_for_and_then_named(tmp_path: Path) -> None:
    store = LoginStore(tmp_path, Keychain(Drawer()))
    async with store.login("a", "https://a/mcp").turn(1.0):
        with pytest.raises(Unauthorized, match="'a'"):
            async with store.login("a", "https://a/mcp").turn(0.05):
                pass
    async with store.login("a", "https://a/mcp").turn(0.05):
        pass


async def test_a_proxy_in_the_environment_sees_nothing_of_a_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        them.expire()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url)) == "5"


def test_nothing_heavy_is_imported_before_a_server_asks() -> None:
    script = (
        "import sys; from dari.bridge.oauth.persistent import oauth_for\n"
        "print([name for name in ('mcp', 'httpx2', 'pydantic', 'keyring', 'httptools') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert output.stdout == "[]\n"
