"""`dari proxy rules add KIND …`: the options of each kind, the rule they make, and a rule in a few words."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dari.cli.kit.table import format_value, one_line
from dari.cli.proxy.options import Commands, Handle, group, header, leaf
from dari.errors import Failed, InvalidInput

NAMES = (
    "allow",
    "block",
    "breakpoint",
    "delay",
    "fault",
    "header_rewrite",
    "body_replace",
    "map_local",
    "mock",
    "map_remote",
    "status_rewrite",
)
_MATCHERS = """
A MATCHER is a prefix of the URL: https://example.com/api, example.com/api, /api (any host), example.com.
--glob: https://*.example.com/v?/users*   --regex: ^https://[^/]+/v[12]/
"""
_ADD = """
dari proxy rules add allow example.com
dari proxy rules add map-local https://example.com/app.js --file ./build/app.js
dari proxy rules add map-remote https://api.example.com/ http://localhost:3000/
dari proxy rules add status https://example.com/pay --to 503
dari proxy rules add block 'https://*.ads.example/*' --glob
"""
_ALLOW = """
dari proxy rules add allow example.com         this host and its sub-domains
dari proxy rules add allow '*'                 every host
dari proxy rules add allow /api                records plain HTTP below /api, decrypts nothing
"""
_MAP_LOCAL = """
dari proxy rules add map-local https://example.com/me --text '{"name":"Ada"}' --content-type application/json
dari proxy rules add map-local https://example.com/app.js --file ./build/app.js
dari proxy rules add map-local example.com/old --text gone --status 410
"""
_MAP_REMOTE = """
dari proxy rules add map-remote https://api.example.com/ http://localhost:3000/
dari proxy rules add map-remote '^https://(.+)\\.example\\.com/(.*)' 'https://\\1.test.example/\\2' --regex
"""
_STATUS = """
dari proxy rules add status https://example.com/pay --to 503
dari proxy rules add status example.com --from 404 --to 200 --method GET
"""
_BLOCK = """
dari proxy rules add block tracker.example
dari proxy rules add block 'https://*.ads.example/*' --glob --status 204
"""
_DELAY = """
dari proxy rules add delay https://example.com/search --ms 800
dari proxy rules add delay example.com --ms 200 --jitter-ms 150
"""
_FAULT = """
dari proxy rules add fault https://example.com/pay                     reset the connection
dari proxy rules add fault https://example.com/big --after-bytes 1000  end in the middle of the body
"""
_HEADER = """
dari proxy rules add header example.com --set 'X-Debug: 1' --remove Cookie
dari proxy rules add header example.com --response --set 'Cache-Control: no-store'
"""
_BODY = """
dari proxy rules add body https://example.com/flags --find '"beta":false' --text '"beta":true'
dari proxy rules add body https://example.com/flags --text '{}'       the whole body
"""
_BREAKPOINT = """
dari proxy rules add breakpoint https://example.com/pay --method POST
dari proxy rules add breakpoint example.com --response --time-limit-s 300
dari proxy breakpoints                                               what waits
"""
_MOCK = """
dari proxy rules add mock 42                      answer such requests as #42 was answered
dari proxy rules add mock 42 --matcher https://example.com/users
"""


def add_kinds(words: Commands[argparse.ArgumentParser], handle: Handle) -> None:
    kinds = group(words, "add", "add a rule; it is in force at once", _ADD + _MATCHERS)

    def kind(name: str, rule: str, help: str, examples: str) -> argparse.ArgumentParser:
        parser = leaf(kinds, name, handle, help, examples if rule == "mock" else examples + _MATCHERS)
        parser.set_defaults(kind=rule)
        if rule != "mock":
            parser.add_argument("matcher", metavar="MATCHER")
        add_conditions(parser)
        parser.add_argument("--disabled", action="store_true", help="add it switched off")
        return parser

    kind("allow", "allow", "record and decrypt what matches", _ALLOW)
    parser = kind("map-local", "map_local", "answer from a text or a file", _MAP_LOCAL)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", help="the body")
    source.add_argument("--file", help="a file to read at each request")
    parser.add_argument("--status", type=int, default=200, help="default: %(default)s")
    parser.add_argument("--content-type", metavar="TYPE", help="default: text/plain, or by the file's extension")
    parser = kind("map-remote", "map_remote", "send the request elsewhere", _MAP_REMOTE)
    parser.add_argument("destination", metavar="DEST", help="URL that replaces what matched; the rest follows it")
    parser = kind("status", "status_rewrite", "show another status", _STATUS)
    parser.add_argument("--to", type=int, required=True, help="the status to show")
    parser.add_argument("--from", dest="only", type=int, help="only instead of this status")
    parser = kind("block", "block", "answer with a status; the origin never hears of it", _BLOCK)
    parser.add_argument("--status", type=int, default=403, help="default: %(default)s")
    parser = kind("delay", "delay", "wait before the request goes on", _DELAY)
    parser.add_argument("--ms", type=int, required=True, help="how long")
    parser.add_argument("--jitter-ms", type=int, default=0, help="give or take up to so much")
    parser = kind("fault", "fault", "break the answer", _FAULT)
    parser.add_argument("--after-bytes", type=int, help="cut the body after so many bytes (default: reset at once)")
    parser = kind("header", "header_rewrite", "set, add or remove headers", _HEADER)
    parser.add_argument("--set", metavar="'NAME: VALUE'", type=header, action="append", default=[], help="replace")
    parser.add_argument("--add", metavar="'NAME: VALUE'", type=header, action="append", default=[], help="append")
    parser.add_argument("--remove", metavar="NAME", action="append", default=[], help="drop all of this name")
    parser.add_argument("--response", action="store_true", help="of the response (default: of the request)")
    parser = kind("body", "body_replace", "replace a text in the body, or the whole body", _BODY)
    parser.add_argument("--text", required=True, help="the new text")
    parser.add_argument("--find", help="what it replaces (default: the whole body)")
    parser.add_argument("--request", action="store_true", help="of the request (default: of the response)")
    parser = kind("breakpoint", "breakpoint", "hold requests until somebody lets them go", _BREAKPOINT)
    parser.add_argument("--response", action="store_true", help="hold the response (default: the request)")
    parser.add_argument("--time-limit-s", type=float, default=60.0, help="go on by itself after (default: %(default)s)")
    parser = kind("mock", "mock", "answer as a recorded request was answered", _MOCK)
    parser.add_argument("request_id", metavar="REQUEST_ID")
    parser.add_argument("--matcher", help="default: the URL of that request, without its query")


def add_conditions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--method", help="only requests of this method ('any' for all)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--glob", dest="matcher_kind", action="store_const", const="glob", help="MATCHER is a glob")
    how.add_argument("--regex", dest="matcher_kind", action="store_const", const="regex", help="MATCHER is a regex")
    how.add_argument(
        "--prefix", dest="matcher_kind", action="store_const", const="prefix", help="MATCHER is a prefix (default)"
    )


def conditions(arguments: argparse.Namespace) -> dict[str, Any]:
    """The conditions that were given, as members of a rule."""
    found: dict[str, Any] = {}
    if arguments.method is not None:
        found["method"] = None if arguments.method.lower() == "any" else arguments.method.upper()
    if arguments.matcher_kind is not None:
        found["matcher_kind"] = arguments.matcher_kind
    if getattr(arguments, "disabled", False):
        found["enabled"] = False
    return found


def rule_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The rule that the options describe."""
    rule = {"kind": arguments.kind, "matcher": arguments.matcher} | conditions(arguments)
    return {name: value for name, value in (rule | _MEMBERS[arguments.kind](arguments)).items() if value is not None}


