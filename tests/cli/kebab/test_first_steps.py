"""What a newcomer types, rightly and wrongly: each slip has an error that says what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dari.cli.kebab import fast_client
from tests.support.kebab_command import kebab_home

KEBAB = str(Path(sys.executable).with_name("kebab"))


async def test_init_with_a_folder_fills_in_what_init_without_one_wrote(tmp_path: Path) -> None:
    with kebab_home(tmp_path, is_indexed=False) as kebab:
        kebab.notes.mkdir()
        assert (await kebab("init")).code == 0
        named = await kebab("init", str(kebab.notes), "--json")
        again = await kebab("init", str(kebab.notes), "--json")
    assert (named.code, named.json["root"], named.json["schema_version"]) == (0, str(kebab.notes), "init_report.v1")
    assert not list(tmp_path.rglob("config.toml.*")), "an untouched file needs no backup"
    assert (again.code, again.error["code"]) == (2, "conflict")
    assert "[workspace]" in again.error["hint"]


async def test_an_ingest_without_a_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    with kebab_home(tmp_path, is_indexed=False) as kebab:
        ingested = await kebab("ingest", "--json")
        searched = await kebab("search", "x", "--json")
    assert (ingested.code, ingested.error["code"]) == (2, "invalid_input")
    assert "kebab init" in ingested.error["hint"]
    assert searched.error["code"] == "not_indexed"
    assert not list(tmp_path.rglob("kebab.sqlite"))


async def test_an_empty_store_is_not_indexed_rather_than_without_a_hit(tmp_path: Path) -> None:
    with kebab_home(tmp_path, is_indexed=False) as kebab:
        kebab.notes.mkdir()
        await kebab("init", str(kebab.notes))
        assert (await kebab("ingest")).code == 0
        found = await kebab("search", "x", "--json")
    assert (found.code, found.error["code"], found.error["hint"]) == (2, "not_indexed", "kebab ingest")


async def test_everything_that_an_ingest_skips_is_named(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        (kebab.notes / "loop").symlink_to("..")
        Path(os.fsdecode(os.fsencode(kebab.notes / "bad") + b"\xff.md")).write_text("# Bad name\n")
        (kebab.notes / ".env").write_text("KEY=1")
        done = await kebab("ingest")
    for named in ("1 keys and secrets", "symbolic links such as loop", "names that are not UTF-8 such as bad"):
        assert named in done.err


async def test_an_excluded_file_is_named_once_and_not_as_ignored(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        kebab.config.write_text(kebab.config.read_text().replace("[workspace]", '[workspace]\nexclude = ["deploy.md"]'))
        shown = await kebab("ingest")
        report = await kebab("ingest", "--json", "--quiet")
    assert "1 by exclude or include" in shown.err
    assert ".kebabignore" not in shown.err
    assert (report.json["skipped"], report.json["skipped_kebabignore"]) == (1, 0)


async def test_a_file_whose_name_is_not_utf8_is_refused_and_named(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        path = os.fsdecode(os.fsencode(tmp_path / "bad") + b"\xff.md")
        Path(path).write_text("# Bad name\n")
        done = await kebab("ingest-file", path, "--json")
    assert (done.code, done.error["code"]) == (2, "invalid_input")
    assert "UTF-8" in done.error["message"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("search", "--media", "film", "x"), "--media"),
        (("ask", "--temperature", "9", "x"), "must be 0 to 2, got '9'"),
        (("ask", "--temperature", "warm", "x"), "must be 0 to 2, got 'warm'"),
        (("ask", "--session", "x" * 300, "When are backups made?"), "session_id must have at most 200"),
        (("--config", "/etc", "search", "x"), "/etc: it is a directory"),
        (("--colour", "search", "x"), "unknown option '--colour'"),
        (("ask", "--show-citations", "--hide-citations", "x"), "not allowed with"),
    ],
)
async def test_a_wrong_value_is_named(tmp_path: Path, words: tuple[str, ...], named: str) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab(*words)
    assert done.code == 2
    assert named in done.err
    assert "bug" not in done.err


async def test_a_wrong_variable_is_named_and_not_the_file(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        kebab.environ |= {"KEBAB_SEARCH_DEFAULT_K": "many", "KEBAB_SEARCH_SNIPPET_CHARS": "100"}
        done = await kebab("search", "x", "--json")
        kebab.config.write_text("config_version = 1\n[search]\nrrf_k = 'x'\n")
        of_file = await kebab("search", "x", "--json")
    assert done.error["code"] == "config_invalid"
    assert done.error["message"].startswith("KEBAB_SEARCH_DEFAULT_K: search.default_k")
    assert of_file.error["message"].startswith(f"{kebab.config}: search.rrf_k")


async def test_facts_of_a_document_are_yes_or_no(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        document = await kebab("inspect", "doc", "backups.md")
        stats = await kebab("inspect", "ocr-stats")
    assert "stale            no" in document.out
    assert f"available  {'yes' if shutil.which('tesseract') else 'no'}" in stats.out


@pytest.mark.parametrize("words", [("--debug", "search", "backups"), ("search", "backups", "--debug")])
def test_debug_writes_log_lines_to_stderr(tmp_path: Path, words: tuple[str, ...]) -> None:
    with kebab_home(tmp_path) as kebab:
        environ = {**os.environ, **kebab.environ, "KEBAB_CONFIG": str(kebab.config)}
        done = subprocess.run([KEBAB, *words], env=environ, capture_output=True, text=True)
    assert done.returncode == 0
    assert "DEBUG kebab event=open" in done.stderr
    assert "backups.md" in done.stdout


async def test_a_traceback_is_for_bugs_and_not_for_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with kebab_home(tmp_path) as kebab:
        error = await kebab("fetch", "chunk", "nope", "--verbose")
        missing = await kebab("--config", "gone.toml", "search", "x", "--verbose")

        def fail(*_: object, **__: object) -> None:
            raise ValueError("boom")

        monkeypatch.setattr("dari.knowledge.service.KnowledgeService.search", fail)
        bug = await kebab("search", "x", "--verbose")
        unasked = await kebab("search", "x")
    assert "Traceback" not in error.err + missing.err + unasked.err
    assert "Traceback" in bug.err
    assert "--verbose" in unasked.err


@pytest.mark.parametrize(
    "words",
    [
        ("--json", "daemon", "status"),
        ("daemon", "status", "--json"),
        ("--config", "daemon", "daemon", "status", "--json"),
    ],
)
def test_options_may_stand_before_daemon(
    tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    code = fast_client.main(list(words))
    assert code == 0
    status = json.loads(capfd.readouterr().out)
    assert status == {"running": False, "pid": None, "schema_version": "daemon_status.v1"}
