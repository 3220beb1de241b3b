"""The line of the guide that puts the panes into bubblewrap, run as it is written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.support.crux_command import OURS

CHECKOUT = Path(__file__).parents[3]
GUIDE = CHECKOUT / "docs/guide/terminal-policy.md"
BIN = Path(sys.prefix, "bin")


def _missing(why: str) -> None:
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


def _require_bwrap() -> None:
    if shutil.which("bwrap") is None:
        _missing("THE BOX AROUND PANES WAS NOT TESTED: there is no bwrap")
    probe = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "true"]
    if subprocess.run(probe, capture_output=True, timeout=30).returncode:
        _missing("THE BOX AROUND PANES WAS NOT TESTED: bwrap makes no namespaces here")


def test_panes_in_the_box_of_the_guide_work_and_cannot_see_what_is_outside() -> None:
    _require_bwrap()
    block = next(text for text in re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL) if "bwrap" in text)
    block = block.replace("/path/to/dari", str(CHECKOUT))
    with tempfile.TemporaryDirectory(prefix="box") as name:
        home = Path(name)
        for folder in ("project", "secret"):
            (home / folder).mkdir()
        (home / "secret" / "key").write_text("hunter2")
        kept = {key: value for key, value in os.environ.items() if key not in OURS}
        env = {**kept, "HOME": name, "PATH": f"{BIN}:{kept['PATH']}", "SHELL": "/bin/bash", "LC_ALL": "C.UTF-8"}
        env |= {"DARI_HOME": f"{name}/.crux/dari", "CRUX_SOCKET": f"{name}/.crux/mcp.sock"}

        def crux(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run([BIN / "crux", *words], env=env, capture_output=True, text=True, timeout=60)

        log = (home / "log").open("w")
        daemon = subprocess.Popen(["sh", "-c", block], env=env, stdout=log, stderr=log, cwd=name)
        try:
            deadline = time.monotonic() + 60
            while not (home / ".crux/mcp.sock").exists():
                assert daemon.poll() is None and time.monotonic() < deadline, (home / "log").read_text()
                time.sleep(0.05)
            seen = crux("exec", "cat ~/secret/key; ls -A ~; touch /usr/touched; pwd; cd ~/project && echo yes > made")
            assert seen.returncode == 0, seen
            assert "hunter2" not in seen.stdout and "No such file" in seen.stdout and "Read-only" in seen.stdout
            assert re.search(r"^\.crux\s+project$", seen.stdout, re.MULTILINE)
            assert (home / "project" / "made").read_text() == "yes\n"
            assert not Path("/usr/touched").exists()
            assert crux("send-text", "--enter", "echo ty''ped").returncode == 0
            assert crux("wait", "typed", "--seen").returncode == 0
            assert crux("exec", "sh -c 'exit 7'").returncode == 7
            assert crux("kill-server").returncode == 0
            assert daemon.wait(30) == 0, (home / "log").read_text()
        finally:
            daemon.kill()
            daemon.wait()
            log.close()
