"""Running a command at a prompt, in any shell: step by step from a shell that reports everything to one that reports
nothing.

shell   its hooks tell where the command begins and ends; a shell that has none is taught them first
mark    marks around the command tell the same, wherever that shell is
idle    the prompt came back: no exit code
""  the time was over first: the command goes on, under its id
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from dari.errors import Conflict, InvalidInput
from dari.terminal.engine.engine import Engine
from dari.terminal.engine.input_encoding import PASTE_CONTROLS
from dari.terminal.panes.commands import CommandLog, CommandRecord, CommandResult
from dari.terminal.panes.output_router import Replies
from dari.terminal.panes.prompt_line import PromptLine
from dari.terminal.panes.prompts import FoundPrompt, find_prompt, waits_for_keys
from dari.terminal.panes.pty import ProcessInfo, Pty
from dari.terminal.panes.shell_integration import NUMBER, ShellKind, join_script, quote

MAX_COMMAND_BYTES = 1_000_000
# The kernel's line editor keeps this much of a line and drops the rest.
LINE_BYTES = 4000
FISH_ENTER = b"\x1b[7702~"
"""Enter in a fish with our hooks, which says so when the line is not a whole command."""
# A line of words alone cannot be taken for the beginning of something longer, unless the first of them is reserved.
_WORDS = re.compile(
    r"(?!(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|function|select|time|in|coproc)\b)"
    r"[A-Za-z0-9_./~:=,@%+-][A-Za-z0-9_./~:=,@%+ -]*"
)


def type_command(command: str, kind: ShellKind, engine: Engine) -> bytes:
    """Return included. Several lines go in as one paste, or as one line where the shell knows no pastes."""
    text = check_command(command)
    if kind == "fish" and "\t" in text:  # its line editor drops tabs, also those of a paste
        text = f"eval {_quote_tabs(text)}"
    typed = engine.encode_paste(text)
    if kind != "sh" and typed.startswith(b"\x1b[200~"):
        return typed + (FISH_ENTER if kind == "fish" else b"\r")
    if _needs_one_line(text) or (kind == "sh" and not _WORDS.fullmatch(text)):
        if kind == "fish":
            raise InvalidInput(
                "this fish has no bracketed paste, so a command must be one line", "join the lines with ;"
            )
        # A shell without a line editor shows no prompt for the rest of a line that is not whole: it waits in silence.
        typed = engine.encode_paste(as_one_line(text) if _needs_one_line(text) else f"eval {quote(text, kind)}")
    if kind == "sh":
        _check_length(typed)
        return typed + b"\n"  # the kernel may make no line end of ^M: a program left the terminal raw
    return typed + b"\r"


def type_whole(command: str, kind: ShellKind, engine: Engine) -> bytes:
    """The same as one whole word for `eval`: the shell says what is wrong with it, and does not wait for more."""
    text = f"eval {quote(check_command(command), kind)}"
    if _needs_one_line(text) and kind != "fish" and not engine.encode_paste(text).startswith(b"\x1b[200~"):
        text = as_one_line(check_command(command))
    return engine.encode_paste(text) + b"\r"


def type_marked(command: str, nonce: str, engine: Engine) -> bytes:
    """Between two marks, for a POSIX shell of which nothing is known; one line, for it may not know pastes."""
    text = check_command(command)
    run = as_one_line(text) if _needs_one_line(text) else f"eval {quote(text, 'sh')}"
    begin = f"printf '\\033]{NUMBER};{nonce};C;0\\007'"
    typed = engine.encode_paste(f" {begin}; {run}; {_end_mark(nonce)}")
    _check_length(typed)
    return typed + b"\r"


def type_end_mark(nonce: str) -> bytes:
    """For a command that ended without its mark: a syntax error gives the whole line up in some shells."""
    return f" {_end_mark(nonce)}\r".encode()


def as_one_line(text: str) -> str:
    """The same command for a POSIX shell, without line ends and tabs in it."""
    quoted = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("'", "'\\''")
    return f"eval \"$(printf '%b' '{quoted}')\""


def _needs_one_line(text: str) -> bool:
    """Outside of a paste a line end enters what is typed so far, and a tab completes it to something else."""
    return "\n" in text or "\t" in text


def _quote_tabs(text: str) -> str:
    """One word of fish, its tabs written as escapes."""
    return quote(text, "fish").replace("\t", "'\\t'")


def _end_mark(nonce: str) -> str:
    return f'printf \'\\033]{NUMBER};{nonce};D;1;%s;%s\\007\' "$?" "$PWD"'


def check_command(command: str) -> str:
    """The lines that are typed; InvalidInput when they cannot be, so that nothing is left out of a judged command."""
    text = command.replace("\r\n", "\n").replace("\r", "\n").strip("\n")  # a return is Enter to every shell
    if control := PASTE_CONTROLS.search(text):
        raise InvalidInput(
            f"a command cannot hold the control character {control[0]!r}",
            r"take it out, or write it as an escape, such as $'\x1b'; crux_send_keys presses keys",
        )
    size_bytes = len(text.encode(errors="replace"))
    if size_bytes > MAX_COMMAND_BYTES:
        raise InvalidInput(
            f"a command may have at most {MAX_COMMAND_BYTES} bytes, got {size_bytes}", "put it in a file and run that"
        )
    return text


def _check_length(typed: bytes) -> None:
    if len(typed) > LINE_BYTES:
        raise InvalidInput(
            f"this shell reads lines of at most {LINE_BYTES} bytes, the command has {len(typed)}",
            "put it in a file and run that, or use bash, zsh or fish",
        )


PROMPT_S = 10.0
BUSY_S = 0.5
ANSWER_S, INTERRUPTS = 0.5, 3
"""A shell speaks of a line that was entered, or of ^C, within this; one that does not has nothing to say."""
DRAWN_S = 0.02
LOOK_S = 0.25
"""How often to look for a prompt that no shell reports."""
QUIET_S, SETTLE_S = 0.15, 0.5
"""A prompt counts when nothing was shown for the one and nothing typed for the other: a busy machine is slow."""
JOIN_S = 3.0
BEGIN_S = 1.0
"""A shell that knows our marks shows the first of them within this."""
_HINT = (
    "wait for it with crux_wait_command, end it with crux_interrupt_command, answer it with crux_send_keys, "
    "or take another pane"
)


class Put(Protocol):
    def __call__(self, data: bytes, *, is_command: bool = False, is_again: bool = False) -> None: ...


class Execution:
    """Of one pane. `shown_s` says when it last showed something."""

    def __init__(
        self,
        pane_id: str,
        pty: Pty,
        engine: Engine,
        log: CommandLog,
        line: PromptLine,
        replies: Replies,
        *,
        put: Put,
        foreground: Callable[[], ProcessInfo | None],
        control: str,
    ) -> None:
        self._pty, self._engine, self._log, self._line, self._replies = pty, engine, log, line, replies
        self._pane_id = pane_id
        self._put = put
        self._foreground = foreground
        self._control = control
        self._turn = asyncio.Lock()
        self.may_type = asyncio.Event()
        """Not set while a command is about to be typed: what is sent from now on comes after it."""
        self.may_type.set()
        self._nonce = ""
        self._typed_s = self.shown_s = -SETTLE_S
        log.on_incomplete = self._give_up
        log.on_retry = self._retry

    async def type(
        self, command: str, cwd: Callable[[], str], timeout_s: float, check: Callable[[], None]
    ) -> CommandRecord:
        """Enter the command at the prompt; Conflict when there is none. `check` raises once nothing may be typed."""
        log = self._log
        async with self._turn:
            found = await self._await_prompt(timeout_s, check)
            size = (self._engine.cols, self._engine.rows)
            if found is not None:
                return self._type_far(command, found, cwd(), size)
            assert log.kind is not None
            typed = type_command(command, log.kind, self._engine)
            clearing = self._line.clearing()
            if self._replies.has_answered_command:
                self._replies.has_answered_command, clearing = False, self._line.emptying
            record = log.send(command, log.cwd or cwd(), size)
            record.has_begun = log.kind == "sh" and not self._pty.has_echo  # no line of its own comes before its output
            self._type(clearing + typed, record)
            return record

    def _type(self, data: bytes, record: CommandRecord) -> None:
        """What is refused here was never typed: the pane takes the next command."""
        typed_s, self._typed_s = self._typed_s, asyncio.get_running_loop().time()
        try:
            self._put(data, is_command=True)
        except BaseException:
            self._typed_s = typed_s
            self._line.is_begun = True  # what stands on the line was not taken off it
            self._log.withdraw(record)
            raise

    async def result(self, record: CommandRecord, timeout_s: float) -> CommandResult:
        """Of a command that was typed; "running" when the time is over, or when it is a shell that waits itself."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        while not record.done.is_set():
            left_s = deadline_s - loop.time()
            try:
                async with asyncio.timeout(max(0.0, min(left_s, LOOK_S))):
                    await record.done.wait()
            except TimeoutError:
                if left_s <= LOOK_S or not await self._look(record):
                    break
        return self._log.result(record)

    # At a prompt of our own

    async def _await_prompt(self, timeout_s: float, check: Callable[[], None]) -> FoundPrompt | None:
        """None once the shell that speaks is at its prompt; else a prompt of another one."""
        log, line = self._log, self._line
        has_spoken = await log.settled()
        for _ in range(INTERRUPTS if line.is_interrupted and not has_spoken else 0):
            # bash may keep the line when ^C comes while it draws its prompt, and gives it up in the middle of the next.
            self._pty.send(b"\x03")
            log.expect(ANSWER_S)
            if has_spoken := await log.settled():
                break
        line.is_begun = line.is_begun or not has_spoken
        # Two short commands at once run one after the other; a long one is reported at once. The start of a shell
        # that was only just opened is not the command's time, nor is the drawing of its prompt.
        patience_s = min(timeout_s, BUSY_S if log.zone == "running" else PROMPT_S)
        if log.zone in ("unknown", "prompt"):
            patience_s = PROMPT_S if log.has_shell else BUSY_S
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        deadline_s = begun_s + patience_s
        while not log.is_ready or line.has_lines_ahead:
            if log.is_ready:
                await self._await_lines_ahead(begun_s + min(timeout_s, PROMPT_S))
                deadline_s = loop.time() + patience_s  # a line that was typed ahead is a command with a time of its own
                continue
            check()
            found = self._find()
            if found is not None and not self._is_quiet:
                await asyncio.sleep(QUIET_S)
                continue
            if found is not None and found.way != "join":
                return found
            if found is not None and not await self._join(found):
                return FoundPrompt("idle" if found.kind == "fish" else "mark", found.kind, found.pid)
            if not await log.ready(max(0.0, min(LOOK_S, deadline_s - loop.time()))) and loop.time() >= deadline_s:
                check()
                self._refuse()
        return None

    async def _await_lines_ahead(self, until_s: float) -> None:
        """At its prompt the shell may still read what was typed ahead: what is typed now would come behind it. Conflict
        when it has not read that until then."""
        loop = asyncio.get_running_loop()
        quiet_s = loop.time() + ANSWER_S
        self.may_type.clear()
        try:
            while self._log.is_ready:
                is_unread = self._pty.has_unread_input
                if loop.time() >= (max(until_s, quiet_s) if is_unread else quiet_s):
                    if is_unread:
                        self._refuse()
                    break
                has_read_all = not is_unread and waits_for_keys(self._log.shell_pid)
                if has_read_all and loop.time() - self.shown_s >= DRAWN_S:
                    break
                await asyncio.sleep(DRAWN_S)  # the kernel hands on what the shell has said a moment later
                if has_read_all:
                    break
            self._line.has_lines_ahead = not self._log.is_ready
        finally:
            self.may_type.set()

    def _refuse(self) -> None:
        busy, running = self._foreground(), self._log.current
        what = f" (command {self._pane_id}:{running.id}, {running.command[:80]})" if running is not None else ""
        name = busy.name if busy is not None else "a program"
        if self._log.kind is None:
            raise Conflict(f"pane {self._pane_id} runs {name}, and no shell shows its prompt", "send_keys and wait_for")
        raise Conflict(f"pane {self._pane_id} is busy: {name} has the terminal{what}", _HINT)

    def _give_up(self, tries: int = INTERRUPTS) -> None:
        """^C once the prompt for more is drawn, and again where it was lost in the drawing."""

        def press() -> None:
            if self._log.is_giving_up and self._pty.is_open:
                self._pty.send(b"\x03")
                if tries:
                    asyncio.get_running_loop().call_later(ANSWER_S, self._give_up, tries - 1)

        asyncio.get_running_loop().call_later(DRAWN_S, press)

    def _retry(self, record: CommandRecord) -> None:
        assert self._log.kind is not None
        try:
            self._put(type_whole(record.command, self._log.kind, self._engine), is_command=True, is_again=True)
        except (Conflict, InvalidInput):  # quoted, it is too long: its line was given up, and nothing runs
            self._log.finish(None, "idle")

    # At a prompt that no shell reports

    def _find(self) -> FoundPrompt | None:
        pty = self._pty
        if not pty.is_open or (self._log.is_entering and not self._log.is_marked):
            return None
        pty.read_now()  # what the shell has said already counts
        if self._log.is_ready:
            return None
        running = self._log.current
        return find_prompt(
            self._foreground(),
            self._engine,
            is_canonical=pty.is_canonical,
            has_echo=pty.has_echo,
            may_read=running is not None and "read" in running.command,
        )

    @property
    def _is_quiet(self) -> bool:
        now_s = asyncio.get_running_loop().time()
        return now_s - self.shown_s >= QUIET_S and now_s - self._typed_s >= SETTLE_S

    async def _look(self, record: CommandRecord) -> bool:
        """Whether it is worth while to wait on for the end of this command."""
        log = self._log
        if record is not log.current or self._turn.locked() or not self._is_quiet:
            return True
        found = self._find()
        if found is None:
            return True
        async with self._turn:
            if log.is_marked:
                self._look_for_mark(record)
            elif log.is_entering:
                return True
            elif found.pid == log.shell_pid and found.way == "join":
                await self._join(found)  # it has ended, and took the hooks of its shell along
            else:
                return False
        return True

    def _look_for_mark(self, record: CommandRecord) -> None:
        """The prompt is back."""
        waited_s = asyncio.get_running_loop().time() - self._typed_s
        if record.has_begun and self._nonce:
            record.cut_prompt()
            self._put(type_end_mark(self._nonce), is_command=True)
            self._nonce = ""
        elif waited_s >= BEGIN_S:
            record.cut_prompt()
            self._log.finish(None, "idle")
            self._log.drop_mark()

    def _type_far(self, command: str, found: FoundPrompt, cwd: str, size: tuple[int, int]) -> CommandRecord:
        log = self._log
        self._nonce = secrets.token_hex(16)
        if found.way == "idle":
            typed = self._engine.encode_paste(check_command(command)) + b"\r"
        else:
            typed = type_marked(command, self._nonce, self._engine)
        log.mark_next(self._nonce)
        record = log.send(command, cwd, size)
        try:
            self._type(self._line.emptying + typed, record)
        except BaseException:
            log.drop_mark()
            raise
        return record

    async def _join(self, found: FoundPrompt) -> bool:
        """Teach a shell of this machine to tell about its commands; False when it did not learn."""
        assert found.kind is not None
        log, nonce = self._log, secrets.token_hex(16)
        with self._script(join_script(found.kind, nonce, self._control)) as path:
            if found.pid == log.shell_pid and log.current is not None:
                log.current.cut_prompt()
            log.join(nonce, found.kind, found.pid)
            word = "source" if found.kind == "fish" else "."
            try:
                self._put(self._line.emptying + f" {word} {quote(path, found.kind)}\r".encode(), is_command=True)
            except BaseException:
                log.unjoin()
                raise
            if await log.ready(JOIN_S):
                return True
        log.unjoin()
        return False

    @contextmanager
    def _script(self, text: str) -> Iterator[str]:
        """A file that only we, and shells that are ours, can read: the secret in it is not shown on the screen."""
        with tempfile.TemporaryDirectory(prefix="crux-") as folder:
            path = os.path.join(folder, "join")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(text)
            yield path
