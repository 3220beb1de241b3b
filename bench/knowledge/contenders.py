"""Who is measured: kebab as it is installed here, SQLite's FTS5 of this Python, the others at pinned versions."""

import sqlite3
from dataclasses import replace
from pathlib import Path

from bench.machine import ROOT
from bench.peers import PEERS, Peer, install
from bench.programs import Contender, python_package

PYTHON = ROOT / ".venv" / "bin" / "python"
LANCEDB_HOME = Peer("lancedb", ("lancedb==0.40.0", "numpy==2.4.6", "pyarrow==26.0.1"), is_constrained=False)
BM25S_HOME = Peer("bm25s", ("bm25s==0.3.16", "numpy==2.4.6"), is_constrained=False)

OURS = Contender("dari", "Dari", PYTHON, python_package(PYTHON, "dari", "tantivy", "usearch", "numpy"))
FTS5 = Contender("fts5", "SQLite FTS5", PYTHON, lambda: f"sqlite {sqlite3.sqlite_version}")
LANCEDB = Contender("lancedb", "LanceDB flat", LANCEDB_HOME.python, python_package(LANCEDB_HOME.python, "lancedb"))
BM25S = Contender("bm25s", "bm25s", BM25S_HOME.python, python_package(BM25S_HOME.python, "bm25s"))
FTS5_AND_LANCEDB = replace(LANCEDB, name="fts5-lancedb", title="FTS5 + LanceDB flat")
SDK = Contender("sdk", "official SDK", PEERS[0].python, python_package(PEERS[0].python, "mcp"))
CALL_TOOL = replace(OURS, name="call-tool", title="warm `dari remote call-tool`")
CONTENDERS = (OURS, FTS5, LANCEDB, BM25S, SDK)
"""Each program once."""


def install_peers() -> None:
    for peer in (LANCEDB_HOME, BM25S_HOME, PEERS[0]):
        install(peer)


def child_command(contender: Contender, folder: Path, passages: int) -> list[str]:
    return [str(contender.program), "-m", f"bench.knowledge.{contender.name}_child", str(folder), str(passages)]
