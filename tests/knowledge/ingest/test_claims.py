"""Several machines over one PostgreSQL: the database names no folder, and no machine deletes another's documents."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from dari.errors import Failed
from dari.knowledge.config import Settings
from dari.knowledge.errors import IngestFatal, InvalidArgument
from dari.knowledge.ingest.reset import reset
from dari.knowledge.ingest.single import ingest_file
from dari.knowledge.ingest.sources import all_sources
from tests.support.knowledge_folder import check_consistent, found_paths, make_settings, note, opened, run, write_old
from tests.support.postgres_server import fresh_schema

pytestmark = pytest.mark.xdist_group("postgres")
Machine = Callable[..., Settings]


@pytest.fixture
def machine(tmp_path: Path, postgres_url: str) -> Machine:
    """Settings of a machine by name: folders of its own, one database for all."""
    schema = fresh_schema()

    def settings_of(name: str, **variables: str) -> Settings:
        (tmp_path / name).mkdir(exist_ok=True)
        return make_settings(
            tmp_path / name, {"KEBAB_STORE_URL": postgres_url, "KEBAB_STORE_SCHEMA": schema, **variables}
        )

    return settings_of


def paths_in(settings: Settings) -> list[str]:
    with closing(opened(settings)) as store:
        return [one.path for one in store.list_documents()]


def write_kv(settings: Settings, key: str, value: object) -> None:
    """As another user of the database, or its server, can."""
    with closing(opened(settings)) as store, store.write() as transaction:
        transaction.set_kv(key, msgspec.json.encode(value).decode())


def test_a_folder_that_the_database_names_is_never_read(tmp_path: Path, machine: Machine) -> None:
    settings = machine("a")
    write_old(tmp_path / "a/notes/a.md", note("a"))
    write_old(tmp_path / "private/diary.md", note("diary"))
    run(settings)
    write_kv(settings, "sources", {"x": str(tmp_path / "private")})
    assert run(settings).new == 0
    with closing(opened(settings)) as store:
        assert [source.id for source in all_sources(settings, store)] == ["default"]
    assert paths_in(settings) == ["a.md"]


def test_a_named_root_is_remembered_in_a_private_file_of_the_machine_that_named_it(
    tmp_path: Path, machine: Machine
) -> None:
    first, second = machine("a", KEBAB_WORKSPACE_ROOT=""), machine("b", KEBAB_WORKSPACE_ROOT="")
    write_old(tmp_path / "a/data/one.md", note("one"))
    write_old(tmp_path / "b/data/two.md", note("two"))
    assert run(first, tmp_path / "a/data").new == 1
    with pytest.raises(InvalidArgument):  # nothing of the first machine is looked for here
        run(second)
    assert run(second, tmp_path / "b/data").new == 1
    assert (run(first).unchanged, run(second).unchanged) == (1, 1)
    assert paths_in(first) == ["data-2/two.md", "data/one.md"]
    assert first.data.local_sources.stat().st_mode & 0o777 == 0o600


def test_a_root_of_one_store_is_not_read_for_another(tmp_path: Path, machine: Machine) -> None:
    settings = machine("a", KEBAB_WORKSPACE_ROOT="")
    write_old(tmp_path / "a/data/one.md", note("one"))
    run(settings, tmp_path / "a/data")
    with pytest.raises(InvalidArgument):
        run(machine("a", KEBAB_WORKSPACE_ROOT="", KEBAB_STORE_SCHEMA=fresh_schema()))


def test_a_source_of_another_machine_is_refused_until_it_is_taken_over(tmp_path: Path, machine: Machine) -> None:
    first, second = machine("a"), machine("b")
    write_old(tmp_path / "a/notes/a.md", note("a"))
    write_old(tmp_path / "b/notes/b.md", note("b"))
    run(first)
    for refused in (run, lambda settings: ingest_file(settings, tmp_path / "b/notes/b.md")):
        with pytest.raises(IngestFatal, match=r"'default' of .* belongs to another machine") as caught:
            refused(second)
        assert "[[sources]]" in caught.value.hint and "--take-over" in caught.value.hint
    assert paths_in(second) == ["a.md"]
    taken = run(second, take_over=True)
    assert (taken.new, taken.removed) == (1, 1)
    with pytest.raises(IngestFatal):
        run(first)
    assert paths_in(first) == ["b.md"]
    assert check_consistent(second) == 1


def test_sources_with_ids_of_their_own_are_ingested_side_by_side(tmp_path: Path, machine: Machine) -> None:
    first = machine("a")
    config = tmp_path / "b/home/kebab/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'config_version = 1\n[[sources]]\nid = "laptop"\nroot = "{tmp_path}/b/notes"\n')
    second = machine("b")  # has the default source, too, which belongs to the first
    write_old(tmp_path / "a/notes/a.md", note("a"))
    write_old(tmp_path / "b/notes/b.md", note("b"))
    run(first)
    with pytest.raises(IngestFatal):
        run(second)
    assert run(machine("b", KEBAB_WORKSPACE_ROOT="")).unchanged == 1
    assert paths_in(first) == ["a.md", "laptop/b.md"]


def test_a_reset_of_orphans_leaves_the_documents_of_other_machines(tmp_path: Path, machine: Machine) -> None:
    first, second = machine("a"), machine("b", KEBAB_WORKSPACE_ROOT="")
    write_old(tmp_path / "a/notes/a.md", note("a"))
    gone = write_old(tmp_path / "a/notes/gone.md", note("gone"))
    run(first)
    gone.unlink()
    assert reset(second, "orphans-only").documents_removed == 0
    assert reset(first, "orphans-only").removed == ("gone.md",)
    assert found_paths(second, "part") == ["a.md", "a.md"]


def test_a_reset_of_the_data_forgets_claims_and_roots(tmp_path: Path, machine: Machine) -> None:
    first, second = machine("a", KEBAB_WORKSPACE_ROOT=""), machine("b")
    write_old(tmp_path / "a/data/one.md", note("one"))
    write_old(tmp_path / "b/notes/b.md", note("b"))
    run(first, tmp_path / "a/data")
    reset(first, "data-only")
    with pytest.raises(InvalidArgument):
        run(first)
    assert run(second).new == 1


def test_claims_that_cannot_be_read_stop_the_ingest(tmp_path: Path, machine: Machine) -> None:
    settings = machine("a")
    write_old(tmp_path / "a/notes/a.md", note("a"))
    run(settings)
    write_kv(settings, "source_claims", {"default": 7})
    for change in (run, lambda settings: reset(settings, "orphans-only")):
        with pytest.raises(Failed, match="source_claims"):
            change(settings)
    assert paths_in(settings) == ["a.md"]


def test_a_damaged_file_of_roots_says_how_to_go_on(tmp_path: Path, machine: Machine) -> None:
    settings = machine("a")
    write_old(tmp_path / "a/notes/a.md", note("a"))
    run(settings)
    settings.data.local_sources.write_text("{")
    with pytest.raises(Failed, match=r"sources\.json is damaged") as caught:
        run(settings)
    assert "--take-over" in caught.value.hint
