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
crux exec --json 'ls | wc -l' | jq .exit_code

exit codes: the command's own; 124 when it still runs (it goes on), 125 when it could not be run
""",
    "wait": """
crux send-text -t 2 --enter 'npm start'; crux wait -t 2 'listening on port (\\d+)'
crux wait -t 2 --text '$ '                     no regular expression
crux wait -t 2 --seen 'ready'                  also when it was printed before
crux wait -t 2 --exit                          until its program ends; exits with its exit code

exit codes: 0 it came, 3 the program ended before, 124 time is over
""",
}


def add_exec(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument("--timeout", metavar="S", type=seconds, help="seconds to wait (default: 30, see crux.toml)")
    parser.add_argument("command", metavar="CMD", nargs=argparse.REMAINDER, help="a line of shell, or words")


def add_wait(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument("--timeout", metavar="S", type=seconds, default=30.0, help="seconds (default: %(default)g)")
    parser.add_argument("--text", action="store_true", help="PATTERN is text, and no regular expression")
    parser.add_argument("--since", metavar="MARK", type=int, help="from this `mark` of an earlier answer on")
    parser.add_argument("--seen", action="store_true", help="also what was printed before, from the start of the pane")
    parser.add_argument("--exit", action="store_true", help="wait for the end of the pane's program")
    parser.add_argument("pattern", metavar="PATTERN", nargs="?", help="what to wait for")


def run_exec(arguments: argparse.Namespace, crux: Crux) -> int:
    words = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not words:
        from dari.errors import InvalidInput

        raise InvalidInput("no command was given", "crux exec 'make test'")
    pane_id = crux.pane(arguments)
    command = words[0] if len(words) == 1 else shlex.join(words)
    try:
        done = crux.call("crux:command/execute", command=command, pane_id=pane_id, timeout_s=arguments.timeout)
    except KeyboardInterrupt:
        crux.line.close()  # the answer that was waited for comes no more on this one
        crux.call("crux:pane/send-keys", keys="C-c", pane_id=pane_id)
        raise
    output = done["stdout"]
    crux.out.show(done, [output] if output else [])
    if done["status"] != "running":
        code = done["exit_code"]
        return FAILED if code is None else code % 256
    if not crux.out.as_json:
        crux.out.note(f"still running in pane {done['pane_id']} as {done['command_id']}")
    return STILL_RUNNING


def run_wait(arguments: argparse.Namespace, crux: Crux) -> int:
    from dari.errors import InvalidInput

    pane_id = crux.pane(arguments)
    if arguments.exit:
        code = crux.call("crux:pane/wait-exit", pane_id=pane_id, timeout_s=arguments.timeout)
        crux.out.show({"exit_code": code})
        return STILL_RUNNING if code is None else code % 256 if code >= 0 else 128 - code
    if arguments.pattern is None:
        raise InvalidInput("no pattern was given", "crux wait 'listening on'")
    found = crux.call(
        "crux:pane/wait-for",
        pattern=arguments.pattern,
        pane_id=pane_id,
        is_regex=not arguments.text,
        timeout_s=arguments.timeout,
        since=0 if arguments.seen else arguments.since,
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
