"""`dari proxy traffic curl | python | replay | send`: a request again, here or elsewhere."""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dari.cli.kit.console import Output
from dari.cli.kit.table import one_line
from dari.cli.proxy import flows
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.options import Commands, header, leaf
from dari.errors import Failed, InvalidInput
from dari.text.sanitize import escape_hidden

_CURL = """
dari proxy traffic curl 17                        the request as a curl command, secrets left out
"""
_PYTHON = """
dari proxy traffic python 17                      the request as a program with httpx
dari proxy traffic python 17 --client urllib      without any package
"""
REPLAY = """
dari proxy traffic replay 17                      send it again, with the secrets it had
dari proxy traffic replay 17 --header 'X-Debug: 1' --body '{"page":2}'
dari proxy traffic replay 17 --url https://staging.example.com/users                  without its secrets
dari proxy traffic replay 17 --url https://staging.example.com/users --with-secrets
"""
_SEND = """
dari proxy traffic send https://example.com/
dari proxy traffic send https://example.com/users --header 'Content-Type: application/json' --body @new.json
"""


def add_words(words: Commands[argparse.ArgumentParser]) -> None:
    parser = leaf(words, "curl", _code, "a request as a curl command", _CURL)
    parser.add_argument("id", metavar="ID")
    parser.set_defaults(client="curl")
    parser = leaf(words, "python", _code, "a request as a Python program", _PYTHON)
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--client", choices=("httpx", "urllib"), default="httpx", help="default: %(default)s")
    parser = leaf(words, "replay", _replay, "send a recorded request again, with changes", REPLAY)
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--url", help="send it there")
    parser.add_argument("--method", help="with this method")
    parser.add_argument("--remove-header", metavar="NAME", action="append", default=[], help="without this header")
    parser.add_argument("--with-secrets", action="store_true", help="send its secrets to another origin, too")
    _add_message(parser)
    parser = leaf(words, "send", _send, "send a request made from nothing through the proxy", _SEND)
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--method", help="default: GET, or POST with a body")
    _add_message(parser)


def _add_message(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--header", metavar="'NAME: VALUE'", type=header, action="append", default=[], help="set this header"
    )
    parser.add_argument("--body", metavar="TEXT", help="the body; @FILE reads a file, @- stdin")
    parser.add_argument("--timeout-s", metavar="S", type=float, default=30.0, help="default: %(default)s")


async def _code(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    found = await crab.call("traffic.code", request_id=arguments.id.removeprefix("#"), language=arguments.client)
    out.show(found, [escape_hidden(found["code"])])
    return 0


async def _replay(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    edits: dict[str, Any] = {"set_headers": dict(arguments.header), "remove_headers": arguments.remove_header}
    edits |= {name: value for name in ("url", "method") if (value := getattr(arguments, name)) is not None}
    body = body_of(arguments.body)
    if body is not None:
        edits["body_b64"] = base64.b64encode(body).decode()
    answered = await crab.call(
        "traffic.replay_with_secrets" if arguments.with_secrets else "traffic.replay",
        arguments.timeout_s + 10,
        request_id=arguments.id.removeprefix("#"),
        edits=edits,
        timeout_s=arguments.timeout_s,
    )
    out.show(answered, _answer_lines(answered, out))
    return 0


async def _send(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    body = body_of(arguments.body)
    answered = await crab.call(
        "traffic.compose",
        arguments.timeout_s + 10,
        url=arguments.url,
        method=arguments.method or ("GET" if body is None else "POST"),
        headers=dict(arguments.header),
        body=as_text(body),
        timeout_s=arguments.timeout_s,
    )
    out.show(answered, _answer_lines(answered, out))
    return 0


def _answer_lines(answered: dict[str, Any], out: Output) -> Iterator[str]:
    for note in answered.get("notes", []):
        yield one_line(note)
    flow = {"ts_unix_ms": 0, "state": "done", **answered["flow"]}
    body = flow.get("response_body") or {}
    flow["response_bytes"] = body.get("size_bytes", 0)
    yield flows.line(flow, paint=out.paint, width=out.width, has_time=False)
    for line in (flow.get("response_headers") or "").splitlines():
        yield "  " + one_line(line)
    if body.get("text"):
        yield ""
        yield escape_hidden(body["text"])
    if body.get("truncated") or (body and body.get("text") is None):
        yield f"(dari proxy traffic body {flow['id']} has all of it)"
    for note in answered["notes"]:
        yield f"note: {one_line(note)}"


def body_of(text: str | None) -> bytes | None:
    """The text itself, or what a file holds."""
    if text is None:
        return None
    if not text.startswith("@"):
        return text.encode("utf-8", "surrogateescape")
    if text == "@-":
        return sys.stdin.buffer.read()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise Failed(f"cannot read {text[1:]}: {error.strerror}", "give the path of a file") from error


def as_text(body: bytes | None) -> str | None:
    try:
        return None if body is None else body.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"the body must be UTF-8 text ({error.reason} at byte {error.start})", "send a text"
        ) from None
