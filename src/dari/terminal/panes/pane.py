"""A pane: one program on one terminal, with its screen, its commands and its watchers."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dari.errors import Conflict
from dari.process.group import members_of
from dari.process.spawner import SpawnedProcess, Spawner
from dari.terminal.engine.engine import DEFAULT_HISTORY_ROWS, Engine, make_engine
from dari.terminal.engine.keys import Key
from dari.terminal.limits import DEFAULT_WAIT_S
from dari.terminal.panes import events
from dari.terminal.panes.commands import CommandLog, CommandRecord, CommandResult
from dari.terminal.panes.environment import first_directory, make_environment
from dari.terminal.panes.events import Fanout, PaneEvent
from dari.terminal.panes.execution import ANSWER_S, Execution
from dari.terminal.panes.expect import ExpectResult, OutputExpect
from dari.terminal.panes.output_router import OutputRouter, Replies
from dari.terminal.panes.prompt_line import KernelLines, PromptLine
from dari.terminal.panes.prompts import reads_terminal
from dari.terminal.panes.pty import MAX_QUEUED_BYTES, ProcessInfo, Pty, describe, directory_of
from dari.terminal.panes.shell_integration import Launch, ShellKind, plan_launch
from dari.terminal.typed_input import from_keys, from_paste, from_text

if TYPE_CHECKING:
    from dari.sandbox.builder import SandboxedCommand
    from dari.terminal.panes.workspace_sandbox import WorkspaceSandbox

ENTER_S = 1.0
EDITOR_S = 2.0  # what a program with a line editor gets to read keys again
_REOPEN = "open another with crux_create_pane"
STARTING_S = 0.5
FISH_S = 0.1  # fish tells that a command begins before it gives the terminal its usual modes back
_ESC, _BRACKET = 0x1B, 0x5D


class Pane:
    """Made by `Pane.open`; `close` ends its program. Everything runs on the loop that opened it."""

    def __init__(self, pane_id: str, name: str, engine: Engine, pty: Pty, launch: Launch) -> None:
        self.id = pane_id
        self.name = name
        self.engine = engine
        self.events: Fanout[PaneEvent] = Fanout()
        self.exit_code: int | None = None
        self.commands = CommandLog(launch.nonce, launch.kind)
        self._launch = launch
        self._pty = pty
        self._kept: SpawnedProcess | None = None
        self._keepers: Spawner | None = None
        self._exited = asyncio.Event()
        self._entering = asyncio.Lock()
        self._watch = OutputExpect(lambda: not pty.is_canonical)
        self._line = PromptLine(lambda: self.kind, lambda: engine.cursor_column)
        self._kernel_lines = KernelLines(self.commands, lambda: reads_terminal(self.commands.shell_pid))
        self._replies = Replies(pty, self.commands, lambda: self.pid if self.is_alive else 0)
        self._execution = Execution(
            pane_id,
            pty,
            engine,
            self.commands,
            self._line,
            self._replies,
            put=self._put,
            foreground=self.foreground,
            control=launch.env.get("CRUX_CONTROL", ""),
        )
        self._intake = OutputRouter(engine, self.commands, self._line, self._watch)
        self._size = (engine.cols, engine.rows)
        self._title = engine.title
        self._cwd = engine.cwd
        self._input_mark = 0
        self._is_closed = False
        self._is_held = False  # a reader that is behind wants the program to wait
        self._interrupting = 0
        self._editor_group: int | None = None  # the last programs that read keys themselves when something was typed
        self._confined: SandboxedCommand | None = None
        self._discarding: asyncio.Future[None] | None = None
        self._program_pid = 0  # where it is not the one that was started
        self.admit_input: Callable[[], None] = lambda: None
        """Called before anything is typed; raises to refuse it."""
        engine.on_osc = self._intake.hear
        engine.hears_prompts = False
        engine.on_reply = self._reply
        engine.on_bell = lambda: self.events.publish(events.Bell())
        engine.on_clipboard = lambda data: self.events.publish(events.ClipboardWritten(data))
        self.commands.on_start = self._started
        self.commands.on_end = self._ended
        self.commands.typed = lambda: self._line.text(engine.cols, engine.rows)
        self.commands.typed_ahead = lambda: (self._kernel_lines.take_ahead(), self._line.data)
        self.commands.position = lambda: engine.consumed
        self.commands.place = lambda: None if engine.is_alternate else engine.mark()
        pty.on_data = self._show

    @classmethod
    async def open(
        cls,
        keepers: Spawner,
        pane_id: str,
        *,
        name: str = "",
        cols: int = 120,
        rows: int = 40,
        cwd: str = "",
        command: Sequence[str] = (),
        shell: str = "",
        env: Mapping[str, str] | None = None,
        base: Mapping[str, str] | None = None,
        socket_path: str = "",
        history_rows: int = DEFAULT_HISTORY_ROWS,
        prefer: Literal["auto", "ghostty", "bittty"] = "auto",
        engine: Engine | None = None,
        is_plain: bool = False,
        sandbox: WorkspaceSandbox | None = None,
    ) -> Pane:
        """Start a shell, or `command`, on a new terminal.

        `env` is added to the pane's own environment, which `base` replaces by a person's; `engine` is a screen to
        go on with; `is_plain` leaves the user's own start files of the shell out; `sandbox` confines the program.
        """
        screen = engine or make_engine(cols, rows, history_rows, prefer)
        cols, rows = screen.cols, screen.rows
        place = first_directory(cwd)
        full = make_environment(pane_id, socket_path, env, base)
        launch = plan_launch(command, shell, full, is_plain=is_plain, is_login=base is None)
        pty = Pty(cols, rows)
        pane = cls(pane_id, name or os.path.basename(launch.argv[0]), screen, pty, launch)
        try:
            if sandbox is None:
                kept = await keepers.start(launch.argv, env=launch.env, cwd=place, terminal=pty.slave)
            else:
                kept = await pane._start_confined(keepers, sandbox, place)
        except BaseException:
            if pane._confined is not None:
                pane._confined.discard()
            pty.close()
            raise
        pane._adopt(keepers, kept)
        return pane

    async def _start_confined(self, keepers: Spawner, sandbox: WorkspaceSandbox, place: str) -> SpawnedProcess:
        prepared = self._confined = sandbox.prepare(self._launch, place, self._pty.tty)
        control = self._launch.env.get("CRUX_CONTROL", "")
        kept = await keepers.start(
            prepared.command,
            env=prepared.environment,
            cwd=place,
            terminal=self._pty.slave,
            inherited=prepared.inherited,
            folders=[Path(each) for each in (prepared.scratch, control) if each],
        )
        prepared.hand_over()
        try:
            await sandbox.await_launch(prepared)
        except BaseException:
            await keepers.end(kept, hangup_s=0, term_s=0)
            raise
        self._program_pid = sandbox.find_program_pid(prepared, kept.pid)
        return kept

    def _discard_sandbox(self) -> None:
        """Remove its temporary folder, in a thread: a program may have left much there."""
        if self._confined is not None:
            self._discarding = asyncio.get_running_loop().run_in_executor(None, self._confined.discard)

    def _adopt(self, keepers: Spawner, kept: SpawnedProcess) -> None:
        self._keepers, self._kept = keepers, kept
        kept.on_exit = self._exit
        self.commands.start(self.pid)
        self._pty.attach()
        if kept.exit_code is not None:
            self._exit(kept.exit_code)

    # Facts

    @property
    def pid(self) -> int:
        return 0 if self._kept is None else self._program_pid or self._kept.pid

    @property
    def is_confined(self) -> bool:
        """Whether the kernel keeps its programs in the workspace."""
        return self._confined is not None

    @property
    def kind(self) -> ShellKind | None:
        """The shell that is spoken to, as far as we know it: the pane's own, or one inside it."""
        return self.commands.kind

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

    def mark(self, position: int | None = None) -> int:
        """A place to wait from, now or one of a moment ago; with it goes what a full-screen program shows."""
        position = self.position if position is None else position
        self._watch.mark(position, self.engine)
        return position

    def mark_input(self) -> int:
        """Call before something is typed on a caller's behalf: what comes from here on may be the answer to it."""
        self._pty.read_now()
        self._input_mark = self.mark()
        return self._input_mark

    def mark_answered(self) -> None:
        """Call when a caller was given the whole output of a command: a wait that follows is for something else."""
        if self.commands.current is None:
            self._input_mark = self.mark()

    @property
    def answer_mark(self) -> int:
        """Where a wait begins that names no place: behind the last input of a caller or where the running command
        began, whichever came later; at the beginning of the pane when there was neither."""
        running = self.commands.current
        return max(self._input_mark, running.mark if running is not None else 0)

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
        return self.is_alive and self._pty.echo_teller is None

    @property
    def reads_lines(self) -> bool:
        """The kernel collects lines for the program; editors, pagers and shells read keys themselves."""
        return self.is_alive and self._pty.is_canonical

    @property
    def has_terminal(self) -> bool:
        """The pane's own program has the terminal, and not one that it started."""
        return self.is_alive and self._pty.foreground_group == self.pid

    @property
    def inert_keys(self) -> frozenset[str]:
        """Of the characters that take something off a line (^C, ^U, ^H, DEL) those that may not do so now."""
        if not (self.is_at_prompt or self.reads_lines):
            return frozenset()  # the program passes them on, to a terminal that we do not see
        try:
            modes = termios.tcgetattr(self._pty.master)
        except termios.error:  # it has just ended
            return frozenset()
        keys = modes[6]
        # Line editors bind what the terminal names. To fish ^C is a key that clears the line sooner or later.
        takes_interrupt = modes[3] & termios.ISIG and keys[termios.VINTR] == b"\x03"
        found = {
            "\x03": not takes_interrupt or (self.kind == "fish" and self.is_at_prompt),
            "\x15": keys[termios.VKILL] != b"\x15",
            "\x7f": keys[termios.VERASE] != b"\x7f",
            "\x08": self.reads_lines,  # the kernel knows one such character only
        }
        return frozenset(key for key, is_inert in found.items() if is_inert)

    def foreground(self) -> ProcessInfo | None:
        """The program that has the terminal now."""
        group = self._pty.foreground_group if self.is_alive else None
        return (describe(group) if group else None) or (describe(self.pid) if self.is_alive else None)

    def foreground_names(self) -> set[str]:
        """The names of all programs that have the terminal: of a pipe, those that still run."""
        group = self._pty.foreground_group if self.is_alive else None
        found = [self.foreground(), *(describe(pid) for pid in (members_of(group) if group else ()))]
        return {process.name for process in found if process is not None}

    def cwd(self) -> str:
        """Where the shell is, or the program that runs in it when it went elsewhere."""
        if not self.is_alive:
            return self.commands.cwd or self.engine.cwd
        group = None if self.is_at_prompt else self._pty.foreground_group
        return (directory_of(group) if group else "") or directory_of(self.pid) or self.engine.cwd or "/"

    # Input

    async def write(self, data: bytes, admit: Callable[[], None] = lambda: None, *, max_waiting_bytes: int = 0) -> None:
        """Bytes as if typed; returns when the kernel has taken them, or all but `max_waiting_bytes`. `admit` is called
        at the moment when they go out, once nothing else can refuse them; it may raise to do so.

        Right after `execute` they are for its command: the shell must have begun it, for what comes while the shell
        still edits the line reaches the command without a line end.
        """
        is_entering = self._entering.locked() or self.commands.is_entering or not self._execution.may_type.is_set()
        if is_entering or self._would_lose_end(data):
            async with self._entering:
                if is_entering:
                    await self._execution.may_type.wait()
                    await self.commands.entered(ENTER_S)
                    if self.kind == "fish":
                        await self._pty.become_canonical(FISH_S)
                for _ in range(round(EDITOR_S * 1000)):  # nothing tells of it, so it is looked at
                    if not self._would_lose_end(data):
                        break
                    await asyncio.sleep(0.001)
                self._put(data, admit=admit)
        else:
            self._put(data, admit=admit)
        if self._pty.queued > max_waiting_bytes:
            await self._pty.drain()

    async def send_text(self, text: str, *, paste: bool = False) -> None:
        """Text at the cursor: as a paste, which no program takes for keys, or as typed characters."""
        await self.write((from_paste(text, self.engine) if paste else from_text(text)).data)

    async def send_keys(self, keys: Sequence[Key]) -> None:
        await self.write(from_keys(keys, self.engine).data)

    def _would_lose_end(self, data: bytes) -> bool:
        """A ^D between two lines of a REPL: the kernel takes it for an end of input that nobody reads, and gives the
        line editor a NUL in its place."""
        group = self._pty.foreground_group if data.endswith(b"\x04") else None
        if group is None or group != self._editor_group or not self._pty.is_canonical:
            return False
        is_read_by_shell = self.commands.zone == "running" and group == self.commands.shell_pid
        return not is_read_by_shell

    def _put(
        self,
        data: bytes,
        *,
        is_command: bool = False,
        is_again: bool = False,
        admit: Callable[[], None] = lambda: None,
    ) -> None:
        if not is_again:  # what was admitted is typed in another form, and not by its caller
            self.admit_input()
            if is_command and self.commands.current is not None:
                self.commands.current.typists = self.commands.typists()[-1:]
        if not self.is_alive or not self._pty.is_open:
            raise Conflict(f"the program of pane {self.id} has ended ({self.exit_code})", _REOPEN)
        self._check_room(len(data))
        admit()
        # From here on nothing is refused: what is remembered as typed is sent.
        if self._line.typed(data, self.commands.zone, is_command=is_command):
            self.commands.expect(ANSWER_S)
        if self.kind == "sh" and not self.is_asking_secret:
            self._kernel_lines.typed(data, self._size, is_command=is_command)
        if data.endswith(b"\x03"):
            self.commands.note_interrupt()
        if not self._line.is_echoing:
            self._expect_echo(data)
        if not self._pty.is_canonical:
            self._editor_group = self._pty.foreground_group
        self._pty.send(data)

    def _check_room(self, size_bytes: int) -> None:
        queued = self._pty.queued
        if queued + size_bytes > MAX_QUEUED_BYTES:
            raise Conflict(
                f"at most {MAX_QUEUED_BYTES} bytes of input may wait for a program, got {size_bytes}"
                + (f", and {queued} wait already" if queued else ""),
                "send less at a time, wait for the program, or interrupt it",
            )

    def _expect_echo(self, data: bytes) -> None:
        self._pty.read_now()  # output from before the typing is not its echo
        teller = self._pty.echo_teller
        if teller is not None:
            self._watch.typed(self.engine.consumed, data, teller)

    def _reply(self, data: bytes) -> None:
        self._replies.add(data)
        if not self._intake.is_feeding:
            self._replies.flush()

    # Commands

    async def execute(self, command: str, timeout_s: float = DEFAULT_WAIT_S) -> CommandResult:
        """Run one command (of any number of lines) at the shell's prompt.

        After the time it goes on running: the result then has status "running", its output so far and an id for
        `wait_command` and `interrupt`. A shell that was started in the pane, in place of its own or far away takes
        commands, too: `end_known_by` says how well its end is known. Conflict when no shell is at its prompt.
        """
        self._check_input()
        self.mark_input()
        record = await self._execution.type(command, self.cwd, timeout_s, self._check_input)
        self.events.publish(events.LineReplaced())
        return await self._execution.result(record, timeout_s)

    def _check_input(self) -> None:
        self.admit_input()
        if not self.is_alive:
            raise Conflict(f"the shell of pane {self.id} has ended ({self.exit_code})", _REOPEN)

    async def wait_command(self, command_id: str, timeout_s: float = DEFAULT_WAIT_S) -> CommandResult:
        """Go on waiting for a command that was still running."""
        return await self._execution.result(self.commands.find(command_id), timeout_s)

    async def interrupt(self, command_id: str = "", timeout_s: float = 2.0) -> CommandResult | None:
        """^C for the command, or for whatever has the terminal; waits a little for it to end."""
        record = self.commands.find(command_id) if command_id else self.commands.current
        if record is not None and record.done.is_set():
            return self.commands.result(record)
        await self.commands.entered(ENTER_S)  # a line that is still being typed would be given up, not interrupted
        if record is None:
            self._press_interrupt()
            return None
        self._interrupting += 1
        if self._is_held:
            self._pty.resume()  # else nobody hears the shell say that the command has ended
        try:
            return await self._interrupt(record, timeout_s)
        finally:
            self._interrupting -= 1
            self._is_held = self._is_held and not record.done.is_set()
            if self._is_held and not self._interrupting:
                self._pty.pause()

    async def _interrupt(self, record: CommandRecord, timeout_s: float) -> CommandResult:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        is_starting = time.perf_counter() - record.begun_at < STARTING_S
        while True:
            group = self._pty.foreground_group
            self._press_interrupt()
            result = await self._execution.result(record, min(ANSWER_S, deadline_s - loop.time()))
            if result.status == "done" or loop.time() >= deadline_s:
                return result
            # In a hook, and between fork and exec, a shell takes ^C for its own and forgets it.
            now = self._pty.foreground_group
            has_ended = self.commands.zone == "prompt"  # ^C would only begin a slow prompt anew
            if has_ended or (now == group and not is_starting):
                return await self._execution.result(record, deadline_s - loop.time())
            is_starting = is_starting and now == self.commands.shell_pid

    def _press_interrupt(self) -> None:
        group = self._pty.foreground_group
        # The program that passes keys on to a shell far away does not want the signal itself.
        if self._pty.has_signals or not group or self.commands.is_marked:
            self._put(b"\x03")
        else:
            self.admit_input()
            self.commands.note_interrupt()
            os.killpg(group, signal.SIGINT)

    # Waiting

    async def wait_for(
        self, pattern: str, *, is_regex: bool = False, timeout_s: float = DEFAULT_WAIT_S, since: int | None = None
    ) -> ExpectResult:
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
        self._execution.shown_s = asyncio.get_running_loop().time()
        self._intake.feed(data)
        self._replies.flush()
        if _BRACKET in data and _ESC in data and b"\x1b]" in data:
            self._notice()
        if self.events:
            self.events.publish(events.OutputShown(len(data), self.engine.consumed))

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
        self.events.publish(events.PaneResized(cols, rows))

    def pause(self) -> None:
        """Stop taking output: the program waits until `resume`, but not while it is interrupted."""
        self._is_held = True
        if not self._interrupting:
            self._pty.pause()

    def resume(self) -> None:
        self._is_held = False
        self._pty.resume()

    def _exit(self, code: int) -> None:
        if self.exit_code is not None:
            return
        self._pty.finish()
        code = 128 - code if code < 0 else code  # as a shell says it of its children: 137 for SIGKILL
        self.exit_code = code
        self.commands.end(code)
        self.events.publish(events.Exited(code))
        self._exited.set()
        self._discard_sandbox()

    async def exited(self) -> int:
        """Wait for the first program to end; its exit code, 128 + N for signal N."""
        await self._exited.wait()
        return self.exit_code or 0

    async def close(self, *, force: bool = False) -> None:
        """End every process of the pane: SIGHUP, then SIGTERM, then SIGKILL. The screen stays readable.

        Without `force`, Conflict when something other than the shell at its prompt runs.
        """
        if self._is_closed:
            return
        if not force and self.is_alive and self.kind is not None and self.commands.zone == "running":
            busy = self.foreground()
            raise Conflict(f"{busy.name if busy else 'a program'} runs in pane {self.id}", "close it with force")
        self._is_closed = True
        if self._keepers is not None and self._kept is not None:
            await self._keepers.end(self._kept)
            self._exit(self._kept.exit_code if self._kept.exit_code is not None else -signal.SIGHUP)
        if self._discarding is not None:
            await self._discarding
        self._pty.close()
