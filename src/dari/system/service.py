"""Facts about this installation, checked when asked."""

from __future__ import annotations

import os
import platform
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from dari import paths
from dari.daemon.unix_socket import answers, socket_address
from dari.errors import InvalidInput
from dari.os_errors import describe_os_error
from dari.version import VERSION

Status = Literal["ok", "warning", "failed"]


class Check(Struct, frozen=True):
    """What was looked at, what was found, and what to do about it."""

    name: str
    status: Status
    found: str
    hint: str = ""


def worst_status(checks: Iterable[Check]) -> Status:
    """The status of the whole: the worst of its parts."""
    found = {check.status for check in checks}
    order: tuple[Status, ...] = ("failed", "warning", "ok")
    return next(status for status in order if status == "ok" or status in found)


_PARTS = ("msgspec", "uvicorn", "uvloop", "httptools")


class SystemService:
    """Answers for the built-in toolkit and for `dari doctor`."""

    def __init__(
        self,
        token_path: Path,
        socket_path: Path,
        http_port: int,
        further_tokens: Callable[[], Mapping[str, Path]] = dict,
    ) -> None:
        """`further_tokens` are those of our other listeners, by the name of the program."""
        self._token_path = token_path
        self._socket_path = socket_path
        self._http_port = http_port
        self._further_tokens = further_tokens

    def parts(self) -> dict[str, str]:
        """Versions of what we are built on; a part that is not installed is left out."""
        from importlib import metadata  # 12 ms that only this question pays

        found = {"python": platform.python_version()}
        for name in _PARTS:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return found

    def checks(self) -> list[Check]:
        return [
            self._versions(),
            self._home(),
            self._disk(),
            self._token(),
            self._socket(),
            self._port(),
        ]

    def _versions(self) -> Check:
        shown = ", ".join(f"{name} {version}" for name, version in self.parts().items())
        if "uvloop" not in self.parts() and sys.platform != "win32":
            return Check("versions", "warning", f"dari {VERSION}, {shown}", "install uvloop for speed")
        return Check("versions", "ok", f"dari {VERSION}, {shown}")

    def _home(self) -> Check:
        home = paths.home()
        try:
            info = home.stat()
        except FileNotFoundError:
            above = next(parent for parent in home.parents if os.path.exists(parent))
            # Root may write where the mode says that nobody may, but nothing can be made below /proc.
            if not os.access(above, os.W_OK) or not above.stat().st_mode & 0o222:
                return Check("home", "failed", f"{home} cannot be made below {above}", "set DARI_HOME to another place")
            return Check("home", "ok", f"{home} will be made at the first start")
        except OSError as error:
            return Check("home", "failed", f"{home}: {describe_os_error(error)}", "set DARI_HOME to another place")
        if not stat.S_ISDIR(info.st_mode):
            return Check("home", "failed", f"{home} is not a directory", "move it away, or set DARI_HOME")
        if not os.access(home, os.W_OK):
            return Check("home", "failed", f"{home} is not writable", "check its owner, or set DARI_HOME")
        if info.st_mode & 0o022:
            return Check("home", "warning", f"{home} is writable by others", f"chmod go-w {home}")
        return Check("home", "ok", str(home))

    def _disk(self) -> Check:
        from dari.system.checks import check_disk

        return check_disk((paths.home(), self._socket_path.parent))

    def _token(self) -> Check:
        path = self._token_path
        try:
            info = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return Check("token", "ok", f"{path} will be made at the first start")
        except OSError as error:
            return Check("token", "failed", f"{path}: {describe_os_error(error)}", "set DARI_HOME to another place")
        mode = stat.S_IMODE(info.st_mode)
        if not stat.S_ISREG(info.st_mode):
            return Check("token", "failed", f"{path} is not a regular file", "remove it; a new one is made at start")
        if mode & 0o077:
            return Check("token", "failed", f"{path} has mode {mode:04o}", f"chmod 600 {path}")
        if info.st_size == 0:
            return Check("token", "failed", f"{path} is empty", "remove it; a new one is made at start")
        return Check("token", "ok", f"{path} (mode {mode:04o})")

    def _socket(self) -> Check:
        path = self._socket_path
        try:
            socket_address(path)
        except InvalidInput as error:
            return Check("socket", "failed", error.message, error.hint)
        try:
            info = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return Check("socket", "ok", f"{path} is not there; `dari up` makes it")
        except OSError as error:
            return Check("socket", "failed", f"{path}: {describe_os_error(error)}", "set DARI_HOME to another place")
        if not stat.S_ISSOCK(info.st_mode):
            return Check("socket", "failed", f"{path} is not a socket", "move it away")
        mode = stat.S_IMODE(info.st_mode)
        if mode & 0o077:
            return Check("socket", "failed", f"{path} has mode {mode:04o}", f"chmod 600 {path}")
        if not answers(path):
            return Check(
                "socket", "warning", f"{path} is left over, and no process listens on it", "`dari up` replaces it"
            )
        return Check("socket", "ok", f"{path} answers")

    def _port(self) -> Check:
        from dari.system.checks import check_ports  # and with it what speaks HTTP

        return check_ports(self._socket_path, self._http_port, {"dari": self._token_path, **self._further_tokens()})
