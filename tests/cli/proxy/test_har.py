"""`dari proxy har`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.proxy.test_rules import Client
from tests.support.origins.origin import Origin
from tests.support.proxy_command import Shell


@pytest.fixture
def recorded(shell: Shell, site: Origin) -> Origin:
    client = Client(shell.started())
    client.get(site.url("/a"))
    client.get(site.url("/b"), "POST")
    return site


def urls(text: str) -> list[str]:
    return [entry["request"]["url"] for entry in json.loads(text)["log"]["entries"]]


def test_traffic_goes_to_a_file_and_comes_back(shell: Shell, recorded: Origin, home: Path) -> None:
    path = home / "out.har"
    assert shell.json("har", "export", str(path))["path"] == str(path)
    assert urls(path.read_text()) == [recorded.url("/a"), recorded.url("/b")]
    assert "s3cr3t" not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    shell("traffic", "clear")
    assert shell.json("har", "import", str(path))["imported"] == 2
    assert len(shell.json("traffic")["flows"]) == 2


def test_an_existing_file_is_replaced_only_when_told(shell: Shell, recorded: Origin, home: Path) -> None:
    path = home / "out.har"
    path.write_text("mine")
    assert "--overwrite" in shell("har", "export", str(path), code=3).err
    assert path.read_text() == "mine"
    shell("har", "export", str(path), "--overwrite", "--reveal", "--method", "POST")
    assert urls(path.read_text()) == [recorded.url("/b")]
    assert "s3cr3t" in path.read_text()


def test_stdout_and_a_name_by_the_clock(
    shell: Shell, recorded: Origin, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(urls(shell("har", "export", "-", "--no-bodies").out)) == 2
    monkeypatch.chdir(home)
    shell("har", "export", "-n", "1")
    (made,) = home.glob("crab-*.har")
    assert urls(made.read_text()) == [recorded.url("/b")]


def test_a_person_may_use_folders_that_are_closed_to_agents(shell: Shell, recorded: Origin, home: Path) -> None:
    hidden = home / ".hidden"
    hidden.mkdir()
    shell("har", "export", str(hidden / "x.har"))
    assert shell.json("har", "import", str(hidden / "x.har"))["imported"] == 2


def test_what_cannot_be_written_or_read_is_told(shell: Shell, recorded: Origin, home: Path) -> None:
    assert "cannot write" in shell("har", "export", "/nowhere/x.har", code=3).err
    assert "does not exist" in shell("har", "import", os.devnull + "x", code=3).err
    (home / "bad.har").write_text("{}")
    assert "error: " in shell("har", "import", str(home / "bad.har"), code=1).err
