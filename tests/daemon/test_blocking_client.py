from __future__ import annotations

import socket
import subprocess
import sys
import threading

import pytest

from dari.daemon.blocking_client import BlockingClient
from dari.daemon.lock import lock_holder
from dari.daemon.paths import DaemonPaths
from dari.errors import Denied, NotFound, Unavailable
from tests.support.daemons import COMMAND, wait_until_unlocked


def test_a_command_starts_the_daemon_and_calls_it(files: DaemonPaths) -> None:
    client = BlockingClient(files, "cli", command=lambda: (*COMMAND, str(files.run_dir)))
    assert client.call("system.ping") == {"pong": True}
    assert client.server_pid() == lock_holder(files.lock) or sys.platform != "linux"
    with pytest.raises(NotFound):
        client.call("demo.nothing")
    assert client.call("system.shutdown") == {"status": "shutting_down"}
    client.wait_end()
    client.close()
    wait_until_unlocked(files.lock)


def test_a_daemon_that_dies_at_the_handshake_is_started_anew(files: DaemonPaths) -> None:
    files.token("cli").write_text("anything")
    with socket.socket(socket.AF_UNIX) as dying:
        dying.bind(str(files.socket))
        dying.listen()

        def die() -> None:
            connection, _ = dying.accept()
            connection.recv(1 << 16)
            files.socket.unlink()
            dying.close()
            connection.close()

        thread = threading.Thread(target=die)
        thread.start()
        client = BlockingClient(files, "cli", command=lambda: (*COMMAND, str(files.run_dir)))
        assert client.call("system.ping") == {"pong": True}
        thread.join()
    client.call("system.shutdown")
    client.wait_end()
    client.close()
    wait_until_unlocked(files.lock)


def test_without_a_command_nothing_is_started(files: DaemonPaths) -> None:
    client = BlockingClient(files, "cli", server="demo server", start_hint="run it")
    assert not client.is_up()
    with pytest.raises(Unavailable) as refused:
        client.call("system.ping")
    assert str(files.socket) in refused.value.message and refused.value.hint == "run it"
    assert not files.log.exists()


def test_a_token_that_cannot_be_read_is_named(files: DaemonPaths) -> None:
    client = BlockingClient(files, "app", command=lambda: (*COMMAND, str(files.run_dir)))
    assert client.call("system.ping") == {"pong": True}
    client.close()
    files.token("app").unlink()
    with pytest.raises(Denied) as refused:
        client.call("system.ping")
    assert str(files.token("app")) in refused.value.message


def test_it_loads_neither_a_loop_nor_pathlib() -> None:
    code = (
        "import sys; before = set(sys.modules); import dari.daemon.blocking_client; print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert not {"asyncio", "socket", "pathlib", "json", "re", "typing", "msgspec", "subprocess"} & set(
        done.stdout.split()
    )
