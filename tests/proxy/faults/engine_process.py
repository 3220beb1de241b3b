"""An engine in a process of its own, with the real recorder: `python -m tests.proxy.faults.engine_process '<options>'`.

It prints its port, then answers each line of stdin with a line of JSON: `stats`, `flows`. It ends with stdin.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import sys
from collections import Counter, deque
from pathlib import Path
from typing import Any

import uvloop

from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.config import EngineConfig
from dari.proxy.engine.hooks import NoRules
from dari.proxy.engine.listener import ProxyEngine
from dari.proxy.flow import Flow, WebSocketFrame
from dari.proxy.recording.recording import Recording, RecordingLimits

_KEPT = 50


class Tally:
    """Counts what goes by and hands it on to the recorder that the daemon uses."""

    def __init__(self, traffic: Recording) -> None:
        self._inner = traffic.recorder
        self.began_count = 0
        self.outcomes: Counter[str] = Counter()
        self.frame_count = 0
        self.newest: deque[dict[str, Any]] = deque(maxlen=_KEPT)

    @property
    def spools(self) -> bool:
        return self._inner.spools

    def began(self, flow: Flow) -> None:
        self.began_count += 1
        self._inner.began(flow)

    def body(self, flow: Flow, from_client: bool, chunk: bytes) -> None:
        self._inner.body(flow, from_client, chunk)

    def frame(self, flow: Flow, frame: WebSocketFrame) -> None:
        self.frame_count += 1
        self._inner.frame(flow, frame)

    def finished(self, flow: Flow) -> None:
        self.outcomes[f"{flow.event} {flow.status}"] += 1
        self.newest.append(
            {
                "url": flow.url,
                "status": flow.status,
                "error": flow.error,
                "up_bytes": flow.request_body.size_bytes,
                "down_bytes": flow.response_body.size_bytes,
                "outcome": flow.response_body.outcome,
            }
        )
        self._inner.finished(flow)


def stats(engine: ProxyEngine, tally: Tally) -> dict[str, Any]:
    gc.collect()
    status = Path("/proc/self/status").read_text()
    memory = {name: int(kib) for name, kib in re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB", status, re.MULTILINE)}
    core = engine._core
    assert core is not None
    return {
        "rss_kib": memory["VmRSS"],
        "peak_kib": memory["VmHWM"],
        "fds": len(os.listdir("/proc/self/fd")),
        "connections": engine.connection_count,
        "pooled": core.pool.size,
        "tasks": len(asyncio.all_tasks()),
        "began": tally.began_count,
        "finished": sum(tally.outcomes.values()),
        "frames": tally.frame_count,
        "outcomes": dict(tally.outcomes),
    }


def forget_peak() -> None:
    """VmHWM starts again from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


async def main(options: dict[str, Any]) -> None:
    directory = Path(options["directory"])
    authority = CertificateAuthority.load(directory / "ca.pem", directory / "ca.key")
    limits = RecordingLimits(
        capacity=options["capacity"], store_bytes=8 << 20, bodies_bytes=16 << 20, body_bytes=1 << 20
    )
    traffic = Recording.open(directory / "traffic", limits=limits) if options["stores"] else Recording(capacity=500)
    tally = Tally(traffic)
    config = EngineConfig(port=0, ca_file=str(directory / "roots.pem"), **options["config"])
    engine = ProxyEngine(config, rules=NoRules(True), recorder=tally, authority=authority)
    await engine.start()
    assert engine.address is not None
    say({"port": engine.address[1]})
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while command := (await reader.readline()).decode().strip():
        if command == "forget peak":
            forget_peak()
        say(list(tally.newest) if command == "flows" else stats(engine, tally))
    transport.close()
    await engine.stop()
    await traffic.close()


def say(what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    uvloop.run(main(json.loads(sys.argv[1])))
