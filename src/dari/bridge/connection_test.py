"""Try one server step by step, as if for the first time: profile, program or address, start, handshake, lists."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from dari.bridge.children.channel import SupervisedChannel
from dari.bridge.children.downloads import download_of
from dari.bridge.children.start_queue import Priority
from dari.bridge.children.start_watch import StartLimits, StartWatch
from dari.bridge.config.catalog import Catalog, CatalogEntry
from dari.bridge.config.profile import HttpSettings, Protocol, StdioSettings
from dari.bridge.schemas.checker import SchemaWorker, WorkerStopped, can_check
from dari.bridge.schemas.worker import BadSchema
from dari.bridge.upstream.connect import UpstreamConnector
from dari.bridge.upstream.resolved import ResolvedServer
from dari.errors import DariError, TimedOut, Unavailable
from dari.installation import install_extra
from dari.mcp.client.client import Client
from dari.mcp.client.negotiation import Mode
from dari.process.child import Child
from dari.process.program import build_environment, find_program
from dari.rpc.codec import decode_any, encode
from dari.sandbox.confinement import Confinement
from dari.sandbox.report import build_report, require_enforced
from dari.transport.connect import ClientOptions

if TYPE_CHECKING:
    from dari.bridge.service import Bridge
    from dari.bridge.view import ServerView

StepMark = Literal["ok", "warning", "failed"]
_MODES: dict[Protocol, Mode] = {"auto": "auto", "legacy": "handshake", "2026-07-28": "stateless"}
_LISTED = 5


@dataclass(slots=True)
class TestStep:
    name: str
    mark: StepMark = "ok"
    found: str = ""
    hint: str = ""
    ms: float = 0.0

    def warn(self, found: str, hint: str = "") -> None:
        self.mark, self.found, self.hint = "warning", found, hint


@dataclass(slots=True)
class ConnectionTest:
    """`on_step` hears of each step when it is over."""

    id: str
    on_step: Callable[[TestStep], None] = lambda step: None
    on_note: Callable[[str], None] = lambda note: None
    """Hears what a long start is busy with."""
    is_alone: bool = True
    listed: CatalogEntry | None = None
    """A server that stands in no file; None: the one of this name in the catalogue."""
    stderr: list[str] = field(default_factory=list)
    """The last lines that its process wrote there; of the last one that wrote, where it was started twice."""
    tools: list[str] = field(default_factory=list)
    """The names of its tools."""
    steps: list[TestStep] = field(default_factory=list)
    mask: Callable[[str], str] = str

    @property
    def is_ok(self) -> bool:
        return all(step.mark != "failed" for step in self.steps)

    async def run(self, bridge: Bridge, view: ServerView, catalog: Catalog) -> None:
        """Never raises what the server is to blame for; the steps tell it."""
        try:
            target = await self._profile(view, catalog)
            if target.spec is not None:
                await self._child(target, bridge)
            else:
                await self._http(target, bridge)
            self._pins(bridge, target.pin_name)
        except _Stop:
            pass

    @asynccontextmanager
    async def _step(self, name: str) -> AsyncIterator[TestStep]:
        step, before = TestStep(name), len(self.steps)
        began = time.perf_counter()
        try:
            yield step
        except (DariError, OSError, TimeoutError) as error:
            step.mark, step.found = "failed", getattr(error, "message", "") or str(error) or type(error).__name__
            step.hint = getattr(error, "hint", "")
            raise _Stop from error
        finally:
            # A process is started while the first hello is under way: each step has its own time.
            inner_ms = sum(one.ms for one in self.steps[before:])
            step.ms = (time.perf_counter() - began) * 1000 - inner_ms
            step.found, step.hint = self.mask(step.found), self.mask(step.hint)
            self.steps.append(step)
            self.on_step(step)

    async def _profile(self, view: ServerView, catalog: Catalog) -> ResolvedServer:
        async with self._step("profile") as step:
            listed = self.listed or catalog.usable(self.id)
            resolved = await asyncio.to_thread(view.book.resolve, listed)
            self.mask = resolved.mask
            target = ResolvedServer.of(resolved, view.around, listed)
            step.found = f"{target.profile.kind}, from {listed.source}"
            if target.profile.notes:
                step.warn("; ".join(target.profile.notes))
            return target

    async def _child(self, target: ResolvedServer, bridge: Bridge) -> None:
        spec, settings = target.spec, target.profile.connection
        assert spec is not None and isinstance(settings, StdioSettings)
        async with self._step("program") as step:
            environment = build_environment(spec.env, spec.inherit_env, spec.environ)
            step.found = str(find_program(spec.command[0], environment, spec.cwd))
        async with self._step("sandbox") as step:
            await _walls(step, spec.confinement)

        children: list[Child] = []

        async def start() -> Child:
            is_first = all(step.name != "start" for step in self.steps)
            async with self._step("start") as started:
                child = await bridge.children.start(spec)
                children.append(child)
                again = "" if is_first else ", again: the first did not take our hello"
                started.found = f"process {child.pid}{again}"
                if child.warnings:
                    started.warn(f"{started.found}; {'; '.join(child.warnings)}")
            return child

        channel = SupervisedChannel(start)

        options = _options(target)
        limits = StartLimits(options["open_timeout_s"], download_of(spec.command), is_first=True)
        options["open_timeout_s"] = limits.whole_s
        turn = bridge.start_queue.turn(self.id, Priority.CALL if self.is_alone else Priority.LIST)

        async def agree() -> Client:
            async with StartWatch(channel, limits, turn, lambda note: self.on_note(self.mask(note))):
                client = Client(channel, **options)
                await client.open()
            turn.give_back()
            return client

        # Its times count from its turn: many that start at once would all be late.
        try:
            async with turn:
                await self._talk(agree, channel)
        finally:
            said = next((child.tail for child in reversed(children) if child.tail.received_bytes), None)
            self.stderr = [] if said is None else [self.mask(line.text) for line in said.lines()]

    async def _http(self, target: ResolvedServer, bridge: Bridge) -> None:
        settings = target.profile.connection
        assert isinstance(settings, HttpSettings)
        parts = urlsplit(settings.url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        limit_s = target.profile.init_timeout_ms / 1000
        async with self._step("address") as step:
            try:
                async with asyncio.timeout(limit_s):
                    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=1)
            except OSError as error:
                raise Unavailable(f"{host} has no address: {error.strerror}", "check the name in its url") from None
            step.found = ", ".join(dict.fromkeys(str(one[4][0]) for one in found))
        async with self._step("connect") as step:
            try:
                async with asyncio.timeout(limit_s):
                    _, writer = await asyncio.open_connection(host, port)
            except TimeoutError:
                raise TimedOut(
                    f"{host}:{port} does not answer", "check that it runs and that no firewall blocks it"
                ) from None
            except OSError as error:
                why = os.strerror(error.errno) if error.errno else str(error)
                raise Unavailable(f"{host}:{port}: {why}", "is the server running?") from None
            writer.close()
            step.found = f"{host}:{port}"
        opening = UpstreamConnector(target, lambda: bridge.children, bridge.make_oauth)

        async def agree() -> Client:
            return (await opening.http(settings.url, None, None, _options(target))).client

        await self._talk(agree)

    async def _talk(self, agree: Callable[[], Awaitable[Client]], channel: SupervisedChannel | None = None) -> None:
        """The part in MCP: agree on an era, list the tools, look at their schemas."""
        async with self._step("agree") as step:
            client = await agree()
            agreed = client.agreement
            server = " ".join(filter(None, (agreed.server.name, agreed.server.version)))
            step.found = f"{client.era} era, {agreed.version}, {server or 'a server without a name'}"
        try:
            async with self._step("tools/list") as step:
                tools = await _tools(client, channel)
                self.tools = [str(tool.get("name", "")) for tool in tools]
                step.found = f"{len(tools)} tools"
                if channel is not None and channel.noise_lines:
                    step.warn(
                        f"{len(tools)} tools; {channel.noise_lines} stdout lines are not messages: {channel.noise[0]}",
                        "it should log to stderr; the lines are left out",
                    )
            async with self._step("schemas") as step:
                await _judge_schemas(step, tools)
        finally:
            await client.close()

    def _pins(self, bridge: Bridge, name: str) -> None:
        held = [one for one in bridge.pins.held(name) if not one.rejected_by]
        if held:
            step = TestStep("pins", "warning", f"{len(held)} items are held: they changed since they were approved")
            step.hint = f"look at them: dari remote approve {self.id}"
            self.steps.append(step)
            self.on_step(step)


class _Stop(Exception):
    """A step failed; those after it make no sense."""


def _options(target: ResolvedServer) -> ClientOptions:
    profile = target.profile
    return {
        "mode": _MODES[profile.protocol],
        "timeout_s": profile.timeout_ms / 1000,
        "open_timeout_s": profile.init_timeout_ms / 1000,
    }


async def _walls(step: TestStep, confinement: Confinement) -> None:
    if confinement.is_off:
        step.found = "none: it may do what you may do"
        return
    findings = (await asyncio.to_thread(build_report, confinement)).findings
    require_enforced(confinement, list(findings))
    wanted = [one for one in findings if one.is_wanted]
    step.found = "; ".join(f"{one.aspect} by {one.by}" for one in wanted if one.is_enforced)
    if missing := [f"{one.aspect} NOT enforced ({one.note})" for one in wanted if not one.is_enforced]:
        step.warn("; ".join(filter(None, (step.found, *missing))), '"sandbox": "enforce" refuses to run it like this')


async def _tools(client: Client, channel: SupervisedChannel | None) -> list[dict[str, Any]]:
    if "tools" not in client.agreement.capabilities:
        return []
    try:
        listing = await client.listing("tools")
    except DariError as error:
        said = channel.last_words() if channel is not None else ""
        if not said or said in error.hint:
            raise
        raise Unavailable(error.message, f"it wrote on stderr:\n{said}") from None
    return [tool for raw in listing.items if isinstance(tool := decode_any(raw), dict)]


async def _judge_schemas(step: TestStep, tools: list[dict[str, Any]]) -> None:
    if not can_check():
        step.warn("not checked: jsonschema-rs is not installed", install_extra("schemas"))
        return
    async with SchemaWorker() as worker:
        await _judge_each(step, tools, worker)


async def _judge_each(step: TestStep, tools: list[dict[str, Any]], worker: SchemaWorker) -> None:
    wrong = []
    checked = 0
    for tool in tools:
        for name in ("inputSchema", "outputSchema"):
            if name not in tool:
                continue
            checked += 1
            try:
                await worker.judge(encode(tool[name]))
            except (BadSchema, WorkerStopped) as error:
                wrong.append(f"{tool.get('name')}.{name}: {error}")
    step.found = f"{checked} are valid"
    if wrong:
        more = f" and {len(wrong) - _LISTED} more" if len(wrong) > _LISTED else ""
        step.warn(
            f"{len(wrong)} of {checked} are not valid JSON Schema: {'; '.join(wrong[:_LISTED])}{more}",
            "arguments of these tools go to the server unchecked",
        )
