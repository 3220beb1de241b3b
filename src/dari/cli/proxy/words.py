"""What `dari proxy` prints: hints that name commands instead of tools, on a console that ends with its reader."""

from __future__ import annotations

import sys

from dari.cli.kit.console import Output, ProcessConsole, as_bytes
from dari.cli.kit.hints import make_rewriter

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
for_shell = make_rewriter(COMMANDS, _PHRASES)


class PipedConsole(ProcessConsole):
    """Raises BrokenPipeError when the reader of stdout has left, so that `traffic --follow` ends with its reader."""

    def out(self, text: str) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(as_bytes(text))
        sys.stdout.flush()


def make_output(*, as_json: bool) -> Output:
    return Output(as_json=as_json, console=PipedConsole(), rewrite=for_shell)
