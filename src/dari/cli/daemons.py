"""`daemon start|stop|status` where they must not start a daemon: to stop it, or to say that none runs (001 §14.3).

What is about the servers of a running daemon is answered by the daemon itself: `dari.cli.remote.manage`.
"""

from dari.cli.hub.client import CliSocketRefused, ask_to_finish, connect
from dari.cli.hub.paths import BridgePaths
from dari.cli.remote.fast_client import NETWORK, STOP_TIMEOUT_S, through_daemon, write_line

USAGE = 1

_PLAIN = {"--json", "--log", "--all"}


def run_daemon_word(program: str, argv: list[str], leading: list[str]) -> int:
    """`leading` stands before the word `daemon`: options of every command."""
    typed = [*leading, *argv]
    word = argv[1] if len(argv) > 1 else ""
    options = argv[2:]
    if "-h" in options or "--help" in options or word not in ("start", "stop", "status"):
        return through_daemon(program, typed, starts=False)
    as_json = "--json" in options
    if word == "start":
        return through_daemon(program, typed, stays=True)
    if word == "stop" and _PLAIN.issuperset(options):
        return _stop(as_json)
    if _runs():
        return through_daemon(program, typed, starts=False)
    if not _PLAIN.issuperset(options) and word == "status":
        return through_daemon(program, typed, starts=False)  # it reports a wrong word
    if as_json:
        write_line('{"running": false}', 1)
    elif word == "stop":
        write_line("No daemon runs, so none of its servers does.", 1)
    else:
        write_line(f"No daemon runs. The next command starts one, or: {program} daemon start", 1)
    return 0


def _runs() -> bool:
    sock = connect(BridgePaths().run_dir_text)
    if sock is None:
        return False
    sock.close()
    return True


def _stop(as_json: bool) -> int:
    try:
        pid = ask_to_finish(BridgePaths().run_dir_text, STOP_TIMEOUT_S)
    except CliSocketRefused as refused:
        write_line(f"error: {refused.message}")
        write_line(f"hint: {refused.hint}")
        return USAGE
    except TimeoutError:
        write_line(f"error: the daemon does not end within {STOP_TIMEOUT_S:g} s")
        write_line(f"hint: its pid stands in {BridgePaths().lock_text}")
        return NETWORK
    if as_json:
        write_line('{"stopped": %s}' % ("false" if pid is None else "true"), 1)
    elif pid is None:
        write_line("No daemon runs.", 1)
    else:
        write_line(f"The daemon (pid {pid}) and its servers have ended.", 1)
    return 0
