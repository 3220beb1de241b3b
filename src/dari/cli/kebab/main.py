"""`kebab …` and `dari knowledge …`: the table of commands, and one run of one of them."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dari.cli.kebab.context import (
    ERROR,
    EXIT_CODES,
    RUN_HERE,
    KebabContext,
    RunHere,
    add_common_options,
    show_error,
)
from dari.cli.kit.commands import CommandEntry, CommandLoader, find_command, list_commands
from dari.cli.kit.console import Console, ProcessConsole
from dari.cli.kit.parser import HELP_COLUMNS, HelpRequested
from dari.errors import InvalidInput
from dari.knowledge.errors import is_bug
from dari.log import configure_logging
from dari.text.sanitize import escape_hidden
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.knowledge.service import ServiceCache


COMMANDS = (
    CommandEntry("init", "upkeep", "write a configuration for your folder"),
    CommandEntry("ingest", "ingest", "index your folders, or what changed in them"),
    CommandEntry("ingest-file", "ingest", "index one file"),
    CommandEntry("ingest-stdin", "ingest", "index Markdown from stdin"),
    CommandEntry("search", "search", "find passages: by words, by meaning, or by both"),
    CommandEntry("ask", "ask", "answer a question from your documents, with citations"),
    CommandEntry("list", "documents", "list what is indexed"),
    CommandEntry("inspect", "documents", "look at a document or a chunk as it is stored"),
    CommandEntry("fetch", "documents", "print the text of a chunk, a document or a span of lines"),
    CommandEntry("models", "models", "install, choose or remove the model for search by meaning"),
    CommandEntry("watch", "ingest", "index again whenever a file changes"),
    CommandEntry("eval", "evaluation", "measure how well search finds what it should"),
    CommandEntry("schema", "health", "versions, capabilities and sizes; the JSON Schema of a wire object"),
    CommandEntry("doctor", "health", "check the installation, with the next step for each fault"),
    CommandEntry("reset", "upkeep", "remove the index, the vectors or the configuration"),
    CommandEntry("config", "upkeep", "bring an old configuration up to date"),
    CommandEntry("skill", "skill", "print or install the skill for Claude Code and the mcp.json for other agents"),
    CommandEntry("mcp", "mcp", "serve agents over stdin and stdout (what an IDE starts)"),
    CommandEntry("daemon", "daemon", "start, stop or look at kebabd, which keeps search warm"),
)
_LOADER = CommandLoader("dari.cli.kebab", EXIT_CODES, add_common_options)
load, parser_of = _LOADER.load, _LOADER.parser_of
_OF_WORDS = frozenset(("search", "ask", "list", "inspect", "fetch", "ingest-stdin"))
"""Commands that take text, and no name of a file that may be of other bytes."""
_FLAGS = ("--json", "--readonly", "--quiet", "-q", "--verbose", "-v", "--debug", "--no-daemon")


async def run(
    program: str, argv: list[str], console: Console, services: ServiceCache, environ: Mapping[str, str], cwd: Path
) -> int:
    """One command from words to exit code. Cancelling the task is Ctrl-C."""
    HELP_COLUMNS.set(console.columns)
    context: KebabContext | None = None
    try:
        options, words = split_options(argv)
        if not words:
            if options == ["--version"]:
                console.out(f"kebab {VERSION}\n")
                return 0
            console.err(overview(program))
            return ERROR
        name = words[0]
        if name in ("-h", "--help", "help"):
            raise HelpRequested(overview(program))
        entry = find_command(name, COMMANDS, program)
        if name in _OF_WORDS:
            _check_words(words)
        arguments = parser_of(entry, program).parse_args([*options, *words[1:]])
        if arguments.debug:
            configure_logging("debug")
        context = KebabContext(console, services, program, arguments, environ, cwd)
        return await load(entry).run(arguments, context)
    except HelpRequested as shown:
        console.out(shown.text)
        return 0
    except RunHere:
        return RUN_HERE
    except Exception as error:
        if context is not None and context.is_verbose and is_bug(error):
            console.err(escape_hidden("".join(traceback.format_exception(error))))
        rewrite = str if context is None else context.rewrite
        return show_error(error, console, as_json="--json" in argv, rewrite=rewrite)
    finally:
        await console.drain()


def run_here(program: str, argv: list[str]) -> int:
    """Run a command in this process. Ctrl-C is an error like another."""
    from dari.knowledge.service import ServiceCache

    console = ProcessConsole()

    async def handle() -> int:
        with ServiceCache() as services:
            return await run(program, argv, console, services, os.environ, Path.cwd())

    try:
        return asyncio.run(handle())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return ERROR
    except OSError as error:  # a working directory that is gone
        return show_error(error, console, as_json="--json" in argv)


def split_options(argv: list[str]) -> tuple[list[str], list[str]]:
    """Options of every command may stand before it: they, and the words from the command on."""
    at = 0
    while at < len(argv):
        word = argv[at]
        if word == "--config":
            if at + 1 >= len(argv):
                raise InvalidInput("--config needs a file", "--config ~/notes/kebab.toml")
            at += 1
        elif word == "--version":
            return ["--version"], []
        elif word not in _FLAGS and not word.startswith("--config="):
            break
        at += 1
    return argv[:at], argv[at:]


def _check_words(words: list[str]) -> None:
    """Bytes that are not UTF-8 reach Python as lone surrogates, which no store and no wire takes."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise InvalidInput(
                f"the words of a command must be UTF-8, got {word!a}", "check the encoding of the terminal"
            ) from None


def overview(program: str) -> str:
    lines = list_commands(COMMANDS)
    return "\n".join(
        [
            f"usage: {program} [--config FILE] [--json] [--readonly] COMMAND …",
            "",
            "A knowledge base of your own files: search and answers with citations, in Korean and English, offline.",
            "",
            "first steps:",
            f"  {program} init ~/notes       name your folder",
            f"  {program} ingest             index it",
            f"  {program} search 'backups'   find passages",
            "",
            "commands:",
            *lines,
            "",
            f"Every command has examples: {program} search --help. Guide: docs/guide/knowledge.md",
            "",
            EXIT_CODES,
            "",
        ]
    )
