"""The thin client as a process, against a host with commands of the tests' own."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from dari.cli.hub import protocol
from dari.daemon.launch import MAX_LOG_BYTES
from dari.paths import private_dir, runtime_path
from tests.cli.hub.processes import WITHIN_S, crewx, crewx_process, daemon_pid, demo_host, read_line
from tests.support.processes import wait_for_end
from tests.support.remote_command import profiles

LINES = 2_622_000
"""Of eight bytes each: 20 MB."""


@pytest.fixture
def host(home: Path) -> Iterator[int]:
    with demo_host() as pid:
        yield pid


def test_output_and_exit_code_are_the_commands_own(host: int) -> None:
    done = crewx("say", "één\n", "careful\n", "3")
    assert (done.returncode, done.stdout.decode(), done.stderr) == (3, "één\n", b"careful\n")


def test_dari_remote_is_the_same_door(host: int) -> None:
    words = (sys.executable, "-m", "dari", "remote", "say", "out", "", "7")
    done = subprocess.run(words, capture_output=True, timeout=WITHIN_S, check=False)
    assert (done.returncode, done.stdout) == (7, b"out")


def test_a_command_knows_the_callers_folder_and_environment_not_the_daemons(host: int, tmp_path: Path) -> None:
    done = crewx(
        "where", "SECRET_OF_CALLER", cwd=tmp_path, env={**os.environ, "SECRET_OF_CALLER": "s", "COLUMNS": "63"}
    )
    assert done.stdout.decode() == f"{tmp_path} s None 63\n"


def test_arguments_that_are_no_text_arrive_unchanged(host: int) -> None:
    odd = b"\xff\xfe\xc3\xa9"
    assert crewx("say", os.fsdecode(odd), "", "0").stdout == odd


def test_a_folder_that_is_gone_is_no_reason_to_fail(host: int, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = (
        f"import os, sys; os.rmdir({str(gone)!r}); "
        "from dari.cli.remote.fast_client import main; sys.exit(main('t', ['where', 'A']))"
    )
    done = subprocess.run((sys.executable, "-c", script), cwd=gone, capture_output=True, timeout=WITHIN_S, check=False)
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, b"/", b"")


def test_stdin_goes_along_only_when_the_command_wants_it(host: int) -> None:
    ours, theirs = os.pipe()
    try:  # a pipe that nobody ever closes
        assert crewx("say", "done", "", "0", stdin=ours).stdout == b"done"
        os.write(theirs, b"still there")
        assert os.read(ours, 100) == b"still there"
    finally:
        os.close(ours)
        os.close(theirs)
    data = os.urandom(5_000_000)
    assert crewx("stdin", input=data, stdin=None).stdout.decode() == hashlib.sha256(data).hexdigest()
    assert crewx("stdin").stdout.decode() == hashlib.sha256(b"").hexdigest()


def test_a_command_that_ends_before_stdin_does_is_not_held_up(host: int) -> None:
    with crewx_process("stdin_first", stdin=subprocess.PIPE) as process:
        assert read_line(process.stdout) == b"entered\n"
        assert process.wait(WITHIN_S) == 5


def test_ctrl_c_cancels_the_command_and_ends_with_4(host: int) -> None:
    with crewx_process("wait") as process:
        assert read_line(process.stdout) == b"entered\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == 4
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert crewx("cancelled").returncode == 0


def test_ctrl_c_pressed_twice_does_not_wait_for_the_command(host: int) -> None:
    with crewx_process("stubborn") as process:
        assert read_line(process.stdout) == b"entered\n"
        process.send_signal(signal.SIGINT)
        assert read_line(process.stdout) == b"not yet\n"
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == 4


def test_ctrl_c_that_a_shell_ignores_for_us_is_ignored(host: int) -> None:
    with crewx_process("wait", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) as process:
        assert read_line(process.stdout) == b"entered\n"
        process.send_signal(signal.SIGINT)
        assert crewx("say", "", "", "0").returncode == 0
        assert process.poll() is None


def test_a_client_that_is_killed_cancels_its_command(host: int) -> None:
    with crewx_process("wait") as process:
        assert read_line(process.stdout) == b"entered\n"
        process.kill()
    assert crewx("cancelled").returncode == 0


def test_a_reader_that_has_seen_enough_ends_the_command_in_silence(host: int) -> None:
    with crewx_process("endless") as process:
        assert read_line(process.stdout) == b"0000000\n"
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(WITHIN_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert crewx("cancelled").returncode == 0


def test_a_closed_stdout_or_stdin_is_not_mistaken_for_the_socket(host: int) -> None:
    words = f'"{sys.executable}" -m dari.cli.crewx mcp remote'
    script = f'{words} say lost "kept" 6 >&-; echo "$?"; {words} stdin <&-; echo " $?";'
    script += f'{words} say kept lost 6 2>&-; echo " $?"'
    done = subprocess.run(("sh", "-c", script), capture_output=True, timeout=WITHIN_S, check=False)
    nothing = hashlib.sha256(b"").hexdigest()
    assert done.stdout.decode() == f"6\n{nothing} 0\nkept 6\n"
    assert done.stderr == b"kept"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full disk")
def test_a_full_disk_is_told(host: int) -> None:
    with open("/dev/full", "wb") as full:
        done = crewx("say", "out", "", "0", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 4
    assert done.stderr == b"error: stdout cannot be written: No space left on device\n"


def test_twenty_megabytes_come_through_whole_and_the_daemon_does_not_grow(host: int, tmp_path: Path) -> None:
    before_kb = int(crewx("peak").stdout)
    with crewx_process("count", str(LINES)) as process:
        assert process.stdout is not None
        # The reader starts late: by then everything between is full.
        assert read_line(process.stdout) == b"0000000\n"
        crewx("say", "", "", "0")
        rest = process.stdout.read()
        assert process.wait(WITHIN_S) == 0
    assert rest == b"".join(b"%07d\n" % n for n in range(1, LINES))
    assert int(crewx("peak").stdout) - before_kb < 8_000


def test_a_host_that_dies_in_the_middle_is_told_and_nothing_is_done_twice(host: int) -> None:
    done = crewx("die")
    assert (done.returncode, done.stdout) == (2, b"half")
    assert done.stderr.startswith(b"error: the daemon ended before the command had\nhint: ")


@contextmanager
def fake_host(*drops: bool) -> Iterator[list[bytes]]:
    """Hears first lines and answers "again"; a connection with `drops` it ends at once."""
    run_dir = private_dir(runtime_path("bridge"))
    (run_dir / protocol.TOKEN_NAME).write_text("t")
    heard: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        for drop in drops:
            sock, _ = listener.accept()
            with sock, sock.makefile("rwb") as stream:
                if not drop:
                    heard.append(stream.readline())
                    stream.write(
                        protocol.encode_frame(protocol.BEGIN, b"1") + protocol.encode_frame(protocol.OUT, b"again")
                    )
                    stream.write(protocol.encode_frame(protocol.EXIT, b"\0"))

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(run_dir / protocol.SOCKET_NAME))
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield heard
        thread.join(WITHIN_S)
        assert not thread.is_alive()


def test_a_host_that_leaves_before_it_began_is_asked_again(home: Path) -> None:
    """As one that waits in the backlog of a daemon on its way out."""
    with fake_host(True, False) as heard:
        done = crewx("anything")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"again", b"")
    assert len(heard) == 1


@pytest.mark.parametrize("size_bytes", [1, 4_000_000], ids=["short", "longer than the buffer"])
def test_a_host_that_hangs_is_told_and_the_command_is_not_run_twice(host: int, size_bytes: int) -> None:
    script = (
        "import sys; from dari.cli.remote import fast_client as client; client.BEGIN_TIMEOUT_S = 0.5; "
        f"sys.exit(client.main('t', ['say', 'x' * {size_bytes}, '', '0']))"
    )
    os.kill(host, signal.SIGSTOP)
    done = subprocess.run((sys.executable, "-c", script), capture_output=True, timeout=WITHIN_S, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"error: the daemon (pid %d) has not taken the command within 0.5 s\nhint: " % host)


def test_only_daemon_start_asks_the_daemon_to_stay(home: Path) -> None:
    with fake_host(False, False, False) as heard:
        for words in (("servers",), ("daemon", "start"), ("daemon", "start", "--server", "fs")):
            assert crewx(*words).stdout == b"again"
    assert [json.loads(line)["stays"] for line in heard] == [False, True, True]
    assert [json.loads(line)["argv"] for line in heard][2] == ["daemon", "start", "--server", "fs"]


def test_a_refusal_is_told_with_its_hint(host: int, home: Path) -> None:
    (runtime_path("bridge") / protocol.TOKEN_NAME).write_text("another")
    done = crewx("say", "", "", "0")
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: the token is not this daemon's\nhint: ")


def test_a_daemon_of_another_release_is_replaced(home: Path) -> None:
    with demo_host(version="0.0.1") as old:
        done = crewx("servers", "--json")
        assert (done.returncode, profiles(done.stdout)) == (0, []), done.stderr
        wait_for_end(old)
        assert daemon_pid() not in (None, old)


def test_a_hub_of_another_release_is_left_alone(home: Path) -> None:
    with demo_host("hub", "0.0.1") as hub:
        done = crewx("servers", "--json")
        assert (done.returncode, profiles(done.stdout)) == (0, [])
        assert b"warning: the daemon cannot be used (the bridge runs in `dari up`" in done.stderr
        assert done.stderr.count(b"\n") == 1
        assert daemon_pid() == hub


def test_a_hub_is_not_stopped_by_daemon_stop(home: Path) -> None:
    with demo_host("hub") as hub:
        done = crewx("daemon", "stop")
        assert done.returncode == 1
        assert f"dari up` (pid {hub})" in done.stderr.decode()
        assert crewx("say", "on", "", "0").stdout == b"on"


def test_a_warm_call_imports_next_to_nothing(host: int) -> None:
    """Each of asyncio, argparse, json, pathlib, socket, typing costs more than all the rest of a call."""
    script = """
