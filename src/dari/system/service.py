"""Facts about this installation, checked when asked: who answers on our ports (nobody, one of us that proves it, a
stranger), and whether our folders are writable. Writing is tried, because a quota or a read-only disk shows nowhere
else."""

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
from dari.errors import Failed, InvalidInput
from dari.os_errors import describe_os_error, from_os_error, name_file_in_errors
from dari.transport.bind import url_port
from dari.transport.client_tokens import TokenStore, tokens_path
from dari.transport.health import hub_on, identify
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
        return self._client_tokens(f"{path} (mode {mode:04o})")

    def _client_tokens(self, found: str) -> Check:
        """Those of single clients: a file that cannot be trusted opens nothing, and none of them can connect."""
        try:
            count = len(TokenStore(tokens_path()).read())
        except Failed as error:
            return Check("token", "failed", error.message, error.hint)
        return Check("token", "ok", f"{found}; {count} of single clients" if count else found)

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

        return check_ports(self._socket_path, self._http_port, {"dari": self._token_path, **self._further_tokens()})


LOOPBACK = ("127.0.0.1", "::1")


def check_ports(socket_path: Path, usual_port: int, tokens: Mapping[str, Path]) -> Check:
    """The usual port and, where a hub runs, the hub's; on both loopback addresses, because `localhost` is either."""
    served = hub_on(socket_path)
    known = dict(tokens)
    ports = [usual_port]
    if served is not None and served.url:
        known["the hub"] = Path(served.token_path)
        ports = list(dict.fromkeys((url_port(served.url), usual_port)))
    found = [_at(host, port, known) for port in ports for host in LOOPBACK]
    listeners = [check for check in found if check is not None]
    if not listeners:
        return Check("port", "ok", f"127.0.0.1:{usual_port} is free")
    status = worst_status(listeners)
    hint = next((check.hint for check in listeners if check.status == status), "")
    return Check("port", status, "; ".join(check.found for check in listeners), hint)


def _at(host: str, port: int, tokens: Mapping[str, Path]) -> Check | None:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    answerer = identify(host, port, tokens.values())
    if answerer is None:
        return None
    if answerer.token_path is not None:
        name = next(name for name, path in tokens.items() if path == answerer.token_path)
        return Check("port", "ok", f"{address} is {name}, which proved that it holds {answerer.token_path}")
    renew = "if a client has sent its token there, remove the token file and restart the server"
    if answerer.uid == os.geteuid():
        hint = f"send no token to {address}; stop that program, or choose another port with --http-port; {renew}"
        return Check("port", "warning", f"{address} is another program of yours, not one of ours", hint)
    whose = "of a user that cannot be found out" if answerer.uid is None else f"of uid {answerer.uid}"
    hint = f"send no token to {address}: point clients at the address that `dari up` prints; {renew}"
    return Check("port", "failed", f"{address} is answered by a program {whose}, not by one of ours", hint)


PROBE_BYTES = 64 * 1024
MIN_FREE_BYTES = 50 * 1000 * 1000


def check_disk(folders: Iterable[Path]) -> Check:
    """Each folder, or what is there of it, takes a file; little room is a warning."""
    existing = dict.fromkeys(_existing(folder) for folder in folders)
    found = [_check(folder) for folder in existing]
    status = worst_status(found)
    return next(check for check in found if check.status == status)


def _check(folder: Path) -> Check:
    if not os.access(folder, os.W_OK | os.X_OK):
        return Check("disk", "failed", f"{folder} cannot be written to", "check its owner and mode, or set DARI_HOME")
    try:
        _write_probe(folder)
        free_bytes = _free_bytes(folder)
    except OSError as error:
        refused = from_os_error(error)
        fact, hint = (str(error), "check the disk") if refused is None else (refused.message, refused.hint)
        return Check("disk", "failed", fact, hint)
    shown = f"{free_bytes / 1e6:.0f} MB are free in {folder}"
    if free_bytes < MIN_FREE_BYTES:
        return Check("disk", "warning", shown, "free some space: recordings, sessions and logs need it")
    return Check("disk", "ok", shown)


def _write_probe(folder: Path) -> None:
    probe = folder / f".dari-doctor.{os.getpid()}.{os.urandom(4).hex()}"
    with name_file_in_errors(folder, instead_of=probe):
        file = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with open(file, "wb") as stream:
                stream.write(b"\0" * PROBE_BYTES)
                stream.flush()
                os.fsync(stream.fileno())
        finally:
            probe.unlink(missing_ok=True)


def _free_bytes(folder: Path) -> int:
    info = os.statvfs(folder)
    return info.f_bavail * info.f_frsize


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(level for level in (folder, *folder.parents) if os.path.isdir(level))
