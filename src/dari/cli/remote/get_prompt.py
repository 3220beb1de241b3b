"""`get-prompt`: a prompt with its arguments filled in."""

from __future__ import annotations

import argparse
from typing import Any

from msgspec import Raw

from dari.bridge.search.fuzzy import nearest_names
from dari.cli.remote.callers import calling
from dari.cli.remote.choosing import add_server, split_address, upstream_of
from dari.cli.remote.contents import Saved, block_text, saved
from dari.cli.remote.deadlines import Deadline
from dari.cli.remote.failures import OK
from dari.cli.remote.list_prompts import arguments_of
from dari.cli.remote.payloads import pretty, print_json, print_raw, size_text
from dari.cli.remote.results import add_output
from dari.cli.remote.tracing import traced
from dari.cli.remote.world import World
from dari.errors import DariError, InvalidInput, NotFound
from dari.mcp.client.decode import read
from dari.mcp.client.results import PromptResult
from dari.rpc.codec import decode_any
from dari.text.sanitize import escape_hidden

NAME = "get-prompt"
HELP = "Fill in a prompt, and print its messages."
EXAMPLES = (
    ("get-prompt docs/review --arg file=src/app.py --arg style=short", "messages, one after the other"),
    ("get-prompt review --server docs --arg file=src/app.py --json", "the result alone"),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="PROMPT", help="the prompt's name, or SERVER/PROMPT")
    parser.add_argument(
        "--arg", metavar="NAME=VALUE", action="append", default=[], help="an argument of the prompt; repeatable"
    )
    add_server(parser)
    add_output(parser)


async def run(arguments: argparse.Namespace, world: World) -> int:
    server, name = split_address(arguments.name, arguments, world)
    upstream = upstream_of(arguments, world, server)
    given = _given(arguments.arg)
    deadline = Deadline(arguments.timeout)
    async with deadline.over("prompts/list"):
        prompts = {str(each.get("name")): each for each in await upstream.prompts()}
        if name not in prompts:
            prompts = {str(each.get("name")): each for each in await upstream.prompts(fresh=True)}
    _check(upstream.id, name, prompts, given, world)
    async with calling(world, upstream, f"{upstream.id}/{name}", deadline) as caller:
        with traced(world, upstream, "prompts/get", name) as trace:
            async with deadline.over("prompts/get"):
                result = await upstream.get_prompt(name, given, caller, timeout_s=deadline.limit_s)
            trace.note(size_text(len(bytes(result))))
    if arguments.raw:
        print_raw(world.terminal, result)
    elif arguments.json:
        print_json(world.terminal, result)
    if arguments.output or not (arguments.raw or arguments.json):
        lines = _messages(result, saved(arguments.output, world, name))
        for line in lines if not (arguments.raw or arguments.json) else ():
            world.say(line)
    return OK


def _given(pairs: list[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InvalidInput(f"--arg '{pair[:60]}' is no NAME=VALUE", "--arg file=src/app.py")
        if name in given:
            raise InvalidInput(f"--arg {name} is given twice", "give it once")
        given[name] = value
    return given


def _check(server: str, name: str, prompts: dict[str, dict[str, Any]], given: dict[str, str], world: World) -> None:
    prompt = prompts.get(name)
    if prompt is None:
        likely = nearest_names(name, prompts)
        hint = (
            f"did you mean {' or '.join(likely)}?" if likely else f"see: {world.program} list-prompts --server {server}"
        )
        raise NotFound(f"server '{server}' has no prompt '{name[:100]}'", hint)
    listed = arguments_of(prompt)
    names = [each["name"] for each in listed]
    if absent := [each["name"] for each in listed if each.get("required") and each["name"] not in given]:
        raise InvalidInput(f"'{name}' needs {', '.join(absent)}", " ".join(f"--arg {each}=VALUE" for each in absent))
    for each in given:
        if each not in names:
            likely = nearest_names(each, names, 1)
            hint = f"did you mean {likely[0]}? " if likely else ""
            raise InvalidInput(f"'{name}' has no argument {each}", f"{hint}it takes: {', '.join(names) or 'none'}")


def _messages(result: Raw, store: Saved) -> list[str]:
    try:
        prompt = read(result, PromptResult, "prompts/get result")
    except DariError:
        return [pretty(decode_any(result))]
    lines = [escape_hidden(prompt.description)] if prompt.description else []
    for message in prompt.messages:
        lines.append(f"[{message.role}]\n{block_text(message.content, store)}")
    return lines or ["(nothing)"]
