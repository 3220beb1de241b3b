"""The system's keyring, with a time-out: it may be missing, locked, or wait for a window that is not shown."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Protocol, TypeVar

from dari.errors import Unavailable
from dari.installation import install_extra

SERVICE = "dari-oauth"
KEYRING_TIMEOUT_S = 5.0
LOAD_TIMEOUT_S = 20.0
"""For importing the package and its backend, once: a busy machine needs seconds for that without a person's help."""
_RECOMMENDED = 1.0
"""`keyring` gives backends below this priority to those who name them: plain files, for one."""
_T = TypeVar("_T")


class KeyringBackend(Protocol):
    """What we need of a keyring; the package `keyring` itself is one."""

    def get_password(self, service: str, username: str, /) -> str | None: ...

    def set_password(self, service: str, username: str, password: str, /) -> None: ...

    def delete_password(self, service: str, username: str, /) -> None: ...


class Keychain:
    """Asked from a thread, each time within a deadline: a keyring that waits for a person cannot block a call.

    Without a backend the package `keyring` is used, where it is installed and has a real keyring to offer.
    """

    def __init__(self, backend: KeyringBackend | None = None, *, timeout_s: float = KEYRING_TIMEOUT_S) -> None:
        self._backend = backend
        self._timeout_s = timeout_s
        self._is_missing = False
        self._is_busy = False
        self._lock = asyncio.Lock()

    async def is_usable(self) -> bool:
        try:
            return await self._run(self._find) is not None
        except Unavailable:
            return False

    async def get(self, account: str) -> str | None:
        return await self._run(lambda: self._found().get_password(SERVICE, account))

    async def set(self, account: str, value: str) -> None:
        await self._run(lambda: self._found().set_password(SERVICE, account, value))

    async def delete(self, account: str) -> None:
        await self._run(lambda: self._found().delete_password(SERVICE, account))

    async def _run(self, work: Callable[[], _T]) -> _T:
        async with self._lock:
            if self._is_busy:  # what was asked before has missed its deadline, and still waits
                raise Unavailable("the keyring still waits for something", "unlock it, then try again")
            if self._backend is None and not self._is_missing:
                await self._ask(self._find, LOAD_TIMEOUT_S)
            return await self._ask(work, self._timeout_s)

    async def _ask(self, work: Callable[[], _T], timeout_s: float) -> _T:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_T] = loop.create_future()
        self._is_busy = True

        def finish(result: _T | None, error: Exception | None) -> None:
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]

        def run() -> None:
            result: _T | None = None
            failure: Exception | None = None
            try:
                result = work()
            except Exception as error:  # backends raise whatever their system does
                failure = error
            self._is_busy = False
            try:
                loop.call_soon_threadsafe(finish, result, failure)
            except RuntimeError:
                pass  # the loop has ended; nobody waits

        # Not the loop's executor: Python waits for its threads at exit, and this one may never end.
        threading.Thread(target=run, name="dari-keyring", daemon=True).start()
        try:
            async with asyncio.timeout(timeout_s):
                return await done
        except TimeoutError:
            raise Unavailable(
                f"the keyring did not answer within {timeout_s:g} s", "unlock it, then try again"
            ) from None
        except Unavailable:
            raise
        except Exception as error:
            raise Unavailable(
                f"the keyring did not answer ({type(error).__name__})", "unlock it, then try again"
            ) from None

    def _found(self) -> KeyringBackend:
        backend = self._find()
        if backend is None:
            raise Unavailable(
                "this machine has no usable keyring", f"{install_extra('keyring')}, or set auth.keyring to false"
            )
        return backend

    def _find(self) -> KeyringBackend | None:
        if self._backend is None and not self._is_missing:
            self._backend = _system_backend()
            self._is_missing = self._backend is None
        return self._backend


def _system_backend() -> KeyringBackend | None:
    try:
        package = import_module("keyring")
    except ImportError:
        return None
    backend = package.get_keyring()
    if type(backend).__module__ in ("keyring.backends.fail", "keyring.backends.null"):
        return None
    is_chosen = bool(os.environ.get("PYTHON_KEYRING_BACKEND"))
    priority = getattr(backend, "priority", 0)
    if not is_chosen and not (isinstance(priority, int | float) and priority >= _RECOMMENDED):
        return None
    found: KeyringBackend = backend
    return found
