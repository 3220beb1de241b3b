"""The `crewx-tools` command (design 001 §15): the code tools, for an agent (`serve`) and for a person."""

import sys

from dari.cli.kit.errors import run_guarded

INTERRUPTED = 4


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    return run_guarded(lambda: _main(words), interrupted=0 if words[:1] == ["serve"] else INTERRUPTED)


def _main(words: list[str]) -> int:
    if words[:1] == ["serve"]:
        from dari.cli.crewx_tools.serve import main as serve

        return serve(words[1:])
    from dari.cli.crewx_tools.commands import main as run_command

    return run_command("crewx-tools", words)


if __name__ == "__main__":
    sys.exit(main())
