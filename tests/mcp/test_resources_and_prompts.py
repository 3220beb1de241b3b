"""`resources/read` and `prompts/get`: bodies, arguments, scopes and failures."""

from __future__ import annotations

from typing import Any

import pytest

from dari.core.content import PromptMessage
from dari.core.context import Context
from dari.core.prompt import Prompt
from dari.core.resource import Resource, ResourceTemplate
from dari.errors import NotFound
from tests.support.mcp_server import STATELESS, VERSIONS, Rig, ready, request
from tests.support.wire import Json, stateless


async def asked(version: str, message: Json, rig: Rig | None = None) -> Json:
    rig = rig or Rig()
    if version == STATELESS:
        return await rig.ask(stateless(message))
    await rig.agree(version)
    return await rig.ask(message)


@pytest.mark.parametrize("version", [*VERSIONS, STATELESS])
@pytest.mark.parametrize(
    ("uri", "contents"),
    [
        ("demo://note", {"uri": "demo://note", "text": "a note", "mimeType": "text/plain"}),
        ("demo://blob", {"uri": "demo://blob", "blob": "AAE=", "mimeType": "application/octet-stream"}),
        ("demo://item/9", {"uri": "demo://item/9", "text": "item 9"}),
        ("demo://item/a%20b", {"uri": "demo://item/a%20b", "text": "item a b"}),
    ],
)
async def test_a_resource_is_text_or_base64_under_the_uri_that_was_asked_for(
    version: str, uri: str, contents: Json
) -> None:
    reply = await asked(version, request("resources/read", uri=uri))
    assert reply["result"]["contents"] == [contents]


@pytest.mark.parametrize(("version", "code"), [*((version, -32002) for version in VERSIONS), (STATELESS, -32602)])
async def test_an_unknown_uri_is_not_found_with_the_code_of_its_era(version: str, code: int) -> None:
    reply = await asked(version, request("resources/read", uri="demo://nothing"))
    assert (reply["error"]["code"], reply["error"]["data"]) == (code, {"uri": "demo://nothing"})


async def test_a_resource_stands_before_a_template_that_would_match_it() -> None:
    async def fixed(context: Context) -> str:
        return "fixed"

    rig = Rig()
    rig.server.registry.add_resource(Resource("demo://item/1", "one", fixed))
    reply = await asked(VERSIONS[-1], request("resources/read", uri="demo://item/1"), rig)
    assert reply["result"]["contents"][0]["text"] == "fixed"


@pytest.mark.parametrize("version", [*VERSIONS, STATELESS])
async def test_a_prompt_is_rendered_with_its_arguments(version: str) -> None:
    result = (await asked(version, request("prompts/get", name="letter", arguments={"to": "Minji"})))["result"]
    assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": "Dear Minji"}}]
    assert result["description"] == "Write a letter"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": "nobody"},
        {"name": "letter"},
        {"name": "letter", "arguments": {}},
        {"name": "letter", "arguments": {"to": 5}},
        {"name": "letter", "arguments": ["to"]},
        {"name": "letter", "arguments": {"to": "x", "extra": "y"}},
    ],
)
async def test_arguments_that_do_not_fit_a_prompt_are_invalid_params(params: Json) -> None:
    rig = await ready()
    reply = await rig.ask(request("prompts/get", **params))
    assert reply["error"]["code"] == -32602
    assert not rig.wire.session.running


async def test_a_read_without_a_uri_is_invalid() -> None:
    rig = await ready()
    reply = await rig.ask(request("resources/read"))
    assert (reply["error"]["code"], bool(reply["error"]["data"]["hint"])) == (-32602, True)


def failing(error: Exception, scope: str = "read") -> Rig:
    """A server whose resource, template and prompt raise."""

    async def body(context: Context, values: Any = None) -> str:
        raise error

    async def letter(context: Context, given: dict[str, str]) -> list[PromptMessage]:
        raise error

    rig = Rig()
    rig.server.registry.add_resource(Resource("x://fixed", "x", body, scope=scope))
    rig.server.registry.add_template(ResourceTemplate("x://{any}", "x", body, scope=scope))
    rig.server.registry.add_prompt(Prompt("x", letter, scope=scope))
    return rig


CALLS = [
    request("resources/read", uri="x://fixed"),
    request("resources/read", uri="x://other"),
    request("prompts/get", name="x"),
]


@pytest.mark.parametrize("version", [*VERSIONS, STATELESS])
@pytest.mark.parametrize("message", CALLS)
async def test_a_failure_is_a_json_rpc_error_with_its_name_and_hint_in_every_version(
    version: str, message: Json
) -> None:
    rig = failing(NotFound("pane 7 does not exist", "list the panes"))
    error = (await asked(version, message, rig))["error"]
    assert (error["code"], error["message"]) == (-32004, "Tool execution failed: pane 7 does not exist")
    assert error["data"] == {"name": "not_found", "hint": "list the panes"}


@pytest.mark.parametrize("message", CALLS)
async def test_a_caller_without_the_scope_is_refused(message: Json) -> None:
    error = (await asked(VERSIONS[-1], message, failing(RuntimeError("must not run"), "admin")))["error"]
    assert (error["code"], error["message"]) == (-32001, "Forbidden: insufficient scope")
    assert error["data"]["name"] == "insufficient_scope"
