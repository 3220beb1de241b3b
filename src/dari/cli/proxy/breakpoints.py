"""`dari proxy breakpoints …`: what a breakpoint rule holds."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from dari.cli.kit.console import Output
from dari.cli.kit.table import one_line
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.options import Commands, group, header, leaf
from dari.cli.proxy.sending import as_text, body_of
from dari.text.sanitize import escape_hidden

_LIST = """
dari proxy rules add breakpoint https://example.com/pay     hold such requests
dari proxy breakpoints                                      what is held now
dari proxy breakpoints list --wait-s 60                     wait until something is
"""
_RESUME = """
dari proxy breakpoints resume b1                            let it go on
dari proxy breakpoints resume b1 --header 'X-Role: admin' --body '{"amount":1}'
dari proxy breakpoints resume b2 --status 500               at a response breakpoint
dari proxy breakpoints resume b1 --abort                    end it instead
"""


def add_breakpoints(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    words = group(commands, "breakpoints", help, _LIST + _RESUME)
    parser = leaf(words, "list", _list, "held requests and responses, oldest first", _LIST)
    parser.add_argument("--wait-s", metavar="S", type=float, help="wait so long for the first one")
    parser = leaf(words, "resume", _resume, "let a request or response go on, with changes", _RESUME)
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--method", help="of a request")
    parser.add_argument("--url", help="of a request: send it there")
    parser.add_argument("--status", type=int, help="of a response")
    parser.add_argument("--header", metavar="'NAME: VALUE'", type=header, action="append", default=[], help="set it")
    parser.add_argument("--remove-header", metavar="NAME", action="append", default=[], help="drop it")
    parser.add_argument("--body", metavar="TEXT", help="another body; @FILE reads a file")
    parser.add_argument("--abort", action="store_true", help="end the connection")


async def _list(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    if arguments.wait_s is None:
        found = await crab.call("breakpoints.list")
    else:
        found = await crab.call("breakpoints.wait", arguments.wait_s + 10, timeout_s=arguments.wait_s)
    out.show(found, _held_lines(found["held"], out))
    return 0


def _held_lines(held: list[dict[str, Any]], out: Output) -> Iterator[str]:
    if not held:
        yield "Nothing is held"
    for one in held:
        status = f" {one['status']}" if one["status"] is not None else ""
        goes_on = f"goes on by itself in {one['resumes_in_s']:g} s (rule {one['rule_id']})"
        yield f"{out.paint(one['id'], 'bold')}  {one['on']}{status}  {one_line(one['method'] + ' ' + one['url'])}"
        yield out.paint(f"    {goes_on}", "dim")
        yield from (f"    {one_line(name)}: {one_line(value)}" for name, value in one["headers"])
        if one["body_sample"]:
            yield ""
            yield from (f"    {line}" for line in escape_hidden(one["body_sample"]).splitlines())
        if one["body_note"]:
            yield out.paint(f"    {one_line(one['body_note'])}", "dim")


async def _resume(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    done = await crab.call(
        "breakpoints.resume",
        id=arguments.id,
        method=arguments.method,
        url=arguments.url,
        status=arguments.status,
        set_headers=dict(arguments.header) or None,
        remove_headers=arguments.remove_header or None,
        body=as_text(body_of(arguments.body)),
        abort=arguments.abort,
    )
    verb = "ended" if arguments.abort else "goes on"
    out.show(done, [f"{done['id']} {verb} (request {done['request_id']})"])
    return 0
