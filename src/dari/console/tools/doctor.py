"""`dari_doctor_fix`: mends what the doctor finds and a program can mend."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from dari import paths
from dari.core.scopes import ADMIN
from dari.core.tool import tool
from dari.errors import Conflict, Failed
from dari.os_errors import describe_os_error
from dari.transport.client_tokens import tokens_path

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends


class DoctorFix(Struct, frozen=True):
    done: str
    """What was done, as a command would say it."""


class DoctorTools:
    """The tool `dari_doctor_fix`."""

    prefix = "dari_doctor"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._token_path = backends.settings.token_path

    @tool(scope=ADMIN)
    async def fix(
        self, check: Annotated[Literal["token", "home"], Meta(description="Name of the check that is not in order")]
    ) -> DoctorFix:
        """Take from others what only you should have: the token file's mode, the home's; returns what was done."""
        if check == "home":
            return await asyncio.to_thread(_restrict, paths.home(), 0o022, "chmod go-w")
        if self._token_path is None:
            raise Conflict("this hub asks for no token", "start it with --token-path")
        return await asyncio.to_thread(_restrict_any, (self._token_path, tokens_path()), 0o077, "chmod 600")


def _restrict_any(files: tuple[Path, ...], others: int, words: str) -> DoctorFix:
    """The first of them that others reach, else what is to be said of the first one."""
    found = next((path for path in files if path.is_file() and path.stat().st_mode & others), files[0])
    return _restrict(found, others, words)


def _restrict(path: Path, others: int, words: str) -> DoctorFix:
    """Through an open descriptor, and never through a link: what was looked at is what is changed."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = stat.S_IMODE(os.fstat(file).st_mode)
            if not mode & others:
                raise Conflict(f"{path} has mode {mode:04o} already", "check again")
            os.fchmod(file, mode & ~others)
        finally:
            os.close(file)
    except OSError as error:
        raise Failed(f"cannot change {path}: {describe_os_error(error)}", f"{words} {path}") from None
    return DoctorFix(f"{words} {path}")
