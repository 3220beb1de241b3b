"""The one owner of all panes: opens, finds, arranges and ends them, and tells who listens what changed."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from dari.daemon.caller_scopes import CallerIdentity, current_caller, is_person
from dari.errors import Conflict, DariError, Denied, InvalidInput, NotFound, Unavailable
from dari.process.spawner import Spawner
from dari.terminal.engine.engine import Engine, make_engine
from dari.terminal.input_policy import PaneInputPolicy, PolicyEnforcer
from dari.terminal.layout.windows import Layout
from dari.terminal.out_of_band import OutOfBandChannel, current_environment, is_of_terminal
from dari.terminal.panes import events
from dari.terminal.panes.environment import make_environment, of_person
from dari.terminal.panes.events import Fanout
from dari.terminal.panes.pane import Pane
from dari.terminal.policy.config import Security
from dari.terminal.policy.policy import Policy
from dari.terminal.take_over import InputControl
from dari.terminal.window_manager import PanePlacement, WindowManager

logger = logging.getLogger("dari.terminal")
MAX_ENDED = 20
MAX_NAME_CHARS = 64
JUDGED_S = 1.0

if TYPE_CHECKING:
    from dari.terminal.api.approvals import ApprovalsApi
    from dari.terminal.panes.workspace_sandbox import WorkspaceSandbox


class PaneOpened(Struct, frozen=True):
    pane_id: str


class PaneGone(Struct, frozen=True):
    pane_id: str


class PaneChanged(Struct, frozen=True):
    """Something happened in a pane."""

    pane_id: str
    event: events.PaneEvent


class PaneRenamed(Struct, frozen=True):
    pane_id: str


class LayoutChanged(Struct, frozen=True):
    """Sizes, places, tabs, windows, their names, or the focus, which this pane has now (empty: there is none).

    A pane that is being opened or closed has its place earlier, and for longer, than it is one of the panes.
    """

    pane_id: str


Change = PaneOpened | PaneGone | PaneChanged | PaneRenamed | LayoutChanged


def kind_of_change(change: Change) -> type:
    """What listeners name to hear of it: for something that happened in a pane, the kind of that event."""
    return type(change.event) if type(change) is PaneChanged else type(change)


class Multiplexer:
    """`async with` it: leaving ends every program in every pane."""

    def __init__(
        self,
        security: Security | None = None,
        socket_path: Path | None = None,
        control_path: Path | None = None,
    ) -> None:
        self.security = security or Security()
        self.guard = PolicyEnforcer(Policy(self.security))
        self.approvals: ApprovalsApi | None = None
        """Where calls are asked for that a person has to agree to; set by the service."""
        self.socket_path = socket_path
        self.windows = WindowManager(lambda: self.changes.publish(LayoutChanged(self.windows.focused)))
        self.changes: Fanout[Change] = Fanout(kind_of_change)
        self._keepers = Spawner()
        self._panes: dict[str, Pane] = {}
        self._inputs: dict[str, PaneInputPolicy] = {}
        self._typing: dict[str, InputControl] = {}
        self._person: Mapping[str, str] | None = None
        self._settings: Mapping[str, str] = {}
        self._environments: dict[str, dict[str, str]] = {}
        self._control_path = control_path
        self._controls: dict[str, OutOfBandChannel] = {}
        self._hidden = [path for path in (socket_path, control_path) if path is not None]
        self._judged: tuple[CallerIdentity | None, float, bool] = (None, 0.0, False)
        self._count = 0
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()  # panes that have ended and are forgotten
        self._warming: asyncio.Task[None] | None = None
        self._first = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end_all()
        await asyncio.gather(*self._closing)
        await self._keepers.close()

    @property
    def panes(self) -> Mapping[str, Pane]:
        """By id, oldest first; those whose program has ended are kept for their last screen."""
        return self._panes

    @property
    def live_panes(self) -> int:
        return sum(pane.is_alive for pane in self._panes.values())

    @property
    def settled_layout(self) -> Layout:
        """The layout without panes that are still being opened, which have a place before they are one of the panes."""
        layout = self.windows.layout
        for pane_id in layout.panes:
            if pane_id not in self._panes:
                layout = layout.close(pane_id)
        return layout

    @property
    def focused(self) -> str:
        """The pane that is meant when none is named, empty when there is none; not one that is still being opened."""
        focused = self.windows.focused
        return focused if focused in self._panes else self.settled_layout.focused or ""

    def find(self, pane_id: str = "") -> Pane:
        """The pane with this id or name; the focused one when none is given."""
        wanted = pane_id or self.focused
        if not wanted:
            raise NotFound("no pane is open", "open one with crux_create_pane")
        found = self._panes.get(wanted.removeprefix("%")) or self._named(wanted)
        if found is None:
            known = ", ".join(self._panes) or "none"
            raise NotFound(f"no pane has the id or name {wanted!r}", f"crux_list_panes names them; now: {known}")
        return found

    @property
    def start_place(self) -> str:
        """Where a pane begins by default: at home, or in the first allowed directory."""
        return next(iter(self.security.allowed_directories), "~")

    def _checked_place(self, cwd: str) -> str:
        """No pane begins outside the allowed directories, for any caller."""
        place = os.path.abspath(os.path.expanduser(cwd or self.start_place))
        self.guard.check("", place)
        return place if cwd or os.path.isdir(place) else ""  # a home that is not there is nobody's mistake

    def input_guard(self, pane: Pane) -> PaneInputPolicy:
        return self._inputs[pane.id]

    def typing(self, pane: Pane) -> InputControl:
        """Who types into the pane."""
        return self._typing[pane.id]

    def hide(self, *paths: Path) -> None:
        """Folders of ours besides the usual ones, which confined panes do not see."""
        self._hidden += paths

    def own_sockets(self, *paths: Path) -> None:
        """Files to remove, besides ending all programs, when this process is killed."""
        self._keepers.sockets = paths

    def adopt_environment(self, environ: Mapping[str, str]) -> None:
        """Panes that are opened from now on have a person's environment, without what is tied to their terminal."""
        self._person = of_person(environ)

    def set_variables(self, settings: Mapping[str, str]) -> None:
        """Variables of every pane, however the daemon was started; those given for one pane come after them."""
        self._settings = dict(settings)

    async def run_quietly(self, pane: Pane, script: str, timeout_s: float = 5.0) -> bytes:
        """Run shell text at the prompt of the pane without a trace; return what it printed."""
        control = self._controls.get(pane.id)
        if control is None:
            raise Conflict(f"pane {pane.id} cannot run a command out of band", "run the command in it")
        return await control.run(pane, script, timeout_s)

    async def environment(self, pane: Pane) -> dict[str, str]:
        """The variables of the pane that are not the usual ones: given when it was opened, or exported since.

        Those that a person exported in a pane which is not confined are not for agents, whose panes are.
        """
        given = self._environments.get(pane.id, {})
        if self._is_persons(pane) and not self._is_person():
            return given
        try:
            current = await current_environment(pane, self.run_quietly)
        except (DariError, OSError):
            return given  # a shell that cannot be asked, or has just ended
        usual = make_environment(pane.id, str(self.socket_path or ""), self._settings, self._person)
        return {
            name: value
            for name, value in current.items()
            if name in given or (usual.get(name) != value and not is_of_terminal(name))
        }

    async def warm(self) -> None:
        """Load the screen's library (0.4 s) beside the loop, once; the first pane waits for it.

        Two threads that load it at once would get two libraries that do not know each other's objects.
        """
        if self._warming is None:
            self._warming = asyncio.create_task(asyncio.to_thread(_load_engine))
        await asyncio.shield(self._warming)

    async def find_or_open(self, pane_id: str = "") -> Pane:
        """Like `find`, but when none is named and there is none, one is opened."""
        if not pane_id and not self.focused:
            async with self._first:
                if not self.focused:
                    return await self.open()
        return self.find(pane_id)

    async def open(
        self,
        *,
        spot: PanePlacement | None = None,
        cwd: str = "",
        command: Sequence[str] = (),
        shell: str = "",
        name: str = "",
        env: Mapping[str, str] | None = None,
        engine: Engine | None = None,
        pane_id: str = "",
    ) -> Pane:
        """Start a shell or a program in a new pane. Its place is found before it starts, or nothing is changed."""
        self._check_name(name)
        sandbox = self._choose_sandbox()
        await self.warm()
        async with self._opening:
            # They are counted as crux_list_panes shows them; those whose program has ended make room.
            while len(self._panes) >= self.security.max_panes and self.live_panes < len(self._panes):
                self._drop(next(pane for pane in self._panes.values() if not pane.is_alive))
            if len(self._panes) >= self.security.max_panes:
                raise Conflict(
                    f"{self.live_panes} panes are open, which is max_panes",
                    "close one with crux_close_pane, or raise max_panes in crux.toml",
                )
            self._count += 1
            new = pane_id or self._free_id()
            spot = spot or PanePlacement()
            target = self.find(spot.target) if spot.target or self.focused else None
            self.windows.add(new, spot, target.id if target is not None else "")
            try:
                place = self._checked_place(cwd or (target.cwd() if target is not None and target.is_alive else ""))
                cols, rows = self.windows.size_of(new)
                if engine is not None:
                    engine.resize(cols, rows)
                pane = await Pane.open(
                    self._keepers,
                    new,
                    name=name,
                    cols=cols,
                    rows=rows,
                    cwd=place,
                    command=command,
                    shell=shell,
                    env=self._with_control(new, {**self._settings, **(env or {})}, sandbox),
                    base=self._person,
                    socket_path=str(self.socket_path or ""),
                    engine=engine,
                    sandbox=sandbox,
                )
            except BaseException:
                self.windows.remove(new)
                self._forget_control(new)
                raise
            self._environments[pane.id] = dict(env or {})
            self._adopt(pane)
        self.fit()
        return pane

    async def respawn(
        self,
        pane_id: str,
        *,
        command: Sequence[str] = (),
        shell: str = "",
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        force: bool = False,
    ) -> Pane:
        """Another program in the place of the pane, under the same id and name, on an empty screen.

        Conflict when one runs there and `force` was not given.
        """
        old = self.find(pane_id)
        self.typing(old).check()
        if old.is_alive and not force:
            raise Conflict(f"pane {old.id} still runs {old.name}", "close it first, or use force")
        sandbox = self._choose_sandbox()
        async with self._opening:
            place = self._checked_place(cwd or old.cwd())
            await old.close(force=True)
            cols, rows = self.windows.size_of(old.id)
            pane = await Pane.open(
                self._keepers,
                old.id,
                name=old.name,
                cols=cols,
                rows=rows,
                cwd=place,
                command=command,
                shell=shell,
                env=self._with_control(old.id, {**self._settings, **(env or {})}, sandbox),
                base=self._person,
                socket_path=str(self.socket_path or ""),
                sandbox=sandbox,
            )
            if self._panes.get(old.id) is not old:  # somebody closed it meanwhile: its place is gone
                self._forget_control(old.id)
                await pane.close(force=True)
                raise NotFound(f"pane {old.id} was closed", "open one with crux_create_pane")
            self._inputs.pop(old.id).close()
            self._environments[pane.id] = dict(env or {})
            self._adopt(pane)
        return pane

    def _adopt(self, pane: Pane) -> None:
        self._panes[pane.id] = pane
        if pane.id not in self._typing:  # a program that takes another one's place is in the same hands
            tell = self._tell_typist
            self._typing[pane.id] = InputControl(pane.id, self._is_person, lambda: tell(pane.id))
        pane.admit_input = lambda: self._admit_input(pane)
        pane.commands.typists = self._typing[pane.id].take_line
        self._inputs[pane.id] = PaneInputPolicy(pane, self.guard)
        pane.events.subscribe(lambda event: self.changes.publish(PaneChanged(pane.id, event)))
        self.changes.publish(PaneOpened(pane.id))
        ended = [each for each in self._panes.values() if not each.is_alive]
        for old in ended[:-MAX_ENDED]:
            self._drop(old)

    async def close(self, pane_id: str, *, force: bool = False) -> None:
        """End what runs in the pane and take it out of its window."""
        pane = self.find(pane_id)
        if pane.is_alive:
            self.typing(pane).check()
        await self._close(pane, force=force)

    async def _close(self, pane: Pane, *, force: bool) -> None:
        await pane.close(force=force)
        if self._panes.get(pane.id) is pane:
            self._forget(pane)
            self.fit()

    def check_end(self, panes: Iterable[Pane]) -> None:
        """Conflict when a person has one of the panes, and an agent calls: before the first one is ended."""
        for pane in panes:
            self.typing(pane).check()

    async def end_all(self) -> None:
        closing = [self._close(pane, force=True) for pane in list(self._panes.values())]
        for result in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(result, BaseException) and not isinstance(result, DariError):
                raise result

    def fit(self) -> None:
        """Give every pane the size of its place."""
        for pane_id, pane in self._panes.items():
            cols, rows = self.windows.size_of(pane_id)
            if (cols, rows) != (pane.engine.cols, pane.engine.rows):
                with suppress(InvalidInput):
                    pane.resize(cols, rows)

    def rename(self, pane_id: str, name: str) -> Pane:
        pane = self.find(pane_id)
        self._check_name(name)
        pane.name = name
        self.changes.publish(PaneRenamed(pane.id))
        return pane

    def _drop(self, pane: Pane) -> None:
        """Forget a pane whose program has ended, and end what that program left behind."""
        self._forget(pane)
        closing = asyncio.get_running_loop().create_task(self._end_rest(pane))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _end_rest(self, pane: Pane) -> None:
        try:
            await pane.close(force=True)
        except Exception:  # no caller waits for it
            logger.exception("what the program of pane %s left behind was not ended", pane.id)

    def _forget(self, pane: Pane) -> None:
        self._panes.pop(pane.id, None)
        self._inputs.pop(pane.id).close()
        self._typing.pop(pane.id, None)
        self._environments.pop(pane.id, None)
        self._forget_control(pane.id)
        self.windows.remove(pane.id)
        self.changes.publish(PaneGone(pane.id))

    def _forget_control(self, pane_id: str) -> None:
        control = self._controls.pop(pane_id, None)
        if control is not None:
            control.remove()

    def _choose_sandbox(self) -> WorkspaceSandbox | None:
        """For a pane that this call opens: none where crux.toml wants none, or for a person's command."""
        if self.security.sandbox == "off" or is_person():
            return None
        from dari.terminal.panes.workspace_sandbox import WorkspaceSandbox

        source = [Path(self.security.source)] if self.security.source else []
        return WorkspaceSandbox([*self._hidden, *source])

    def _tell_typist(self, pane_id: str) -> None:
        self._panes[pane_id].events.publish(events.TypistChanged())

    def _is_persons(self, pane: Pane) -> bool:
        """Whether it is out of the reach of agents: not confined, where the panes of agents are."""
        return self.security.sandbox != "off" and not pane.is_confined

    def _admit_input(self, pane: Pane) -> None:
        if self._is_persons(pane):
            self._admit_person()
        self._typing[pane.id].admit()

    def _admit_person(self) -> None:
        if not self._is_person():
            raise Denied(
                "this pane is a person's, and not confined to a workspace",
                "open one of your own: crux_create_pane",
            )

    def _is_person(self) -> bool:
        """Found out once a second and process: a person types faster than /proc is read."""
        caller, now = current_caller(), time.monotonic()
        if caller is None or caller.pid is None:
            return False
        if self._judged[0] != caller or now - self._judged[1] > JUDGED_S:
            self._judged = (caller, now, is_person())
        return self._judged[2]

    def _with_control(
        self, pane_id: str, env: Mapping[str, str] | None, sandbox: WorkspaceSandbox | None
    ) -> dict[str, str]:
        given = dict(env or {})
        if self._control_path is None:
            return given
        # Our own folders are hidden from a confined pane.
        folder = self._control_path / pane_id if sandbox is None else Path(tempfile.mkdtemp(prefix="crux-pane-"))
        self._forget_control(pane_id)
        control = self._controls[pane_id] = OutOfBandChannel(folder)
        return {**given, "CRUX_CONTROL": control.make()}

    def _named(self, name: str) -> Pane | None:
        named = [pane for pane in self._panes.values() if pane.name == name]
        living = [pane for pane in named if pane.is_alive] or named
        if len(living) > 1:
            raise InvalidInput(f"{len(living)} panes are named {name!r}", "use their ids from crux_list_panes")
        return living[0] if living else None

    def _free_id(self) -> str:
        while str(self._count) in self._panes:
            self._count += 1
        return str(self._count)

    def _check_name(self, name: str) -> None:
        if len(name) > MAX_NAME_CHARS or not name.isprintable():
            raise InvalidInput(
                f"a pane name must have at most {MAX_NAME_CHARS} printable characters, got {name[:80]!r}",
                "choose another name",
            )


def _load_engine() -> None:
    with suppress(Unavailable):  # opening a pane reports the reason
        make_engine(1, 1).close()
