"""Variables, aliases and functions put into a running shell, and taken out after some commands or on request."""

from __future__ import annotations

import asyncio
import secrets
import shlex
from dataclasses import dataclass, field

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import Conflict, DariError, Failed, InvalidInput, NotFound
from dari.terminal.api.approvals import approvable, approved_message
from dari.terminal.api.shell_env import DONE, ShellContext, write_removal, write_setup
from dari.terminal.input_policy import PendingText, check_all
from dari.terminal.multiplexer import Change, Multiplexer, PaneChanged, PaneGone
from dari.terminal.panes import events
from dari.terminal.panes.execution import PROMPT_S
from dari.terminal.panes.pane import Pane

MAX_CONTEXTS = 200
MAX_COMMANDS = 10_000


class InjectedContext(Struct, frozen=True, kw_only=True):
    context_id: str
    pane_id: str
    shell: str
    names: list[str]
    commands_left: int | None = None
    """None: until it is removed."""


class ContextList(Struct, frozen=True):
    contexts: list[InjectedContext]


@dataclass(slots=True, eq=False)
class _Kept:
    injection: ShellContext
    pane_id: str
    shell: str
    left: int | None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class ContextsApi:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer
        self._kept: dict[str, _Kept] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._own: set[str] = set()
        multiplexer.changes.subscribe(self._hear)

    @expose("crux:context/inject", "control", is_slow=True)
    @approvable
    async def inject(
        self,
        pane_id: str = "",
        env: dict[str, str] | None = None,
        aliases: dict[str, str] | None = None,
        functions: dict[str, str] | None = None,
        expires_after_commands: int | None = None,
    ) -> InjectedContext:
        """Set them in the shell of the pane, unseen on its screen and in its history.

        After that many commands, or with `remove`, what was there before is put back. Aliases, functions
        and variables that decide what other commands run are asked about, or denied.
        """
        if expires_after_commands is not None and not 1 <= expires_after_commands <= MAX_COMMANDS:
            raise InvalidInput(f"{expires_after_commands} is no number of commands", f"give 1…{MAX_COMMANDS}")
        injection = ShellContext(secrets.token_hex(4), env or {}, aliases or {}, functions or {})
        injection.check()
        if len(self._kept) >= MAX_CONTEXTS:
            raise Conflict(f"{len(self._kept)} contexts are injected", "remove some with crux_remove_context")
        pane = self._all.find(pane_id)
        self._judge(pane, injection, approved_message())
        if pane.kind is None:
            raise Conflict(f"pane {pane.id} runs {pane.name}, no shell that we know", "use a pane with a shell")
        said = await self._tell(pane, write_setup(injection, pane.kind))
        if said != DONE:
            raise Failed(f"the shell of pane {pane.id} did not take it: {said[:200]}", "use other names")
        self._kept[injection.id] = _Kept(injection, pane.id, pane.kind, expires_after_commands)
        return self._info(self._kept[injection.id])

    @expose("crux:context/remove", "control", is_slow=True)
    async def remove(self, context_id: str) -> InjectedContext:
        """Put back what was there before."""
        kept = self._kept.get(context_id)
        if kept is None:
            known = ", ".join(self._kept) or "none"
            raise NotFound(f"there is no context {context_id!r}", f"injected now: {known}")
        await self._take_out(kept)
        return self._info(kept)

    @expose("crux:context/list", "read")
    async def list_contexts(self, pane_id: str = "") -> ContextList:
        """Oldest first."""
        wanted = self._all.find(pane_id).id if pane_id else ""
        return ContextList([self._info(kept) for kept in self._kept.values() if wanted in ("", kept.pane_id)])

    async def _take_out(self, kept: _Kept) -> None:
        async with kept.lock:
            if self._kept.get(kept.injection.id) is not kept:
                return
            pane = self._all.find(kept.pane_id)
            every = [each for each in self._kept.values() if each.pane_id == kept.pane_id]
            later = [each.injection for each in every[every.index(kept) + 1 :]]
            assert pane.kind is not None
            said = await self._tell(pane, write_removal(kept.injection, pane.kind, later))
            if said != DONE:
                raise Failed(f"the shell of pane {pane.id} did not remove it: {said[:200]}", "open a new pane")
            self._kept.pop(kept.injection.id, None)

    async def _tell(self, pane: Pane, script: str) -> str:
        if not await pane.commands.ready(PROMPT_S if pane.commands.zone != "running" else 0.0):
            raise Conflict(f"pane {pane.id} is busy", "wait for its prompt, or use another pane")
        if pane.kind != "sh":
            return (await self._all.run_quietly(pane, script)).decode(errors="replace").strip()
        # It has no keys to bind and keeps no history; the text goes in as a line, and is taken from the log again.
        self._own.add(pane.id)
        try:
            done = await pane.execute(f"__crux_context() {{\n{script}\n}}\n__crux_context; unset -f __crux_context", 10)
        finally:
            self._own.discard(pane.id)
        pane.commands.records.remove(pane.commands.find(done.command_id))
        return done.output.strip()

    def _judge(self, pane: Pane, injection: ShellContext, approved: str) -> None:
        kind, place = pane.kind or "bash", pane.cwd()
        # As the functions that they are (an alias passes on what is written behind it): the policy asks about what
        # takes a name in the shell, since a later line with that name says nothing about what it runs.
        passed = " $argv" if kind == "fish" else ' "$@"'
        bodies = {**{name: value + passed for name, value in injection.aliases.items()}, **injection.functions}
        shape = "function {}; {}; end" if kind == "fish" else "{}() {{ {}; }}"
        texts = [
            PendingText(shape.format(name, body.strip().rstrip(";")), place, kind) for name, body in bodies.items()
        ]
        for name, value in injection.env.items():
            texts.append(PendingText(f"{name}={shlex.quote(value)}", place, "bash", injection.doubt(name)))
        check_all(self._all.guard, texts, approved)

    def _hear(self, change: Change) -> None:
        # With its shell a context is gone; another shell in the same pane never had it.
        is_over = isinstance(change, PaneGone) or (
            isinstance(change, PaneChanged) and isinstance(change.event, events.Exited)
        )
        if is_over:
            for context_id in [key for key, kept in self._kept.items() if kept.pane_id == change.pane_id]:
                del self._kept[context_id]
        elif isinstance(change, PaneChanged) and isinstance(change.event, events.CommandEnded):
            self._count(change.pane_id)

    def _count(self, pane_id: str) -> None:
        if pane_id in self._own:
            return
        for kept in [each for each in self._kept.values() if each.pane_id == pane_id and each.left is not None]:
            kept.left = max(0, (kept.left or 0) - 1)
            if not kept.left:
                # At once: whatever is run next finds the shell as it was before.
                task = asyncio.get_running_loop().create_task(self._expire(kept))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _expire(self, kept: _Kept) -> None:
        try:
            await self._take_out(kept)
        except DariError:
            pass  # busy or gone: it is tried again when the next command has ended

    def _info(self, kept: _Kept) -> InjectedContext:
        return InjectedContext(
            context_id=kept.injection.id,
            pane_id=kept.pane_id,
            shell=kept.shell,
            names=kept.injection.names,
            commands_left=kept.left,
        )
