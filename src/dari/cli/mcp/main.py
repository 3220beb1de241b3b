"""`dari mcp`: one MCP client on the hub, over stdin and stdout, HTTP, or both.

A client waits for this process, so what it serves over stdin and stdout is parsed by hand and loads next to nothing;
HTTP, `--help` and whatever is not understood here go to `dari.cli.serve` and its parser.

The first frame carries what the hub acts on: folder, environment, `--profile`, `--server`, `--no-servers`, `--mode`,
`--protocol`. Two options act in this process and are not sent. `--rate-limit` counts HTTP requests by the address of
the client, which only the listener sees, and refuses them before they cost the hub anything; stdin and stdout have one
client, which waits for its answers. `--log` is the level of what this process writes on its own stderr, for the
program that started it; the hub serves many clients and keeps one log of its own.
"""

import faulthandler
import os
import sys

from dari.cli.mcp.hub import Hub, HubRefused, NoHub
from dari.cli.mcp.pipe import Pipe

_VALUES = {
    "--profile": None,
    "--server": None,
    "--mode": ("full", "search"),
    "--protocol": ("negotiate", "strict"),
    "--transport": ("stdio",),
    "--log": ("debug", "info", "warning", "error"),
}
_LEVELS = ("debug", "info", "warning", "error")


def run_stdio(words: list[str]) -> int | None:
    """The exit code; None when the words are for the parser."""
    given = _parse(words)
    if given is None:
        return None
    hub = Hub(
        hub_options(
            given.get("profile"),
            given.get("server"),
            given.get("mode"),
            given.get("protocol"),
            no_servers="no_servers" in given,
        )
    )
    return run_pipe(hub, given.get("protocol", "negotiate"), given.get("log", "info"))


def run_pipe(hub: Hub, protocol: str, level: str) -> int:
    """Serve stdin and stdout; returns the exit code."""
    _end_at_signals()
    faulthandler.enable(2)  # SIGSEGV and the like leave a stack, as in `dari.runtime`
    try:
        Pipe(hub, make_log(level)).run()
        return 0
    except NoHub as none:
        from dari.cli.serve import serve_without_hub

        return serve_without_hub(none, is_strict=protocol == "strict", level=level)
    except HubRefused as refused:
        sys.stderr.write(f"error: {refused.message}\n" + (f"hint: {refused.hint}\n" if refused.hint else ""))
        return 1


def hub_options(
    profile: str | None, server: str | None, mode: str | None, protocol: str | None, *, no_servers: bool
) -> dict[str, object]:
    """What the first frame tells the hub, besides the folder and the environment."""
    return {
        "profile": profile or "",
        "server": server or "",
        "mode": mode,
        "protocol": protocol or "negotiate",
        "no_servers": no_servers,
    }


def make_log(level: str) -> "Callable[[str, str], None]":
    """Lines on stderr in the form of `dari.log`, without the 15 ms of `logging`."""
    least = _LEVELS.index(level)

    def log(at: str, line: str) -> None:
        if _LEVELS.index(at) >= least:
            from time import strftime

            name, _, detail = line.partition(" ")
            text = f"{strftime('%Y-%m-%dT%H:%M:%S')} {at.upper()} transport=stdio event={name}"
            try:
                os.write(2, (text + (f" {detail}" if detail else "") + "\n").encode("utf-8", "replace"))
            except OSError:
                pass  # nobody reads it

    return log


def _parse(words: list[str]) -> dict[str, str] | None:
    given: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--no-servers":
            given["no_servers"] = "yes"
            continue
        if name not in _VALUES:
            return None
        if not equals:
            if not rest or rest[0].startswith("-"):
                return None
            value = rest.pop(0)
        allowed = _VALUES[name]
        if not value or (allowed is not None and value not in allowed):
            return None
        given[name[2:]] = value
    if sum(name in given for name in ("profile", "server", "no_servers")) > 1:
        return None
    return given


def _end_at_signals() -> None:
    """SIGINT and SIGTERM end a server on stdin and stdout at once, with 0 (design 000 §5.5)."""
    from _signal import SIGINT, SIGTERM, signal  # type: ignore[import-not-found]

    def end(number: int, stack: object) -> None:
        os._exit(0)

    signal(SIGINT, end)
    signal(SIGTERM, end)


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
