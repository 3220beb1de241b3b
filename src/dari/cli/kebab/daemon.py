"""`kebab daemon start|stop|status`: kebabd, without starting it to ask."""

from __future__ import annotations

from dari.cli.hub.client import CliSocketRefused, ask_to_finish, connect
from dari.cli.kit.console import encode_json
from dari.cli.kit.parser import Command
from dari.cli.remote.fast_client import STOP_TIMEOUT_S, write_line
from dari.knowledge.daemon import KebabPaths

USAGE = """\
usage: {program} daemon start|stop|status [--json]

kebabd keeps the index and the model in memory, so that a search costs what a command costs. The first search starts
it; it ends by itself after 30 minutes without work.
"""


def main(program: str, words: list[str]) -> int:
    as_json = "--json" in words
    plain = [word for word in words if word != "--json"]
    if plain in (["-h"], ["--help"]) or not plain:
        write_line(USAGE.format(program=program).rstrip(), 1)
        return 0 if plain else 2
    if plain == ["status"]:
        return _status(as_json)
    if plain == ["stop"]:
        return _stop(as_json)
    if plain == ["start"]:
        return _start(as_json)
    message = f"daemon must be start, stop or status, got {' '.join(plain)[:60]!r}"
    return _fail("invalid_input", message, f"{program} daemon --help", as_json)


def _status(as_json: bool) -> int:
    from dari.daemon.lock import lock_holder

    paths = KebabPaths()
    sock = connect(paths.run_dir_text)
    if sock is not None:
        sock.close()
    pid = lock_holder(paths.lock_text) if sock is not None else None
    if as_json:
        write_line(_encode_status(pid, running=sock is not None), 1)
    else:
        write_line("kebabd does not run; the next search starts it" if sock is None else f"kebabd runs (pid {pid})", 1)
    return 0


def _stop(as_json: bool) -> int:
    try:
        pid = ask_to_finish(KebabPaths().run_dir_text, STOP_TIMEOUT_S)
    except CliSocketRefused as refused:
        return _fail("unavailable", refused.message, refused.hint, as_json)
    except TimeoutError:
        message = f"kebabd does not end within {STOP_TIMEOUT_S:g} s"
        return _fail("timeout", message, f"its pid is in {KebabPaths().lock_text}", as_json)
    if as_json:
        write_line(_encode_status(None, running=False, stopped=pid is not None), 1)
    else:
        write_line("kebabd does not run" if pid is None else f"kebabd (pid {pid}) has ended", 1)
    return 0


def _start(as_json: bool) -> int:
    from dari.cli.hub.protocol import SOCKET_NAME
    from dari.daemon.launch import ensure_started_sync
    from dari.errors import DariError

    paths = KebabPaths()
    try:
        ensure_started_sync(paths, paths.command(), socket=f"{paths.run_dir_text}/{SOCKET_NAME}")
    except DariError as error:
        from dari.knowledge.errors import classify

        return _fail(classify(error).code, error.message, error.hint, as_json)
    return _status(as_json)


def _encode_status(pid: int | None, **facts: bool) -> str:
    """`daemon_status.v1`, by hand: its struct costs more to import than the command takes."""
    return encode_json({"pid": pid, **facts, "schema_version": "daemon_status.v1"})


def _fail(code: str, message: str, hint: str, as_json: bool) -> int:
    """As the other commands do: text, or `error.v1` on stderr. Exit code 2."""
    if as_json:
        said = {"code": code, "message": message, "details": {}, "hint": hint, "schema_version": "error.v1"}
        write_line(encode_json(said if hint else {name: said[name] for name in said if name != "hint"}))
    else:
        write_line(f"error: {message}\nhint: {hint}")
    return 2


async def _never(arguments: object, context: object) -> int:
    raise AssertionError("run before the commands are looked up")


COMMANDS = (Command("daemon", "start, stop or look at kebabd", lambda parser: None, _never),)
