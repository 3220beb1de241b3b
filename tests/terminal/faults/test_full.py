"""Issue 5, "What it must show" 4: a disk that is full, and more output than anybody keeps."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from dari.errors import Failed
from tests.support.cruxd import Served, cruxd
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
MEGABYTE = 1 << 20


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.timeout(150)
async def test_a_hundred_megabytes_and_a_full_disk_leave_the_daemon_as_it_was(home: Path) -> None:
    async with cruxd() as served:
        await much_output_leaves_memory_flat(served)
        await a_full_disk_is_told_and_nothing_is_lost(served, home)
        assert (await served.service.commands.execute("echo alive")).stdout == "alive"


async def much_output_leaves_memory_flat(served: Served) -> None:
    line = "x" * 99
    await served.service.commands.execute(f"yes {line} | head -c {20 * MEGABYTE}", timeout_s=60)
    before = resident(served.pid)
    done = await served.service.commands.execute(f"yes {line} | head -c {100 * MEGABYTE}", timeout_s=60)
    assert (done.exit_code, done.truncated) == (0, True)
    assert len(done.stdout) < 4 * MEGABYTE
    assert resident(served.pid) - before < 30 * MEGABYTE


async def a_full_disk_is_told_and_nothing_is_lost(served: Served, home: Path) -> None:
    sessions = served.service.sessions
    await sessions.save_session("mine")
    path = served.place.sessions / "mine.session"
    before = path.read_bytes()
    usual = resource.prlimit(served.pid, resource.RLIMIT_FSIZE)
    # The kernel refuses to let a file of the daemon grow, as it does on a full disk.
    resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (512, usual[1]))
    try:
        with pytest.raises(Failed, match="the disk is full"):
            await sessions.save_session("mine")
        with pytest.raises(Failed, match="the disk is full"):
            await sessions.save_session("other")
        shown = await served.service.commands.execute("echo works all the same")
        assert shown.stdout == "works all the same"
    finally:
        resource.prlimit(served.pid, resource.RLIMIT_FSIZE, usual)
    assert path.read_bytes() == before
    assert [file.name for file in served.place.sessions.iterdir()] == ["mine.session"]
    await sessions.save_session("mine")
    await until(lambda: path.read_bytes() != b"")
