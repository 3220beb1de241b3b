"""Other MCP servers from a script: the profiles of the person, an address, or a command.

    from dari import remote

    async with remote.server("everything") as server:
        print([tool.name for tool in await server.tools()])
        result = await server.call("echo", message="hi")
        print(result.text)

Calls pass the same checks as everywhere: pins, the tool's schema, `confirm`, limits, the audit log. A failure that a
tool reports is a result with `is_error`; everything else raises a `DariError`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, overload

import msgspec
from msgspec import Raw

from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.overrides import endpoint_profile
from dari.bridge.config.profile import Profile, ProfileSource, StdioSettings
from dari.bridge.config.secret import Secret
from dari.bridge.service import Bridge
from dari.bridge.upstream.caller import Caller
from dari.bridge.upstream.status import UpstreamInfo, UpstreamStatus
from dari.bridge.upstream.upstream import Upstream
from dari.bridge.view import ServerView
from dari.errors import Failed, InvalidInput
from dari.mcp.client.pending import OnProgress
from dari.mcp.client.results import (
    CallResult,
    PromptResult,
    ReadResult,
    RemotePrompt,
    RemoteResource,
    RemoteTemplate,
    RemoteTool,
)
from dari.rpc.codec import UNREADABLE, encode
from dari.struct_types import ready

__all__ = ["CallResult", "Server", "Servers", "server", "servers"]

T = TypeVar("T")
Ask = Callable[[str, Any], Awaitable[Any]]


class Server:
    """One server. It is started when it is first used, and ended with the `async with` that gave it."""

    def __init__(self, upstream: Upstream, who: str, ask: Ask | None) -> None:
        self._upstream = upstream
        self._caller = Caller(who, session=f"{who}-{id(self):x}", ask=None if ask is None else _asking(ask))

    @property
    def name(self) -> str:
        return self._upstream.id

    def status(self) -> UpstreamStatus:
        return self._upstream.status()

    async def about(self) -> UpstreamInfo:
        """Who it says it is, the revision that was agreed, what it can do."""
        return await self._upstream.about()

    async def tools(self, *, fresh: bool = False) -> list[RemoteTool]:
        """`fresh` asks the server even if the list is young."""
        shown = [tool.shown for tool in await self._upstream.tools(fresh=fresh)]
        return _read(Raw(encode(shown)), list[RemoteTool], "list of tools")

    async def resources(self, *, fresh: bool = False) -> list[RemoteResource]:
        return _read(
            Raw(encode(await self._upstream.resources(fresh=fresh))), list[RemoteResource], "list of resources"
        )

    async def templates(self, *, fresh: bool = False) -> list[RemoteTemplate]:
        return _read(
            Raw(encode(await self._upstream.templates(fresh=fresh))), list[RemoteTemplate], "list of templates"
        )

    async def prompts(self, *, fresh: bool = False) -> list[RemotePrompt]:
        return _read(Raw(encode(await self._upstream.prompts(fresh=fresh))), list[RemotePrompt], "list of prompts")

    @overload
    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        returns: None = None,
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
        **named: Any,
    ) -> CallResult: ...

    @overload
    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        returns: type[T],
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
        **named: Any,
    ) -> T: ...

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        returns: Any = None,
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
        **named: Any,
    ) -> Any:
        """Arguments by name, or as a mapping for names that Python cannot spell.

        With `returns` (a msgspec Struct, a dataclass, a dict …) the tool's structured content as that type; a tool
        that fails raises `Failed` then.
        """
        caller = self._caller if on_progress is None else _with_progress(self._caller, on_progress)
        payload = _encode({**(arguments or {}), **named}, tool)
        raw = await self._upstream.call_tool(tool, payload, caller, timeout_s=timeout_s)
        result = _read(raw, CallResult, f"result of '{tool}'")
        if returns is None:
            return result
        result.raise_if_error()
        if not result.raw_structured:
            raise Failed(f"'{tool}' gave no structured content", "take the CallResult: call it without `returns`")
        return _read(result.raw_structured, returns, f"structured content of '{tool}'")

    async def read(self, uri: str, *, timeout_s: float | None = None) -> ReadResult:
        raw = await self._upstream.read_resource(uri, self._caller, timeout_s=timeout_s)
        return _read(raw, ReadResult, f"contents of {uri}")

    async def prompt(self, name: str, /, *, timeout_s: float | None = None, **arguments: str) -> PromptResult:
        raw = await self._upstream.get_prompt(name, arguments, self._caller, timeout_s=timeout_s)
        return _read(raw, PromptResult, f"prompt '{name}'")


class Servers:
    """All servers of the person, as seen from the working directory. `async with remote.servers() as servers`."""

    def __init__(self, bridge: Bridge, view: ServerView, who: str, ask: Ask | None) -> None:
        self._bridge = bridge
        self._view = view
        self._who = who
        self._ask = ask

    @property
    def names(self) -> list[str]:
        """Those that may run."""
        return [profile.id for profile in self._view.catalog().ready()]

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems in the files of profiles."""
        return self._view.problems

    def __getitem__(self, name: str) -> Server:
        return Server(self._view.upstream(name), self._who, self._ask)

    def at(self, url: str, *, key: str | None = None, headers: Mapping[str, str] | None = None) -> Server:
        """A server behind an address, without a profile."""
        return Server(self._view.upstream(endpoint=url, key=key, headers=_lines(headers)), self._who, self._ask)

    def run(self, command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Server:
        """A server that is a program, without a profile. It sees nothing of our environment but the basics."""
        if isinstance(command, str) or not command:
            raise InvalidInput(
                f"a command must be a list of words, got {command!r}",
                'give its words as a list: ["npx", "-y", "server"]',
            )
        profile = Profile(
            id=Path(command[0]).name,
            source=ProfileSource("remote.run", 0, "argument"),
            connection=StdioSettings(
                command=command[0],
                args=tuple(command[1:]),
                env={name: Secret(_as_it_stands(value)) for name, value in (env or {}).items()},
                cwd=str(cwd) if cwd is not None else None,
            ),
        )
        return Server(self._view.of(profile), self._who, self._ask)


@asynccontextmanager
async def servers(*, who: str = "script", ask: Ask | None = None, cwd: Path | None = None) -> AsyncIterator[Servers]:
    """The servers of `mcp.json`. Leaving the block ends those that were started.

    `who` is what the audit log calls this script; `ask(method, params)` answers what servers ask while they work.
    """
    async with Bridge(is_guest=True) as bridge:
        yield Servers(bridge, bridge.view(ClientEnvironment.of_process(cwd)), who, ask)


@asynccontextmanager
async def server(
    name: str | Sequence[str],
    *,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    who: str = "script",
    ask: Ask | None = None,
    cwd: Path | None = None,
) -> AsyncIterator[Server]:
    """One server: the name of a profile, an http(s) address, or a command as a list of words, which takes no key."""
    if not isinstance(name, str) and (key or headers):
        raise InvalidInput("a key and headers are for a server behind an address", "set its env: servers.run(…, env=…)")
    async with servers(who=who, ask=ask, cwd=cwd) as every:
        if not isinstance(name, str):
            yield every.run(name, cwd=cwd)
        elif name.startswith(("http://", "https://")):
            endpoint_profile(name)
            yield every.at(name, key=key, headers=headers)
        else:
            yield Server(every._view.upstream(name, key=key, headers=_lines(headers)), who, ask)


def _lines(headers: Mapping[str, str] | None) -> list[str]:
    return [f"{name}: {value}" for name, value in (headers or {}).items()]


def _asking(ask: Ask) -> Callable[[str, Raw], Awaitable[Any]]:
    return lambda method, params: ask(method, msgspec.json.decode(params))


def _with_progress(caller: Caller, on_progress: OnProgress) -> Caller:
    return Caller(caller.who, caller.session, ask=caller.ask, on_progress=on_progress)


def _encode(arguments: Mapping[str, Any], tool: str) -> bytes:
    try:
        return encode(arguments)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"the arguments of '{tool}' must be JSON: {error}", "pass plain data") from None


def _as_it_stands(value: str) -> str:
    return value.replace("${", "$${")


def _read(raw: Raw, wanted: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(raw, type=ready(wanted))
    except UNREADABLE as error:
        raise Failed(f"the {what} is not what was asked for: {error}", "look at the raw result first") from None
