"""A tool for people: what it does, its flags with types, what it says about itself, and a call to copy."""

from __future__ import annotations

import json
import shlex
from typing import Any

from dari.cli.remote.payloads import wrapped
from dari.cli.remote.schemas import Argument, Schema, Shape, example_of, type_text, types_of
from dari.cli.remote.words import OWN_OPTIONS
from dari.cli.remote.world import World
from dari.text.sanitize import escape_hidden

_HINTS = (
    ("readOnlyHint", True, "changes nothing"),
    ("readOnlyHint", False, "changes something"),
    ("destructiveHint", True, "may destroy something"),
    ("idempotentHint", True, "may be repeated"),
    ("openWorldHint", True, "reaches out to other systems"),
)


def describe_tool(server: str, shown: dict[str, Any], world: World, command: str = "call-tool") -> None:
    name = escape_hidden(str(shown.get("name", "")), one_line=True)
    title = shown.get("title")
    world.say(f"{server}/{name}" + (f" – {escape_hidden(title, one_line=True)}" if isinstance(title, str) else ""))
    description = shown.get("description")
    for line in wrapped(description, world.terminal.columns) if isinstance(description, str) else ():
        world.say(line)
    shape = Shape(shown.get("inputSchema"))
    _say_arguments(shape, world)
    output = Shape(shown.get("outputSchema")) if isinstance(shown.get("outputSchema"), dict) else None
    if output is not None:
        members = ", ".join(f"{each.name} ({type_text(each.schema, output.root)})" for each in output.arguments)
        _say_part(
            world, "returns", [f"  {escape_hidden(members, one_line=True)}" if members else "  structured content"]
        )
    if hints := _hints(shown):
        _say_part(world, "the server says", [f"  {hints}"])
    _say_part(world, "example", example_calls(server, name, shape, world.program, command))


def example_calls(server: str, name: str, shape: Shape, program: str, command: str) -> list[str]:
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


def _flags(argument: Argument, value: Any, root: Schema) -> list[str]:
    flag = f"--{argument.name}"
    if isinstance(value, bool) and types_of(argument.schema, root) == {"boolean"}:
        return [flag if value else f"--no-{argument.name}"]
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return [word for each in value for word in (flag, shlex.quote(each))]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return [flag, shlex.quote(text)]


def _say_arguments(shape: Shape, world: World) -> None:
    if not shape.arguments:
        _say_part(world, "arguments", ["  any: --name value" if shape.takes_any else "  none"])
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
        lines += wrapped(each.description, world.terminal.columns, "      ")
    _say_part(world, "arguments", lines)


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
    told = [text for name, value, text in _HINTS if annotations.get(name) is value]
    return f"it {', '.join(told)}" if told else ""


def _say_part(world: World, head: str, lines: list[str]) -> None:
    world.say(f"\n{head}:")
    for line in lines:
        world.say(line)
