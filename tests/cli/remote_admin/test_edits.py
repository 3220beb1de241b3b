"""`remove`, `enable`, `disable`, `rename`: one server of one file, and everything else as it was."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from dari.bridge.config import writer
from dari.bridge.config.writer import folder_lock
from tests.support.remote_user import Person, put

FILE = """{
  // mine
  "servers": [
    {"id": "time", "command": "uvx", "x-note": "kept"},
    {"id": "files", "command": "npx"},
  ],
  "profiles": {"dev": {"servers": ["time", "files"]}}
}
"""


@pytest.fixture
def mine(person: Person) -> Person:
    put(person.user_file, FILE)
    return person


async def test_remove_names_the_file_and_leaves_the_rest(mine: Person) -> None:
    answer = await mine.run("remove", "time")
    assert (answer.code, answer.out) == (0, f"removed 'time' from {mine.user_file}\n")
    text = mine.user_file.read_text()
    assert "// mine" in text and '"files"' in text and "time" not in text


@pytest.mark.parametrize(
    "words",
    [("disable", "time"), ("enable", "time"), ("rename", "time", "t"), ("remove", "time"), ("add", "new", "--", "x")],
    ids=lambda words: words[0],
)
async def test_a_write_that_waits_for_another_process_holds_up_nobody_else(
    mine: Person, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_reached = threading.Event()

    def note_and_lock(folder: Path) -> AbstractContextManager[None]:
        is_reached.set()
        return folder_lock(folder)

    monkeypatch.setattr(writer, "folder_lock", note_and_lock)
    with folder_lock(mine.user_file.parent):
        waiting = asyncio.create_task(mine.run(*words))
        assert await asyncio.to_thread(is_reached.wait, 20)
        assert (await mine.run("servers")).code == 0
        assert not waiting.done()
    assert (await waiting).code == 0


async def test_disable_and_enable_write_one_field(mine: Person) -> None:
    answer = await mine.run("disable", "time")
    assert answer.out == f"disabled 'time' in {mine.user_file}\n"
    assert '"disabled": true' in mine.user_file.read_text()
    assert (await mine.run("call-tool", "time/now")).code == 1
    answer = await mine.run("enable", "time")
    assert answer.out == f"enabled 'time' in {mine.user_file}\n"
    assert "disabled" not in mine.user_file.read_text()


async def test_rename_takes_the_sets_along(mine: Person) -> None:
    answer = await mine.run("rename", "time", "clock")
    assert answer.out == f"renamed 'time' to 'clock' in {mine.user_file}\n"
    assert '"servers": ["clock", "files"]' in mine.user_file.read_text()
    taken = await mine.run("rename", "clock", "files")
    assert taken.code == 1 and "has a server 'files' already" in taken.err


@pytest.mark.parametrize(
    "words", [("remove", "tiem"), ("enable", "tiem"), ("disable", "tiem"), ("rename", "tiem", "x")]
)
async def test_a_slip_in_the_name_is_refused_with_a_guess(words: tuple[str, ...], mine: Person) -> None:
    answer = await mine.run(*words)
    assert answer.code == 1
    assert "unknown server 'tiem'" in answer.err and "did you mean 'time'?" in answer.err
    assert mine.user_file.read_text() == FILE


async def test_what_counts_after_a_removal_is_told(mine: Person) -> None:
    await mine.run("add", "time", "--project", "--", "other")
    answer = await mine.run("remove", "time")
    assert answer.out == f"removed 'time' from {mine.project_file}\n"
    assert f"'time' of {mine.user_file}:4 counts now" in answer.err


async def test_a_server_of_another_program_is_not_touched(person: Person) -> None:
    put(person.home / ".cursor/mcp.json", {"mcpServers": {"theirs": {"command": "x"}}})
    put(person.user_file, {"imports": ["cursor"]})
    answer = await person.run("remove", "theirs")
    assert answer.code == 1 and "is in a file of cursor" in answer.err


async def test_a_file_that_is_not_trusted_stays_so_when_a_server_is_enabled(person: Person) -> None:
    person.write({"id": "theirs", "command": "x", "disabled": True}, path=person.project_file)
    answer = await person.run("enable", "theirs")
    assert answer.code == 0
    assert f"nothing in it runs: dari remote trust {person.project_file}" in answer.err


@pytest.mark.parametrize("word", ["disable", "remove", "distrust"])
async def test_what_may_not_run_any_more_ends_at_once_and_others_go_on(word: str, person: Person) -> None:
    person.write(person.lab("mine"))
    person.write(person.lab("theirs"), path=person.project_file)
    await person.run("trust", "--yes")
    async with person.bridge() as bridge:
        mine, theirs = (bridge.view(person.around()).upstream(id) for id in ("mine", "theirs"))
        await mine.start()
        await theirs.start()
        words = ("distrust",) if word == "distrust" else (word, "theirs")
        assert (await person.run(*words, bridge=bridge)).code == 0
        assert [child.pid for child in bridge.children.running] == [mine.status().pid]
