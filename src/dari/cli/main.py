"""The `dari` command. Each sub-command imports what it needs when it runs, so that `--version` costs nothing."""

from __future__ import annotations

import gc
import sys

from dari.cli.kit.errors import run_guarded
from dari.version import VERSION

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    import argparse

_EPILOG = """\
examples:
  dari up                         serve over HTTP and a Unix socket until Ctrl-C
  dari console                    open the web console of the running hub
  dari mcp                        serve one client over stdin and stdout (what an IDE starts)
  dari mcp --transport both       the same, and HTTP beside it
  dari doctor                     check the installation
  dari uninstall                  list what Dari keeps in your home, then remove it if you confirm
  dari proxy run -- CMD           run a command through the proxy, and see what it requests
  dari remote list-tools          the tools of every other MCP server you use
  dari knowledge search 'backups' passages of your own files, with citations
  dari approvals                  the calls that wait for your answer
  dari tokens create cursor       a token of its own for one client
  dari audit verify               check that the audit log is complete

guide: docs/guide/connect.md (Claude Code, Cursor, VS Code, Codex)
"""


def make_parser() -> argparse.ArgumentParser:
    from dari.cli.kit.program import ProgramParser  # argparse: 8 ms that `dari remote` does not need

    parser = ProgramParser(
        prog="dari",
        description="A workbench for AI agents over the Model Context Protocol.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"dari {VERSION}")
    commands = parser.add_subparsers(prog="dari", dest="command", metavar="COMMAND")
    _add_up(commands)
    _add_mcp(commands)
    doctor = commands.add_parser("doctor", help="check token, sockets, port and versions")
    doctor.add_argument("--json", action="store_true", help="print the checks as JSON")
    _add_uninstall(commands)
    # Its many words are parsed by `dari.cli.proxy.main`, which is loaded when one of them is used.
    commands.add_parser("proxy", help="the HTTP(S) debugging proxy: run, start, rules, traffic, …")
    commands.add_parser("remote", help="other people's MCP servers: list-tools, call-tool, add, trust, …")
    commands.add_parser("knowledge", help="search and answers from your own files: the commands of kebab")
    commands.add_parser("approvals", help="calls that wait for a person: list, show, approve, deny, watch")
    commands.add_parser("console", help="open the web console of the running hub in your browser")
    commands.add_parser("tokens", help="one token for each client: list, create, show, rotate, revoke")
    commands.add_parser("audit", help="the audit log of every part: tail, query, show, verify")
    return parser


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["remote"] or words[:2] == ["approvals", "watch"]:
        return run_guarded(lambda: _remote(words, leaves=argv is None), interrupted=4, failed=4)
    if words[:1] in (["up"], ["mcp"]):  # a server that is asked to end has done what it should
        return run_guarded(lambda: _main(words), interrupted=0, failed=1)
    return run_guarded(lambda: _main(words))


def _remote(words: list[str], *, leaves: bool) -> int:
    from dari.cli.remote.fast_client import main as run_remote

    return run_remote("dari remote", words[1:] if words[0] == "remote" else words, leaves=leaves)


def _main(words: list[str]) -> int:
    if words[:1] == ["approvals"]:
        from dari.cli.approvals import main as run_approvals

        return run_approvals(words[1:])
    if words[:1] == ["mcp"]:
        from dari.cli.mcp.main import run_stdio

        code = run_stdio(words[1:])
        if code is not None:
            return code
    if words[:1] == ["console"]:
        from dari.cli.console import main as run_console

        return run_console(words[1:])
    if words[:1] == ["tokens"]:
        from dari.cli.tokens import main as tokens

        return tokens(words[1:])
    if words[:1] == ["audit"]:
        from dari.cli.audit import main as audit

        return audit(words[1:])
    if words[:1] == ["knowledge"]:
        from dari.cli.kebab.fast_client import main as knowledge

        return knowledge(words[1:], "dari knowledge")
    if words[:1] == ["proxy"]:
        gc.disable()
        from dari.cli.proxy.main import main as proxy

        return proxy(words[1:])
    parser = make_parser()
    arguments = parser.parse_args(words)
    if arguments.command is None:
        parser.print_help()
        return 0
    if arguments.command == "uninstall":
        from dari.cli.uninstall import run_uninstall

        return run_uninstall(arguments)
    if arguments.command == "doctor":
        from dari.cli.doctor import run_doctor

        return run_doctor(as_json=arguments.json)
    # Importing makes no garbage; looking for some costs a tenth of the start. `run_to_exit` turns it on again.
    gc.disable()
    from dari.cli.serve import run_mcp, run_up

    return run_up(arguments) if arguments.command == "up" else run_mcp(arguments)


def _add_up(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    import argparse

    parser = commands.add_parser(
        "up",
        help="run the hub: one HTTP endpoint, the web console and a Unix socket",
        description="Serve MCP over HTTP (port 3847, bearer token), the web console beside it (a link to log in is "
        "printed), and MCP over a Unix socket, until Ctrl-C.",
    )
    _add_serving(parser)
    parser.add_argument("--socket", metavar="PATH", help="Unix socket (default: in the runtime directory)")
    parser.add_argument(
        "--console",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="the web console at / (default: on loopback; with another --http-bind only when asked for)",
    )


def _add_mcp(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "mcp",
        help="serve over stdin and stdout, HTTP, or both",
        description="An MCP server for one client on stdin and stdout; with --transport also over HTTP.",
    )
    parser.add_argument("--transport", choices=("stdio", "http", "both"), default="stdio", help="default: %(default)s")
    _add_serving(parser)


def _add_uninstall(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "uninstall",
        help="list what Dari keeps in your home, keys included, and remove it",
        description="List everything that Dari keeps in your home; with --yes, or when you confirm, stop its daemons "
        "and remove all of it: tokens, the CA's private key, logins, recorded traffic, logs, settings.",
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--yes", action="store_true", help="remove without asking")
    chosen.add_argument("--dry-run", action="store_true", help="only list; nothing is stopped or removed")
    parser.add_argument("--keep-settings", action="store_true", help="leave mcp.json, crux.toml and workspaces alone")


def _add_serving(parser: argparse.ArgumentParser) -> None:
    from dari.cli.kit.program import nonempty
    from dari.cli.ports import add_allow_uid, port_number

    parser.add_argument("--http-bind", metavar="ADDR", default="127.0.0.1", help="default: %(default)s")
    parser.add_argument(
        "--http-port", metavar="PORT", type=port_number, help="default: 3847, or the next free one up to 3857"
    )
    parser.add_argument("--token-path", metavar="PATH", help="bearer token file, mode 0600 (made when missing)")
    parser.add_argument(
        "--protocol",
        choices=("negotiate", "strict"),
        default="negotiate",
        help="strict speaks 2024-11-05 and refuses everything else (default: %(default)s)",
    )
    parser.add_argument(
        "--allow-origin", metavar="ORIGIN", action="append", default=[], help="a web origin that may call; repeatable"
    )
    parser.add_argument(
        "--allow-host", metavar="NAME", action="append", default=[], help="a Host name to answer to; repeatable"
    )
    add_allow_uid(parser)
    parser.add_argument(
        "--mode",
        choices=("full", "search"),
        help="search shows three tools that find and call all the others (default: as mcp.json says)",
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--profile", metavar="NAME", type=nonempty, help="only the servers of this set of mcp.json")
    chosen.add_argument("--server", metavar="ID", type=nonempty, help="only this server, under its own names")
    chosen.add_argument("--no-servers", action="store_true", help="only our own tools, no other MCP servers")
    parser.add_argument(
        "--rate-limit", metavar="N", type=_rate, help="requests per second and client (default: no limit)"
    )
    parser.add_argument("--log", choices=("debug", "info", "warning", "error"), default="info", help="log level")


def _rate(text: str) -> float:
    import argparse

    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number above 0, such as 50; got {text[:40]!r}")
    return rate
