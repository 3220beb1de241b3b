"""`add`: write a server down."""

from __future__ import annotations

import argparse
from pathlib import Path

from dari.bridge.config.profile import Layer
from dari.bridge.config.writer import JsonEntry
from dari.cli.remote.additions import entries_in, entry_of, literal_secrets
from dari.cli.remote.sheets import plain, warn
from dari.cli.remote.world import World
from dari.errors import Conflict, InvalidInput

NAME = "add"
HELP = "write a server down: a command, an address, or JSON from a README"
DESCRIPTION = """\
Write an MCP server into mcp.json: yours (~/.config/crewx/mcp.json), or the project's with --project.
Everything after -- is the command of a server that runs here. Write secrets as ${NAME} (a variable of yours) or
${keyring:service/name}: they are filled in when the server is used, and never stand in the file."""
EXAMPLES = (
    ("add time -- uvx mcp-server-time", "a program that runs here"),
    (
        "add files --allow ~/notes --allow /usr/share:ro --network none --sandbox enforce --test -- "
        "npx -y @modelcontextprotocol/server-filesystem ~/notes",
        "… kept by the kernel to two folders and off the network, and tried at once",
    ),
    ("add github --env 'GITHUB_TOKEN=${GITHUB_TOKEN}' -- npx -y some-github-server", "… with a variable of yours"),
    ("add docs https://mcp.example.com/mcp", "a server behind an address"),
    (
        "add prod --url https://mcp.example.com/mcp --key '${CREWX_MCP_KEY}' --default",
        "… with a key, and used when no server is named",
    ),
    ("""add --json '{"mcpServers": {"memory": {"command": "npx", "args": ["-y", "x"]}}}'""", "pasted from a README"),
    ("add memory --json @memory.json --project", "one entry from a file, for everybody who works on this project"),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="the name of the server; --json may name it instead")
    parser.add_argument("loose", nargs="*", help=argparse.SUPPRESS)
    add_layer(parser)
    parser.add_argument("--url", help="the address of a server that runs elsewhere")
    parser.add_argument("--key", metavar="TOKEN", help="sent to it as Authorization: Bearer")
    parser.add_argument("--header", metavar="'K: V'", action="append", default=[], help="sent to it; repeatable")
    parser.add_argument("--env", metavar="K=V", action="append", default=[], help="a variable of it; repeatable")
    parser.add_argument("--cwd", metavar="PATH", help="where it runs (default: where you are when it is used)")
    parser.add_argument(
        "--allow",
        metavar="PATH[:ro|rw]",
        action="append",
        default=[],
        help="it may use this folder or file, rw unless told; repeatable. Without any, files are not confined",
    )
    parser.add_argument("--network", choices=("none", "loopback", "all"), help="what it may reach (default: all)")
    parser.add_argument("--sandbox", choices=("auto", "enforce", "off"), help="enforce: no start without the walls")
    parser.add_argument("--default", action="store_true", help="used when a command names no server")
    parser.add_argument("--json", metavar="JSON", help="the entry as it is; @FILE reads a file, - reads stdin")
    parser.add_argument("--replace", action="store_true", help="overwrite a server of this name in that file")
    parser.add_argument("--test", action="store_true", help="start it, list its tools, tell every step")


def add_layer(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", dest="layer", action="store_const", const="user", help="into your own file (default)")
    where.add_argument(
        "--project", dest="layer", action="store_const", const="project", help="into ./.crewx/mcp.json of the project"
    )
    parser.set_defaults(layer="user")


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """What follows `--` belongs to the server."""
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


async def run(arguments: argparse.Namespace, world: World) -> int:
    terminal, book, layer = world.terminal, world.view.book, layer_of(arguments)
    if len(arguments.loose) == 1 and arguments.loose[0].startswith(("http://", "https://")) and not arguments.url:
        arguments.url = arguments.loose.pop()
    if arguments.loose:
        words = " ".join((*arguments.loose, *arguments.rest))
        raise InvalidInput(
            f"'{arguments.loose[0]}' is no option", f"put -- before the command: add {arguments.id} -- {words}"
        )
    entries = await _entries(arguments, world)
    file = book.around.file_of(layer)
    for id, entry in entries.items():
        try:
            book.add(id, entry, layer, arguments.replace)
        except Conflict as conflict:
            raise Conflict(conflict.message, "choose another name, or overwrite it: --replace") from None
        terminal.out(f"added '{plain(id)}' to {plain(file)}\n")
        warn(terminal, _advice(id, entry, file, world))
    if arguments.test:
        from dari.cli.remote.trial import run_trials

        return await run_trials(world, tuple(entries), as_json=False)
    first = next(iter(entries))
    terminal.err(f"try it: {world.program} test {plain(first)}\n")
    return 0


def layer_of(arguments: argparse.Namespace) -> Layer:
    layer: Layer = arguments.layer
    return layer


async def _entries(arguments: argparse.Namespace, world: World) -> dict[str, JsonEntry]:
    around = world.view.book.around
    if arguments.json is None:
        if not arguments.id:
            raise InvalidInput("the server has no name", f"{world.program} add NAME -- command, or --url address")
        return {arguments.id: entry_of(arguments, arguments.rest, around)}
    given = ("url", "key", "header", "env", "cwd", "allow", "network", "sandbox", "default")
    if arguments.rest or any(getattr(arguments, name) for name in given):
        raise InvalidInput("--json is the whole entry", "put the other options into it, or leave --json out")
    return entries_in(await _json(arguments.json, world), arguments.id)


async def _json(text: str, world: World) -> str:
    if text == "-":
        return (await world.terminal.read_stdin()).decode("utf-8", "replace")
    if not text.startswith("@"):
        return text
    path = Path(world.view.book.around.cwd, text[1:]).expanduser()
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}", "name a file with JSON in it") from None


def _advice(id: str, entry: JsonEntry, file: Path, world: World) -> list[str]:
    """What a person should know about what was just written."""
    told = []
    if fields := literal_secrets(entry):
        told.append(
            f"{', '.join(fields)} of '{id}' stands in {file} in the clear; "
            "better: ${NAME} (a variable of yours) or ${keyring:service/name}"
        )
    listed = world.view.book.load().find(id)
    if listed.source.file != str(file):
        told.append(f"'{id}' also stands in {listed.source}, and that one counts")
    elif listed.state == "untrusted":
        told.append(f"{file} is not trusted, so nothing in it runs: {world.program} trust")
    if listed.profile is not None:
        told += listed.profile.notes
    return told
