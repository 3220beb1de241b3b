"""Reference count of `run`: what it started is stopped by the last `run` that uses it.

Every run holds a shared lock on one file, and what they changed between them stands in it. The kernel lets go of the
lock when a run ends in whatever way, so what a killed one left behind is put right by the next.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Self

import msgspec

from dari.paths import private_dir
from dari.proxy.daemon import CrabPaths
from dari.struct_types import ready

_POLL_S = 0.02
_STARTING = 1  # the byte of the file that a starting `run` locks
_WRITING = 2


class StartedByRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """What runs started or changed, for the last of them to end or change back."""

    proxy: bool = False
    crabd: bool = False
    capture: bool = False
    listen_addr: str | None = None
    """The address to go back to, when its port was taken."""
    rule_ids: tuple[str, ...] = ()
    upstream: bool = False
    """The proxy of a caller's environment was set as the one behind ours."""


class Lease:
    """Held while a command runs through the proxy."""

    def __init__(self, place: CrabPaths) -> None:
        self._path = lease_path(place)
        self._file = -1

    async def __aenter__(self) -> Self:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            await _until(lambda: fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB))
        except BaseException:
            os.close(self._file)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        os.close(self._file)

    @asynccontextmanager
    async def starting(self) -> AsyncIterator[None]:
        """One run at a time looks at what is there and starts what is missing."""
        await _until(lambda: fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _STARTING))
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _STARTING)

    def note(self, **changes: object) -> None:
        """Write down what this run has started or changed."""
        with _writing(self._file):
            _write(self._file, msgspec.structs.replace(_read(self._file), **changes))

    def add_rule(self, rule_id: str) -> None:
        with _writing(self._file):
            now = _read(self._file)
            _write(self._file, msgspec.structs.replace(now, rule_ids=(*now.rule_ids, rule_id)))

    def drop_rule(self, rule_id: str) -> None:
        with _writing(self._file):
            now = _read(self._file)
            left = tuple(one for one in now.rule_ids if one != rule_id)
            _write(self._file, msgspec.structs.replace(now, rule_ids=left))

    def last_one(self) -> StartedByRun | None:
        """What is left to put right when no other run goes on; new runs wait until this lease is over."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        borrowed = _read(self._file)
        _write(self._file, StartedByRun())
        return borrowed


def adopt(place: CrabPaths) -> None:
    """Somebody started the proxy on purpose: no run shall end it."""
    path = lease_path(place)
    if not path.exists():
        return
    file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with _writing(file):
            _write(file, msgspec.structs.replace(_read(file), proxy=False, crabd=False))
    finally:
        os.close(file)


def lease_path(place: CrabPaths) -> Path:
    return private_dir(place.run_dir) / "runs.lease"


async def _until(take: Callable[[], object]) -> None:
    """Take a lock as soon as it is free; the kernel tells nobody when it is."""
    while True:
        try:
            take()
        except (BlockingIOError, PermissionError):  # the two ways in which a lock is said to be taken
            await asyncio.sleep(_POLL_S)
        else:
            return


@contextmanager
def _writing(file: int) -> Iterator[None]:
    fcntl.lockf(file, fcntl.LOCK_EX, 1, _WRITING)
    try:
        yield
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, _WRITING)


def _read(file: int) -> StartedByRun:
    data = os.pread(file, 1 << 20, 0)
    try:
        return msgspec.json.decode(data, type=ready(StartedByRun)) if data else StartedByRun()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return StartedByRun()


def _write(file: int, borrowed: StartedByRun) -> None:
    data = msgspec.json.encode(borrowed)
    # Blanks over what was there, then the cut: a run that is killed in between leaves a record that can be read.
    os.pwrite(file, data.ljust(os.fstat(file).st_size), 0)
    os.ftruncate(file, len(data))
