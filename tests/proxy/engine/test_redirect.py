"""The transparent listener behind a real redirect: iptables in a network namespace that the test makes for itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("redirect_script.py")
TOOLS = ("unshare", "ip", "iptables", "ip6tables")


def missing() -> str | None:
    if sys.platform != "linux":
        return "SO_ORIGINAL_DST is Linux's"
    if os.geteuid() != 0:
        return "a network namespace with iptables needs root"
    gone = [tool for tool in TOOLS if shutil.which(tool) is None]
    if gone:
        return f"not installed: {', '.join(gone)} (Debian: util-linux, iproute2, iptables)"
    tried = subprocess.run(
        ["unshare", "-n", "iptables", "-t", "nat", "-L"], capture_output=True, text=True, timeout=20, check=False
    )
    return f"no NAT in a namespace here: {tried.stderr.strip()}" if tried.returncode else None


@pytest.mark.parametrize("family", ["4", "6"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_redirected_connection_goes_to_where_it_was_going(family: str, loop: str) -> None:
    reason = missing()
    if reason is not None:
        pytest.skip(f"the redirect was NOT tried: {reason}")
    command = ["unshare", "-n", sys.executable, str(SCRIPT), family, loop]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, env=env)
    assert ran.returncode == 0, ran.stderr
    if "skip" in (seen := json.loads(ran.stdout)):
        pytest.skip(f"the redirect was NOT tried: {seen['skip']}")
    host = "10.9.9.9" if family == "4" else "fd99::9"
    text = host if family == "4" else f"[{host}]"
    # By its address, whatever Host says; the origin is not listening where the redirect leads.
    assert seen["plain"] == ["HTTP/1.1 200 OK", "http://named.example/plain", f"{host} 80"]
    assert seen["tls"] == ["HTTP/1.1 200 OK", "https://named.example/tls", f"{host} 443"]
    assert seen["tunnel"] == ["220 hello", f"{text}:2525", f"{host} 2525"]
