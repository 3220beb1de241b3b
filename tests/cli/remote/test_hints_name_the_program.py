"""A hint names the command as it was typed, wherever the error was made."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dari.cli.kit.hints import PROGRAM, name_program
from tests.cli.remote.rig import Shop, shop

PROGRAMS = ("crewx mcp remote", "dari remote")
SOURCES = Path(__file__).parents[3] / "src/dari"


async def failing(run: Shop, program: str) -> list[str]:
    """Everything that commands say on both streams where something is wrong."""
    said = []
    run.write(run.entry("shop", default=True), run.entry("off", disabled=True))
    project = run.cwd / ".crewx/mcp.json"
    project.parent.mkdir()
    project.write_text(json.dumps({"servers": [run.entry("theirs")]}))
    for words in (
        ("call-tool", "nosuch"),
        ("call-tool", "qqqqqqqqqqqqqq", "--server", "shop"),
        ("call-tool", "off/say", "text=x"),
        ("list-tools", "--server", "theirs"),
        ("list-tools", "--all"),
        ("servers",),
        ("approvals", "approve", "nothing"),
        ("remove", "nobody"),
        ("pins", "nobody"),
        ("test", "--all"),
        ("test", "off", "--json"),
        ("doctor",),
        ("doctor", "--json"),
        ("login", "shop"),
        ("nocommand",),
    ):
        done = await run(*words, program=program)
        said.append(f"$ {' '.join(words)}\n{done.out}{done.err}")
    run.write()
    done = await run("servers", program=program)
    said.append(done.out + done.err)
    return said


@pytest.mark.parametrize("program", PROGRAMS)
async def test_every_hint_names_the_program_that_was_typed(tmp_path: Path, program: str) -> None:
    other = next(one for one in PROGRAMS if one != program)
    async with shop(tmp_path) as run:
        said = await failing(run, program)
        assert [text for text in said if other in text] == []
        assert sum(program in text for text in said) >= 5


async def test_a_hint_about_tools_names_the_program(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "zzzzzzzzzzz", program="crewx mcp remote")
        assert "crewx mcp remote list-tools --server shop" in done.err


def test_every_name_of_ours_in_the_sources_is_one_that_is_rewritten() -> None:
    """A hint that names the commands in another way would reach people as it is."""
    odd = re.compile(r"\b(?:crewx remote|dari mcp remote|crewx-mcp remote|dari-remote)\b")
    texts = [path.read_text() for path in (*SOURCES.glob("bridge/**/*.py"), *SOURCES.glob("cli/remote/*.py"))]
    assert [found[0] for text in texts for found in odd.finditer(text)] == []


@pytest.mark.parametrize("program", ["crewx mcp remote", "crewx mcp"])
def test_advice_is_given_in_the_words_of_who_reads_it(program: str) -> None:
    PROGRAM.set(program)
    assert name_program("see: dari remote servers, then dari remote trust") == (
        "see: crewx mcp remote servers, then crewx mcp remote trust"
    )
    assert name_program("a remote dari; dari remotely") == "a remote dari; dari remotely"
