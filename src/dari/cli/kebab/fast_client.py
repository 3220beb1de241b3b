"""`kebab …` as a pipe to the warm kebabd: words go in, bytes and an exit code come back.

A warm search has to cost little more than the start of an interpreter, so nothing is imported that is not used. Without
a kebabd the command runs in this process, and one is started for the next; with `--no-daemon` or DARI_NO_DAEMON=1 none
is asked or started. What writes runs here in any case: an ingest belongs to the person who can press Ctrl-C.
"""

import os
import sys

from dari.cli.kit.errors import run_guarded
from dari.home import runtime_dir

NAME = "kebab"
ERROR, INTERRUPTED, RUN_HERE = 2, 4, 75
WARM = frozenset(("search", "ask", "list", "inspect", "fetch", "schema"))
MAX_ATTEMPTS = 3
_WITH_VALUE = "--config"


def main(argv: list[str] | None = None, program: str = "kebab", *, leaves: bool = True) -> int:
    """Run the words and return the exit code; with `leaves` the process ends here, which saves taking it down."""
    words = sys.argv[1:] if argv is None else argv
    try:
        code = run_guarded(lambda: _main(program, words), interrupted=ERROR, failed=ERROR)
    except SystemExit as ended:  # stdout does not take what kebabd answers
        code = ended.code if isinstance(ended.code, int) else ERROR
    code = ERROR if code == INTERRUPTED else code
    if argv is None and leaves:
        from dari.cli.remote.fast_client import exit_at_once

        exit_at_once(code)
    return code


def _main(program: str, argv: list[str]) -> int:
    at = _command_at(argv)
    command = argv[at] if at < len(argv) else ""
    if command == "mcp":
        from dari.cli.kebab.mcp import main as serve

        # Only --config may stand before it: `dari.daemon.agent_hosts` knows such a process as an agent's server.
        return serve([*argv[:at], *argv[at + 1 :]])
    if command == "daemon":
        from dari.cli.kebab.daemon import main as run_daemon_word

        return run_daemon_word(program, [*argv[at + 1 :], *(["--json"] if "--json" in argv[:at] else [])])
    if (
        command not in WARM
        or "--no-daemon" in argv
        or "--debug" in argv
        or os.environ.get("DARI_NO_DAEMON", "") not in ("", "0")
    ):
        return run_here(program, argv)
    try:
        return _ask_daemon(program, argv)
    except KeyboardInterrupt:
        return INTERRUPTED


def _ask_daemon(program: str, argv: list[str]) -> int:
    from dari.cli.hub.client import CliSocketRefused, ask_to_finish, connect
    from dari.cli.remote.fast_client import STOP_TIMEOUT_S, CommandRelay, DaemonGone, open_standard_descriptors

    open_standard_descriptors()
    run_dir = runtime_dir(NAME)
    for _ in range(MAX_ATTEMPTS):
        try:
            sock = connect(run_dir)
            if sock is None:
                # A daemon that a server of ours starts would have that server's sandbox, and end with it.
                if not os.environ.get("DARI_CHILD") and argv[-1] not in ("-h", "--help"):
                    start_for_next()
                return run_here(program, argv)
            try:
                code = CommandRelay(sock, program).run(run_dir, argv)
            finally:
                sock.close()
            return code if code != RUN_HERE else run_here(program, argv)
        except DaemonGone:
            continue
        except CliSocketRefused as refused:
            if refused.code != "skew":
                break
            try:
                ask_to_finish(run_dir, STOP_TIMEOUT_S)  # it is of another release
            except (CliSocketRefused, TimeoutError):
                break
        except OSError:
            break
    return run_here(program, argv)


def start_for_next() -> None:
    """Start kebabd and do not wait for it: this command is answered sooner without."""
    from dari.daemon.launch import start_unattended
    from dari.knowledge.daemon import KebabPaths

    paths = KebabPaths()
    start_unattended(paths, paths.command())


def run_here(program: str, argv: list[str]) -> int:
    import gc

    # Importing makes no garbage, and one command not enough to look for it; an ingest turns it on again.
    gc.disable()
    from dari.cli.kebab.main import run_here as run

    return run(program, argv)


def _command_at(argv: list[str]) -> int:
    """Where the first word is that is neither an option nor an option's value."""
    skips = False
    for at, word in enumerate(argv):
        if skips:
            skips = False
        elif word == _WITH_VALUE:
            skips = True
        elif not word.startswith("-"):
            return at
    return len(argv)


if __name__ == "__main__":
    main()
