"""The guide's example of a daemon's tool, followed to the letter in a copy of the source, and called."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.crab_processes import run_directory
from tests.support.wire import ROOT

MAX_SOURCE_FILES = 4
_STEP = re.compile(r"`src/dari/([\w/]+\.py)`(?: in the\s+class `(\w+)`)?[^`]*?:\n\n```python\n(.*?)```", re.DOTALL)


def follow_the_guide(source: Path) -> list[str]:
    """Make the guide's changes below `source`; returns the files that were touched."""
    section = (ROOT / "docs/guide/toolkits.md").read_text().partition("## A tool of a daemon")[2]
    touched = []
    for path, class_name, code in _STEP.findall(section):
        file = source / "dari" / path
        file.write_text(_added_to(file.read_text(), class_name, code) if class_name else code)
        touched.append(path)
    return touched


def _added_to(module: str, class_name: str, code: str) -> str:
    """Lines at the margin are imports; the rest goes to the end of the class."""
    imports = "".join(f"{line}\n" for line in code.splitlines() if line and not line.startswith(" "))
    method = "".join(f"{line}\n" for line in code.splitlines() if not line or line.startswith(" "))
    tree = ast.parse(module)
    (cls,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name)
    first = next(node.lineno for node in tree.body if isinstance(node, ast.ImportFrom) and node.module != "__future__")
    lines = module.splitlines(keepends=True)
    assert cls.end_lineno is not None
    return "".join([*lines[: first - 1], imports, *lines[first - 1 : cls.end_lineno], method, *lines[cls.end_lineno :]])


def test_a_daemons_tool_takes_at_most_four_source_files_and_answers_over_the_daemon(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src/dari", tmp_path / "dari", ignore=shutil.ignore_patterns("__pycache__"))
    touched = follow_the_guide(tmp_path)
    assert len(set(touched)) == len(touched) == 3 <= MAX_SOURCE_FILES
    crabd = tmp_path / "crabd"  # a daemon is started without our environment
    crabd.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} -P -m dari.cli.crabd "$@"\n')
    crabd.chmod(0o700)
    with run_directory() as run_dir:
        calls = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _INITIALIZE},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "crab_traffic_hosts"}},
            {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": _with_limit(0)},
        ]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "dari.cli.crab_mcp", "--run-dir", str(run_dir), "--daemon-path", str(crabd)],
            input="".join(f"{json.dumps(call)}\n" for call in calls),
            env={**os.environ, "PYTHONPATH": str(tmp_path), "HOME": str(run_dir)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        replies = {reply["id"]: reply for line in done.stdout.splitlines() if "id" in (reply := json.loads(line))}
    assert replies[2]["result"].get("structuredContent") == {"hosts": {}}, (replies[2], done.stderr)
    assert replies[3]["result"]["isError"]


_INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def _with_limit(limit: int) -> dict[str, object]:
    return {"name": "crab_traffic_hosts", "arguments": {"limit": limit}}
