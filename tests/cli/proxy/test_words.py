"""Help that teaches, hints in the words of the shell, output for terminals and pipes."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dari.proxy
from dari.cli.kit.table import format_size, one_line
from dari.cli.main import main
from dari.cli.proxy.main import GROUPS, _completed, make_parser
from dari.cli.proxy.options import COMMANDS, DEFAULT_WORDS, for_shell
from dari.cli.proxy.rule_kinds import NAMES
from dari.text.sanitize import escape_hidden
from tests.support.proxy_command import Shell
from tests.support.wire import ROOT


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from parsers(below)


EVERY = list(parsers(make_parser()))
LEAVES = [parser for parser in EVERY if parser.get_default("handle")]


@pytest.mark.parametrize("parser", EVERY, ids=lambda parser: parser.prog)
def test_every_help_has_examples(parser: argparse.ArgumentParser) -> None:
    shown = parser.format_help()
    assert "examples:\n" in shown
    assert parser.description


@pytest.mark.parametrize("parser", LEAVES, ids=lambda parser: parser.prog)
def test_every_command_takes_json_and_a_place(parser: argparse.ArgumentParser) -> None:
    options = {option for action in parser._actions for option in action.option_strings}
    assert {"--json", "--run-dir", "--socket"} <= options


def example_lines() -> list[str]:
    found = {
        line.strip()
        for parser in EVERY
        for line in (parser.epilog or "").splitlines()
        if line.strip().startswith("dari proxy ")
    }
    return sorted(found)


@pytest.mark.parametrize("line", example_lines())
def test_an_example_is_a_command_that_parses(line: str) -> None:
    command = re.split(r"\s{2,}|\s[|>]\s", line)[0]
    words = shlex.split(command)[2:]
    make_parser().parse_args(_completed(words))


def guide_commands() -> list[str]:
    """What the guides tell people to type, in blocks and in sentences."""
    guides = sorted((ROOT / "docs" / "guide").glob("*.md"))
    found = {line for guide in guides for line in re.findall(r"dari proxy [^`\n]+", guide.read_text())}
    return sorted(re.split(r"\s{2,}|\s[|>#]\s|\)\"|\s&&", line)[0].strip() for line in found)


@pytest.mark.parametrize("line", guide_commands())
def test_a_command_of_a_guide_parses(line: str) -> None:
    make_parser().parse_args(_completed(shlex.split(line)[2:]))


def test_help_of_one_command_loads_its_group_alone(capsys: pytest.CaptureFixture[str]) -> None:
    program = "import sys; from dari.cli.main import main\n"
    program += "try: main(['proxy', 'status', '--help'])\nexcept SystemExit: pass\n"
    program += "print([name for name in sys.modules if name.startswith('dari.cli.proxy.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    loaded = done.stdout.splitlines()[-1]
    assert "dari.cli.proxy.control" in loaded
    assert "dari.cli.proxy.traffic" not in loaded


def test_the_engine_is_not_loaded_by_a_command(shell: Shell) -> None:
    program = "import sys; from dari.cli.main import main\nmain(['proxy', 'rules'])\n"
    program += (
        "print([name for name in sys.modules if name.startswith(('dari.proxy.engine', 'cryptography', 'uvloop'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.mark.parametrize("words", [["nothing"], ["start", "--nothing"], ["rules", "remember"]])
def test_a_wrong_word_is_refused_with_2(words: list[str], shell: Shell) -> None:
    said = shell.refused(*words)
    assert said.startswith("error: ")
    assert "see: dari proxy" in said.splitlines()[1]


def test_dari_help_names_the_proxy(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "dari proxy run -- CMD" in capsys.readouterr().out


def test_groups_without_a_word_have_one() -> None:
    groups = {name.split()[2] for name in (parser.prog for parser in EVERY) if len(name.split()) == 4}
    assert set(DEFAULT_WORDS) == groups - {"har", "set"}
    assert {one.name for one in GROUPS} >= set(DEFAULT_WORDS)


def test_every_kind_of_rule_can_be_added() -> None:
    from dari.proxy.rules.rule import KINDS

    assert set(NAMES) == set(KINDS)
    kinds = {parser.get_default("kind") for parser in LEAVES if " rules add " in parser.prog}
    assert kinds == set(KINDS)


def test_every_tool_that_a_hint_names_has_a_command() -> None:
    folder = Path(dari.proxy.__file__).parent
    hints = [path for path in folder.rglob("*.py") if path.parent.name != "tools" and not path.name.startswith("tools")]
    named = {word for path in hints for word in re.findall(r"[\"' ](crab_[a-z_]+)", path.read_text())}
    assert named - set(COMMANDS) <= allowed(named), sorted(named - set(COMMANDS))


def allowed(named: set[str]) -> set[str]:
    """Prefixes and names that stand in docstrings only."""
    return {name for name in named if name.endswith("_")}


def test_a_hint_for_an_agent_becomes_one_for_a_person() -> None:
    assert for_shell("start it with crab_proxy_start") == "start it with dari proxy start"
    assert for_shell("find one with crab_traffic_search or crab_traffic_tail") == "find one with dari proxy traffic"
    assert for_shell("crab_ca_generate with replace=true") == "dari proxy ca generate --replace"


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (99_499, "99.5 kB"), (123_456, "123 kB"), (10**15, "1000 TB")],
)
def test_sizes(size_bytes: int, shown: str) -> None:
    assert format_size(size_bytes) == shown


def test_control_characters_become_visible() -> None:
    assert escape_hidden("a\x1b[31m\nb\t\x9b\u202e") == "a\\x1b[31m\nb\t\\x9b<U+202E>"
    assert one_line("a\nb\tc") == "a\\nb\\tc"


def on_terminal(*words: str, **environment: str) -> str:
    """What a terminal of 90 columns shows."""
    master, slave = os.openpty()
    command = [sys.executable, "-m", "dari", "proxy", *words]
    given = {**os.environ, "COLUMNS": "90", "TERM": "xterm", **environment}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env=given)
    os.close(slave)
    shown = b""
    try:
        while piece := os.read(master, 4096):
            shown += piece
    except OSError:
        pass  # how a terminal says that nobody holds its other end
    os.close(master)
    process.wait(40)
    return shown.decode()


def test_colours_are_for_terminals_that_want_them(shell: Shell) -> None:
    shell.started()
    assert "\x1b[32mrunning\x1b[0m" in on_terminal("status")
    assert "\x1b" not in on_terminal("status", NO_COLOR="1")
    assert "\x1b" not in on_terminal("status", TERM="dumb")
    assert "\x1b[31merror:\x1b[0m" in on_terminal("traffic", "show", "9")


def test_a_line_is_cut_to_the_width_of_the_terminal(shell: Shell) -> None:
    shell.started()
    shell("rules", "add", "map-local", "http://a.example/", "--text", "x")
    shell("traffic", "send", "http://a.example/" + "long" * 100)
    (line,) = on_terminal("traffic", NO_COLOR="1").splitlines()
    assert len(line) == 90 and line.endswith("…")
    assert "long" * 100 in shell("traffic").out
