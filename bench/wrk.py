"""wrk as the load over HTTP: one thread on the load core, a Lua script that only counts up ids."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError
from bench.machine import LOAD_CORE, on_core, require_wrk
from bench.messages import FIRST_ID

_MARK = "BENCH "

_SCRIPT = """\
local id = %(first_id)d
local head, tail = "%(head)s", "%(tail)s"

function request()
  id = id + 1
  return head .. id .. tail
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '%(mark)s{"requests":%%d,"duration_us":%%d,"reply_bytes":%%d,"p50_us":%%d,"p99_us":%%d,'
    .. '"errors":{"connect":%%d,"read":%%d,"write":%%d,"timeout":%%d,"status":%%d}}\\n',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
    e.connect, e.read, e.write, e.timeout, e.status))
end
"""


@dataclass(frozen=True, slots=True)
class Load:
    requests: int
    duration_us: int
    reply_bytes: int
    p50_us: int
    p99_us: int
    errors: dict[str, int]

    @property
    def per_s(self) -> float:
        return self.requests / self.duration_us * 1e6


def run(port: int, request: bytes, connections: int, seconds: int, scratch: Path) -> Load:
    """Repeat `request` for `seconds`, with another id each time."""
    script = scratch / "load.lua"
    script.write_text(_script(request))
    command = [require_wrk(), "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script)]
    url = f"http://127.0.0.1:{port}/mcp"
    with on_core(LOAD_CORE):
        done = subprocess.run([*command, url], capture_output=True, text=True, timeout=seconds + 30)
    line = next((line for line in done.stdout.splitlines() if line.startswith(_MARK)), "")
    if done.returncode or not line:
        raise BenchError(f"wrk exited with {done.returncode}: {done.stdout}{done.stderr}")
    return Load(**json.loads(line.removeprefix(_MARK)))


def _script(request: bytes) -> str:
    head, marker, tail = request.partition(str(FIRST_ID).encode())
    if not marker or marker in tail:
        raise BenchError(f"the request must hold the id {FIRST_ID} exactly once")
    return _SCRIPT % {"first_id": FIRST_ID, "head": _lua(head), "tail": _lua(tail), "mark": _MARK}


def _lua(text: bytes) -> str:
    return "".join(f"\\{byte:03d}" for byte in text)
