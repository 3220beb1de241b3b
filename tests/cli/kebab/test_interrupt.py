"""Ctrl-C in `kebab ingest`, as a terminal sends it: to the command and to the parsers that it started."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from dari.knowledge.config import Settings
from dari.knowledge.ingest.pipeline import ingest
from dari.knowledge.models.installed import use_folder
from tests.support.knowledge_folder import check_consistent, make_settings, note, write_old
from tests.support.tiny_models import own_folder
from tests.support.waiting import wait_until

KEBAB = str(Path(sys.executable).with_name("kebab"))
FILES = 400
END_S = 60.0


class Interrupted:
    """An ingest that gets Ctrl-C at the given event of its progress."""

    def __init__(self, folder: Path, environ: dict[str, str], kind: str, times: int = 1, signals: int = 1) -> None:
        process = subprocess.Popen(
            [KEBAB, "ingest", "--json", "--no-daemon"],
            env={**os.environ, **environ},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        assert process.stderr is not None
        self.events: list[dict[str, Any]] = []
        with process:
            for line in process.stderr:
                self.events.append(json.loads(line))
                if [event["kind"] for event in self.events].count(kind) == times:
                    break
            for _ in range(signals):
                os.killpg(process.pid, signal.SIGINT)
            out, rest = process.communicate(timeout=END_S)
        self.code, self.errors = process.returncode, rest
        self.events += [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
        self.report: Any = json.loads(out) if out else None


def environ_of(folder: Path, **more: str) -> dict[str, str]:
    return {
        "DARI_HOME": str(folder / "home"),
        "KEBAB_WORKSPACE_ROOT": str(folder / "notes"),
        "KEBAB_INGEST_BATCH_FILES": "4",
        "KEBAB_INGEST_PARSE_PROCESSES": "1",
        **more,
    }


def prepare(folder: Path, environ: dict[str, str], files: int = FILES) -> Settings:
    settings = make_settings(folder, environ)
    for number in range(files):
        write_old(folder / f"notes/{number:03}.md", note(str(number)))
    return settings


def has_documents(settings: Settings) -> bool:
    if not settings.data.sqlite.exists():
        return False
    with closing(sqlite3.connect(f"file:{settings.data.sqlite}?mode=ro", uri=True)) as database:
        try:
            return bool(database.execute("SELECT 1 FROM documents LIMIT 1").fetchone())
        except sqlite3.OperationalError:  # it is being made
            return False


def embedded(settings: Settings) -> int:
    with closing(sqlite3.connect(settings.data.sqlite)) as database:
        return int(database.execute("SELECT count(*) FROM embeddings").fetchone()[0])


def test_ctrl_c_ends_an_ingest_with_a_report_and_the_next_one_goes_on(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    settings = prepare(tmp_path, environ)
    stopped = Interrupted(tmp_path, environ, "asset_finished", times=9)
    assert stopped.code == 2, stopped.errors
    assert stopped.report["aborted"] is True
    done = stopped.report["new"]
    assert 0 < done < FILES
    assert stopped.events[-1]["kind"] == "aborted"
    assert "Traceback" not in stopped.errors
    assert check_consistent(settings) == done
    report = ingest(settings)
    assert (report.new, report.unchanged, report.errors) == (FILES - done, done, 0)
    assert check_consistent(settings) == FILES


def test_ctrl_c_while_vectors_are_made_keeps_those_that_are_made(tmp_path: Path) -> None:
    model = own_folder(tmp_path / "model")
    environ = environ_of(tmp_path)
    settings = prepare(tmp_path, environ)
    settings.data.data.mkdir(parents=True)
    use_folder(settings.data.data, model)
    stopped = Interrupted(tmp_path, environ, "embed_progress")
    assert (stopped.code, stopped.report["aborted"], stopped.report["new"]) == (2, True, FILES)
    assert stopped.events[-1]["kind"] == "aborted"
    made = embedded(settings)
    assert made > 0
    done = subprocess.run(
        [KEBAB, "ingest", "--json", "--no-daemon"], env={**os.environ, **environ}, capture_output=True
    )
    assert (done.returncode, json.loads(done.stdout)["unchanged"]) == (0, FILES)
    assert check_consistent(settings) == FILES
    assert embedded(settings) == 2 * FILES > made


def test_a_second_ctrl_c_does_no_harm(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    settings = prepare(tmp_path, environ)
    stopped = Interrupted(tmp_path, environ, "asset_finished", times=5, signals=3)
    assert stopped.code in (2, -signal.SIGINT), stopped.errors
    assert "Traceback" not in stopped.errors
    report = ingest(settings)
    assert report.new + report.unchanged == FILES
    assert check_consistent(settings) == FILES


def test_a_person_reads_that_it_ended_early_and_what_was_done(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    settings = prepare(tmp_path, environ, 1500)
    process = subprocess.Popen(
        [KEBAB, "ingest", "--no-daemon"],
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    with process:
        wait_until(lambda: has_documents(settings))
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=END_S)
    assert process.returncode == 2
    assert out.startswith("ended early in ") and " new" in out
    assert "kebab ingest" in err, "what to do next"
    assert "Traceback" not in err
