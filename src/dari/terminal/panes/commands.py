"""Commands of the shells of a pane: from what they tell about them to records with exit codes and their own output.

A pane has one shell at first. One that is started inside it, or in its place, may join (`join`); one that cannot be
taught to tell anything runs single commands between two marks (`mark_next`). The innermost one is spoken to; when one
further out speaks again, those inside it have ended.
"""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dari.errors import NotFound
from dari.terminal.panes.output_text import to_stream, to_text
from dari.terminal.panes.shell_integration import ShellKind

if TYPE_CHECKING:
    from dari.terminal.engine.engine import Mark
    from dari.terminal.take_over import Typist

HEAD_BYTES = 1 << 19
TAIL_BYTES = 3 << 19
MAX_RECORDS = 200
MAX_RECORDS_BYTES = 16 << 20
INTERRUPTED = 128 + signal.SIGINT

Zone = Literal["unknown", "prompt", "input", "running"]
Status = Literal["done", "running"]
Source = Literal["shell", "mark", "idle", ""]
"""How the end of a command is known: its shell reported it, a mark behind it came, its prompt came back and nothing
more; or not at all, as yet."""
# What line editors print once a line has been entered.
_ENTERED = b"\x1b[?2004l"
# What they print before a prompt, the last of it: zsh, which may mark a missing line end first, else bash and fish.
_PROMPT = re.compile(
    rb"(?:\x1b\[1m\x1b\[7m[%#]\x1b\[27m\x1b\[1m\x1b\[0m +\r \r)?\r?\x1b\[0m\x1b\[27m\x1b\[24m\x1b\[J"
    rb"(?!.*\x1b\[0m\x1b\[27m\x1b\[24m\x1b\[J)|\x1b\[\?2004h(?!.*\x1b\[\?2004h)",
    re.DOTALL,
)
_PROMPT_BYTES = 4096


class OutputCapture:
    """The bytes of one command's output: the beginning and the end of them when there are very many."""

    __slots__ = ("_head", "_head_size", "_tail", "_tail_size", "is_truncated", "total_bytes")

    def __init__(self) -> None:
        self._head: list[bytes] = []
        self._head_size = 0
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.is_truncated = False
        self.total_bytes = 0

    def add(self, data: bytes) -> None:
        self.total_bytes += len(data)
        if self._head_size < HEAD_BYTES:
            self._head.append(data)
            self._head_size += len(data)
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) > TAIL_BYTES:
            self._tail_size -= len(self._tail.popleft())
            self.is_truncated = True

    @property
    def size_bytes(self) -> int:
        return self._head_size + self._tail_size

    @property
    def data(self) -> bytes:
        gap = b"\r\n[... output left out here ...]\r\n" if self.is_truncated else b""
        return b"".join(self._head) + gap + b"".join(self._tail)

    def since(self, offset: int) -> tuple[bytes, int]:
        """Bytes that follow the first `offset` ones, and how many were left out before them as not kept any more."""
        if offset < self._head_size:
            return b"".join(self._head)[offset:], 0
        tail_start = self.total_bytes - self._tail_size
        start = max(offset, tail_start)
        return b"".join(self._tail)[start - tail_start :], start - offset

    def clear(self) -> None:
        self._head.clear()
        self._tail.clear()
        self.is_truncated = self.is_truncated or self.size_bytes > 0
        self._head_size = self._tail_size = self.total_bytes = 0


