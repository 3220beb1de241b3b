"""`trust`: let a project's file run what it names, after a look at it."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from dari.bridge.config.catalog import mask_arguments, summarize_profile
from dari.bridge.config.loader import FileContents, read_file
from dari.bridge.config.profile import HttpSettings, Profile, StdioSettings, safe_url
from dari.bridge.config.service import ConfigService
from dari.bridge.config.trust import TrustState
from dari.cli.kit.console import Console, paint, print_json, print_lines
from dari.cli.kit.parser import Command
from dari.cli.kit.table import format_table, one_line
from dari.cli.remote.context import DECLINED, CommandContext, ask_consent, decisions
from dari.cli.remote.manage import stop_servers
from dari.errors import InvalidInput


def add_distrust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="default: ./.crewx/mcp.json")


async def run_distrust(arguments: argparse.Namespace, context: CommandContext) -> int:
    book = context.view.book
    given = Path(book.around.cwd, arguments.file).expanduser() if arguments.file else None
    path = given or book.trust_state()[0]
    if not decisions(context).distrust(book, path):
        context.console.err(f"{one_line(path)} was not trusted\n")
        return 0
    await stop_servers(context, path)
    context.console.out(f"{one_line(path)} is not trusted any more\n")
    return 0


_STATES = {
    "unknown": ("not trusted: nothing of it runs", "yellow"),
    "changed": ("changed since it was trusted: nothing of it runs", "yellow"),
    "trusted": ("trusted", "green"),
}


@dataclass(frozen=True)
class ProjectFile:
    path: Path
    digest: str
    state: TrustState
    contents: FileContents

    @classmethod
    def read(cls, given: Path | None, book: ConfigService) -> ProjectFile:
        """The file that was named, or the project's own; `InvalidInput` when it changes in this very moment."""
        path, digest, state = book.trust_state(given)
        contents = book.contents(path, read_file(path))
        if contents.digest != digest:
            raise InvalidInput(f"{path} is changing", "try again")
        return cls(path, digest, state, contents)

    def lines(self, console: Console) -> list[str]:
        word, style = _STATES[self.state.state]
        text_lines = [paint(one_line(self.path), "bold", console), f"  sha256  {self.digest}"]
        text_lines.append(f"  state   {paint(word, style, console)}")
        runs = [(one, one.connection) for one in self.contents.profiles if isinstance(one.connection, StdioSettings)]
        reaches = [(one, one.connection) for one in self.contents.profiles if isinstance(one.connection, HttpSettings)]
        if runs:
            text_lines += ["", "would run:"]
            for profile, stdio in runs:
                text_lines += _command_lines(profile, stdio)
        if reaches:
            text_lines += ["", "would reach:", *format_table([_address_row(*one) for one in reaches], "  ")]
        if self.contents.broken:
            text_lines += ["", "cannot be read:", *(f"  {one_line(one.message)}" for one in self.contents.broken)]
        if self.contents.imports:
            text_lines += ["", f"joins in servers of: {one_line(', '.join(self.contents.imports))}"]
        if self.state.changes:
            text_lines += ["", "changes since it was trusted:", *(f"  {one_line(line)}" for line in self.state.changes)]
        return [*text_lines, ""]

    def payload(self, *, is_trusted: bool) -> dict[str, object]:
        return {
            "file": str(self.path),
            "sha256": self.digest,
            "state": "trusted" if is_trusted else self.state.state,
            "changes": list(self.state.changes),
            "servers": [summarize_profile(one) for one in self.contents.profiles],
            "broken": [{"id": one.id, "message": one.message, "hint": one.hint} for one in self.contents.broken],
            "imports": list(self.contents.imports),
        }


