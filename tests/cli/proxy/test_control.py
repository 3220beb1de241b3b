"""Starting, looking, stopping."""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path

import pytest

from tests.support.origins.origin import Origin
from tests.support.proxy_command import Shell, ran


def fetch(url: str, proxy: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy}))
    with opener.open(url, timeout=30) as response:
        body: bytes = response.read()
    return body


def test_start_brings_up_crabd_and_tells_how_to_use_the_proxy(shell: Shell) -> None:
    assert shell.daemon_pid is None
    said = shell("start", "--listen", "127.0.0.1:0", "--ca").out
    assert shell.daemon_pid is not None
    for word in ("The proxy listens on 127.0.0.1:", "dari proxy run -- CMD", 'eval "$(dari proxy env)"', "--cacert "):
        assert word in said


def test_start_is_idempotent_and_moves_a_running_proxy(shell: Shell, site: Origin) -> None:
    first = shell.json("start", "--listen", "127.0.0.1:0")
    assert (first["status"], first["was_running"], first["started_crabd"]) == ("running", False, True)
    again = shell.json("start")
    assert (again["was_running"], again["started_crabd"], again["address"]) == (True, False, first["address"])
    moved = shell.json("start", "--listen", "127.0.0.2:0")
    assert moved["address"].startswith("127.0.0.2:")
    assert fetch(site.url("/"), moved["proxy_url"])


def test_start_makes_a_ca_only_when_asked_and_only_once(shell: Shell) -> None:
    assert shell.json("start", "--listen", "127.0.0.1:0")["ca"] == "missing"
    assert shell.json("start", "--ca")["ca"] == "loaded"
    before = shell.json("ca")["sha256"]
    shell("start", "--ca")
    assert shell.json("ca")["sha256"] == before


def test_a_taken_port_is_an_error_with_a_hint_and_no_payload(shell: Shell, site: Origin) -> None:
    said = shell("start", "--listen", site.authority, code=3)
    assert said.out == ""
    assert said.err.startswith("error: ") and "\nhint: " in said.err


def test_stop_keeps_crabd_and_stop_daemon_ends_it(shell: Shell) -> None:
    shell.started()
    pid = shell.daemon_pid
    assert pid is not None
    assert shell.json("stop") == {"status": "stopped", "daemon": "running"}
    assert shell.daemon_pid == pid
    assert shell.json("stop", "--daemon") == {"status": "stopped", "daemon": "stopped"}
    assert shell.daemon_pid is None


@pytest.mark.parametrize(
    "words", [("stop",), ("stop", "--daemon"), ("status",), ("mcp",), ("mcp", "stop"), ("doctor",)]
)
def test_what_needs_no_crabd_does_not_start_one(shell: Shell, words: tuple[str, ...]) -> None:
    shell(*words)
    assert shell.daemon_pid is None


def test_status_counts_and_names_the_daemon(shell: Shell, site: Origin) -> None:
    assert shell.json("status")["daemon"] == "stopped"
    assert "dari proxy start" in shell("status").out
    proxy = shell.started()
    fetch(site.url("/one"), proxy)
    found = shell.json("status")
    assert (found["status"], found["requests_recorded"], found["pid"]) == ("running", 1, shell.daemon_pid)
    said = shell("status").out
    assert said.startswith("running on 127.0.0.1:")
    assert "\x1b" not in said


def test_capture_off_passes_requests_without_recording_them(shell: Shell, site: Origin) -> None:
    proxy = shell.started()
    assert shell.json("capture") == {"status": "running"}
    assert "off" in shell("capture", "off").out
    fetch(site.url("/unseen"), proxy)
    shell("capture", "on")
    fetch(site.url("/seen"), proxy)
    assert [flow["url"] for flow in shell.json("traffic")["flows"]] == [site.url("/seen")]


def test_env_is_a_script_for_the_shell_that_was_named(shell: Shell) -> None:
    said = shell("env", code=3)
    assert "dari proxy start" in said.err
    proxy = shell.started()
    assert f"export HTTP_PROXY={proxy}\n" in shell("env").out
    assert f"set -gx HTTP_PROXY {proxy}\n" in shell("env", "--shell", "fish").out
    assert f"$env:HTTP_PROXY = '{proxy}'\n" in shell("env", "--shell", "powershell").out
    assert shell.json("env")["variables"]["HTTP_PROXY"] == proxy
    assert "crab_" not in str(shell.json("env"))


def test_doctor_speaks_of_commands_and_fails_only_for_failures(shell: Shell) -> None:
    shell.started()
    said = shell("doctor").out
    assert "warn  ca        no CA" in said
    assert "hint: dari proxy ca generate makes one" in said
    checks = {check["name"]: check for check in shell.json("doctor")["checks"]}
    assert checks["socket"]["status"] == "ok"


def test_another_crabd_is_reached_by_its_run_directory_before_or_after_the_word(shell: Shell, home: Path) -> None:
    other = home / "o"
    started = shell.json("start", "--listen", "127.0.0.1:0", "--run-dir", str(other))
    try:
        assert shell.daemon_pid is None
        assert (other / "crabd.sock").exists()
        assert shell.json("--run-dir", str(other), "status")["address"] == started["address"]
        by_socket = ("status", "--socket", str(other / "crabd.sock"), "--run-dir", str(other))
        assert shell.json(*by_socket)["address"] == started["address"]
    finally:
        shell("stop", "--daemon", "--run-dir", str(other))


def test_the_command_itself_answers_a_script(shell: Shell) -> None:
    said = ran("status", "--json", env=dict(os.environ))
    assert said.code == 0 and said.err == ""
    assert said.json["status"] == "stopped"
