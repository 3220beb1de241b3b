"""The `crewx` command of design 001: `crewx mcp remote …` for other people's servers, `crewx mcp …` for our own, and
`crewx tool …` for the code tools (§16.6)."""

import sys

from dari.cli.kit.errors import run_guarded

HELP = """\
usage: crewx mcp COMMAND … | crewx tool COMMAND …

MCP servers and code tools from the shell.

commands:
  mcp remote …      other people's servers: list, call, watch and trust them
  mcp list_tools    the tools that are built in
  mcp call_tool     call one of them
  tool …            code tools: search, symbols, fmt, lint, test, check, refactor, undo

examples:
  crewx mcp remote servers
  crewx mcp remote list-tools --server fs
  crewx mcp remote call-tool fs/read_file --path README.md
  crewx mcp list_tools
  crewx tool fmt src --write

Every command has examples of its own: crewx mcp remote --help
`dari remote …` is the same as `crewx mcp remote …`. Guide: docs/guide/remote.md
"""
INTERRUPTED = OTHER = 4
_OWN = ("list_tools", "call_tool")
_WORDS = {"mcp": ("remote", *_OWN), "": ("mcp", "tool", "--help", "--version")}
_REMOTE = (
    *("servers", "list-tools", "call-tool", "describe", "list-resources", "read-resource", "list-prompts"),
    *("get-prompt", "prewarm", "daemon", "add", "remove", "enable", "disable", "import", "trust", "test", "doctor"),
)


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    # The codes of the code tools have a failure of their own (3), those of the others have "anything else" (4).
    failed = 0 if words[:1] == ["tool"] else OTHER
    return run_guarded(lambda: _main(words, leaves=argv is None), interrupted=INTERRUPTED, failed=failed)


def _main(words: list[str], *, leaves: bool) -> int:
    if words[:2] == ["mcp", "remote"]:
        from dari.cli.remote.fast_client import main as run_remote

        return run_remote("crewx mcp remote", words[2:], leaves=leaves)
    if words[:1] == ["mcp"] and words[1:2] and words[1].replace("-", "_") in _OWN:
        from dari.cli.remote.fast_client import main as run_remote

        return run_remote("crewx mcp", [words[1].replace("-", "_"), *words[2:]], leaves=leaves)
    if words[:1] == ["tool"]:
        from dari.cli.crewx_tools.commands import main as run_tool

        return run_tool("crewx tool", words[1:])
    if words in (["--version"], ["-V"], ["mcp", "--version"]):
        from dari.version import VERSION

        print(f"crewx (dari {VERSION})")
        return 0
    if not words or words == ["mcp"]:
        sys.stderr.write(HELP)
        return 1
    if words[-1] in ("-h", "--help") or words[0] == "help":
        sys.stdout.write(HELP)
        return 0
    return _unknown(words)


def _unknown(words: list[str]) -> int:
    from difflib import get_close_matches

    under_mcp = words[0] == "mcp"
    program, wrong = ("crewx mcp", words[1]) if under_mcp else ("crewx", words[0])
    if wrong in _REMOTE:
        hint = f"did you mean 'crewx mcp remote {wrong}'?"
    elif not under_mcp and wrong in ("remote", *_OWN):
        hint = f"did you mean 'crewx mcp {wrong}'?"
    else:
        close = get_close_matches(wrong, _WORDS["mcp" if under_mcp else ""], n=1)
        hint = f"did you mean '{program} {close[0]}'?" if close else f"see: {program} --help"
    sys.stderr.write(f"error: {program} has no command {wrong[:60]!r}\nhint: {hint}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
