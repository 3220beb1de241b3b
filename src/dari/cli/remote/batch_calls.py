"""The calls of a batch, from JSON lines: read and checked as a whole before anything is sent."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from dari.cli.remote.world import World
from dari.errors import InvalidInput

MAX_BYTES = 64 * 1024 * 1024
MAX_CALLS = 100_000
_EXAMPLE = """a line is a call: {"tool": "server/tool", "arguments": {"name": "value"}}"""
_MEMBERS = ("id", "server", "tool", "arguments")


class BatchCall(NamedTuple):
    id: Any
    """As it was given, or the number of the call."""
    server: str
    """Empty where `tool` names it, or the command does."""
    tool: str
    arguments: dict[str, Any]


async def read_calls(file: str, world: World) -> list[BatchCall]:
    """InvalidInput names the first line that does not hold a call."""
    calls: list[BatchCall] = []
    for number, line in enumerate((await _text(file, world)).splitlines(), 1):
        if line.strip():
            calls.append(_call(line, number, len(calls) + 1))
        if len(calls) > MAX_CALLS:
            raise InvalidInput(f"a batch has at most {MAX_CALLS} calls", "split the file")
    return calls


async def _text(file: str, world: World) -> str:
    if file == "-":
        if world.terminal.stdin_is_tty:
            world.note("reading calls as JSON lines; end with Ctrl-D")
        data = await world.terminal.read_stdin()
    else:
        try:
            data = (world.view.around.cwd / file).read_bytes()
        except OSError as error:
            raise InvalidInput(f"cannot read {file}: {error.strerror}", "name a file with one call a line") from None
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"a batch has at most {MAX_BYTES} bytes, got {len(data)}", "split the file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"a batch must be UTF-8 text (byte {error.start})", "write it as UTF-8") from None


def _call(line: str, number: int, count: int) -> BatchCall:
    where = f"line {number}"
    try:
        value = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where} must be JSON: {error}", _EXAMPLE) from None
    if not isinstance(value, dict):
        raise InvalidInput(f"{where} must be a JSON object", _EXAMPLE)
    for member in value:
        if member not in _MEMBERS:
            raise InvalidInput(f"{where} has a member {member[:60]!r}, and takes {', '.join(_MEMBERS)}", _EXAMPLE)
    tool, server, arguments = value.get("tool"), value.get("server", ""), value.get("arguments", {})
    if not isinstance(tool, str) or not tool:
        raise InvalidInput(f'{where} needs "tool", a name', _EXAMPLE)
    if not isinstance(server, str):
        raise InvalidInput(f'{where}: "server" must be a name', _EXAMPLE)
    if not isinstance(arguments, dict):
        raise InvalidInput(f'{where}: "arguments" must be an object', _EXAMPLE)
    return BatchCall(value.get("id", count), server, tool, arguments)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number of JSON")
