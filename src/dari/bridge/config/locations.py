"""Where configuration files are searched (design 001 §5), strongest first.

    env       the file that CREWX_MCP_JSON names
    project   ./.crewx/mcp.json          runs nothing until it is trusted
    user      ~/.config/crewx/mcp.json

A YAML file of the same name beside the JSON one is read after it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from dari.bridge.config.profile import Layer
from dari.errors import InvalidInput

LOCATION_VARIABLE = "CREWX_MCP_JSON"
FILE_NAMES = ("mcp.json", "mcp.yaml", "mcp.yml")


class ConfigLocation(Struct, frozen=True):
    """One file that is read when it is there."""

    path: Path
    layer: Layer
    workspace: Path
    is_asked_for: bool = False
    """It was named, so that its absence is a problem."""


class ClientEnvironment(Struct, frozen=True):
    """Home, working folder and environment of the client for which profiles are resolved."""

    home: Path
    cwd: Path
    environ: Mapping[str, str]
    platform: str = "linux"

    @classmethod
    def of_process(cls, cwd: Path | None = None) -> ClientEnvironment:
        import sys

        return cls(Path.home(), (cwd or Path.cwd()).absolute(), dict(os.environ), sys.platform)

    def places(self) -> tuple[ConfigLocation, ...]:
        """All files that count, strongest first; a file named twice counts once, as the stronger, and the
        person's own always as theirs."""
        found: dict[str, ConfigLocation] = {}
        named = self.environ.get(LOCATION_VARIABLE, "")
        if named:
            path = self.cwd / (str(self.home) + named[1:] if named.startswith("~/") else named)
            found[os.path.realpath(path)] = ConfigLocation(path, "env", self.cwd, True)
        for folder, layer in ((self.cwd / ".crewx", "project"), (self.home / ".config/crewx", "user")):
            for name in FILE_NAMES:
                place = ConfigLocation(folder / name, layer, self.cwd)  # type: ignore[arg-type]
                real = os.path.realpath(place.path)
                # A project that links to the person's own file does not make it a file of the project.
                if real not in found or (layer == "user" and found[real].layer == "project"):
                    found[real] = place
        return tuple(found.values())

    def file_of(self, layer: Layer) -> Path:
        """The file that `add` writes to."""
        if layer == "env":
            named = next((place.path for place in self.places() if place.layer == "env"), None)
            if named is None:
                raise InvalidInput(
                    f"{LOCATION_VARIABLE} is not set", "set it, or write to the user's or the project's file"
                )
            return named
        if layer in ("import", "argument", "built-in"):
            raise InvalidInput(
                "Dari does not change files of other programs", "import the server, then change the copy"
            )
        folder = self.cwd / ".crewx" if layer == "project" else self.home / ".config/crewx"
        return folder / FILE_NAMES[0]
