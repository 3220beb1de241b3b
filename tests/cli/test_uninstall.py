"""`dari uninstall`: it lists what lives in the home, stops what runs, and removes that and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.cli.main import main
from tests.support.wire import ROOT


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Short enough for the paths of sockets."""
    made = Path(tempfile.mkdtemp(prefix="dari-"))
    for name in ("CRUX_SOCKET", "CRUX_CONFIG", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "DARI_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def data(home: Path) -> Path:
    return home / ("Library/Application Support/dari" if sys.platform == "darwin" else ".local/share/dari")


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def furnished(home: Path) -> list[Path]:
    """One file in each place where something of ours lives."""
    made = [
        write(data(home) / name)
        for name in ("mcp.token", "crabd/ca/key.pem", "bridge/oauth/a.json", "logs/crabd.log", "cache/terminal/a.py")
    ]
    made += [write(home / ".crux" / "http.token"), write(home / ".config/crewx/mcp.json", '{"servers": []}')]
    return [*made, write(home / ".config/crux/crux.toml"), write(home / ".config/crux/workspaces/own.toml")]


def run(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_without_a_word_of_agreement_it_only_lists(
    home: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    made = furnished(home)
    assert main(["uninstall", *words]) == 0
    shown = capsys.readouterr().out
    for place in (data(home) / "mcp.token", data(home) / "crabd", data(home) / "bridge", home / ".crux"):
        assert f"remove   {place}  " in shown
    assert f"remove   {home / '.config/crewx/mcp.json'}" in shown
    assert "private key" in shown
    assert "nothing was removed; `dari uninstall --yes`" in shown
    assert all(path.exists() for path in made)


def test_yes_removes_everything_and_tells_what_is_left_to_do(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    furnished(home)
    assert main(["uninstall", "--yes"]) == 0
    assert [path for path in home.rglob("*") if not path.is_dir()] == []
    assert not data(home).exists() and not (home / ".crux").exists() and not (home / ".config/crewx").exists()
    shown = capsys.readouterr().out
    assert "claude mcp remove dari" in shown
    assert "uninstall dari" in shown
    assert main(["uninstall"]) == 0
    assert "nothing of Dari is left" in capsys.readouterr().out


@pytest.mark.parametrize(("typed", "is_removed"), [("yes", True), ("y", False), ("", False)])
def test_a_person_is_asked_and_must_say_yes(
    home: Path, typed: str, is_removed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = furnished(home)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: typed)
    assert main(["uninstall"]) == 0
    assert {path.exists() for path in made} == {not is_removed}


def test_settings_that_a_person_wrote_can_be_kept(home: Path) -> None:
    furnished(home)
    assert main(["uninstall", "--yes", "--keep-settings"]) == 0
    left = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    assert left == {".config/crewx/mcp.json", ".config/crux/crux.toml", ".config/crux/workspaces/own.toml"}


def test_what_is_not_ours_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A home of ours may have been put into a folder that holds other things, even the user's own."""
    monkeypatch.setenv("DARI_HOME", str(home))
    kept = [write(home / "thesis.txt"), write(home / ".config/crewx/other.json"), write(home / "Documents/a")]
    ours = [write(home / "mcp.token"), write(home / "run/hub/x"), write(home / "crux/http.token")]
    assert main(["uninstall", "--yes"]) == 0
    assert all(path.exists() for path in kept)
    assert not any(path.exists() for path in ours)
    assert f"keep     {home / 'thesis.txt'}  Dari did not make it" in capsys.readouterr().out


def test_a_link_is_removed_and_not_what_it_leads_to(home: Path) -> None:
    elsewhere = write(home / "elsewhere" / "precious.txt")
    data(home).mkdir(parents=True)
    (data(home) / "crabd").symlink_to(elsewhere.parent)
    (data(home) / "logs").mkdir()
    (data(home) / "logs" / "link").symlink_to(elsewhere)
    assert main(["uninstall", "--yes"]) == 0
    assert elsewhere.read_text() == "x"
    assert not data(home).exists()


def test_a_shim_that_we_wrote_is_found_on_the_path_and_a_real_tmux_is_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = write(home / "real" / "tmux", "#!/bin/sh\nexec something\n")
    run("dari.cli.crux.main", "tmux", "--install", str(home / "shims"))
    monkeypatch.setenv("PATH", f"{home / 'real'}:{home / 'shims'}:{os.environ['PATH']}")
    assert main(["uninstall", "--yes"]) == 0
    assert real.exists()
    assert not (home / "shims" / "tmux").exists()


@pytest.mark.timeout(120)
def test_daemons_are_named_and_stopped_first(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("dari", "proxy", "start", "--listen", "127.0.0.1:0", "--ca")
    run("dari.cli.crux.main", "exec", "true")
    run("dari", "remote", "daemon", "start")
    assert list(data(home).rglob("*key*"))
    assert main(["uninstall", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    for name in ("crabd", "cruxd and its panes", "the bridge and its servers"):
        assert f"runs     {name} (pid " in shown
    assert main(["uninstall", "--yes"]) == 0
    assert not data(home).exists()
    assert not (home / ".crux").exists()
    assert main(["uninstall"]) == 0
    assert "runs " not in capsys.readouterr().out.partition("what is left")[0].rpartition("removed")[2]


def test_yes_and_dry_run_exclude_each_other(home: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["uninstall", "--yes", "--dry-run"])
    assert caught.value.code == 2
