"""Words of a command line that are the command's own, and those that belong to a tool."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

HELP = ("-h", "--help")
OWN_OPTIONS = (
    "server",
    "endpoint",
    "http",
    "stdio",
    "key",
    "header",
    "timeout",
    "params",
    "json",
    "raw",
    "output",
    "log",
    "config",
)
"""What `call-tool` takes for itself; a tool's argument of such a name stands after a lone `--`."""


def wants_help(rest: Sequence[str]) -> bool:
    """Whether a tool's words ask what the tool takes."""
    return list(rest[:1]) == [HELP[1]]


def split_words(words: Sequence[str], parser: argparse.ArgumentParser) -> tuple[list[str], list[str]]:
    """(own, the tool's): options that the parser knows and the first other word are own, until a lone `--`.

    `--help` before the first word is the command's, after it the tool's.
    """
    takes_value = {option: action.nargs != 0 for action in parser._actions for option in action.option_strings}
    own: list[str] = []
    rest: list[str] = []
    has_name = asks = False
    queue = list(words)
    while queue:
        word = queue.pop(0)
        option = word.partition("=")[0]
        if word == "--":
            if not has_name and queue:
                own.append(queue.pop(0))
            rest += queue
            break
        if word in HELP:
            if has_name:
                asks = True
            else:
                own.append(word)
        elif option.startswith("--") and option in takes_value:
            own.append(word)
            if takes_value[option] and "=" not in word and queue:
                own[-1] = f"{word}={queue.pop(0)}"  # a value that begins with a dash stays one
        elif not has_name:
            has_name = True
            own.append(word)
        else:
            rest.append(word)
    return own, [HELP[1], *rest] if asks else rest
