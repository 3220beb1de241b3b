"""`read-resource`: what stands behind an address."""

from __future__ import annotations

import argparse
from typing import Any

from msgspec import Raw

from dari.bridge.search.fuzzy import nearest_names
from dari.cli.kit.console import format_json, print_json, print_raw
from dari.cli.kit.parser import Command
from dari.cli.kit.table import format_size
from dari.cli.remote.context import OK, CommandContext, add_server_options, select_upstream, split_address
from dari.cli.remote.list import arguments_of
from dari.cli.remote.progress import Deadline, open_caller, trace_exchange
from dari.cli.remote.render import (
    ContentStore,
    add_output_options,
    format_block,
    format_resource,
    format_text,
    make_content_store,
)
from dari.errors import DariError, InvalidInput, NotFound
from dari.mcp.client.decode import read
from dari.mcp.client.results import PromptResult, ReadResult
from dari.rpc.codec import decode_any
from dari.text.sanitize import escape_hidden


def add_read_resource(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("uri", metavar="URI", help="an address that list-resources shows, or one that fits a template")
    add_server_options(parser)
    add_output_options(parser)


async def run_read_resource(arguments: argparse.Namespace, context: CommandContext) -> int:
    upstream = select_upstream(arguments, context)
    store = make_content_store(arguments.output, context, arguments.uri.rpartition("/")[2] or arguments.uri)
    deadline = Deadline(arguments.timeout)
    async with open_caller(context, upstream, arguments.uri, deadline) as caller:
        with trace_exchange(context, upstream, "resources/read", arguments.uri) as trace:
            async with deadline.over("resources/read"):
                result = await upstream.read_resource(arguments.uri, caller, timeout_s=deadline.limit_s)
            trace.note(format_size(len(bytes(result)), byte="bytes"))
    texts = _texts(result, arguments, store)
    if arguments.raw:
        print_raw(context.console, result)
    elif arguments.json:
        print_json(context.console, result)
    else:
        for text in texts:
            context.say(text)
    store.check()
    return OK


def _texts(result: Raw, arguments: argparse.Namespace, store: ContentStore) -> list[str]:
    if (arguments.json or arguments.raw) and not arguments.output:
        return []
    try:
        contents = read(result, ReadResult, "resources/read result").contents
    except DariError:
        return [format_json(decode_any(result))]
    # One text is printed as it is, so that it can be piped on.
    if len(contents) == 1 and isinstance(contents[0].text, str):
        return [format_text(contents[0].text)]
    return [format_resource(each, store) for each in contents] or ["(nothing)"]


def add_get_prompt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="PROMPT", help="the prompt's name, or SERVER/PROMPT")
    parser.add_argument(
        "--arg", metavar="NAME=VALUE", action="append", default=[], help="an argument of the prompt; repeatable"
    )
    add_server_options(parser)
    add_output_options(parser)


async def run_get_prompt(arguments: argparse.Namespace, context: CommandContext) -> int:
    server, name = split_address(arguments.name, arguments, context)
    upstream = select_upstream(arguments, context, server)
    given = _given(arguments.arg)
    deadline = Deadline(arguments.timeout)
    async with deadline.over("prompts/list"):
        prompts = {str(each.get("name")): each for each in await upstream.prompts()}
        if name not in prompts:
            prompts = {str(each.get("name")): each for each in await upstream.prompts(fresh=True)}
    _check(upstream.id, name, prompts, given, context)
    store = make_content_store(arguments.output, context, name)
    async with open_caller(context, upstream, f"{upstream.id}/{name}", deadline) as caller:
        with trace_exchange(context, upstream, "prompts/get", name) as trace:
            async with deadline.over("prompts/get"):
                result = await upstream.get_prompt(name, given, caller, timeout_s=deadline.limit_s)
            trace.note(format_size(len(bytes(result)), byte="bytes"))
    if arguments.raw:
        print_raw(context.console, result)
    elif arguments.json:
        print_json(context.console, result)
    if arguments.output or not (arguments.raw or arguments.json):
        lines = _messages(result, store)
        for line in lines if not (arguments.raw or arguments.json) else ():
            context.say(line)
    store.check()
    return OK


def _given(pairs: list[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InvalidInput(f"--arg must be NAME=VALUE, got '{pair[:60]}'", "--arg file=src/app.py")
        if name in given:
            raise InvalidInput(f"--arg {name} is given twice", "give it once")
        given[name] = value
    return given


def _check(
    server: str, name: str, prompts: dict[str, dict[str, Any]], given: dict[str, str], context: CommandContext
) -> None:
    prompt = prompts.get(name)
    if prompt is None:
        likely = nearest_names(name, prompts)
        hint = (
            f"did you mean {' or '.join(likely)}?"
            if likely
            else f"see: {context.program} list-prompts --server {server}"
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


def _messages(result: Raw, store: ContentStore) -> list[str]:
    try:
        prompt = read(result, PromptResult, "prompts/get result")
    except DariError:
        return [format_json(decode_any(result))]
    lines = [escape_hidden(prompt.description)] if prompt.description else []
    for message in prompt.messages:
        lines.append(f"[{message.role}]\n{format_block(message.content, store)}")
    return lines or ["(nothing)"]


COMMANDS = (
    Command(
        "read-resource",
        "Read a resource: text is printed, binary contents are described or saved.",
        add_read_resource,
        run_read_resource,
        examples=(
            ("read-resource file:///notes.txt --server docs", "text on stdout"),
            ("read-resource img://logo --server docs --output .", "binary contents into a file"),
            ("read-resource file:///notes.txt --server docs --json", "the result alone; binary contents stay base64"),
        ),
    ),
    Command(
        "get-prompt",
        "Fill in a prompt, and print its messages.",
        add_get_prompt,
        run_get_prompt,
        examples=(
            ("get-prompt docs/review --arg file=src/app.py --arg style=short", "messages, one after the other"),
            ("get-prompt review --server docs --arg file=src/app.py --json", "the result alone"),
        ),
    ),
)
