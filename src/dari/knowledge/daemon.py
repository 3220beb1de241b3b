"""kebabd: the knowledge base kept open for commands and for the hub. Its place, its client, and what it serves."""

from __future__ import annotations

from dari.daemon.paths import DaemonPaths

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from dari.daemon.client import DaemonClient
    from dari.daemon.lifetime import Lifetime
    from dari.daemon.paths import AnyPath
    from dari.daemon.server import DaemonServer
    from dari.knowledge.api import KnowledgeApi

NAME = "kebab"
MODULE = "dari.cli.kebabd"


class KebabPaths(DaemonPaths):
    """`kebab.sock` has the methods for programs; commands come in beside it, by the socket of `dari.cli.hub`."""

    def __init__(self, run_dir: AnyPath | None = None) -> None:
        super().__init__(NAME, run_dir)

    def command(self) -> list[str]:
        """What starts the daemon."""
        from dari.daemon.launch import python_command

        return python_command(MODULE, "serve", *self.arguments())


def kebabd_client(paths: KebabPaths, principal: str, *, starts: bool = True) -> DaemonClient:
    """Calls to kebabd; with `starts`, the first call starts it."""
    from dari.daemon.client import DaemonClient
    from dari.knowledge.errors import error_types

    return DaemonClient(paths, principal, command=paths.command() if starts else None, error_types=error_types()[1:])


def make_daemon(paths: KebabPaths, api: KnowledgeApi, lifetime: Lifetime) -> DaemonServer:
    """The daemon's methods on its socket."""
    from dari.daemon.server import DaemonServer
    from dari.daemon.stub import exposed_methods

    return DaemonServer(paths, exposed_methods(api), lifetime=lifetime)
