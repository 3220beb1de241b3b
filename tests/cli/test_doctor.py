"""`dari doctor`: every check with its hint, for a person or as JSON; exit 1 when one failed."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from dari.cli.main import main
from dari.transport.client_tokens import TokenStore, tokens_path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    return tmp_path


def token_of_mode(home: Path, mode: int, text: str = "secret\n") -> Path:
    path = home / "mcp.token"
    path.write_text(text)
    path.chmod(mode)
    return path


def checks_of(shown: str) -> dict[str, Any]:
    return {check["name"]: check for check in json.loads(shown)["checks"]}


def test_a_fresh_installation_is_healthy(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    for name in ("versions", "home", "token", "socket"):
        assert f"ok    {name}" in shown
    # Another hub may run on this machine, on the port that everybody uses: that is a warning.
    assert "ok    port" in shown or "warn  port" in shown
    assert "FAIL" not in shown


def test_a_good_token_file_is_healthy(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token_of_mode(home, 0o600)
    assert main(["doctor"]) == 0
    assert "(mode 0600)" in capsys.readouterr().out


def test_a_token_file_that_others_can_read_fails_and_says_what_to_do(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = token_of_mode(home, 0o644)
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert f"FAIL  token     {path} has mode 0644\n      hint: chmod 600 {path}\n" in shown


def test_the_tokens_of_clients_are_looked_at_too(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token_of_mode(home, 0o600)
    store = TokenStore(tokens_path())
    store.create("cursor")
    assert main(["doctor"]) == 0
    assert "; 1 of single clients" in capsys.readouterr().out
    store.path.chmod(0o644)
    assert main(["doctor"]) == 1
    assert f"hint: chmod 600 {store.path}\n" in capsys.readouterr().out


def test_json_carries_the_same_checks(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = token_of_mode(home, 0o604)
    assert main(["doctor", "--json"]) == 1
    shown = capsys.readouterr().out
    assert json.loads(shown)["status"] == "failed"
    checks = checks_of(shown)
    assert checks["token"] == {
        "name": "token",
        "status": "failed",
        "found": f"{path} has mode 0604",
        "hint": f"chmod 600 {path}",
    }
    assert checks["versions"]["status"] == "ok"


@pytest.mark.parametrize("kind", ["empty", "directory"])
def test_a_token_that_cannot_be_one_fails(home: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    if kind == "empty":
        token_of_mode(home, 0o600, "")
    else:
        (home / "mcp.token").mkdir(mode=0o700)
    assert main(["doctor", "--json"]) == 1
    assert checks_of(capsys.readouterr().out)["token"]["status"] == "failed"


def test_a_socket_that_nobody_serves_is_a_warning_and_no_failure(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["doctor", "--json"])
    path = Path(checks_of(capsys.readouterr().out)["socket"]["found"].split(" is not there")[0])
    path.parent.mkdir(mode=0o700, parents=True)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
        path.chmod(0o600)
    assert main(["doctor", "--json"]) == 0
    assert checks_of(capsys.readouterr().out)["socket"]["status"] == "warning"


@pytest.mark.parametrize("kind", ["file", "nowhere"])
def test_a_home_that_cannot_be_used_is_told_and_not_a_traceback(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    place = tmp_path / "file" if kind == "file" else Path("/proc/nowhere")
    monkeypatch.setenv("DARI_HOME", str(place))
    assert main(["doctor"]) == 1
    captured = capsys.readouterr()
    assert str(place) in captured.out + captured.err
    assert "hint: " in captured.out + captured.err
