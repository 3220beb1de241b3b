"""Variables, aliases and functions set in a running shell, and taken out after some commands or on request.

Every value is quoted for the shell that reads it, so that none can end its quotes and run. The values from before are
kept in variables of the shell itself, named after the context.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import Conflict, DariError, Failed, InvalidInput, NotFound
from dari.terminal.api.approvals import approvable, approved_message
from dari.terminal.api.clipboard import quote_fish
from dari.terminal.input_policy import PendingText, check_all
from dari.terminal.multiplexer import Change, Multiplexer, PaneGone, kind_of_change
from dari.terminal.panes import events
from dari.terminal.panes.execution import PROMPT_S
from dari.terminal.panes.pane import Pane
from dari.terminal.panes.shell_integration import ShellKind

MAX_NAMES = 100
MAX_CHARS = 64 * 1024
DONE = "crux-done"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
_OURS = re.compile(r"_*(?:CRUX|crux)_|CRUX$|PS0$|PROMPT_COMMAND$")
# What a shell, the linker or a common program runs or reads code from when it is set.
_STRONG = re.compile(
    r"(?:LD|DYLD)_\w+|PATH|IFS|ENV|BASH_ENV|BASH_FUNC\w*|PS[1-4]|PROMPT|RPROMPT|ZDOTDIR|SHELL|SHELLOPTS|BASHOPTS|FPATH"
    r"|fish_\w+|PYTHONSTARTUP|PYTHONPATH|PYTHONHOME|PERL5(?:OPT|LIB|DB)|RUBY(?:OPT|LIB)|NODE_OPTIONS|JAVA_TOOL_OPTIONS"
    r"|GIT_(?:SSH\w*|EDITOR|PAGER|EXTERNAL_DIFF|PROXY_COMMAND|ASKPASS|CONFIG\w*|EXEC_PATH|TEMPLATE_DIR)|SSH_ASKPASS"
    r"|EDITOR|VISUAL|PAGER|MANPAGER|LESSOPEN|LESSCLOSE|BROWSER|SUDO_ASKPASS|\w+_COMMAND|HOME|HISTFILE"
)


@dataclass(frozen=True, slots=True)
class ShellContext:
    """Variables, aliases and functions for a shell, under one id."""

    id: str
    env: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [*self.env, *self.aliases, *(f"{name}()" for name in self.functions)]

    def check(self) -> None:
        """InvalidInput for a name that is none, or too much of anything."""
        count = len(self.env) + len(self.aliases) + len(self.functions)
        if not 1 <= count <= MAX_NAMES:
            raise InvalidInput(
                f"a context must have 1…{MAX_NAMES} names, got {count}", "count env, aliases and functions"
            )
        for names, pattern, what in (
            (self.env, _VARIABLE, "variable"),
            (self.aliases, _WORD, "alias"),
            (self.functions, _WORD, "function"),
        ):
            for name, value in names.items():
                if not pattern.fullmatch(name):
                    raise InvalidInput(
                        f"a {what} name must have letters, digits and _ only, got {name[:80]!r}", "rename it"
                    )
                if _OURS.match(name):
                    raise InvalidInput(f"{name!r} is reserved for the terminal itself", "use another name")
                if "\0" in value or (what == "alias" and "\n" in value):
                    raise InvalidInput(f"the {what} {name} holds a NUL or a line end", "take it out, or use a function")
        both = sorted(set(self.aliases) & set(self.functions))
        if both:
            raise InvalidInput(f"{both[0]!r} is given as alias and as function", "give one of them")
        size = sum(len(value) for part in (self.env, self.aliases, self.functions) for value in part.values())
        if size > MAX_CHARS:
            raise InvalidInput(f"a context may have at most {MAX_CHARS} characters, got {size}", "inject less at once")

    def doubt(self, name: str) -> str:
        """Why a person should see a variable before it is set; empty for most."""
        return f"{name} decides what other commands run or load" if _STRONG.fullmatch(name) else ""


def write_setup(injection: ShellContext, kind: ShellKind) -> str:
    """Text that sets everything and then prints DONE; nothing is set when a variable is read-only."""
    return _fish_setting(injection) if kind == "fish" else _posix_setting(injection)


def write_removal(injection: ShellContext, kind: ShellKind, later: Iterable[ShellContext] = ()) -> str:
    """Text that puts back what was there before, then prints DONE.

    A name that a later context of the same shell has set as well keeps that value; what was there before both is then
    what the later one puts back.
    """
    heirs: dict[str, str] = {}
    for other in later:
        for name in (*other.env, *(f"a:{word}" for word in other.aliases), *(f"f:{word}" for word in other.functions)):
            heirs.setdefault(name, other.id)
    return (_fish_removing if kind == "fish" else _posix_removing)(injection, heirs)


def _posix_setting(injection: ShellContext) -> str:
    quote, own = shlex.quote, f"__crux_{injection.id}"
    lines = []
    if injection.env:
        names = " ".join(injection.env)
        lines.append(f"(unset {names}) 2>/dev/null || {{ printf '%s' 'a variable is read-only'; return 0; }}")
    for name, value in injection.env.items():
        kept = f"{own}_v_{name}"
        lines.append(
            f'unset {kept} {kept}_x; if [ "${{{name}+x}}" ]; then {kept}=${name}; '
            f"export -p | grep -qE '(^| ){name}(=|$)' && {kept}_x=1; fi; {name}={quote(value)}; export {name}"
        )
    for name, value in injection.aliases.items():
        kept = f"{own}_a_{_plain(name)}"
        lines.append(f"{kept}=$(alias {name} 2>/dev/null); alias {name}={quote(value)}")
    for name, body in injection.functions.items():
        lines.append(_posix_function(name, body, f"{own}_f_{_plain(name)}"))
    return "\n".join([*lines, f"printf '%s' {DONE}"])


def _posix_function(name: str, body: str, kept: str) -> str:
    """The body is run by `eval` from a quoted word: it cannot end the function and be run now."""
    define = shlex.quote(f"{name} () {{ eval {shlex.quote(body)}; }}")
    return (
        f'{kept}=; if [ -n "${{BASH_VERSION-}}" ]; then {kept}=$(declare -f -- {name} 2>/dev/null); '
        f'elif [ -n "${{ZSH_VERSION-}}" ]; then {kept}=$(functions {name} 2>/dev/null); fi; '
        f"{kept}_al=$(alias {name} 2>/dev/null); unalias {name} 2>/dev/null; eval {define}"
    )


def _posix_removing(injection: ShellContext, heirs: Mapping[str, str]) -> str:
    own = f"__crux_{injection.id}"
    lines = []
    for name in injection.env:
        kept = f"{own}_v_{name}"
        if name in heirs:
            heir = f"__crux_{heirs[name]}_v_{name}"
            lines.append(_handed(kept, heir) + "; " + _handed(f"{kept}_x", f"{heir}_x"))
        else:
            back = (
                f'unset {name}; if [ "${{{kept}+x}}" ]; then {name}=${kept}; [ "${{{kept}_x-}}" ] && export {name}; fi'
            )
            lines.append(back)
        lines.append(f"unset {kept} {kept}_x")
    for name in injection.aliases:
        kept = f"{own}_a_{_plain(name)}"
        if f"a:{name}" in heirs:
            lines.append(_handed(kept, f"__crux_{heirs[f'a:{name}']}_a_{_plain(name)}"))
        else:
            lines.append(f"unalias {name} 2>/dev/null; {_realiased(kept)}")
        lines.append(f"unset {kept}")
    for name in injection.functions:
        kept = f"{own}_f_{_plain(name)}"
        if f"f:{name}" in heirs:
            heir = f"__crux_{heirs[f'f:{name}']}_f_{_plain(name)}"
            lines.append(f"{_handed(kept, heir)}; {_handed(f'{kept}_al', f'{heir}_al')}")
        else:
            lines.append(f'unset -f {name} 2>/dev/null; [ -n "${kept}" ] && eval "${kept}"; {_realiased(f"{kept}_al")}')
        lines.append(f"unset {kept} {kept}_al")
    return "\n".join([*lines, f"printf '%s' {DONE}"])


def _realiased(kept: str) -> str:
    """Shells print an alias as `alias name='…'`, or without the first word."""
    return f'case "${kept}" in "") ;; "alias "*) eval "${kept}" ;; *) eval "alias ${kept}" ;; esac'


def _handed(kept: str, heir: str) -> str:
    return f'if [ "${{{kept}+x}}" ]; then {heir}=${kept}; else unset {heir}; fi'


def _fish_setting(injection: ShellContext) -> str:
    own = f"__crux_{injection.id}"
    lines = []
    for name, value in injection.env.items():
        kept = f"{own}_v_{name}"
        lines.append(
            f"set -e {kept}; set -e {kept}_x; if set -q {name}; set -g {kept} ${name}; "
            f"set -qx {name}; and set -g {kept}_x 1; end; set -gx {name} {quote_fish(value)}"
        )
    bodies = {name: f"{value} $argv" for name, value in injection.aliases.items()}
    for name, body in {**bodies, **injection.functions}.items():
        kept = f"{own}_f_{name}"
        # `eval` of a quoted word, as for the other shells; an alias of its own name means the command.
        text = re.sub(rf"^{re.escape(name)}\b", f"command {name}", body) if name in injection.aliases else body
        define = f"function {name}; eval {quote_fish(text)}; end"
        lines.append(
            f"functions -e {kept}; functions -q {name}; and functions -c {name} {kept}; functions -e {name}; "
            f"eval {quote_fish(define)}"
        )
    return "\n".join([*lines, f"printf '%s' {DONE}"])


def _fish_removing(injection: ShellContext, heirs: Mapping[str, str]) -> str:
    own = f"__crux_{injection.id}"
    lines = []
    for name in injection.env:
        kept = f"{own}_v_{name}"
        if name in heirs:
            heir = f"__crux_{heirs[name]}_v_{name}"
            for end in ("", "_x"):
                lines.append(f"set -e {heir}{end}; set -q {kept}{end}; and set -g {heir}{end} ${kept}{end}")
        else:
            lines.append(
                f"set -e {name}; if set -q {kept}; if set -q {kept}_x; set -gx {name} ${kept}; "
                f"else; set -gu {name} ${kept}; end; end"
            )
        lines.append(f"set -e {kept}; set -e {kept}_x")
    for name, mark in (*((name, "a:") for name in injection.aliases), *((name, "f:") for name in injection.functions)):
        kept = f"{own}_f_{name}"
        heir_id = heirs.get(f"a:{name}") or heirs.get(f"f:{name}") if mark else None
        if heir_id:
            heir = f"__crux_{heir_id}_f_{name}"
            lines.append(f"functions -e {heir}; functions -q {kept}; and functions -c {kept} {heir}")
        else:
            lines.append(f"functions -e {name}; functions -q {kept}; and functions -c {kept} {name}")
        lines.append(f"functions -e {kept}")
    return "\n".join([*lines, f"printf '%s' {DONE}"])


def _plain(name: str) -> str:
    """A word as part of a variable's name; names that differ stay different."""
    return re.sub(r"[^A-Za-z0-9]", lambda found: f"_{ord(found[0]):x}_", name)


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
        multiplexer.changes.subscribe(self._hear, PaneGone, events.Exited, events.CommandEnded)

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
            raise InvalidInput(
                f"expires_after_commands must be between 1 and {MAX_COMMANDS}, got {expires_after_commands}",
                "choose another number",
            )
        injection = ShellContext(secrets.token_hex(4), env or {}, aliases or {}, functions or {})
        injection.check()
        if len(self._kept) >= MAX_CONTEXTS:
            raise Conflict(f"{len(self._kept)} contexts are injected", "remove some with crux_remove_context")
        pane = self._all.find(pane_id)
        self._judge(pane, injection, approved_message())
        if pane.kind is None:
            raise Conflict(f"pane {pane.id} runs {pane.name}, which is not a known shell", "use a pane with a shell")
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
            raise NotFound(f"no context has the id {context_id!r}", f"injected now: {known}")
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
        if kind_of_change(change) is events.CommandEnded:
            self._count(change.pane_id)
            return
        for context_id in [key for key, kept in self._kept.items() if kept.pane_id == change.pane_id]:
            del self._kept[context_id]

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
