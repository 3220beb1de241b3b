"""Ingests that a test kills. Run as a program: imports everything once, then forks a process for each line of stdin.

A line is JSON: `{"what": "ingest" | "reset", "environ": {…}, "scope": "…"}`. The answer is the pid; then, while it
runs, a line `event <pid> <kind>` for each event of the ingest, and `end <pid> <status>` when it is gone.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue

PATIENCE_S = 60.0


class Victims:
    """The test's side: start one, kill it at some moment, wait for its end."""

    def __init__(self) -> None:
        environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
        )
        self._lines: Queue[list[str]] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Victims:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def start(self, what: str, environ: Mapping[str, str], scope: str = "") -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"what": what, "environ": dict(environ), "scope": scope}) + "\n")
        self._process.stdin.flush()
        word, pid = self._next(PATIENCE_S)
        assert word == "pid"
        return int(pid)

    def kill_at_random(self, pid: int, rng: random.Random, longest_s: float) -> str:
        """Kill it after some time or some events; says which, or that it was too late."""
        if rng.random() < 0.5:
            delay_s, events = rng.uniform(0, longest_s), 10**9
        else:
            delay_s, events = PATIENCE_S, rng.randint(1, 60)
        seen, deadline = 0, time.monotonic() + delay_s
        moment = f"after {delay_s:.3f} s"
        while (left := deadline - time.monotonic()) > 0:
            try:
                line = self._next(left)
            except Empty:
                break
            if line[0] == "end":
                return f"ended by itself with status {line[2]}"
            seen += 1
            if seen >= events:
                moment = f"after event {seen} ({line[2]})"
                time.sleep(rng.uniform(0, 0.02))  # some moment between this event and the next
                break
        with suppress(ProcessLookupError):  # it ended in this moment
            os.kill(pid, 9)
        status = self.wait(pid)
        return f"killed {moment}" if status == -9 else f"ended by itself with status {status}"

    def wait(self, pid: int) -> int:
        while True:
            word, number, *rest = self._next(PATIENCE_S)
            if word == "end" and int(number) == pid:
                return int(rest[0])

    def _next(self, within_s: float) -> list[str]:
        return self._lines.get(timeout=within_s)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.split())


def main() -> None:
    from dari.knowledge.config import load_settings
    from dari.knowledge.index.lexical import LexicalIndex  # noqa: F401
    from dari.knowledge.ingest import pipeline
    from dari.knowledge.ingest.reset import reset

    pipeline.INDEX_EVERY_CHUNKS = 10  # many commits of the index, each with a moment before and after it
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _say("pid", os.getpid())  # not by who forked it: its own first events may come sooner
            try:
                settings = load_settings(None, order["environ"])
                if order["what"] == "reset":
                    reset(settings, order["scope"])
                else:
                    pipeline.ingest(settings, listener=lambda event: _say("event", os.getpid(), event.kind))
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(3)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        _say("end", pid, -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def _say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
