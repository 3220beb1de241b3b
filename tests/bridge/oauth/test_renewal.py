"""Tokens that end: renewed once, whoever notices first, in whichever process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dari.bridge.config.profile import AuthSettings
from dari.errors import Unavailable
from dari.mcp.client.client import Client
from dari.mcp.client.errors import Unauthorized
from dari.transport.client.http import HttpChannel
from tests.support.authorization_server import ANY_LOOPBACK, authority
from tests.support.oauth_users import Browser, another_process, echo, log_in, oauth_at


async def test_an_expired_token_is_refreshed_without_a_person(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        them.expire()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url)) == "5"
        assert (them.refreshes, len(them.authorizations)) == (1, 1)
        assert them.token_requests[-1]["resource"] == them.resource_url
        them.expire()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url)) == "5"
        assert them.refreshes == 2


async def test_twenty_calls_at_the_end_of_a_token_make_one_refresh(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        oauth = oauth_at(tmp_path, them.resource_url)
        async with Client(HttpChannel(them.resource_url, oauth=oauth)) as client:
            them.expire()
            texts = ["x" * size for size in range(1, 21)]
            results = await asyncio.gather(*(client.call_tool("demo_size", {"text": text}) for text in texts))
        assert [result.text for result in results] == [str(size) for size in range(1, 21)]
        assert them.refreshes == 1


async def test_twenty_sessions_with_a_store_in_common_make_one_refresh(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        them.expire()
        sessions = (echo(them.resource_url, oauth_at(tmp_path, them.resource_url)) for _ in range(20))
        assert await asyncio.gather(*sessions) == ["5"] * 20
        assert them.refreshes == 1


async def test_processes_that_refresh_at_once_do_not_take_the_token_from_each_other(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        processes = [await another_process(tmp_path, them.resource_url, count=3) for _ in range(3)]
        them.expire()
        told = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
        for output, errors in told:
            assert output.decode().split("\n")[0] == "5 5 5", errors.decode()
        assert them.refreshes == 1
        assert not them.families[0].is_revoked
        them.expire()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url)) == "5"


async def test_a_refresh_that_was_revoked_says_to_log_in(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        them.revoke()
        for _ in range(2):
            with pytest.raises(Unauthorized) as caught:
                await echo(them.resource_url, oauth_at(tmp_path, them.resource_url))
            assert "not valid any more" in caught.value.message
            assert caught.value.hint == "run: dari remote login notes"
        assert them.refreshes == 1  # what is known to be worth nothing is not sent again
        assert len(them.authorizations) == 1 and them.seen.count("POST /register") == 1
        await log_in(tmp_path, them.resource_url)
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url)) == "5"


async def test_a_revoked_login_of_a_registered_client_is_still_called_a_login(tmp_path: Path) -> None:
    auth = AuthSettings(type="oauth2", client_id="mine")
    async with authority(has_registration=False) as them:
        them.clients["mine"] = {"redirect_uris": ANY_LOOPBACK}
        await log_in(tmp_path, them.resource_url, auth)
        them.revoke()
        for _ in range(2):
            with pytest.raises(Unauthorized):
                await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, auth))


async def test_a_person_is_asked_when_a_refresh_was_revoked_before_their_eyes(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        them.revoke()
        browser = Browser()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, interact=browser)) == "5"
        assert len(browser.shown) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_an_authorization_server_that_is_ill_costs_no_login(tmp_path: Path, status: int) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        them.expire()
        them.refresh_status = status
        with pytest.raises(Unavailable, match=f"HTTP {status}"):
            await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, interact=Browser()))
        them.refresh_status = 200
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url)) == "5"
        assert len(them.authorizations) == 1


async def test_an_authorization_server_that_is_away_costs_no_login(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        them.expire()
        [path] = (tmp_path / "oauth").glob("*.json")
        kept = path.read_text()
        port = them.origin.rpartition(":")[2]
        path.write_text(kept.replace(f":{port}/token", ":1/token"))
        with pytest.raises(Unavailable, match=r"127\.0\.0\.1"):
            await echo(them.resource_url, oauth_at(tmp_path, them.resource_url))
        path.write_text(kept)
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url)) == "5"


async def test_a_login_elsewhere_is_noticed_by_a_session_that_is_open(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        async with Client(HttpChannel(them.resource_url, oauth=oauth_at(tmp_path, them.resource_url))) as client:
            them.revoke()
            with pytest.raises(Unauthorized):
                await client.call_tool("demo_size", {"text": "a"})
            await log_in(tmp_path, them.resource_url)
            assert (await client.call_tool("demo_size", {"text": "ab"})).text == "2"


async def test_a_damaged_file_is_a_login_that_is_missing(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        [path] = (tmp_path / "oauth").glob("*.json")
        for damage in ("", "{", "[]", json.dumps({"format": 99, "profile": "notes", "url": "x"})):
            path.write_text(damage)
            with pytest.raises(Unauthorized):
                await echo(them.resource_url, oauth_at(tmp_path, them.resource_url))


async def test_another_profile_or_address_has_a_login_of_its_own(tmp_path: Path) -> None:
    async with authority() as them, authority() as others:
        await log_in(tmp_path, them.resource_url)
        with pytest.raises(Unauthorized):
            await echo(others.resource_url, oauth_at(tmp_path, others.resource_url))
        assert others.access == {}
