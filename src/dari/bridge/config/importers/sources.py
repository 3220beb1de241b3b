"""Which files of other programs hold MCP servers, on Linux and macOS, and under which key."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from dari.bridge.config.jsonc import JsonValue
from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.schema import ProgramName

Shape = Literal["mcpServers", "claude-code", "servers", "settings", "codex", "gemini", "opencode"]


JsonEntry = dict[str, JsonValue]


class ForeignServer(Struct, frozen=True):
    """One server of another program, as ours are written."""

    id: str
    entry: JsonEntry
    line: int
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Foreign({self.id!r}, line {self.line})"  # the entry may hold secrets


class ImportSource(Struct, frozen=True):
    """One file that a program may have."""

    program: ProgramName
    path: Path
    shape: Shape
    project: Path | None = None
    """The project that the file belongs to; None for one of the person's own."""
    cwd: Path | None = None
    """Whose part counts in a file with parts for several projects."""


PROGRAMS: tuple[ProgramName, ...] = (
    "claude-desktop",
    "claude-code",
    "cursor",
    "vscode",
    "codex",
    "gemini",
    "windsurf",
    "opencode",
)


def source_files(program: ProgramName, around: ClientEnvironment) -> tuple[ImportSource, ...]:
    """The files of one program, whether they exist or not; the ones of the project first."""
    found = _all_files(program, around)
    own = {one.path for one in found if one.project is None}
    # Somebody who works in their home has one file, which is their own.
    return tuple(one for one in found if one.project is None or one.path not in own)


def _all_files(program: ProgramName, around: ClientEnvironment) -> tuple[ImportSource, ...]:
    home, cwd = around.home, around.cwd
    support = _support(around)
    match program:
        case "claude-desktop":
            return (ImportSource(program, support / "Claude/claude_desktop_config.json", "mcpServers"),)
        case "claude-code":
            folder = around.environ.get("CLAUDE_CONFIG_DIR")
            own = Path(folder) / ".claude.json" if folder else home / ".claude.json"
            return (
                ImportSource(program, cwd / ".mcp.json", "mcpServers", cwd),
                ImportSource(program, own, "claude-code", cwd=cwd),
            )
        case "cursor":
            return (
                ImportSource(program, cwd / ".cursor/mcp.json", "mcpServers", cwd),
                ImportSource(program, home / ".cursor/mcp.json", "mcpServers"),
            )
        case "vscode":
            own_files = [
                ImportSource(program, support / edition / "User" / name, shape)
                for edition in ("Code", "Code - Insiders", "VSCodium")
                for name, shape in _VSCODE_FILES
            ]
            project = [ImportSource(program, cwd / ".vscode" / name, shape, cwd) for name, shape in _VSCODE_FILES]
            return (*project, *own_files)
        case "codex":
            folder = around.environ.get("CODEX_HOME")
            own = Path(folder) if folder else home / ".codex"
            return (
                ImportSource(program, cwd / ".codex/config.toml", "codex", cwd),
                ImportSource(program, own / "config.toml", "codex"),
            )
        case "gemini":
            return (
                ImportSource(program, cwd / ".gemini/settings.json", "gemini", cwd),
                ImportSource(program, home / ".gemini/settings.json", "gemini"),
            )
        case "windsurf":
            return (ImportSource(program, home / ".codeium/windsurf/mcp_config.json", "mcpServers"),)
        case "opencode":
            names = ("opencode.json", "opencode.jsonc")
            return (
                *(ImportSource(program, cwd / name, "opencode", cwd) for name in names),
                *(ImportSource(program, home / ".config/opencode" / name, "opencode") for name in names),
            )


_VSCODE_FILES: tuple[tuple[str, Shape], ...] = (("mcp.json", "servers"), ("settings.json", "settings"))


def _support(around: ClientEnvironment) -> Path:
    """Where desktop programs keep their settings."""
    if around.platform == "darwin":
        return around.home / "Library/Application Support"
    named = around.environ.get("XDG_CONFIG_HOME", "")
    return Path(named) if named.startswith("/") else around.home / ".config"
