from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from dari.daemon.listener import Listener
from dari.daemon.unix_socket import answers
from dari.errors import Conflict, InvalidInput


def abandoned(path: Path) -> None:
    """What a killed daemon leaves: a socket file that nobody listens on."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))


def test_the_socket_file_is_0600_from_its_first_moment(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masks: list[int] = []
    bind = socket.socket.bind

    class Watched(socket.socket):
        def bind(self, address: object) -> None:
            masks.append(os.umask(0o177))
            bind(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "socket", Watched)
    listener = Listener(run_dir / "s")
    assert stat.S_IMODE((run_dir / "s").stat().st_mode) == 0o600
    assert masks == [0o177]
    listener.close()
    assert not (run_dir / "s").exists()


def test_a_stale_socket_file_is_replaced(run_dir: Path) -> None:
    abandoned(run_dir / "s")
    assert not answers(run_dir / "s")
    Listener(run_dir / "s").close()


async def test_a_live_socket_is_refused_and_named(run_dir: Path) -> None:
    live = Listener(run_dir / "s")
    live.listen(socket.socket.close)
    assert answers(run_dir / "s")
    with pytest.raises(Conflict) as refused:
        Listener(run_dir / "s")
    assert str(run_dir / "s") in refused.value.message
    live.close()
    assert not answers(run_dir / "s")


def test_a_daemon_that_is_too_busy_to_accept_is_alive(run_dir: Path) -> None:
    live = socket.socket(socket.AF_UNIX)
    live.bind(str(run_dir / "s"))
    live.listen(0)
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    for caller in waiting:
        caller.setblocking(False)
        caller.connect_ex(str(run_dir / "s"))
    seen: list[bool] = []
    prober = threading.Thread(target=lambda: seen.append(answers(run_dir / "s")), daemon=True)
    prober.start()
    prober.join(30)
    assert seen == [True]
    for caller in waiting:
        caller.close()
    live.close()


def test_a_file_that_is_no_socket_is_never_removed(run_dir: Path) -> None:
    (run_dir / "s").write_text("precious")
    with pytest.raises(Conflict):
        Listener(run_dir / "s")
    assert (run_dir / "s").read_text() == "precious"


def test_a_path_that_the_kernel_would_cut_is_refused(run_dir: Path) -> None:
    with pytest.raises(InvalidInput):
        Listener(run_dir / ("s" * 120))


def test_the_socket_of_a_successor_is_left_alone(run_dir: Path) -> None:
    first = Listener(run_dir / "s")
    abandoned(run_dir / "other")
    (run_dir / "other").replace(run_dir / "s")
    first.close()
    assert (run_dir / "s").exists()


async def test_running_out_of_descriptors_delays_callers_and_loses_none(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("dari.daemon.listener.ACCEPT_PAUSE_S", 0.01)
    accepted = asyncio.Event()
    failures = iter([OSError(errno.EMFILE, "Too many open files")] * 2)
    accept = socket.socket.accept

    class Starved(socket.socket):
        def accept(self):  # type: ignore[no-untyped-def]
            if (failure := next(failures, None)) is not None:
                raise failure
            return accept(self)

    with monkeypatch.context() as patch:
        patch.setattr(socket, "socket", Starved)
        listener = Listener(run_dir / "s")

    def take(connection: socket.socket) -> None:
        connection.close()
        accepted.set()

    listener.listen(take)
    assert answers(run_dir / "s")
    await accepted.wait()
    listener.close()
    assert caplog.text.count("event=accept_failed") == 2
