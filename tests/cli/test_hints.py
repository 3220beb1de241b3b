"""Hints name the program as it was called, and the command they name is one that it takes."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dari.cli.kit.parser import HelpRequested
from dari.cli.remote.main import commands_of, load, parser_of
from dari.errors import InvalidInput
from tests.support.crab_processes import end_crabd
from tests.support.remote_command import Shop, shop

SOURCES = Path(__file__).parents[2] / "src/dari"
PROGRAMS = ("crewx mcp remote", "dari remote", "dari proxy", "dari audit", "crewx mcp", "crux", "dari")
_COMMAND = re.compile(rf"(?<![\w/.-])({'|'.join(PROGRAMS)}) (?=[a-z_-])([^`,;?…\n]*)")
_PROSE = (
    "and",
    "or",
    "is",
    "are",
    "has",
    "does",
    "runs",
    "shows",
    "lists",
    "names",
    "prints",
    "takes",
    "swaps",
    "moves",
)
"""Words that follow a program's name where it is only spoken of."""


def commands_in(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command that a text names: the program and the words after it, up to where prose may begin."""
    for program, rest in _COMMAND.findall(text):
        words = [word.rstrip(".:") for word in rest.replace("'", " ").replace('"', " ").replace(")", " ").split()]
        if words and words[0] not in _PROSE and "[" not in rest:
            yield program, words


def takes(program: str, words: list[str]) -> bool:
    """Whether the program parses these words, or the first of them where prose follows; every option counts."""
    options = [at for at, word in enumerate(words) if word.startswith("--")]
    shortest = max([1, *(at + 1 for at in options)])
    for end in range(len(words), shortest - 1, -1):
        # What a tool takes stands in its schema, which no parser has.
        if parses(program, words[:end]) or parses(program, [*words[:end], "X"]):
            return True
    return False


def parses(program: str, words: list[str]) -> bool:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            _parse(program, words)
    except HelpRequested:
        return True
    except SystemExit as ended:
        return ended.code == 0
    except (InvalidInput, KeyError, StopIteration):
        return False
    return True


def _parse(program: str, words: list[str]) -> None:
    if words[0] in ("--help", "--version", "help"):
        return
    if program in ("dari remote", "crewx mcp remote", "crewx mcp"):
        entry = next(one for one in commands_of(program) if one.name == words[0])
        split = load(entry).split
        parser_of(entry, program).parse_args(split(words[1:])[0] if split else words[1:])
    elif program == "crux":
        from dari.cli.crux.main import COMMANDS, make_parser

        if words[0] == "tmux":
            return
        assert "tmux" in COMMANDS
        ours = words[1 : words.index("--")] if "--" in words else words[1:]
        make_parser(words[0]).parse_args(ours)
    elif program == "dari proxy":
        from dari.cli.proxy.main import GROUPS, _completed, make_parser

        assert any(one.name == words[0] for one in GROUPS) or next(iter(()))
        make_parser(words[0]).parse_args(_completed(words))
    elif program == "dari audit":
        from dari.cli.audit import make_parser as make_audit_parser

        make_audit_parser().parse_args(words)
    elif words[0] == "approvals":
        _parse("dari remote", words)
    else:
        from dari.cli.main import make_parser as make_dari_parser

        make_dari_parser().parse_args(words)


def texts_of(path: Path) -> Iterator[str]:
    """The strings of a module that may reach a person: docstrings are left out, what is filled in is `1`."""
    tree = ast.parse(path.read_text())
    docs = {
        id(body[0].value)
        for node in ast.walk(tree)
        if isinstance(body := getattr(node, "body", None), list) and body and isinstance(body[0], ast.Expr)
    }
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs | inside:
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(map(_filled, node.values))


def _filled(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    return "dari remote" if ast.unparse(part).endswith("context.program}") else "1"


def hints_in(said: str) -> Iterator[tuple[str, list[str]]]:
    """The commands that the hints on stderr name."""
    for line in said.splitlines():
        if line.startswith("hint: "):
            yield from commands_in(line)


@pytest.mark.parametrize("part", ["bridge", "core", "proxy", "terminal", "transport", "system", "daemon"])
def test_every_command_that_a_message_names_is_one_that_its_program_takes(part: str) -> None:
    named = [
        (f"{path.relative_to(SOURCES)}: {program} {' '.join(words)}", takes(program, words))
        for path in sorted((SOURCES / part).rglob("*.py"))
        if path.name not in ("known_programs.py", "program_tables.py")  # lists of names, not of commands
        for text in texts_of(path)
        for program, words in commands_in(text)
    ]
    assert [name for name, is_taken in named if not is_taken] == []


def test_a_command_that_does_not_exist_is_found_out() -> None:
    assert not takes("dari remote", ["nosuch"])
    assert not takes("dari remote", ["servers", "--nosuch"])
    assert not takes("crux", ["nosuch"])
    assert not takes("dari proxy", ["nosuch"])
    assert list(commands_in("see: dari remote list-tools --server X, or `crux list`")) == [
        ("dari remote", ["list-tools", "--server", "X"]),
        ("crux", ["list"]),
    ]


CRUX_ERRORS = (
    ["nosuch"],
    ["lst"],
    ["--nosuch"],
    ["list", "--nosuch"],
    ["split-pane", "htop"],
    ["select-layout", "--layout", "tilde"],
    ["wait"],
    ["get-text", "-t", "99"],
    ["resize", "--cols", "many"],
    ["load-workspace", "nosuch"],
)


@pytest.mark.parametrize("words", CRUX_ERRORS, ids=" ".join)
def test_a_hint_of_crux_names_commands_of_crux(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    from dari.cli.crux.main import main

    monkeypatch.setenv("CRUX_SOCKET", str(tmp_path / "none.sock"))
    monkeypatch.setenv("HOME", str(tmp_path))
    code = _exit_code(lambda: main(words))
    said = capsys.readouterr().err
    if (tmp_path / "none.sock").exists():
        assert _exit_code(lambda: main(["kill-server"])) == 0
    assert code in (1, 2, 3) and "error: " in said
    named = list(hints_in(said))
    assert [each for each in named if each[0] != "crux" or not takes(*each)] == []
    assert not re.search(r"\bcrux_[a-z]+", said), "a tool of an agent is named to a person"


PROXY_ERRORS = (
    ["nosuch"],
    ["rules", "nosuch"],
    ["rules", "add", "alow", "x"],
    ["rules", "--nosuch"],
    ["set", "listen"],
    ["traffic", "show"],
    ["traffic", "show", "1"],
    ["rules", "remove", "1"],
    ["ca", "export"],
)


@pytest.mark.parametrize("words", PROXY_ERRORS, ids=" ".join)
def test_a_hint_of_the_proxy_names_commands_of_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    from dari.cli.main import main

    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    try:
        code = _exit_code(lambda: main(["proxy", "--run-dir", str(tmp_path / "none"), *words]))
    finally:
        end_crabd(tmp_path / "none")
    said = capsys.readouterr().err
    assert code in (1, 2, 3)
    named = list(hints_in(said))
    assert [each for each in named if each[0] != "dari proxy" or not takes(*each)] == []
    assert not re.search(r"\bcrab_[a-z]+", said), "a tool of an agent is named to a person"


def _exit_code(run: Callable[[], int]) -> object:
    try:
        return run()
    except SystemExit as ended:
        return ended.code


ERRORS = (
    ("call-tool", "nosuch"),
    ("call-tool", "qqqqqqqqqqqqqq", "--server", "shop"),
    ("call-tool", "off/say", "text=x"),
    ("call-tool", "shop/say"),
    ("call-tool", "nobody/say"),
    ("list-tools", "--server", "theirs"),
    ("list-tools", "--all"),
    ("list-tools", "--nosuch"),
    ("list-tools", "--timeout", "soon"),
    ("get-prompt", "nosuch", "--server", "shop"),
    ("servers",),
    ("approve", "nobody"),
    ("approvals", "--approve", "nothing"),
    ("remove", "nobody"),
    ("pins", "nobody"),
    ("trust", "nowhere.json"),
    ("test", "--all"),
    ("test",),
    ("test", "off", "--json"),
    ("doctor",),
    ("doctor", "--json"),
    ("login", "shop"),
    ("logout", "shop"),
    ("daemon", "stop"),
    ("nocommand",),
    ("call-tol",),
    (),
)


async def failing(run: Shop, program: str) -> list[str]:
    """Everything that commands print on both streams where something is wrong."""
    said = []
    run.write(run.entry("shop", default=True), run.entry("off", disabled=True))
    project = run.cwd / ".crewx/mcp.json"
    project.parent.mkdir()
    project.write_text(json.dumps({"servers": [run.entry("theirs")]}))
    for words in ERRORS:
        done = await run(*words, program=program)
        said.append(f"$ {' '.join(words)}\n{done.out}{done.err}")
    run.write()
    done = await run("servers", program=program)
    said.append(done.out + done.err)
    return said


@pytest.mark.parametrize("program", ["crewx mcp remote", "dari remote"])
async def test_every_hint_names_the_program_that_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    other = "dari remote" if program == "crewx mcp remote" else "crewx mcp remote"
    async with shop(tmp_path) as run:
        said = await failing(run, program)
    assert [text for text in said if other in text] == []
    assert sum(program in text for text in said) >= 12
    named = [(each, words) for text in said for each, words in commands_in(text)]
    assert [each for each in named if not takes(*each)] == []
