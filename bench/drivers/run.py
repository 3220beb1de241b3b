"""Runs a client's driver in the client's own environment, on the load core, and reads its count."""

import json
import subprocess
from dataclasses import dataclass

from bench.contenders import Contender
from bench.errors import BenchError
from bench.machine import LOAD_CORE, ROOT, SERVER_CORE, clean_environment, on_core
from bench.processes import TOKEN, Scratch

START_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class ClientRun:
    client: Contender
    server: Contender
    transport: str
    port: int
    in_flight: int
    seconds: int


def run_client(run: ClientRun, scratch: Scratch) -> float:
    """Calls per second of `run.client`."""
    command = [
        *(str(run.client.python), "-m", f"bench.drivers.{run.client.name}_client"),
        *("--seconds", str(run.seconds), "--in-flight", str(run.in_flight)),
    ]
    if run.transport == "http":
        command += ["--url", f"http://127.0.0.1:{run.port}/mcp", "--token", TOKEN]
    else:
        # The client spawns the server itself, so the server's core is named in its command.
        server = run.server.command("stdio", scratch.token_path)
        command += ["--", "taskset", "-c", str(SERVER_CORE), *server]
    with on_core(LOAD_CORE):
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=run.seconds + START_TIMEOUT_S,
        )
    if done.returncode:
        raise BenchError(f"the client of {run.client.name} exited with {done.returncode}:\n{done.stderr[-2000:]}")
    counted = json.loads(done.stdout.splitlines()[-1])
    return float(counted["calls"] / counted["seconds"])
