"""A project's file as a person sees it before trusting it: what it would run, what it would reach."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dari.bridge.config.catalog import mask_arguments
from dari.bridge.config.loader import FileContents
from dari.bridge.config.profile import HttpSettings, Profile, StdioSettings, safe_url
from dari.bridge.config.service import ConfigService
from dari.bridge.config.trust import TrustState
from dari.cli.remote.sheets import painted, plain, table
from dari.cli.remote.terminal import Terminal
from dari.errors import InvalidInput

_STATES = {
    "unknown": ("not trusted: nothing of it runs", "yellow"),
    "changed": ("changed since it was trusted: nothing of it runs", "yellow"),
    "trusted": ("trusted", "green"),
}


@dataclass(frozen=True)
class ProjectFile:
    path: Path
    digest: str
    state: TrustState
    contents: FileContents

    @classmethod
    def read(cls, given: Path | None, book: ConfigService) -> ProjectFile:
        """The file that was named, or the project's own; `InvalidInput` when it changes in this very moment."""
        path, digest, state = book.trust_state(given)
        contents = book.contents(path, path.read_bytes())
        if contents.digest != digest:
            raise InvalidInput(f"{path} is changing", "try again")
        return cls(path, digest, state, contents)

    def lines(self, terminal: Terminal) -> list[str]:
        word, style = _STATES[self.state.state]
        told = [painted(plain(self.path), "bold", terminal), f"  sha256  {self.digest}"]
        told.append(f"  state   {painted(word, style, terminal)}")
        runs = [(one, one.connection) for one in self.contents.profiles if isinstance(one.connection, StdioSettings)]
        reaches = [(one, one.connection) for one in self.contents.profiles if isinstance(one.connection, HttpSettings)]
        if runs:
            told += ["", "would run:"]
            for profile, stdio in runs:
                told += _command_lines(profile, stdio)
        if reaches:
            told += ["", "would reach:", *table([_address_row(*one) for one in reaches], "  ")]
        if self.contents.broken:
            told += ["", "cannot be read:", *(f"  {plain(one.message)}" for one in self.contents.broken)]
        if self.contents.imports:
            told += ["", f"joins in servers of: {plain(', '.join(self.contents.imports))}"]
        if self.state.changes:
            told += ["", "changes since it was trusted:", *(f"  {plain(line)}" for line in self.state.changes)]
        return [*told, ""]

    def payload(self, *, is_trusted: bool) -> dict[str, object]:
        return {
            "file": str(self.path),
            "sha256": self.digest,
            "state": "trusted" if is_trusted else self.state.state,
            "changes": list(self.state.changes),
            "servers": [_payload(one) for one in self.contents.profiles],
            "broken": [{"id": one.id, "message": one.message, "hint": one.hint} for one in self.contents.broken],
            "imports": list(self.contents.imports),
        }


def _command_lines(profile: Profile, stdio: StdioSettings) -> list[str]:
    """The command as it would be typed, then one line for each thing that it is given."""
    words = " ".join(_quoted(word) for word in (stdio.command, *mask_arguments(stdio.args)))
    told = [f"  {plain(profile.id)}: {words}{'' if profile.is_enabled else '  (disabled)'}"]
    given = {
        "in": stdio.cwd,
        "sets": ", ".join(sorted(stdio.env)),
        "reads variables of": stdio.env_file,
        "gets your": ", ".join(stdio.inherit_env),
        "files": _files(stdio),
        "network": " ".join((stdio.network.mode, *stdio.network.hosts)),
        "sandbox": stdio.sandbox if stdio.is_confined else "none: it may do what you may do",
    }
    return told + [f"      {name}: {plain(value)}" for name, value in given.items() if value]


def _files(stdio: StdioSettings) -> str:
    if stdio.allowed_paths is None:
        return ""
    return ", ".join(f"{one.path} ({one.mode})" for one in stdio.allowed_paths) or "only what it needs to run"


def _address_row(profile: Profile, http: HttpSettings) -> tuple[str, str, str]:
    sends = [*http.headers, *(["a token"] if http.auth.type in ("bearer", "header") else [])]
    off = "" if profile.is_enabled else " (disabled)"
    return f"{profile.id}:", safe_url(http.url) + off, f"sends {', '.join(sends)}" if sends else ""


def _quoted(word: str) -> str:
    import shlex

    return plain(shlex.quote(word)) if word.isascii() else plain(f"'{word}'")


def _payload(profile: Profile) -> dict[str, object]:
    told: dict[str, object] = {"id": profile.id, "kind": profile.kind, "enabled": profile.is_enabled}
    connection = profile.connection
    if isinstance(connection, StdioSettings):
        told |= {"command": connection.command, "args": mask_arguments(connection.args), "env": sorted(connection.env)}
        told |= {"inheritEnv": list(connection.inherit_env), "sandbox": connection.sandbox}
        return told
    return told | {"url": safe_url(connection.url), "headers": sorted(connection.headers), "auth": connection.auth.type}
