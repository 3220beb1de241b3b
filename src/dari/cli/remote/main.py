"""`crewx mcp remote …`, `dari remote …` and `crewx mcp …`: the table of commands, and one run of one of them."""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING

from dari.cli.kit.commands import CommandEntry, CommandLoader, find_command, list_commands
from dari.cli.kit.console import STDOUT_NAME, Console, ProcessConsole
from dari.cli.kit.hints import PROGRAM
from dari.cli.kit.parser import HELP_COLUMNS, HelpRequested
from dari.cli.remote.context import OTHER, USAGE, CommandContext, add_common_options, exit_code, show_error
from dari.errors import DariError, InvalidInput
from dari.os_errors import from_os_error
from dari.text.sanitize import escape_hidden

if TYPE_CHECKING:
    from dari.bridge.config.locations import ClientEnvironment
    from dari.bridge.service import Bridge


EXIT_CODES = """\
exit codes:
  0 done · 1 usage, validation or configuration · 2 network, authentication, time or start of a server
  3 the tool or the server answered with an error · 4 interrupted, or anything else"""


REMOTE = (
    CommandEntry("servers", "list", "list the server profiles: kind, address, state, where they are written"),
    CommandEntry("list-tools", "list", "list the tools of a server, or of all"),
    CommandEntry("call-tool", "call", "call a tool, with JSON or with flags made from its schema"),
    CommandEntry("batch", "batch", "call many tools from JSON lines, several at once"),
    CommandEntry("list", "list", "short: the servers, or the tools of one"),
    CommandEntry("call", "call", "short for call-tool"),
    CommandEntry("describe", "describe", "show a tool's arguments and an example call"),
    CommandEntry("list-resources", "list", "list the resources of a server"),
    CommandEntry("read-resource", "read", "read a resource"),
    CommandEntry("list-prompts", "list", "list the prompts of a server"),
    CommandEntry("get-prompt", "read", "fill in a prompt"),
    CommandEntry("prewarm", "manage", "start a server and fetch its lists, so that the next call is fast"),
    CommandEntry("add", "add", "add a server to mcp.json: a command, an address, or JSON from a README"),
    CommandEntry("remove", "manage", "take a server out of mcp.json"),
    CommandEntry("rename", "manage", "give a server another name"),
    CommandEntry("enable", "manage", "let a disabled server run again"),
    CommandEntry("disable", "manage", "keep a server in mcp.json, but never start or reach it"),
    CommandEntry("import", "add", "copy servers from Claude, Cursor, VS Code, Codex, Gemini, Windsurf, OpenCode"),
    CommandEntry("trust", "trust", "look at a project's mcp.json and let it run what it names"),
    CommandEntry("distrust", "trust", "stop trusting a project's mcp.json"),
    CommandEntry("test", "test", "try servers step by step: profile, sandbox, start, protocol, tools, schemas"),
    CommandEntry("doctor", "doctor", "check everything that servers depend on here, with the next step for each"),
    CommandEntry("approve", "pins", "review what a server changed in its tools, and accept or reject it"),
    CommandEntry("pins", "pins", "show the pinned items of a server, and every decision about it"),
    CommandEntry("forget-pins", "pins", "drop all pins of a server"),
    CommandEntry("approvals", "approvals", "calls that wait for a person: see, approve or deny them"),
    CommandEntry("login", "auth", "log in to a server that asks for OAuth"),
    CommandEntry("logout", "auth", "forget the tokens of a server"),
    CommandEntry("auth-status", "auth", "show the logins that are kept on this machine"),
    CommandEntry("schema", "manage", "print the JSON Schema of mcp.json"),
    CommandEntry("daemon", "manage", "start, stop or look at the daemon that keeps servers warm"),
    CommandEntry("completion", "completion", "print a completion script for bash, zsh or fish"),
    CommandEntry("__complete", "completion"),
)
BUILT_IN = (
    CommandEntry("list_tools", "built_in", "list the tools that are built in"),
    CommandEntry("call_tool", "built_in", "call a tool that is built in"),
)
# Each table with what its overview says.
TABLES: dict[str, tuple[tuple[CommandEntry, ...], str]] = {
    "crewx mcp": (BUILT_IN, "The tools that are built in. Other servers: crewx mcp remote --help"),
}
_REMOTE_SAYS = "Other people's MCP servers from the shell: find, call, watch and trust them."
_LOADER = CommandLoader("dari.cli.remote", EXIT_CODES, add_common_options)
load, parser_of = _LOADER.load, _LOADER.parser_of
_GLOBAL_FLAGS = ("--log", "--no-daemon")


