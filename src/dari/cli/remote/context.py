"""What a command works with: the person's terminal, the bridge, and the profiles as seen from where it was typed."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dari.bridge.config.overrides import stdio_profile
from dari.bridge.decisions import Decisions
from dari.bridge.upstream.resolved import pin_name
from dari.cli.kit.console import Console, escape_json, print_error, print_warning
from dari.cli.kit.errors import ExitCodes
from dari.cli.kit.hints import name_program
from dari.cli.kit.parser import milliseconds
from dari.errors import DariError, InvalidInput
from dari.mcp.client.errors import RemoteError
from dari.paths import read_regular
from dari.rpc.codec import encode
from dari.text.sanitize import escape_hidden

if TYPE_CHECKING:
    from dari.bridge.service import Bridge
    from dari.bridge.upstream.upstream import Upstream
    from dari.bridge.view import ServerView


OK, USAGE, NETWORK, TOOL, OTHER = range(5)
# Design 001 §4 and §9. A conflict is the person's to resolve: nothing was sent.
_EXIT_CODES = ExitCodes({"conflict": USAGE}, known=(USAGE, NETWORK, TOOL), other=OTHER)


class CommandContext(Struct):
    """Handed to every command."""

    console: Console
    bridge: Bridge
    view: ServerView
    program: str
    """`crewx mcp remote`, `dari remote` or `crewx mcp`: what examples and hints name."""
    logs: bool = False
    """`--log` was given."""
    temporary: list[Upstream] = []
    """Servers that the command brought along; they end with it."""

    def say(self, line: str) -> None:
        """A line of the result, for a person. What a server wrote in it was made harmless before."""
        self.console.out(f"{line}\n")

    def note(self, line: str) -> None:
        """A line on stderr; made harmless here."""
        self.console.err(f"{escape_hidden(name_program(line))}\n")

    def warn(self, text: str, hint: str = "") -> None:
        print_warning(self.console, name_program(text), name_program(hint))

    def log(self, line: str) -> None:
        """A line for `--log`; the caller has masked its secrets."""
        if self.logs:
            self.console.err(f"[log] {escape_hidden(line, one_line=True)}\n")


def exit_code(error: BaseException) -> int:
    return _EXIT_CODES.of(error)


def show_error(error: BaseException, console: Console) -> None:
    """`error: …` and, where something can be done, `hint: …`; a server's error also as it sent it (design 001 §9)."""
    if isinstance(error, RemoteError):
        message, hint = f"the server answered: {error.message} (JSON-RPC error {error.remote_code})", error.hint
        original = {"code": error.remote_code, "message": error.message, "data": error.data}
        console.err(escape_json(encode({"error": original}).decode()) + "\n")
    elif isinstance(error, DariError):
        message, hint = error.message, error.hint
    else:
        message = f"{type(error).__name__}: {error}"
        hint = "this is a fault of ours; the same command with --log tells more"
    print_error(console, name_program(message), name_program(hint))


def to_usage_error(error: DariError) -> DariError:
    """The same fact as a matter of configuration: nothing was sent, so neither the network nor the tool failed."""
    return error if exit_code(error) == USAGE else InvalidInput(error.message, error.hint)


def name_server(error: DariError, server: str) -> DariError:
    """The same error with the server's name in front, where the message does not name it."""
    if server not in error.message:
        error.message = f"server '{server}': {error.message}"
    return error


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """The options that every command takes, before its name as well."""
    common = parser.add_argument_group("common options")
    common.add_argument("--log", action="store_true", help="log every exchange on stderr: method, target, time")
    common.add_argument("--config", metavar="FILE", help="accepted for CrewX; profiles are read from mcp.json files")
    common.add_argument("--no-daemon", action="store_true", help="run in this process instead of the warm daemon")


