from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import Denied, InvalidInput, NotFound
from dari.terminal.policy.config import config_path, load_security, parse_security

DESIGN = b"""
# crux.toml of design 002 section 7.3
[mcp.security]
allowed_commands = ["ls", "cat", "git *", "cargo *", "npm *"]
dangerous_patterns = ["rm", "sudo", "chmod", "kill"]
allowed_directories = []
command_timeout_ms = 30000
max_panes = 20
"""


def _write(path: Path, data: bytes, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_the_file_of_the_design_is_read_as_written(tmp_path: Path) -> None:
    path = _write(tmp_path / ".config/crux/crux.toml", DESIGN)
    security = load_security({}, tmp_path)
    assert security.allowed_commands == ("ls", "cat", "git *", "cargo *", "npm *")
    assert security.dangerous_patterns == ("rm", "sudo", "chmod", "kill")
    assert (security.command_timeout_ms, security.max_panes) == (30_000, 20)
    assert security.source == str(path)


def test_without_a_file_the_numbers_of_the_design_hold(tmp_path: Path) -> None:
    security = load_security({}, tmp_path)
    assert (security.command_timeout_ms, security.max_panes, security.source) == (30_000, 20, "")
    assert security.dangerous_patterns == ("rm", "sudo", "chmod", "kill")


def test_crux_config_names_the_file_and_must_exist(tmp_path: Path) -> None:
    path = _write(tmp_path / "mine.toml", b"[mcp.security]\nmax_panes = 3\n")
    assert load_security({"CRUX_CONFIG": str(path)}, tmp_path).max_panes == 3
    with pytest.raises(NotFound, match=r"missing\.toml"):
        load_security({"CRUX_CONFIG": str(tmp_path / "missing.toml")}, tmp_path)
    assert config_path({"CRUX_CONFIG": "~/x.toml"}, tmp_path) == tmp_path / "x.toml"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[mcp.security]\n\nmax_panes = 'x'\n", ":3: mcp.security.max_panes"),
        ("[other]\na=1\n[mcp.security]\nmax_panes = 0\n", ":4: mcp.security.max_panes"),
        ("[mcp.security]\nallowed_commands = ['ls', 3]\n", ":2: mcp.security.allowed_commands"),
        ("[mcp.security]\nallowed_comands = []\n", ":2: mcp.security.allowed_comands"),
        ("[mcp.security]\ndangerous_patterns = ['']\n", ":2: mcp.security.dangerous_patterns"),
        ("[mcp.security]\nallowed_directories = ['src']\n", ":2: mcp.security.allowed_directories"),
        ("[mcp]\nsecurity.command_timeout_ms = -1\n", ":2: mcp.security.command_timeout_ms"),
        ("[mcp.security]\nmax_panes = \n", ":2: "),
        ("[mcp.security]\nx = 'é", ":2: "),
    ],
)
def test_an_error_names_file_line_and_field(text: str, where: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_security(text.encode(), "crux.toml", tmp_path)
    assert caught.value.message.startswith("crux.toml" + where)
    assert caught.value.hint


def test_a_mistyped_field_is_told_its_right_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_security(b"[mcp.security]\nmax_pane = 3\n", "crux.toml", tmp_path)
    assert "max_panes" in caught.value.hint


def test_a_file_that_others_may_write_decides_nothing(tmp_path: Path) -> None:
    _write(tmp_path / ".config/crux/crux.toml", DESIGN, 0o666)
    with pytest.raises(Denied):
        load_security({}, tmp_path)


def test_directories_are_kept_as_real_paths(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    text = b"[mcp.security]\nallowed_directories = ['~/link']\n"
    assert parse_security(text, "crux.toml", tmp_path).allowed_directories == (str((tmp_path / "real").resolve()),)


def test_other_tables_of_the_file_are_left_to_others(tmp_path: Path) -> None:
    assert parse_security(b"[font]\nsize = 3\n", "crux.toml", tmp_path).max_panes == 20
