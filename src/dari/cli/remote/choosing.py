"""Which server a command means: `--server`, `server/tool`, the default profile, or `--endpoint` (design 001 §6)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dari.bridge.config.overrides import stdio_profile
from dari.cli.remote.failures import as_configuration
from dari.cli.remote.parser import milliseconds
from dari.cli.remote.world import World
from dari.errors import DariError, InvalidInput

if TYPE_CHECKING:
    from dari.bridge.upstream.upstream import Upstream


def add_server(parser: argparse.ArgumentParser, *, has_all: bool = False) -> None:
    """The options that choose a server and say how it is reached."""
    group = parser.add_argument_group("which server")
    one = group.add_mutually_exclusive_group()
    one.add_argument("--server", metavar="ID", help="a profile by its id (default: the profile with default: true)")
    one.add_argument(
        "--endpoint", metavar="URL", help="an HTTP server without a profile, such as http://localhost:9001"
    )
    one.add_argument("--http", dest="endpoint", metavar="URL", help="the same as --endpoint")
    one.add_argument(
        "--stdio", metavar="'CMD ARGS'", help="a server that this command starts here, and ends when it is done"
    )
    if has_all:
        one.add_argument("--all", action="store_true", help="every server that is ready")
    group.add_argument("--key", metavar="TOKEN", help="send 'Authorization: Bearer TOKEN'; wins over the profile")
    group.add_argument(
        "--header",
        metavar="'K: V'",
        action="append",
        default=[],
        help="send a header; repeatable, wins over the profile",
    )
    group.add_argument("--timeout", metavar="MS", type=milliseconds, help="give up after this time (default: 15000)")


def upstream_of(arguments: argparse.Namespace, world: World, id: str | None = None) -> Upstream:
    """The server that `--server`, `id` or the default names. Nothing is started; every error is a usage error."""
    if arguments.stdio is not None:
        return _started_here(arguments, world, id)
    chosen: dict[str, Any] = {"endpoint": arguments.endpoint, "key": arguments.key, "headers": tuple(arguments.header)}
    try:
        return _patient(
            arguments.timeout, lambda **given: world.view.upstream(arguments.server or id, **chosen, **given)
        )
    except DariError as error:
        raise as_configuration(error) from None


def _started_here(arguments: argparse.Namespace, world: World, id: str | None) -> Upstream:
    """The server of `--stdio`. It ends with the command: who edits it gets the new one with the next call."""
    if id is not None:
        raise InvalidInput("--stdio and a server's name are two servers", "give one of them")
    if arguments.key or arguments.header:
        raise InvalidInput("--key and --header are for a server behind an address", "leave them out")
    upstream = world.view.of(stdio_profile(arguments.stdio, arguments.timeout))
    world.temporary.append(upstream)
    return upstream


def upstreams_of(arguments: argparse.Namespace, world: World) -> tuple[Upstream, ...]:
    """The chosen server, or with `--all` every one that may run; what may not is told on stderr."""
    if not arguments.all:
        return (upstream_of(arguments, world),)
    if arguments.key or arguments.header:
        raise InvalidInput("--key and --header are for one server, --all is for every one", "name the server")
    found = world.view.upstreams()
    for problem in world.view.problems:
        world.warn(problem)
    for one in world.view.catalog().listed:
        if one.message:
            world.warn(one.message, one.hint)
    return tuple(
        _patient(arguments.timeout, lambda id=each.id, **given: world.view.upstream(id, **given)) for each in found
    )


def _patient(timeout_ms: int | None, get: Callable[..., Upstream]) -> Upstream:
    """Another time limit is another server to the bridge, a second process even: only a list that is not there
    yet, and may take longer than the profile allows, is worth one. Calls bring their limit along."""
    upstream = get()
    if timeout_ms is None or timeout_ms <= upstream.profile.timeout_ms or upstream.known_tools() is not None:
        return upstream
    return get(timeout_ms=timeout_ms)


def split_address(address: str, arguments: argparse.Namespace, world: World) -> tuple[str | None, str]:
    """`server/tool` or `server.tool` as (server, tool). What follows no server's name belongs to the tool.

    `https://host/mcp.tool` names an address and a tool.
    """
    if address.startswith(("http://", "https://")) and not (arguments.endpoint or arguments.server or arguments.stdio):
        arguments.endpoint, _, name = address.rpartition(".")
        if not name or "/" in name or "://" not in arguments.endpoint:
            raise InvalidInput(f"a tool of {address[:100]} is needed", "write it behind a dot: https://host/mcp.tool")
        return None, name
    server, slash, name = address.partition("/")
    if arguments.endpoint or arguments.stdio:
        return None, address
    if not slash or not name:
        return _split_at_dot(address, arguments, world)
    if arguments.server:
        return None, name if server == arguments.server else address
    catalog = world.view.catalog()
    if any(one.id == server for one in catalog.listed):
        return server, name
    if "." in server:
        return _split_at_dot(address, arguments, world)
    if catalog.default_id is None:
        catalog.find(server)  # says which servers there are
    return None, address


def _split_at_dot(address: str, arguments: argparse.Namespace, world: World) -> tuple[str | None, str]:
    """Server and tool, at the dot behind the longest name of a server; tools and servers may have dots of their own."""
    if "." not in address:
        return None, address
    ids = [arguments.server] if arguments.server else [one.id for one in world.view.catalog().listed]
    fitting = [id for id in ids if address.startswith(f"{id}.") and len(address) > len(id) + 1]
    if not fitting:
        return None, address
    server = max(fitting, key=len)
    return None if arguments.server else server, address[len(server) + 1 :]
