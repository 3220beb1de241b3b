"""Twenty-six commands that other tools get wrong, in four shells: the exit code, and the command's own output."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from dari.terminal.panes.shell_integration import quote
from tests.support.panes import pane_in

Case = tuple[str, str, int, str]  # name, command, exit code, a pattern for the whole output

LONG = "x" * 300
CASES: list[Case] = [
    ("a line", "echo hello", 0, "hello"),
    ("no output", "true", 0, ""),
    ("failure", "false", 1, ""),
    ("a code of its own", "(exit 3)", 3, ""),
    ("no line end", "printf abc", 0, "abc"),
    ("a comment", "true # said nothing", 0, ""),
    ("only a comment", "# nothing at all", 0, ""),
    ("a trailing semicolon", "echo a;", 0, "a"),
    ("in the background", "sleep 0.01 &", 0, r"(\[1\] \d+)?"),
    ("and waited for", "wait; echo waited", 0, r"((\[1\]|\nfish: Job 1,).*\n)?waited"),
    ("a heredoc", "cat <<EOF\nfirst\n  second 'quoted' \\\\ \"x\"\nEOF", 0, "first\n  second 'quoted' \\\\\\\\? \"x\""),
    ("a loop over lines", "for i in 1 2 3\ndo\n  echo n$i\ndone", 0, "n1\nn2\nn3"),
    ("several commands", "echo one\necho two\necho three", 0, "one\ntwo\nthree"),
    ("the last one counts", "echo one\nfalse", 1, "one"),
    ("Korean and emoji", "echo '한글 😀 é'", 0, "한글 😀 é"),
    ("twenty thousand lines", "seq 20000", 0, "\n".join(map(str, range(1, 20001)))),
    ("colours", r"printf '\033[1;31mred\033[0m plain\n'", 0, "red plain"),
    ("a long line", f"echo {LONG}", 0, LONG),
    ("a progress bar", r"printf '10%%\r50%%\r100%%\n'", 0, "100%"),
    ("pipes", "echo abc | tr a-z A-Z", 0, "ABC"),
    ("quotes", """echo "a 'b' c" 'd "e" f'""", 0, "a 'b' c d \"e\" f"),
    ("an exclamation mark", 'echo "hi! there!!"', 0, "hi! there!!"),
    ("tabs stay", r"printf 'a\tb\n'", 0, "a\tb"),
    ("no such command", "no-such-command-at-all", 127, ".*not found.*"),
    ("killed", "sh -c 'kill -9 $$'", 137, "(.*[Kk]illed.*)?"),
    ("a forged end", r"printf '\033]133;D;9\007\033]7701;0;D;99;7;/\007x\n'", 0, "x"),
]
FISH: dict[str, Case] = {
    "a code of its own": ("a code of its own", "sh -c 'exit 3'", 3, ""),
    "a heredoc": ("a string over lines", "echo 'first\n  second'", 0, "first\n  second"),
    "a loop over lines": ("a loop over lines", "for i in 1 2 3\n  echo n$i\nend", 0, "n1\nn2\nn3"),
    "tabs stay": ("fish has the kernel expand tabs", r"printf 'a\tb\n'", 0, "a {7}b"),
    "no such command": ("no such command", "no-such-command-at-all", 127, "(?s).*Unknown command.*"),
    "killed": ("killed", "sh -c 'kill -9 $$'", 137, "(?s)(.*SIGKILL.*)?"),
}
LEAST = {"bash": 26, "zsh": 25, "fish": 26, "dash": 23}


@pytest.mark.parametrize("shell", LEAST)
async def test_exit_codes_and_output_are_those_of_the_command(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on this machine")
    cases = [FISH.get(case[0], case) if shell == "fish" else case for case in CASES]
    assert len(cases) == 26
    wrong = []
    async with pane_in(tmp_path, shell) as pane:
        for name, command, code, pattern in cases:
            await pane.execute("true", 30)
            result = await pane.execute(command, 30)
            if result.status != "done" or result.exit_code != code or not re.fullmatch(pattern, result.output):
                wrong.append(f"{name}: {result.status} {result.exit_code} {result.output[:200]!r}")
    assert len(cases) - len(wrong) >= LEAST[shell], "\n".join(wrong)
    print(f"{shell}: {len(cases) - len(wrong)} of {len(cases)} right", *wrong, sep="\n")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
async def test_tracing_shows_the_command_and_not_our_hooks(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on this machine")
    async with pane_in(tmp_path, shell) as pane:
        await pane.execute("set -x")
        result = await pane.execute("echo seen; false")
        assert result.exit_code == 1
        assert "seen" in result.output.splitlines()
        assert "crux" not in result.output
        assert (await pane.execute("set +x; echo still")).output.splitlines()[-1] == "still"


BROKEN = ['echo "abc', "echo 'a", "echo ${", "(", "case x in", "echo ${x!y}"]


@pytest.mark.parametrize("shell", LEAST)
async def test_what_a_shell_says_of_a_broken_command_is_its_output(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on this machine")
    wrong = []
    async with pane_in(tmp_path, shell) as pane:
        for command in [*BROKEN, *(["if then fi", "fi"] if shell in ("bash", "dash") else [])]:
            result = await pane.execute(command, 20)
            if result.status != "done" or not result.exit_code or not result.output.strip():
                wrong.append((command, result))
            after = await pane.execute("echo fine", 20)
            if (after.exit_code, after.output) != (0, "fine"):
                wrong.append((command, after))
    assert not wrong


@pytest.mark.parametrize("shell", LEAST)
async def test_tabs_and_all_kinds_of_line_ends_of_a_command_reach_the_shell(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on this machine")
    async with pane_in(tmp_path, shell) as pane:
        for command in ("echo one\r\necho two\r\n", "echo one\recho two", "echo one\necho two\r"):
            result = await pane.execute(command, 30)
            assert (result.exit_code, result.output) == (0, "one\ntwo"), command
        for written in ("\tb 'c'", "all:\n\tcc \\\n\t\tx.c"):
            quoted = quote(written, pane.kind)
            assert (await pane.execute(f"printf %s {quoted} > written", 30)).exit_code == 0
            assert (tmp_path / "written").read_text() == written


@pytest.mark.parametrize(
    ("shell", "unpaste"),
    [
        ("bash", "bind 'set enable-bracketed-paste off'"),
        ("zsh", "unset zle_bracketed_paste"),
        ("bash", "script -qc 'env TERM=dumb bash --norc' /dev/null"),
    ],
)
async def test_a_tab_completes_nothing_in_a_shell_without_pastes(shell: str, unpaste: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None or shutil.which("script") is None:
        pytest.skip(f"{shell} or script is not on this machine")
    (tmp_path / "secret-file").touch()
    async with pane_in(tmp_path, shell) as pane:
        await pane.execute(unpaste, 30)
        assert (await pane.execute("echo sec\t", 30)).output == "sec"
        assert (await pane.execute("printf '%s\\n' 'a\tb\\t' > written", 30)).exit_code == 0
        assert (tmp_path / "written").read_text() == "a\tb\\t\n"
        assert (await pane.execute("echo 'not\tclosed", 30)).exit_code
        assert (await pane.execute("cat <<'END'\n\tone\nEND", 30)).exit_code == 0
        assert pane.commands.records[-1].command == "cat <<'END'\n\tone\nEND"


async def test_a_syntax_error_before_a_command_that_runs_is_shown_with_it(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        result = await pane.execute("if then fi\necho two", 20)
        assert "syntax error" in result.output
        assert result.output.endswith("two")


@pytest.mark.parametrize("shell", LEAST)
async def test_a_command_runs_in_a_terminal_that_a_program_left_raw(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on this machine")
    async with pane_in(tmp_path, shell) as pane:
        assert (await pane.execute("stty raw -echo", 30)).exit_code == 0
        assert (await pane.execute("echo 'still here'", 30)).output == "still here"
        assert (await pane.execute("stty sane", 30)).exit_code == 0
        assert (await pane.execute("echo sane", 30)).output == "sane"
