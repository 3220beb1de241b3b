"""Who is measured: `crewx-tools serve` as installed here, ripgrep and ruff from a shell, other people's servers."""

import json
import os
from collections.abc import Callable
from pathlib import Path

from bench.machine import ROOT
from bench.peers import PEERS, Peer, install
from bench.programs import Contender, python_package, said

BIN = ROOT / ".venv" / "bin"
NODE = Path(os.environ.get("DARI_NODE", "node"))
MODULES = Path(os.environ.get("DARI_BENCH_NPM_DIR", ROOT / ".dev" / "bench" / "npm-codetools")) / "node_modules"
# It wants the SDK of before 2.0, and says so nowhere.
MCP_GREP_HOME = Peer("mcp-grep", ("mcp-grep==0.2.1", "mcp<2"), is_constrained=False)


def _npm_package(folder: Path) -> Callable[[], str]:
    return lambda: "{name} {version}".format(**json.loads((folder / "package.json").read_text()))


_RIPGREP_SERVER = MODULES / "mcp-ripgrep"
_FILESYSTEM_SERVER = MODULES / "@modelcontextprotocol" / "server-filesystem"

OURS = Contender("dari", "Dari", BIN / "crewx-tools", python_package(BIN / "python", "dari", "ripgrep", "ruff"))
RIPGREP = Contender("rg", "`rg --json` from a shell", BIN / "rg", lambda: said([str(BIN / "rg"), "-V"]))
RUFF = Contender("ruff", "`ruff check` from a shell", BIN / "ruff", lambda: said([str(BIN / "ruff"), "--version"]))
MCP_RIPGREP = Contender(
    "mcp-ripgrep", "mcp-ripgrep", _RIPGREP_SERVER / "dist" / "index.js", _npm_package(_RIPGREP_SERVER)
)
MCP_GREP = Contender(
    "mcp-grep",
    "mcp-grep",
    MCP_GREP_HOME.home / "bin" / "mcp-grep-server",
    python_package(MCP_GREP_HOME.python, "mcp-grep"),
)
FILESYSTEM = Contender(
    "filesystem",
    "server-filesystem",
    _FILESYSTEM_SERVER / "dist" / "index.js",
    _npm_package(_FILESYSTEM_SERVER),
)
SDK = Contender("sdk", "official SDK", PEERS[0].python, python_package(PEERS[0].python, "mcp"))
CONTENDERS = (OURS, RIPGREP, MCP_RIPGREP, MCP_GREP, FILESYSTEM, RUFF, SDK)


def install_peers() -> None:
    install(MCP_GREP_HOME)
    install(PEERS[0])


def server_command(contender: Contender, tree: Path) -> list[str]:
    """A server that may read the tree."""
    if contender is OURS:
        return [str(OURS.program), "serve", "--root", str(tree)]
    if contender is MCP_GREP:
        return [str(MCP_GREP.program)]
    return [str(NODE), str(contender.program), *([str(tree)] if contender is FILESYSTEM else [])]
