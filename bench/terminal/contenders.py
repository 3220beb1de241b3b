"""Who is measured: ours as `pip install` leaves it, tmux of the system, the others at pinned versions."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from bench.machine import ROOT
from bench.peers import Peer, install
from bench.programs import Contender, python_package, said

PYTE_HOME = Peer("pyte", ("pyte==0.8.2",), is_constrained=False)
# An SDK and a FastMCP of its own choice.
LIBTMUX_HOME = Peer("libtmux-mcp", ("libtmux-mcp==0.1.0a22",), is_constrained=False)
CAIROSVG_HOME = Peer("cairosvg", ("cairosvg==2.9.1",), is_constrained=False)  # needs libcairo2 from the system
BIN = ROOT / ".venv" / "bin"
TMUX_PATH = Path(shutil.which("tmux") or "/usr/bin/tmux")


def _tmux(name: str, title: str) -> Contender:
    return Contender(name, title, TMUX_PATH, lambda: said([str(TMUX_PATH), "-V"]))


_ours = python_package(BIN / "python", "dari", "pyghostty")
_pyte = python_package(PYTE_HOME.python, "pyte")
OURS = Contender("dari", "Dari", BIN / "crux-mcp-bridge", _ours)
FULL = Contender("dari-full", "Dari, full", BIN / "crux-mcp-bridge", _ours)
TMUX = _tmux("tmux", "tmux")
TMUX_USER_CPU = _tmux("tmux-cpu", "tmux, its own CPU alone")
TMUX_POLLED = _tmux("tmux-polled", "tmux send-keys, polled")
POLLER = _tmux("poller", "a 50 ms poller")
PYTE = Contender("pyte", "pyte", PYTE_HOME.python, _pyte)
PYTE_HISTORY = Contender("pyte-history", "pyte with history", PYTE_HOME.python, _pyte)
LIBTMUX = Contender(
    "libtmux-mcp",
    "libtmux-mcp",
    LIBTMUX_HOME.home / "bin" / "libtmux-mcp",
    python_package(LIBTMUX_HOME.python, "libtmux-mcp", "libtmux", "fastmcp", "mcp"),
)
CAIROSVG = Contender("cairosvg", "cairosvg", CAIROSVG_HOME.python, python_package(CAIROSVG_HOME.python, "cairosvg"))

CONTENDERS = (OURS, TMUX, PYTE, LIBTMUX, CAIROSVG)
"""Each program once; the others are ways to use one of them."""


def present(wanted: Sequence[Contender]) -> list[Contender]:
    return [contender for contender in wanted if not contender.missing]


def install_peers() -> None:
    for peer in (PYTE_HOME, LIBTMUX_HOME, CAIROSVG_HOME):
        install(peer)