async def run(program: str, argv: list[str], console: Console, bridge: Bridge, around: ClientEnvironment) -> int:
    """One command from words to exit code. Cancelling the task is Ctrl-C: the caller makes it exit code 4."""
    HELP_COLUMNS.set(console.columns)
    PROGRAM.set(program)
    try:
        return await _run(program, argv, console, bridge, around)
    except HelpRequested as shown:
        console.out(shown.text)
        return 0
    except DariError as error:
        show_error(error, console)
        return exit_code(error)
    except Exception as error:
        if (refused := from_os_error(error)) is not None:
            show_error(refused, console)
            # The tool has answered and did not fail; only its answer could not be printed.
            return OTHER if getattr(error, "filename", "") == STDOUT_NAME else exit_code(refused)
        if "--log" in argv:
            console.err(escape_hidden("".join(traceback.format_exception(error))))
        show_error(error, console)
        return OTHER
    finally:
        await console.drain()


def run_here(program: str, argv: list[str]) -> int:
    """Run a command in this process, with a bridge of its own that ends with it. Ctrl-C is exit code 4."""
    from dari.bridge.config.locations import ClientEnvironment
    from dari.bridge.service import Bridge
    from dari.cli.hub.paths import BridgePaths
    from dari.core.scopes import ALL_SCOPES
    from dari.daemon.caller_scopes import serve_own_process

    console = ProcessConsole()

    async def handle() -> int:
        place = BridgePaths()
        async with Bridge(place.state_dir, protected=place.protected, is_guest=True) as bridge:
            with serve_own_process(ALL_SCOPES):
                return await run(program, argv, console, bridge, ClientEnvironment.of_process())

    try:
        return asyncio.run(handle())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return OTHER
    except (DariError, OSError) as error:  # a home or a working directory that is not usable
        show_error(from_os_error(error) or error, console)
        return exit_code(error)


def commands_of(program: str) -> tuple[CommandEntry, ...]:
    return TABLES[program][0] if program in TABLES else REMOTE


async def _run(program: str, argv: list[str], console: Console, bridge: Bridge, around: ClientEnvironment) -> int:
    logs, words = _global_options(argv)
    commands = commands_of(program)
    if not words:
        console.err(overview(program))
        return USAGE
    name, words = words[0], words[1:]
    if name in ("-h", "--help", "help"):
        raise HelpRequested(overview(program))
    entry = find_command(name, commands, program)
    command = load(entry)
    words, rest = command.split(words) if command.split is not None else (words, [])
    arguments = parser_of(entry, program).parse_args(words)
    arguments.rest = rest
    context = CommandContext(console, bridge, bridge.view(around), program, logs or arguments.log)
    try:
        code = await command.run(arguments, context)
    finally:
        for upstream in context.temporary:
            await upstream.stop()
    return code


def _global_options(argv: list[str]) -> tuple[bool, list[str]]:
    """Whether `--log` stands before the command, and the words from the command on."""
    logs = False
    at = 0
    while at < len(argv):
        word = argv[at]
        if word in _GLOBAL_FLAGS:
            logs = logs or word == "--log"
        elif word == "--config":
            at += 1
            if at >= len(argv):
                raise InvalidInput("--config needs a file", "--config crewx.yaml")
        elif not word.startswith("--config="):
            break
        at += 1
    return logs, argv[at:]


def overview(program: str) -> str:
    says = TABLES[program][1] if program in TABLES else _REMOTE_SAYS
    listed = [command for command in commands_of(program) if command.help]
    lines = list_commands(listed)
    usage = f"usage: {program} [--log] [--config FILE] COMMAND …"
    more = f"Every command has examples: {program} {listed[0].name} --help. Guide: docs/guide/remote.md"
    return "\n".join([usage, "", says, "", "commands:", *lines, "", more, "", EXIT_CODES, ""])
