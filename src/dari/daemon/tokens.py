"""Tokens: who may call a daemon and with which scopes, signed by a key that dies with the daemon.

    token = base64url(payload) "." base64url(HMAC-SHA256(key, payload)), both unpadded
    payload = {"aud": principal, "scopes": [...], "iat": seconds, "jti": uuid4}

The key is random at every start and never leaves memory; a token has no expiry of its own.
"""

from __future__ import annotations

import hmac
import os
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import msgspec

from dari.daemon.errors import DaemonError, ErrorCode
from dari.errors import Failed, InvalidInput
from dari.os_errors import describe_os_error, suggest_next_step
from dari.paths import FileId, remove_own, write_private
from dari.rpc.codec import UNREADABLE, encode
from dari.struct_types import ready

TOKEN_KEY_BYTES = 32
MAX_TOKEN_CHARS = 4096

_PART = re.compile(r"[A-Za-z0-9_-]+")


class Principal(msgspec.Struct, frozen=True):
    """A kind of caller. Scopes are independent: none implies another."""

    name: str
    scopes: tuple[str, ...]

    def __post_init__(self) -> None:
        if not _PART.fullmatch(self.name):
            raise InvalidInput(f"a principal name must have letters and digits only, got {self.name!r}", "rename it")

    @property
    def token_file(self) -> str:
        return f"{self.name}.token"


APP = Principal("app", ("read", "rules.write", "control", "admin"))
CLI = Principal("cli", ("read", "rules.write", "control", "admin"))
MCP = Principal("mcp", ("read", "rules.write", "control"))
DEFAULT_PRINCIPALS = (APP, CLI, MCP)


class Claims(msgspec.Struct, frozen=True):
    """What a token says about its holder."""

    aud: str
    scopes: tuple[str, ...]
    iat: int
    jti: str


_decode_claims = msgspec.json.Decoder(ready(Claims)).decode


class Tokens:
    """The token files of one run directory. A rotation makes every earlier token and session worthless."""

    def __init__(self, run_dir: Path, principals: Sequence[Principal] = DEFAULT_PRINCIPALS) -> None:
        self._run_dir = run_dir
        self._principals = tuple(principals)
        self._key = os.urandom(TOKEN_KEY_BYTES)
        self._files: dict[Path, FileId] = {}
        self.epoch = 1

    def write(self) -> None:
        """Write one token file per principal."""
        self._write(self._key)

    def rotate(self) -> None:
        """A new key and new files. It blocks on purpose: no session may run between the files and the key."""
        key = os.urandom(TOKEN_KEY_BYTES)
        try:
            self._write(key)
        except OSError as error:
            with suppress(OSError):
                self._write(self._key)
            raise Failed(
                f"cannot write token files in {self._run_dir}: {describe_os_error(error)}",
                suggest_next_step(error, "check its owner and mode"),
            ) from error
        self._key = key
        self.epoch += 1

    def verify(self, token: str) -> Claims:
        """The claims of a token of ours; anything else is AUTH_FAILED."""
        payload = _signed_payload(token, self._key)
        try:
            claims = _decode_claims(payload)
        except UNREADABLE as error:
            raise _rejected("unreadable payload") from error
        if claims.aud not in {principal.name for principal in self._principals}:
            raise _rejected(f"unknown audience '{claims.aud}'")
        return claims

    def remove(self) -> None:
        """Remove the token files that are still ours, and forget the key: the next start has its own."""
        for path, written in self._files.items():
            remove_own(path, written)
        self._files.clear()
        self._key = os.urandom(TOKEN_KEY_BYTES)

    def _write(self, key: bytes) -> None:
        for principal in self._principals:
            path = self._run_dir / principal.token_file
            self._files[path] = write_private(path, make_token(key, principal).encode())


def make_token(key: bytes, principal: Principal) -> str:
    """A token for this principal, signed with the key."""
    payload = encode(Claims(principal.name, principal.scopes, int(time.time()), str(uuid4())))
    return f"{_to_text(payload)}.{_to_text(_signature(key, payload))}"


def read_token(path: Path) -> str:
    """The token in a file, without the newline an editor may have added."""
    return path.read_text(encoding="ascii").strip()


def _signed_payload(token: str, key: bytes) -> bytes:
    if len(token) > MAX_TOKEN_CHARS:
        raise _rejected("too long")
    parts = token.split(".")
    if len(parts) != 2:
        raise _rejected("malformed")
    payload, signature = (_to_bytes(part) for part in parts)
    if not hmac.compare_digest(signature, _signature(key, payload)):
        raise _rejected("bad signature")
    return payload


def _signature(key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, payload, "sha256")


def _to_text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _to_bytes(text: str) -> bytes:
    """Unpadded base64url, one spelling per value: spare bits at the end must be zero."""
    # A length of 4n+1 encodes nothing.
    if not _PART.fullmatch(text) or len(text) % 4 == 1:
        raise _rejected("malformed")
    data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if _to_text(data) != text:
        raise _rejected("malformed")
    return data


def _rejected(reason: str) -> DaemonError:
    return DaemonError(ErrorCode.AUTH_FAILED, f"token verify failed: {reason}")
