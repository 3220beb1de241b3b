"""`describe`: a tool's arguments and an example call."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import Any

from dari.cli.kit.console import print_json
from dari.cli.kit.parser import Command
from dari.cli.kit.table import wrap_prose
from dari.cli.remote.call import OWN_OPTIONS, find_tool
from dari.cli.remote.context import OK, CommandContext, add_server_options, select_upstream, split_address
from dari.cli.remote.input_schema import ObjectSchema, Schema, SchemaArgument, example_of, type_text, types_of
from dari.cli.remote.progress import Deadline
from dari.text.sanitize import escape_hidden

_HINTS = (
    ("readOnlyHint", True, "changes nothing"),
    ("readOnlyHint", False, "changes something"),
    ("destructiveHint", True, "may destroy something"),
    ("idempotentHint", True, "may be repeated"),
    ("openWorldHint", True, "reaches out to other systems"),
)


def describe_tool(server: str, shown: dict[str, Any], context: CommandContext, command: str = "call-tool") -> None:
    name = escape_hidden(str(shown.get("name", "")), one_line=True)
    title = shown.get("title")
    context.say(f"{server}/{name}" + (f" – {escape_hidden(title, one_line=True)}" if isinstance(title, str) else ""))
    description = shown.get("description")
    for line in wrap_prose(description, context.console.columns) if isinstance(description, str) else ():
        context.say(line)
    shape = ObjectSchema(shown.get("inputSchema"))
    _say_arguments(shape, context)
    output = ObjectSchema(shown.get("outputSchema")) if isinstance(shown.get("outputSchema"), dict) else None
    if output is not None:
        members = ", ".join(f"{each.name} ({type_text(each.schema, output.root)})" for each in output.arguments)
        _say_part(
            context, "returns", [f"  {escape_hidden(members, one_line=True)}" if members else "  structured content"]
        )
    if hints := _hints(shown):
        _say_part(context, "the server says", [f"  {hints}"])
    _say_part(context, "example", example_calls(server, name, shape, context.program, command))


def example_calls(server: str, name: str, shape: ObjectSchema, program: str, command: str) -> list[str]:
    """The same call with flags and with JSON; required arguments, or the first one."""
    required = [each for each in shape.arguments if each.is_required] or list(shape.arguments[:1])
    values = {each.name: example_of(each.schema, shape.root, each.name) for each in required}
    address = shlex.quote(f"{server}/{name}")
    flags = [flag for each in required for flag in _flags(each, values[each.name], shape.root)]
    clashes = any(each.name in OWN_OPTIONS for each in required)
    calls = [" ".join(("  " + program, command, address, *(["--"] if clashes else []), *flags))]
    if values:
        text = json.dumps(values, ensure_ascii=False)
        calls.append(f"  {program} {command} {address} --params {shlex.quote(text)}")
    return [escape_hidden(call, one_line=True) for call in calls]


def _flags(argument: SchemaArgument, value: Any, root: Schema) -> list[str]:
    flag = f"--{argument.name}"
    if isinstance(value, bool) and types_of(argument.schema, root) == {"boolean"}:
        return [flag if value else f"--no-{argument.name}"]
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return [word for each in value for word in (flag, shlex.quote(each))]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return [flag, shlex.quote(text)]


def _say_arguments(shape: ObjectSchema, context: CommandContext) -> None:
    if not shape.arguments:
        _say_part(context, "arguments", ["  any: --name value" if shape.takes_any else "  none"])
        return
    lines: list[str] = []
    for each in shape.arguments:
        facts = [type_text(each.schema, shape.root)]
        if each.is_required:
            facts.append("required")
        if "default" in each.schema:
            facts.append(f"default {json.dumps(each.schema['default'], ensure_ascii=False)}")
        lines.append(
            "  " + escape_hidden(f"--{each.name}  ({'; '.join([*facts, *_bounds(each.schema)])})", one_line=True)
        )
        lines += wrap_prose(each.description, context.console.columns, "      ")
    _say_part(context, "arguments", lines)


def _bounds(schema: Schema) -> list[str]:
    words = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "more than",
        "exclusiveMaximum": "less than",
        "minLength": "characters, at least",
        "maxLength": "characters, at most",
        "minItems": "members, at least",
        "maxItems": "members, at most",
        "pattern": "like",
        "format": "format",
    }
    return [f"{text} {schema[word]}" for word, text in words.items() if isinstance(schema.get(word), int | float | str)]


def _hints(shown: dict[str, Any]) -> str:
    annotations = shown.get("annotations")
    if not isinstance(annotations, dict):
        return ""
    effects = [text for name, value, text in _HINTS if annotations.get(name) is value]
    return f"it {', '.join(effects)}" if effects else ""


def _say_part(context: CommandContext, head: str, lines: list[str]) -> None:
    context.say(f"\n{head}:")
    for line in lines:
        context.say(line)


def add_describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tool", metavar="TOOL", help="the tool's name, or SERVER/TOOL")
    add_server_options(parser)
    parser.add_argument("--json", action="store_true", help="print the tool alone, as JSON")


async def run_describe(arguments: argparse.Namespace, context: CommandContext) -> int:
    server, name = split_address(arguments.tool, arguments, context)
    upstream = select_upstream(arguments, context, server)
    tool = await find_tool(upstream, name, Deadline(arguments.timeout), context)
    if arguments.json:
        print_json(context.console, {"server": upstream.id, **tool.shown})
    else:
        describe_tool(upstream.id, tool.shown, context)
    return OK


COMMANDS = (
    Command(
        "describe",
        "Show a tool's arguments, with types and defaults, and an example call.",
        add_describe,
        run_describe,
        examples=(
            ("describe fs/read_file", "what it takes, readable, and a call to copy"),
            ("describe read_file --server fs --json", "the tool as its server lists it, schema and all"),
        ),
    ),
)
