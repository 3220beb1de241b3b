"""`crewx mcp remote …`, `dari remote …` and `crewx mcp …`: the table of commands, and one run of one of them.

A command is a module with `NAME`, `HELP`, `add(parser)` and `async run(arguments, world) -> int`; optional are
`EXAMPLES` (what follows the program's name, what it does), `DESCRIPTION` (the text of `--help`, else `HELP`) and
`split(words) -> (words, rest)`, which sets words aside before they are parsed: they come as `arguments.rest`.
"""

from __future__ import annotations

import asyncio
import importlib
import traceback
from collections.abc import Sequence
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from dari.cli.remote.failures import OTHER, USAGE, exit_code, tell
from dari.cli.remote.hints import PROGRAM
from dari.cli.remote.parser import COLUMNS, EXIT_CODES, Parser, Shown, add_common, epilog
from dari.cli.remote.terminal import ProcessTerminal, Terminal
from dari.cli.remote.world import World
from dari.errors import DariError, InvalidInput
from dari.os_errors import from_os_error
from dari.text.sanitize import escape_hidden

if TYPE_CHECKING:
    from dari.bridge.config.locations import ClientEnvironment
    from dari.bridge.service import Bridge


class Command(NamedTuple):
    """One line of `--help`; the module is loaded when the command is used. Without help it is not listed."""

    name: str
    module: str
    help: str = ""


REMOTE = (
    Command("servers", "servers", "list the server profiles: kind, address, state, where they are written"),
    Command("list-tools", "list_tools", "list the tools of a server, or of all"),
    Command("call-tool", "call_tool", "call a tool, with JSON or with flags made from its schema"),
    Command("batch", "batch", "call many tools from JSON lines, several at once"),
    Command("list", "list_short", "short: the servers, or the tools of one"),
    Command("call", "call_short", "short for call-tool"),
    Command("describe", "describe", "show a tool's arguments and an example call"),
    Command("list-resources", "list_resources", "list the resources of a server"),
    Command("read-resource", "read_resource", "read a resource"),
    Command("list-prompts", "list_prompts", "list the prompts of a server"),
    Command("get-prompt", "get_prompt", "fill in a prompt"),
    Command("prewarm", "prewarm", "start a server and fetch its lists, so that the next call is fast"),
    Command("add", "add", "write a server down: a command, an address, or JSON from a README"),
    Command("remove", "remove", "take a server out of mcp.json"),
    Command("rename", "rename", "give a server another name"),
    Command("enable", "enable", "let a disabled server run again"),
    Command("disable", "disable", "keep a server in mcp.json, but never start or reach it"),
    Command("import", "imports", "copy servers from Claude, Cursor, VS Code, Codex, Gemini, Windsurf, OpenCode"),
    Command("trust", "trust", "look at a project's mcp.json and let it run what it names"),
    Command("distrust", "distrust", "take the trust in a project's mcp.json back"),
    Command("test", "trial", "try servers step by step: profile, sandbox, start, protocol, tools, schemas"),
    Command("doctor", "doctor", "check everything that servers depend on here, with the next step for each"),
    Command("approve", "approve", "look at what a server changed of its tools, and agree to it or not"),
    Command("pins", "pins", "show what is pinned of a server, and every decision about it"),
    Command("forget-pins", "forget_pins", "drop all pins of a server"),
    Command("approvals", "approvals", "calls that wait for a person: see, approve or deny them"),
    Command("login", "login", "log in to a server that asks for OAuth"),
    Command("logout", "logout", "forget the tokens of a server"),
    Command("auth-status", "auth_status", "show the logins that are kept on this machine"),
    Command("schema", "schema", "print the JSON Schema of mcp.json"),
    Command("daemon", "daemon_commands", "start, stop or look at the daemon that keeps servers warm"),
    Command("completion", "completion", "print a completion script for bash, zsh or fish"),
    Command("__complete", "completing"),
)
BUILT_IN = (
    Command("list_tools", "own_tools", "list the tools that are built in"),
    Command("call_tool", "own_call", "call a tool that is built in"),
)
# Each table with what its overview says.
TABLES: dict[str, tuple[tuple[Command, ...], str]] = {
    "crewx mcp": (BUILT_IN, "The tools that are built in. Other servers: crewx mcp remote --help"),
}
_REMOTE_SAYS = "Other people's MCP servers from the shell: find, call, watch and trust them."
_GLOBAL_FLAGS = ("--log", "--no-daemon")


