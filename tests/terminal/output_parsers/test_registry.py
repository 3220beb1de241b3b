"""One parser is chosen, named and weighed; a hint decides; nothing that a terminal shows makes it raise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from dari.terminal.output_parsers import parse_structured, parser_names
from tests.terminal.output_parsers.labelled import Sample, all_samples

DESIGN_TABLE = """\
CONTAINER ID   IMAGE          STATUS       PORTS
abc123         nginx:latest   Up 2 hours   80/tcp
def456         postgres:16    Up 5 hours   5432/tcp
"""


def test_the_example_of_the_design_comes_out_in_its_shape() -> None:
    parsed = json.loads(msgspec.json.encode(parse_structured(DESIGN_TABLE, command="docker ps")))
    assert {key: parsed[key] for key in ("type", "headers", "rows")} == {
        "type": "table",
        "headers": ["CONTAINER ID", "IMAGE", "STATUS", "PORTS"],
        "rows": [
            ["abc123", "nginx:latest", "Up 2 hours", "80/tcp"],
            ["def456", "postgres:16", "Up 5 hours", "5432/tcp"],
        ],
    }
    assert parsed["parser"] == "docker_ps" and parsed["confidence"] > 0.9 and parsed["lines"] == [[1, 3]]
    assert not {"items", "value"} & set(parsed)


def test_a_command_makes_its_parser_surer() -> None:
    text = "abc1234 Fix the cart\n9f8e7d6 Add prices\n"
    assert (
        parse_structured(text, command="git log --oneline").confidence
        > parse_structured(text, command="cat notes.txt").confidence
    )


@pytest.mark.parametrize(
    "command", ["sudo docker ps", "LANG=C docker ps -a", "cd /srv && docker ps | head", "timeout 5 docker ps"]
)
def test_a_command_is_known_behind_settings_pipes_and_wrappers(command: str) -> None:
    plain = parse_structured(DESIGN_TABLE + "prompt$ \n").confidence
    assert parse_structured(DESIGN_TABLE + "prompt$ \n", command=command).confidence > plain


def test_the_command_is_taken_from_the_prompt_when_none_is_given() -> None:
    parsed = parse_structured("$ git status -s\n M a.txt\n")
    assert parsed.parser == "git_status" and parsed.lines == [(2, 2)]


def test_text_that_is_nothing_else_is_text_with_low_confidence() -> None:
    parsed = parse_structured("Hello there.\nThis is a sentence, and nothing more.\n")
    assert (parsed.type, parsed.parser) == ("text", "text")
    assert parsed.confidence <= 0.2 and "Hello" in parsed.value


def test_an_empty_output_is_text() -> None:
    assert parse_structured("").type == "text"
    assert parse_structured("\n \n").type == "text"


def test_a_hint_keeps_the_other_parsers_out() -> None:
    parsed = parse_structured('{"Name": "a"}', hint="key_value")
    assert parsed.type == "text" and "found nothing" in parsed.notes[0]
    assert parse_structured(DESIGN_TABLE, hint="table").parser in ("table", "docker_ps")


def test_a_hint_may_name_a_type() -> None:
    text = "a.c:1:2: error: bad\n{\n"
    assert parse_structured(text, hint="diagnostics").type == "diagnostics"
    assert parse_structured("=== 1 passed in 0.01s ===", hint="test_report").parser == "pytest"


def test_a_hint_that_is_unknown_is_told_with_what_is_known() -> None:
    notes = parse_structured("a: b", hint="toml").notes
    assert "toml" in notes[0] and "docker_ps" in notes[0]


def test_every_parser_can_be_forced_on_any_sample() -> None:
    for sample in all_samples()[::7]:
        for name in parser_names():
            parsed = parse_structured(sample.output, hint=name)
            assert parsed.parser in (name, "text"), (sample.name, name)


@pytest.mark.parametrize("sample", all_samples(), ids=lambda sample: sample.name)
def test_a_real_output_gives_data_that_any_wire_carries(sample: Sample) -> None:
    text = sample.output
    parsed = parse_structured(text, command=sample.command)
    assert msgspec.json.decode(msgspec.json.encode(parsed))["type"] == parsed.type
    assert 0 <= parsed.confidence <= 1
    last = len(text.split("\n"))
    assert all(1 <= first <= end <= last for first, end in parsed.lines)
    if parsed.type == "table" and parsed.headers:
        assert all(len(row) == len(parsed.headers) for row in parsed.rows or [])


# Which parser takes which kind of sample; the rest may be read in any way or none.
EXPECTED = {
    "pytest": "pytest",
    "h_pytest": "pytest",
    "cargo_test": "cargo_test",
    "h_cargo_doc": "cargo_test",
    "jest": "javascript_tests",
    "vitest": "javascript_tests",
    "mocha": "javascript_tests",
    "node_test": "javascript_tests",
    "go_test": "go_test",
    "unittest": "unittest",
    "h_rspec": "rspec",
    "l_rspec": "rspec",
    "h_ctest": "ctest",
    "l_ctest": "ctest",
    "h_maven": "surefire",
    "cargo_build_error": "diagnostics",
    "gcc": "diagnostics",
    "gpp": "diagnostics",
    "go_build": "diagnostics",
    "javac": "diagnostics",
    "tsc": "diagnostics",
    "mypy_error": "diagnostics",
    "ruff_error": "diagnostics",
    "flake8": "diagnostics",
    "eslint": "diagnostics",
    "py_value": "python_traceback",
    "h_py_group": "python_traceback",
    "py_syntax": "python_traceback",
    "node_type": "node_traceback",
    "java_npe": "java_traceback",
    "go_panic": "go_traceback",
    "rust_panic": "rust_traceback",
    "git_dirty": "git_status",
    "conflict_status": "git_status",
    "h_git_porcelain": "git_status",
    "ls_ok": "ls",
    "h_docker_ps": "docker_ps",
}


@pytest.mark.parametrize("with_command", [True, False])
def test_real_outputs_are_taken_by_the_parser_made_for_them(with_command: bool) -> None:
    seen: set[str] = set()
    for sample in all_samples():
        wanted = next((name for start, name in EXPECTED.items() if sample.name.startswith(start)), None)
        if wanted is None or sample.name == "h_mypy_ok":
            continue
        seen.add(wanted)
        # Two short lines of a status could be anything when nobody says what printed them.
        if not with_command and sample.name in ("h_git_porcelain", "h_status_short_conflict"):
            continue
        parsed = parse_structured(sample.output, command=sample.command if with_command else "")
        assert parsed.parser == wanted, (sample.name, parsed.parser, parsed.confidence)
    assert seen == set(EXPECTED.values())


def test_parsers_are_loaded_when_they_are_needed(tmp_path: Path) -> None:
    code = (
        "import sys, dari.terminal.output_parsers as r; "
        "early = [m for m in sys.modules if 'reading.suites' in m or m.endswith('reading.tables')]; "
        "assert not early and 'tomllib' not in sys.modules, early; "
        "assert r.parse_structured('{}').type == 'json'"
    )
    env = {**os.environ, "DARI_UNMEASURED": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30, cwd=tmp_path, env=env)
