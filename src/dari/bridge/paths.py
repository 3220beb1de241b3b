"""Where one bridge lives on this machine: the names of its files. Every command without a daemon asks."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import Struct

from dari.bridge.cli_socket import protocol
from dari.daemon.paths import DaemonPaths
from dari.paths import home, runtime_path

NAME = "bridge"


class BridgePaths(Struct, frozen=True):
    """Where one bridge lives. With a run directory of its own a daemon has a state of its own in it."""

    run_dir: Path | None = None
    state_dir: Path | None = None

    @property
    def files(self) -> DaemonPaths:
        return DaemonPaths(NAME, self.run_dir.absolute() if self.run_dir is not None else runtime_path(NAME))

    @property
    def socket_path(self) -> Path:
        """The control socket."""
        return self.files.socket

    @property
    def cli_socket_path(self) -> Path:
        return self.files.run_dir / protocol.SOCKET_NAME

    @property
    def lock_path(self) -> Path:
        """Held while a host has anything open; `daemon.pid` is held while it takes calls."""
        return self.files.run_dir / "host.lock"

    @property
    def state_path(self) -> Path:
        if self.state_dir is not None:
            return self.state_dir.absolute()
        return self.run_dir.absolute() / "state" if self.run_dir is not None else home() / NAME

    @property
    def log_path(self) -> Path:
        return self.run_dir.absolute() / "bridge.log" if self.run_dir is not None else self.files.log

    @property
    def protected(self) -> tuple[Path, ...]:
        """Folders with our sockets and tokens, for `Bridge(protected=…)`."""
        return (self.files.run_dir,)

    def command(self, *, stays: bool = False) -> list[str]:
        """What starts a daemon here."""
        options = (("--run-dir", self.run_dir), ("--state-dir", self.state_dir))
        words = [part for name, path in options if path for part in (name, str(path.absolute()))]
        return [sys.executable, *protocol.DAEMON_ARGUMENTS, "serve", *words, *(["--stay"] if stays else [])]
