"""Who is measured: the console of `dari up`, mitmweb, and the page of the MCP Inspector."""

import os
import shutil
from pathlib import Path

from bench.machine import ROOT
from bench.peers import Peer, install
from bench.programs import Contender, python_package, said
from bench.proxy.contenders import MITMPROXY

NODE = Path(os.environ.get("DARI_NODE", "node"))
NPM_DIR = Path(os.environ.get("DARI_BENCH_NPM_DIR", ROOT / ".dev" / "bench" / "npm-console"))
INSPECTOR_HOME = NPM_DIR / "node_modules" / "@modelcontextprotocol" / "inspector"
CHROMIUM = shutil.which("chromium") or ""
BIN = ROOT / ".venv" / "bin"
PEER: Peer = MITMPROXY


def _inspector_version() -> str:
    script = f"console.log(require('{INSPECTOR_HOME}/package.json').version, process.version)"
    version, _, node = said([str(NODE), "-e", script]).partition(" ")
    return f"@modelcontextprotocol/inspector {version}, node {node}"


OURS = Contender("dari", "Dari", BIN / "dari", python_package(BIN / "python", "dari"))
MITMWEB = Contender("mitmweb", "mitmweb", PEER.home / "bin" / "mitmweb", python_package(PEER.python, "mitmproxy"))
INSPECTOR = Contender(
    "inspector", "MCP Inspector", INSPECTOR_HOME / "clients" / "launcher" / "build" / "index.js", _inspector_version
)
EMPTY = Contender("empty", "an empty page", Path("/"), lambda: "")
"""A page with nothing on it, in the same Chromium."""

CONTENDERS = (OURS, MITMWEB, INSPECTOR)


def install_peers() -> None:
    install(PEER)
