"""From a refusal to a token: the person logs in once, and everybody after them uses what they left."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from dari.bridge.config.profile import AuthSettings
from dari.bridge.config.secret import Secret
from dari.bridge.oauth.metadata_override import MetadataOverride
from dari.bridge.oauth.persistent import oauth_for
from dari.errors import DariError, Denied
from dari.mcp.client.errors import Unauthorized
from tests.support.authorization_server import ANY_LOOPBACK, authority
from tests.support.oauth_users import Browser, NoKeychain, another_process, echo, get, log_in, oauth_at, profile_at


async def test_a_person_logs_in_once_through_the_listener(tmp_path: Path) -> None:
    async with authority() as them:
        browser = await log_in(tmp_path, them.resource_url)
        assert len(browser.shown) == 1 and "Logged in" in browser.pages[0]
        asked = them.authorizations[0]
        assert asked["code_challenge_method"] == "S256" and asked["resource"] == them.resource_url
        assert asked["scope"] == "tools"
        assert urlsplit(asked["redirect_uri"]).hostname == "127.0.0.1"
        assert them.seen.count("POST /register") == 1


async def test_a_second_process_uses_the_token_without_loading_the_sdk(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        refusals = them.refusals
        process = await another_process(tmp_path, them.resource_url)
        output, errors = await process.communicate(b"\n")
        assert output.decode().split("\n")[:2] == ["5", "[]"], errors.decode()
        assert them.refusals == refusals


async def test_the_file_is_for_nobody_else(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        folder = tmp_path / "oauth"
        files = list(folder.iterdir())
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert any(them.secrets_given[0] in path.read_text() for path in files)


async def test_a_profile_without_auth_says_to_log_in_where_the_server_speaks_oauth(tmp_path: Path) -> None:
    async with authority() as them:
        with pytest.raises(Unauthorized) as caught:
            await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, AuthSettings()))
        assert caught.value.hint == "run: dari remote login notes"
        assert them.seen == []  # nothing was registered, nobody was asked
        await log_in(tmp_path, them.resource_url, AuthSettings())
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, AuthSettings())) == "5"


async def test_a_server_that_does_not_speak_of_oauth_gets_a_hint_about_keys(tmp_path: Path) -> None:
    async with authority(advertises=False) as them:
        with pytest.raises(Unauthorized) as caught:
            await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, AuthSettings()))
        assert "apiKey" in caught.value.hint and "dari remote login notes" in caught.value.hint


async def test_a_person_who_says_no_ends_the_login(tmp_path: Path) -> None:
    async with authority(says_no=True) as them:
        browser = Browser()
        with pytest.raises(Unauthorized, match="access_denied"):
            await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, interact=browser))
        assert len(browser.shown) == 1


async def test_a_foreign_page_can_neither_answer_nor_end_a_login(tmp_path: Path) -> None:
    answers: list[tuple[int, str]] = []

    class Attacked(Browser):
        async def visit(self, url: str) -> None:
            query = parse_qs(urlsplit(url).query)
            back, state = query["redirect_uri"][0], query["state"][0]
            for attempt in ("?code=evil&state=guess", "?code=evil", "?error=access_denied&state=guess", "?state=", ""):
                status, _, body = await get(back + attempt)
                answers.append((status, body))
            # A name of the attacker's that leads to this machine, the right path with the right state.
            for host in (
                "evil.example:80",
                "127.0.0.1:evil.example",
                "[127.0.0.1]:80",
                "[[::1]]:80",
                "127.0.0.1:80:80",
            ):
                status, _, body = await get(f"{back}?code=evil&state={state}", host=host)
                answers.append((status, body))
            status, _, body = await get(f"{back}?code=evil&state={state}", method="POST")
            answers.append((status, body))
            await super().visit(url)

    async with authority() as them:
        browser = Attacked()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, interact=browser)) == "5"
        assert [status for status, _ in answers] == [400] * 5 + [421] * 5 + [405]
        assert not any("evil" in body or "guess" in body for _, body in answers)
        assert "Logged in" in browser.pages[0]


async def test_the_listener_is_gone_after_its_answer(tmp_path: Path) -> None:
    async with authority() as them:
        browser = await log_in(tmp_path, them.resource_url)
        back = parse_qs(urlsplit(browser.shown[0]).query)["redirect_uri"][0]
        with pytest.raises(OSError):
            await get(back)


async def test_a_connection_that_a_browser_opened_ahead_of_time_holds_nothing_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened: list[asyncio.StreamWriter] = []

    class Eager(Browser):
        async def visit(self, url: str) -> None:
            back = urlsplit(parse_qs(urlsplit(url).query)["redirect_uri"][0])
            opened.append((await asyncio.open_connection(back.hostname, back.port))[1])
            await super().visit(url)

    async with authority() as them, asyncio.timeout(8):
        browser = Eager()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, interact=browser)) == "5"
        assert "Logged in" in browser.pages[0]
        opened[0].close()
    assert [record for record in caplog.records if record.name == "asyncio"] == []


async def test_the_address_can_be_pasted_where_the_browser_is_elsewhere(tmp_path: Path) -> None:
    class Elsewhere(Browser):
        def __init__(self) -> None:
            super().__init__()
            self.arrived: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self.complaints: list[str] = []

        async def visit(self, url: str) -> None:
            _, headers, _ = await get(url)
            self.arrived.set_result(headers["location"])

        async def pasted(self, complaint: str) -> str:
            self.complaints.append(complaint)
            where = await self.arrived
            return where if len(self.complaints) > 1 else "http://127.0.0.1/callback?code=x&state=y"

    async with authority() as them:
        person = Elsewhere()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, interact=person)) == "5"
        assert person.complaints[0] == "" and "does not belong" in person.complaints[1]


async def test_a_second_login_comes_back_to_the_registered_address(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        them.revoke()
        await log_in(tmp_path, them.resource_url)
        first, second = them.authorizations
        assert first["redirect_uri"] == second["redirect_uri"] and first["client_id"] == second["client_id"]
        assert them.seen.count("POST /register") == 1


async def test_a_registered_port_that_is_taken_leads_to_a_new_registration(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        them.revoke()
        port = urlsplit(them.authorizations[0]["redirect_uri"]).port
        squatter = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", port)
        async with squatter:
            await log_in(tmp_path, them.resource_url)
        assert them.seen.count("POST /register") == 2
        assert them.authorizations[1]["client_id"] == "client-2"


async def test_a_registration_that_the_server_has_forgotten_is_made_anew(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        them.expire()
        del them.clients["client-1"]
        them.clients["other"] = {}
        await log_in(tmp_path, them.resource_url)
        assert them.authorizations[-1]["client_id"] == "client-2"


async def test_more_rights_are_asked_for_when_a_call_needs_them(tmp_path: Path) -> None:
    async with authority() as them:
        await log_in(tmp_path, them.resource_url)
        them.needs_scope = "admin"
        with pytest.raises(Unauthorized) as caught:
            await echo(them.resource_url, oauth_at(tmp_path, them.resource_url))
        assert "dari remote login notes --again" in caught.value.hint
        await log_in(tmp_path, them.resource_url)
        assert set(them.authorizations[-1]["scope"].split()) == {"tools", "admin"}


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_client_with_a_secret_needs_no_person(tmp_path: Path, method: str) -> None:
    auth = AuthSettings(
        type="oauth2", client_id="robot", client_secret=Secret("robot-secret"), scopes=("tools", "more")
    )
    async with authority(methods=[method]) as them:
        them.clients["robot"] = {"client_secret": "robot-secret", "redirect_uris": []}
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, auth)) == "5"
        assert [one["grant_type"] for one in them.token_requests] == ["client_credentials"]
        assert them.token_requests[0]["scope"] == "tools more"
        them.expire()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, auth)) == "5"
        assert len(them.token_requests) == 2


async def test_the_secret_of_a_client_goes_to_no_other_authorization_server(tmp_path: Path) -> None:
    auth = AuthSettings(type="oauth2", client_id="robot", client_secret=Secret("robot-secret"))
    async with authority() as them, authority() as others:
        them.clients["robot"] = {"client_secret": "robot-secret", "redirect_uris": []}
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, auth)) == "5"
        them.expire()
        true_origin, them.origin = them.origin, others.origin
        with pytest.raises(Unauthorized) as caught:
            await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, auth))
        assert others.token_requests == [] and "robot-secret" not in caught.value.message
        them.origin = true_origin


async def test_the_secret_of_a_client_that_a_person_logs_in_goes_to_no_other_authorization_server(
    tmp_path: Path,
) -> None:
    probe = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    back = f"http://localhost:{probe.sockets[0].getsockname()[1]}/come/back"
    probe.close()
    await probe.wait_closed()
    auth = AuthSettings(type="oauth2", client_id="mine", client_secret=Secret("my-secret"), redirect_url=back)
    async with authority(has_registration=False) as them, authority(has_registration=False) as others:
        for one in (them, others):
            one.clients["mine"] = {"client_secret": "my-secret", "redirect_uris": [back]}
        await log_in(tmp_path, them.resource_url, auth)
        assert [one["grant_type"] for one in them.token_requests] == ["authorization_code"]
        them.revoke()
        true_origin, them.origin = them.origin, others.origin
        with pytest.raises(DariError):
            await log_in(tmp_path, them.resource_url, auth)
        assert others.token_requests == []
        them.origin = true_origin


async def test_a_registered_client_scopes_port_and_path_of_the_profile_are_used(tmp_path: Path) -> None:
    probe = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = probe.sockets[0].getsockname()[1]
    probe.close()
    await probe.wait_closed()
    back = f"http://localhost:{port}/come/back"
    auth = AuthSettings(
        type="oauth2", client_id="mine", redirect_url=back, scopes=("a", "b"), resource="https://r.example/x"
    )
    async with authority(has_registration=False) as them:
        them.clients["mine"] = {"redirect_uris": [back]}
        await log_in(tmp_path, them.resource_url, auth)
        asked = them.authorizations[0]
        assert (asked["client_id"], asked["redirect_uri"], asked["scope"]) == ("mine", back, "a b")
        assert asked["resource"] == them.token_requests[0]["resource"] == "https://r.example/x"
        them.expire()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, auth)) == "5"
        assert them.token_requests[-1]["resource"] == "https://r.example/x"


async def test_a_client_metadata_document_takes_the_place_of_registration(tmp_path: Path) -> None:
    document = "https://dari.example/client.json"
    auth = AuthSettings(type="oauth2", client_metadata_url=document)
    async with authority(supports_documents=True) as them:
        them.clients[document] = {"redirect_uris": ANY_LOOPBACK}
        await log_in(tmp_path, them.resource_url, auth)
        assert them.authorizations[0]["client_id"] == document
        assert "POST /register" not in them.seen


async def test_metadata_at_an_unusual_place_are_found_where_the_profile_says(tmp_path: Path) -> None:
    async with authority(metadata_path="/odd/place", advertises=False) as them:
        auth = AuthSettings(type="oauth2", metadata_url=f"{them.origin}/odd/place")
        await log_in(tmp_path, them.resource_url, auth)
        assert them.seen[0] == "GET /odd/place"
        them.expire()
        assert await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, auth)) == "5"
        assert them.refreshes == 1


async def test_addresses_in_the_profile_need_no_metadata_at_all(tmp_path: Path) -> None:
    async with authority(metadata_path="/nowhere", advertises=False, has_registration=False) as them:
        auth = AuthSettings(
            type="oauth2",
            client_id="mine",
            authorization_url=f"{them.origin}/authorize",
            token_url=f"{them.origin}/token",
        )
        them.clients["mine"] = {"redirect_uris": ANY_LOOPBACK}
        await log_in(tmp_path, them.resource_url, auth)
        assert them.seen == ["GET /authorize", "POST /token"]


async def test_an_authorization_server_without_encryption_at_a_strange_host_is_refused(tmp_path: Path) -> None:
    async with authority() as them:
        them.origin = "http://login.example"
        with pytest.raises(Denied, match=r"http://login\.example") as caught:
            await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, interact=Browser()))
        assert "https" in caught.value.hint


async def test_a_server_cannot_send_us_to_another_port_of_this_machine(tmp_path: Path) -> None:
    async with authority() as them:
        profile = profile_at(them.resource_url, is_trusted=False)
        oauth = oauth_for(profile, them.resource_url, home=tmp_path, keyring=NoKeychain(), interact=Browser())
        assert oauth is not None
        with pytest.raises(Denied):
            await echo(them.resource_url, oauth)
        assert them.seen == []


@pytest.mark.parametrize(
    "url",
    [
        *("https://127.0.0.1:9/", "https://localhost/", "https://[::1]/", "https://[::ffff:10.0.0.1]/"),
        *(
            "https://10.1.2.3/",
            "https://169.254.169.254/latest",
            "https://192.168.0.1/",
            "https://0.0.0.0/",
            "https://2130706433/",
        ),
    ],
)
async def test_addresses_on_this_machine_and_private_networks_are_not_asked(url: str) -> None:
    with pytest.raises(Denied):
        await MetadataOverride(AuthSettings(type="oauth2"), "https://mcp.example/mcp")._check_target(url)


async def test_the_servers_own_address_and_public_ones_are_asked() -> None:
    directions = MetadataOverride(AuthSettings(type="oauth2"), "http://127.0.0.1:5000/mcp")
    await directions._check_target("http://127.0.0.1:5000/token")
    await directions._check_target("https://1.1.1.1/token")


@pytest.mark.parametrize("methods", [["plain"], [], None, "S256"])
async def test_an_authorization_server_without_s256_is_refused(tmp_path: Path, methods: Any) -> None:
    async with authority() as them:
        them.pkce = methods
        with pytest.raises(Denied, match="S256"):
            await echo(them.resource_url, oauth_at(tmp_path, them.resource_url, interact=Browser()))
        assert "POST /token" not in them.seen
