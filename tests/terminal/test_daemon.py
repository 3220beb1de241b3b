"""Where the daemon lives, and whom its records name."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.terminal.daemon import name_typist
from dari.terminal.paths import CruxPaths
from dari.terminal.take_over import Typist, name_agent

pytestmark = pytest.mark.usefixtures("own_home")


def test_the_socket_is_in_the_home_unless_dari_or_crux_name_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("DARI_HOME")
    assert CruxPaths.of_environment().mcp_socket == Path("/home/me/.crux/mcp.sock")
    monkeypatch.setenv("DARI_HOME", "/data/dari")
    assert CruxPaths.of_environment().mcp_socket == Path("/data/dari/crux/mcp.sock")
    monkeypatch.setenv("CRUX_SOCKET", "/run/me/crux/mcp.sock")
    assert CruxPaths.of_environment().mcp_socket == Path("/run/me/crux/mcp.sock")


def test_files_are_beside_the_socket_and_never_in_a_directory_of_others() -> None:
    assert CruxPaths(Path("/home/me/.crux/mcp.sock")).run_dir == Path("/home/me/.crux")
    assert CruxPaths(Path("/home/me/work.sock")).run_dir == Path("/home/me/work.crux")
    assert CruxPaths(Path("/home/me/mcp.sock")).run_dir == Path("/home/me/mcp.crux")


def test_a_daemon_is_started_with_the_settings_of_who_starts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRUX_SOCKET", "/run/me/crux/mcp.sock")
    monkeypatch.setenv("CRUX_CONFIG", "/etc/mine/crux.toml")
    words = CruxPaths.of_environment().command()
    assert words[-5:] == ["serve", "--socket", "/run/me/crux/mcp.sock", "--config", "/etc/mine/crux.toml"]


def test_an_agent_that_calls_itself_a_person_is_an_agent_in_the_records() -> None:
    assert name_typist(Typist("person", "ann", "console")) == "ann@console"
    assert name_typist(name_agent("mcp:ann@console")) == "mcp:ann@console"
    assert name_typist(name_agent("mcp@work-laptop:ann@console")) == "mcp@work-laptop:ann@console"
