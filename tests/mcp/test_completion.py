"""`completion/complete`: values for an argument of a prompt or a variable of a template."""

from __future__ import annotations

from typing import Any

import pytest

from dari.core.content import PromptMessage
from dari.core.context import Context
from dari.core.prompt import Prompt, PromptArgument
from dari.core.resource import ResourceTemplate
from tests.support.mcp_server import Rig, ready, request
from tests.support.wire import Json, stateless

LETTER = {"type": "ref/prompt", "name": "letter"}
ITEM = {"type": "ref/resource", "uri": "demo://item/{id}"}


def complete(ref: Any, name: str = "to", value: str = "", **params: Any) -> Json:
    return request("completion/complete", ref=ref, argument={"name": name, "value": value}, **params)


@pytest.mark.parametrize("envelope", [False, True])
@pytest.mark.parametrize(("ref", "name"), [(LETTER, "to"), (ITEM, "id")])
@pytest.mark.parametrize(("typed", "values"), [("", ["one", "two", "three"]), ("t", ["two", "three"]), ("x", [])])
async def test_the_values_that_fit_what_was_typed(
    ref: Json, name: str, typed: str, values: list[str], envelope: bool
) -> None:
    rig = await ready()
    message = complete(ref, name, typed)
    result = (await rig.ask(stateless(message) if envelope else message))["result"]
    assert result["completion"] == {"values": values, "total": len(values), "hasMore": False}


@pytest.mark.parametrize(("ref", "name"), [(LETTER, "unknown"), (ITEM, "unknown")])
async def test_an_argument_that_nobody_completes_has_no_values(ref: Json, name: str) -> None:
    rig = await ready()
    assert (await rig.ask(complete(ref, name)))["result"]["completion"]["values"] == []


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"ref": LETTER},
        {"argument": {"name": "to", "value": ""}},
        {"ref": LETTER, "argument": {"name": "to"}},
        {"ref": LETTER, "argument": {"name": "to", "value": 5}},
        {"ref": {"type": "ref/prompt"}, "argument": {"name": "to", "value": ""}},
        {"ref": {"type": "ref/prompt", "name": "nobody"}, "argument": {"name": "to", "value": ""}},
        {"ref": {"type": "ref/resource", "uri": "demo://nothing"}, "argument": {"name": "to", "value": ""}},
        {"ref": {"type": "ref/resource"}, "argument": {"name": "to", "value": ""}},
        {"ref": {"type": "ref/tool", "name": "x"}, "argument": {"name": "to", "value": ""}},
        {"ref": "letter", "argument": {"name": "to", "value": ""}},
        {"ref": LETTER, "argument": {"name": "to", "value": ""}, "context": []},
    ],
)
async def test_what_names_no_argument_is_refused(params: Json) -> None:
    rig = await ready()
    assert (await rig.ask(request("completion/complete", **params)))["error"]["code"] == -32602


def with_completer(completer: Any, scope: str = "read") -> Rig:
    async def nothing(context: Context, given: dict[str, str]) -> list[PromptMessage]:
        return []

    async def body(context: Context, values: dict[str, str]) -> str:
        return ""

    rig = Rig()
    arguments = [PromptArgument("to", complete=completer)]
    rig.server.registry.add_prompt(Prompt("p", nothing, arguments=arguments, scope=scope))
    rig.server.registry.add_template(ResourceTemplate("p://{to}", "t", body, completers={"to": completer}, scope=scope))
    return rig


async def test_arguments_that_are_known_already_help() -> None:
    async def files(typed: str, known: dict[str, str]) -> list[str]:
        return [f"{known.get('folder', '?')}/{typed}"]

    rig = with_completer(files)
    await rig.agree()
    ref = {"type": "ref/prompt", "name": "p"}
    known = await rig.ask(complete(ref, value="a", context={"arguments": {"folder": "src"}}))
    assert known["result"]["completion"]["values"] == ["src/a"]
    assert (await rig.ask(complete(ref, value="a")))["result"]["completion"]["values"] == ["?/a"]
    assert (await rig.ask(complete(ref, value="a", context={})))["result"]["completion"]["values"] == ["?/a"]


@pytest.mark.parametrize(("count", "shown"), [(100, 100), (101, 100), (5000, 100)])
async def test_no_more_than_a_hundred_values_are_sent(count: int, shown: int) -> None:
    async def many(typed: str, known: dict[str, str]) -> list[str]:
        return [str(number) for number in range(count)]

    rig = with_completer(many)
    await rig.agree()
    completion = (await rig.ask(complete({"type": "ref/prompt", "name": "p"})))["result"]["completion"]
    assert len(completion["values"]) == shown
    assert (completion["total"], completion["hasMore"]) == (count, count > shown)


@pytest.mark.parametrize("ref", [{"type": "ref/prompt", "name": "p"}, {"type": "ref/resource", "uri": "p://{to}"}])
async def test_what_the_caller_may_not_use_is_not_completed_for_it_either(ref: Json) -> None:
    async def secret(typed: str, known: dict[str, str]) -> list[str]:
        return ["secret"]

    rig = with_completer(secret, scope="admin")
    await rig.agree()
    assert (await rig.ask(complete(ref)))["error"]["code"] == -32001
