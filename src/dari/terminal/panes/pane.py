"""A pane: one program on one terminal, with its screen, its commands and whoever watches."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Literal

from dari.errors import Conflict, InvalidInput
from dari.terminal.engine.engine import HISTORY_ROWS, Engine, make_engine
from dari.terminal.engine.keys import Key
from dari.terminal.panes import events
from dari.terminal.panes.commands import CommandLog, CommandRecord, CommandResult
from dari.terminal.panes.events import Fanout, PaneEvent
from dari.terminal.panes.integration import NUMBER, Launch, find_shell, integrate, kind_of, make_environment
from dari.terminal.panes.keeping import GRACE_S, Keepers, Kept
from dari.terminal.panes.output import to_text
from dari.terminal.panes.processes import Process, describe, directory_of
from dari.terminal.panes.pty import Pty
from dari.terminal.panes.typing import type_command
from dari.terminal.panes.waiting import Found
from dari.terminal.panes.watching import Watch

PROMPT_S = 10.0
BUSY_S = 0.5
REPLY_BYTES = 64 * 1024
_ESC = 0x1B
_WORD = b"\x1b]%d;" % NUMBER
_LINE_PIECES = 10_000


class Pane:
    """Made by `Pane.open`; `close` ends its program. Everything runs on the loop that opened it."""

    def __init__(self, pane_id: str, name: str, engine: Engine, pty: Pty, launch: Launch) -> None:
        self.id = pane_id
        self.name = name
        self.engine = engine
        self.events: Fanout[PaneEvent] = Fanout()
        self.exit_code: int | None = None
        self.kind = launch.kind
        self.commands = CommandLog(launch.nonce, begins_by_itself=launch.kind != "sh")
        self._launch = launch
        self._pty = pty
        self._kept: Kept | None = None
        self._keepers: Keepers | None = None
        self._exited = asyncio.Event()
        self._typing = asyncio.Lock()
        self._watch = Watch()
        self._line: list[bytes] = []  # what the shell showed of it
        self._is_echoing = False  # what comes now is the line that is being typed at a prompt
        self._has_typed = False  # by others than `execute`, and not yet entered
        self._chunk = b""
        self._chunk_start = 0
        self._taken = 0
        self._size = (engine.cols, engine.rows)
        self._title = engine.title
        self._cwd = engine.cwd
        self._is_closed = False
        engine.on_osc = self._hear
        engine.hears_prompts = False
        engine.on_reply = self._reply
        engine.on_bell = lambda: self.events.publish(events.Bell())
        engine.on_clipboard = lambda data: self.events.publish(events.Clipped(data))
        self.commands.on_start = self._started
        self.commands.on_end = self._ended
        self.commands.typed = self._typed
        pty.on_data = self._show

    @classmethod
    async def open(
        cls,
        keepers: Keepers,
        pane_id: str,
        *,
        name: str = "",
        cols: int = 120,
        rows: int = 40,
        cwd: str = "",
        command: Sequence[str] = (),
        shell: str = "",
        env: Mapping[str, str] | None = None,
        socket_path: str = "",
        history_rows: int = HISTORY_ROWS,
        prefer: Literal["auto", "ghostty", "bittty"] = "auto",
        engine: Engine | None = None,
        is_plain: bool = False,
    ) -> Pane:
        """Start a shell, or `command`, on a new terminal.

        `env` is added to the pane's own environment; `engine` is a screen to go on with; `is_plain` leaves the
        user's own start files of the shell out.
        """
        screen = engine or make_engine(cols, rows, history_rows, prefer)
        cols, rows = screen.cols, screen.rows
        place = os.path.abspath(os.path.expanduser(cwd)) if cwd else os.path.expanduser("~")
        if not os.path.isdir(place):
            if cwd:
                raise InvalidInput(f"{place} is no directory", "name a directory that exists")
            place = "/"
        full = make_environment(pane_id, socket_path, env)
        if command and (len(command) > 1 or kind_of(command[0]) is None):
            launch = Launch(tuple(command), full, None, "")
        else:
            launch = integrate(find_shell(command[0] if command else shell, full), full, is_plain=is_plain)
        pty = Pty(cols, rows)
        pane = cls(pane_id, name or os.path.basename(launch.argv[0]), screen, pty, launch)
        try:
            kept = await keepers.start(launch.argv, env=launch.env, cwd=place, terminal=pty.slave)
        except BaseException:
            pty.close()
            raise
        pane._adopt(keepers, kept)
        return pane

    def _adopt(self, keepers: Keepers, kept: Kept) -> None:
        self._keepers, self._kept = keepers, kept
        kept.on_exit = self._exit
        self._pty.attach()
        if kept.exit_code is not None:
            self._exit(kept.exit_code)

    # Facts

    @property
    def pid(self) -> int:
        return 0 if self._kept is None else self._kept.pid

    @property
    def tty(self) -> str:
        return self._pty.tty

    @property
    def argv(self) -> tuple[str, ...]:
        return self._launch.argv

    @property
    def position(self) -> int:
        """How many bytes the pane has shown; a place to wait from."""
        return self.engine.consumed

    @property
    def is_alive(self) -> bool:
        return self.exit_code is None

    @property
    def is_at_prompt(self) -> bool:
        return self.is_alive and self.commands.is_ready

    @property
    def has_echo(self) -> bool:
        """Off while a program reads a password; editors and shells turn it off too and echo themselves."""
        return self._pty.has_echo

    @property
    def is_asking_secret(self) -> bool:
        """The kernel reads a line for the program and does not show it: a password is being asked for."""
        return self.is_alive and self._pty.is_canonical and not self._pty.has_echo

    @property
    def reads_lines(self) -> bool:
        """The kernel collects lines for the program; editors, pagers and shells read keys themselves."""
        return self.is_alive and self._pty.is_canonical

    def foreground(self) -> Process | None:
        """The program that has the terminal now."""
        group = self._pty.foreground_group if self.is_alive else None
        return (describe(group) if group else None) or (describe(self.pid) if self.is_alive else None)

    def cwd(self) -> str:
        """Where the shell is, or the program that runs in it when it went elsewhere."""
        if not self.is_alive:
            return self.commands.cwd or self.engine.cwd
        group = None if self.is_at_prompt else self._pty.foreground_group
        return (directory_of(group) if group else "") or directory_of(self.pid) or self.engine.cwd or "/"

    # Input

    async def write(self, data: bytes) -> None:
        """Bytes as if typed; returns when the kernel has taken them."""
        self._put(data)
        await self._pty.drain()

    async def send_text(self, text: str, *, paste: bool = False) -> None:
        """Text at the cursor: as a paste, which no program takes for keys, or as typed characters."""
        data = self.engine.encode_paste(text) if paste else text.replace("\r\n", "\r").replace("\n", "\r").encode()
        await self.write(data)

    async def send_keys(self, keys: Sequence[Key]) -> None:
        await self.write(b"".join(map(self.engine.encode_key, keys)))

    def _put(self, data: bytes, *, is_command: bool = False) -> None:
        if not self.is_alive:
            raise Conflict(f"the program of pane {self.id} has ended ({self.exit_code})", "open a new pane")
        if self.commands.zone == "input":
            self._is_echoing = self.kind != "sh"
            self._has_typed = not is_command and not data.endswith((b"\r", b"\n", b"\x03"))
        if not self._is_echoing and not self.is_asking_secret:
            self._watch.typed(self.engine.consumed, data)
        self._pty.send(data)

    def _reply(self, data: bytes) -> None:
        # A program that asks without reading the answers must not fill our memory with them.
        if self.is_alive and self._pty.queued + len(data) <= REPLY_BYTES:
            self._pty.send(data)

    # Commands

    async def execute(self, command: str, timeout_s: float = 30.0) -> CommandResult:
        """Run one command (of any number of lines) at the shell's prompt.

        After the time it goes on running: the result then has status "running", its output so far and an id for
        `wait_command` and `interrupt`. Conflict when the pane runs no shell, or its shell is busy.
        """
        kind = self.kind
        if kind is None:
            raise Conflict(f"pane {self.id} runs {self.name}, no shell that we know", "use send_keys and wait_for")
        if not self.is_alive:
            raise Conflict(f"the shell of pane {self.id} has ended ({self.exit_code})", "open a new pane")
        async with self._typing:
            await self._await_prompt(min(timeout_s, PROMPT_S))
            typed = type_command(command, kind, self.engine)
            if self._has_typed:  # somebody began a line: it is not part of this command
                typed = (b"\x15" if kind == "sh" else b"\x05\x15") + typed
            place = self.commands.cwd or self.cwd()
            record = self.commands.send(command, place, self._size)
            self._put(typed, is_command=True)
        return await self._result(record, timeout_s)

    async def _await_prompt(self, timeout_s: float) -> None:
        if self.commands.is_ready:
            return
        # Two short commands at once run one after the other; a long one is reported at once.
        if not await self.commands.ready(min(timeout_s, BUSY_S) if self.commands.zone == "running" else timeout_s):
            running = self.commands.current
            if not self.is_alive:
                raise Conflict(f"the shell of pane {self.id} has ended ({self.exit_code})", "open a new pane")
            busy = self.foreground()
            what = f" ({running.id}: {running.command[:80]})" if running is not None else ""
            raise Conflict(
                f"pane {self.id} is busy: {busy.name if busy else 'a program'} has the terminal{what}",
                "wait for it, interrupt it, send it keys, or use another pane",
            )

    async def _result(self, record: CommandRecord, timeout_s: float) -> CommandResult:
        if not record.done.is_set():
            try:
                async with asyncio.timeout(timeout_s):
                    await record.done.wait()
            except TimeoutError:
                pass
        return self.commands.result(record)

    async def wait_command(self, command_id: str, timeout_s: float = 30.0) -> CommandResult:
        """Go on waiting for a command that was still running."""
        return await self._result(self.commands.find(command_id), timeout_s)

    async def interrupt(self, command_id: str = "", timeout_s: float = 2.0) -> CommandResult | None:
        """^C for the command, or for whatever has the terminal; waits a little for it to end."""
        record = self.commands.find(command_id) if command_id else self.commands.current
        if record is not None and record.done.is_set():
            return self.commands.result(record)
        group = self._pty.foreground_group
        if self._pty.has_signals or not group:
            self._put(b"\x03")
        else:
            os.killpg(group, signal.SIGINT)
        return None if record is None else await self._result(record, timeout_s)

    # Waiting

    async def wait_for(
        self, pattern: str, *, is_regex: bool = False, timeout_s: float = 30.0, since: int | None = None
    ) -> Found:
        """Wait until the pane shows the text: after this call, or after the position `since`.

        What was typed does not count when the terminal shows it again. In a full-screen program, rows that changed
        are looked at. TimedOut when the time is up, Conflict when the program ends first.
        """
        return await self._watch.wait(self, pattern, is_regex=is_regex, timeout_s=timeout_s, since=since)

    def shown_since(self, position: int) -> list[tuple[int, bytes]]:
        """Pieces of what was printed after this position, each with its own; the last megabyte is kept."""
        return self._watch.since(position)

    # Output

    def _show(self, data: bytes) -> None:
        engine = self.engine
        self._chunk, self._chunk_start, self._taken = data, engine.consumed, 0
        engine.feed(data)
        self._take(len(data))
        self._chunk = b""
        if _ESC in data and b"\x1b]" in data:
            self._notice()
        if self.events:
            self.events.publish(events.Output(len(data), engine.consumed))

    def _take(self, end: int) -> None:
        """Give the bytes up to `end` of this chunk to those whom they belong to, as things stood until now."""
        begin, self._taken = self._taken, end
        if begin >= end:
            return
        piece = self._chunk[begin:end] if end - begin < len(self._chunk) else self._chunk
        log = self.commands
        if log.current is not None:
            if log.zone != "prompt":
                log.current.capture.add(piece)
        elif self._is_echoing and len(self._line) < _LINE_PIECES:
            self._line.append(piece)
        if not (self._is_echoing and log.zone == "input"):
            self._watch.shown(self._chunk_start + begin, piece)

    def _hear(self, number: int, payload: bytes) -> None:
        if number != NUMBER or not self._launch.nonce:
            return
        end = self.engine.consumed - self._chunk_start
        begin = self._chunk.rfind(_WORD, self._taken, end)  # before this chunk when it was cut in two
        self._take(begin if begin >= 0 else end)
        self._taken = end
        log = self.commands
        before = log.zone
        log.hear(payload, self._size)
        if log.zone == "input" and before != "input":
            self._is_echoing = self._has_typed = False
            self._line.clear()
        elif log.zone == "running":
            if self._is_echoing:  # the line that was left out ended here
                self._watch.shown(self.engine.consumed, b"\n")
            self._is_echoing = self._has_typed = False

    def _typed(self) -> str:
        """The line that a person entered, as the screen showed it."""
        return to_text(b"".join(self._line), self.engine.cols, self.engine.rows).strip()

    def _notice(self) -> None:
        title, cwd = self.engine.title, self.engine.cwd
        if title != self._title:
            self._title = title
            self.events.publish(events.TitleChanged(title))
        if cwd != self._cwd:
            self._cwd = cwd
            self.events.publish(events.CwdChanged(cwd))

    def _started(self, record: CommandRecord) -> None:
        self.events.publish(events.CommandStarted(record.id, record.command))

    def _ended(self, record: CommandRecord) -> None:
        self.events.publish(events.CommandEnded(record.id, record.command, record.exit_code))

    # Size and end

    def resize(self, cols: int, rows: int) -> None:
        self.engine.resize(cols, rows)
        self._size = (cols, rows)
        if self._pty.is_open:
            self._pty.resize(cols, rows)
        self.events.publish(events.Resized(cols, rows))

    def pause(self) -> None:
        """Stop taking output: the program waits until `resume`."""
        self._pty.pause()

    def resume(self) -> None:
        self._pty.resume()

    def _exit(self, code: int) -> None:
        if self.exit_code is not None:
            return
        self._pty.finish()
        self.exit_code = code
        self.commands.finish(code)
        self.events.publish(events.Exited(code))
        self._exited.set()

    async def exited(self) -> int:
        """Wait for the first program to end; its exit code, -N for signal N."""
        await self._exited.wait()
        return self.exit_code or 0

    async def close(self, *, force: bool = False) -> None:
        """End every process of the pane: SIGHUP, then SIGKILL for those that are left. The screen stays readable.

        Without `force`, Conflict when something other than the shell at its prompt runs.
        """
        if self._is_closed:
            return
        if not force and self.is_alive and self.kind is not None and self.commands.zone == "running":
            busy = self.foreground()
            raise Conflict(f"{busy.name if busy else 'a program'} runs in pane {self.id}", "close it with force")
        self._is_closed = True
        if self._keepers is not None and self._kept is not None:
            await self._keepers.end(self._kept, GRACE_S)
            self._exit(self._kept.exit_code if self._kept.exit_code is not None else -signal.SIGHUP)
        self._pty.close()
