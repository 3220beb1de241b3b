"""`add`: add a server to mcp.json."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from dari.bridge.config.importers.plan import ImportCandidate, ImportPlan
from dari.bridge.config.importers.sources import PROGRAMS
from dari.bridge.config.jsonc import JsonValue
from dari.bridge.config.loader import MAX_CONFIG_BYTES
from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.pasted import advise, find_literal_secrets, parse_entries
from dari.bridge.config.profile import Layer
from dari.bridge.config.schema import ProgramName
from dari.bridge.config.writer import JsonEntry
from dari.cli.kit.console import paint, print_json, print_lines
from dari.cli.kit.parser import Command
from dari.cli.kit.table import format_table, one_line
from dari.cli.remote.context import DECLINED, CommandContext, ask_consent, read_named_file
from dari.errors import Conflict, InvalidInput


def make_entry(arguments: argparse.Namespace, command: list[str], around: ClientEnvironment) -> JsonEntry:
    """One server from options; a field that was not given is left out, so that its default counts."""
    if bool(command) == bool(arguments.url):
        raise InvalidInput(
            "a server is either a command or an address" + (", not both" if command else ""),
            f"add {arguments.id or 'NAME'} -- npx some-server, or add {arguments.id or 'NAME'} --url https://host/mcp",
        )
    entry: JsonEntry = {}
    if command:
        _refuse(arguments, ("header", "key"), "counts for an address only")
        entry["command"] = command[0]
        if command[1:]:
            entry["args"] = list[JsonValue](command[1:])
        if arguments.env:
            entry["env"] = dict(_pair(text, "=", "--env", "NAME=VALUE") for text in arguments.env)
        if arguments.cwd:
            entry["cwd"] = _placed(arguments.cwd, around)
        if arguments.allow:
            entry["allowedPaths"] = [_allowed(text, around) for text in arguments.allow]
        for name in ("network", "sandbox"):
            if (value := getattr(arguments, name)) is not None:
                entry[name] = value
    else:
        _refuse(arguments, ("env", "cwd", "allow", "network", "sandbox"), "counts for a command only")
        entry["url"] = arguments.url
        if arguments.key:
            entry["apiKey"] = arguments.key
        if arguments.header:
            entry["headers"] = dict(_pair(text, ":", "--header", "'NAME: VALUE'") for text in arguments.header)
    if arguments.default:
        entry["default"] = True
    return entry


def _pair(text: str, separator: str, option: str, shape: str) -> tuple[str, JsonValue]:
    name, found, value = text.partition(separator)
    if not found or not name.strip():
        # The text may be a secret without its name: it is not repeated.
        raise InvalidInput(f"{option} needs {shape}", f"such as {option} {shape}")
    return name.strip(), value.strip() if separator == ":" else value


def _allowed(text: str, around: ClientEnvironment) -> JsonValue:
    path, colon, mode = text.rpartition(":")
    if not colon or mode not in ("ro", "rw"):
        path, mode = text, "rw"
    return {"path": _placed(path, around), "mode": mode}


def _placed(path: str, around: ClientEnvironment) -> str:
    """Absolute, seen from where the person is; what is filled in later stays as it is."""
    if not path:
        raise InvalidInput("a path must not be empty", "name a folder or a file")
    if path.startswith("${"):
        return path
    if path == "~" or path.startswith("~/"):
        path = str(around.home) + path[1:]
    return os.path.normpath(Path(around.cwd, path))


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if getattr(arguments, name):
            raise InvalidInput(f"--{name} {why}", "leave it out")


def add_add(parser: argparse.ArgumentParser) -> None:
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
        help="allow this folder or file, rw by default; repeatable. Without any, files are not confined",
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


def split_add(words: list[str]) -> tuple[list[str], list[str]]:
    """What follows `--` belongs to the server."""
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


async def run_add(arguments: argparse.Namespace, context: CommandContext) -> int:
    console, book, layer = context.console, context.view.book, layer_of(arguments)
    if len(arguments.loose) == 1 and arguments.loose[0].startswith(("http://", "https://")) and not arguments.url:
        arguments.url = arguments.loose.pop()
    if arguments.loose:
        words = " ".join((*arguments.loose, *arguments.rest))
        raise InvalidInput(
            f"unexpected word '{arguments.loose[0]}'", f"put -- before the command: add {arguments.id} -- {words}"
        )
    entries = await _entries(arguments, context)
    file = book.around.file_of(layer)
    try:
        await asyncio.to_thread(book.add_all, entries, layer, arguments.replace)
    except Conflict as conflict:
        raise Conflict(conflict.message, "choose another name, or overwrite it: --replace") from None
    for id, entry in entries.items():
        console.out(f"added '{one_line(id)}' to {one_line(file)}\n")
        for advice in advise(book.load(), id, entry, file):
            context.warn(advice)
    if arguments.test:
        from dari.cli.remote.test import run_tests

        return await run_tests(context, tuple(entries), as_json=False)
    first = next(iter(entries))
    console.err(f"try it: {context.program} test {one_line(first)}\n")
    return 0


def layer_of(arguments: argparse.Namespace) -> Layer:
    layer: Layer = arguments.layer
    return layer


async def _entries(arguments: argparse.Namespace, context: CommandContext) -> dict[str, JsonEntry]:
    around = context.view.book.around
    if arguments.json is None:
        if not arguments.id:
            raise InvalidInput("the server has no name", f"{context.program} add NAME -- command, or --url address")
        return {arguments.id: make_entry(arguments, arguments.rest, around)}
    given = ("url", "key", "header", "env", "cwd", "allow", "network", "sandbox", "default")
    if arguments.rest or any(getattr(arguments, name) for name in given):
        raise InvalidInput("--json is the whole entry", "put the other options into it, or leave --json out")
    return parse_entries(await _json(arguments.json, context), arguments.id)


async def _json(text: str, context: CommandContext) -> str:
    if text == "-":
        data, where = await context.console.read_stdin(), "stdin"
    elif text.startswith("@"):
        cwd = context.view.book.around.cwd
        data, where = (
            read_named_file(cwd, text[1:], MAX_CONFIG_BYTES, "name a file with JSON in it; - reads stdin"),
            text[1:],
        )
    else:
        return text
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{where} must be UTF-8 text (byte {error.start})", "write it as UTF-8") from None


_WORDS = {"new": "new", "duplicate": "same", "conflict": "conflict", "broken": "skipped"}
_STYLES = {"new": "green", "duplicate": "dim", "conflict": "yellow", "broken": "red"}


def add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"{', '.join(PROGRAMS)} (default: all)")
    add_layer(parser)
    parser.add_argument("--dry-run", action="store_true", help="show the plan, write nothing")
    parser.add_argument("--take-conflicts", action="store_true", help="copy conflicts under the free names shown")
    parser.add_argument("--yes", "-y", action="store_true", help="write without asking")
    parser.add_argument("--json", action="store_true", help="print the plan, and what was written, as JSON")


async def run_import(arguments: argparse.Namespace, context: CommandContext) -> int:
    console, book, layer = context.console, context.view.book, layer_of(arguments)
    plan = book.plan_import(_chosen(arguments.programs))
    file = book.around.file_of(layer)
    taken = [*plan.of("new"), *(plan.of("conflict") if arguments.take_conflicts else ())]
    if not arguments.json:
        print_lines(console, _table(plan, arguments.take_conflicts, context))
    for note in plan.notes:
        context.warn(note)
    if layer == "project":
        for exposed in _exposed(taken, file):
            context.warn(exposed)
    written: tuple[str, ...] = ()
    code = 0
    if taken and not arguments.dry_run:
        question = f"write {len(taken)} server{'s' * (len(taken) != 1)} to {file}?"
        if await ask_consent(console, question, is_given=arguments.yes, instead="--yes, or --dry-run"):
            written = await asyncio.to_thread(book.run_import, plan, layer, arguments.take_conflicts)
        else:
            code = DECLINED
    if arguments.json:
        print_json(console, _payload(plan, file, written))
    elif written:
        console.out(f"wrote {', '.join(map(one_line, written))} to {one_line(file)}\n")
    elif code:
        console.err("nothing was written\n")
    elif not taken:
        console.err("nothing to import\n")
    return code


def _chosen(names: list[str]) -> tuple[ProgramName, ...] | None:
    """None: all of them."""
    for name in names:
        if name not in PROGRAMS:
            from difflib import get_close_matches

            close = get_close_matches(name, PROGRAMS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(PROGRAMS)}"
            raise InvalidInput(f"servers cannot be imported from '{name[:60]}'", hint)
    return tuple(program for program in PROGRAMS if program in names) or None


def _table(plan: ImportPlan, takes_conflicts: bool, context: CommandContext) -> list[str]:
    if not plan.candidates:
        return ["no servers were found"]
    rows = [("", "NAME", "PROGRAM", "RUNS OR REACHES", "FROM")]
    rows += [(_WORDS[one.status], one.id, one.program, one.address or "-", str(one.source)) for one in plan.candidates]
    heading, *lines = format_table(rows)
    shown = [paint(heading, "bold", context.console)]
    for one, line in zip(plan.candidates, lines, strict=True):
        word = _WORDS[one.status]
        shown.append(paint(word, _STYLES[one.status], context.console) + line[len(word) :])
        reason = one.reason
        if one.status == "conflict":
            reason += f"; {'copied' if takes_conflicts else 'with --take-conflicts it is copied'} as '{one.free_id}'"
        shown += [f"          {one_line(text_line)}" for text_line in (reason, *one.notes) if text_line]
    return shown


def _exposed(taken: list[ImportCandidate], file: Path) -> list[str]:
    return [
        f"{', '.join(fields)} of '{one.id}' would stand in {file} in the clear, for everybody who has the project"
        for one in taken
        if (fields := find_literal_secrets(one.entry))
    ]


def _payload(plan: ImportPlan, file: Path, written: tuple[str, ...]) -> dict[str, object]:
    return {
        "candidates": [
            {
                "id": one.id,
                "program": one.program,
                "source": {"file": one.source.file, "line": one.source.line},
                "status": one.status,
                "address": one.address,
                "reason": one.reason,
                "notes": list(one.notes),
                "freeId": one.free_id or None,
            }
            for one in plan.candidates
        ],
        "notes": list(plan.notes),
        "file": str(file),
        "written": list(written),
    }


COMMANDS = (
    Command(
        "add",
        "add a server to mcp.json: a command, an address, or JSON from a README",
        add_add,
        run_add,
        description="""\
