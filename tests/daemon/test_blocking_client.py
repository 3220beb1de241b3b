from __future__ import annotations

import socket
import subprocess
import sys
import threading
from typing import Any

import pytest

from dari.daemon import blocking_client, unix_socket
from dari.daemon.blocking_client import BlockingClient
from dari.daemon.lock import lock_holder
from dari.daemon.paths import DaemonPaths
from dari.errors import Denied, NotFound, TimedOut, Unavailable
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


def test_a_daemon_that_hangs_is_not_waited_for_without_end(files: DaemonPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_client, "HANDSHAKE_TIMEOUT_S", 0.05)
    files.token("cli").write_text("anything")
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(files.socket))
        hanging.listen()
        client = BlockingClient(files, "cli", command=lambda: (*COMMAND, str(files.run_dir)))
        with pytest.raises(TimedOut) as refused:
            client.call("system.ping")
    assert str(files.socket) in refused.value.message


def test_only_the_handshake_has_a_deadline(files: DaemonPaths) -> None:
    client = BlockingClient(files, "cli", command=lambda: (*COMMAND, str(files.run_dir)))
    assert client.call("system.ping") == {"pong": True}
    assert client._connected().gettimeout() is None
    client.call("system.shutdown")
    client.wait_end()
    client.close()


def test_a_daemon_that_ended_while_its_token_was_read_is_started_anew(
    files: DaemonPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = unix_socket.connect
    with socket.socket(socket.AF_UNIX) as ending:
        ending.bind(str(files.socket))
        ending.listen()

        def connect_and_end(path: str) -> Any:
            connection = connect(path)
            if ending.fileno() >= 0:
                files.socket.unlink()
                ending.close()
            return connection

        monkeypatch.setattr(unix_socket, "connect", connect_and_end)
        client = BlockingClient(files, "cli", command=lambda: (*COMMAND, str(files.run_dir)))
        assert client.call("system.ping") == {"pong": True}
    client.call("system.shutdown")
    client.wait_end()
    client.close()
    wait_until_unlocked(files.lock)


def test_it_loads_neither_a_loop_nor_pathlib() -> None:
    code = (
        "import sys; before = set(sys.modules); import dari.daemon.blocking_client; print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert not {"asyncio", "socket", "pathlib", "json", "re", "typing", "msgspec", "subprocess"} & set(
        done.stdout.split()
    )
