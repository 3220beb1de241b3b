"""`trust`: let a project's file run what it names, after a look at it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from dari.cli.remote.consent import DECLINED, agrees, decisions
from dari.cli.remote.payloads import print_json
from dari.cli.remote.project_files import ProjectFile
from dari.cli.remote.sheets import painted, plain, print_lines
from dari.cli.remote.world import World
from dari.errors import InvalidInput

NAME = "trust"
HELP = "look at a project's mcp.json and let it run what it names"
DESCRIPTION = """\
A project's mcp.json comes with the project and can name any command, so nothing in it runs until you have looked at
it. This shows what it would run and reach, what changed since you last agreed, and the hash that is pinned. One
changed byte takes the trust away again. Programs that the file names are not pinned, only the file."""
EXAMPLES = (
    ("trust", "the project's file where you are"),
    ("trust ../other/.crewx/mcp.json", "another one"),
    ("trust --sha256 9f2c…", "pin exactly this content without a question, or fail"),
    ("trust --json", "what it would run, as JSON; pins nothing"),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="default: ./.crewx/mcp.json")
    parser.add_argument("--yes", "-y", action="store_true", help="pin what is there now, without a question")
    parser.add_argument("--sha256", metavar="HASH", help="pin the content with this hash only")
    parser.add_argument("--json", action="store_true", help="print what it holds; pins only with --yes or --sha256")


async def run(arguments: argparse.Namespace, world: World) -> int:
    terminal, book = world.terminal, world.view.book
    if arguments.sha256 and not re.fullmatch(r"[0-9a-fA-F]{64}", arguments.sha256):
        raise InvalidInput("--sha256 needs 64 hexadecimal digits", "the command without it shows the hash")
    given = Path(book.around.cwd, arguments.file).expanduser() if arguments.file else None
    file = ProjectFile.read(given, book)
    agreed = arguments.yes or arguments.sha256 is not None
    is_trusted = file.state.state == "trusted"
    if arguments.json:
        if agreed and not is_trusted:
            _pin(file, arguments.sha256, world)
        print_json(terminal, file.payload(is_trusted=agreed or is_trusted))
        return 0
    print_lines(terminal, file.lines(terminal))
    if is_trusted:
        terminal.out("it is trusted already\n")
        return 0
    if not await agrees(terminal, "let it run this?", is_given=agreed, instead=f"--sha256 {file.digest}"):
        terminal.err("not trusted; nothing of it runs\n")
        return DECLINED
    _pin(file, arguments.sha256, world)
    terminal.out(f"{painted('trusted', 'green', terminal)} {plain(file.path)}\n")
    return 0


def _pin(file: ProjectFile, wanted: str | None, world: World) -> None:
    """What was shown is what is pinned: another content by now is refused."""
    decisions(world).trust(world.view.book, file.path, (wanted or file.digest).lower())
