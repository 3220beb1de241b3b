"""The command that adds an extra is the one for how this Dari was installed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from dari.installation import Installation, found

RECEIPT = '[tool]\nrequirements = [{ name = "dari", extras = ["oauth"] }, { name = "other" }]\n'
EDITABLE = '{"url": "file:///srv/my%20code/dari", "dir_info": {"editable": true}}'
GIT = '{"url": "https://example.com/dari.git", "vcs_info": {"vcs": "git", "requested_revision": "main"}}'


def test_a_uv_tool_is_extended_by_uv_and_keeps_its_extras(tmp_path: Path) -> None:
    (tmp_path / "uv-receipt.toml").write_text(RECEIPT)
    here = found(tmp_path, "")
    assert here.adding("terminal") == "uv tool install 'dari[oauth,terminal]'"
    assert here.adding("oauth") == "uv tool install 'dari[oauth]'"
    assert here.removing() == "uv tool uninstall dari"


def test_a_pipx_installation_is_extended_by_pipx_and_keeps_its_extras(tmp_path: Path) -> None:
    metadata = {"main_package": {"package": "dari", "package_or_url": "dari[bridge, oauth]==0.1"}}
    (tmp_path / "pipx_metadata.json").write_text(json.dumps(metadata))
    here = found(tmp_path, "")
    assert here.adding("terminal") == "pipx install --force 'dari[bridge,oauth,terminal]'"
    assert here.removing() == "pipx uninstall dari"


@pytest.mark.parametrize("place", ["uv/archive-v0/abc", "uv/environments-v2/dari-1", "Caches/uv/archive-v1/x"])
def test_uvx_keeps_nothing_so_the_extra_is_named_at_each_start(tmp_path: Path, place: str) -> None:
    here = found(tmp_path / place, "")
    assert here.adding("terminal") == "uvx --from 'dari[terminal]' dari …"
    assert here.removing() == "uv cache clean dari"


def test_a_cache_that_was_moved_is_uvx_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path))
    assert found(tmp_path / "a" / "b", "").how == "uvx"


def test_a_checkout_is_installed_again_in_place(tmp_path: Path) -> None:
    command = shlex.split(found(tmp_path, EDITABLE).adding("terminal"))
    assert command[-3:] == ["install", "-e", "/srv/my code/dari[terminal]"] or "--python" in command
    assert command[-1] == "/srv/my code/dari[terminal]"


@pytest.mark.parametrize("kind", ["uv tool", "pip"])
def test_what_came_from_a_repository_is_extended_from_there(tmp_path: Path, kind: str) -> None:
    if kind == "uv tool":
        (tmp_path / "uv-receipt.toml").write_text("[tool]\n")
    assert "'dari[terminal] @ git+https://example.com/dari.git@main'" in found(tmp_path, GIT).adding("terminal")


def test_pip_is_the_one_of_this_python_and_uv_where_there_is_none() -> None:
    assert Installation("pip", "/a b/python").adding("oauth") == "'/a b/python' -m pip install 'dari[oauth]'"
    without = Installation("pip", "/a b/python", has_pip=False)
    assert without.adding("oauth") == "uv pip install --python '/a b/python' 'dari[oauth]'"
    assert without.removing() == "uv pip uninstall --python '/a b/python' dari"


@pytest.mark.parametrize(
    "text", ["", "no json", "[]", "{}", '{"url": 1, "dir_info": 2}', '{"url": "x", "vcs_info": []}']
)
def test_a_record_that_cannot_be_read_counts_as_absent(tmp_path: Path, text: str) -> None:
    (tmp_path / "pipx_metadata.json").write_text(text)
    assert found(tmp_path, text).adding("oauth").startswith("pipx install --force ")
    (tmp_path / "pipx_metadata.json").unlink()
    (tmp_path / "uv-receipt.toml").write_text(text)
    assert found(tmp_path, text).adding("oauth").startswith("uv tool install ")
