"""The terminal of a command: stdout, stderr, stdin, and the properties of the screen.

`out` is the result and nothing else; `err` is everything that a person or a log reads. A console prints text as it is:
what a server or a file of somebody else said passes `dari.text.sanitize` first. `Output` prints a result for a person
or, with `--json`, for a script. Nothing is imported here that a command may not need: `crux` starts in milliseconds.
"""

from __future__ import annotations

import os
import sys

from dari.errors import DariError, InvalidInput

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any, BinaryIO, Protocol, TextIO

    from msgspec import Raw
else:
    Protocol = object

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_READ_BYTES = 1 << 16
STDOUT_NAME = "standard output"
"""The `filename` of an error of `write_text`."""


class Console(Protocol):
    """Implemented here over this process's streams, and by the hub over its socket."""

    columns: int
    stdin_is_tty: bool
    stdout_is_tty: bool
    stderr_is_tty: bool
    colour: bool
    """The person's environment takes colours (no NO_COLOR, no dumb TERM); a stream takes them if it is a tty too."""

    def out(self, text: str) -> None:
        """Write to stdout. Bytes that are not UTF-8 come as lone surrogates (`surrogateescape`) and go out again."""

    def err(self, text: str) -> None:
        """Write to stderr."""

    async def read_stdin(self) -> bytes:
        """Everything up to the end of stdin."""

    async def ask(self, prompt: str, *, secret: bool = False) -> str:
        """One line from the person, without its end; empty also at the end of input. InvalidInput without a tty."""

    async def drain(self) -> None:
        """Return when what was written so far is on its way."""


class ProcessConsole:
    """This process's own stdin, stdout and stderr. When the reader has left, the rest is dropped."""

    def __init__(self) -> None:
        self.stdin_is_tty = _is_tty(sys.stdin)
        self.stdout_is_tty = _is_tty(sys.stdout)
        self.stderr_is_tty = _is_tty(sys.stderr)
        self.columns = terminal_columns()
        self.colour = takes_colour(os.environ)

    def out(self, text: str) -> None:
        _write(sys.stdout, text)

    def err(self, text: str) -> None:
        _write(sys.stderr, text)

    async def read_stdin(self) -> bytes:
        import asyncio
        import threading

        loop = asyncio.get_running_loop()
        done: asyncio.Future[bytes] = loop.create_future()

        def finish(data: bytes) -> None:
            if not done.done():
                done.set_result(data)

        def read() -> None:
            pieces: list[bytes] = []
            try:
                while piece := os.read(0, _READ_BYTES):
                    pieces.append(piece)
            except OSError:
                pass  # stdin is closed: there is nothing to read
            try:
                loop.call_soon_threadsafe(finish, b"".join(pieces))
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

        # Not the loop's executor: a Ctrl-C must not wait for a read that never ends.
        threading.Thread(target=read, daemon=True).start()
        return await done

    async def ask(self, prompt: str, *, secret: bool = False) -> str:
        if not self.stdin_is_tty:
            raise InvalidInput("a question needs a person, and stdin is not a terminal", "run it in a terminal")
        import asyncio

        loop = asyncio.get_running_loop()
        done: asyncio.Future[bytes] = loop.create_future()

        def read() -> None:
            # A terminal hands over whole lines, so one read is one answer.
            try:
                data = os.read(0, _READ_BYTES)
            except OSError:
                data = b""
            if not done.done():
                done.set_result(data)

        loop.add_reader(0, read)
        try:
            with _echo_off(secret):
                self.err(prompt)  # after the echo is off: some people type fast
                line = await done
        finally:
            loop.remove_reader(0)
            if secret:
                self.err("\n")
        return line.decode("utf-8", "replace").rstrip("\r\n")

    async def drain(self) -> None:
        """Every write was flushed already."""