async def run(program: str, argv: list[str], terminal: Terminal, bridge: Bridge, around: ClientEnvironment) -> int:
    """One command from words to exit code. Cancelling the task is Ctrl-C: the caller makes it exit code 4."""
    COLUMNS.set(terminal.columns)
    PROGRAM.set(program)
    try:
        return await _run(program, argv, terminal, bridge, around)
    except Shown as shown:
        terminal.out(shown.text)
        return 0
    except DariError as error:
        tell(error, terminal)
        return exit_code(error)
    except Exception as error:
        if (refused := from_os_error(error)) is not None:
            tell(refused, terminal)
            return exit_code(refused)
        if "--log" in argv:
            terminal.err(escape_hidden("".join(traceback.format_exception(error))))
        tell(error, terminal)
        return OTHER
    finally:
        await terminal.drain()


def run_here(program: str, argv: list[str]) -> int:
    """Run a command in this process, with a bridge of its own that ends with it. Ctrl-C is exit code 4."""
    from dari.bridge.config.locations import ClientEnvironment
    from dari.bridge.paths import BridgePaths
    from dari.bridge.service import Bridge

    terminal = ProcessTerminal()

    async def handle() -> int:
        place = BridgePaths()
        async with Bridge(place.state_path, protected=place.protected, is_guest=True) as bridge:
            return await run(program, argv, terminal, bridge, ClientEnvironment.of_process())

    try:
        return asyncio.run(handle())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return OTHER
    except (DariError, OSError) as error:  # a home or a working directory that is not usable
        tell(error, terminal)
        return exit_code(error)


def commands_of(program: str) -> tuple[Command, ...]:
    return TABLES[program][0] if program in TABLES else REMOTE


def load(command: Command) -> ModuleType:
    return importlib.import_module(f"dari.cli.remote.{command.module}")


def parser_of(command: Command, program: str) -> Parser:
    """The parser of one command: its own options, then those of every command. To make one takes longer than a call."""
    return _parser(command, program, COLUMNS.get())


@lru_cache(maxsize=64)
def _parser(command: Command, program: str, columns: int) -> Parser:
    module = load(command)
    parser = Parser(
        prog=f"{program} {command.name}",
        description=getattr(module, "DESCRIPTION", module.HELP),
        epilog=epilog(program, getattr(module, "EXAMPLES", ())),
    )
    module.add(parser)
    add_common(parser)
    return parser


async def _run(program: str, argv: list[str], terminal: Terminal, bridge: Bridge, around: ClientEnvironment) -> int:
    logs, words = _global_options(argv)
    commands = commands_of(program)
    if not words:
        terminal.err(overview(program))
        return USAGE
    name, words = words[0], words[1:]
    if name in ("-h", "--help", "help"):
        raise Shown(overview(program))
    command = _find(name, commands, program)
    module = load(command)
    rest: Sequence[str] = ()
    if hasattr(module, "split"):
        words, rest = module.split(words)
    arguments = parser_of(command, program).parse_args(words)
    arguments.rest = list(rest)
    world = World(terminal, bridge, bridge.view(around), program, logs or arguments.log)
    try:
        code: int = await module.run(arguments, world)
    finally:
        for upstream in world.temporary:
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


def _find(name: str, commands: tuple[Command, ...], program: str) -> Command:
    for command in commands:
        if command.name == name:
            return command
    from difflib import get_close_matches

    known = [command.name for command in commands if command.help]
    close = get_close_matches(name.replace("_", "-") if "-" in "".join(known) else name, known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"see: {program} --help"
    raise InvalidInput(f"there is no command '{name[:60]}'", hint)


def overview(program: str) -> str:
    says = TABLES[program][1] if program in TABLES else _REMOTE_SAYS
    listed = [command for command in commands_of(program) if command.help]
    width = max(len(command.name) for command in listed)
    lines = [f"  {command.name.ljust(width)}  {command.help}" for command in listed]
    usage = f"usage: {program} [--log] [--config FILE] COMMAND …"
    more = f"Every command has examples: {program} {listed[0].name} --help. Guide: docs/guide/remote.md"
    return "\n".join([usage, "", says, "", "commands:", *lines, "", more, "", EXIT_CODES, ""])
