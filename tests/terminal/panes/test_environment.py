"""What programs in panes know: a person's environment where a person started the daemon, else what their files set."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.errors import InvalidInput
from dari.terminal.out_of_band import load_variables
from dari.terminal.panes.environment import make_environment
from tests.support.panes import pane_in

TIED = {
    "TERM": "screen",
    "TMUX": "/tmp/tmux-0/default,1,0",
    "COLUMNS": "80",
    "TERM_SESSION_ID": "w0t0p0",
    "KITTY_WINDOW_ID": "1",
    "SSH_TTY": "/dev/pts/9",
    "SHLVL": "3",
    "CRUX_PANE_TOKEN": "secret",
    "DARI_TOKEN": "secret",
}


def test_a_persons_environment_comes_without_what_is_tied_to_their_terminal() -> None:
    person = {"PATH": "/opt/bin", "HOME": "/home/me", "LANG": "ko_KR.UTF-8", "AWS_PROFILE": "work", **TIED}
    env = make_environment("7", "/run/crux.sock", {"EXTRA": "given"}, person)
    assert {name: env[name] for name in ("PATH", "LANG", "AWS_PROFILE", "EXTRA")} == {
        "PATH": "/opt/bin",
        "LANG": "ko_KR.UTF-8",
        "AWS_PROFILE": "work",
        "EXTRA": "given",
    }
    assert (env["TERM"], env["COLORTERM"], env["CRUX_PANE"]) == ("xterm-256color", "truecolor", "7")
    assert not [name for name in TIED if name not in ("TERM",) and name in env]


def test_nothing_else_is_taken_of_the_daemons_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    env = make_environment("7")
    assert "API_KEY" not in env
    assert env["PATH"] == os.environ["PATH"]
    assert env["LANG"] == "C.UTF-8"


@pytest.mark.parametrize(
    ("shell", "files"),
    [
        ("bash", {".profile": "export PATH=~/own/bin:$PATH", ".bashrc": "export COUNT=x$COUNT"}),
        ("bash", {".bash_profile": "export PATH=~/own/bin:$PATH; . ~/.bashrc", ".bashrc": "export COUNT=x$COUNT"}),
        ("zsh", {".zprofile": "export PATH=~/own/bin:$PATH", ".zshrc": "export COUNT=x$COUNT"}),
        ("dash", {".profile": "export PATH=~/own/bin:$PATH COUNT=x"}),
    ],
)
async def test_shells_read_the_files_that_set_the_path(shell: str, files: dict[str, str], tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    tool = tmp_path / "own" / "bin" / "mytool"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    async with pane_in(tmp_path, shell, env={"ZDOTDIR": str(tmp_path)}) as pane:
        assert (await pane.execute('mytool; echo "$COUNT-$CRUX_LOGIN"')).output == "found\nx-"
    async with pane_in(tmp_path, shell, is_plain=True) as pane:
        assert (await pane.execute("mytool")).exit_code == 127
    async with pane_in(tmp_path, shell, base={"HOME": str(tmp_path)}) as pane:
        assert (await pane.execute("mytool")).exit_code == 127  # the person's PATH is what it is


def test_variables_for_every_pane_are_written_in_crux_toml(tmp_path: Path) -> None:
    config = tmp_path / "crux.toml"
    environ = {"CRUX_CONFIG": str(config)}
    assert load_variables(environ) == {}
    config.write_text('[terminal.environment]\nEDITOR = "vim"\n[mcp.security]\nmax_panes = 3\n')
    assert load_variables(environ) == {"EDITOR": "vim"}
    for wrong in (
        "[terminal]\nenvironment = 3",
        "[terminal.environment]\nA = 3",
        '[terminal.environment]\n"a b" = "x"',
    ):
        config.write_text(wrong)
        with pytest.raises(InvalidInput, match=r"terminal\.environment"):
            load_variables(environ)


@pytest.fixture
def home() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="crux-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def crux(home: Path, stdin: int, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "DARI_HOME": str(home / "dari"), "SHELL": "/bin/bash"}
    env |= {"PERSON": "me", "TMUX": "/tmp/other", "CRUX_CONFIG": str(home / "crux.toml")}
    ran = subprocess.run(
        [sys.executable, "-m", "dari.cli.crux.main", *words],
        stdin=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env=env,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_person_who_starts_the_daemon_finds_their_environment_in_its_panes(home: Path) -> None:
    (home / "crux.toml").write_text('[terminal.environment]\nEVERYWHERE = "yes"\n')
    asked = ("exec", "--", "sh", "-c", 'echo "$PERSON-$TMUX-$EVERYWHERE-$TERM"')
    master, slave = os.openpty()
    try:
        for stdin, seen in ((slave, "me--yes-xterm-256color"), (subprocess.DEVNULL, "--yes-xterm-256color")):
            try:
                assert crux(home, stdin, *asked) == seen
            finally:
                crux(home, subprocess.DEVNULL, "kill-server")
    finally:
        os.close(master)
        os.close(slave)
