"""What every kebab command has: the terminal, the options that all share, and the open knowledge base."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from dari.cli.kit.console import Console, Output
from dari.knowledge.errors import classify

if TYPE_CHECKING:
    from dari.knowledge.service import KnowledgeService, ServiceCache

OK, NOTHING, ERROR, UNHEALTHY = 0, 1, 2, 3
RUN_HERE = 75
"""What kebabd answers when the caller has to run the command itself; no person sees it."""
EXIT_CODES = """\
exit codes:
  0 done · 1 nothing found, or no answer · 2 error · 3 the doctor found something"""
_COMMAND = re.compile(
    r"\bkebab(?= (?:init|ingest|search|ask|list|inspect|fetch|eval|schema|doctor|reset|config|models))"
)
P = ParamSpec("P")
T = TypeVar("T")


class RunHere(Exception):
    """Raised in kebabd for a command that needs a key of its caller's environment, which kebabd does not have."""


class KebabContext:
    """One run of one command. `environ` and `cwd` are the caller's, who may be another process."""

    def __init__(
        self,
        console: Console,
        services: ServiceCache,
        program: str,
        arguments: argparse.Namespace,
        environ: Mapping[str, str],
        cwd: Path,
    ) -> None:
        from dari.knowledge.config import is_true

        self.console = console
        self.program = program
        self.environ = _with_absolute_config(environ, cwd)
        self.cwd = cwd
        self.as_json: bool = arguments.json
        self.is_quiet: bool = arguments.quiet
        self.is_verbose: bool = arguments.verbose or arguments.debug
        self.is_readonly: bool = arguments.readonly or is_true(environ.get("KEBAB_READONLY", ""))
        self.config: str | None = None if arguments.config is None else str(cwd / Path(arguments.config).expanduser())
        self.output = Output(as_json=self.as_json, console=console, rewrite=self.rewrite)
        self._services = services

    def service(self) -> KnowledgeService:
        """The knowledge base of this command's configuration; opened where it is not open yet. Blocks."""
        service = self._services.get(self.config, self.environ, self.is_readonly)
        config = service.settings.config
        for name in filter(None, (config.llm.api_key_env, config.embedding.api_key_env)):
            if self.environ.get(name) != os.environ.get(name):
                raise RunHere
        return service

    async def call(self, function: Callable[P, T], *positional: P.args, **named: P.kwargs) -> T:
        """Run what blocks in a thread."""
        return await asyncio.to_thread(function, *positional, **named)

    async def open(self) -> KnowledgeService:
        return await self.call(self.service)

    def resolve(self, path: str) -> Path:
        """A path as the caller means it."""
        return self.cwd / Path(path).expanduser()

    def note(self, *lines: str) -> None:
        """For people, on stderr; nothing with --quiet or --json."""
        if not self.is_quiet and not self.as_json:
            self.output.note(*lines)

    def rewrite(self, text: str) -> str:
        """Hints name the program as it was called."""
        return text if self.program == "kebab" else _COMMAND.sub(self.program, text)


def _with_absolute_config(environ: Mapping[str, str], cwd: Path) -> Mapping[str, str]:
    """KEBAB_CONFIG as its caller means it: kebabd works in `/`."""
    named = environ.get("KEBAB_CONFIG", "")
    return {**environ, "KEBAB_CONFIG": str(cwd / Path(named).expanduser())} if named else environ


def show_error(error: BaseException, console: Console, *, as_json: bool, rewrite: Callable[[str], str] = str) -> int:
    """`error:` and `hint:` for a person, one line of `error.v1` for a program; the exit code."""
    from msgspec import UNSET, json
    from msgspec.structs import replace

    from dari.cli.kit.console import print_error

    shown = classify(error)
    hint = "" if shown.hint is UNSET else rewrite(shown.hint)
    if as_json:
        shown = replace(shown, message=rewrite(shown.message), hint=hint or UNSET)
        console.err(json.encode(shown).decode() + "\n")
    else:
        print_error(console, rewrite(shown.message), hint)
    return ERROR


def add_common_options(parser: argparse.ArgumentParser, *, is_nested: bool = False) -> None:
    """The options of every command, on it and on each of its own words: they may stand behind either."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for nested in action.choices.values():
                add_common_options(nested, is_nested=True)
    group = parser.add_argument_group("every command")
    add = group.add_argument
    # What stands before the inner word must not be undone by the defaults behind it.
    unset: dict[str, Any] = {"default": argparse.SUPPRESS} if is_nested else {}
    add("--config", metavar="FILE", help="the settings to use (default: $KEBAB_CONFIG, else the usual file)", **unset)
    add("--json", action="store_true", help="print the wire object; errors are error.v1 on stderr", **unset)
    add("--readonly", action="store_true", help="refuse whatever writes (also KEBAB_READONLY=1)", **unset)
    add("--quiet", "-q", action="store_true", help="no progress and no notes", **unset)
    add("--verbose", "-v", action="store_true", help="more about what is done; a bug's traceback", **unset)
    add("--debug", action="store_true", help="as --verbose, with log lines on stderr; runs in this process", **unset)
    add("--no-daemon", action="store_true", help="run in this process, not in the warm daemon", **unset)


def print_wire(context: KebabContext, value: Any) -> None:
    """A wire object on stdout, over several lines on a screen and in one line elsewhere."""
    from msgspec import json

    from dari.cli.kit.console import escape_json

    data = json.encode(value)
    if context.console.stdout_is_tty:
        context.output.write(escape_json(json.format(data, indent=2).decode()) + "\n")
    else:
        context.output.write(data.decode() + "\n")
