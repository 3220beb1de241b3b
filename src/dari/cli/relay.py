"""One command at the daemon, on our side: its bytes go to our descriptors, ours to it, and Ctrl-C is passed on.

Everything is `os.read` and `os.write`: nothing is buffered, so nothing has to be flushed at the end.
"""

import os
from _signal import SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]
from _socket import socket

from dari.bridge.cli_socket import protocol
from dari.bridge.cli_socket.client import CliSocketRefused, send_handshake

NETWORK, INTERRUPTED = 2, 4
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class NotBegun(Exception):
    """The daemon went away before it had begun: nothing has happened, so another one can be asked."""


class Relay:
    """One command at the daemon: its output goes to our descriptors, our stdin to it when it asks."""

    def __init__(self, sock: socket, program: str) -> None:
        self._sock = sock
        self._program = program
        self._interrupts = 0
        self._is_sending = False
        self._sends_stdin = False
        self._answer: bytearray | None = None
        self._hidden: list[object] | None = None

    def run(self, run_dir: str, argv: list[str], *, stays: bool = False) -> int:
        send_handshake(
            self._sock,
            run_dir,
            "cli",
            program=self._program,
            argv=argv,
            cwd=_cwd(),
            env=dict(os.environ),
            stays=stays,
            tty={"stdin": os.isatty(0), "stdout": os.isatty(1), "stderr": os.isatty(2), "columns": columns()},
        )
        # A shell that ignores Ctrl-C on our behalf (`nohup`, `&` in a script) means it.
        is_ours = getsignal(SIGINT) is default_int_handler
        if is_ours:
            signal(SIGINT, self._interrupt)
        try:
            return self._relay()
        except BrokenPipeError:
            return 0  # whoever read our output has seen enough
        finally:
            self._show_typing()
            if is_ours:
                signal(SIGINT, default_int_handler)

    def _relay(self) -> int:
        heard = b""
        has_begun = False
        left, descriptor = 0, _STDOUT
        while True:
            part = self._receive()
            if not part:
                if not has_begun and not self._interrupts:
                    raise NotBegun
                return self._lost()
            heard = heard + part if heard else part
            at, size = 0, len(heard)
            while True:
                if left:  # output is passed on as it comes
                    taken = min(left, size - at)
                    if not taken:
                        break
                    _write(descriptor, memoryview(heard)[at : at + taken])
                    at += taken
                    left -= taken
                    continue
                if size - at < protocol.HEADER_BYTES:
                    break
                kind = heard[at : at + 1]
                length = int.from_bytes(heard[at + 1 : at + protocol.HEADER_BYTES], "big")
                if kind == protocol.OUT or kind == protocol.ERR:
                    at += protocol.HEADER_BYTES
                    left, descriptor = length, _STDOUT if kind == protocol.OUT else _STDERR
                    continue
                end = at + protocol.HEADER_BYTES + length
                if size < end:
                    break
                payload = heard[at + protocol.HEADER_BYTES : end]
                at = end
                if kind == protocol.EXIT:
                    return payload[0]
                if kind == protocol.BEGIN:
                    has_begun = True
                elif kind == protocol.WANT:
                    self._sends_stdin = True
                elif kind == protocol.ASK:
                    self._ask(payload)
                elif kind == protocol.REFUSED:
                    raise CliSocketRefused(payload)
            heard = heard[at:] if at else heard

    def _receive(self) -> bytes:
        """The next bytes of the daemon; meanwhile, what it wants of stdin."""
        while self._sends_stdin or self._answer is not None:
            from select import select

            ready, _, _ = select([self._sock.fileno(), 0], [], [])
            if self._sock.fileno() in ready:
                break
            if self._answer is not None:
                self._hear_answer(self._answer)
            else:
                self._hear_stdin()
        try:
            return self._sock.recv(262144)
        except ConnectionResetError:
            return b""

    def _hear_stdin(self) -> None:
        part = _read()
        if part:
            self._send(protocol.IN, part)
        else:
            self._sends_stdin = False
            self._send(protocol.IN_END)

    def _ask(self, payload: bytes) -> None:
        self._answer = bytearray()
        if payload[:1] == b"\1":
            self._hide_typing()
        _write(_STDERR, memoryview(payload)[1:])

    def _hear_answer(self, answer: bytearray) -> None:
        part = _read()
        answer += part
        if part and b"\n" not in part:
            return
        self._answer = None
        self._show_typing()
        self._send(protocol.ANSWER, bytes(answer).partition(b"\n")[0].rstrip(b"\r"))

    def _send(self, kind: bytes, payload: bytes = b"") -> None:
        self._is_sending = True
        had = self._interrupts
        try:
            self._sock.sendall(protocol.encode_frame(kind, payload))
        except (BrokenPipeError, ConnectionResetError):
            pass  # why it hung up is still to be read
        finally:
            self._is_sending = False
        if self._interrupts > had:
            self._send(protocol.CANCEL)

    def _interrupt(self, number: int, stack: object) -> None:
        """Ctrl-C: the daemon cancels the command and tells its exit code; pressed again, we do not wait for that."""
        self._interrupts += 1
        if self._interrupts > 1:
            self._show_typing()
            os._exit(INTERRUPTED)
        if not self._is_sending:  # a frame must not begin in the middle of another
            self._send(protocol.CANCEL)

    def _lost(self) -> int:
        if self._interrupts:
            return INTERRUPTED
        tell("error: the daemon ended before the command had\nhint: run it again; its log tells why")
        return NETWORK

    def _hide_typing(self) -> None:
        import termios

        self._hidden = termios.tcgetattr(0)
        silent = termios.tcgetattr(0)
        silent[3] &= ~termios.ECHO
        termios.tcsetattr(0, termios.TCSAFLUSH, silent)

    def _show_typing(self) -> None:
        if self._hidden is not None:
            import termios

            before, self._hidden = self._hidden, None
            termios.tcsetattr(0, termios.TCSADRAIN, before)  # type: ignore[arg-type]
            _write(_STDERR, memoryview(b"\n"))


def tell(text: str, descriptor: int = _STDERR) -> None:
    """A line for the person."""
    try:
        _write(descriptor, memoryview(f"{text}\n".encode("utf-8", "backslashreplace")))
    except BrokenPipeError:
        pass


def open_standard_descriptors() -> None:
    """A socket that got the number of a closed stdout would be written to."""
    opened = os.open("/dev/null", os.O_RDWR)
    while opened <= _STDERR:
        opened = os.open("/dev/null", os.O_RDWR)
    os.close(opened)


def _write(descriptor: int, data: memoryview) -> None:
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # somebody set the terminal to non-blocking
            from select import select

            select([], [descriptor], [])
        except BrokenPipeError:
            if descriptor == _STDOUT:
                raise
            return
        except OSError as error:
            if descriptor == _STDOUT:
                tell(f"error: stdout cannot be written: {error.strerror}")
                raise SystemExit(INTERRUPTED) from None
            return


def _read() -> bytes:
    try:
        return os.read(0, 65536)
    except OSError:
        return b""


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


def columns() -> int:
    """How wide the person's screen is: COLUMNS, what a terminal among our descriptors says, or 80."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and told != "0":
        return int(told)
    for descriptor in (_STDOUT, _STDERR, 0):
        try:
            return os.get_terminal_size(descriptor).columns or 80
        except OSError:
            continue
    return 80
