"""A person with a home, a project and an environment of their own, all below one temporary folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dari.bridge.config.catalog import Catalog
from dari.bridge.config.interpolate import ResolvedProfile
from dari.bridge.config.loader import FileContents, read_contents
from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.profile import HttpSettings, Profile, StdioSettings
from dari.bridge.config.service import ConfigService
from dari.bridge.config.trust import TrustStore


class World:
    def __init__(self, root: Path, platform: str = "linux") -> None:
        self.home = root / "home"
        self.cwd = root / "project"
        self.home.mkdir()
        self.cwd.mkdir()
        self.environ: dict[str, str] = {}
        self.keyring: dict[tuple[str, str], str] = {}
        self.store = TrustStore(root / "dari" / "bridge")
        self.book = ConfigService(
            ClientEnvironment(self.home, self.cwd, self.environ, platform),
            self.store,
            lambda service, name: self.keyring.get((service, name)),
        )

    @property
    def user_file(self) -> Path:
        return self.home / ".config/crewx/mcp.json"

    @property
    def project_file(self) -> Path:
        return self.cwd / ".crewx/mcp.json"

    def user(self, content: Any) -> Path:
        return put(self.user_file, content)

    def project(self, content: Any) -> Path:
        return put(self.project_file, content)

    def load(self) -> Catalog:
        return self.book.load()

    def states(self) -> dict[str, str]:
        return {one.id: one.state for one in self.load().listed}

    def resolve(self, id: str, **answers: str) -> ResolvedProfile:
        return self.book.resolve(self.load().usable(id), answers)


def put(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
    return path


def contents(document: Any, name: str = "mcp.json") -> FileContents:
    text = document if isinstance(document, str) else json.dumps(document, indent=2)
    return read_contents(text.encode(), Path("/somewhere") / name, "user")


def one(entry: dict[str, Any], **document: Any) -> Profile:
    """The profile of one CrewX server, with an address unless it names its own."""
    where = {} if "command" in entry or "stdio_config" in entry else {"baseUrl": "http://h:1"}
    found = contents({"servers": [{"id": "s", **where, **entry}], **document})
    assert found.broken == () and found.problems == ()
    return found.profiles[0]


def stdio(profile: Profile) -> StdioSettings:
    assert isinstance(profile.connection, StdioSettings)
    return profile.connection


def http(profile: Profile) -> HttpSettings:
    assert isinstance(profile.connection, HttpSettings)
    return profile.connection


def complaint(entry: Any, **document: Any) -> tuple[str, str]:
    """Message and hint of the one server that is broken."""
    found = contents({"servers": [entry], **document})
    assert found.profiles == ()
    return found.broken[0].message, found.broken[0].hint