@dataclass(slots=True)
class CommandRecord:
    """One command that was run in a pane; `ended` (of `time.time()`) and `exit_code` are None while it runs."""

    id: str
    command: str
    cwd: str
    started: float
    size: tuple[int, int]
    ended: float | None = None
    exit_code: int | None = None
    capture: OutputCapture = field(default_factory=OutputCapture)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    has_begun: bool = False
    is_given_up: bool = False
    """Somebody pressed ^C before the shell began it."""
    is_typed: bool = False
    """Somebody else than `execute` entered it, in a shell that does not say when a command begins."""
    begun_at: float = 0.0
    duration_s: float = 0.0
    mark: int = 0
    """The position of the pane's output when it was typed."""
    end_known_by: Source = ""
    kept_bytes: int | None = None
    """How much of the capture is its output, where more came before its end was known."""
    typists: tuple[Typist, ...] = ()
    place: Mark | None = None
    """Where the cursor was when it was typed, or when it began."""
    _text: str | None = None

    @property
    def output(self) -> str:
        """What it has printed so far, as text."""
        if self._text is not None:
            return self._text
        data = self.capture.data
        if self.kept_bytes is not None:
            data = data[: max(0, len(data) - (self.capture.total_bytes - self.kept_bytes))]
        if not self.has_begun:  # the shell does not tell where output begins: it is after the echo of the line
            data = data.partition(b"\n")[2]
        text = to_text(data, *self.size)
        if self.ended is not None:
            self._text = text
        return text

    @property
    def is_truncated(self) -> bool:
        return self.capture.is_truncated

    def cut_prompt(self) -> None:
        """The last output is a prompt that no shell reported: it is not part of the command's output."""
        data = self.capture.data[-_PROMPT_BYTES:]
        found = _PROMPT.search(data)
        prompt = found.start() if found else data.rfind(b"\n") + 1
        self.kept_bytes = self.capture.total_bytes - len(data) + prompt

    def keep_after_entering(self, kind: ShellKind | None) -> None:
        """The shell has said something since the line was entered, and before it began anything: a syntax error."""
        data = self.capture.data
        _, entered, said = data.rpartition(_ENTERED)
        if not entered:  # where the kernel edits lines, they end with the line
            said = data.partition(b"\n")[2] if kind in ("bash", "zsh") else b""
        self.capture.clear()
        self.capture.is_truncated = False
        if to_stream(said).strip():
            self.capture.add(said.lstrip(b"\r\n"))


class CommandResult(Struct, frozen=True):
    status: Status
    command_id: str
    exit_code: int | None
    output: str
    is_truncated: bool
    duration_s: float
    cwd: str
    end_known_by: Source = ""
    mark: int = 0


@dataclass(slots=True)
class _Shell:
    """One that speaks: its words carry its secret, and each number counts only once."""

    nonce: bytes
    kind: ShellKind | None
    pid: int = 0
    is_marked: bool = False  # not the shell itself speaks, but what was typed around one command
    number: int = 0
    outer: CommandRecord | None = None  # what was running when it joined

    @property
    def begins_by_itself(self) -> bool:
        return self.kind != "sh" or self.is_marked


