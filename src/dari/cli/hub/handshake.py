"""Who may connect to the hub, and the first line of a connection, checked.

A path in the file system does not stop connect(2): a sandboxed child that found the socket could drive the hub. The
kernel tells who connects, and `/proc` whose child that is: servers that we run ourselves are refused.
"""

from __future__ import annotations

import hmac
import json
import os
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from dari.bridge.config.locations import ClientEnvironment
from dari.cli.hub.protocol import PROTOCOL_VERSION
from dari.daemon.ancestry import is_descendant
from dari.errors import Conflict, DariError, Denied, InvalidInput
from dari.process.reaper_main import TAG_VARIABLE

PURPOSES = ("cli", "mcp", "finish")


class VersionMismatch(Conflict):
    """The client is of another release or installation than the hub."""

    name = "skew"


class BadToken(Denied):
    name = "token"


class CliHandshake(Struct, frozen=True):
    purpose: str
    token: str
    protocol: int = 0
    version: str = ""
    package: str = ""
    program: str = ""
    argv: list[str] = field(default_factory=list)
    cwd: str = "/"
    env: dict[str, str] = field(default_factory=dict)
    tty: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    stays: bool = False
    """The host is wanted from now on, whether it has work or not."""

    def surroundings(self) -> ClientEnvironment:
        """The client's working directory, home and environment, not the hub's."""
        home = self.env.get("HOME", "")
        return ClientEnvironment(
            Path(home) if home.startswith("/") else Path.home(), Path(self.cwd), self.env, sys.platform
        )

    def check(self, token: str, version: str, package: str) -> None:
        """Raise the error that refuses the client."""
        if not hmac.compare_digest(self.token.encode("utf-8", "replace"), token.encode()):
            raise BadToken("the token is not this daemon's", "read it again: it changes at every start")
        if self.purpose == "finish":
            return
        if self.protocol != PROTOCOL_VERSION:
            raise VersionMismatch(f"the protocol version must be {PROTOCOL_VERSION}, got {self.protocol}", _SKEW)
        if (self.version, self.package) != (version, package):
            raise VersionMismatch(
                f"the daemon is dari {version} in {package}, the caller dari {self.version} in {self.package}", _SKEW
            )


_SKEW = "stop the daemon: crewx mcp remote daemon stop"


def parse_handshake(line: bytes) -> CliHandshake:
    """Data of the right types, or InvalidInput. Names outside UTF-8 keep their lone surrogates."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _wrong(f"no JSON: {error}") from None
    if not isinstance(said, dict):
        raise _wrong("no JSON object")
    if said.get("purpose") not in PURPOSES:
        raise _wrong(f"purpose {said.get('purpose')!r:.40} is none of {', '.join(PURPOSES)}")
    return CliHandshake(
        purpose=said["purpose"],
        token=_typed(said, "token", str, ""),
        protocol=_typed(said, "v", int, 0),
        version=_typed(said, "version", str, ""),
        package=_typed(said, "package", str, ""),
        program=_typed(said, "program", str, ""),
        argv=_texts(_typed(said, "argv", list, []), "argv"),
        cwd=_absolute(_typed(said, "cwd", str, "/")),
        env=_environment(_typed(said, "env", dict, {})),
        tty=_typed(said, "tty", dict, {}),
        options=_typed(said, "options", dict, {}),
        stays=_typed(said, "stays", bool, False),
    )


def _typed(said: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = said.get(name, default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _wrong(f"{name} must be of type {kind.__name__}")
    return value


def _texts(values: list[Any], name: str) -> list[str]:
    if not all(isinstance(value, str) for value in values):
        raise _wrong(f"{name} holds more than strings")
    return values


def _environment(values: dict[str, Any]) -> dict[str, str]:
    _texts(list(values.values()), "env")
    return values


def _absolute(path: str) -> str:
    if not path.startswith("/") or "\0" in path:
        raise _wrong(f"cwd must be an absolute path, got {path!r:.60}")
    return path


def _wrong(what: str) -> DariError:
    return InvalidInput(f"the first line is not understood: {what}", "see dari.cli.hub.protocol")


def is_own_child(pid: int | None) -> bool:
    """A descendant, or one that bears the mark of a server that some bridge of ours started and that left its family.

    A pid that the kernel does not tell belongs to another namespace of processes, and only a sandbox has those.
    """
    if sys.platform != "linux":
        return False
    return pid is None or (pid != os.getpid() and is_descendant(pid, os.getpid())) or is_marked(pid)


def is_marked(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError:
        return False
    wanted = TAG_VARIABLE.encode() + b"="
    own = os.environ.get(TAG_VARIABLE, "").encode()
    for entry in environment.split(b"\0"):
        if entry.startswith(wanted):
            # A daemon may itself run below somebody's server; what runs beside it then bears the same marks.
            return entry[len(wanted) :] != own
    return False
