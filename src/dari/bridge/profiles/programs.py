"""Where other programs keep their MCP servers, on Linux and macOS, and where in those files they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from dari.bridge.profiles.entries import ProgramName
from dari.bridge.profiles.nodes import JsonValue
from dari.bridge.profiles.places import Surroundings

Shape = Literal["mcpServers", "claude-code", "servers", "settings", "codex", "gemini", "opencode"]


Entry = dict[str, JsonValue]


class Foreign(Struct, frozen=True):
    """One server of another program, as ours are written."""

    id: str
    entry: Entry
    line: int
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Foreign({self.id!r}, line {self.line})"  # the entry may hold secrets


class Found(Struct, frozen=True):
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


def files_of(program: ProgramName, around: Surroundings) -> tuple[Found, ...]:
    """The files of one program, whether they exist or not; the ones of the project first."""
    home, cwd = around.home, around.cwd
    support = _support(around)
    match program:
        case "claude-desktop":
            return (Found(program, support / "Claude/claude_desktop_config.json", "mcpServers"),)
        case "claude-code":
            folder = around.environ.get("CLAUDE_CONFIG_DIR")
            own = Path(folder) / ".claude.json" if folder else home / ".claude.json"
            return (Found(program, cwd / ".mcp.json", "mcpServers", cwd), Found(program, own, "claude-code", cwd=cwd))
        case "cursor":
            return (
                Found(program, cwd / ".cursor/mcp.json", "mcpServers", cwd),
                Found(program, home / ".cursor/mcp.json", "mcpServers"),
            )
        case "vscode":
            own_files = [
                Found(program, support / edition / "User" / name, shape)
                for edition in ("Code", "Code - Insiders", "VSCodium")
                for name, shape in _VSCODE_FILES
            ]
            project = [Found(program, cwd / ".vscode" / name, shape, cwd) for name, shape in _VSCODE_FILES]
            return (*project, *own_files)
        case "codex":
            folder = around.environ.get("CODEX_HOME")
            own = Path(folder) if folder else home / ".codex"
            return (
                Found(program, cwd / ".codex/config.toml", "codex", cwd),
                Found(program, own / "config.toml", "codex"),
            )
        case "gemini":
            return (
                Found(program, cwd / ".gemini/settings.json", "gemini", cwd),
                Found(program, home / ".gemini/settings.json", "gemini"),
            )
        case "windsurf":
            return (Found(program, home / ".codeium/windsurf/mcp_config.json", "mcpServers"),)
        case "opencode":
            names = ("opencode.json", "opencode.jsonc")
            return (
                *(Found(program, cwd / name, "opencode", cwd) for name in names),
                *(Found(program, home / ".config/opencode" / name, "opencode") for name in names),
            )


_VSCODE_FILES: tuple[tuple[str, Shape], ...] = (("mcp.json", "servers"), ("settings.json", "settings"))


def _support(around: Surroundings) -> Path:
    """Where desktop programs keep their settings."""
    if around.platform == "darwin":
        return around.home / "Library/Application Support"
    named = around.environ.get("XDG_CONFIG_HOME", "")
    return Path(named) if named.startswith("/") else around.home / ".config"