def source_of(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.text is not None:
        return {"source": {"kind": "text", "value": arguments.text}}
    if arguments.file is not None:
        # crabd has a directory of its own, so a path is made absolute where it was typed.
        path = Path(arguments.file).expanduser().absolute()
        if not path.is_file():
            raise Failed(f"{path} does not exist", "give the path of a file that exists")
        return {"source": {"kind": "file", "value": str(path)}}
    return {}


def _fault(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.after_bytes is None:
        return {"mode": "reset"}
    return {"mode": "truncate", "after_bytes": arguments.after_bytes}


def _header_rewrite(arguments: argparse.Namespace) -> dict[str, Any]:
    edits = [{"action": "remove", "name": name} for name in arguments.remove]
    for action, given in (("set", arguments.set), ("add", arguments.add)):
        edits += [{"action": action, "name": name, "value": value} for name, value in given]
    if not edits:
        raise InvalidInput("no header to change", "give --set 'Name: value', --add or --remove")
    return {"edits": edits, "on": "response" if arguments.response else "request"}


_MEMBERS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "allow": lambda _: {},
    "block": lambda given: {"status_code": given.status},
    "breakpoint": lambda given: {
        "on": "response" if given.response else "request",
        "time_limit_s": given.time_limit_s,
    },
    "delay": lambda given: {"delay_ms": given.ms, "jitter_ms": given.jitter_ms},
    "fault": _fault,
    "header_rewrite": _header_rewrite,
    "body_replace": lambda given: {
        "text": given.text,
        "find": given.find,
        "on": "request" if given.request else "response",
    },
    "map_local": lambda given: {**source_of(given), "status_code": given.status, "content_type": given.content_type},
    "map_remote": lambda given: {"destination": given.destination},
    "status_rewrite": lambda given: {"to_status_code": given.to, "from_status_code": given.only},
}


def effect(rule: dict[str, Any]) -> str:
    """What a rule does, in a few words."""
    settings = rule["settings"]
    match rule["kind"]:
        case "allow":
            said = ""
        case "map_local":
            said = f"-> {settings['status_code']} {settings['source']['kind']} {_short(settings['source']['value'])}"
        case "map_remote":
            said = f"-> {settings['destination']}"
        case "status_rewrite":
            said = f"{settings['from_status_code'] or 'any status'} -> {settings['to_status_code']}"
        case "block":
            said = f"-> {settings['status_code']}"
        case "mock":
            said = f"-> {settings['status_code']}, {len(settings['headers'])} headers"
        case "header_rewrite":
            edits = (f"{edit['action']} {edit['name']}" for edit in settings["edits"])
            said = f"{settings['on']}: {', '.join(edits)}"
        case "body_replace":
            found = f"{_short(settings['find'])!r}" if settings["find"] is not None else "whole body"
            said = f"{settings['on']}: {found} -> {_short(settings['text'])!r}"
        case _:
            said = ", ".join(f"{name} {format_value(value)}" for name, value in settings.items() if value)
    return one_line(said)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
