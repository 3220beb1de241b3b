"""`crewx mcp remote …` and `dari remote …` as a pipe to the warm daemon: words go in, bytes and an exit code come back.

A call has to cost little more than the start of an interpreter, so nothing is imported that is not used: `_socket`
and `_signal` are what `socket` and `signal` wrap in 15 ms of enums. Without a daemon one is started; when none can
be, or none is wanted (`--no-daemon`, DARI_NO_DAEMON=1), the same command runs in this process.
"""

import os
import sys

from dari.bridge.cli_socket.client import CliSocketRefused, ask_to_finish, connect
from dari.cli.relay import INTERRUPTED, NETWORK, NotBegun, Relay, open_standard_descriptors, tell

STOP_S = 30.0
ROUNDS = 4
_ADDRESSES = ("--endpoint=", "--http=", "http://", "https://")


def main(program: str, argv: list[str], *, leaves: bool = False) -> int:
    """Run the words of a program and return its exit code. Ctrl-C is 4; a closed stdout is the end, and no failure.

    With `leaves` the process ends here: to take down an interpreter that ran a command itself costs 50 ms.
    """
    code = _main(program, argv)
    if leaves:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass  # closed, or nobody reads it any more
        os._exit(code)
    return code


def _main(program: str, argv: list[str]) -> int:
    open_standard_descriptors()
    if os.environ.get("DARI_NO_DAEMON", "") not in ("", "0") or _says_no_daemon(argv):
        return _run_here(program, argv)
    try:
        if argv[:1] == ["daemon"]:
            from dari.cli.daemon_words import run_daemon_word

            return run_daemon_word(program, argv)
        return through_daemon(program, argv, starts=not _is_help(argv))
    except KeyboardInterrupt:
        return INTERRUPTED


def through_daemon(program: str, argv: list[str], *, starts: bool = True, stays: bool = False) -> int:
    """Ask the daemon, and start it first when there is none and it may be started; else run here."""
    run_dir = runtime_path()
    # A daemon that a server of ours starts would have that server's sandbox, and end with it.
    starts = starts and not os.environ.get("DARI_CHILD")
    for _ in range(ROUNDS):
        try:
            sock = connect(run_dir)
            if sock is None:
                if not starts:
                    return _run_here(program, argv)
                if _names_an_address(argv):
                    # It needs no process of its own: what it costs to wait for a daemon is saved, and the next has one.
                    from dari.cli.starter import start_behind

                    start_behind(run_dir, home_path())
                    return _run_here(program, argv)
                from dari.cli.starter import start_daemon

                sock = start_daemon(run_dir, home_path(), stays=stays)
                if sock is None:
                    continue
            try:
                return Relay(sock, program).run(run_dir, argv, stays=stays)
            finally:
                sock.close()
        except NotBegun:
            continue
        except CliSocketRefused as refused:
            if refused.code == "skew":
                problem = _replaced(run_dir)
                if problem is None:
                    continue
            elif refused.code == "child":
                return _run_here(program, argv)
            else:
                return _complain(refused.message, refused.hint)
        except OSError as error:
            problem = f"{error.filename or run_dir}: {error.strerror or error}"
        except Exception as error:
            problem = _reason(error)
        return _run_here(program, argv, problem)
    return _run_here(program, argv, "it ends again and again")


def runtime_path() -> str:
    """What `dari.paths.runtime_path("bridge")` is, without the 10 ms that pathlib costs."""
    shared = os.environ.get("XDG_RUNTIME_DIR", "")
    if sys.platform == "linux" and not os.environ.get("DARI_HOME") and _is_ours(shared):
        return f"{shared.rstrip('/')}/dari/bridge"
    return f"{home_path()}/run/bridge"


def home_path() -> str:
    """What `dari.paths.home()` is."""
    chosen = os.environ.get("DARI_HOME", "")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/dari")
    data = os.environ.get("XDG_DATA_HOME", "")
    return os.path.join(data if os.path.isabs(data) else os.path.expanduser("~/.local/share"), "dari")


def _run_here(program: str, argv: list[str], problem: str | None = None) -> int:
    if problem is not None:
        tell(f"warning: the daemon cannot be used ({problem}); running without it")
    import gc

    # Importing makes no garbage, and one command not enough to look for it.
    gc.disable()
    from dari.cli.remote.main import run_here

    return run_here(program, argv)


def _replaced(run_dir: str) -> str | None:
    """Ask a daemon of another release to end; None when it has, else why not."""
    try:
        ask_to_finish(run_dir, STOP_S)
    except CliSocketRefused as refused:
        return refused.message
    except TimeoutError:
        return "a daemon of another release does not end"
    return None


def _reason(error: Exception) -> str:
    from dari.errors import DariError

    if not isinstance(error, DariError):
        raise error
    return f"{error.message}: {error.hint}" if error.hint else error.message


def _complain(message: str, hint: str) -> int:
    tell(f"error: {message}")
    if hint:
        tell(f"hint: {hint}")
    return NETWORK


def _says_no_daemon(argv: list[str]) -> bool:
    for word in argv:
        if word == "--no-daemon":
            return True
        if word == "--":
            return False
    return False


def _names_an_address(argv: list[str]) -> bool:
    own = argv[: argv.index("--")] if "--" in argv else argv
    if "add" in own[:3]:
        return False
    return any(word in ("--endpoint", "--http") or word.startswith(_ADDRESSES) for word in own)


def _is_help(argv: list[str]) -> bool:
    """What only prints a text is not worth a daemon; one that runs is asked all the same."""
    texts = ("-h", "--help", "help", "completion", "__complete")
    return not argv or argv[0] in texts or argv[-1] in ("-h", "--help")


def _is_ours(directory: str) -> bool:
    if not os.path.isabs(directory):
        return False
    try:
        info = os.stat(directory)
    except OSError:
        return False
    is_folder = info.st_mode & 0o170000 == 0o040000
    return (
        is_folder
        and info.st_uid == os.geteuid()
        and not info.st_mode & 0o022
        and os.access(directory, os.W_OK | os.X_OK)
    )
