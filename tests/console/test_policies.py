"""Which files decide what agents may do, and their state."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.service import ConfigService
from dari.bridge.config.trust import TrustStore
from dari.console.backends import ConsoleBackends
from dari.console.tools.policies import PolicyFile, PolicyTools
from dari.settings import ServeSettings


async def files(folder: Path) -> dict[tuple[str, str], PolicyFile]:
    """By part and name of the file."""
    around = ClientEnvironment(folder, folder / "project", {})
    service = ConfigService(around, TrustStore(folder / "trust.json"))
    settings = ServeSettings(token_path=folder / "mcp.token", client_tokens_path=folder / "tokens.json")
    backends = cast(
        ConsoleBackends, SimpleNamespace(settings=settings, view=SimpleNamespace(catalog=lambda: service.load()))
    )
    found = (await PolicyTools(backends).policies()).files
    return {(one.part, Path(one.path).name): one for one in found}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CRUX_CONFIG", "KEBAB_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


async def test_without_files_the_built_in_rules_are_told(home: Path) -> None:
    found = await files(home)
    terminal = found["terminal", "crux.toml"]
    assert terminal.state == "not there"
    assert "sudo" in terminal.facts["asks"] and "mkfs" in terminal.facts["never"]
    assert found["tokens", "tokens.json"].state == "not there"


async def test_a_broken_file_says_where_and_what_to_do(home: Path) -> None:
    path = home / ".config/crux/crux.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[mcp.security]\nmax_panes = 'many'\n")
    broken = (await files(home))["terminal", "crux.toml"]
    assert broken.state == "broken"
    assert "crux.toml:2" in broken.problem and broken.hint


async def test_a_projects_file_is_untrusted_until_a_person_trusts_it(home: Path) -> None:
    path = home / "project/.crewx/mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {"evil": {"command": "sh"}}}')
    found = (await files(home))["servers", "mcp.json"]
    assert (found.state, found.path) == ("untrusted", str(path))
    assert found.hint


async def test_a_token_file_that_others_can_read_is_broken(home: Path) -> None:
    (home / "mcp.token").write_text("x")
    (home / "mcp.token").chmod(0o644)
    found = (await files(home))["tokens", "mcp.token"]
    assert found.state == "broken" and "chmod 600" in found.hint
