"""The HTTP listener as several commands have it: its options, and what a person has to know about its port."""

from __future__ import annotations

import argparse
import sys

TYPE_CHECKING = False  # from typing it costs a tenth of `--version`; type checkers know the name
if TYPE_CHECKING:
    from dari.settings import ServeSettings


def port_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be 0–65535 (0: any free one), got {text[:40]!r}")
    return int(text)


def add_allow_uid(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-uid",
        metavar="UID",
        action="append",
        default=[],
        help="a user of this machine that may connect over TCP besides you, or 'any'; repeatable",
    )


def client_command(name: str, url: str, token_path: str) -> str:
    """What adds this server to Claude Code; the token is read by the shell, so that no history holds it."""
    import shlex

    header = f'"Authorization: Bearer $(cat {shlex.quote(token_path)})"'
    return f"claude mcp add --transport http {name} {url} --header {header}"


def warn_port_moved(name: str, settings: ServeSettings, url: str, token_path: str, renew: str = "") -> None:
    """Warn loudly that another program has the default port: clients set up for it would send it their token."""
    import shlex

    from dari.daemon.tcp_peer import listener_uid
    from dari.transport.bind import DEFAULT_PORT, url_port

    if settings.http_port is not None or url_port(url) == DEFAULT_PORT:
        return
    renew = renew or f"rm {shlex.quote(token_path)}, then start again"
    lines = [
        "",
        f"  WARNING: port {DEFAULT_PORT} is taken by {_program_of(listener_uid((settings.http_bind, DEFAULT_PORT)))};"
        f" this server listens on {url_port(url)} instead.",
        f"  A client that is set up for port {DEFAULT_PORT} sends its token to that program. Update it:",
        "",
        f"    claude mcp remove {name}; {client_command(name, url, token_path)}",
        "",
        f"  In the settings of other clients the url must be {url}",
        f"  If a client may have sent the token already, make a new one: {renew}",
        "  `dari doctor` shows who answers on each port.",
        "",
    ]
    print("\n".join(lines), file=sys.stderr, flush=True)


def _program_of(uid: int | None) -> str:
    import os

    if uid is None:
        return "another program"
    return "another program of yours" if uid == os.geteuid() else f"a program of another user (uid {uid})"
