"""Who answers on our ports (nobody, one of us that proves it, a stranger), and whether our folders are writable.

Writing is tried, because a quota or a read-only disk shows nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from dari.os_errors import from_os_error, name_file_in_errors
from dari.system.service import Check, worst_status
from dari.transport.bind import url_port
from dari.transport.health import hub_on, identify

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