def add_server_options(parser: argparse.ArgumentParser, *, has_all: bool = False) -> None:
    """The options that choose a server and say how it is reached."""
    group = parser.add_argument_group("which server")
    one = group.add_mutually_exclusive_group()
    one.add_argument("--server", metavar="ID", help="a profile by its id (default: the profile with default: true)")
    one.add_argument(
        "--endpoint", metavar="URL", help="an HTTP server without a profile, such as http://localhost:9001"
    )
    one.add_argument("--http", dest="endpoint", metavar="URL", help="the same as --endpoint")
    one.add_argument(
        "--stdio", metavar="'CMD ARGS'", help="a server that this command starts here, and ends when it is done"
    )
    if has_all:
        one.add_argument("--all", action="store_true", help="every server that is ready")
    group.add_argument("--key", metavar="TOKEN", help="send 'Authorization: Bearer TOKEN'; wins over the profile")
    group.add_argument(
        "--header",
        metavar="'K: V'",
        action="append",
        default=[],
        help="send a header; repeatable, wins over the profile",
    )
    group.add_argument("--timeout", metavar="MS", type=milliseconds, help="give up after this time (default: 15000)")


def select_upstream(arguments: argparse.Namespace, context: CommandContext, id: str | None = None) -> Upstream:
    """The server that `--server`, `id` or the default names. Nothing is started; every error is a usage error."""
    if arguments.stdio is not None:
        return _started_here(arguments, context, id)
    chosen: dict[str, Any] = {"endpoint": arguments.endpoint, "key": arguments.key, "headers": tuple(arguments.header)}
    try:
        return _patient(
            arguments.timeout, lambda **given: context.view.upstream(arguments.server or id, **chosen, **given)
        )
    except DariError as error:
        raise to_usage_error(error) from None


def _started_here(arguments: argparse.Namespace, context: CommandContext, id: str | None) -> Upstream:
    """The server of `--stdio`. It ends with the command: who edits it gets the new one with the next call."""
    if id is not None:
        raise InvalidInput("--stdio and a server's name are two servers", "give one of them")
    if arguments.key or arguments.header:
        raise InvalidInput("--key and --header are for a server behind an address", "leave them out")
    upstream = context.view.of(stdio_profile(arguments.stdio, arguments.timeout))
    context.temporary.append(upstream)
    return upstream


def select_upstreams(arguments: argparse.Namespace, context: CommandContext) -> tuple[Upstream, ...]:
    """The chosen server, or with `--all` every one that may run; the others are named on stderr."""
    if not arguments.all:
        return (select_upstream(arguments, context),)
    if arguments.key or arguments.header:
        raise InvalidInput("--key and --header are for one server, --all is for every one", "name the server")
    found = context.view.upstreams()
    for problem in context.view.problems:
        context.warn(problem)
    for one in context.view.catalog().listed:
        if one.message:
            context.warn(one.message, one.hint)
    return tuple(
        _patient(arguments.timeout, lambda id=each.id, **given: context.view.upstream(id, **given)) for each in found
    )


def _patient(timeout_ms: int | None, get: Callable[..., Upstream]) -> Upstream:
    """Another time limit is another server to the bridge, a second process even: only a list that is not there
    yet, and may take longer than the profile allows, is worth one. Calls bring their limit along."""
    upstream = get()
    if timeout_ms is None or timeout_ms <= upstream.profile.timeout_ms or upstream.known_tools() is not None:
        return upstream
    return get(timeout_ms=timeout_ms)


