"""`[mcp.security]` of crux.toml: what may run in a pane, and where.

$CRUX_CONFIG                     used when set; the file must exist
~/.config/crux/crux.toml         used when it exists ($XDG_CONFIG_HOME/crux/crux.toml where that is set)
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from dari.errors import Denied, InvalidInput, NotFound
from dari.struct_types import ready
from dari.terminal.limits import DEFAULT_WAIT_MS

DANGEROUS = ("rm", "sudo", "chmod", "kill")
"""The list of design 002 §7.3."""
DENIED = ("mkfs", "mkfs.*", "wipefs", "fdisk", "sfdisk", "parted", "shutdown", "reboot", "halt", "poweroff")


class Security(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings, checked. `source` is the file they came from, "" for the built-in ones."""

    allowed_commands: tuple[str, ...] = ()
    """Runs without asking; with any given, all other commands ask. Empty: only the two lists below decide."""
    dangerous_patterns: tuple[str, ...] = DANGEROUS
    """Always asks."""
    denied_patterns: tuple[str, ...] = DENIED
    """Never runs."""
    allowed_directories: tuple[str, ...] = ()
    """Commands stay below these; empty: anywhere."""
    command_timeout_ms: int = DEFAULT_WAIT_MS
    max_panes: int = 20
    approval_wait_ms: int = 0
    """How long a call of a client that cannot ask a person waits for `crux approvals`."""
    elicitation_clients: tuple[str, ...] = ()
    """MCP clients, by the name they give themselves, whose forms may approve a call. Their answers come over the
    agent's connection, so none may unless it is named here."""
    calls_per_second: int = 100
    """By one client; 0: no limit."""
    calls_at_once: int = 400
    sandbox: Literal["off", "workspace"] = "off"
    """workspace: panes that agents open are confined by the kernel, and agents type into no others."""
    source: str = ""


def config_path(environ: Mapping[str, str], home: Path) -> Path:
    """The file that is read; it need not exist unless `CRUX_CONFIG` names it."""
    chosen = environ.get("CRUX_CONFIG", "")
    if chosen:
        return Path(chosen.replace("~", str(home), 1) if chosen.startswith("~/") else chosen).absolute()
    base = environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if os.path.isabs(base) else home / ".config") / "crux" / "crux.toml"


def load_security(environ: Mapping[str, str] | None = None, home: Path | None = None) -> Security:
    """The settings of this user; the built-in ones when there is no file."""
    environ = os.environ if environ is None else environ
    home = Path.home() if home is None else home
    path = config_path(environ, home)
    try:
        with path.open("rb") as stream:
            info = os.fstat(stream.fileno())
            data = stream.read(1 << 20)
    except FileNotFoundError as error:
        if environ.get("CRUX_CONFIG"):
            raise NotFound(f"CRUX_CONFIG names {path}, which does not exist", "write the file or unset it") from error
        return Security()
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}", "make it a file that you may read") from error
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or info.st_uid not in (os.geteuid(), 0):
        raise Denied(f"others may write to {path}, which decides what runs", f"chmod 600 {path}")
    return parse_security(data, str(path), home)


def parse_security(data: bytes, source: str, home: Path) -> Security:
    """The table `[mcp.security]` of a crux.toml; errors name file, line and field."""
    import tomllib  # most people have no such file

    try:
        text = data.decode()
        tables = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidInput(f"{source}:{line}: not UTF-8", "save the file as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", str(error))
        line = int(match[1]) if match and match[1] else text.count("\n") + 1
        fact = re.sub(r"\s*\(at .*\)$", "", str(error))
        raise InvalidInput(f"{source}:{line}: {fact}", "correct the TOML") from error
    table = tables.get("mcp", {})
    table = table.get("security", {}) if isinstance(table, dict) else table
    if not isinstance(table, dict):
        raise InvalidInput(f"{source}: mcp.security must be a table", "write [mcp.security]")
    return _checked(table, text, source, home)


def _checked(table: dict[str, object], text: str, source: str, home: Path) -> Security:
    def wrong(field: str, fact: str, hint: str) -> InvalidInput:
        return InvalidInput(f"{source}:{_line_of(text, field)}: mcp.security.{field}: {fact}", hint)

    fields = [name for name in Security.__struct_fields__ if name != "source"]
    for field in table:
        if field not in fields:
            import difflib

            near = difflib.get_close_matches(field, fields, 1)
            hint = f"did you mean {near[0]}?" if near else "known: " + ", ".join(fields)
            raise wrong(field, "no such setting", hint)
    try:
        security = msgspec.convert({**table, "source": source}, ready(Security))
    except msgspec.ValidationError as error:
        match = re.search(r"\$\.(\w+)", str(error))
        field = match[1] if match else next(iter(table))
        raise wrong(field, str(error).split(" - at")[0], _EXPECTED.get(field, "correct the value")) from error
    for field, most in _MOST.items():
        value, least = getattr(security, field), 0 if field in ("approval_wait_ms", "calls_per_second") else 1
        if not least <= value <= most:
            raise wrong(field, f"{value} is not between {least} and {most}", _EXPECTED[field])
    for field in ("allowed_commands", "dangerous_patterns", "denied_patterns"):
        if any(not pattern.strip() for pattern in getattr(security, field)):
            raise wrong(field, "an empty pattern", "remove it, or write a command such as 'git *'")
    return msgspec.structs.replace(
        security, allowed_directories=tuple(_directory(path, home, wrong) for path in security.allowed_directories)
    )


_MOST = {
    "command_timeout_ms": 24 * 3600 * 1000,
    "max_panes": 1000,
    "approval_wait_ms": 3600 * 1000,
    "calls_per_second": 100_000,
    "calls_at_once": 1_000_000,
}
_EXPECTED = {
    "allowed_commands": 'write a list of patterns, such as ["ls", "git *"]',
    "dangerous_patterns": 'write a list of patterns, such as ["rm", "sudo"]',
    "denied_patterns": 'write a list of patterns, such as ["mkfs*"]',
    "allowed_directories": 'write a list of directories, such as ["~/project"]',
    "command_timeout_ms": "write milliseconds, such as 30000",
    "max_panes": "write a number, such as 20",
    "approval_wait_ms": "write milliseconds, such as 30000, or 0 to answer at once",
    "elicitation_clients": 'write a list of client names, such as ["claude-code"]',
    "calls_per_second": "write a number, such as 100, or 0 for no limit",
    "calls_at_once": "write a number, such as 400",
    "sandbox": 'write "off" or "workspace"',
}


def _directory(path: str, home: Path, wrong: Callable[[str, str, str], InvalidInput]) -> str:
    if path == "~" or path.startswith("~/"):
        path = str(home) + path[1:]
    if not os.path.isabs(path):
        raise wrong("allowed_directories", f"{path!r} is not absolute", "write a path that starts with / or ~/")
    return os.path.realpath(path)


def _line_of(text: str, field: str) -> int:
    """The line of `field` in [mcp.security]; the first line of the table when the field is written another way."""
    section = ""
    table_line = 1
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\s*([^\]]+?)\s*\]", line)
        if header:
            section = re.sub(r"[\s\"']", "", header[1])
            if section == "mcp.security":
                table_line = number
        elif (section == "mcp.security" and re.match(rf"\s*[\"']?{re.escape(field)}[\"']?\s*=", line)) or re.match(
            rf"\s*(mcp\.)?security\.{re.escape(field)}\s*=", line
        ):
            return number
    return table_line
