"""`dari proxy traffic …`: requests that went through the proxy, as a list or one in full."""

from __future__ import annotations

import argparse
import base64
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from dari.cli.kit.console import Output
from dari.cli.kit.table import format_duration, format_pairs, format_size, format_table, format_value, one_line
from dari.cli.proxy import flows, sending
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.options import Commands, add_filters, filter_of, group, leaf
from dari.errors import Failed, InvalidInput, NotFound, TimedOut
from dari.os_errors import describe_os_error, suggest_next_step
from dari.text.sanitize import escape_hidden

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

    words = group(commands, "traffic", help, _LIST + SHOW + sending.REPLAY)
    parser = leaf(words, "list", _list, "the newest requests, newest last", _LIST)
    parser.add_argument("-n", "--limit", metavar="N", type=int, default=50, help="at most so many (default: 50)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with new ones until Ctrl-C")
    add_filters(parser)
    add_words(words)
    parser = leaf(words, "summary", _summary, "requests by host and path template", _SUMMARY)
    parser.add_argument("--groups", metavar="N", type=int, default=50, help="the busiest N (default: 50)")
    add_filters(parser)
    parser = leaf(words, "wait", _wait, "wait for the next request that fits", _WAIT)
    parser.add_argument("--timeout-s", metavar="S", type=float, default=30.0, help="at most 300 (default: 30)")
    parser.add_argument("--after-seq", metavar="N", type=int, help="also one that ended after this next_seq")
    add_filters(parser)
    parser = leaf(words, "diff", _diff, "the differences between two requests", _DIFF)
    parser.add_argument("first", metavar="A")
    parser.add_argument("second", metavar="B")
    sending.add_words(words)
    leaf(words, "clear", _clear, "forget what was recorded", _CLEAR)


