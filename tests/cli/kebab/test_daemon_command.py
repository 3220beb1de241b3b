"""`kebab daemon …`: what it says of a wrong word."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest

from dari.cli.kebab.daemon import main
from dari.knowledge.wire.schemas import schema_text


def test_a_wrong_word_is_error_v1_for_a_program(capfd: pytest.CaptureFixture[str]) -> None:
    assert main("kebab", ["restart", "--json"]) == 2
    out, err = capfd.readouterr()
    error = json.loads(err)
    jsonschema_rs.validate(json.loads(schema_text("error.v1")), error)
    assert (out, error["code"], error["hint"]) == ("", "invalid_input", "kebab daemon --help")


def test_a_wrong_word_is_text_for_a_person(capfd: pytest.CaptureFixture[str]) -> None:
    assert main("kebab", ["restart"]) == 2
    assert "error: daemon must be start, stop or status, got 'restart'\nhint: " in capfd.readouterr().err


@pytest.mark.parametrize("word", ["status", "stop"])
def test_a_program_reads_a_wire_object(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    assert main("kebab", [word, "--json"]) == 0
    status = json.loads(capfd.readouterr().out)
    jsonschema_rs.validate(json.loads(schema_text("daemon_status.v1")), status)
    assert (status["running"], status.get("stopped")) == (False, None if word == "status" else False)