import sys
before = set(sys.modules)
from dari.cli.crewx import main
assert main(["mcp", "remote", "say", "", "", "0"]) == 0
print(*sorted(set(sys.modules) - before))
"""
    command = (sys.executable, "-c", script)
    env = {**os.environ, "DARI_UNMEASURED": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=WITHIN_S, check=True)
    ours = "dari dari.cli dari.cli.crewx dari.cli.hub dari.cli.hub.client dari.cli.hub.protocol dari.cli.kit"
    ours += " dari.cli.kit.errors dari.cli.remote dari.cli.remote.fast_client dari.daemon dari.daemon.unix_socket"
    ours += " dari.home dari.version"
    assert done.stdout.split() == ["_json", "_socket", *ours.split()]


def test_a_daemon_that_cannot_start_is_told_with_its_reason(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARI_BRIDGE_IDLE_S", "soon")
    done = crewx("servers", "--json")
    assert (done.returncode, profiles(done.stdout)) == (0, [])
    assert b"warning: the daemon cannot be used (the daemon ended at start with exit status 1" in done.stderr
    assert b"DARI_BRIDGE_IDLE_S must be seconds above 0, got 'soon'" in done.stderr


def test_a_run_directory_that_others_may_read_is_closed_to_them_first(home: Path) -> None:
    run_dir = home / "run" / "bridge"
    run_dir.mkdir(parents=True)
    run_dir.chmod(0o755)
    assert crewx("servers").returncode == 0
    assert daemon_pid() is not None
    assert run_dir.stat().st_mode & 0o777 == 0o700


def test_a_log_that_has_grown_is_put_away_at_the_next_start(home: Path) -> None:
    log = private_dir(home / "logs") / "bridge.log"
    log.write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    assert crewx("servers").returncode == 0
    assert log.with_name("bridge.log.1").stat().st_size == MAX_LOG_BYTES + 1
    assert "event=open" in log.read_text()


def test_what_lies_in_the_callers_folder_is_not_imported_by_the_daemon(home: Path, tmp_path: Path) -> None:
    """A project that somebody else wrote must not run code because a command is typed in it."""
    trap = f"open({str(tmp_path / 'ran')!r}, 'a').close()\nraise SystemExit(1)"
    for name in ("dari", "msgspec", "uvloop", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(trap)
    words = (str(Path(sys.executable).with_name("crewx")), "mcp", "remote", "servers", "--json")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=WITHIN_S, check=False)
    assert (done.returncode, profiles(done.stdout), done.stderr) == (0, [], b"")
    assert daemon_pid() is not None
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_daemon_knows_no_secret_of_its_starter_and_keeps_no_folder_in_use(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "very secret")
    assert crewx("servers", cwd=tmp_path).returncode == 0
    pid = daemon_pid()
    assert pid is not None
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert f"DARI_HOME={home}".encode() in environment.split(b"\0")
    assert b"very secret" not in environment
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.getsid(pid) == pid
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # the connection of that command, which the daemon has just closed
            assert "start.lock" not in os.readlink(f"/proc/{pid}/fd/{descriptor}")


def test_a_server_of_a_bridge_starts_no_daemon_and_gets_at_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it runs, it runs itself: with its own sandbox, and only as long as it lives."""
    with monkeypatch.context() as inside:
        inside.setenv("DARI_CHILD", "a-mark")
        assert (profiles(crewx("servers", "--json").stdout), daemon_pid()) == ([], None)
    with demo_host():
        assert crewx("say", "yes", "", "0").stdout == b"yes"
        monkeypatch.setenv("DARI_CHILD", "a-mark")
        done = crewx("say", "yes", "", "0")
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"command 'say'" in done.stderr


def test_completion_starts_no_daemon(home: Path) -> None:
    crewx("__complete", "--", "crewx", "")
    assert daemon_pid() is None
    assert not (home / "logs").exists()


def test_an_option_before_the_command_is_no_reason_to_start_a_daemon_that_is_to_be_stopped(home: Path) -> None:
    for words in (("--log",), ("--config", "crewx.yaml"), ("--config=x", "--log")):
        done = crewx(*words, "daemon", "stop")
        assert (done.returncode, done.stdout) == (0, b"No daemon runs.\n")
        assert crewx(*words, "daemon", "status").returncode == 0
        assert daemon_pid() is None


def test_the_words_of_daemon_take_the_common_options_too(home: Path) -> None:
    for words in (("start",), ("stop", "--server", "x"), ("status",)):
        done = crewx("daemon", *words, "--log", "--no-daemon")
        assert b"unknown option" not in done.stderr
    assert crewx("daemon", "status", "--log", "--no-daemon").returncode == 0
