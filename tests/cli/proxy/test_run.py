"""`dari proxy run -- CMD`: the command's own world, what it requested, and nothing left afterwards."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from dari.cli.kit.console import Output
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.lease import lease_path
from dari.cli.proxy.run import _ensure_ca
from tests.support.origins.origin import Origin, answering
from tests.support.proxy_command import JSON, JSON_BODY, THEIRS, Shell, dari, ran, serving, trusting_origins

FETCH = """
import sys, urllib.request
for url in sys.argv[1:]:
    sys.stdout.buffer.write(urllib.request.urlopen(url).read())
"""


def fetching(*urls: str) -> tuple[str, ...]:
    """A command that gets these with the variables of its environment alone."""
    return (sys.executable, "-c", FETCH, *urls)


def assert_untouched(shell: Shell) -> None:
    assert shell.daemon_pid is None
    state = shell.place.state_dir
    assert json.loads((state / "rules.json").read_text())["rules"] == []
    assert json.loads((state / "config.json").read_text())["is_running"] is False


def test_a_command_is_shown_with_its_requests_and_its_own_output(shell: Shell, site: Origin) -> None:
    shell.asleep()
    said = shell("run", "--", *fetching(site.url("/a"), site.url("/b?x=1")))
    assert said.out == JSON_BODY.decode() * 2
    assert "2 requests" in said.err
    assert "GET     200" in said.err and site.url("/b?x=1") in said.err
    assert_untouched(shell)


def test_https_is_decrypted_for_the_command_alone(shell: Shell) -> None:
    trusting_origins(shell)
    shell.asleep()
    with serving(answering(JSON), THEIRS.context_for("localhost")) as site:
        url = f"https://localhost:{site.port}/secret"
        said = shell("run", "--", *fetching(url))
    assert said.out == JSON_BODY.decode()
    assert "made a CA to decrypt with" in said.err
    assert "200" in said.err and url in said.err
    assert_untouched(shell)


def test_without_decryption_a_tunnel_is_all_that_is_seen(shell: Shell) -> None:
    shell("set", "listen", "127.0.0.1:0")
    roots = shell.home / "roots.pem"
    roots.write_bytes(THEIRS.pem)
    command = "import ssl, sys, urllib.request as r; c = ssl.create_default_context(cafile=sys.argv[2]); "
    command += "print(r.urlopen(sys.argv[1], context=c).status)"
    with serving(answering(JSON, closes=True), THEIRS.context_for("localhost")) as site:
        url = f"https://localhost:{site.port}/secret"
        said = shell("run", "--no-decrypt", "--", sys.executable, "-c", command, url, str(roots))
    assert said.out == "200\n"
    assert f"localhost:{site.port}  [not decrypted" in said.err
    assert "/secret" not in said.err
    assert shell.json("ca")["loaded"] is False


def test_named_hosts_are_decrypted_and_plain_requests_to_others_still_shown(shell: Shell, site: Origin) -> None:
    trusting_origins(shell)
    with serving(answering(JSON), THEIRS.context_for("localhost")) as secure:
        url = f"https://localhost:{secure.port}/in"
        shell.started()
        said = shell("run", "--host", "localhost", "--", *fetching(url, site.url("/plain")))
    assert url in said.err and site.url("/plain") in said.err
    assert shell.json("rules")["rules"] == []


def test_a_proxy_that_ran_before_goes_on_with_its_rules_and_capture(shell: Shell, site: Origin) -> None:
    shell.started()
    shell("rules", "add", "allow", "example.com")
    shell("capture", "off")
    before = shell.json("status")
    assert "1 request," in shell("run", "--no-decrypt", "--", *fetching(site.url("/x"))).err
    after = shell.json("status")
    for name in ("status", "address", "rules", "capture", "pid"):
        assert after[name] == before[name]
    assert [rule["matcher"] for rule in shell.json("rules")["rules"]] == ["example.com"]


def test_rules_act_on_the_command(shell: Shell, site: Origin) -> None:
    shell("set", "listen", "127.0.0.1:0")
    shell("rules", "add", "map-local", site.url("/a"), "--text", "mocked")
    assert shell("run", "--", *fetching(site.url("/a"))).out == "mocked"
    assert site.requests == []


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_code_is_the_commands(shell: Shell, code: int) -> None:
    shell.asleep()
    said = shell("run", "--", "/bin/sh", "-c", f"echo out; echo err >&2; exit {code}", code=code)
    assert said.out == "out\n"
    assert said.err.startswith("err\n") or "\nerr\n" in said.err
    assert "No requests" in said.err


def test_a_command_that_a_signal_ends_is_told_as_shells_do(shell: Shell) -> None:
    shell.asleep()
    shell("run", "--no-decrypt", "--", "/bin/sh", "-c", "kill -TERM $$", code=128 + signal.SIGTERM)
    assert_untouched(shell)


def test_stdin_and_the_environment_are_passed_through(shell: Shell) -> None:
    shell.asleep()
    command = 'read line; echo "$line $MINE $HTTP_PROXY"'
    process = dari("run", "-q", "--", "/bin/sh", "-c", command, stdin=subprocess.PIPE, env={**os.environ, "MINE": "me"})
    out, err = process.communicate("hello\n", timeout=40)
    assert out.startswith("hello me http://127.0.0.1:"), err
    assert "requests" not in err


def test_a_missing_command_starts_nothing(shell: Shell) -> None:
    assert "no such command" in shell("run", "--", "no-such-command-at-all", code=127).err
    text = shell.home / "text"
    text.touch(0o600)
    assert "cannot be executed" in shell("run", "--", str(text), code=126).err
    assert "hint: dari proxy run -- CMD" in shell("run", code=1).err
    assert "exclude each other" in shell("run", "--no-decrypt", "--host", "x", "--", "true", code=1).err
    assert shell.daemon_pid is None


def test_requests_are_written_as_json_and_har(shell: Shell, site: Origin, home: Path) -> None:
    shell.asleep()
    files = ("--json", str(home / "out.json"), "--har", str(home / "out.har"))
    shell("run", "-q", *files, "--", *fetching(site.url("/one"), site.url("/two")))
    flows = json.loads((home / "out.json").read_text())["flows"]
    assert [flow["url"] for flow in flows] == [site.url("/one"), site.url("/two")]
    har = (home / "out.har").read_text()
    assert [entry["request"]["url"] for entry in json.loads(har)["log"]["entries"]] == [
        site.url("/one"),
        site.url("/two"),
    ]
    assert "s3cr3t" not in har
    said = shell("run", "-q", "--json", "-", "--", "/bin/sh", "-c", "true")
    assert json.loads(said.out) == {"flows": [], "count": 0}


def test_a_report_that_cannot_be_written_leaves_the_exit_code_alone(shell: Shell) -> None:
    shell.asleep()
    said = shell("run", "--json", "/nowhere/out.json", "--", "/bin/sh", "-c", "exit 5", code=5)
    assert "error: cannot write /nowhere/out.json" in said.err
    assert_untouched(shell)


def test_a_taken_port_is_stepped_around_and_set_back(shell: Shell, site: Origin) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        shell("set", "listen", address)
        assert "1 request" in shell("run", "--", *fetching(site.url("/x"))).err
        assert shell.json("config")["listen_addr"] == address
        assert shell.json("status")["status"] == "stopped"


WAITING = "import signal, sys; print('ready', flush=True); signal.pause()"


def line_of(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_reaches_the_command_and_nothing_is_left(shell: Shell, number: signal.Signals) -> None:
    shell.asleep()
    process = dari("run", "--", sys.executable, "-c", WAITING)
    assert line_of(process.stdout) == "ready\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=40)
    # Python ends itself by KeyboardInterrupt, which is SIGINT to its parent.
    assert process.returncode == 128 + number
    assert "No requests" in err
    assert_untouched(shell)


COUNTING = """
import signal, sys
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
print("ready", flush=True)
while not seen:
    signal.sigtimedwait([signal.SIGUSR1], 0.01)
