"""`dari proxy traffic …`: requests that went through the proxy."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from dari.cli.kit.console import Output
from dari.cli.kit.table import format_duration, format_size, format_table, one_line
from dari.cli.proxy import flows, sending
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.options import Commands, add_filters, filter_of, group, leaf
from dari.errors import InvalidInput, TimedOut

_LIST = """
dari proxy traffic                                the newest 50, newest last
dari proxy traffic --follow                       and what comes, until Ctrl-C
dari proxy traffic --host example.com --status 5xx --since 10m
dari proxy traffic --body 'order_id' --json | jq -r '.flows[].url'
"""
_SUMMARY = """
dari proxy traffic summary                        by host and path: count, errors, p50, p95
dari proxy traffic summary --host api.example.com --since 1h
"""
_WAIT = """
dari proxy traffic wait --url /login --timeout-s 60     until such a request has ended; exit code 2 when none came
id=$(dari proxy traffic wait --host example.com --json | jq -r .flow.id)
"""
_DIFF = """
dari proxy traffic diff 17 21                     what is different in 21
"""
_CLEAR = """
dari proxy traffic clear                          forget what was recorded, on disk too
"""


def add_traffic(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    from dari.cli.proxy import inspection

    words = group(commands, "traffic", help, _LIST + inspection.SHOW + sending.REPLAY)
    parser = leaf(words, "list", _list, "the newest requests, newest last", _LIST)
    parser.add_argument("-n", "--limit", metavar="N", type=int, default=50, help="at most so many (default: 50)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with new ones until Ctrl-C")
    add_filters(parser)
    inspection.add_words(words)
    parser = leaf(words, "summary", _summary, "requests by host and path template", _SUMMARY)
    parser.add_argument("--groups", metavar="N", type=int, default=50, help="the busiest N (default: 50)")
    add_filters(parser)
    parser = leaf(words, "wait", _wait, "wait for the next request that fits", _WAIT)
    parser.add_argument("--timeout-s", metavar="S", type=float, default=30.0, help="at most 300 (default: 30)")
    parser.add_argument("--after-seq", metavar="N", type=int, help="also one that ended after this next_seq")
    add_filters(parser)
    parser = leaf(words, "diff", _diff, "what is different between two requests", _DIFF)
    parser.add_argument("first", metavar="A")
    parser.add_argument("second", metavar="B")
    sending.add_words(words)
    leaf(words, "clear", _clear, "forget what was recorded", _CLEAR)


async def _list(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    if arguments.limit < 0:
        raise InvalidInput(f"--limit {arguments.limit} is negative", "give the number of requests to show")
    wanted = filter_of(arguments)
    if arguments.follow:
        from dari.cli.proxy.flows import follow

        return await follow(crab, wanted, arguments.limit, out)
    found = await flows.newest(crab, wanted, arguments.limit)
    shown = flows.lines(found, paint=out.paint, width=out.width)
    out.show({"flows": found, "count": len(found)}, shown or ["Nothing recorded that fits"])
    return 0


async def _summary(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    found = await crab.call("traffic.summary", wanted=filter_of(arguments), groups=arguments.groups)
    out.show(found, _summary_lines(found, out))
    return 0


def _summary_lines(found: dict[str, Any], out: Output) -> Iterator[str]:
    if not found["groups"]:
        yield "Nothing recorded that fits"
        return
    rows = [("COUNT", "ERRORS", "P50", "P95", "RECEIVED", "STATUS", "METHODS", "HOST AND PATH")]
    for one in found["groups"]:
        statuses = " ".join(f"{name}:{count}" for name, count in one["statuses"].items())
        rows.append(
            (
                str(one["count"]),
                f"{one['error_rate']:.0%}",
                format_duration(one["p50_ms"]),
                format_duration(one["p95_ms"]),
                format_size(one["response_bytes"]),
                statuses,
                " ".join(one["methods"]),
                one["host"] + one["path"],
            )
        )
    head, *lines = format_table(rows)
    yield out.paint(head, "dim")
    yield from lines
    if found["left_out_groups"]:
        yield f"and {found['left_out_flows']} requests in {found['left_out_groups']} more groups (--groups)"


async def _wait(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    found = await crab.call(
        "traffic.wait",
        arguments.timeout_s + 10,
        wanted=filter_of(arguments),
        timeout_s=arguments.timeout_s,
        after_seq=arguments.after_seq,
    )
    if not found["found"]:
        raise TimedOut(f"no such request within {arguments.timeout_s:g} s", "allow more time with --timeout-s")
    out.show(found, flows.lines([found["flow"]], paint=out.paint, width=out.width))
    return 0


async def _diff(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    found = await crab.call("traffic.diff", first_id=_id(arguments.first), second_id=_id(arguments.second))
    out.show(found, [one_line(line) for line in found["text"].splitlines()])
    return 0


async def _clear(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    cleared = await crab.call("logs.clear")
    out.show(cleared, ["The traffic is forgotten"])
    return 0


def _id(text: str) -> str:
    return text.removeprefix("#")
