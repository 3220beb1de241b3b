"""What survives: settings, rules, CA and traffic over a restart, an unreadable file, and kill -9."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dari.daemon.client import DaemonClient
from dari.errors import Unavailable
from dari.proxy.api.service import ProxyService, remote_service
from dari.proxy.daemon import CrabPaths, crabd_client
from tests.support.origins.origin import origin
from tests.support.proxy_service import proxy
from tests.support.wire import ROOT


async def test_everything_is_as_it_was(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.service.ca.generate()
        await rig.service.rules.add_map_local_text(site.url("/x"), "here")
        await rig.service.settings.set_throttle_preset("4G")
        await rig.get(site.url("/x"))
        before = (
            await rig.service.settings.dump(),
            await rig.service.rules.list(),
            await rig.service.ca.export(),
        )
    async with proxy(tmp_path, starts=False) as rig:
        after = (
            await rig.service.settings.dump(),
            await rig.service.rules.list(),
            await rig.service.ca.export(),
        )
        assert not after[0].running, "an orderly end means that it stays stopped"
        assert after[0].throttle == before[0].throttle and after[2] == before[2]
        assert after[1].rules == before[1].rules and after[1].rules[0].hits == 1
        entry = (await rig.service.traffic.tail()).entries[0]
        assert (entry.url, entry.event) == (site.url("/x"), "map_local")
        await rig.service.control.start()
        await rig.get(site.url("/x"))
        assert (await rig.service.traffic.tail()).entries[0].request_id == "2", "ids go on"


async def test_files_that_cannot_be_read_are_set_aside_and_told(tmp_path: Path) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        await rig.service.rules.add_allow("x.test")
    state = tmp_path / "state"
    (state / "rules.json").write_text("{broken")
    (state / "config.json").write_text('{"listen_addr": 5}')
    async with proxy(tmp_path, starts=False) as rig:
        info = await rig.service.control.info()
        assert len(info.notes) == 2 and info.rules == 0
        assert (state / "rules.unreadable.json").read_text() == "{broken"
        doctor = await rig.service.health.doctor()
        assert sum(check.name == "start" for check in doctor.checks) == 2


async def test_settings_that_cannot_be_used_are_kept_aside_and_told(tmp_path: Path) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        await rig.service.settings.set_upstream(insecure_hosts=["dev.local"])
    config = tmp_path / "state/config.json"
    config.write_text(config.read_text().replace("127.0.0.1:0", "localhost"))
    async with proxy(tmp_path) as rig:
        info = await rig.service.control.info()
        assert info.status == "running" and "listen_addr" in info.notes[0]
    kept = json.loads((tmp_path / "state/config.unreadable.json").read_text())
    assert kept["upstream"]["insecure_hosts"] == ["dev.local"]


async def test_a_ca_that_is_gone_costs_the_ca_alone(tmp_path: Path) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        await rig.service.ca.generate()
        await rig.service.rules.add_allow("x.test")
    (tmp_path / "state/ca/ca-key.pem").unlink()
    async with proxy(tmp_path) as rig:
        info = await rig.service.control.info()
        assert (info.ca, info.rules, info.status) == ("missing", 1, "running") and "CA" in info.notes[0]


async def test_a_ca_that_turns_out_to_be_none_is_told_and_nothing_is_decrypted(tmp_path: Path) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        await rig.service.ca.generate()
    key = tmp_path / "state/ca/ca-key.pem"
    key.write_text("-----BEGIN PRIVATE KEY-----\nbm90IGEga2V5\n-----END PRIVATE KEY-----\n")
    async with proxy(tmp_path) as rig:
        while (await rig.service.control.info()).ca == "loaded":  # noqa: ASYNC110 (it is read after the start)
            await asyncio.sleep(0.001)
        assert "CA" in (await rig.service.control.info()).notes[0]


@pytest.fixture
def place() -> Iterator[CrabPaths]:
    folder = Path(tempfile.mkdtemp(prefix="crab"))  # pytest's own are too long for a socket
    yield CrabPaths(folder / "run")
    shutil.rmtree(folder)


@asynccontextmanager
async def crabd(place: CrabPaths) -> AsyncIterator[tuple[asyncio.subprocess.Process, ProxyService, DaemonClient]]:
    """The real daemon in a process of its own, whose end the test waits for."""
    process = await asyncio.create_subprocess_exec(
        *place.command(), cwd=ROOT, stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    assert process.stderr is not None
    async for line in process.stderr:
        if b"event=listening" in line:
            break
    caller = crabd_client(place, "cli", starts=False)
    try:
        yield process, remote_service(caller), caller
    finally:
        await caller.close()
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def test_kill_9_loses_at_most_the_last_second_and_the_proxy_comes_back(place: CrabPaths) -> None:
    async with origin() as site:
        async with crabd(place) as (process, service, _):
            await service.settings.set_listen_addr("127.0.0.1:0")
            await service.rules.add_map_local_text(site.url("/x"), "here")
            await service.control.start()
            for number in range(50):
                await service.traffic.compose(site.url(f"/x{number}"))
            await asyncio.sleep(1.2)  # what is older than a second must be there
            await service.traffic.compose(site.url("/last"))
            os.kill(process.pid, signal.SIGKILL)
            await process.wait()
        async with crabd(place) as (_, service, _client):
            assert (await service.control.status()).status == "running"
            found = await service.traffic.search(limit=200, fields=["url"])
            urls = [flow["url"] for flow in found.flows]
            assert all(site.url(f"/x{number}") in urls for number in range(50))
            assert (await service.rules.dump()).map_local[0].matcher == site.url("/x")
            assert (await service.health.doctor()).state_db == "ok"
            assert (await service.traffic.compose(site.url("/x"))).flow["event"] == "map_local"


async def test_a_second_daemon_on_the_same_state_is_refused(place: CrabPaths) -> None:
    async with crabd(place):
        other = CrabPaths(place.run_dir.parent / "other", state_dir=place.state_dir)
        process = await asyncio.create_subprocess_exec(
            *other.command(), cwd=ROOT, stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
        )
        _, said = await process.communicate()
        assert process.returncode == 1 and b"already uses" in said


async def test_whoever_calls_first_starts_it_and_shutdown_ends_it(place: CrabPaths) -> None:
    async with crabd_client(place, "mcp") as caller:
        service = remote_service(caller)
        assert (await service.health.ping()).pong
        pid = int(place.lock.read_text())
        assert await service.rpc("system.shutdown", {}) == {"status": "shutting_down"}
    while os.path.exists(f"/proc/{pid}") and sys.platform == "linux":  # noqa: ASYNC110 (a process has no event)
        await asyncio.sleep(0.01)
    async with crabd_client(place, "mcp", starts=False) as caller:
        with pytest.raises(Unavailable) as caught:
            await remote_service(caller).health.ping()
        assert caught.value.wire_message == "Internal error: daemon unreachable"


async def test_the_wire_is_the_one_of_the_reference(place: CrabPaths) -> None:
    async with crabd(place) as (_, service, _caller):
        await service.settings.set_listen_addr("127.0.0.1:0")
        token = place.token("mcp").read_text()
        reader, writer = await asyncio.open_unix_connection(str(place.socket))

        async def ask(method: str, params: object = None) -> dict[str, object]:
            message = {"jsonrpc": "2.0", "id": 1, "method": method}
            writer.write(json.dumps(message if params is None else message | {"params": params}).encode() + b"\n")
            reply = json.loads(await reader.readline())
            return reply["result"] if "result" in reply else {"code": reply["error"]["code"]} | reply["error"]

        shaken = await ask("system.handshake", {"protocol_version": 1, "token": token, "client_type": "test"})
        assert (shaken["principal"], shaken["scopes"]) == ("mcp", ["read", "rules.write", "control"])
        rows: list[tuple[str, object, object]] = [
            ("proxy.status", None, {"status": "stopped"}),
            ("proxy.start", {}, {"status": "running"}),
            ("proxy.start", {}, 3),
            ("proxy.stop", None, {"status": "stopped"}),
            ("proxy.stop", None, {"status": "stopped"}),
            ("capture.stop", None, {"status": "stopped"}),
            ("capture.start", None, {"status": "running"}),
            ("engine.set_listen_addr", {"listen_addr": "localhost:1"}, 2),
            ("engine.set_listen_addr", {"listen_addr": None}, 2),
            ("engine.set_listen_addr", {}, 2),
            ("engine.load_ca", {"cert_path": "/no", "key_path": "/no"}, 4),
            ("engine.set_inspect_enabled", {"enabled": 1}, 2),
            ("engine.set_inspect_enabled", {"enabled": True, "more": 1}, {"ok": True}),
            ("engine.set_transparent", {}, {"ok": True}),
            ("engine.set_client_allowlist", {"enabled": False, "ips": ["x"]}, 2),
            ("engine.set_throttle", {}, {"ok": True}),
            ("engine.rules_add_allow", {"matcher": ""}, {"ok": True}),
            ("engine.rules_add_allow", {"matcher": "a.test"}, {"ok": True}),
            ("engine.rules_add_map_local_text", {"matcher": "/", "text": "x", "status_code": 700}, {"ok": True}),
            ("engine.rules_add_map_local_text", {"matcher": "/", "text": "x", "content_type": None}, 2),
            ("engine.rules_add_map_local_file", {"matcher": "/", "file_path": f"{place.state_dir}/none"}, 4),
            ("engine.rules_add_status_rewrite", {"matcher": "/"}, {"ok": True}),
            ("engine.rules_remove_allow", {"matcher": " a.test "}, {"ok": True, "removed": 1}),
            ("engine.rules_remove_allow", {"matcher": "  "}, 2),
            ("engine.rules_remove_map_local", {"matcher": "/", "source_kind": "other"}, 2),
            ("engine.rules_remove_map_local", {"matcher": "/", "source_kind": "text"}, {"ok": True, "removed": 1}),
            ("engine.rules_remove_map_remote", {"matcher": "/"}, {"ok": True, "removed": 0}),
            (
                "engine.rules_remove_status_rewrite",
                {"matcher": "/", "from_status_code": -1},
                {"ok": True, "removed": 1},
            ),
            ("engine.rules_clear", None, {"ok": True}),
            ("logs.tail", {"limit": 5000}, {"next_seq": 0, "records": []}),
            ("logs.clear", None, {"ok": True, "cleared": 0, "next_seq": 0}),
            ("traffic.reveal", {"request_id": "1"}, 9),
            ("system.rotate_token", None, 9),
            ("no.such", None, 11),
            ("engine.rules_dump", [], 2),
        ]
        for method, params, wanted in rows:
            got = await ask(method, params)
            assert (got.get("code") if isinstance(wanted, int) else got) == wanted, (method, params, got)
        dumped = await ask("engine.rules_dump")
        assert dumped == {"allowlist": [], "map_local": [], "map_remote": [], "status_rewrite": []}
        writer.close()
