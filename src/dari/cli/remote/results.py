"""What a tool returned, on stdout: the payload alone, or a line that says how it went and the contents."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec
from msgspec import Raw

from dari.cli.remote.contents import Saved, as_json, block_text
from dari.cli.remote.failures import OK, TOOL
from dari.cli.remote.payloads import pretty, print_json, print_raw
from dari.cli.remote.tracing import duration
from dari.cli.remote.world import World
from dari.core.content import TextContent
from dari.errors import DariError
from dari.mcp.client.decode import read
from dari.mcp.client.results import Block, CallResult, read_block
from dari.rpc.codec import UNREADABLE, decode_any
from dari.text.sanitize import escape_hidden

_OWN = ("content", "structuredContent", "isError", "_meta", "resultType")


def add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    one = group.add_mutually_exclusive_group()
    one.add_argument("--json", action="store_true", help="print the result alone, as indented JSON")
    one.add_argument("--raw", action="store_true", help="print the result alone, exactly as the server sent it")
    group.add_argument("--output", metavar="DIR", help="save images, sounds and binary resources into this folder")


def show_result(result: Raw, arguments: argparse.Namespace, world: World, name: str, store: Saved, ms: float) -> int:
    """Print, and return the exit code: a failure that the tool reports is 3, with its payload on stdout."""
    told = _read(result)
    is_error = told is not None and told.is_error
    if arguments.raw:
        print_raw(world.terminal, result)
    elif arguments.json:
        print_json(world.terminal, result)
    else:
        mark = "✗" if is_error else "✓"
        world.say(f"{mark} {escape_hidden(name, one_line=True)} ({duration(ms)})")
        for text in _texts(result, told, store):
            world.say(text)
    if arguments.output and (arguments.raw or arguments.json):
        _texts(result, told, store)
    if not is_error:
        return OK
    world.note(f"error: {name} reported an error{_summary(told)}")
    return TOOL


def _texts(result: Raw, told: CallResult | None, store: Saved) -> list[str]:
    blocks = _blocks(told) if told is not None else None
    if told is None or blocks is None:
        return [pretty(decode_any(result))]  # no result of a tool, and still what the server answered
    structured = told.structured_content
    texts = [block_text(block, store) for block in blocks if not _repeats(block, structured)]
    if structured is not None:
        texts.append(pretty(structured))
    others = {name: value for name, value in _members(result).items() if name not in _OWN}
    if others:
        texts.append(pretty(others))
    return texts or ["(nothing)"]


def _read(result: Raw) -> CallResult | None:
    try:
        return read(result, CallResult, "tools/call result")
    except DariError:
        pass
    members = _members(result)
    return CallResult(is_error=True, raw_content=Raw(b"[]")) if members.get("isError") is True else None


def _blocks(told: CallResult) -> list[Block] | None:
    try:
        return [read_block(raw) for raw in msgspec.json.decode(told.raw_content, type=list[Raw])]
    except UNREADABLE:
        return None


def _members(result: Raw) -> dict[str, Any]:
    value = decode_any(result)
    return value if isinstance(value, dict) else {}


def _repeats(block: Block, structured: Any) -> bool:
    """Servers send structured content as text too, for clients that read only text."""
    return structured is not None and isinstance(block, TextContent) and as_json(block.text) == structured


def _summary(told: CallResult | None) -> str:
    text = " ".join(told.text.split()) if told is not None else ""
    return f": {text[:199]}…" if len(text) > 200 else f": {text}" if text else ""
