"""`ensure_started`, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dari.daemon.client import DaemonClient
from dari.daemon.launch import MAX_LOG_BYTES, bare_environment, ensure_started, ensure_started_sync
from dari.daemon.lock import FileLock, lock_holder
from dari.daemon.paths import DaemonPaths
from dari.daemon.unix_socket import answers
from dari.errors import InvalidInput, TimedOut, Unavailable
from tests.support.daemons import COMMAND, wait_until_unlocked

STARTER = """
import sys
from pathlib import Path
from dari.daemon.paths import DaemonPaths
from dari.daemon.lock import lock_holder
from dari.daemon.launch import ensure_started_sync
files = DaemonPaths("demo", Path(sys.argv[1]))
sys.stdin.readline()
started = ensure_started_sync(files, sys.argv[2:])
print(started, lock_holder(files.lock))
"""


def start(files: DaemonPaths, *command: str, timeout_s: float = 30) -> int | None:
    command = command or (*COMMAND, str(files.run_dir))
    return ensure_started_sync(files, command, timeout_s=timeout_s)


def client(files: DaemonPaths) -> DaemonClient:
    return DaemonClient(files, "cli")


def kill(files: DaemonPaths, pid: int, number: int = signal.SIGKILL) -> None:
    os.kill(pid, number)
    wait_until_unlocked(files.lock)


def reaped(pid: int) -> bool:
    """Wait for the thread that collects this child; True when the kernel has forgotten it."""
    for thread in threading.enumerate():
        if thread.name == f"reap-{pid}":
            thread.join(20)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_daemon_is_started_once_and_found_afterwards(files: DaemonPaths) -> None:
    pid = start(files)
    assert pid is not None
    assert lock_holder(files.lock) == pid
    assert start(files) is None
    assert asyncio.run(client(files).call("system.ping")) == {"pong": True}


def test_the_async_form_does_the_same(files: DaemonPaths) -> None:
    async def ten_times() -> list[int | None]:
        command = (*COMMAND, str(files.run_dir))
        calls = (ensure_started(files, command) for _ in range(10))
        return await asyncio.gather(*calls)

    started = [pid for pid in asyncio.run(ten_times()) if pid is not None]
    assert started == [lock_holder(files.lock)]
    assert asyncio.run(ten_times()) == [None] * 10


def test_ten_processes_at_once_start_one_daemon(files: DaemonPaths) -> None:
    command = [sys.executable, "-c", STARTER, str(files.run_dir), *COMMAND, str(files.run_dir)]
    starters = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(10)]
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("go\n")
        starter.stdin.flush()
    results = [starter.communicate(timeout=50)[0].split() for starter in starters]
    assert len({holder for _, holder in results}) == 1
    [started] = [pid for pid, _ in results if pid != "None"]
    assert started == results[0][1] == str(lock_holder(files.lock))
    assert files.log.read_text().count("started ") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_daemon_and_its_files(number: int, files: DaemonPaths) -> None:
    pid = start(files)
    assert pid is not None
    kill(files, pid, number)
    assert reaped(pid)
    assert sorted(os.listdir(files.run_dir)) == ["daemon.pid", "demo.log", "start.lock"]
    assert "Traceback" not in files.log.read_text()


def test_shutdown_answers_its_caller_and_then_ends_the_process(files: DaemonPaths) -> None:
    pid = start(files)
    assert pid is not None
    assert asyncio.run(client(files).call("system.shutdown")) == {"status": "shutting_down"}
    wait_until_unlocked(files.lock)
    assert reaped(pid)
    assert not files.socket.exists()
    assert not files.token("cli").exists()


def test_a_killed_daemon_leaves_no_zombie_and_can_be_started_again(files: DaemonPaths) -> None:
    first = start(files)
    assert first is not None
    kill(files, first)
    assert reaped(first)
    assert files.socket.exists()
    second = start(files)
    assert second not in (None, first)
    assert asyncio.run(client(files).call("system.ping")) == {"pong": True}


def test_a_daemon_outlives_the_process_that_started_it(files: DaemonPaths) -> None:
    command = [sys.executable, "-c", STARTER, str(files.run_dir), *COMMAND, str(files.run_dir)]
    subprocess.run(command, input="go\n", text=True, check=True, capture_output=True, timeout=50)
    assert answers(files.socket)
    pid = lock_holder(files.lock)
    assert pid is not None
    assert os.getsid(pid) == pid


def test_a_second_daemon_gives_up_when_the_first_one_serves(files: DaemonPaths) -> None:
    pid = start(files)
    second = subprocess.run([*COMMAND, str(files.run_dir)], capture_output=True, text=True, timeout=50)
    assert second.returncode == 1
    assert str(files.socket) in second.stderr
    assert lock_holder(files.lock) == pid


def test_daemons_that_start_at_the_same_moment_leave_one(files: DaemonPaths) -> None:
    """As when a starter is killed while its daemon is coming up, and the next one starts another."""
    racers = [subprocess.Popen([*COMMAND, str(files.run_dir)], stderr=subprocess.DEVNULL) for _ in range(3)]
    try:
        started = start(files)
        winner = lock_holder(files.lock)
        assert winner is not None
        assert [racer.wait(30) for racer in racers if racer.pid != winner].count(1) >= 2
        assert started in (None, winner) or reaped(started)
        assert lock_holder(files.lock) == winner
    finally:
        for racer in racers:
            racer.kill()
            racer.wait(30)


def test_a_starter_that_was_killed_does_not_block_the_next(files: DaemonPaths) -> None:
    script = "import signal, sys\nfrom pathlib import Path\nfrom dari.daemon.lock import FileLock\n"
    script += "FileLock(Path(sys.argv[1])).try_acquire(); print(flush=True); signal.pause()"
    command = [sys.executable, "-c", script, str(files.start_lock)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(TimedOut) as refused:
            start(files, timeout_s=0.05)
        assert str(holder.pid) in refused.value.message
        holder.kill()
    assert start(files) is not None


def test_whoever_waits_for_a_starter_returns_as_soon_as_the_daemon_answers(files: DaemonPaths) -> None:
    lock = FileLock(files.start_lock)
    assert lock.try_acquire()
    with subprocess.Popen([*COMMAND, str(files.run_dir)], stdout=subprocess.DEVNULL) as daemon:
        assert start(files) is None
        kill(files, daemon.pid)
    lock.release()


def test_a_daemon_that_dies_at_start_is_reported_with_its_status_and_last_words(files: DaemonPaths) -> None:
    script = "import sys; print('x' * 5000); print('token=hunter2'); print('no CA found'); sys.exit(3)"
    with pytest.raises(Unavailable) as refused:
        start(files, sys.executable, "-c", script)
    assert "exit status 3" in refused.value.message
    assert "no CA found" in refused.value.hint
    assert str(files.log) in refused.value.hint
    assert "hunter2" not in refused.value.hint
    assert len(refused.value.hint) < 3000


@pytest.mark.parametrize(
    "secret",
    [
        "Authorization: Basic c2VjcmV0 more",
        "Bearer s3cr3t",
        '{"api_key": "s3cr3t"}',
        "password = s3cr3t",
        "eyJhdWQiOiJhcHAiLCJzY29wZXMi." + "s3cr3tX" * 6 + "s",
    ],
)
def test_secrets_do_not_leave_the_log(secret: str, files: DaemonPaths) -> None:
    with pytest.raises(Unavailable) as refused:
        start(files, sys.executable, "-c", f"print({secret!r}); print('the end')")
    assert "the end" in refused.value.hint
    assert "s3cr3t" not in refused.value.hint
    assert "c2VjcmV0" not in refused.value.hint


def test_only_what_this_start_wrote_is_quoted(files: DaemonPaths) -> None:
    for word in ("first", "second"):
        with pytest.raises(Unavailable) as refused:
            start(files, sys.executable, "-c", f"print('{word}')")
    assert "first" not in refused.value.hint
    assert "second" in refused.value.hint


def test_a_daemon_killed_at_start_is_reported_with_the_signal(files: DaemonPaths) -> None:
    with pytest.raises(Unavailable) as refused:
        start(files, "/bin/sh", "-c", "kill -9 $$")
    assert "SIGKILL" in refused.value.message


def test_a_command_that_does_not_exist_is_named(files: DaemonPaths) -> None:
    with pytest.raises(Unavailable) as refused:
        start(files, "/nowhere/crabd")
    assert "/nowhere/crabd" in refused.value.message


def test_a_daemon_that_hangs_at_start_is_ended(files: DaemonPaths) -> None:
    with pytest.raises(TimedOut) as refused:
        start(files, "/bin/sh", "-c", "trap '' TERM; echo pid $$; while :; do sleep 60; done", timeout_s=1.0)
    pid = int(refused.value.hint.split()[-1])
    assert reaped(pid)


def test_the_log_is_private_and_starts_anew_when_it_has_grown(files: DaemonPaths) -> None:
    files.log.write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    files.log.chmod(0o644)
    start(files)
    assert files.log.stat().st_size < 1000
    assert stat.S_IMODE(files.log.stat().st_mode) == 0o600
    assert files.log.with_name("demo.log.1").stat().st_size == MAX_LOG_BYTES + 1


def test_a_log_that_is_a_link_is_refused(files: DaemonPaths) -> None:
    files.log.symlink_to(files.run_dir / "victim")
    with pytest.raises(Unavailable):
        start(files)
    assert not (files.run_dir / "victim").exists()


def test_a_daemon_is_told_nothing_it_does_not_need(files: DaemonPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "LD_PRELOAD", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("LC_TIME", "C")
    start(files)
    environment = asyncio.run(client(files).call("demo.environment", returns=dict))
    assert environment["DARI_HOME"] == str(files.run_dir / "home")
    assert environment["LC_TIME"] == "C"
    # LC_CTYPE comes from the interpreter itself (PEP 538).
    assert set(environment) == set(bare_environment(os.environ)) | ({"LC_CTYPE"} & set(environment))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_daemon_neither_ignores_nor_blocks_the_signals_that_its_starter_does(files: DaemonPaths) -> None:
    """A hub that ignores SIGCHLD would take every program of ours for one that ended with 0."""
    numbers = (signal.SIGQUIT, signal.SIGCHLD)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        pid = start(files, sys.executable, "-P", *COMMAND[1:], str(files.run_dir))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        for number, handler in before.items():
            signal.signal(number, handler)
    status = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    assert not int(status["SigIgn"], 16) & sum(1 << number - 1 for number in numbers)
    assert not int(status["SigBlk"], 16)


def test_the_environment_is_an_allow_list() -> None:
    kept = dict.fromkeys(
        ("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TMPDIR", "XDG_RUNTIME_DIR", "DARI_HOME"), "x"
    )
    kept |= {"HOME": "/x", "DARI_HOME": "/y"}
    assert bare_environment({**kept, "OPENAI_API_KEY": "x", "PATHS": "x", "HOMEX": "x"}) == kept


def test_a_home_that_is_named_from_our_folder_is_the_same_for_a_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = bare_environment({"HOME": "me", "DARI_HOME": "./dari"})
    assert given == {"HOME": f"{tmp_path}/me", "DARI_HOME": f"{tmp_path}/./dari"}
    assert bare_environment({"DARI_HOME": ""}) == {"DARI_HOME": ""}


def test_a_client_starts_its_daemon_on_the_first_call(files: DaemonPaths) -> None:
    async def call_twice() -> list[object]:
        async with DaemonClient(files, "mcp", keep=True, command=(*COMMAND, str(files.run_dir))) as mcp:
            first = await mcp.call("system.ping")
            pid = lock_holder(files.lock)
            assert pid is not None
            await asyncio.to_thread(kill, files, pid)
            return [first, await mcp.call("system.ping")]

    assert asyncio.run(call_twice()) == [{"pong": True}, {"pong": True}]


def test_a_path_too_long_for_a_socket_is_told_before_anything_starts(files: DaemonPaths) -> None:
    with pytest.raises(InvalidInput):
        ensure_started_sync(DaemonPaths("demo", files.run_dir, socket="/tmp/" + "x" * 200), COMMAND)
    assert not files.log.exists()


def test_asking_for_a_daemon_that_answers_loads_neither_asyncio_nor_subprocess() -> None:
    script = "import sys, dari.daemon.launch; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert not {"asyncio", "subprocess", "msgspec", "logging"} & set(loaded.split())
