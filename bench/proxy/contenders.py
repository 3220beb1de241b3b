"""Who is measured: Dari with ten rules and its log, peers at their fastest sensible settings."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.machine import ROOT
from bench.peers import Peer, install
from bench.proxy.certificates import Pair
from bench.proxy.origin import Origin
from bench.proxy.state import prepare

Mode = Literal["plain", "decrypted", "tunnel"]
"""What is done with TLS; in `plain` there is none, and a proxy is set up as for `decrypted`."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the command line of a proxy names."""

    home: Path
    origin: Origin
    authority: Pair
    leaf_key: Path


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    title: str
    program: Path
    arguments: Callable[[Surroundings, int, Mode], list[str]]
    version: Callable[[], str]

    @property
    def missing(self) -> str:
        """Why it cannot start, or an empty string."""
        return "" if self.program.exists() else f"{self.program} does not exist"

    def command(self, around: Surroundings, port: int, mode: Mode) -> list[str]:
        return [str(self.program), *self.arguments(around, port, mode)]


# Pins of their own and no constraints of ours: mitmproxy 11.0.2 asks for versions that are older than all of them.
MITMPROXY = Peer("mitmdump", ("mitmproxy==11.0.2",), is_constrained=False)
PROXY_PY = Peer("proxypy", ("proxy.py==2.4.10",), is_constrained=False)
MOCKTTP_HOME = Path(os.environ.get("DARI_BENCH_NPM_DIR", ROOT / ".dev" / "bench" / "npm"))


def _dari(around: Surroundings, port: int, mode: Mode) -> list[str]:
    home = around.home / f"dari-{port}"
    prepare(home / "state", port, around.origin, decrypts=mode != "tunnel")
    return ["serve", "--run-dir", str(home), "--state-dir", str(home / "state")]


def _mitmdump(around: Surroundings, port: int, mode: Mode) -> list[str]:
    address = ("--listen-host", "127.0.0.1", "--listen-port", str(port))
    ignored = ("--ignore-hosts", rf"^127\.0\.0\.1:{around.origin.tls_port}$") if mode == "tunnel" else ()
    return ["-q", "--ssl-insecure", "--set", f"confdir={around.home / 'mitmdump'}", *address, *ignored]


def _mitmdump_streaming(around: Surroundings, port: int, mode: Mode) -> list[str]:
    return [*_mitmdump(around, port, mode), "--set", "stream_large_bodies=1m"]


def _proxy_py(around: Surroundings, port: int, mode: Mode) -> list[str]:
    home = around.home / "proxypy"
    workers = ("--num-workers", "1", "--num-acceptors", "1", "--log-level", "ERROR")
    decrypting = (
        *("--ca-cert-file", str(around.authority.certificate), "--ca-key-file", str(around.authority.key)),
        *("--ca-signing-key-file", str(around.leaf_key), "--ca-cert-dir", str(home / "certificates")),
        # It loads a file of roots for each connection even when it verifies nothing; this one is short.
        *("--insecure-tls-interception", "--ca-file", str(around.authority.certificate)),
    )
    address = ("--hostname", "127.0.0.1", "--port", str(port), "--data-dir", str(home))
    return [*address, *workers, *(decrypting if mode == "decrypted" else ())]


def _mockttp(around: Surroundings, port: int, mode: Mode) -> list[str]:
    server = ROOT / "bench" / "proxy" / "mockttp_server.mjs"
    pair = around.authority
    return [str(server), str(MOCKTTP_HOME), str(port), mode, str(pair.certificate), str(pair.key)]


def _package(python: Path, name: str) -> Callable[[], str]:
    script = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
    return lambda: f"{name} {_said([str(python), '-c', script, name])}"


def _mockttp_version() -> str:
    script = f"console.log(require('{MOCKTTP_HOME}/node_modules/mockttp/package.json').version, process.version)"
    version, _, node = _said([str(_NODE), "-e", script]).partition(" ")
    return f"mockttp {version}, node {node}"


def _said(command: list[str]) -> str:
    reply = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return reply.stdout.strip() or "of an unknown version"


_NODE = Path(os.environ.get("DARI_NODE", "node"))
_OUR_PYTHON = ROOT / ".venv" / "bin" / "python"
_MITMDUMP = MITMPROXY.home / "bin" / "mitmdump"

OURS = Contender("dari", "Dari", _OUR_PYTHON.with_name("crabd"), _dari, _package(_OUR_PYTHON, "dari"))
MITM = Contender("mitmdump", "mitmdump", _MITMDUMP, _mitmdump, _package(MITMPROXY.python, "mitmproxy"))
MITM_STREAMING = Contender(
    "mitmdump-streaming", "mitmdump, streaming", _MITMDUMP, _mitmdump_streaming, _package(MITMPROXY.python, "mitmproxy")
)
PROXYPY = Contender(
    "proxypy", "proxy.py", PROXY_PY.home / "bin" / "proxy", _proxy_py, _package(PROXY_PY.python, "proxy.py")
)
MOCKTTP = Contender("mockttp", "mockttp", _NODE, _mockttp, _mockttp_version)

CONTENDERS = (OURS, MITM, PROXYPY, MOCKTTP)


def install_peers() -> None:
    for peer in (MITMPROXY, PROXY_PY):
        install(peer)
