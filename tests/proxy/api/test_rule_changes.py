"""A change through the service: warned about when it hides rules, and not made when it cannot be saved."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from dari.errors import Failed, InvalidInput, NotFound
from tests.support.origins.origin import origin
from tests.support.proxy_service import Rig, proxy


class Disk:
    """A disk that can be full: what is written does not stay."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        really = os.fsync

        def fsync(file: int) -> None:
            if self.is_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            really(file)

        monkeypatch.setattr(os, "fsync", fsync)


CHANGES: dict[str, Callable[[Rig], Coroutine[Any, Any, Any]]] = {
    "add": lambda rig: rig.service.rules.add({"kind": "block", "matcher": "x.test"}),
    "add_allow": lambda rig: rig.service.rules.add_allow("x.test"),
    "add_map_local_text": lambda rig: rig.service.rules.add_map_local_text("/", "x"),
    "update": lambda rig: rig.service.rules.update("r1", {"matcher": "/b"}),
    "disable": lambda rig: rig.service.rules.update("r1", {"enabled": False}),
    "enable": lambda rig: rig.service.rules.update("r2", {"enabled": True}),
    "remove": lambda rig: rig.service.rules.remove("r1"),
    "move": lambda rig: rig.service.rules.move("r2", before="r1"),
    "remove_status_rewrite": lambda rig: rig.service.rules.remove_status_rewrite("/a"),
    "clear": lambda rig: rig.service.rules.clear(),
    "listen_addr": lambda rig: rig.service.settings.set_listen_addr("127.0.0.2:0"),
    "inspect": lambda rig: rig.service.settings.set_inspect_enabled(False),
    "throttle": lambda rig: rig.service.settings.set_throttle(True, latency_ms=5),
    "client_allowlist": lambda rig: rig.service.settings.set_client_allowlist(True, ["10.0.0.1"]),
    "upstream": lambda rig: rig.service.settings.set_upstream(proxy="http://127.0.0.1:9"),
    "policy": lambda rig: rig.service.settings.set_policy(blocks_private_targets=True),
    "capture": lambda rig: rig.service.control.capture_stop(),
    "ca": lambda rig: rig.service.ca.generate(),
}


async def state(rig: Rig) -> tuple[object, ...]:
    runtime = rig.runtime
    return (
        await rig.service.rules.list(),
        await rig.service.settings.dump(),
        runtime.address,
        runtime.gate.clients.enabled,
        runtime.gate.targets.enabled,
        runtime.recording.recorder.is_on,
        runtime.authority,
        runtime.files.ca[0].exists(),
    )


@pytest.mark.parametrize("name", CHANGES)
async def test_what_cannot_be_saved_is_not_done(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    async with proxy(tmp_path) as rig:
        await rig.service.rules.add({"kind": "status_rewrite", "matcher": "/a", "to_status_code": 503})
        await rig.service.rules.add({"kind": "block", "matcher": "/c", "enabled": False})
        before = await state(rig)
        disk.is_full = True
        with pytest.raises(Failed):
            await CHANGES[name](rig)
        assert await state(rig) == before
        disk.is_full = False
        await CHANGES[name](rig)
        assert await state(rig) != before


async def test_a_proxy_starts_and_stops_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    async with proxy(tmp_path, starts=False) as rig:
        disk.is_full = True
        await rig.service.control.start()
        assert rig.runtime.engine.is_running
        assert any("was not saved" in note for note in rig.runtime.files.notes)
        await rig.service.control.stop()
        assert not rig.runtime.engine.is_running
        disk.is_full = False


async def test_a_caller_that_goes_away_leaves_disk_and_memory_alike(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        adding = asyncio.ensure_future(rig.service.rules.add({"kind": "block", "matcher": "x.test"}))
        await asyncio.sleep(0)
        adding.cancel()
        await asyncio.gather(adding, return_exceptions=True)
        kept = await rig.service.rules.add({"kind": "block", "matcher": "y.test"})
        listed = (await rig.service.rules.list()).rules
        assert listed[-1].id == kept.id
        saved = rig.runtime.files.rules.read_text()
        assert [rule.matcher in saved for rule in listed] == [True] * len(listed)


async def test_an_allow_rule_warns_about_the_rules_it_switches_off(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.service.rules.add_map_local_text(site.url("/"), "local")
        assert (await rig.get(site.url("/"))).body == b"local"
        changed = await rig.service.rules.add_allow("elsewhere.test")
        assert changed.ok and "rule r1 can no longer act" in changed.warnings[0]
        assert (await rig.get(site.url("/"))).body != b"local"
        with pytest.raises(InvalidInput):
            await rig.service.rules.add({"kind": "breakpoint", "matcher": site.url("/")})
        assert "r1" in str((await rig.service.rules.list()).rules[0].warnings) or (
            "leaves out" in str((await rig.service.rules.list()).rules[0].warnings)
        )
        assert "leaves out" in (await rig.service.rules.add_status_rewrite(site.url("/"), 503)).warnings[0]
        # The fix, as the hint has it.
        await rig.service.rules.add_allow(site.url("/").split("/")[2].partition(":")[0])
        assert (await rig.get(site.url("/"))).body == b"local"


async def test_an_https_rule_without_a_ca_says_what_is_missing(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        rule = {"kind": "breakpoint", "matcher": "https://a.test/"}
        assert "crab_ca_generate" in str((await rig.service.rules.add(rule)).warnings)
        await rig.service.ca.generate()
        assert (await rig.service.rules.add(rule)).warnings == ()


async def test_a_moved_rule_wins_at_once_and_after_a_restart(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        for text in ("first", "second"):
            await rig.service.rules.add_map_local_text(site.url("/"), text)
        assert (await rig.get(site.url("/"))).body == b"first"
        moved = await rig.service.rules.move("r2", before="r1")
        assert (moved.id, (await rig.get(site.url("/"))).body) == ("r2", b"second")
    async with proxy(tmp_path) as rig:
        assert [rule.id for rule in (await rig.service.rules.list()).rules] == ["r2", "r1"]


async def test_a_removed_rule_comes_back_where_it_was_with_its_hits(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        for text in ("first", "second"):
            await rig.service.rules.add_map_local_text(site.url("/"), text)
        await rig.get(site.url("/"))
        await rig.service.rules.remove("r1")
        assert (await rig.get(site.url("/"))).body == b"second"
        restored = await rig.service.rules.restore("r1")
        assert (restored.id, restored.hits) == ("r1", 1)
        assert (await rig.get(site.url("/"))).body == b"first"
        assert [rule.id for rule in (await rig.service.rules.list()).rules] == ["r1", "r2"]
        with pytest.raises(NotFound) as refused:
            await rig.service.rules.restore("r1")
        assert "none" in refused.value.hint


async def test_a_restored_rule_has_lost_the_leave_to_send_credentials_elsewhere(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        rule = await rig.service.rules.add({"kind": "map_remote", "matcher": "a.test", "destination": "http://b.test"})
        await rig.service.rules.keep_credentials(rule.id)
        await rig.service.rules.remove(rule.id)
        restored = await rig.service.rules.restore(rule.id)
        assert restored.settings["keeps_credentials"] is False
        assert "keep-credentials r1" in restored.warnings[-1]
