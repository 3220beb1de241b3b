"""Hints of the service name the tools of an agent; a person at a shell is told the commands that do the same."""

from __future__ import annotations

import re

from dari.cli.proxy.output import Output, encoded, paint, printable, takes_colour
from dari.errors import DariError

COMMANDS = {
    "crab_rules_add_allow": "dari proxy rules add allow HOST",
    "crab_rules_list": "dari proxy rules",
    "crab_proxy_start": "dari proxy start",
    "crab_ca_generate": "dari proxy ca generate",
    "crab_env_snippet": "dari proxy env",
    "crab_traffic_search": "dari proxy traffic",
    "crab_traffic_tail": "dari proxy traffic",
    "crab_traffic_get": "dari proxy traffic show",
    "crab_logs_tail": "dari proxy traffic",
    "crab_engine_set_policy": "dari proxy set policy",
    "crab_engine_set_client_allowlist": "dari proxy set allowlist",
}
_PHRASES = {
    "dari proxy traffic or dari proxy traffic": "dari proxy traffic",
    "give overwrite=true": "give --overwrite",
    "with replace=true": "--replace",
    "replace=true": "--replace",
    "set matcher_kind to 'glob'": "give --glob",
    "set matcher_kind to 'regex'": "give --regex",
    "list the rules to see their ids": "`dari proxy rules` shows their ids",
    "start the daemon": "start it with `dari proxy start`",
}
_TOOL = re.compile(r"\bcrab_[a-z_]+\b")


def for_shell(text: str) -> str:
    text = _TOOL.sub(lambda found: COMMANDS.get(found[0], found[0]), text)
    for phrase, ours in _PHRASES.items():
        text = text.replace(phrase, ours)
    return text


def tell(error: DariError, out: Output) -> None:
    message, hint = for_shell(error.message), for_shell(error.hint)
    if out.as_json:
        out.note(encoded({"error": {"code": error.code, "name": error.name, "message": message, "hint": hint}}))
        return
    import sys

    is_coloured = takes_colour(sys.stderr)
    out.note(paint("error:", "red", is_coloured) + f" {printable(message)}")
    if hint:
        out.note(paint("hint:", "cyan", is_coloured) + f" {printable(hint)}")