signal.sigtimedwait([signal.SIGUSR1], 0.5)
print("seen", len(seen), flush=True)
"""
ON_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


def test_ctrl_c_at_a_terminal_reaches_the_command_once(shell: Shell) -> None:
    shell.asleep()
    master, slave = os.openpty()
    words = (sys.executable, "-m", "dari", "proxy", "run", "--", sys.executable, "-c", COUNTING)
    command = [sys.executable, "-c", ON_TERMINAL, *words]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    shown = b""
    while b"ready" not in shown:
        shown += os.read(master, 1024)
    os.write(master, b"\x03")
    try:
        while piece := os.read(master, 1024):
            shown += piece
    except OSError:
        pass  # how a terminal says that nobody holds its other end
    os.close(master)
    assert process.wait(40) == 0
    assert b"seen 1\r\n" in shown
    assert_untouched(shell)


def test_the_last_of_two_runs_turns_the_lights_off(shell: Shell, site: Origin) -> None:
    shell.asleep()
    waits = "import sys, urllib.request as r; print('up', flush=True); sys.stdin.readline(); "
    waits += "print(r.urlopen(sys.argv[1]).status)"
    first = dari("run", "--", sys.executable, "-c", waits, site.url("/first"), stdin=subprocess.PIPE)
    assert line_of(first.stdout) == "up\n"
    second = dari("run", "--", sys.executable, "-c", waits, site.url("/second"), stdin=subprocess.PIPE)
    assert line_of(second.stdout) == "up\n"
    out, err = first.communicate("\n", timeout=40)
    assert (out, first.returncode) == ("200\n", 0), err
    assert shell.daemon_pid is not None
    out, err = second.communicate("\n", timeout=40)
    assert (out, second.returncode) == ("200\n", 0), err
    assert "/second" in err
    assert_untouched(shell)


def test_a_start_on_purpose_during_a_run_outlives_it(shell: Shell) -> None:
    shell.asleep()
    process = dari("run", "--", sys.executable, "-c", "print('up', flush=True); input()", stdin=subprocess.PIPE)
    assert line_of(process.stdout) == "up\n"
    shell("start")
    process.communicate("\n", timeout=40)
    assert shell.json("status")["status"] == "running"


def test_what_a_killed_run_left_behind_is_put_right_by_the_next(shell: Shell) -> None:
    shell.asleep()
    process = dari("run", "--", sys.executable, "-c", "print('up', flush=True); input()", stdin=subprocess.PIPE)
    assert line_of(process.stdout) == "up\n"
    process.kill()
    process.communicate(timeout=40)
    assert len(shell.json("rules")["rules"]) == 1
    said = ran("run", "-q", "--", "/bin/sh", "-c", "true")
    assert said.code == 0, said.err
    assert_untouched(shell)


def waiting_for_the_lease(process: subprocess.Popen[str], path: Path) -> None:
    """Return once the command has opened the lease, which it waits for with its signals in hand."""
    while str(path) not in opened_by(process.pid):
        assert process.poll() is None


def opened_by(pid: int) -> set[str]:
    found = set()
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.add(os.readlink(f"/proc/{pid}/fd/{number}"))
        except FileNotFoundError:
            continue  # closed meanwhile
    return found


def test_a_signal_before_the_command_runs_ends_the_run_without_it(shell: Shell) -> None:
    shell.asleep()
    path = lease_path(shell.place)
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = dari("run", "--", "/bin/sh", "-c", "echo ran")
        waiting_for_the_lease(process, path)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=40)
    assert (out, process.returncode) == ("", 128 + signal.SIGINT), err
    assert_untouched(shell)


def test_a_second_signal_waits_for_nothing(shell: Shell) -> None:
    shell.asleep()
    path = lease_path(shell.place)
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = dari("run", "--", "/bin/sh", "-c", "echo ran")
        waiting_for_the_lease(process, path)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=40)
    assert out == "" and process.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM), err
    assert_untouched(shell)


def test_the_variables_of_env_work_in_a_shell(shell: Shell) -> None:
    trusting_origins(shell)
    shell("start", "--listen", "127.0.0.1:0", "--ca")
    shell("rules", "add", "allow", "localhost")
    command = f"{shlex.quote(sys.executable)} -m dari proxy env"
    with serving(answering(JSON), THEIRS.context_for("localhost")) as site:
        url = f"https://localhost:{site.port}/shell"
        script = f'eval "$({command})"; {shlex.join(fetching(url))}'
        done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, timeout=40)
    assert done.stdout == JSON_BODY, done.stderr
    assert shell.json("traffic")["flows"][-1]["url"] == url


def test_a_crabd_that_was_stopped_during_the_run_is_put_right_and_left_stopped(shell: Shell) -> None:
    shell.started()
    process = dari("run", "-q", "--", sys.executable, "-c", "print('up', flush=True); input()", stdin=subprocess.PIPE)
    assert line_of(process.stdout) == "up\n"
    shell("stop", "--daemon")
    _, err = process.communicate("\n", timeout=40)
    assert process.returncode == 0, err
    assert_untouched(shell)


def test_of_two_first_runs_one_makes_the_ca_and_both_go_on(shell: Shell) -> None:
    shell.started()

    async def both() -> None:
        crab, out = Crab(shell.place), Output()
        try:
            await asyncio.gather(_ensure_ca(crab, out), _ensure_ca(crab, out))
        finally:
            await crab.close()

    asyncio.run(both())
    assert shell.json("ca")["loaded"]
