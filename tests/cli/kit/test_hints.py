from __future__ import annotations

import re
from pathlib import Path

import pytest

from dari.cli.kit.hints import PROGRAM, closest, make_rewriter, name_program, suggest

SOURCES = Path(__file__).parents[3] / "src/dari"


@pytest.mark.parametrize("program", ["crewx mcp remote", "crewx mcp"])
def test_a_hint_names_the_program_that_was_called(program: str) -> None:
    token = PROGRAM.set(program)
    try:
        assert name_program("see: dari remote servers, then dari remote trust") == (
            "see: crewx mcp remote servers, then crewx mcp remote trust"
        )
        assert name_program("a remote dari; dari remotely") == "a remote dari; dari remotely"
    finally:
        PROGRAM.reset(token)


def test_a_hint_names_commands_instead_of_tools() -> None:
    rewrite = make_rewriter({"crab_rules_list": "dari proxy rules"}, {"replace=true": "--replace"})
    assert rewrite("see crab_rules_list, or replace=true") == "see dari proxy rules, or --replace"
    assert rewrite("crab_unknown stays") == "crab_unknown stays"


def test_an_unknown_command_gets_the_one_that_was_meant() -> None:
    assert closest("lst", ("list", "exec")) == "list"
    assert suggest("lst", ("list", "exec"), "crux") == "did you mean 'crux list'?"
    assert suggest("qqqq", ("list", "exec"), "crux") == "see: crux --help"


def test_the_sources_spell_the_program_as_it_is_rewritten() -> None:
    odd = re.compile(r"\b(?:crewx remote|dari mcp remote|crewx-mcp remote|dari-remote)\b")
    texts = [path.read_text() for path in (*SOURCES.glob("bridge/**/*.py"), *SOURCES.glob("cli/remote/*.py"))]
    assert [found[0] for text in texts for found in odd.finditer(text)] == []
