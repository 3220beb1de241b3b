"""Kill -9 at random moments of a real ingest and of a reset: the next writer finds a store and an index in step."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dari.knowledge.config import Settings
from dari.knowledge.ingest.pipeline import ingest
from dari.knowledge.ingest.reset import reset
from dari.knowledge.ingest.writer import open_writer
from tests.support import knowledge_folder
from tests.support.ingest_victim import Victims
from tests.support.knowledge_folder import check_consistent, make_settings, note, opened, store_environ, write_old

KILLS, GROUPS, POSTGRES_KILLS = 60, 4, 12
SEED = int(os.environ.get("KEBAB_KILL_SEED", "20261117"))
FILES = 40


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    with Victims() as started:
        yield started


def environ_of(folder: Path) -> dict[str, str]:
    return {
        "DARI_HOME": str(folder / "home"),
        "KEBAB_WORKSPACE_ROOT": str(folder / "notes"),
        "KEBAB_INGEST_PARSE_PROCESSES": "1",
        "KEBAB_INGEST_BATCH_FILES": "3",
        **store_environ(folder / "home"),
    }


def disturb(notes: Path, rng: random.Random, turn: int) -> None:
    """Some files change, some move, some go, some come: there is something to do for the next ingest."""
    paths = sorted(notes.rglob("*.md"))
    rng.shuffle(paths)
    for path in paths[:10]:
        write_old(path, note(f"{path.name}-{turn}", rng.randint(1, 4)), age=-turn)
    for path in paths[10:16]:
        path.rename(notes / f"moved-{turn}-{path.name[-24:]}")
    for path in paths[16:19]:
        path.unlink()
    for number in range(FILES - len(paths) + 3):
        write_old(notes / f"sub{number % 3}" / f"new-{turn}-{number}.md", note(f"new-{turn}-{number}"))


def facts(settings: Settings) -> list[tuple[object, ...]]:
    with closing(opened(settings)) as store:
        return [
            (record.path, record.doc_id, [chunk.chunk_id for chunk in store.chunks_of(record.doc_no)])
            for record in store.list_documents(limit=1000)
        ]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("group", range(GROUPS))
def test_an_ingest_that_is_killed_anywhere_leaves_a_store_that_mends_itself(
    tmp_path: Path, victims: Victims, group: int
) -> None:
    kill_ingests(tmp_path, victims, SEED + group, KILLS // GROUPS)


@pytest.mark.timeout(240)
@pytest.mark.xdist_group("postgres")
def test_an_ingest_into_postgresql_that_is_killed_lets_go_of_its_lock_and_mends_itself(
    tmp_path: Path, victims: Victims, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowledge_folder, "SERVER", [postgres_url])
    kill_ingests(tmp_path, victims, SEED, POSTGRES_KILLS)


def kill_ingests(tmp_path: Path, victims: Victims, seed: int, wanted: int) -> None:
    rng = random.Random(seed)
    environ = environ_of(tmp_path)
    settings = make_settings(tmp_path, environ)
    for number in range(FILES):
        write_old(tmp_path / f"notes/{number:02}.md", note(str(number)))
    begin_s = time.monotonic()
    assert victims.wait(victims.start("ingest", environ)) == 0
    longest_s = time.monotonic() - begin_s
    kills = 0
    for turn in range(1, wanted * 3):
        disturb(tmp_path / "notes", rng, turn)
        happened = victims.kill_at_random(victims.start("ingest", environ), rng, longest_s)
        print(f"seed {seed} turn {turn}: {happened}")
        kills += happened.startswith("killed")
        with open_writer(settings, wait_s=10) as writer:
            print("  ", "; ".join(writer.notes) or "nothing to mend")
        check_consistent(settings)
        if kills == wanted:
            break
    assert kills == wanted
    assert ingest(settings).errors == 0
    check_consistent(settings)
    fresh = make_settings(tmp_path, environ | {"DARI_HOME": str(tmp_path / "fresh")})
    ingest(fresh)
    assert facts(settings) == facts(fresh)  # as if nothing had happened


@pytest.mark.timeout(120)
def test_a_reset_that_is_killed_is_done_or_not_begun(tmp_path: Path, victims: Victims) -> None:
    environ = environ_of(tmp_path)
    settings = make_settings(tmp_path, environ)
    for number in range(10):
        write_old(tmp_path / f"notes/{number:02}.md", note(str(number)))
    ingest(settings)
    shutil.copytree(settings.data.data, tmp_path / "saved")
    rng = random.Random(11)
    outcomes: set[str] = set()
    for turn in range(24):
        scope = ("data-only", "all", "vector-only")[turn % 3]
        happened = victims.kill_at_random(victims.start("reset", environ, scope), rng, 0.02)
        with open_writer(settings, wait_s=10) as writer:
            documents = writer.store.stats().doc_count
            outcomes.add(f"{happened.split()[0]} {documents} {any('reset' in one for one in writer.notes)}")
        assert documents in ((10,) if scope == "vector-only" else (0, 10)), (scope, happened)
        assert check_consistent(settings) == documents
        assert not [path.name for path in settings.data.data.iterdir() if "reset" in path.name]
        shutil.rmtree(settings.data.data)
        shutil.copytree(tmp_path / "saved", settings.data.data)
    print(sorted(outcomes))
    assert any(one.startswith("killed") for one in outcomes)


@pytest.mark.timeout(120)
def test_a_reset_of_orphans_that_is_killed_leaves_a_store_in_step_and_the_next_one_ends_it(
    tmp_path: Path, victims: Victims
) -> None:
    environ = environ_of(tmp_path)
    settings = make_settings(tmp_path, environ)
    for number in range(600):
        write_old(tmp_path / f"notes/{number:03}.md", note(str(number), 1))
    ingest(settings)
    shutil.copytree(settings.data.data, tmp_path / "saved")
    for number in range(590):
        (tmp_path / f"notes/{number:03}.md").unlink()
    rng = random.Random(12)
    kills = 0
    for _ in range(8):
        happened = victims.kill_at_random(victims.start("reset", environ, "orphans-only"), rng, 0.2)
        kills += happened.startswith("killed")
        with open_writer(settings, wait_s=10) as writer:
            documents = writer.store.stats().doc_count
        assert 10 <= documents <= 600
        assert check_consistent(settings) == documents
        assert reset(settings, "orphans-only").documents_removed == documents - 10
        assert check_consistent(settings) == 10
        shutil.rmtree(settings.data.data)
        shutil.copytree(tmp_path / "saved", settings.data.data)
    assert kills > 0
