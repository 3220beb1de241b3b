"""`loadgen.c`: compiled when it changed, run on the load core, its numbers read."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.errors import BenchError
from bench.machine import LOAD_CORE, ROOT, on_core

SOURCE = ROOT / "bench" / "proxy" / "loadgen.c"
Way = Literal["direct", "direct-tls", "forward", "connect"]


@dataclass(frozen=True, slots=True)
class Load:
    requests: int
    errors: int
    why: str
    """The first error."""
    reconnects: int
    seconds: float
    received_bytes: int
    p50_us: float
    p99_us: float
    first_byte_us: float

    @property
    def per_s(self) -> float:
        return self.requests / self.seconds


@dataclass(frozen=True, slots=True)
class Shape:
    """What is asked for: `length_bytes` is checked in every response."""

    way: Way
    path: str
    length_bytes: int
    connections: int
    is_new: bool = False
    """A connection for each request."""


def program() -> Path:
    """The compiled load generator; BenchError says what is missing to compile it."""
    source = SOURCE.read_bytes()
    target = ROOT / ".dev" / "bench" / f"loadgen-{hashlib.sha256(source).hexdigest()[:16]}"
    if target.exists():
        return target
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise BenchError("THE LOAD GENERATOR CANNOT BE BUILT: there is no C compiler", "apt-get install gcc libc6-dev")
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-O2", "-o", str(target), str(SOURCE), "-lssl", "-lcrypto"]
    built = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if built.returncode:
        hint = "apt-get install libssl-dev" if "openssl/" in built.stderr else "read the compiler's words above"
        raise BenchError(f"THE LOAD GENERATOR CANNOT BE BUILT:\n{built.stderr[-2000:]}", hint)
    return target


def run(
    who: str,
    shape: Shape,
    port: int,
    origin_port: int,
    seconds: float,
    requests: int = 0,
    forgiven: float = 0.0,
    on_ready: Callable[[], None] | None = None,
) -> Load:
    """Load a proxy. More wrong answers than a part of `forgiven` stop the benchmark; none of them counts.

    `on_ready` is called when all connections are made and the first request goes out.
    """
    command = [
        *(str(program()), shape.way, str(port), str(origin_port), shape.path, str(shape.length_bytes)),
        *(str(shape.connections), f"{seconds:g}", str(requests), str(int(shape.is_new))),
    ]
    with on_core(LOAD_CORE):
        loading = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with loading:
        # It ends by itself: 20 s at most to connect, then `seconds`.
        try:
            assert loading.stdout is not None
            first = loading.stdout.readline()
            if first == "ready\n":
                if on_ready is not None:
                    on_ready()
                first = loading.stdout.readline()
        except BaseException:
            loading.kill()
            raise
    if loading.returncode:
        raise BenchError(f"loadgen exited with {loading.returncode}: {first}")
    load = Load(**json.loads(first))
    told = f"{who}: {load.requests} requests and {load.errors} errors, the first: {load.why or 'none'}"
    if load.errors > forgiven * load.requests or not load.requests:
        raise BenchError(told)
    if load.errors:
        print(f"bench: {told}", file=sys.stderr)
    return load
