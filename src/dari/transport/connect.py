"""A client from whatever names a server: a command, a URL, a socket."""

from __future__ import annotations

import shlex
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from dari.errors import InvalidInput
from dari.mcp.client.callbacks import OnElicit, OnRoots, OnSample
from dari.mcp.client.channel import Channel
from dari.mcp.client.client import Client
from dari.mcp.client.events import OnEvent
from dari.mcp.client.negotiation import Mode
from dari.mcp.client.oauth import OAuth


class ClientOptions(TypedDict, total=False):
    """What `Client` takes besides its channel."""

    mode: Mode
    info: Mapping[str, str]
    on_sample: OnSample
    on_elicit: OnElicit
    on_roots: OnRoots
    on_event: OnEvent
    capabilities: Mapping[str, Any]
    timeout_s: float
    open_timeout_s: float
    probe_s: float


def connect(
    server: str | Path | Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    headers: Mapping[str, str] | None = None,
    bearer: str | Callable[[], str] = "",
    oauth: OAuth | None = None,
    ssl_context: ssl.SSLContext | None = None,
    **options: Unpack[ClientOptions],
) -> Client:
    """A client that is not open yet: `async with connect(…) as client`.

    `["npx", "server"]` or `"npx server"` starts a process, `https://host/mcp` speaks HTTP, a `Path` or
    `unix:/path` is a Unix socket, `http+unix:/path` speaks HTTP over one.
    """
    channel = _channel(server, env=env, cwd=cwd, headers=headers, bearer=bearer, oauth=oauth, ssl_context=ssl_context)
    return Client(channel, **options)


def _channel(
    server: str | Path | Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: Path | None,
    **http: Any,
) -> Channel:
    if isinstance(server, str):
        scheme, colon, rest = server.partition(":")
        if scheme in ("http", "https") and rest.startswith("//"):
            from dari.transport.client.http import HttpChannel

            return HttpChannel(server, **http)
        if scheme == "http+unix" and colon:
            from dari.transport.client.http import HttpChannel

            return HttpChannel("http://localhost/mcp", socket_path=Path(rest), **http)
        server = Path(rest) if scheme == "unix" and colon else _words(server)
    if isinstance(server, Path):
        from dari.transport.client.lines import UnixChannel

        return UnixChannel(server)
    from dari.transport.client.child import ChildChannel

    return ChildChannel(server, env=env, cwd=cwd)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InvalidInput(
            f"the command line cannot be split ({error}): {command!r}", "give the words as a list"
        ) from None
