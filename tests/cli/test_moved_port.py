"""A usual port that is somebody else's: said loudly, with the command that updates clients."""

from __future__ import annotations

import socket

import pytest

from dari.cli.ports import warn_port_moved
from dari.settings import ServeSettings
from dari.transport import bind
from tests.transport.test_bind import free_range


def told(capsys: pytest.CaptureFixture[str], port: int, **settings: int) -> str:
    warn_port_moved("dari", ServeSettings(**settings), f"http://127.0.0.1:{port}/mcp", "/a b/token")  # type: ignore[arg-type]
    return capsys.readouterr().err


def test_a_port_that_moved_is_told_with_the_command_that_updates_clients(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = free_range(2)
    monkeypatch.setattr(bind, "DEFAULT_PORT", usual)
    with socket.create_server(("127.0.0.1", usual)):
        shown = told(capsys, usual + 1)
    assert f"WARNING: port {usual} is taken by another program of yours" in shown
    url = f"http://127.0.0.1:{usual + 1}/mcp"
    assert f"claude mcp remove dari; claude mcp add --transport http dari {url} --header" in shown
    assert "$(cat '/a b/token')" in shown
    assert "rm '/a b/token'" in shown


def test_a_port_that_was_named_or_did_not_move_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, bind.DEFAULT_PORT) == ""
    assert told(capsys, 5000, http_port=5000) == ""
    assert told(capsys, 45000, http_port=0) == ""


def test_the_holder_of_the_port_is_named_when_it_is_another_user(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = free_range(2)
    monkeypatch.setattr(bind, "DEFAULT_PORT", usual)
    with socket.create_server(("127.0.0.1", usual)):
        monkeypatch.setattr("os.geteuid", lambda: 4242)
        shown = told(capsys, usual + 1)
    assert "a program of another user (uid" in shown
