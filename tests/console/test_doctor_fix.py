"""What the doctor finds and a program can mend."""

from __future__ import annotations

import stat
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dari.console.backends import ConsoleBackends
from dari.console.tools.doctor import DoctorTools
from dari.errors import Conflict, Failed
from dari.settings import ServeSettings
from dari.transport.client_tokens import TokenStore, tokens_path


def tools(path: Path) -> DoctorTools:
    return DoctorTools(cast(ConsoleBackends, SimpleNamespace(settings=ServeSettings(token_path=path))))


async def test_a_token_file_that_others_can_read_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "mcp.token"
    path.write_text("x")
    path.chmod(0o644)
    assert (await tools(path).fix("token")).done == f"chmod 600 {path}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(Conflict):
        await tools(path).fix("token")


async def test_the_file_of_the_clients_tokens_becomes_private_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    store = TokenStore(tokens_path())
    store.create("cursor")
    store.path.chmod(0o640)
    assert (await tools(tmp_path / "mcp.token").fix("token")).done == f"chmod 600 {store.path}"
    assert store.get("cursor")


async def test_a_home_that_others_can_write_to_is_closed_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o777)
    await tools(tmp_path / "mcp.token").fix("home")
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o755


async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "somebody's"
    other.write_text("x")
    other.chmod(0o644)
    (tmp_path / "mcp.token").symlink_to(other)
    with pytest.raises(Failed):
        await tools(tmp_path / "mcp.token").fix("token")
    assert stat.S_IMODE(other.stat().st_mode) == 0o644