class QuietConsole:
    """Writes where another console writes, reports no stream as a screen, and asks nobody.

    For commands that do several things at once: no progress lines, no questions.
    """

    stdin_is_tty = stdout_is_tty = stderr_is_tty = False
    colour = False

    def __init__(self, console: Console) -> None:
        self._console = console
        self.columns = console.columns

    def out(self, text: str) -> None:
        self._console.out(text)

    def err(self, text: str) -> None:
        self._console.err(text)

    async def read_stdin(self) -> bytes:
        return b""

    async def ask(self, prompt: str, *, secret: bool = False) -> str:
        raise InvalidInput("a call cannot ask a person while several calls run", "run that call alone")

    async def drain(self) -> None:
        await self._console.drain()


class Output:
    """What a command prints: one JSON value for a script (`as_json`) or lines for a person; all else on stderr.

    `rewrite` puts messages and hints into the words of the program, see `dari.cli.kit.hints`.
    """

    def __init__(
        self, *, as_json: bool = False, console: Console | None = None, rewrite: Callable[[str], str] = str
    ) -> None:
        self.as_json = as_json
        self.console = ProcessConsole() if console is None else console
        self.rewrite = rewrite

    def show(self, payload: object, lines: Iterable[str] = ()) -> None:
        """The result: the payload for a script, the lines for a person."""
        if self.as_json:
            self.json(payload)
        else:
            self.text(*lines)

    def json(self, payload: object) -> None:
        self.write(encode_json(payload) + "\n")

    def text(self, *lines: str) -> None:
        self.write("".join(f"{line}\n" for line in lines))

    def write(self, text: str) -> None:
        """Text for stdout as it is."""
        self.console.out(text)

    def note(self, *lines: str) -> None:
        for line in lines:
            self.console.err(f"{line}\n")

    def warn(self, text: str, hint: str = "") -> None:
        print_warning(self.console, self.rewrite(text), self.rewrite(hint))

    def error(self, error: DariError) -> None:
        """`error:` and `hint:` lines, or for a script one JSON object with both."""
        message, hint = self.rewrite(error.message), self.rewrite(error.hint)
        if self.as_json:
            body = {"code": error.code, "name": error.name, "message": message, "hint": hint}
            self.note(encode_json({"error": body}))
        else:
            print_error(self.console, message, hint)

    def paint(self, text: str, style: str) -> str:
        """For stdout: coloured where it is a screen that takes colours."""
        return paint(text, style, self.console)

    @property
    def is_coloured(self) -> bool:
        return self.console.colour and self.console.stdout_is_tty

    @property
    def width(self) -> int | None:
        """Columns of the screen; None when stdout is none and nothing needs to be cut."""
        return self.console.columns if self.console.stdout_is_tty else None


def paint(text: str, style: str, console: Console) -> str:
    """Text for stdout, coloured where that is a screen that takes colours."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if style and console.colour and console.stdout_is_tty else text


def paint_err(text: str, style: str, console: Console) -> str:
    """Text for stderr, coloured where that is a screen that takes colours."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if style and console.colour and console.stderr_is_tty else text


def print_error(console: Console, message: str, hint: str = "") -> None:
    """The fact, then the next step, on stderr."""
    _print_labelled(console, "error:", "red", message)
    if hint:
        _print_labelled(console, "hint:", "cyan", hint)


def print_warning(console: Console, message: str, hint: str = "") -> None:
    _print_labelled(console, "warning:", "yellow", message)
    if hint:
        _print_labelled(console, "hint:", "cyan", hint)


def print_lines(console: Console, lines: Iterable[str]) -> None:
    console.out("".join(f"{line}\n" for line in lines))


def print_raw(console: Console, payload: bytes | Raw) -> None:
    """The payload exactly as it came, and a line end. A screen gets JSON with nothing in it that a terminal obeys."""
    text = bytes(payload).decode("utf-8", "surrogateescape")
    console.out((escape_json(text) if console.stdout_is_tty else text) + "\n")


