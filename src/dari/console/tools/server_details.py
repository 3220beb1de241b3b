"""The page's Servers, part two: Test Connection, tools on and off, changes to approve of one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from dari.bridge.config.form import ServerForm
from dari.bridge.config.tool_switch import is_tool_on, switch_tools
from dari.bridge.connection_test import ConnectionTest, StepMark, TestStep
from dari.bridge.decisions import Decisions
from dari.bridge.trust.diff_text import diff
from dari.bridge.trust.items import ItemKind
from dari.bridge.trust.pin_store import HeldItem, PinDecision
from dari.bridge.upstream.resolved import pin_name
from dari.bridge.upstream.tool_view import ConfirmPatterns
from dari.console.server_cards import find_listed, find_running
from dari.console.tools.servers import Name, ServerTools
from dari.core.context import Context
from dari.core.scopes import ADMIN
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

MAX_DIFF_LINES = 1000
MAX_DESCRIPTION_CHARS = 500
STEPS = {"stdio": 7, "http": 6}


class ReportStep(Struct, frozen=True):
    """`start` spawns the process, `agree` is `initialize` or `server/discover`."""

    name: str
    status: StepMark
    found: str
    hint: str
    ms: float


class ConnectionReport(Struct, frozen=True):
    ok: bool
    steps: list[ReportStep]
    ms: float
    tools: list[str]
    stderr: list[str]
    """The last lines, oldest first."""


class ServerTool(Struct, frozen=True):
    """`state` `held`: it changed since it was approved, and is not shown to agents."""

    name: str
    """As the server calls it."""
    shown_as: str
    description: str
    state: Literal["on", "off", "held"]
    is_read_only: bool
    is_destructive: bool
    needs_confirmation: bool


class ServerToolList(Struct, frozen=True):
    tools: list[ServerTool]
    is_known: bool
    """False: the server was never asked."""


class HeldChange(Struct, frozen=True):
    kind: ItemKind
    name: str
    digest: str
    """Of what is shown here; an approval names it."""
    reason: str
    was: str
    since: float
    rejected_by: str
    diff: list[str]
    """Lines: `+` new, `-` approved before, `@` place, `!` warning."""


class HeldChanges(Struct, frozen=True):
    server: str
    items: list[HeldChange]
    history: list[PinDecision]


class SeenItem(Struct, frozen=True):
    """An item as the person saw it."""

    kind: ItemKind
    name: str
    digest: str


class DecisionReply(Struct, frozen=True):
    items: int


class ServerDetailTools:
    """More tools named `dari_servers_<method>`."""

    prefix = "dari_servers"

    def __init__(self, backends: ConsoleBackends, servers: ServerTools) -> None:
        self._bridge = backends.bridge
        self._view = backends.view
        self._servers = servers

    @tool(scope=ADMIN, idempotent=False, open_world=True, timeout_s=INNER_LIMITS_ONLY)
    async def test(
        self,
        context: Context,
        name: Annotated[str, Meta(description="A saved server; or give form", max_length=200)] = "",
        form: Annotated[ServerForm | None, Meta(description="A server that is not saved yet")] = None,
        was: Annotated[str, Meta(description="The saved server that the form changes", max_length=200)] = "",
    ) -> ConnectionReport:
        """Try a server in a session of its own; returns each step with its time, and the end of its stderr.

        Each step (spawn, initialize, tools/list …) is reported as progress: `<step> <status> <ms> ms: <found>`.
        """
        if bool(name) == (form is not None):
            raise InvalidInput("give either name or form", "name tries a saved server, form one that is not saved")
        listed = self._servers.entry_for_test(form, was) if form is not None else find_listed(self._view, name)
        total = STEPS["stdio" if listed.kind == "stdio" else "http"]
        done: list[TestStep] = []

        def report(step: TestStep) -> None:
            done.append(step)
            context.report(len(done), total, f"{step.name} {step.mark} {step.ms:.2f} ms: {step.found}")

        def note(text: str) -> None:
            context.report(len(done), total, text)

        trial = ConnectionTest(listed.id, report, note, listed=listed if form is not None else None)
        began = time.perf_counter()
        await trial.run(self._bridge, self._view, self._view.catalog())
        steps = [ReportStep(one.name, one.mark, one.found, one.hint, round(one.ms, 2)) for one in trial.steps]
        ms = round((time.perf_counter() - began) * 1000, 1)
        return ConnectionReport(trial.is_ok, steps, ms, trial.tools, trial.stderr)

    @tool(scope=ADMIN, read_only=True, open_world=True, timeout_s=INNER_LIMITS_ONLY)
    async def tools(
        self, name: Name, start: Annotated[bool, Meta(description="Start it when its tools are not known")] = False
    ) -> ServerToolList:
        """List the tools of a server, those that are switched off included."""
        return await self._list_tools(name, start)

    async def _list_tools(self, name: str, start: bool = False) -> ServerToolList:
        listed = find_listed(self._view, name)
        upstream = find_running(self._bridge, listed)
        if start and (upstream is None or upstream.listed_tools() is None):
            upstream = self._view.upstream(name)
            upstream.retry()
            await upstream.tools()
        items = None if upstream is None else upstream.listed_tools()
        if upstream is None or items is None or listed.profile is None:
            return ServerToolList([], False)
        rules = listed.profile.tools
        held = {one.name for one in self._bridge.pins.held(pin_name(name, listed)) if one.kind == "tool"}
        confirms = ConfirmPatterns(rules.confirm)
        found = []
        for item in items:
            own = str(item.get("name", ""))
            is_on = is_tool_on(own, rules.allow, rules.deny)
            shown = rules.rename.get(own, own)
            needs = confirms.names(own) or confirms.names(shown)
            found.append(
                _server_tool(item, shown, "held" if is_on and own in held else "on" if is_on else "off", needs)
            )
        return ServerToolList(found, True)

    @tool(scope=ADMIN)
    async def switch_tools(
        self,
        name: Name,
        tools: Annotated[list[str], Meta(description="As the server calls them", max_length=5000)],
        on: Annotated[bool, Meta(description="Whether agents see and may call them")],
    ) -> ServerToolList:
        """Turn tools of a server on or off for every agent; written into its entry of mcp.json."""
        _, entry = self._view.book.entry(name)
        changed = switch_tools(entry, tools, is_on=on)
        if changed != entry:
            self._view.book.replace(name, changed, name)
            if find_listed(self._view, name).state == "ready":
                self._view.upstream(name)  # made anew with these rules, from what is known of its tools
            self._bridge.status_changes.publish(name)
        return await self._list_tools(name)

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def held(self, name: Name) -> HeldChanges:
        """Show what a server changed since a person approved it, as differences, and the decisions so far."""
        server = self._pin_name(name)
        pins = self._bridge.pins
        items = [
            HeldChange(
                one.kind,
                one.name,
                one.digest,
                one.reason,
                one.was,
                one.since,
                one.rejected_by,
                _cut(diff(*pins.contents(one))),
            )
            for one in pins.held(server)
        ]
        return HeldChanges(server, items, pins.history(server, 50))

    @tool(scope=ADMIN, idempotent=False)
    async def decide(
        self,
        name: Name,
        items: Annotated[list[SeenItem], Meta(description="What was seen, as dari_servers_held shows it")],
        approve: Annotated[bool, Meta(description="false keeps them hidden and asks no more")],
    ) -> DecisionReply:
        """Approve or reject changed items of a server; refused when it changed one again since it was seen."""
        server = self._pin_name(name)
        held = {(one.kind, one.name): one for one in self._bridge.pins.held(server)}
        seen = []
        for item in items:
            if (item.kind, item.name) not in held:
                raise NotFound(f"{item.kind} {item.name[:100]!r} of {name} is not held", "look at the changes again")
            one = held[item.kind, item.name]
            seen.append(HeldItem(server, one.profile, item.kind, item.name, item.digest, one.reason, "", "", one.since))
        return DecisionReply(Decisions(self._bridge, "console").decide_on(seen, approves=approve))

    def _pin_name(self, name: str) -> str:
        return pin_name(name, find_listed(self._view, name))


def _cut(lines: list[str]) -> list[str]:
    """What is left out is said: a person must not approve a text whose end they cannot know of."""
    if len(lines) <= MAX_DIFF_LINES:
        return lines
    left = len(lines) - MAX_DIFF_LINES
    return [*lines[:MAX_DIFF_LINES], f"! {left} more lines are not shown here; see all of them: dari approvals show"]


def _server_tool(item: dict[str, Any], shown: str, state: Literal["on", "off", "held"], needs: bool) -> ServerTool:
    hints = item.get("annotations")
    hints = hints if isinstance(hints, dict) else {}
    description = item.get("description")
    return ServerTool(
        name=str(item.get("name", "")),
        shown_as=shown,
        description=description[:MAX_DESCRIPTION_CHARS] if isinstance(description, str) else "",
        state=state,
        is_read_only=hints.get("readOnlyHint") is True,
        is_destructive=hints.get("destructiveHint") is True,
        needs_confirmation=needs,
    )