async def _list(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    if arguments.limit < 0:
        raise InvalidInput(f"--limit must be 0 or more, got {arguments.limit}", "give the number of requests to show")
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


SHOW = """
dari proxy traffic show 17                        head, bodies, rules, TLS; secrets are hidden
dari proxy traffic show 17 --reveal               with its secrets
"""
_BODY = """
dari proxy traffic body 17                        the decoded response, JSON laid out, secrets hidden
dari proxy traffic body 17 --request
dari proxy traffic body 17 -o picture.png         the bytes as they were after decoding
dari proxy traffic body 17 --reveal | jq .token   exact bytes to a pipe
"""
_TEXT_CHARS = 4_000_000


def add_words(words: Commands[argparse.ArgumentParser]) -> None:
    parser = leaf(words, "show", _show, "one request with everything that is known of it", SHOW)
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--reveal", action="store_true", help="show secrets, too")
    parser = leaf(words, "body", _body, "a body, decoded", _BODY)
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--request", action="store_true", help="of the request (default: of the response)")
    parser.add_argument("--reveal", action="store_true", help="the exact bytes, secrets and all")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the exact bytes to a file")


async def _show(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    method = "traffic.reveal" if arguments.reveal else "traffic.show"
    found = await crab.call(method, request_id=arguments.id.removeprefix("#"))
    out.show(found, _flow_lines(found["flow"], out))
    return 0


def _flow_lines(flow: dict[str, Any], out: Output) -> Iterator[str]:
    yield out.paint(one_line(f"{flow['method']} {flow['url']}"), "bold")
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(flow["ts_unix_ms"] / 1000))
    who = " ".join(str(flow[name]) for name in ("process", "pid") if name in flow)
    head_time, sent = format_duration(flow.get("head_ms")), format_size(flow.get("request_bytes", 0))
    yield from format_pairs(
        {
            "  status": flow.get("status"),
            "  origin said": flow.get("upstream_status") if flow.get("upstream_status") != flow.get("status") else None,
            "  error": flow.get("error"),
            "  state": flow.get("state") if flow.get("state") != "done" else None,
            "  time": f"{when}, head {head_time}, all {format_duration(flow.get('duration_ms'))}",
            "  size": f"{sent} sent, {format_size(flow.get('response_bytes', 0))} received",
            "  client": f"{flow.get('peer', '')} {who}".strip(),
            "  event": flow.get("event"),
            "  rules": ", ".join(flow.get("rule_ids", [])),
            "  sent to": flow.get("map_remote_to"),
            "  replay of": flow.get("replay_of"),
            "  TLS": ", ".join(f"{name} {format_value(value)}" for name, value in flow.get("tls", {}).items()),
        }
    )
    for direction in ("request", "response"):
        yield from _message(flow, direction, out)
    if flow.get("frames"):
        yield ""
        yield out.paint("messages", "cyan")
        for frame in flow["frames"]:
            yield f"  {'>' if frame['from_client'] else '<'} {one_line(frame['text'])}"


def _message(flow: dict[str, Any], direction: str, out: Output) -> Iterator[str]:
    head, body = flow.get(f"{direction}_headers"), flow.get(f"{direction}_body")
    if head or body:
        yield ""
        yield out.paint(direction, "cyan")
    for line in (head or "").splitlines():
        yield "  " + one_line(line)
    if body is None:
        return
    yield ""
    if body.get("text") is None:
        named = one_line(f"{body['kind']} {body['mime']}, {format_size(body['size_bytes'])}")
        yield f"  <{named}: dari proxy traffic body {flow['id']} -o FILE>"
    else:
        yield from ("  " + line for line in escape_hidden(body["text"]).splitlines())
    notes = [body["note"]] if body.get("note") else []
    if body.get("truncated"):
        notes.append(f"cut here: dari proxy traffic body {flow['id']}")
    if notes:
        yield out.paint(f"  ({'; '.join(notes)})", "dim")


async def _body(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    direction = "request" if arguments.request else "response"
    request_id = arguments.id.removeprefix("#")
    if arguments.output is not None:
        size_bytes = await _save(crab, request_id, direction, Path(arguments.output), out)
        out.show(
            {"path": arguments.output, "size_bytes": size_bytes},
            [f"{format_size(size_bytes)} written to {arguments.output}"],
        )
        return 0
    view = await crab.call("traffic.body", request_id=request_id, direction=direction, max_chars=_TEXT_CHARS)
    if out.as_json:
        out.json(view)
        return 0
    if view["kind"] == "empty":
        raise NotFound(f"request {request_id} has no {direction} body", "")
    is_text = view.get("text") is not None
    if not is_text and out.width is not None:
        raise InvalidInput(f"the body is binary: {view['mime'] or 'no media type'}", "write it to a file with -o FILE")
    if not is_text or arguments.reveal:
        await _copy(crab, request_id, direction, sys.stdout.buffer, out)
        return 0
    out.text(escape_hidden(view["text"]) if out.width is not None else view["text"])
    notes = [view["note"]] if view.get("note") else []
    if view.get("truncated"):
        notes.append("only the beginning is shown; -o FILE writes all of it")
    for note in notes:
        out.warn(one_line(note))
    return 0


async def _save(crab: Crab, request_id: str, direction: str, path: Path, out: Output) -> int:
    try:
        with path.open("wb") as file:
            return await _copy(crab, request_id, direction, file, out)
    except OSError as error:
        raise Failed(
            f"cannot write {path}: {describe_os_error(error)}", suggest_next_step(error, "name another file")
        ) from error


async def _copy(crab: Crab, request_id: str, direction: str, stream: BinaryIO, out: Output) -> int:
    """The decoded bytes, a piece at a time; how many there were."""
    done, total, piece = 0, 1, {}
    while done < total:
        piece = await crab.call("traffic.reveal_body", request_id=request_id, direction=direction, start=done)
        data = base64.b64decode(piece["data"])
        stream.write(data)
        done, total = done + len(data), piece["total_bytes"]
        if not data:
            break
    stream.flush()
    if piece.get("note") or not piece.get("is_whole", True):
        out.warn(one_line(piece.get("note") or "only the beginning of this body was kept"))
    return done
