"""What a rule or a HAR may name: never our own folders, by no way there, and nothing that is no regular file."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dari.errors import DariError, Denied, InvalidInput
from dari.paths import read_regular
from dari.proxy.local_files import LocalFiles
from tests.support.origins.origin import origin
from tests.support.proxy_service import Rig, proxy

Use = Callable[[Rig, str], Awaitable[object]]

READERS: dict[str, Use] = {
    "map_local": lambda rig, path: rig.service.rules.add_map_local_file("/", path),
    "rules_add": lambda rig, path: rig.service.rules.add(
        {"kind": "map_local", "matcher": "/", "source": {"kind": "file", "value": path}}
    ),
    "rules_update": lambda rig, path: rig.service.rules.update("r1", {"source": {"kind": "file", "value": path}}),
    "har_import": lambda rig, path: rig.service.traffic.import_har(path),
    "har_export": lambda rig, path: rig.service.traffic.export_har(path, overwrite=True),
}
CERTIFICATES: dict[str, Use] = {
    "ca_certificate": lambda rig, path: rig.service.settings.load_ca(path, path),
    "upstream_roots": lambda rig, path: rig.service.settings.set_upstream(ca_file=path),
}


def ways_to(own: Path, file: Path, folder: Path) -> dict[str, str]:
    """Paths below an allowed folder that lead to a file in a folder of ours."""
    folder.mkdir(exist_ok=True)
    (folder / "link").symlink_to(file)
    (folder / "folder").symlink_to(own)
    (folder / "twice").symlink_to(folder / "folder")
    os.link(file, folder / "hard")
    inside = file.relative_to(own)
    return {
        "plain": str(file),
        "link": str(folder / "link"),
        "folder link": str(folder / "folder" / inside),
        "two links": str(folder / "twice" / inside),
        "hard link": str(folder / "hard"),
        "dots": str(folder / ".." / own.name / inside),
        "root": f"/proc/self/root{file}",
    }


@pytest.mark.parametrize("name", READERS)
async def test_our_own_folders_are_out_of_reach_by_every_way(name: str, tmp_path: Path) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        await rig.service.ca.generate()
        await rig.service.rules.add_map_local_text("/keep", "x")
        state = rig.runtime.files.directory
        secret = rig.runtime.files.ca[1]
        before = secret.read_bytes()
        for way, path in ways_to(state, secret, tmp_path / "mine").items():
            with pytest.raises(Denied):
                await READERS[name](rig, path)
            assert secret.read_bytes() == before, way
        if name == "har_export":
            with pytest.raises(Denied):
                await READERS[name](rig, str(state / "new.har"))
            with pytest.raises(Denied):
                await READERS[name](rig, str(tmp_path / "mine" / "folder" / "new.har"))
        assert len((await rig.service.rules.list()).rules) == 1


async def test_a_link_that_is_turned_to_our_folders_later_is_not_served(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        (tmp_path / "page").write_text("mine")
        link = tmp_path / "link"
        link.symlink_to(tmp_path / "page")
        await rig.service.rules.add_map_local_file(site.url("/"), str(link))
        assert (await rig.get(site.url("/"))).body == b"mine"
        link.unlink()
        link.symlink_to(rig.runtime.files.config)
        reply = await rig.get(site.url("/"))
        assert reply.status == 502 and b"listen_addr" not in reply.body


async def test_named_roots_do_not_open_our_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    (tmp_path / "dari" / "run" / "cruxd").mkdir(parents=True)
    token = tmp_path / "dari" / "run" / "cruxd" / "mcp.token"
    token.write_text("token")
    (tmp_path / "page").write_text("page")
    files = LocalFiles.of_environment({"CRAB_MAP_LOCAL_ALLOWED_ROOTS": f"{tmp_path}:{tmp_path}/dari"})
    assert files.permits(str(tmp_path / "page")) and not files.permits(str(token))
    files.keep_out_of(tmp_path / "elsewhere")
    assert not files.permits(str(tmp_path / "elsewhere" / "x"))


def test_a_home_that_is_the_root_of_all_files_opens_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "page").write_text("page")
    monkeypatch.setenv("HOME", "//")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = LocalFiles.of_environment({})
    assert files.permits(str(tmp_path / "page"))
    assert not files.permits("/etc/passwd") and not files.permits("/proc/1/environ")


def other_kinds(folder: Path) -> dict[str, str]:
    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    (folder / "to_null").symlink_to("/dev/null")
    (folder / "to_fifo").symlink_to(folder / "fifo")
    return {"FIFO": str(folder / "fifo"), "folder": str(folder / "folder"), "linked": str(folder / "to_fifo")}


@pytest.mark.parametrize("name", [*READERS, *CERTIFICATES])
async def test_what_is_no_regular_file_is_refused_at_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        await rig.service.rules.add_map_local_text("/keep", "x")
        paths = other_kinds(tmp_path)
        with socket.socket(socket.AF_UNIX) as listening:
            monkeypatch.chdir(tmp_path)  # a socket's path is short
            listening.bind("sock")
            paths["socket"] = str(tmp_path / "sock")
            if name in CERTIFICATES:
                paths["device"] = "/dev/zero"
            for path in paths.values():
                with pytest.raises(InvalidInput):
                    await (READERS | CERTIFICATES)[name](rig, path)


async def test_a_device_by_a_link_is_out_of_bounds(tmp_path: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    async with proxy(tmp_path, starts=False) as rig:
        for use in READERS.values():
            with pytest.raises(DariError):
                await use(rig, str(tmp_path / "zero"))


async def test_a_file_that_becomes_a_fifo_is_answered_with_502(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        page = tmp_path / "page"
        page.write_text("mine")
        await rig.service.rules.add_map_local_file(site.url("/"), str(page))
        page.unlink()
        os.mkfifo(page)
        assert (await rig.get(site.url("/"))).status == 502


def test_reading_is_bounded_and_never_waits(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="at most 4 bytes, it has 5"):
        read_regular(tmp_path / "file", 4)
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
            read_regular(path, 10)
