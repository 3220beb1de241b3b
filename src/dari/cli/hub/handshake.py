"""The first line of a visitor, checked."""

from __future__ import annotations

import hmac
import json
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from dari.bridge.config.locations import ClientEnvironment
from dari.cli.hub.protocol import PROTOCOL_VERSION
from dari.errors import Conflict, DariError, Denied, InvalidInput

PURPOSES = ("cli", "mcp", "finish")


class VersionMismatch(Conflict):
    """The visitor is of another release or installation than its host."""

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
        """Where the visitor stands: its folder, its home and its environment, not ours."""
        home = self.env.get("HOME", "")
        return ClientEnvironment(
            Path(home) if home.startswith("/") else Path.home(), Path(self.cwd), self.env, sys.platform
        )

    def check(self, token: str, version: str, package: str) -> None:
        """Raise what the visitor is refused with."""
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
    """Data of the right types, or InvalidInput. Names that are no UTF-8 stay what they were: lone surrogates."""
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
        raise _wrong(f"{name} is no {kind.__name__}")
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
        raise _wrong(f"cwd {path!r:.60} is no absolute path")
    return path


def _wrong(what: str) -> DariError:
    return InvalidInput(f"the first line is not understood: {what}", "see dari.cli.hub.protocol")
