"""The daemon's side of the spawner: start programs on terminals, learn how they ended, end them."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from dari.errors import DariError, Failed, InvalidInput, NotFound, Unavailable
from dari.struct_types import ready

START_S = 10.0
HANGUP_S = 0.5
"""From SIGHUP to SIGTERM."""
TERM_S = 5.0
"""From SIGTERM to SIGKILL, as for every other child of ours."""
END_S = 8.0
_SCRIPT = Path(__file__).with_name("spawner_main.py")


class _Said(msgspec.Struct):
    started: int | None = None
    failed: int | None = None
    ended: int | None = None
    exit: int | None = None
    pid: int = 0
    code: int = 0
    errno: int = 0
    reason: str = ""


@dataclass(slots=True)
class SpawnedProcess:
    """A program that the spawner runs. `on_exit` gets its exit code once; -N stands for signal N."""

    pid: int
    token: str
    on_exit: Callable[[int], None] = lambda code: None
    exit_code: int | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Spawner:
    """One spawner process, started with the first program; `async with` ends it and all its programs."""

    def __init__(self) -> None:
        self.sockets: tuple[Path, ...] = ()
        """Of this daemon: the spawner removes them when the daemon is killed."""
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._rest = b""
        self._lock = asyncio.Lock()
        self._starting: dict[int, asyncio.Future[int]] = {}
        self._kept: dict[int, SpawnedProcess] = {}
        self._former: list[subprocess.Popen[bytes]] = []  # spawners that ended or are about to
        self._unwanted: set[asyncio.Task[None]] = set()
        self._number = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        terminal: int,
        inherited: Sequence[int] = (),
        folders: Sequence[Path] = (),
    ) -> SpawnedProcess:
        """Run a program in a session of its own with `terminal` as its controlling terminal.

        It has the descriptors in `inherited` by the same numbers, and no others but its terminal. Who starts it removes
        its temporary `folders`; the spawner does when this daemon is killed.
        InvalidInput when the directory does not exist, NotFound when the program does not.
        """
        token = secrets.token_hex(16)
        full = {**env, "CRUX_PANE_TOKEN": token}
        async with self._lock:
            line = self._ready()
            self._number += 1
            number = self._number
            sockets = [(str(path), path.lstat().st_ino) for path in self.sockets if path.is_socket()]
            wish = {"start": number, "argv": list(argv), "env": full, "cwd": cwd, "token": token, "sockets": sockets}
            wish |= {"inherited": list(inherited), "folders": [str(folder) for folder in folders]}
            pid_future = asyncio.get_running_loop().create_future()
            self._starting[number] = pid_future
            data = msgspec.json.encode(wish) + b"\n"
            try:
                await self._send(line, data, [terminal, *inherited])
                pid = await asyncio.wait_for(pid_future, START_S)
            except TimeoutError:
                raise Unavailable(f"{argv[0]} was not started in {START_S:.0f} s", "try again") from None
            except OSError as error:
                raise _refusal(error, argv[0], cwd) from error
            finally:
                self._starting.pop(number, None)
        kept = self._kept[pid]
        kept.token = token
        return kept

    async def end(self, kept: SpawnedProcess, *, hangup_s: float = HANGUP_S, term_s: float = TERM_S) -> None:
        """SIGHUP to every process of the pane, SIGTERM to those that are left, then SIGKILL; returns when none is."""
        line = self._line
        if line is None or kept.ended.is_set():
            # Its spawner reported the end, or was lost and had it ended: the number may be another process's.
            self._kept.pop(kept.pid, None)
            return
        wish = {"end": kept.pid, "token": kept.token, "hangup_s": hangup_s, "term_s": term_s}
        async with self._lock:
            # Where the spawner was killed a moment ago, its understudy ends the program: `_lose` says so soon.
            with suppress(OSError):
                await self._send(line, msgspec.json.encode(wish) + b"\n")
        try:
            await asyncio.wait_for(kept.ended.wait(), END_S + hangup_s + term_s)
        except TimeoutError:
            raise Failed(f"processes of {kept.pid} did not end", "look for processes stuck in the kernel") from None
        finally:
            self._kept.pop(kept.pid, None)

    async def close(self) -> None:
        """End every program, then the spawner."""
        for ending in self._unwanted:
            ending.cancel()
        line, self._line = self._line, None
        if line is not None:
            asyncio.get_running_loop().remove_reader(line)
            line.close()
        if self._process is not None:
            self._former.append(self._process)
            self._process = None
        while self._former:
            await asyncio.to_thread(self._former.pop().wait)

    def _ready(self) -> socket.socket:
        if self._line is not None:
            return self._line
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-IS", str(_SCRIPT), str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                env={"LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        ours.setblocking(False)
        self._line = ours
        asyncio.get_running_loop().add_reader(ours, self._hear)
        return ours

    async def _send(self, line: socket.socket, data: bytes, descriptors: Sequence[int] = ()) -> None:
        first = data
        if descriptors:
            sent = socket.send_fds(line, [data[:4096]], descriptors)
            first = data[sent:]
        await asyncio.get_running_loop().sock_sendall(line, first)

    def _hear(self) -> None:
        line = self._line
        if line is None:
            return
        try:
            data = line.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose(line)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for said in lines:
            self._understand(msgspec.json.decode(said, type=ready(_Said)))

    def _understand(self, said: _Said) -> None:
        if said.started is not None:
            started = self._kept[said.pid] = SpawnedProcess(said.pid, "")
            if not self._settle(said.started, said.pid):
                self._end_unwanted(started)
        elif said.failed is not None:
            pid_future = self._starting.get(said.failed)
            if pid_future is not None and not pid_future.done():
                pid_future.set_exception(OSError(said.errno, said.reason))
        elif said.exit is not None:
            self._exit(said.exit, said.code)
        elif said.ended is not None and (kept := self._kept.get(said.ended)) is not None:
            kept.ended.set()

    def _settle(self, number: int, pid: int) -> bool:
        """False when nobody waits for it any more."""
        pid_future = self._starting.get(number)
        if pid_future is None or pid_future.done():
            return False
        pid_future.set_result(pid)
        return True

    def _end_unwanted(self, kept: SpawnedProcess) -> None:
        """Its caller left, or got the error that it did not start."""

        async def end() -> None:
            with suppress(DariError, OSError):
                await self.end(kept)

        ending = asyncio.get_running_loop().create_task(end())
        self._unwanted.add(ending)
        ending.add_done_callback(self._unwanted.discard)

    def _exit(self, pid: int, code: int) -> None:
        kept = self._kept.get(pid)
        if kept is not None and kept.exit_code is None:
            kept.exit_code = code
            kept.on_exit(code)

    def _lose(self, line: socket.socket) -> None:
        """The spawner was killed: its understudy ends its programs, and their exit codes are lost."""
        asyncio.get_running_loop().remove_reader(line)
        line.close()
        self._line = None
        if self._process is not None:
            self._former.append(self._process)
            self._process = None
        for pid_future in self._starting.values():
            if not pid_future.done():
                pid_future.set_exception(OSError(errno.EPIPE, "the spawner ended"))
        for kept in list(self._kept.values()):
            kept.ended.set()
            if kept.exit_code is None:
                kept.exit_code = -1
                kept.on_exit(-1)


def _refusal(error: OSError, program: str, cwd: str) -> DariError:
    if not os.path.isdir(cwd):
        return InvalidInput(f"cwd must be a directory, got {cwd}", "name a directory that exists")
    if error.errno == errno.ENOENT:
        return NotFound(f"the program {program} was not found", "give its full path, or look at PATH")
    return Failed(f"{program} could not be started: {error.strerror}", "check that it is a program you may run")