Write an MCP server into mcp.json: yours (~/.config/crewx/mcp.json), or the project's with --project.
Everything after -- is the command of a server that runs here. Write secrets as ${NAME} (a variable of yours) or
${keyring:service/name}: they are filled in when the server is used, and never stand in the file.""",
        examples=(
            ("add time -- uvx mcp-server-time", "a program that runs here"),
            (
                "add files --allow ~/notes --allow /usr/share:ro --network none --sandbox enforce --test -- "
                "npx -y @modelcontextprotocol/server-filesystem ~/notes",
                "… kept by the kernel to two folders and off the network, and tried at once",
            ),
            (
                "add github --env 'GITHUB_TOKEN=${GITHUB_TOKEN}' -- npx -y some-github-server",
                "… with a variable of yours",
            ),
            ("add docs https://mcp.example.com/mcp", "a server behind an address"),
            (
                "add prod --url https://mcp.example.com/mcp --key '${CREWX_MCP_KEY}' --default",
                "… with a key, and used when no server is named",
            ),
            (
                """add --json '{"mcpServers": {"memory": {"command": "npx", "args": ["-y", "x"]}}}'""",
                "pasted from a README",
            ),
            (
                "add memory --json @memory.json --project",
                "one entry from a file, for everybody who works on this project",
            ),
        ),
        split=split_add,
    ),
    Command(
        "import",
        "copy servers from Claude, Cursor, VS Code, Codex, Gemini, Windsurf and OpenCode",
        add_import,
        run_import,
        description="""\
Copy servers that other programs have into mcp.json. The plan is shown first: what is new, what is there already
(same), what has a name that is taken (conflict), and what cannot be copied (skipped) with the reason.""",
        examples=(
            ("import", "from every program that is here; asks before it writes"),
            ("import claude-desktop cursor --dry-run", "show the plan and stop"),
            ("import vscode --project --yes", "into the project's file, without a question"),
            ("import codex --take-conflicts", "copy also what has a name that is taken, under a free one"),
        ),
    ),
)