class CommandLog:
    """Follows the shells of a pane through their prompts. Only words with a secret of theirs count."""

    def __init__(self, nonce: str, kind: ShellKind | None = "bash") -> None:
        self._shells = [_Shell(nonce.encode(), kind)]
        self._before: tuple[list[_Shell], CommandRecord | None] = (self._shells, None)
        self.zone: Zone = "unknown"
        self.records: deque[CommandRecord] = deque(maxlen=MAX_RECORDS)
        self.current: CommandRecord | None = None
        self.cwd = ""
        self.on_start: Callable[[CommandRecord], None] = lambda record: None
        self.on_end: Callable[[CommandRecord], None] = lambda record: None
        self.on_incomplete: Callable[[], None] = lambda: None
        """A command was entered that the shell takes for the beginning of one: it has to be given up."""
        self.on_retry: Callable[[CommandRecord], None] = lambda record: None
        """The line is empty again: the command may be typed in another form."""
        self.typed: Callable[[], str] = str
        """The line that was entered at the prompt, by anybody else than `send`."""
        self.typed_ahead: Callable[[], tuple[str, bytes]] = lambda: ("", b"")
        """For a shell that does not say when a command begins: what it may have read, and what was shown since."""
        self.wants_more = False
        """That shell waits for the rest of a line that was typed."""
        self.position: Callable[[], int] = int
        """Of the pane's output now."""
        self.place: Callable[[], Mark | None] = lambda: None
        self.typists: Callable[[], tuple[Typist, ...]] = tuple
        """Who typed the line that was entered."""
        self._retry: Literal["", "giving up", "typed"] = ""
        self._code: int | None = None
        self._count = 0
        self._size = (80, 24)
        self._kept = 0  # bytes of output in finished records
        self._ready = asyncio.Event()
        self._entered = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._has_spoken = True
        self._expiry: asyncio.TimerHandle | None = None

    @property
    def has_shell(self) -> bool:
        """Whether a shell with our hooks runs in the pane."""
        return bool(self._shells[0].nonce) or len(self._shells) > 1

    @property
    def kind(self) -> ShellKind | None:
        """Of the innermost shell; None when that is not one that we know."""
        innermost = self._shells[-1]
        if not innermost.is_marked:
            return innermost.kind
        return next((shell.kind for shell in reversed(self._shells) if not shell.is_marked), None)

    @property
    def is_ready(self) -> bool:
        """The shell waits for a command at its prompt."""
        return self.zone == "input" and self.current is None and self._expiry is None

    async def ready(self, timeout_s: float) -> bool:
        if self.is_ready:
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await self._ready.wait()
        except TimeoutError:
            return False
        return True

    def expect(self, patience_s: float) -> None:
        """Somebody pressed Enter or ^C at the prompt: nobody knows whether it is one until the shell has spoken."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(patience_s, self._settle, False)
        self._ready.clear()
        self._settled.clear()

    async def settled(self) -> bool:
        """Wait for the shell to say what became of a line that somebody entered; False when it says nothing."""
        await self._settled.wait()
        has_spoken, self._has_spoken = self._has_spoken, True
        return has_spoken

    def _settle(self, has_spoken: bool = True) -> None:
        self._has_spoken = has_spoken
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self._settled.set()
        if self.is_ready:
            self._ready.set()

    @property
    def is_entering(self) -> bool:
        """A command was typed, and the shell has not yet said that it runs it."""
        return self._shells[-1].begins_by_itself and self.zone == "input" and self.current is not None

    async def entered(self, timeout_s: float) -> None:
        """Wait until the shell has begun the command that was typed, or had nothing to run."""
        if self.is_entering:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._entered.wait()
            except TimeoutError:
                pass

    def note_interrupt(self) -> None:
        """Somebody pressed ^C."""
        if self.is_entering and self.current is not None:
            self.current.is_given_up = True

    def send(self, command: str, cwd: str, size: tuple[int, int]) -> CommandRecord:
        """A record for a command that is about to be typed at the prompt."""
        record = self._new(command, cwd, size)
        self._code = None
        self._ready.clear()
        self._entered.clear()
        return record

    def withdraw(self, record: CommandRecord) -> None:
        """It was not typed after all: the log is as it was before `send`."""
        if self.current is record:
            self.current = None
        if record in self.records:
            self.records.remove(record)
        self._entered.set()
        if self.is_ready and not self.is_marked:
            self._ready.set()

    def enter_typed(self, line: str, size: tuple[int, int]) -> None:
        """Somebody enters a line in a shell that does not say when a command begins; or the rest of one."""
        record = self.current
        if record is not None:
            self.wants_more = False
            record.command += f"\n{line}"
        elif line.strip():
            record = self._new(line.strip(), self.cwd, size)
            record.is_typed = True
            record.typists = self.typists()
            self._ready.clear()
        else:
            return
        self.on_start(record)

    def _begin_ahead(self, shell: _Shell, size: tuple[int, int]) -> None:
        """Such a shell is at its next prompt, and nothing was entered at the last one: it ran what was typed ahead."""
        if shell.begins_by_itself or self.zone != "input" or self.current is not None:
            return
        lines, shown = self.typed_ahead()
        if lines:
            record = self._new(lines, self.cwd, size)
            record.has_begun = record.is_typed = True
            record.typists = self.typists()
            record.capture.add(shown)
            self.on_start(record)

    def _new(self, command: str, cwd: str, size: tuple[int, int]) -> CommandRecord:
        self._count += 1
        record = CommandRecord(f"cmd-{self._count}", command, cwd, time.time(), size)
        record.begun_at = time.perf_counter()
        record.mark = self.position()
        record.place = self.place()
        self.current = record
        if len(self.records) == MAX_RECORDS:
            self._kept -= self.records[0].capture.size_bytes
        self.records.append(record)
        return record

    def hear(self, payload: bytes, size: tuple[int, int]) -> None:
        """A word of a shell: `<secret>;<letter>[;<number>[;<exit code>;<directory>]]`."""
        self._size = size
        words = payload.split(b";", 4)
        shell = next((each for each in self._shells if each.nonce and each.nonce == words[0]), None)
        if shell is None or len(words) < 2:
            return
        letter = words[1]
        if letter == b"B":
            if shell is self._shells[-1]:
                self._prompted()
        elif letter == b"C" and len(words) > 2 and words[2] == b"%d" % shell.number:
            if shell is self._shells[-1]:
                self._began(size)
        elif letter == b"P":
            if shell is self._shells[-1]:
                self._needs_more()
        elif letter == b"D" and len(words) > 4 and words[2].isdigit() and int(words[2]) > shell.number:
            shell.number = int(words[2])
            code = _number(words[3])
            self._leave_inner(shell, code)
            self._begin_ahead(shell, size)
            self.cwd = words[4].decode(errors="replace")
            if shell.is_marked:
                self.finish(code, "mark")
                self.drop_mark()
            else:
                self._code = code
                self.zone = "prompt"

    @property
    def shell_pid(self) -> int:
        """Of the innermost shell that speaks."""
        return next((shell.pid for shell in reversed(self._shells) if not shell.is_marked), 0)

    def start(self, pid: int) -> None:
        """The pane's own shell runs as this process."""
        self._shells[0].pid = pid

    def join(self, nonce: str, kind: ShellKind, pid: int) -> None:
        """Another shell will speak from now on: inside the ones that spoke so far, or as the same process as one."""
        self._before = [replace(shell) for shell in self._shells], self.current
        same = next((shell for shell in self._shells if shell.pid == pid and not shell.is_marked), None)
        if same is not None:
            self._leave_inner(same, None)
            same.nonce, same.kind, same.number = nonce.encode(), kind, 0
        else:
            self._shells.append(_Shell(nonce.encode(), kind, pid, outer=self.current))
            self.current = None
        self._code = None
        self.zone = "running"
        self._settle()
        self._ready.clear()

    def unjoin(self) -> None:
        """It did not speak: everything is as it was before `join`."""
        self._shells, self.current = self._before
        self.zone = "running"

    def mark_next(self, nonce: str) -> None:
        """The next command runs between two marks with this secret, in a shell that tells nothing itself."""
        self._shells.append(_Shell(nonce.encode(), None, is_marked=True, outer=self.current))
        self.current = None
        self.zone = "input"

    def drop_mark(self) -> None:
        """What was running around the marked command goes on."""
        if self._shells[-1].is_marked:
            self.current = self._shells.pop().outer
            self.zone = "running" if self._shells[0].nonce else "unknown"

    @property
    def is_marked(self) -> bool:
        return self._shells[-1].is_marked

    def _leave_inner(self, shell: _Shell, code: int | None) -> None:
        """A shell further out speaks: those inside it have ended, and with them what they ran."""
        while self._shells[-1] is not shell:
            self.finish(code, "shell")
            self.current = self._shells.pop().outer

    @property
    def is_giving_up(self) -> bool:
        """A line that is not whole is to be given up, and the shell has not said yet that it is."""
        return self._retry == "giving up"

    def _needs_more(self) -> None:
        record = self.current
        if record is None or record.has_begun or self.zone != "input" or self._retry:
            return
        if record.is_typed:  # the one who typed it types on
            self.wants_more = True
        elif self.kind == "fish":  # it has emptied its line
            self._retry = "typed"
            self.on_retry(record)
        else:
            self._retry = "giving up"
            self.on_incomplete()

    def _began(self, size: tuple[int, int]) -> None:
        self.zone = "running"
        self._settle()
        self._ready.clear()
        self._entered.set()
        record = self.current
        if record is None:
            record = self._new(self.typed(), self.cwd, size)
        record.typists = record.typists or self.typists()
        if not record.has_begun:  # a pasted text of several lines begins with each of them
            record.has_begun = True
            record.keep_after_entering(self._shells[-1].kind)
            record.begun_at = time.perf_counter()
            self.on_start(record)

    def _prompted(self) -> None:
        if self.zone == "input" and (self.current is None or self._code is None):
            return  # the prompt was drawn again
        if self.zone == "running":
            return  # a prompt without a word about the command before it: drawn by something else
        self.zone = "input"
        self._settle()
        if self._retry == "giving up" and self.current is not None:
            self._retry, self._code = "typed", None
            self.on_retry(self.current)
            if self.current is not None:
                return
        if self.current is not None and self._code is not None:
            self.finish(self._code)
        self._ready.set()

    def finish(self, code: int | None, known_by: Source = "shell") -> None:
        """The current command ended; also when its shell did."""
        self._settle()
        self._retry = ""
        self.wants_more = False
        self.typists()  # what was typed so far was for the command that ended
        record, self.current = self.current, None
        if record is None:
            return
        if not record.has_begun and self._shells[-1].begins_by_itself and record.kept_bytes is None:
            # Nothing was run: a comment, an empty line, a syntax error.
            record.keep_after_entering(self._shells[-1].kind)
            record.has_begun = True
            if record.is_given_up:  # zsh tells the exit code of the command before it
                code = INTERRUPTED
        record.end_known_by = known_by
        record.exit_code = code
        record.ended = time.time()
        record.duration_s = time.perf_counter() - record.begun_at
        self._forget_old(record.capture.size_bytes)
        self.on_end(record)
        record.done.set()
        self._entered.set()

    def end(self, code: int) -> None:
        """The pane's own shell ended, and everything in it."""
        self._leave_inner(self._shells[0], code)
        self._begin_ahead(self._shells[0], self._size)
        self.finish(code)

    def find(self, command_id: str) -> CommandRecord:
        for record in reversed(self.records):  # mostly the last one is asked for
            if record.id == command_id:
                return record
        raise NotFound(f"this pane has no command {command_id}", "use the command_id that execute returned")

    def result(self, record: CommandRecord) -> CommandResult:
        is_done = record.done.is_set()
        return CommandResult(
            status="done" if is_done else "running",
            command_id=record.id,
            exit_code=record.exit_code,
            output=record.output,
            is_truncated=record.is_truncated,
            duration_s=record.duration_s if is_done else time.perf_counter() - record.begun_at,
            cwd=(self.cwd or record.cwd) if is_done else record.cwd,
            end_known_by=record.end_known_by,
            mark=record.mark,
        )

    def _forget_old(self, added: int) -> None:
        self._kept += added
        for record in self.records if self._kept > MAX_RECORDS_BYTES else ():
            if record.done.is_set() and record.capture.size_bytes:
                self._kept -= record.capture.size_bytes
                record.capture.clear()
                record._text = ""
            if self._kept <= MAX_RECORDS_BYTES:
                break


def _number(word: bytes) -> int | None:
    try:
        return int(word)
    except ValueError:
        return None
