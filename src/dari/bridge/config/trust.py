"""Project files run nothing until a person has confirmed their content; it is remembered by its hash."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from dari.bridge.config.jsonc import JsonValue, Node
from dari.bridge.config.loader import content_digest, parse_document
from dari.bridge.config.profile import safe_url
from dari.bridge.config.writer import folder_lock
from dari.errors import DariError, Failed
from dari.paths import home, private_dir, write_private
from dari.struct_types import ready

_SHOWN = ("command", "cwd", "kind", "type", "transport_type")
_SHOWN_URLS = ("url", "baseUrl", "serverUrl", "httpUrl", "fallbackUrl")


class TrustedFile(Struct, frozen=True):
    """What was trusted: the hash of the bytes, and the servers, to tell later what changed."""

    sha256: str
    pinned_at: float
    servers: dict[str, dict[str, str]]
    """Per server and field: the value where it can be shown, else a hash."""


class TrustState(Struct, frozen=True):
    """`changes` has the differences from the pinned file, one line each."""

    state: Literal["trusted", "changed", "unknown"]
    changes: tuple[str, ...] = ()


class _Pins(Struct):
    version: int = 1
    files: dict[str, TrustedFile] = {}
    refused: dict[str, str] = {}
    """By path: the hash of the content that a person said no to."""


class TrustStore:
    """Pins in one 0600 file under Dari's home, by path: a link cannot borrow another file's trust."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = (folder or home() / "bridge") / "trust.json"

    def state(self, path: Path, data: bytes) -> TrustState:
        """How these bytes stand to what was pinned for this path."""
        pin = self._load().files.get(_key(path))
        if pin is None:
            return TrustState("unknown")
        if pin.sha256 == content_digest(data):
            return TrustState("trusted")
        return TrustState("changed", describe_changes(pin.servers, outline(data, path)))

    def is_pinned(self, path: Path, sha256: str) -> bool:
        """Whether this content was pinned for this path."""
        pin = self._load().files.get(_key(path))
        return pin is not None and pin.sha256 == sha256

    def trust(self, path: Path, data: bytes) -> TrustedFile:
        """Pin exactly these bytes: give what was shown to the person, not what the file holds by now."""
        pin = TrustedFile(content_digest(data), time.time(), outline(data, path))
        private_dir(self.path.parent)
        with folder_lock(self.path.parent):
            pins = self._load()
            pins.files[_key(path)] = pin
            pins.refused.pop(_key(path), None)
            self._save(pins)
        return pin

    def refuse(self, path: Path, sha256: str) -> None:
        """Remember that a person said no to this content. What was pinned before stays."""
        private_dir(self.path.parent)
        with folder_lock(self.path.parent):
            pins = self._load()
            pins.refused[_key(path)] = sha256
            self._save(pins)

    def is_refused(self, path: Path, sha256: str) -> bool:
        return self._load().refused.get(_key(path)) == sha256

    def distrust(self, path: Path) -> bool:
        """Forget the file; False when it was not pinned."""
        if not self.path.exists():
            return False
        with folder_lock(self.path.parent):
            pins = self._load()
            if pins.files.pop(_key(path), None) is None:
                return False
            self._save(pins)
        return True

    def pinned(self) -> dict[str, TrustedFile]:
        return self._load().files

    def _load(self) -> _Pins:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return _Pins()
        except OSError as error:
            raise Failed(f"cannot read {self.path}: {error.strerror}", "check who owns it") from error
        try:
            return msgspec.json.decode(data, type=ready(_Pins))
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Unreadable pins trust nothing; the file stays until the next pin replaces it.
            return _Pins()

    def _save(self, pins: _Pins) -> None:
        write_private(self.path, msgspec.json.format(msgspec.json.encode(pins), indent=2))


def outline(data: bytes, path: Path) -> dict[str, dict[str, str]]:
    """Every server of the file, broken ones included, field by field; nothing secret is kept."""
    try:
        root = parse_document(data, path)
    except DariError:
        return {}
    found: dict[str, dict[str, str]] = {}
    for name, node in _server_nodes(root):
        plain = node.plain()
        fields = plain if isinstance(plain, dict) else {"": plain}
        nested = fields.get("stdio_config")
        if isinstance(nested, dict):
            fields = {**fields, **nested}
        found[name] = {field: _shown(field, value) for field, value in fields.items() if field != "stdio_config"}
    return found


def describe_changes(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> tuple[str, ...]:
    """What a person should look at, one line per server."""
    lines = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is None:
            lines.append(f"+ {name}: new{_what_runs(new or {})}")
        elif new is None:
            lines.append(f"- {name}: removed")
        elif old != new:
            lines.append(f"~ {name}: {', '.join(_field_changes(old, new))}")
    if not before and not after:
        return ("the file changed",)  # one of another program, whose servers stand elsewhere
    return tuple(lines) or ("the servers are the same; something else in the file changed",)


def _field_changes(old: dict[str, str], new: dict[str, str]) -> list[str]:
    field_changes = []
    for field in sorted(old.keys() | new.keys()):
        if old.get(field) == new.get(field):
            continue
        if field in _SHOWN or field in _SHOWN_URLS:
            field_changes.append(f"{field} {old.get(field, 'none')} → {new.get(field, 'none')}")
        else:
            field_changes.append(
                f"{field} {'added' if field not in old else 'removed' if field not in new else 'changed'}"
            )
    return field_changes


def _what_runs(fields: dict[str, str]) -> str:
    shown = [fields[field] for field in ("command", *_SHOWN_URLS) if field in fields]
    return f", {shown[0]}" if shown else ""


def _shown(field: str, value: JsonValue) -> str:
    if isinstance(value, str) and field in _SHOWN_URLS:
        return safe_url(value)
    if isinstance(value, str) and field in _SHOWN:
        return value
    return "sha256:" + content_digest(msgspec.json.encode(value, order="sorted"))[:16]


def _server_nodes(root: Node) -> list[tuple[str, Node]]:
    found = []
    endpoints = root.get("mcp")
    for node in (root.get("servers"), root.get("mcpServers"), endpoints.get("endpoints") if endpoints else None):
        for index, member in enumerate(node.members if node else ()):
            named = member.value.get("id") or member.value.get("name")
            name = member.key or (str(named.scalar) if named is not None else f"[{index}]")
            found.append((name, member.value))
    return found


def _key(path: Path) -> str:
    """By its place, not by what it links to: a link to a trusted file stands in another folder, where `./tool` and
    `${workspaceFolder}` are something else."""
    path = path.absolute()
    return os.path.join(os.path.realpath(path.parent.parent), path.parent.name, path.name)
