"""The files of the hub. Every command asks, so nothing heavy is imported."""

from __future__ import annotations

from dari.cli.hub.protocol import SOCKET_NAME
from dari.daemon.paths import DaemonPaths

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from pathlib import Path

    from dari.daemon.paths import AnyPath

NAME = "bridge"


class BridgePaths(DaemonPaths):
    """The control socket is `socket`; commands and MCP clients come in by `cli_socket`."""

    def __init__(self, run_dir: AnyPath | None = None, state_dir: AnyPath | None = None) -> None:
        super().__init__(NAME, run_dir, state_dir=state_dir, lock_name="host.lock")

    @property
    def cli_socket_text(self) -> str:
        return f"{self.run_dir_text}/{SOCKET_NAME}"

    @property
    def cli_socket(self) -> Path:
        from pathlib import Path

        return Path(self.cli_socket_text)

    @property
    def protected(self) -> tuple[Path, ...]:
        """Folders with our sockets and tokens, for `Bridge(protected=…)`."""
        return (self.run_dir,)

    def command(self, *, stays: bool = False) -> list[str]:
        """What starts the daemon."""
        from dari.daemon.launch import python_command

        return python_command("dari.cli.hub.main", "serve", *self.arguments(), *(["--stay"] if stays else []))
