"""`import`: the plan first, a person's yes, then one write; all eight programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dari.bridge.config.importers.sources import PROGRAMS
from tests.support.remote_user import Person, put

# Where each program keeps its servers, and how it writes one that runs `run-<program>`.
FILES: dict[str, tuple[str, Any]] = {
    "claude-desktop": (".config/Claude/claude_desktop_config.json", {"mcpServers": {"NAME": {"command": "RUN"}}}),
    "claude-code": (".claude.json", {"mcpServers": {"NAME": {"type": "stdio", "command": "RUN"}}}),
    "cursor": (".cursor/mcp.json", {"mcpServers": {"NAME": {"command": "RUN"}}}),
    "vscode": (".config/Code/User/mcp.json", {"servers": {"NAME": {"type": "stdio", "command": "RUN"}}}),
    "codex": (".codex/config.toml", '[mcp_servers.NAME]\ncommand = "RUN"\n'),
    "gemini": (".gemini/settings.json", {"mcpServers": {"NAME": {"command": "RUN"}}}),
    "windsurf": (".codeium/windsurf/mcp_config.json", {"mcpServers": {"NAME": {"command": "RUN"}}}),
    "opencode": (".config/opencode/opencode.json", {"mcp": {"NAME": {"type": "local", "command": ["RUN"]}}}),
}


def give(person: Person, program: str, name: str = "", run: str = "") -> None:
    path, content = FILES[program]
    text = content if isinstance(content, str) else json.dumps(content)
    put(person.home / path, text.replace("NAME", name or f"of-{program}").replace("RUN", run or f"run-{program}"))


def test_every_program_is_tried() -> None:
    assert set(FILES) == set(PROGRAMS)


async def test_servers_of_all_eight_programs_are_written_after_a_yes(person: Person) -> None:
    for program in FILES:
        give(person, program)
    answer = await person.run("import", answers=("y",))
    assert answer.code == 0, answer.err
    assert answer.asked == (f"write 8 servers to {person.user_file}? [y/N] ",)
    written = {name: entry["command"] for name, entry in person.servers().items()}
    assert written == {f"of-{program}": f"run-{program}" for program in FILES}
    for program in FILES:
        assert f"of-{program}" in answer.out and f"run-{program}" in answer.out


@pytest.mark.parametrize("said", ["", "n", "no", "yess"])
async def test_anything_but_yes_writes_nothing(said: str, person: Person) -> None:
    give(person, "cursor")
    answer = await person.run("import", answers=(said,))
    assert answer.code == 4 and "nothing was written" in answer.err
    assert not person.user_file.exists()


async def test_without_a_terminal_yes_has_to_be_said_beforehand(person: Person) -> None:
    give(person, "cursor")
    refused = await person.run("import")
    assert refused.code == 1 and "--yes" in refused.err and "--dry-run" in refused.err
    assert not person.user_file.exists()
    assert (await person.run("import", "--yes")).code == 0
    assert set(person.servers()) == {"of-cursor"}


async def test_the_plan_tells_new_same_conflict_and_skipped_apart_with_reasons(person: Person) -> None:
    give(person, "cursor", "new-one")
    give(person, "gemini", "again", "mine")
    give(person, "windsurf", "taken", "other")
    put(person.home / ".claude.json", {"mcpServers": {"odd": {"type": "carrier-pigeon"}}})
    person.write({"id": "here", "command": "mine"}, {"id": "taken", "command": "first"})
    answer = await person.run("import", "--dry-run")
    assert answer.code == 0
    words = {line.split()[1]: line.split()[0] for line in answer.out.splitlines()[1:] if not line.startswith(" ")}
    assert words == {"new-one": "new", "again": "same", "taken": "conflict", "odd": "skipped"}
    assert "is the same server as 'here'" in answer.out
    assert "with --take-conflicts it is copied as 'taken-windsurf'" in answer.out
    assert "mcpServers.odd.type: " in answer.out
    assert set(person.servers()) == {"here", "taken"}


async def test_conflicts_are_taken_under_their_free_names_when_told(person: Person) -> None:
    give(person, "windsurf", "taken", "other")
    person.write({"id": "taken", "command": "first"})
    answer = await person.run("import", "windsurf", "--take-conflicts", "--yes")
    assert answer.code == 0 and "wrote taken-windsurf" in answer.out
    assert {name: entry["command"] for name, entry in person.servers().items()} == {
        "taken": "first",
        "taken-windsurf": "other",
    }


async def test_json_is_the_plan_and_what_was_written_without_any_secret(person: Person) -> None:
    put(person.home / ".cursor/mcp.json", {"mcpServers": {"a": {"command": "x", "env": {"TOKEN": "hunter22"}}}})
    planned = await person.run("import", "--dry-run", "--json")
    written = await person.run("import", "--yes", "--json")
    assert planned.json["written"] == [] and written.json["written"] == ["a"]
    (one,) = written.json["candidates"]
    assert (one["id"], one["program"], one["status"], one["address"]) == ("a", "cursor", "new", "x")
    assert "hunter22" not in planned.out + planned.err + written.out + written.err
    assert person.servers()["a"]["env"] == {"TOKEN": "hunter22"}


async def test_secrets_on_their_way_into_a_shared_file_are_told(person: Person) -> None:
    put(person.home / ".cursor/mcp.json", {"mcpServers": {"a": {"command": "x", "env": {"TOKEN": "hunter22"}}}})
    answer = await person.run("import", "--project", "--yes")
    assert answer.code == 0
    assert "env.TOKEN of 'a' would stand in" in answer.err and "everybody who has the project" in answer.err
    assert set(person.servers(person.project_file)) == {"a"}


async def test_a_program_that_is_not_known_is_refused_with_a_guess(person: Person) -> None:
    answer = await person.run("import", "curser")
    assert answer.code == 1 and "did you mean 'cursor'?" in answer.err


async def test_nothing_to_import_is_no_failure(person: Person) -> None:
    answer = await person.run("import")
    assert answer.code == 0 and "no servers were found" in answer.out


async def test_escape_sequences_of_a_foreign_file_do_not_reach_the_screen(person: Person) -> None:
    give(person, "cursor", "evil", "run\\u001b[2J")
    answer = await person.run("import", "--dry-run")
    assert "\x1b" not in answer.out + answer.err and "\\x1b[2J" in answer.out
