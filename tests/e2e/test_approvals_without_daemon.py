"""A command that runs without the daemon and needs a person: it waits in the hub's queue, or it is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest

from tests.support.crux_command import end_hub, set_home

pytestmark = pytest.mark.e2e
BIN = Path(sys.executable).parent
CALL = [str(BIN / "dari"), "remote", "call-tool", "wipe", "--server", "guarded", "--no-daemon"]
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        result = {"capabilities": {"tools": {}}, "serverInfo": {"name": "guarded", "version": "1"}}
        result["protocolVersion"] = asked["params"]["protocolVersion"]
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "wipe", "inputSchema": {"type": "object"}}]}
    else:
        result = {"content": [{"type": "text", "text": "wiped"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    with TemporaryDirectory(prefix="alone-") as folder, patch.dict(os.environ, set_home(Path(folder)), clear=True):
        home = Path(folder)
        (home / "server.py").write_text(SERVER)
        entry = {"id": "guarded", "kind": "stdio", "command": sys.executable, "args": [f"{home}/server.py"]}
        entry |= {"tools": {"confirm": ["wipe"]}, "sandbox": "off"}
        file = home / ".config/crewx/mcp.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"version": "1", "servers": [entry]}))
        file.chmod(0o600)
        try:
            yield home
        finally:
            end_hub()


@pytest.mark.parametrize(("answer", "code", "said"), [("approve", 0, "wiped"), ("deny", 2, "denied")])
def test_a_person_answers_in_the_hubs_queue(home: Path, answer: str, code: int, said: str) -> None:
    with subprocess.Popen(
        CALL, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as call:
        assert call.stderr is not None
        found = re.search(r"approval (\w+)", call.stderr.readline())
        assert found is not None
        shown = subprocess.run([BIN / "dari", "approvals"], capture_output=True, text=True, check=True, timeout=60)
        assert found[1] in shown.stdout and "guarded/wipe" in shown.stdout
        subprocess.run([BIN / "dari", "approvals", answer, found[1]], check=True, capture_output=True, timeout=60)
        out, err = call.communicate(timeout=60)
    assert call.returncode == code and said in out + err, (out, err)


def test_where_no_hub_can_be_had_the_call_is_refused(home: Path) -> None:
    environment = {**os.environ, "DARI_CHILD": "x"}
    done = subprocess.run(
        CALL, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert done.returncode == 2 and "wiped" not in done.stdout, done


def dari(*words: str, code: int = 0) -> str:
    done = subprocess.run([BIN / "dari", *words], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def test_a_rule_lets_later_calls_through_until_it_is_taken_back(home: Path) -> None:
    """In the hub this time: the daemon's own calls."""
    call = [word for word in CALL if word != "--no-daemon"]
    with subprocess.Popen(call, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as first:
        id = ""
        while not id:
            waiting = json.loads(dari("approvals", "--json"))["waiting"]
            id = waiting[0]["id"] if waiting else ""
        assert "at a terminal" in dari("approvals", "approve", id, "--always", code=1)
        assert "NAME=PATTERN" in dari("approvals", "approve", id, "--always", "--like", "x", "--yes", code=1)
        assert "time like 15m" in dari("approvals", "approve", id, "--always", "--lasts", "soon", "--yes", code=1)
        said = dari("approvals", "approve", id, "--always", "--lasts", "8h", "--yes")
        assert "from now on without asking: guarded/wipe" in said
        out, _ = first.communicate(timeout=60)
    assert "wiped" in out
    again = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=60)
    assert "wiped" in again.stdout
    (use,) = json.loads(dari("approvals", "rules", "--json"))["rules"]
    assert use["uses"] == 1 and use["rule"]["id"] in dari("approvals", "rules")
    assert "taken back: guarded/wipe" in dari("approvals", "forget", use["rule"]["id"])
    assert "no call is approved for good" in dari("approvals", "rules")
    assert json.loads(dari("approvals", "--json"))["waiting"] == []
