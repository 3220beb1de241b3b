"""The machine under the measurement: its cores, who runs on which, free ports, wrk."""

import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import BenchError

ROOT = Path(__file__).resolve().parent.parent
SERVER_CORE = 0
LOAD_CORE = 1


def require_two_cores() -> None:
    cores = os.sched_getaffinity(0)
    if not {SERVER_CORE, LOAD_CORE} <= cores:
        raise BenchError(
            f"cores {SERVER_CORE} and {LOAD_CORE} are needed, this process may use {sorted(cores)}",
            "run on a machine with two cores and without a narrower taskset",
        )


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Children spawned inside inherit the core; cheaper and earlier than pinning them afterwards."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def clean_environment() -> dict[str, str]:
    """Ours without PYTHON* settings: `./dev` writes no bytecode, which would slow every cold start."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def require_wrk() -> str:
    """Path of wrk; on Debian as root it is installed when missing."""
    if found := shutil.which("wrk"):
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-q"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["apt-get", "install", "-y", "-q", "wrk"], check=True, stdout=subprocess.DEVNULL)
    if found := shutil.which("wrk"):
        return found
    raise BenchError("wrk is not on PATH", "apt-get install wrk")


def wrk_version() -> str:
    reply = subprocess.run([require_wrk(), "--version"], capture_output=True, text=True, timeout=10)
    return reply.stdout.split()[1] if reply.stdout else "unknown"


def describe() -> str:
    """Kind of machine, without any name of it."""
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    kernel = ".".join(platform.release().split(".")[:2])
    return f"{os.cpu_count()} cores, {model}, Linux {kernel}, CPython {platform.python_version()}"
