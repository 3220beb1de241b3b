"""The environment that a program started in a pane would have now."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from dari.errors import InvalidInput, Unavailable
from dari.terminal.panes.pane import Pane
from dari.terminal.policy.config import config_path

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# What every shell and terminal sets anew: to bring it back would be wrong.
_OWN = re.compile(r"_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|TERM|COLORTERM|TERM_PROGRAM(_VERSION)?|CRUX_.*|WINDOWID|BASHOPTS")


def is_of_terminal(name: str) -> bool:
    """Whether the variable belongs to this one shell or terminal."""
    return _OWN.fullmatch(name) is not None


async def current_environment(pane: Pane, run_quietly: Callable[[Pane, str], Awaitable[bytes]]) -> dict[str, str]:
    """What the shell exports at its prompt, or what the program got that runs in front of it."""
    if pane.is_at_prompt:
        return _parsed(await run_quietly(pane, "command env -0"))
    process = pane.foreground()
    if sys.platform != "linux" or process is None:
        raise Unavailable(f"the environment of pane {pane.id} cannot be read now", "wait for its prompt")
    try:
        return _parsed(Path(f"/proc/{process.pid}/environ").read_bytes())
    except OSError as error:
        raise Unavailable(f"process {process.pid} does not show its environment", "wait for the prompt") from error


def load_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """`[terminal.environment]` of crux.toml: NAME = "value" for every pane; none when there is no file.

    `load_security` has read the file before, so that it is sound.
    """
    try:
        tables = tomllib.loads(config_path(environ, Path.home()).read_text())
    except FileNotFoundError:
        return {}
    table = tables.get("terminal", {})
    found = table.get("environment", {}) if isinstance(table, dict) else {}
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InvalidInput(
            "terminal.environment of crux.toml is no table of texts", 'write [terminal.environment] and NAME = "value"'
        )
    for name, value in found.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise InvalidInput(
                f"terminal.environment of crux.toml: {name!r} is no variable", "use letters, digits and _"
            )
    return found


def _parsed(data: bytes) -> dict[str, str]:
    pairs = (entry.partition(b"=") for entry in data.split(b"\0") if b"=" in entry)
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs}
