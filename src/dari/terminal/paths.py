"""The files of cruxd. `crux` and `crux-mcp-bridge` ask before every call, so nothing heavy is imported.

    ~/.crux/mcp.sock     MCP: lines of JSON, or HTTP for a client that begins that way    $CRUX_SOCKET wins
    ~/.crux/cruxd.sock   crux:<domain>/<action> for the command line

With DARI_HOME set, `<DARI_HOME>/crux` takes the place of `~/.crux`.
"""

from __future__ import annotations

import os

from dari.daemon.paths import DaemonPaths
from dari.home import absolute, crux_dir, crux_run_dir

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from pathlib import Path

    from dari.daemon.paths import AnyPath

NAME = "cruxd"


class CruxPaths(DaemonPaths):
    """One daemon lives beside its MCP socket: in that folder when it is ours, else in one of its own, made 0700."""

    def __init__(self, mcp_socket: AnyPath | None = None, config: AnyPath | None = None) -> None:
        chosen = "" if mcp_socket is None else os.path.expanduser(os.fspath(mcp_socket))
        self.mcp_socket_text = absolute(chosen or f"{crux_dir()}/mcp.sock")
        self.config_text = "" if config is None else absolute(os.path.expanduser(os.fspath(config)))
        super().__init__(NAME, crux_run_dir(self.mcp_socket_text))

    @classmethod
    def of_environment(cls, mcp_socket: AnyPath | None = None, config: AnyPath | None = None) -> CruxPaths:
        """CRUX_SOCKET and CRUX_CONFIG stand in for arguments that are not given."""
        return cls(mcp_socket or os.environ.get("CRUX_SOCKET") or None, config or os.environ.get("CRUX_CONFIG") or None)

    @property
    def mcp_socket(self) -> Path:
        from pathlib import Path

        return Path(self.mcp_socket_text)

    @property
    def sessions(self) -> Path:
        return self.run_dir / "sessions"

    @property
    def shells(self) -> Path:
        """Where the shells of panes are spoken to; see `dari.terminal.out_of_band`."""
        return self.run_dir / "panes"

    @property
    def http_token(self) -> Path:
        """The bearer token of the HTTP endpoint."""
        return self.run_dir / "http.token"

    def command(self) -> list[str]:
        """What starts it."""
        from dari.daemon.launch import python_command

        config = ["--config", self.config_text] if self.config_text else []
        return python_command("dari.cli.cruxd", "serve", "--socket", self.mcp_socket_text, *config)
