"""Resources, templates, prompts and completions of other servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gateway import House, demo, house, lab, replied, seen
from tests.support.mcp_server import request
from tests.support.wire import Json, stateless

pytestmark = pytest.mark.local_mcp

ERAS = ["handshake", "stateless"]


async def read(home: House, uri: str, era: str = "handshake") -> Json:
    if era == "stateless":
        return await home.ask(stateless(request("resources/read", uri=uri)))
    return await replied(await home.client(), request("resources/read", uri=uri))


@pytest.mark.parametrize("era", ERAS)
async def test_a_resource_is_read_with_every_field_of_the_answer(tmp_path: Path, era: str) -> None:
    async with house(tmp_path, lab(), demo()) as home:
        await home.names()
        result = (await read(home, "lab://one", era))["result"]
        assert result["contents"] == [{"uri": "lab://one", "text": "contents", "odd": True}]
        assert result["more"] == 1
        if era == "stateless":
            assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")
        else:
            assert "resultType" not in result
        assert (await read(home, "demo://note", era))["result"]["contents"][0]["text"] == "a note"


@pytest.mark.parametrize("era", ERAS)
async def test_a_template_leads_to_its_server(tmp_path: Path, era: str) -> None:
    async with house(tmp_path, lab(), demo()) as home:
        await home.names()
        listed = (await home.ask(stateless(request("resources/templates/list"))))["result"]["resourceTemplates"]
        assert [one["uriTemplate"] for one in listed] == ["lab://item/{id}", "demo://item/{id}"]
        assert (await read(home, "demo://item/7", era))["result"]["contents"][0]["text"] == "item 7"
        assert (await read(home, "lab://item/a%20b", era))["result"]["contents"][0]["uri"] == "lab://item/a%20b"


async def test_a_uri_that_no_list_names_goes_where_a_template_begins_like_it(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), demo()) as home:
        await home.names()
        assert (await read(home, "lab://item/1/more?x=1"))["result"]["contents"][0]["text"] == "contents"
        assert (await read(home, "other://x"))["error"]["code"] == -32002


async def test_where_there_is_one_server_every_uri_is_its(tmp_path: Path) -> None:
    async with house(tmp_path, demo()) as home:
        await home.names()
        reply = await read(home, "other://x")
        assert "Resource not found" in reply["error"]["message"]


async def test_what_is_not_there_is_said_as_the_clients_era_says_it(tmp_path: Path) -> None:
    async with house(tmp_path, demo(era="handshake")) as home:
        await home.names()
        assert (await read(home, "demo://nothing/x"))["error"]["code"] == -32002
        assert (await read(home, "demo://nothing/x", "stateless"))["error"]["code"] == -32602


async def test_a_uri_that_two_servers_list_belongs_to_the_first(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), lab("two")) as home:
        await home.names()
        listed = (await home.ask(stateless(request("resources/list"))))["result"]["resources"]
        assert [one["uri"] for one in listed] == ["lab://one", "dari://two/lab://one"]
        again = (await read(home, "dari://two/lab://one"))["result"]["contents"]
        assert again == [{"uri": "lab://one", "text": "contents", "odd": True}]
        item = (await read(home, "dari://two/lab://item/4"))["result"]["contents"]
        assert item[0]["uri"] == "lab://item/4"


@pytest.mark.parametrize("era", ERAS)
async def test_a_prompt_is_filled_in_by_its_server(tmp_path: Path, era: str) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        message = request("prompts/get", name="lab__hi", arguments={"who": "Minji", "more": "x"})
        wire = await home.client()
        result = (await replied(wire, stateless(message) if era == "stateless" else message))["result"]
        assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": "hi Minji"}}]
        missing = await replied(wire, request("prompts/get", name="lab__hi", arguments={}))
        assert missing["error"]["code"] == -32602


async def test_completions_are_the_servers(tmp_path: Path) -> None:
    async with house(tmp_path, demo()) as home:
        await home.names()
        wire = await home.client()
        for ref in (
            {"type": "ref/prompt", "name": "demo__letter"},
            {"type": "ref/resource", "uri": "demo://item/{id}"},
        ):
            argument = {"name": "to" if "name" in ref else "id", "value": "t"}
            reply = await replied(wire, request("completion/complete", ref=ref, argument=argument))
            assert reply["result"]["completion"]["values"] == ["two", "three"]


def subscribed(home: House) -> list[int]:
    return [sum(mount.upstream._subscriptions._wanted.values()) for mount in home.front.gateway.mounts]


async def test_a_resource_is_watched_once_however_many_clients_watch_it(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        first, second = await home.client(), await home.client()
        for wire in (first, second):
            wire.send(request("resources/subscribe", "sub", uri="lab://one"))
        for wire in (first, second):
            heard = [await wire.messages.get(), await wire.messages.get()]
            assert {one.get("method", "reply") for one in heard} == {"reply", "notifications/resources/updated"}
        assert subscribed(home) == [1]
        await first.ask(request("resources/unsubscribe", uri="lab://one"))
        assert subscribed(home) == [1]
        assert second.session is not None
        home.server.close_session(second.session)
        await seen(lambda: subscribed(home) == [0])


async def test_a_listener_of_the_stateless_era_hears_of_updates_too(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), lab("two")) as home:
        await home.names()
        wanted = {"resourceSubscriptions": ["dari://two/lab://one"]}
        home.send(stateless(request("subscriptions/listen", "listen", notifications=wanted)))
        assert (await home.next())["method"] == "notifications/subscriptions/acknowledged"
        updated = await home.next()
        assert updated["method"] == "notifications/resources/updated"
        assert updated["params"]["uri"] == "dari://two/lab://one"
        home.server.end_listening()
        assert (await home.next())["result"]["resultType"] == "complete"
        await seen(lambda: subscribed(home) == [0, 0])
