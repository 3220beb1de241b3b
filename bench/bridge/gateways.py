"""Gateways: each has core 0 for itself, and shows the same server on stdio over Streamable HTTP."""

import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import http_load
from bench.bridge.contenders import (
    BIN,
    FASTMCP_RUN,
    FASTMCP_SHARED,
    OURS,
    PROXY,
    PROXY_TUNED,
    SUPERGATEWAY,
    Contender,
)
from bench.bridge.household import environment
from bench.bridge.upstreams import NODE, Server, fast_echo, program, write_profiles
from bench.errors import BenchError
from bench.http_load import CheckedCall
from bench.machine import ROOT, free_port
from bench.messages import ECHO_TEXT, HANDSHAKE, Call, http_request
from bench.processes import TOKEN, Process, Scratch, spawn, stop, wait_until_listening

SERVER = "fast"
AUDIT_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Gateway:
    contender: Contender
    port: int
    process: Process
    home: Path

    def request(self, call: Call) -> bytes:
        """The call within a session of its own."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        headers["Mcp-Session-Id"] = http_load.open_session(self.contender.name, self.port, headers)
        return http_request(self.port, {**headers, **call.headers(HANDSHAKE)}, call.message(HANDSHAKE))

    def require_audit(self, calls: int) -> None:
        """Ours is measured with its audit log on: every call is in it, a moment later."""
        deadline = time.monotonic() + AUDIT_TIMEOUT_S
        while (found := self._audited()) < calls:
            if time.monotonic() > deadline:
                raise BenchError(f"{self.contender.title} made {calls} calls and has {found} in its audit log")
            time.sleep(0.1)

    def _audited(self) -> int:
        files = (self.home / "dari" / "bridge" / "audit").glob("*.jsonl")
        return sum(file.read_bytes().count(b'"outcome":"ok"') for file in files)

    def echo(self) -> CheckedCall:
        """A call that was answered rightly once."""
        name = f"{SERVER}__echo" if self.contender is OURS else "echo"
        call = Call("tools/call", {"name": name, "arguments": {"text": ECHO_TEXT}}, name)
        return http_load.check(self.contender.name, self.port, self.request(call), call)


@contextmanager
def gateway(
    contender: Contender, scratch: Scratch, servers: Mapping[str, Server] | None = None, home: str = ""
) -> Iterator[Gateway]:
    """It listens; whether its servers run is its own affair. The same `home` again is the same state on disk."""
    port = free_port()
    where = scratch.path / (home or f"{contender.name}-{port}")
    profiles = write_profiles(where / "mcp.json", servers or {SERVER: program(fast_echo())})
    env = environment(where, NODE.parent)
    command, more = _COMMANDS[contender.name](port, profiles, scratch)
    process = spawn(contender, command, scratch, pipes=False, env={**env, **more}, cwd=where)
    try:
        wait_until_listening(contender, process, port, scratch)
        yield Gateway(contender, port, process, where)
    finally:
        stop(process)


Start = tuple[list[str], dict[str, str]]
"""A command line, and what its environment has besides."""


def _dari(port: int, profiles: Path, scratch: Scratch) -> Start:
    words = ("up", "--http-port", str(port), "--token-path", str(scratch.token_path), "--log", "warning")
    return [str(BIN / "dari"), *words], {"DARI_HOME": str(profiles.parent / "dari"), "CREWX_MCP_JSON": str(profiles)}


def _mcp_proxy(port: int, profiles: Path, scratch: Scratch) -> Start:
    words = ("--port", str(port), "--log-level", "ERROR", "--")
    return [str(PROXY.program), *words, *fast_echo()], {}


def _mcp_proxy_tuned(port: int, profiles: Path, scratch: Scratch) -> Start:
    (_, *words), more = _mcp_proxy(port, profiles, scratch)
    return [str(PROXY_TUNED.program), *words], more


def _fastmcp_run(port: int, profiles: Path, scratch: Scratch) -> Start:
    words = ("--transport", "http", "--port", str(port), "--no-banner", "--log-level", "ERROR")
    return [str(FASTMCP_RUN.program), "run", str(profiles), *words], {"FASTMCP_JSON_RESPONSE": "true"}


def _fastmcp_shared(port: int, profiles: Path, scratch: Scratch) -> Start:
    script = ROOT / "bench" / "bridge" / "fastmcp_shared.py"
    return [str(FASTMCP_SHARED.program), str(script), str(port), *fast_echo()], {"FASTMCP_LOG_LEVEL": "ERROR"}


def _supergateway(port: int, profiles: Path, scratch: Scratch) -> Start:
    # Stateless, it would start the server anew for each request.
    words = ("--outputTransport", "streamableHttp", "--stateful", "--port", str(port), "--logLevel", "none")
    return [str(NODE), str(SUPERGATEWAY.program), "--stdio", shlex.join(fast_echo()), *words], {}


_COMMANDS: dict[str, Callable[[int, Path, Scratch], Start]] = {
    OURS.name: _dari,
    PROXY.name: _mcp_proxy,
    PROXY_TUNED.name: _mcp_proxy_tuned,
    FASTMCP_RUN.name: _fastmcp_run,
    FASTMCP_SHARED.name: _fastmcp_shared,
    SUPERGATEWAY.name: _supergateway,
}