def split_address(address: str, arguments: argparse.Namespace, context: CommandContext) -> tuple[str | None, str]:
    """`server/tool` or `server.tool` as (server, tool). What follows no server's name belongs to the tool.

    `https://host/mcp.tool` names an address and a tool.
    """
    if address.startswith(("http://", "https://")) and not (arguments.endpoint or arguments.server or arguments.stdio):
        arguments.endpoint, _, name = address.rpartition(".")
        if not name or "/" in name or "://" not in arguments.endpoint:
            raise InvalidInput(f"a tool of {address[:100]} is needed", "write it behind a dot: https://host/mcp.tool")
        return None, name
    server, slash, name = address.partition("/")
    if arguments.endpoint or arguments.stdio:
        return None, address
    if not slash or not name:
        return _split_at_dot(address, arguments, context)
    if arguments.server:
        return None, name if server == arguments.server else address
    catalog = context.view.catalog()
    if any(one.id == server for one in catalog.named):
        return server, name
    if "." in server:
        return _split_at_dot(address, arguments, context)
    if catalog.default_id is None:
        catalog.find(server)  # says which servers there are
    return None, address


def _split_at_dot(address: str, arguments: argparse.Namespace, context: CommandContext) -> tuple[str | None, str]:
    """Server and tool, at the dot behind the longest name of a server; tools and servers may have dots of their own."""
    if "." not in address:
        return None, address
    ids = [arguments.server] if arguments.server else [one.id for one in context.view.catalog().named]
    fitting = [id for id in ids if address.startswith(f"{id}.") and len(address) > len(id) + 1]
    if not fitting:
        return None, address
    server = max(fitting, key=len)
    return None if arguments.server else server, address[len(server) + 1 :]


DECLINED = OTHER
"""Exit code of a command whose person said no."""


async def ask_consent(console: Console, question: str, *, is_given: bool, instead: str = "--yes") -> bool:
    """Whether the person agrees. Without a terminal, and without `--yes`, it is an error that names `instead`."""
    if is_given:
        return True
    if not console.stdin_is_tty:
        raise InvalidInput(
            "this needs a person's confirmation, and stdin is not a terminal", f"look first, then add {instead}"
        )
    answer = await console.ask(f"{question} [y/N] ")
    return answer.strip().lower() in ("y", "yes")


_DESCRIPTORS = ("/dev/fd/", "/dev/std", "/proc/self/", "/proc/thread-self/")


def read_named_file(cwd: Path, name: str, max_bytes: int, hint: str) -> bytes:
    """A file that the command line names. A pipe is refused, which could hold up everybody in the daemon, and so is a
    descriptor of the shell (`<(…)`): under that name the daemon has one of its own."""
    path = cwd / name
    if os.path.normpath(path).startswith(_DESCRIPTORS):
        raise InvalidInput(f"cannot read {name}: the daemon does not have this descriptor", "pipe it into - (stdin)")
    try:
        return read_regular(path, max_bytes)
    except OSError as error:
        raise InvalidInput(f"cannot read {name}: {error.strerror}", hint) from None


def login_name() -> str:
    """The login name of who runs this; it stands behind decisions in pins and in the audit log."""
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):  # Windows; a container without this user in its passwd
        return f"uid {os.geteuid()}" if hasattr(os, "geteuid") else os.environ.get("USERNAME", "someone")


def decisions(context: CommandContext) -> Decisions:
    """Of the person who runs this command."""
    return Decisions(context.bridge, login_name())


def make_recorder(context: CommandContext) -> Callable[..., None]:
    """`record(event, server=…, …)` for a decision of this person that `Decisions` does not know.

    Ask for it before the decision is carried out: what cannot be recorded is not done.
    """
    audit = context.bridge.audit
    if audit is not None:
        audit.check()

    def record(event: str, *, server: str = "", tool: str = "", **detail: object) -> None:
        if audit is not None:
            audit.note("decision", server=server, tool=tool, who=login_name(), event=event, **detail)

    return record


def resolve_pin_name(context: CommandContext, name: str) -> str:
    """A server as the pins know it: the one that is meant here, or a name that `approve` and `doctor` showed."""
    catalog = context.view.catalog()
    listed = next((one for one in catalog.listed if one.id == name), None)
    if listed is not None:
        return pin_name(name, listed)
    if not context.bridge.pins.pinned(name) and not context.bridge.pins.held(name):
        catalog.find(name)  # says that there is none, with a guess at what was meant
    return name
