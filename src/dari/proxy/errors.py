"""Errors that only a proxy has, with the codes of design 000 §5.7."""

from __future__ import annotations

from dari.errors import Conflict


class ProxyNotRunning(Conflict):
    """The call needs a running proxy."""

    code = -32002
    name = "proxy_not_running"
    prefix = ""

    def __init__(self, message: str = "proxy not running", hint: str = "start it with crab_proxy_start") -> None:
        super().__init__(message, hint)

    @property
    def wire_message(self) -> str:
        return "Proxy not running"


class ProxyAlreadyRunning(Conflict):
    """The proxy was asked to start and listens already."""

    code = -32003
    name = "proxy_already_running"
    prefix = ""

    def __init__(self, message: str = "proxy already running", hint: str = "nothing to do, or stop it first") -> None:
        super().__init__(message, hint)

    @property
    def wire_message(self) -> str:
        return "Proxy already running"


PROXY_ERRORS = (ProxyNotRunning, ProxyAlreadyRunning)
