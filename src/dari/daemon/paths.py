"""The files of one daemon. Only `os` is imported here: a command that finds its daemon running pays for no more.

    <run_dir>/<name>.sock       the socket
    <run_dir>/daemon.pid        locked while the daemon runs; holds its pid
    <run_dir>/start.lock        locked during the start
    <run_dir>/<who>.token       what a caller shows
    <home>/logs/<name>.log      stdout and stderr
    <home>/<name>               what it keeps

A daemon with a run directory of its own has log and state in there, too.
"""

from __future__ import annotations

import os

from dari.home import absolute, home_dir, runtime_dir

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from pathlib import Path

    AnyPath = str | os.PathLike[str]

PRINCIPAL_NAMES = ("app", "cli", "mcp")
"""Every daemon has a token file for each of these; `dari.daemon.tokens` says what each may do."""


class DaemonPaths:
    """Nothing is made or read. `…_text` is for callers that cannot afford `pathlib`; the other names are `Path`s."""

    def __init__(
        self,
        name: str,
        run_dir: AnyPath | None = None,
        *,
        socket: AnyPath | None = None,
        state_dir: AnyPath | None = None,
        lock_name: str = "daemon.pid",
    ) -> None:
        self.name = name
        self._given = {"--run-dir": _text(run_dir), "--socket": _text(socket), "--state-dir": _text(state_dir)}
        self._lock_name = lock_name
        self.run_dir_text = self._given["--run-dir"] or runtime_dir(name)

    def arguments(self) -> list[str]:
        """The options that name these paths to the daemon's own program."""
        return [word for option, path in self._given.items() if path for word in (option, path)]

    @property
    def socket_text(self) -> str:
        return self._given["--socket"] or f"{self.run_dir_text}/{self.name}.sock"

    @property
    def start_lock_text(self) -> str:
        return f"{self.run_dir_text}/start.lock"

    @property
    def lock_text(self) -> str:
        return f"{self.run_dir_text}/{self._lock_name}"

    @property
    def log_text(self) -> str:
        own = self._given["--run-dir"]
        return f"{own}/{self.name}.log" if own else f"{home_dir()}/logs/{self.name}.log"

    def token_text(self, principal: str) -> str:
        return f"{self.run_dir_text}/{principal}.token"

    @property
    def run_dir(self) -> Path:
        """0700; made when the daemon starts."""
        return _path(self.run_dir_text)

    @property
    def socket(self) -> Path:
        return _path(self.socket_text)

    @property
    def start_lock(self) -> Path:
        """Locked while the daemon is being started."""
        return _path(self.start_lock_text)

    @property
    def lock(self) -> Path:
        """Locked while the daemon runs, and holding its pid; it is never removed."""
        return _path(self.lock_text)

    @property
    def log(self) -> Path:
        return _path(self.log_text)

    @property
    def state_dir(self) -> Path:
        own = self._given["--run-dir"]
        return _path(self._given["--state-dir"] or (f"{own}/state" if own else f"{home_dir()}/{self.name}"))

    def token(self, principal: str) -> Path:
        """The token file of a principal that every daemon has."""
        if principal not in PRINCIPAL_NAMES:
            from dari.errors import InvalidInput

            raise InvalidInput(
                f"the principal of {self.name} must be one of {', '.join(PRINCIPAL_NAMES)}, got {principal!r}"
            )
        return _path(self.token_text(principal))


def _text(path: AnyPath | None) -> str:
    return "" if path is None else absolute(os.fspath(path))


def _path(text: str) -> Path:
    from pathlib import Path

    return Path(text)
