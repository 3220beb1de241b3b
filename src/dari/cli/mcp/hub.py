"""A connection to the hub for one MCP client: found, started where there is none, replaced when of another release.

Blocking, standard library only, and little of it: `dari mcp` imports this before it can answer anything.
"""

import os
from _socket import socket

from dari.cli.hub.client import CliSocketRefused, ask_to_finish, open_mcp
from dari.cli.hub.paths import BridgePaths
from dari.cli.mcp.introductions import Introductions
from dari.home import home_dir

REPLACE_S = 30.0
MAX_ROUNDS = 4


class HubRefused(Exception):
    """The hub cannot be used, with the reason and the next step."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NoHub(HubRefused):
    """None runs, and none can be started here. `unserved` is what the client said, as it said it."""

    unserved = b""


class Hub:
    """The hub of this user, as `dari mcp` with these options sees it."""

    name = "the hub"
    restarts_at_once = True
    """Before it ends on request it says so; else its end is a failure."""

    def __init__(self, options: dict[str, object]) -> None:
        self.options = options
        self.cwd = _cwd()
        self.home = home_dir()
        self._paths = BridgePaths()
        self.run_dir = self._paths.run_dir_text
        self.introductions = Introductions(self.home, options, self.cwd)

    def open(self, *, starts: bool, **more: object) -> tuple[socket, bytes] | None:
        """A connection that speaks MCP lines, and what came on it already; None when no hub runs and none may start.

        HubRefused when there is one that does not take us, or none can be started.
        """
        for _ in range(MAX_ROUNDS):
            try:
                return open_mcp(self.run_dir, {**self.options, **more}, dict(os.environ), self.cwd)
            except FileNotFoundError:
                if not starts:
                    return None
                self._start()
            except ConnectionResetError:
                continue  # it was on its way out
            except CliSocketRefused as refused:
                if refused.code == "child":
                    raise NoHub(refused.message, refused.hint) from None
                if refused.code != "skew":
                    raise HubRefused(refused.message, refused.hint) from None
                self._replace(refused)
            except OSError as error:
                raise NoHub(f"the hub does not answer: {error.strerror or error}", self._log_hint()) from None
            except Exception as error:
                if not hasattr(error, "hint"):
                    raise
                raise NoHub(str(error), error.hint) from None  # a path that is too long for a socket
        raise HubRefused("the hub ends again and again", self._log_hint())

    def _start(self) -> None:
        if os.environ.get("DARI_CHILD"):
            # It would have the sandbox of the server that we are a child of, and end with it.
            raise NoHub("no hub runs, and a child server does not start one", "start it: dari remote daemon start")
        from dari.daemon.launch import ensure_started_sync

        try:
            ensure_started_sync(self._paths, self._paths.command(), socket=self._paths.cli_socket_text)
        except OSError as error:
            raise NoHub(f"the hub cannot be started: {error}", "dari doctor") from None
        except Exception as error:
            if not hasattr(error, "hint"):
                raise
            raise NoHub(str(error), error.hint) from None

    def _replace(self, refused: CliSocketRefused) -> None:
        """End a background hub of another release; one that a person runs (`dari up`) is theirs to end."""
        try:
            ask_to_finish(self.run_dir, REPLACE_S)
        except CliSocketRefused as stays:
            raise HubRefused(refused.message, f"{stays.message}: {stays.hint}") from None
        except TimeoutError:
            raise HubRefused(refused.message, "it does not end: dari remote daemon stop") from None

    def _log_hint(self) -> str:
        return f"its log is {self._paths.log_text}"


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"
