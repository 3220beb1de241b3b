"""The writer is killed for real, in a process of its own."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from dari.proxy.recording.recording import Recording
from dari.proxy.recording.store import FlowStore
from tests.support.flows import running

WRITER = """
import sys, time
from pathlib import Path
from dari.proxy.recording.recording import Recording
from tests.support.flows import flow

traffic = Recording.open(Path(sys.argv[1]))
while True:
    one = flow(0, response=b"x" * 20000, started_unix_ms=int(time.time() * 1000))
    traffic.recorder.began(one)
    traffic.recorder.body(one, False, b"x" * 20000)
    traffic.recorder.finished(one)
    print(one.id, time.monotonic(), flush=True)
    time.sleep(0.002)
"""
ROOT = Path(__file__).parents[3]


def killed_after(directory: Path, flows: int) -> list[tuple[int, float]]:
    """Ids and times of the flows that the writer had recorded when it was killed."""
    command = [sys.executable, "-c", WRITER, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(flows)]
        os.kill(writer.pid, signal.SIGKILL)
        lines += writer.stdout.readlines()
    return [(int(words[0]), float(words[1])) for line in lines if len(words := line.split()) == 2]


async def test_kill_9_loses_less_than_the_last_second_and_the_database_is_whole(tmp_path: Path) -> None:
    directory = tmp_path / "traffic"
    last_id = 0
    for _ in range(3):
        recorded = killed_after(directory, 500)
        with sqlite3.connect(directory / "traffic.db") as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
        traffic = Recording.open(directory)
        assert traffic.store is not None and traffic.bodies is not None
        kept = traffic.store.ids()
        ended = recorded[-1][1]
        lost = [at for flow_id, at in recorded if flow_id not in kept]
        assert all(ended - at < 1.0 for at in lost)
        assert recorded[0][0] in kept and recorded[0][0] > last_id  # ids went on
        last_id = recorded[-1][0]
        newest = await traffic.flow(max(kept))
        assert traffic.bodies.is_whole(newest.response_body)
        names = {int(name.partition(".")[0]) for name in os.listdir(traffic.bodies.directory)}
        assert names <= kept  # no body without its flow
        await traffic.close()


async def test_a_request_that_a_crash_cut_short_is_over_in_the_database_too(tmp_path: Path) -> None:
    crashed = FlowStore(tmp_path / "traffic.db")
    crashed.put(running(1))
    crashed.close()
    await Recording.open(tmp_path).close()
    store = FlowStore(tmp_path / "traffic.db")
    found = store.get(1)
    store.close()
    assert found is not None and found.state == "done" and found.error is not None
