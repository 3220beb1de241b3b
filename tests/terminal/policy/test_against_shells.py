"""The reader against the shells themselves: what they ran must have been listed, or the text must have been doubted."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from dari.terminal.policy.ast import Dialect, ShellError
from dari.terminal.policy.commands_run import find_commands_run, program

STUBS = ("alpha", "beta", "gamma", "delta", "victim")
SHELLS: list[tuple[Dialect, list[str]]] = [
    ("bash", ["bash", "--norc", "--noprofile", "-c"]),
    ("sh", ["dash", "-c"]),
    ("zsh", ["zsh", "-f", "-c"]),
    ("fish", ["fish", "--no-config", "-c"]),
]
SCRIPTS = 150
_STUB = """#!/bin/sh
printf '%s\\n' "${0##*/}" >> "$RAN"
"""


def _stubs(folder: Path) -> Path:
    bin_dir = folder / "bin"
    bin_dir.mkdir()
    for name in STUBS:
        path = bin_dir / name
        path.write_text(_STUB)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return bin_dir


def _quoted(chance: random.Random, word: str, dialect: Dialect) -> str:
    """The same word in another spelling, or one that only the shell can know."""
    ways = [
        lambda: word,
        lambda: f"'{word}'",
        lambda: f'"{word}"',
        lambda: f"{word[0]}''{word[1:]}",
        lambda: f'{word[:2]}"{word[2:]}"',
        lambda: f"'{word[:1]}'\"{word[1:3]}\"{word[3:]}",
    ]
    if dialect == "fish":
        ways += [lambda: f"\\x{ord(word[0]):02x}{word[1:]}", lambda: f"(echo {word})"]
    else:
        ways += [
            lambda: f"\\{word}",
            lambda: f"{word[:2]}\\\n{word[2:]}",
            lambda: f"$(echo {word})",
            lambda: f"`echo {word}`",
            lambda: f"{word}${{nothing}}",
            lambda: f"{word[:2]}$nothing''{word[2:]}",
        ]
    if dialect in ("bash", "zsh"):
        ways += [lambda: f"$'\\x{ord(word[0]):02x}{word[1:]}'", lambda: f"$'\\{ord(word[0]):o}'{word[1:]}"]
    if dialect == "bash":
        ways += [lambda: f'$"{word}"', lambda: f"{{{word},x}}", lambda: f"{word}{{,x}}"]
    return chance.choice(ways)()


def _script(chance: random.Random, dialect: Dialect, depth: int = 0) -> str:
    def inner() -> str:
        return _script(chance, dialect, depth + 1)

    if depth > 2 or chance.random() < 0.25:
        arguments = chance.choice(
            ["", " x", " 'a;b'", ' "c|d"', " $nothing", " 2>/dev/null", " </dev/null", " >/dev/null"]
        )
        return _quoted(chance, chance.choice(STUBS), dialect) + arguments
    shared = [
        lambda: f"{inner()}; {inner()}",
        lambda: f"{inner()}\n{inner()}",
        lambda: f"{inner()} && {inner()}",
        lambda: f"{inner()} || {inner()}",
        lambda: f"{inner()} | {inner()}",
        lambda: f"echo $({inner()})" if dialect != "fish" else f"echo ({inner()})",
        lambda: f'echo "a $({inner()}) b"',
        lambda: f"env {_quoted(chance, chance.choice(STUBS), dialect)}",
        lambda: f"env -u FOO A=1 {_quoted(chance, chance.choice(STUBS), dialect)}",
        lambda: f"command {_quoted(chance, chance.choice(STUBS), dialect)}",
        lambda: f"eval {_quoted(chance, chance.choice(STUBS), dialect)}",
        lambda: "sh -c 'alpha; (beta) && gamma'",
        lambda: "echo x | xargs " + _quoted(chance, chance.choice(STUBS), dialect),
        lambda: "find . -maxdepth 0 -exec " + _quoted(chance, chance.choice(STUBS), dialect) + " {} \\;",
        lambda: "echo alpha | sh",
        lambda: "nice -n 1 timeout 5 " + _quoted(chance, chance.choice(STUBS), dialect),
    ]
    if dialect == "fish":
        shared += [
            lambda: f"if {inner()}; {inner()}; else; {inner()}; end",
            lambda: f"for i in 1 2; {inner()}; end",
            lambda: f"begin; {inner()}; end",
            lambda: f"{inner()}; and {inner()}",
            lambda: f"not {inner()}",
            lambda: f"switch a; case a; {inner()}; case b; {inner()}; end",
            lambda: f"function fun; {inner()}; end; fun",
        ]
        return chance.choice(shared)()
    shared += [
        lambda: f"( {inner()} )",
        lambda: f"echo `{chance.choice(STUBS)} x; {chance.choice(STUBS)}`",
        lambda: f"{{ {inner()}; }}",
        lambda: f"if {inner()}; then {inner()}; else {inner()}; fi",
        lambda: f"if {inner()}\nthen {inner()}\nelif {inner()}\nthen {inner()}\nfi",
        lambda: f"for i in 1 2; do {inner()}; done",
        lambda: f"while {inner()}; do {inner()}; break; done",
        lambda: f"case a in (b) {inner()};; a|c) {inner()};; esac",
        lambda: f"fun() {{ {inner()}; }}; fun",
        lambda: f"echo ${{nothing:-$({inner()})}}",
        lambda: f"echo $((1 + $({inner()} >/dev/null; echo 2)))",
        lambda: f"cat <<END\ntext $({inner()})\nEND\n:",
        lambda: f"cat <<'END'\n$({chance.choice(STUBS)})\nEND\n:",
        lambda: f"cat <<-END >/dev/null; {inner()}\n\ttext\n\tEND\n:",
        lambda: f"sh <<'END'\n{chance.choice(STUBS)} x\nEND\n:",
        lambda: f"a=$({inner()}) {inner()}",
        lambda: f"! {inner()}",
        lambda: f"{inner()} & wait",
        lambda: f"trap {chance.choice(STUBS)} EXIT",
        lambda: f"{inner()} # victim; victim",
    ]
    if dialect in ("bash", "zsh"):
        shared += [
            lambda: f"cat <({inner()})",
            lambda: f"[[ -n $({inner()}) ]] && {inner()}",
            lambda: f"arr=(a $({inner()}))",
            lambda: f"sh <<< {chance.choice(STUBS)}",
            lambda: f"function fun {{ {inner()}; }}; fun",
            lambda: f"for ((i=0; i<2; i++)); do {inner()}; done",
        ]
    return chance.choice(shared)()


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("dialect", "call"), SHELLS, ids=[name for name, _ in SHELLS])
def test_what_a_shell_ran_was_listed_or_doubted(dialect: Dialect, call: list[str], tmp_path: Path) -> None:
    if shutil.which(call[0]) is None:
        pytest.skip(f"{call[0]} is not installed")
    bin_dir = _stubs(tmp_path)
    ran = tmp_path / "ran"
    environment = {
        "PATH": f"{bin_dir}:/usr/bin:/bin",
        "RAN": str(ran),
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
        "TERM": "dumb",
    }
    certain = 0
    for seed in range(SCRIPTS):
        text = _script(random.Random(f"{dialect} {seed}"), dialect)
        ran.write_text("")
        done = subprocess.run(
            [*call, text], env=environment, cwd=tmp_path, capture_output=True, timeout=20, stdin=subprocess.DEVNULL
        )
        started = set(ran.read_text().split())
        try:
            found = find_commands_run(text, dialect)
        except ShellError:
            assert not _is_plain(text), text
            continue
        if found.doubts and _may_hide(found.doubts):
            continue
        certain += 1
        listed = {program(command.name) for command in found.commands if command.name}
        assert started <= listed, (text, started - listed, done.stderr)
    # A reader that doubted everything would pass as well.
    assert certain > SCRIPTS // 5


def _may_hide(doubts: tuple[str, ...]) -> bool:
    return any("defines the function" not in doubt for doubt in doubts)


def _is_plain(text: str) -> bool:
    return text.isalpha()


@pytest.mark.parametrize(("dialect", "call"), SHELLS[:2], ids=[name for name, _ in SHELLS[:2]])
@pytest.mark.parametrize(
    "text",
    [
        "echo 'a",
        'echo "a',
        "echo $(a",
        "if a; then b",
        "a |",
        "a &&",
        "a )",
        "for i in a; do b",
        "case a in b) c",
        "; a",
    ],
)
def test_a_text_that_the_shell_refuses_is_not_read(
    dialect: Dialect, call: list[str], text: str, tmp_path: Path
) -> None:
    if shutil.which(call[0]) is None:
        pytest.skip(f"{call[0]} is not installed")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run([*call[:-1], "-n", "-c", text], capture_output=True, timeout=20, env=environment)
    assert done.returncode != 0
    with pytest.raises(ShellError):
        find_commands_run(text, dialect)
