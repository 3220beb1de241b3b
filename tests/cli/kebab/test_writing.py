"""The commands that write: init, ingest and its kinds, reset, config migrate; and asking what they wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from dari.knowledge.store.lock import writer_lock
from dari.knowledge.wire.schemas import schema_text
from tests.support.kebab_command import kebab_home
from tests.support.knowledge_base import write_notes


def check(value: Any, name: str) -> None:
    jsonschema_rs.validate(json.loads(schema_text(name)), value)


async def test_from_nothing_to_an_answer_in_four_commands(tmp_path: Path) -> None:
    with kebab_home(tmp_path, is_indexed=False) as kebab:
        write_notes(kebab.notes)
        made = await kebab("init", "notes", "--json")
        ingested = await kebab("ingest", "--json")
        found = await kebab("search", "비밀번호는 며칠마다", "--json")
        answer = await kebab("ask", "When are backups made?", "--json")
        refused = await kebab("ask", "Which wine goes with pheasant?")
    assert Path(made.json["config"]).stat().st_mode & 0o777 == 0o600
    check(ingested.json, "ingest_report.v1")
    assert (ingested.code, ingested.json["new"]) == (0, 3)
    assert found.json["hits"][0]["doc_path"] == "korean/보안.md"
    check(answer.json, "answer.v1")
    assert (answer.code, answer.json["grounded"]) == (0, True)
    assert refused.code == 1


async def test_progress_for_a_program_ends_once(tmp_path: Path) -> None:
    with kebab_home(tmp_path, is_indexed=False) as kebab:
        write_notes(kebab.notes)
        await kebab("init", "notes")
        done = await kebab("ingest", "--json", "--summary-only")
        quiet = await kebab("ingest", "--json", "--quiet")
    events = [json.loads(line) for line in done.err.splitlines()]
    for event in events:
        check(event, "ingest_progress.v1")
    assert [event["kind"] for event in events if event["kind"] in ("completed", "aborted")] == ["completed"]
    assert events[-1]["kind"] == "completed"
    assert "items" not in done.json
    assert quiet.err == ""


async def test_a_second_ingest_finds_nothing_new(tmp_path: Path) -> None:
    with kebab_home(tmp_path, is_indexed=False) as kebab:
        write_notes(kebab.notes)
        await kebab("init", "notes")
        await kebab("ingest")
        again = await kebab("ingest", "--json", "--quiet")
        forced = await kebab("ingest", "--json", "--quiet", "--force-reingest")
        (kebab.notes / "deploy.md").unlink()
        gone = await kebab("ingest", "--json", "--quiet")
    assert (again.json["unchanged"], again.json["new"]) == (3, 0)
    assert forced.json["updated"] == 3
    assert gone.json["removed"] == 1


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("notes/broken.pdf", b"%PDF-1.4 cut", "malformed"),
        ("elsewhere/broken.pdf", b"%PDF-1.4 cut", "malformed"),
        ("notes/.env", b"KEY=1", "keys"),
        ("elsewhere/.env", b"KEY=1", "keys"),
        ("notes/film.mp4", b"film", "of this kind"),
        ("elsewhere/noise.md", bytes(range(256)) * 20, "binary"),
    ],
)
async def test_a_single_file_that_is_not_indexed_is_an_error(
    tmp_path: Path, name: str, data: bytes, reason: str
) -> None:
    with kebab_home(tmp_path, is_indexed=False) as kebab:
        write_notes(kebab.notes)
        await kebab("init", "notes")
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
        for_people = await kebab("ingest-file", name)
        for_programs = await kebab("ingest-file", name, "--json", "--quiet")
    assert for_people.code == for_programs.code == 2
    assert f"{name} was not indexed" in for_people.err
    assert reason in for_people.err
    assert "hint: " in for_people.err
    check(for_programs.json, "ingest_report.v1")
    error = json.loads(for_programs.err)
    check(error, "error.v1")
    assert error["code"] == "ingest_asset_error"


async def test_files_without_an_extension_are_called_so(tmp_path: Path) -> None:
    with kebab_home(tmp_path, is_indexed=False) as kebab:
        write_notes(kebab.notes)
        (kebab.notes / "core").write_text("x")
        await kebab("init", "notes")
        done = await kebab("ingest")
    assert "1 without an extension" in done.err


async def test_one_file_and_stdin_are_indexed(tmp_path: Path) -> None:
    with kebab_home(tmp_path, is_indexed=False) as kebab:
        write_notes(kebab.notes)
        await kebab("init", "notes")
        (tmp_path / "other.md").write_text("# Other\n\nThe okapi lives in the forest.\n")
        single = await kebab("ingest-file", "other.md", "--json", "--quiet")
        text = await kebab(
            "ingest-stdin", "--title", "Meeting", "--json", "--quiet", stdin="# Meeting\n\nQuokka plan.\n"
        )
        okapi, quokka = await kebab("search", "okapi"), await kebab("search", "quokka", "--json")
        missing = await kebab("ingest-file", "nope.md", "--json")
        empty = await kebab("ingest-stdin", "--title", "x", "--json")
    assert (single.json["new"], text.json["new"]) == (1, 1)
    assert "_external/" in okapi.out
    assert quokka.json["hits"][0]["doc_path"].startswith("_external/")
    assert (missing.code, missing.error["code"]) == (2, "invalid_input")
    assert (empty.code, empty.error["code"]) == (2, "invalid_input")


async def test_a_second_writer_is_refused_with_who_writes(tmp_path: Path) -> None:
    with kebab_home(tmp_path, is_indexed=False) as kebab:
        write_notes(kebab.notes)
        await kebab("init", "notes")
        await kebab("ingest")
        data = tmp_path / "dari/kebab/data"
        with writer_lock(data / "writer.lock"):
            done = await kebab("ingest", "--json")
            found = await kebab("search", "backups")
    assert (done.code, done.error["code"]) == (2, "store_locked")
    assert done.error["details"]["pid"]
    assert found.code == 0


@pytest.mark.parametrize(
    "words",
    [("ingest",), ("ingest-stdin", "--title", "x"), ("reset", "--all", "--yes"), ("init", "--force"), ("watch",)],
)
async def test_readonly_refuses_whatever_writes(tmp_path: Path, words: tuple[str, ...]) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab("--readonly", *words, "--json", stdin="x")
    assert (done.code, done.error["code"]) == (2, "readonly_mode")


@pytest.mark.parametrize("words", [("init", "--force"), ("config", "migrate"), ("skill", "--install")])
async def test_the_variable_refuses_what_the_option_refuses(tmp_path: Path, words: tuple[str, ...]) -> None:
    with kebab_home(tmp_path) as kebab:
        kebab.environ["KEBAB_READONLY"] = "1"
        refused = await kebab(*words, "--json")
        kebab.environ["KEBAB_READONLY"] = "off"
        allowed = await kebab(*words, "--json")
    assert (refused.code, refused.error["code"]) == (2, "readonly_mode")
    assert allowed.code == 0


async def test_a_relative_configuration_of_the_environment_counts_from_the_caller_s_folder(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        (tmp_path / "elsewhere.toml").write_text(kebab.config.read_text())
        kebab.config.unlink()
        kebab.environ["KEBAB_CONFIG"] = "elsewhere.toml"
        found = await kebab("search", "backups")
        named = await kebab("config", "path")
    assert found.code == 0, found.err
    assert named.out.strip() == str(tmp_path / "elsewhere.toml")


async def test_init_does_not_replace_a_configuration_unasked(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        refused = await kebab("init", "notes", "--json")
        forced = await kebab("init", "notes", "--force")
        nowhere = await kebab("init", "gone", "--force", "--json")
    assert refused.error["code"] == "conflict"
    assert forced.code == 0
    assert nowhere.error["code"] == "invalid_input"


async def test_a_reset_asks_first_and_a_search_says_what_to_do_after_it(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        assert (await kebab("search", "backups")).code == 0
        unasked = await kebab("reset", "--data-only", "--json")
        done = await kebab("reset", "--data-only", "--yes", "--json")
        after = await kebab("search", "backups", "--json")
        again = await kebab("ingest", "--json", "--quiet")
        found = await kebab("search", "backups")
    assert unasked.error["code"] == "invalid_input"
    check(done.json, "reset_report.v1")
    assert done.json["documents_removed"] == 3
    assert after.error["code"] == "not_indexed"
    assert again.json["new"] == 3
    assert found.code == 0
    assert (kebab.notes / "backups.md").exists()


async def test_an_old_configuration_is_migrated_and_kept(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        old = kebab.config.read_text().replace("config_version = 1\n", "# mine\n")
        kebab.config.write_text(old)
        before = await kebab("search", "backups", "--json")
        tried = await kebab("config", "migrate", "--dry-run", "--json")
        assert kebab.config.read_text() == old
        done = await kebab("config", "migrate", "--json")
        again = await kebab("config", "migrate", "--json")
        found = await kebab("search", "backups")
    assert before.error["code"] == "config_invalid"
    check(tried.json, "config_migration.v1")
    assert (tried.json["written"], done.json["written"], again.json["written"]) == (False, True, False)
    assert Path(done.json["backup"]).read_text() == old
    assert found.code == 0


async def test_a_conversation_goes_on_across_commands(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        await kebab("ask", "--session", "talk", "When are backups made?")
        second = await kebab("ask", "--session", "talk", "How long are they kept?", "--json")
    assert second.json["session_id"] == "talk"
    assert "35" in second.json["answer"]


async def test_a_streamed_answer_has_its_events_on_stderr(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab("ask", "--stream", "--json", "When are backups made?")
    events = [json.loads(line) for line in done.err.splitlines()]
    for event in events:
        check(event, "answer_event.v1")
    assert [event["kind"] for event in events] == ["retrieval_done", "final"]
    assert events[-1]["answer"] == done.json


async def test_the_language_of_a_document_is_found_and_filters(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        (kebab.notes / "sicherung.md").write_text(
            "# Sicherung\n\nDie Sicherung läuft jede Nacht auf dem Backup-Server. Wenn er nicht antwortet, wird eine "
            "Meldung an den Dienst geschickt.\n"
        )
        assert (await kebab("ingest")).code == 0
        german = await kebab("search", "backup", "--lang", "de", "--mode", "lexical", "--json")
        schema = await kebab("schema", "--json")
    assert [hit["doc_path"] for hit in german.json["hits"]] == ["sicherung.md"]
    assert schema.json["stats"]["lang_breakdown"] == {"de": 1, "en": 2, "ko": 1}