def print_json(console: Console, payload: Any) -> None:
    """The payload over several lines. A `Raw` keeps its members, order and digits."""
    import msgspec

    data = bytes(payload) if isinstance(payload, msgspec.Raw) else msgspec.json.encode(payload)
    try:
        data = msgspec.json.format(data, indent=2)
    except msgspec.DecodeError:
        pass  # the server sent something that is not JSON: it is printed as it was sent
    print_raw(console, data)


def encode_json(payload: object) -> str:
    """One line of JSON; plain data needs no msgspec, which costs a small command 10 ms."""
    try:
        import json

        return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    except TypeError:
        import msgspec

        return msgspec.json.encode(payload).decode()


def format_json(value: Any) -> str:
    """A JSON value over several lines, harmless on a terminal."""
    import msgspec

    return escape_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def escape_json(text: str) -> str:
    """JSON of the same value with nothing in it that a terminal obeys or does not show: it is written as `\\u…`."""
    import re

    from dari.text.invisible import find_hidden

    # Inside a JSON string control characters are escapes already; outside of one they are blanks.
    text = re.sub(r"[\x00-\x08\x0b-\x1f]", " ", text)
    pieces: list[str] = []
    done = 0
    for hidden in find_hidden(text):
        run = text[hidden.start : hidden.start + hidden.count]
        pieces += (text[done : hidden.start], "".join(map(_escape_character, run)))
        done = hidden.start + hidden.count
    return "".join((*pieces, text[done:]))


def terminal_columns() -> int:
    """How wide the person's screen is: COLUMNS, what a terminal among our descriptors says, or 80."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and given != "0":
        return int(given)
    for descriptor in (1, 2, 0):
        try:
            return os.get_terminal_size(descriptor).columns or 80
        except OSError:
            continue
    return 80


def takes_colour(environ: Any) -> bool:
    """Whether a person with this environment wants colours on a screen."""
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def as_bytes(text: str) -> bytes:
    """What goes out for `text`: escaped bytes as they came, any other half of a pair written as an escape."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def _print_labelled(console: Console, label: str, style: str, text: str) -> None:
    from dari.text.sanitize import escape_hidden

    console.err(f"{paint_err(label, style, console)} {escape_hidden(text)}\n")


def _echo_off(secret: bool) -> AbstractContextManager[None]:
    """Nothing of what is typed shows on the screen."""
    from contextlib import contextmanager, nullcontext

    if not secret or sys.platform == "win32":
        return nullcontext()
    import termios

    @contextmanager
    def hidden() -> Iterator[None]:
        before = termios.tcgetattr(0)
        silent = termios.tcgetattr(0)
        silent[3] &= ~termios.ECHO
        termios.tcsetattr(0, termios.TCSADRAIN, silent)
        try:
            yield
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, before)

    return hidden()


def _is_tty(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False  # closed


def write_text(stream: TextIO, text: str, encoding: str = "") -> None:
    """Write and flush, in UTF-8 or an `encoding` that escapes what it lacks. BrokenPipeError when the reader has left;
    another failure names the stream, and what is still in the buffer is dropped: it would fail again at the end."""
    try:
        binary: BinaryIO | None = getattr(stream, "buffer", None)
        if binary is None:
            stream.write(text)
        else:
            stream.flush()
            binary.write(text.encode(encoding, "backslashreplace") if encoding else as_bytes(text))
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard(stream)
        error.filename = error.filename or (STDOUT_NAME if stream is sys.stdout else "standard error")
        raise


def _write(stream: TextIO, text: str) -> None:
    try:
        write_text(stream, text)
    except BrokenPipeError:
        _discard(stream)
    except OSError:
        if stream is sys.stdout:
            raise  # a message that stderr does not take changes nothing of what the command did


def _discard(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _escape_character(character: str) -> str:
    code = ord(character)
    if 0x20 <= code < 0x7F:
        return character  # a run can reach over the quotes and braces of the JSON itself
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
