"""The package `keyring` itself: which of its backends are trusted with a token, and one that is."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.backends.fail
import keyring.backends.null
import pytest

from dari.bridge.oauth import keychain as keychain_module
from dari.bridge.oauth.keychain import Keychain
from dari.bridge.oauth.store import Login, LoginSecrets, LoginStore
from tests.support.authorization_server import authority
from tests.support.oauth_users import echo, log_in, oauth_at

ROOT = Path(__file__).parents[3]


class Safe(keyring.backend.KeyringBackend):
    """A keyring as a desktop has one, for as long as the test runs."""

    priority = 5  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class Plain(Safe):
    """Like those of `keyrings.alt`, which write what they are given into a file."""

    priority = 0.5  # type: ignore[assignment]


# Defining a backend offers it to the whole process, other tests included.
keyring.backend.KeyringBackend._classes -= {Safe, Plain}


@pytest.fixture
def choose() -> Iterator[Any]:
    before = keyring.get_keyring()
    yield keyring.set_keyring
    keyring.set_keyring(before)


async def test_a_login_lies_in_the_systems_keyring_and_is_renewed_there(tmp_path: Path, choose: Any) -> None:
    safe = Safe()
    choose(safe)
    async with authority() as them:
        await log_in(tmp_path, them.resource_url, keyring=Keychain())
        them.expire()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, keyring=Keychain())) == "5"
        [(service, _)] = safe.kept
        assert service == "dari-oauth" and them.refreshes == 1
        files = b"".join(path.read_bytes() for path in (tmp_path / "oauth").iterdir())
        assert not any(secret.encode() in files for secret in them.secrets_given)


@pytest.mark.parametrize("backend", [keyring.backends.fail.Keyring, keyring.backends.null.Keyring, Plain])
async def test_what_is_no_safe_place_is_not_used(backend: Any, tmp_path: Path, choose: Any) -> None:
    choose(backend())
    keychain = Keychain()
    assert not await keychain.is_usable()
    kept = LoginStore(tmp_path, keychain).login("a", "https://a/mcp")
    await kept.save(Login(profile="a", url="https://a/mcp", secrets=LoginSecrets(access_token="t0ken")))
    assert "t0ken" in kept.path.read_text()


def test_a_backend_that_the_person_names_is_taken_as_it_is() -> None:
    script = (
        "import asyncio; from dari.bridge.oauth.keychain import Keychain; print(asyncio.run(Keychain().is_usable()))"
    )
    for backend, expected in (("Plain", "True\n"), ("Safe", "True\n")):
        environ = {**os.environ, "PYTHON_KEYRING_BACKEND": f"tests.bridge.oauth.test_system_keyring.{backend}"}
        done = subprocess.run([sys.executable, "-c", script], env=environ, cwd=ROOT, capture_output=True, text=True)
        assert done.stdout == expected, done.stderr


async def test_loading_a_keyring_may_take_longer_than_asking_it(monkeypatch: pytest.MonkeyPatch) -> None:
    timeout_s, is_released = 0.01, threading.Event()

    def load() -> Safe:
        is_released.wait()
        return Safe()

    monkeypatch.setattr(keychain_module, "_system_backend", load)
    asyncio.get_running_loop().call_later(10 * timeout_s, is_released.set)
    assert await Keychain(timeout_s=timeout_s).is_usable()