def _command_lines(profile: Profile, stdio: StdioSettings) -> list[str]:
    """The command as it would be typed, then one line for each thing that it is given."""
    words = " ".join(_quoted(word) for word in (stdio.command, *mask_arguments(stdio.args, for_decision=True)))
    text_lines = [f"  {one_line(profile.id)}: {words}{'' if profile.is_enabled else '  (disabled)'}"]
    given = {
        "in": stdio.cwd,
        "sets": ", ".join(sorted(stdio.env)),
        "reads variables of": stdio.env_file,
        "gets your": ", ".join(stdio.inherit_env),
        "files": _files(stdio),
        "network": " ".join((stdio.network.mode, *stdio.network.hosts)),
        "sandbox": stdio.sandbox if stdio.is_confined else "none: it may do what you may do",
    }
    return text_lines + [f"      {name}: {one_line(value)}" for name, value in given.items() if value]


def _files(stdio: StdioSettings) -> str:
    if stdio.allowed_paths is None:
        return ""
    return ", ".join(f"{one.path} ({one.mode})" for one in stdio.allowed_paths) or "only what it needs to run"


def _address_row(profile: Profile, http: HttpSettings) -> tuple[str, str, str]:
    sends = [*http.headers, *(["a token"] if http.auth.type in ("bearer", "header") else [])]
    off = "" if profile.is_enabled else " (disabled)"
    urls = " or ".join(safe_url(url) for url in (http.url, http.fallback_url) if url)
    return f"{profile.id}:", urls + off, f"sends {', '.join(sends)}" if sends else ""


def _quoted(word: str) -> str:
    import shlex

    return one_line(shlex.quote(word)) if word.isascii() else one_line(f"'{word}'")


def add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="default: ./.crewx/mcp.json")
    parser.add_argument("--yes", "-y", action="store_true", help="trust the current content without a question")
    parser.add_argument("--sha256", metavar="HASH", help="pin the content with this hash only")
    parser.add_argument("--json", action="store_true", help="print what it holds; pins only with --yes or --sha256")


async def run_trust(arguments: argparse.Namespace, context: CommandContext) -> int:
    console, book = context.console, context.view.book
    if arguments.sha256 and not re.fullmatch(r"[0-9a-fA-F]{64}", arguments.sha256):
        raise InvalidInput("--sha256 needs 64 hexadecimal digits", "the command without it shows the hash")
    given = Path(book.around.cwd, arguments.file).expanduser() if arguments.file else None
    file = ProjectFile.read(given, book)
    agreed = arguments.yes or arguments.sha256 is not None
    is_trusted = file.state.state == "trusted"
    if arguments.json:
        if agreed and not is_trusted:
            _pin(file, arguments.sha256, context)
        print_json(console, file.payload(is_trusted=agreed or is_trusted))
        return 0
    print_lines(console, file.lines(console))
    if is_trusted:
        console.out("it is trusted already\n")
        return 0
    if not await ask_consent(console, "let it run this?", is_given=agreed, instead=f"--sha256 {file.digest}"):
        console.err("not trusted; nothing of it runs\n")
        return DECLINED
    _pin(file, arguments.sha256, context)
    console.out(f"{paint('trusted', 'green', console)} {one_line(file.path)}\n")
    return 0


def _pin(file: ProjectFile, wanted: str | None, context: CommandContext) -> None:
    """What was shown is what is pinned: another content by now is refused."""
    decisions(context).trust(context.view.book, file.path, (wanted or file.digest).lower())


COMMANDS = (
    Command(
        "distrust",
        "stop trusting a project's mcp.json: nothing in it runs",
        add_distrust,
        run_distrust,
        examples=(("distrust", "the project's file where you are; its servers are ended"),),
    ),
    Command(
        "trust",
        "look at a project's mcp.json and let it run what it names",
        add_trust,
        run_trust,
        description="""\
A project's mcp.json comes with the project and can name any command, so nothing in it runs until you have looked at
it. This shows what it would run and reach, what changed since you last agreed, and the hash that is pinned. One
changed byte takes the trust away again. Programs that the file names are not pinned, only the file.""",
        examples=(
            ("trust", "the project's file where you are"),
            ("trust ../other/.crewx/mcp.json", "another one"),
            ("trust --sha256 9f2c…", "pin exactly this content without a question, or fail"),
            ("trust --json", "what it would run, as JSON; pins nothing"),
        ),
    ),
)
