"""The names of the files of one daemon, in one place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.errors import InvalidInput
from dari.paths import home, runtime_dir

if TYPE_CHECKING:
    from dari.daemon.tokens import Principal


class DaemonPaths(Struct, frozen=True):
    """Everything but the log lives in the run directory, which is 0700."""

    name: str
    run_dir: Path

    @classmethod
    def of(cls, name: str) -> DaemonPaths:
        """The files of a daemon in its usual place; the run directory is made when it is missing."""
        return cls(name, runtime_dir(name))

    @property
    def socket(self) -> Path:
        return self.run_dir / f"{self.name}.sock"

    @property
    def lock(self) -> Path:
        """Locked while a daemon serves the run directory, and holding its pid; it is never removed."""
        return self.run_dir / "daemon.pid"

    @property
    def start_lock(self) -> Path:
        """Locked while somebody starts the daemon."""
        return self.run_dir / "start.lock"

    @property
    def log(self) -> Path:
        return home() / "logs" / f"{self.name}.log"

    def token(self, principal: str, principals: tuple[Principal, ...] | None = None) -> Path:
        """Where the token of a principal lies; without a list, of one that every daemon has."""
        if principals is None:
            from dari.daemon.tokens import DEFAULT_PRINCIPALS

            principals = DEFAULT_PRINCIPALS
        for known in principals:
            if known.name == principal:
                return self.run_dir / known.token_file
        names = ", ".join(known.name for known in principals)
        raise InvalidInput(f"'{principal}' is no principal of {self.name}", f"use one of: {names}")
