"""`crux`: panes of the terminal from a shell. Only the command that was named is loaded."""

from __future__ import annotations

import sys

from dari.cli.kit.errors import run_guarded
from dari.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from types import ModuleType

USAGE = """\
usage: crux [--json] [--socket PATH] COMMAND …

Terminal panes that agents drive and people watch. The server starts with the first pane and lives on.

"""
EPILOG = """
examples:
  crux split-pane --cwd ~/project            a shell beside the focused pane; prints its id
  crux exec -t 2 'make test'                 run there; prints its output, exits with its exit code
  crux send-text -t 2 --enter 'npm start'    type and press Enter
  crux wait -t 2 'listening on .*:3000'      until it is printed
  crux get-text -t 2 --start-line -100       the last lines of its scrollback, and the screen
  crux attach                                look at it in this terminal; Ctrl-b d leaves

Inside a pane, --pane-id defaults to that pane ($CRUX_PANE). Every command has examples: crux wait --help
exit codes: 0 done, 1 wrong use or refused, 2 no such pane, 3 failed or no server, 124 time is over
"""

TMUX_FAILED = 1
# name → module, help; in the order of the help
COMMANDS = {
    "split-pane": ("panes", "open a pane beside another one, and print its id"),
    "new-window": ("panes", "open a window, or a tab, with one pane"),
    "list": ("panes", "list panes"),
    "activate-pane": ("panes", "give a pane the focus"),
    "close-pane": ("panes", "end a pane and what runs in it"),
    "resize": ("panes", "give a pane a size in cells"),
    "zoom": ("panes", "zoom a pane to its whole tab, or back"),
    "rename-pane": ("panes", "name a pane"),
    "select-layout": ("panes", "arrange the panes of a tab"),
    "exec": ("commands", "run a command in a pane's shell, and exit as it does"),
    "wait": ("commands", "wait until a pane prints something"),
    "send-text": ("commands", "paste or type text"),
    "send-keys": ("commands", "press keys by name"),
    "get-text": ("panes", "what a pane shows and has shown"),
    "screenshot": ("panes", "a picture of a pane"),
    "attach": ("attach", "look at a window in this terminal, and work in it"),
    "load-workspace": ("sessions", "open the panes of a workspace"),
    "save-session": ("sessions", "write all panes to a file"),
    "restore-session": ("sessions", "bring saved panes back"),
    "list-sessions": ("sessions", "list saved sessions"),
    "approvals": ("approvals", "calls of agents that wait for your approval"),
    "info": ("sessions", "who serves, and where"),
    "kill-server": ("sessions", "end all panes and the server"),
    "tmux": ("tmux", "what scripts ask of tmux"),
}


def main(argv: list[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    return run_guarded(lambda: _main(words), failed=TMUX_FAILED if words[:1] == ["tmux"] else 0)


def _main(words: list[str]) -> int:
    given: dict[str, object] = {}
    while words and words[0].startswith("-"):
        word, *words = words
        if word in ("-h", "--help"):
            sys.stdout.write(make_help())
            return 0
        if word in ("-V", "--version"):
            sys.stdout.write(f"crux {VERSION}\n")
            return 0
        if word == "--json":
            given["json"] = True
        elif word == "--socket":
            if not words:
                return _complain("--socket needs a path", "crux --socket ~/.crux/mcp.sock list")
            given["socket"], *words = words
        elif word.startswith("--socket="):
            given["socket"] = word.partition("=")[2]
        else:
            return _unknown_option(word)
    if words[:1] == ["cli"]:  # as the original spells it
        words = words[1:]
    if not words or words[0] == "help":
        return _help(words[1:])
    name, *words = words
    if name == "tmux":
        from dari.cli.crux.tmux.main import run_tmux

        return run_tmux(words, str(given.get("socket", "")))
    if name not in COMMANDS:
        return _unknown(name)
    return _run(name, words, given)


def _run(name: str, words: list[str], given: dict[str, object]) -> int:
    import argparse
    import gc

    # Importing makes no garbage, and one command not enough to look for it.
    gc.disable()
    from dari.cli.crux.client import CruxClient
    from dari.cli.crux.options import FAILED, NO_PANE, OWN_FAILURE, USAGE, Crux, CruxOutput
    from dari.errors import DariError
    from dari.os_errors import from_os_error
    from dari.terminal.paths import CruxPaths

    parser = make_parser(name)
    words, rest = _split_off(words) if name in ("split-pane", "new-window") else (words, [])
    arguments = parser.parse_args(words, argparse.Namespace(**given, rest=rest))
    out = CruxOutput(as_json=getattr(arguments, "json", False))
    client = CruxClient(CruxPaths.of_environment(getattr(arguments, "socket", "")), starts=arguments.starts)
    try:
        code: int = arguments.handle(arguments, Crux(client, out))
        return code
    except BrokenPipeError:
        raise
    except (DariError, OSError) as problem:
        error = from_os_error(problem)
        if error is None:
            raise
        out.error(error)
        if name == "exec":
            return OWN_FAILURE
        if error.name == "not_found":
            return NO_PANE
        return USAGE if error.name in ("invalid_input", "conflict", "denied", "needs_approval") else FAILED
    finally:
        client.close()


def make_parser(name: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    import importlib

    from dari.cli.crux.options import CruxParser, add_shared

    module, help = COMMANDS[name]
    words: ModuleType = importlib.import_module(f"dari.cli.crux.{module}")
    word = name.replace("-", "_")
    parser = CruxParser(name, help, words.EXAMPLES[name])
    getattr(words, f"add_{word}")(parser)
    add_shared(parser)
    parser.set_defaults(handle=getattr(words, f"run_{word}"), starts=name in getattr(words, "STARTS", ()))
    return parser


def make_help() -> str:
    width = max(map(len, COMMANDS))
    return USAGE + "".join(f"  {name:<{width}}  {help}\n" for name, (_, help) in COMMANDS.items()) + EPILOG


def _split_off(words: list[str]) -> tuple[list[str], list[str]]:
    """The words before `--`, and the command after it."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _help(words: list[str]) -> int:
    if not words:
        sys.stdout.write(make_help())
        return 0
    if words[0] not in COMMANDS:
        return _unknown(words[0])
    if words[0] == "tmux":
        from dari.cli.crux.tmux.main import run_tmux

        return run_tmux(["--help"])
    make_parser(words[0]).print_help()
    return 0


def _unknown(name: str) -> int:
    from dari.cli.kit.hints import closest

    others = {
        "kill-pane": "close-pane",
        "focus-pane": "activate-pane",
        "run": "exec",
        "ls": "list",
        "split": "split-pane",
    }
    meant = others.get(name) or closest(name, COMMANDS)
    hint = f"did you mean `crux {meant}`?" if meant else "see: crux --help"
    return _complain(f"crux has no command {name!r}", hint)


def _unknown_option(word: str) -> int:
    from dari.cli.kit.hints import closest

    meant = closest(word.partition("=")[0], ("--help", "--version", "--json", "--socket"))
    hint = f"did you mean {meant}? " if meant else ""
    return _complain(f"unknown option {word.partition('=')[0][:60]!r}", f"{hint}see: crux --help")


def _complain(message: str, hint: str) -> int:
    sys.stderr.write(f"error: {message}\nhint: {hint}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
