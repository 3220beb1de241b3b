"""`crewx-tools search …` and the others, for a person: one tool call in this process, printed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dari.cli.kit.commands import OVERVIEW_OPTIONS
from dari.cli.kit.console import ProcessConsole, print_error, print_json
from dari.cli.kit.hints import suggest
from dari.cli.kit.parser import format_examples
from dari.errors import DariError, InvalidInput, TimedOut
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.cli.remote.input_schema import ObjectSchema
    from dari.core.tool import Tool

OK, USAGE, FOUND_FAULTS, INTERRUPTED = 0, 1, 3, 4
EXIT_CODES = "exit codes: 0 done · 1 wrong arguments · 2 out of time · 3 faults found, or it failed · 4 interrupted"


class ToolCommand(NamedTuple):
    """How a person calls a tool: `words` name the arguments that need no flag, a list takes all that follow."""

    name: str
    tool: str
    words: tuple[str, ...]
    help: str
    examples: tuple[tuple[str, str], ...] = ()
    defaults: Mapping[str, Any] = {}


COMMANDS = (
    ToolCommand(
        "search",
        "search",
        ("pattern", "paths"),
        "find text, a regular expression or a piece of syntax",
        (
            ("search TODO", "in all files that git does not ignore"),
            ("search 'def \\w+_id' src --mode regex --context 2", "with two lines around each match"),
            ("search 'print($A)' --mode ast --lang python", "by syntax"),
        ),
    ),
    ToolCommand(
        "symbols",
        "symbols",
        ("name", "paths"),
        "find where a name is defined and used",
        (("symbols Registry", "definitions and uses in the repository"),),
    ),
    ToolCommand(
        "outline", "outline", ("paths",), "list what a file defines", (("outline src/app.py", "functions and classes"),)
    ),
    ToolCommand(
        "diff",
        "diff",
        ("since", "paths"),
        "show what changed, with the functions touched",
        (("diff", "since the last commit"), ("diff main", "since a branch"), ("diff '2 hours ago'", "since a time")),
    ),
    ToolCommand(
        "format",
        "format",
        ("paths",),
        "format code with the project's formatter",
        (("format src", "show the diff"), ("format src --write", "and write it; undo takes it back")),
    ),
    ToolCommand(
        "lint",
        "lint",
        ("paths",),
        "find faults with the project's linter, and fix them",
        (("lint src", "what is wrong"), ("lint src --fix safe --write", "repair what is safe to repair")),
    ),
    ToolCommand(
        "test",
        "test",
        ("targets",),
        "run tests, and say what failed",
        (("test tests/test_app.py", "one file"), ("test --keyword login --fail-fast", "some, up to the first failure")),
    ),
    ToolCommand(
        "check",
        "check",
        ("paths",),
        "format, lint, types and the tests of your change, in one answer",
        (("check", "what has changed since the last commit"),),
    ),
    ToolCommand(
        "refactor",
        "refactor",
        ("op",),
        "rename, move, rewrite by syntax, sort imports",
        (
            ("refactor rename --symbol.name app.load --new-name read_all", "show the diff"),
            ("refactor rewrite --pattern 'print($A)' --rewrite 'log.info($A)' --lang python --write", "and write it"),
        ),
    ),
    ToolCommand(
        "undo",
        "undo",
        ("undoToken",),
        "take a write back, byte for byte",
        (("undo", "the last one in this folder"),),
        {"undoToken": "last"},
    ),
    ToolCommand("list-agents", "listAgents", ("config",), "list the agents that crewx.yaml and other tools configure"),
)
ALIASES = {"fmt": "format", "listAgents": "list-agents", "agents": "list-agents", "ls": "list-agents"}


def main(program: str, argv: Sequence[str]) -> int:
    """One command from words to exit code."""
    console = ProcessConsole()
    words = list(argv)
    try:
        if not words or words[0] in ("-h", "--help", "help"):
            (console.out if words else console.err)(overview(program))
            return OK if words else USAGE
        if words[0] in ("-V", "--version"):
            console.out(f"{program} (dari {VERSION})\n")
            return OK
        return asyncio.run(_run(program, find_command(words[0], program), words[1:], console))
    except KeyboardInterrupt:
        return INTERRUPTED
    except DariError as error:
        print_error(console, error.message, error.hint)
        return error.exit_code


def overview(program: str) -> str:
    width = max(len(command.name) for command in COMMANDS)
    rows = [f"  {command.name.ljust(width)}  {command.help}" for command in COMMANDS]
    serve = [f"  {'serve'.ljust(width)}  serve an agent over stdin and stdout"] if program == "crewx-tools" else []
    return "\n".join(
        [
            f"usage: {program} COMMAND …",
            "",
            "Tools for work in a repository, for agents and for people.",
            "",
            "commands:",
            *rows,
            *serve,
            "",
            f"`{program} COMMAND --help` has the options. Writers show a diff; --write carries it out, `undo` takes it",
            "back. --json prints the result alone. Guide: docs/guide/code-tools.md",
            "",
        ]
    )


def find_command(name: str, program: str) -> ToolCommand:
    name = ALIASES.get(name, name)
    for command in COMMANDS:
        if command.name == name:
            return command
    known = [command.name for command in COMMANDS]
    raise InvalidInput(f"{program} has no command {name[:60]!r}", suggest(name, [*known, *OVERVIEW_OPTIONS], program))


async def _run(program: str, command: ToolCommand, words: list[str], console: ProcessConsole) -> int:
    import msgspec

    from dari.cli.crewx_tools.render import render_result
    from dari.cli.crewx_tools.shell import open_tools
    from dari.cli.kit.tool_call import call_tool
    from dari.mcp.error_mapping import ERROR_META

    async with open_tools(Path.cwd(), os.environ, console) as (tools, context, log):
        tool = tools[f"crewx_tools_{command.tool}"]
        options = words[: words.index("--")] if "--" in words else words
        if "-h" in options or "--help" in options:
            console.out(describe(program, command, tool))
            return OK
        as_json = "--json" in options
        plain = words[len(options) :]
        given = read_words([*(word for word in options if word != "--json"), *plain], command, tool)
        result = msgspec.json.decode(await call_tool(tool, msgspec.json.encode(given), context, log))
        context.close()
        if result.get("isError"):
            error = result["_meta"][ERROR_META]
            kind = next((each for each in DariError.__subclasses__() if each.name == error["name"]), DariError)
            print_error(console, error["message"].removeprefix(kind.prefix), error["hint"])
            return TimedOut.exit_code if kind is TimedOut else FOUND_FAULTS
        value = result.get("structuredContent")
        if as_json:
            print_json(console, value)
            return exit_code(command.name, value)
        render_result(command.name, value, console)
        return exit_code(command.name, value)


def exit_code(name: str, value: Any) -> int:
    """The exit code says that faults were found, so that a script may stop."""
    if not isinstance(value, dict):
        return OK
    if name == "test":
        return FOUND_FAULTS if value.get("failed") or value.get("errors") or value.get("stopped") else OK
    if name == "check":
        return OK if value.get("ok") else FOUND_FAULTS
    # A missing program that the project does not ask for is not a fault, as in `check`.
    has_failed = name in ("format", "lint") and any(not error.get("optional") for error in value.get("errors", ()))
    has_faults = name == "lint" and value.get("diagnostics") and not value.get("applied")
    return FOUND_FAULTS if has_failed or has_faults else OK


def read_words(words: list[str], command: ToolCommand, tool: Tool) -> dict[str, Any]:
    """Words without a flag are the command's own arguments in their order; the rest are flags of the tool's schema."""
    from dari.cli.remote.arguments import read_flags
    from dari.cli.remote.input_schema import ObjectSchema, types_of

    shape = ObjectSchema(tool.input_schema)
    plain, flags = _split(words, shape, tool.name)
    given: dict[str, Any] = dict(command.defaults)
    for name in command.words:
        is_list = "array" in types_of(shape.properties.get(name, {}), shape.root)
        if plain:
            given[name] = plain if is_list else plain[0]
            plain = [] if is_list else plain[1:]
    if plain:
        raise InvalidInput(f"unexpected argument {plain[0]!r}", f"crewx-tools {command.name} --help")
    return given | read_flags(flags, shape, tool.name)


def _split(words: list[str], shape: ObjectSchema, tool: str) -> tuple[list[str], list[str]]:
    """Words that stand alone, and flags with their values; after `--` every word stands alone."""
    from dari.cli.remote.arguments import takes_value

    plain: list[str] = []
    flags: list[str] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if word == "--":
            return plain + queue, flags
        if not word.startswith("--"):
            plain.append(word)
            continue
        if word == "--write":
            flags.append("--no-dryRun")
            continue
        flags.append(word)
        if "=" not in word and queue and takes_value(word[2:], shape, tool):
            flags.append(queue.pop(0))
    return plain, flags


def describe(program: str, command: ToolCommand, tool: Tool) -> str:
    """The help of a command, made from the tool's schema."""
    from dari.cli.kit.table import wrap_prose
    from dari.cli.remote.input_schema import ObjectSchema, type_text

    shape = ObjectSchema(tool.input_schema)
    lines = [f"usage: {program} {command.name} {' '.join(word.upper() for word in command.words)} [options]", ""]
    lines += [f"{tool.description}", "", "arguments and options:"]
    for one in shape.arguments:
        if one.name == "dryRun":
            lines.append("  --write (switch)\n      carry it out; without it a diff is shown")
            continue
        kind = type_text(one.schema, shape.root)
        name = one.name.upper() if one.name in command.words else f"--{_dashed(one.name)}"
        default = one.schema.get("default")
        shown = f", default {default}" if default not in (None, "", [], False) else ""
        lines.append(f"  {name} ({kind}{shown})")
        lines += wrap_prose(one.description, 100, "      ") if one.description else []
    lines.append("  --json (switch)\n      print the result alone, as JSON")
    return "\n".join(lines) + "\n\n" + format_examples(program, command.examples, EXIT_CODES) + "\n"


def _dashed(name: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)


if __name__ == "__main__":
    sys.exit(main("crewx-tools", sys.argv[1:]))
