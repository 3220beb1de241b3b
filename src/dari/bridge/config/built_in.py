"""Servers that are part of Dari and need no profile: `crewx mcp remote … --server crewx-tools` (design 001 §15).

They serve commands only. The hub offers the same tools as its own toolkit, so the gateway mounts none of them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dari.bridge.config.catalog import CatalogEntry
from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.profile import Profile, ProfileSource, StdioSettings, ToolRules

CODE_TOOLS = "crewx-tools"
_SOURCE = ProfileSource("built in", 0, "built-in")
_INHERITED = (
    *("DARI_HOME", "TMPDIR", "VIRTUAL_ENV", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
)
_TIMEOUT_MS = 900_000
"""A test run takes long, and says how far it is."""


def built_in_servers(around: ClientEnvironment) -> tuple[CatalogEntry, ...]:
    """One entry each; it runs in the client's working folder."""
    command, *args = _command()
    profile = Profile(
        id=CODE_TOOLS,
        source=_SOURCE,
        connection=StdioSettings(
            command=command, args=(*args, "serve"), cwd=str(around.cwd), inherit_env=_INHERITED, sandbox="off"
        ),
        description="search, format, lint, test and refactor the code in the working folder",
        timeout_ms=_TIMEOUT_MS,
        tools=ToolRules(pin="off"),  # they change with Dari itself
    )
    return (CatalogEntry(id=CODE_TOOLS, source=_SOURCE, state="ready", profile=profile, workspace=around.cwd),)


def is_code_tools(profile: Profile) -> bool:
    """Whether it runs `crewx-tools serve`, under whatever name."""
    connection = profile.connection
    if not isinstance(connection, StdioSettings) or "serve" not in connection.args:
        return False
    return os.path.basename(connection.command) == CODE_TOOLS or "dari.cli.crewx_tools.main" in connection.args


def _command() -> list[str]:
    """The script that was installed beside our interpreter; without it, the module."""
    script = Path(sys.executable).with_name(CODE_TOOLS)
    return [str(script)] if os.access(script, os.X_OK) else [sys.executable, "-m", "dari.cli.crewx_tools.main"]
