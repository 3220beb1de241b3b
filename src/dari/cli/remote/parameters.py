"""A tool's arguments from a command line: `--params` (JSON, @file, stdin) and flags, joined and checked."""

from __future__ import annotations

import argparse
import json
from typing import Any

from dari.cli.remote.flags import merged, missing, read_flags
from dari.cli.remote.schemas import Shape
from dari.cli.remote.world import World
from dari.errors import InvalidInput

_MAX_BYTES = 64 * 1024 * 1024
_EXAMPLE = """--params '{"name": "value"}'"""


def add_params(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--params", metavar="JSON", help="the arguments as a JSON object; @FILE reads a file, - reads stdin"
    )


async def read_arguments(arguments: argparse.Namespace, world: World, tool: str, schema: Any) -> bytes:
    """The arguments as JSON: flags win over `--params`. InvalidInput before anything is sent."""
    shape = Shape(schema)
    given, text = await _params(arguments.params, world)
    flags = read_flags(arguments.rest, shape, tool)
    joined = merged(given, flags)
    if absent := missing(shape, joined):
        raise InvalidInput(
            f"'{tool}' needs {', '.join(absent)}", f"see them all: {world.program} {_command(world)} {tool} --help"
        )
    if not flags and text is not None:
        return text  # as it was written: numbers of any size, and every digit
    try:
        return json.dumps(joined, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise InvalidInput("an argument is no UTF-8 text", "pass binary data as base64") from None


async def _params(params: str | None, world: World) -> tuple[dict[str, Any], bytes | None]:
    if params is None:
        return {}, None
    data, where = await _source(params, world)
    if len(data) > _MAX_BYTES:
        raise InvalidInput(f"{where} has {len(data)} bytes", f"{_MAX_BYTES} is the most")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{where} is no UTF-8 text (byte {error.start})", "write it as UTF-8") from None
    try:
        value = json.loads(text, parse_constant=_no_number, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(f"{where} is no JSON: {error.msg} at {place}{_around(text, error.pos)}", _EXAMPLE) from None
    except RecursionError:
        raise InvalidInput(f"{where} is nested too deeply", _EXAMPLE) from None
    except _Wrong as error:
        raise InvalidInput(f"{where} is no JSON: {error}", _EXAMPLE) from None
    if not isinstance(value, dict):
        raise InvalidInput(f"{where} is {_kind(value)}, and must be an object", _EXAMPLE)
    return value, text.encode()


async def _source(params: str, world: World) -> tuple[bytes, str]:
    if params in ("-", "@-"):
        if world.terminal.stdin_is_tty:
            world.note("reading arguments as JSON; end with Ctrl-D")
        return await world.terminal.read_stdin(), "stdin"
    if not params.startswith("@"):
        return params.encode("utf-8", "surrogateescape"), "--params"
    path = world.view.around.cwd / params[1:]
    try:
        return path.read_bytes(), params
    except OSError as error:
        raise InvalidInput(f"cannot read {params[1:]}: {error.strerror}", "name a file that holds JSON") from None


def _command(world: World) -> str:
    return "call-tool" if world.program.endswith("remote") else "call_tool"


class _Wrong(ValueError):
    """Python's JSON is wider than JSON."""


def _no_number(constant: str) -> Any:
    raise _Wrong(f"{constant} is no number of JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Wrong(f"the member {twice!r} stands there twice")
    return found


def _around(text: str, at: int) -> str:
    near = text[max(0, at - 15) : at + 15].replace("\n", " ")
    return f", near {near!r}" if near.strip() else ""


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return "a string" if isinstance(value, str) else "a number"
