"""`crux exec | wait`."""

from __future__ import annotations

import argparse
import shlex

from dari.cli.crux.options import FAILED, OK, STILL_RUNNING, Crux, add_pane, seconds

STARTS = ("exec",)
EXAMPLES = {
    "exec": """
crux exec 'make test'                          one word is a line of shell, as it stands
crux exec -t server -- git log -1 'a file'     several words are quoted for the shell
crux exec --timeout 600 'cargo build' || echo "exit code $?"
crux exec 'journalctl -f' | grep -m1 error     stops when its reader has seen enough
crux exec --json 'ls | wc -l' | jq .exit_code

Lines are printed as they come. Ctrl-C interrupts the command in its pane; what it asks is answered there
(crux attach, crux send-text).
exit codes: the command's own; 124 when time is over (it goes on), 125 when it could not be run, 130 after Ctrl-C
""",
    "wait": """
crux send-text -t 2 --enter 'npm start'; crux wait -t 2 'listening on port (\\d+)'
crux wait -t 2 --text '$ '                     no regular expression
crux wait -t 2 --new 'GET /'                   only what comes from now on
crux wait -t 2 --seen 'ready'                  anything that the pane has printed
crux wait -t 2 --exit                          until its program ends; exits with its exit code

exit codes: 0 it came, 3 the program ended before, 124 time is over
""",
}


def add_exec(parser: argparse.ArgumentParser) -> None:
    parser.usage = "crux exec [options] 'LINE OF SHELL' | -- WORD …"
    add_pane(parser)
    parser.add_argument("--timeout", metavar="S", type=seconds, help="seconds to wait (default: until it ends)")
    parser.add_argument("command", metavar="CMD", nargs=argparse.REMAINDER, help="a line of shell, or words")


def add_wait(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument("--timeout", metavar="S", type=seconds, default=30.0, help="seconds (default: %(default)g)")
    parser.add_argument("--text", action="store_true", help="PATTERN is text, and no regular expression")
    parser.add_argument("--since", metavar="MARK", type=int, help="from this `mark` of an earlier answer on")
    parser.add_argument("--seen", action="store_true", help="also what was printed before, from the start of the pane")
    parser.add_argument("--new", action="store_true", help="only what comes after this (default: after the last input)")
    parser.add_argument("--exit", action="store_true", help="wait for the end of the pane's program")
    parser.add_argument("pattern", metavar="PATTERN", nargs="?", help="what to wait for")


def run_exec(arguments: argparse.Namespace, crux: Crux) -> int:
    words = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not words:
        from dari.errors import InvalidInput

        raise InvalidInput("no command was given", "crux exec 'make test'")
    command = words[0] if len(words) == 1 else shlex.join(words)
    begun = crux.call("crux:command/start", command=command, pane_id=crux.pane(arguments))
    from dari.cli.crux.following import Following

    following = Following(crux, begun, arguments.timeout)
    return following.wait() if crux.out.as_json else following.print()


def run_wait(arguments: argparse.Namespace, crux: Crux) -> int:
    from dari.errors import InvalidInput

    pane_id = crux.pane(arguments)
    if arguments.exit:
        code = crux.call("crux:pane/wait-exit", pane_id=pane_id, timeout_s=arguments.timeout)
        crux.out.show({"exit_code": code})
        if code is None and not crux.out.as_json:
            crux.out.complain(f"its program still runs after {arguments.timeout:g} s", "give it more --timeout")
        return STILL_RUNNING if code is None else code % 256 if code >= 0 else 128 - code
    if arguments.pattern is None:
        raise InvalidInput("no pattern was given", "crux wait 'listening on'")
    since = 0 if arguments.seen else arguments.since
    if arguments.new:
        since = crux.call("crux:pane/info", pane_id=pane_id)["mark"]
    found = crux.call(
        "crux:pane/wait-for",
        pattern=arguments.pattern,
        pane_id=pane_id,
        is_regex=not arguments.text,
        timeout_s=arguments.timeout,
        since=since,
    )
    crux.out.show(found, [found["text"]] if found["matched"] else [])
    if found["matched"]:
        return OK
    is_over = found["reason"] == "timeout"
    if not crux.out.as_json:
        said = (
            f"did not come within {arguments.timeout:g} s"
            if is_over
            else f"did not come: the program {found['reason']}"
        )
        crux.out.complain(f"{arguments.pattern!r} {said}", "crux get-text shows what the pane printed")
    return STILL_RUNNING if is_over else FAILED
