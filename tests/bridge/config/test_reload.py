"""Hot reload: what came, changed and went, without a restart and without reading what did not change."""

from __future__ import annotations

import asyncio
import os
import time
from types import SimpleNamespace
from typing import Any

import pytest

from dari.bridge.config.reload import CatalogChange, ConfigWatcher
from dari.bridge.config.service import ConfigService
from tests.support.bridge_config import World, put


def servers(**commands: str) -> dict[str, Any]:
    return {"mcpServers": {id: {"command": command} for id, command in commands.items()}}


def seen(change: CatalogChange | None) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    assert change is not None
    return change.added, change.changed, change.removed


def test_added_changed_and_removed_profiles_are_told(world: World) -> None:
    world.user(servers(a="1", b="1"))
    watch = ConfigWatcher(world.book)
    assert watch.poll() is None
    world.user(servers(b="2", c="1"))
    change = watch.poll()
    assert seen(change) == (("c",), ("b",), ("a",))
    assert change and [one.id for one in change.catalog.listed] == ["b", "c"]
    assert watch.poll() is None


def test_two_writes_in_the_same_instant_are_both_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system whose clock stands still between two writes of equal length."""
    path = world.user(servers(a="1"))
    now, real = time.time_ns(), os.stat

    def coarse(path: Any) -> Any:
        info = real(path)
        same = {"st_mtime_ns": now, "st_ctime_ns": now}
        return SimpleNamespace(st_dev=info.st_dev, st_ino=info.st_ino, st_size=info.st_size, **same)

    monkeypatch.setattr("dari.bridge.config.reload.stat", coarse)
    watch = ConfigWatcher(world.book)
    path.write_text(path.read_text().replace('"1"', '"2"'))
    assert seen(watch.poll()) == ((), ("a",), ())


def test_an_old_file_is_told_by_its_times_and_not_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.user(servers(a="1"))
    os.utime(path, (1000, 1000))
    watch = ConfigWatcher(world.book)
    monkeypatch.setattr(ConfigService, "load", lambda *_: pytest.fail("it was read"))
    assert watch.poll() is None


def test_a_file_that_appears_and_goes_is_seen(world: World) -> None:
    watch = ConfigWatcher(world.book)
    world.user(servers(a="1"))
    assert seen(watch.poll()) == (("a",), (), ())
    world.user_file.unlink()
    assert seen(watch.poll()) == ((), (), ("a",))


def test_a_move_within_the_file_changes_no_profile(world: World) -> None:
    world.user(servers(a="1", b="1"))
    watch = ConfigWatcher(world.book)
    world.user("// a new line on top\n" + world.user_file.read_text())
    assert watch.poll() is None
    assert watch.catalog.find("a").source.line == 4


def test_a_half_saved_file_keeps_its_last_good_version(world: World) -> None:
    world.user(servers(a="1"))
    watch = ConfigWatcher(world.book)
    world.user('{"mcpServers": {"a": {"comm')
    change = watch.poll()
    assert seen(change) == ((), (), ())
    assert change and "the last good version is used" in change.problems[1]
    assert change.catalog.find("a").state == "ready"
    assert change.catalog.files[0].is_kept
    world.user(servers(a="1", b="1"))
    assert seen(watch.poll()) == (("b",), (), ())


def test_trust_given_elsewhere_is_a_change(world: World) -> None:
    world.project(servers(a="1"))
    watch = ConfigWatcher(world.book)
    assert watch.catalog.find("a").state == "untrusted"
    world.book.trust()
    assert seen(watch.poll()) == ((), ("a",), ())
    assert watch.catalog.find("a").state == "ready"
    world.project(servers(a="2"))
    assert seen(watch.poll()) == ((), ("a",), ())
    assert watch.catalog.find("a").state == "untrusted"


def test_files_that_are_imported_are_watched_from_then_on(world: World) -> None:
    world.user(servers(a="1"))
    watch = ConfigWatcher(world.book)
    put(world.home / ".cursor/mcp.json", servers(c="1"))
    assert watch.poll() is None
    world.user({**servers(a="1"), "imports": ["cursor"]})
    assert seen(watch.poll()) == (("c",), (), ())
    put(world.home / ".cursor/mcp.json", servers(c="2"))
    assert seen(watch.poll()) == ((), ("c",), ())


def test_a_profile_that_breaks_is_a_change_with_its_reason(world: World) -> None:
    world.user(servers(a="1", b="1"))
    watch = ConfigWatcher(world.book)
    world.user({"mcpServers": {"a": {"comand": "1"}, "b": {"command": "1"}}})
    change = watch.poll()
    assert seen(change) == ((), ("a",), ())
    assert change and change.catalog.find("a").state == "broken"


async def test_changes_come_as_they_happen(world: World) -> None:
    watch = ConfigWatcher(world.book)
    changes = watch.changes(interval_s=0.01)
    first = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    world.user(servers(a="1"))
    assert seen(await first) == (("a",), (), ())
    world.user(servers(a="2"))
    assert seen(await anext(changes)) == ((), ("a",), ())
    await changes.aclose()


def test_a_reader_who_has_a_catalogue_hears_what_happened_since(world: World) -> None:
    world.user(servers(a="1"))
    old = world.load()
    world.user(servers(b="1"))
    assert seen(ConfigWatcher(world.book, old).poll()) == (("b",), (), ("a",))
