"""What docs/guide/profiles.md shows is what works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dari.bridge.config.importers.sources import PROGRAMS
from dari.bridge.config.loader import SERVER_FIELDS
from tests.support.bridge_config import contents

GUIDE = (Path(__file__).parents[3] / "docs/guide/profiles.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.S)


@pytest.mark.parametrize("text", blocks("json"))
def test_every_example_is_read_without_a_complaint(text: str) -> None:
    found = contents(text)
    assert found.profiles
    assert (found.broken, found.problems) == ((), ())


def test_the_python_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    monkeypatch.delenv("CREWX_MCP_JSON", raising=False)
    monkeypatch.chdir(tmp_path)
    (program,) = blocks("python")
    exec(compile(program, "profiles.md", "exec"), {})
    assert "StdioSettings('uvx', 1 args, env=[])" in capsys.readouterr().out
    assert (tmp_path / ".config/crewx/mcp.json").exists()


def test_the_example_of_an_error_is_what_comes_out() -> None:
    text = '{\n"servers": [\n{"id": "a", "command": "x"},\n{\n"id": "b",\n"baseUrl": "http://h",\n"timeoutMS": 5\n}]}'
    (broken,) = contents(text).broken
    shown = f"{broken.message}\nhint: {broken.hint}\n".replace("/somewhere", "~/.config/crewx")
    assert shown in blocks("text")


def test_every_program_and_field_of_the_guide_exists() -> None:
    for program in PROGRAMS:
        assert f"| `{program}` |" in GUIDE
    native = SERVER_FIELDS[: SERVER_FIELDS.index("managed")]
    assert [name for name in native if f"`{name}`" not in GUIDE] == []
