"""`crewx mcp remote …` and `dari remote …` as a pipe to the warm daemon: words go in, bytes and an exit code come back.

A call has to cost little more than the start of an interpreter, so nothing is imported that is not used: `_socket`
and `_signal` are what `socket` and `signal` wrap in 15 ms of enums. Without a daemon one is started; when none can
be, or none is wanted (`--no-daemon`, DARI_NO_DAEMON=1), the same command runs in this process.
"""

import os
import sys
from _signal import SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]
from _socket import SO_RCVTIMEO, SOL_SOCKET, socket
from time import monotonic

from dari.cli.hub import protocol
from dari.cli.hub.client import CliSocketRefused, ask_to_finish, connect, send_handshake
from dari.home import runtime_dir

NETWORK, INTERRUPTED = 2, 4
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_LOOK_S = 0.25
"""A Ctrl-C in the moment before `recv` waits does not end it: Python runs the handler when `recv` returns."""
BEGIN_TIMEOUT_S = 30.0
"""A daemon confirms a command at once. One that was stopped, or hangs, still accepts connections."""
_LOOK_TIMEVAL = bytes(8) + int(_LOOK_S * 1e6).to_bytes(8, sys.byteorder)


class DaemonGone(Exception):
    """The daemon went away before it had begun: nothing has happened, so another one can be asked."""


class CommandRelay:
    """One command at the daemon: its output goes to our descriptors, our stdin to it when it asks."""

    def __init__(self, sock: socket, program: str) -> None:
        self._sock = sock
        self._program = program
        self._interrupts = 0
        self._has_begun = False
        self._is_sending = False
        self._sends_stdin = False
        self._answer: bytearray | None = None
        self._hidden: list[object] | None = None

    def run(self, run_dir: str, argv: list[str], *, stays: bool = False) -> int:
        """The exit code of the command; TimeoutError from a daemon that does not confirm it."""
        self._begins_by_s = monotonic() + BEGIN_TIMEOUT_S
        self._sock.settimeout(BEGIN_TIMEOUT_S)
        send_handshake(
            self._sock,
            run_dir,
            "cli",
            program=self._program,
            argv=argv,
            cwd=_cwd(),
            env=dict(os.environ),
            stays=stays,
            tty=_describe_tty(),
        )
        self._sock.settimeout(None)
        self._sock.setsockopt(SOL_SOCKET, SO_RCVTIMEO, _LOOK_TIMEVAL)
        # A shell that ignores Ctrl-C on our behalf (`nohup`, `&` in a script) means it.
        is_ours = getsignal(SIGINT) is default_int_handler
        if is_ours:
            signal(SIGINT, self._interrupt)
        try:
            return self._relay()
        except BrokenPipeError:
            return 0  # the reader of our output has seen enough
        finally:
            self._show_typing()
            if is_ours:
                signal(SIGINT, default_int_handler)

    def _relay(self) -> int:
        heard = b""
        left, descriptor = 0, _STDOUT
        while True:
            part = self._receive()
            if not part:
                if not self._has_begun and not self._interrupts:
                    raise DaemonGone
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
                    self._has_begun = True
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

            ready, _, _ = select([self._sock.fileno(), 0], [], [], _LOOK_S)
            if self._sock.fileno() in ready:
                break
            if not ready:
                continue
            if self._answer is not None:
                self._hear_answer(self._answer)
            else:
                self._hear_stdin()
        while True:
            try:
                return self._sock.recv(262144)
            except BlockingIOError:
                if not self._has_begun and monotonic() > self._begins_by_s:
                    raise TimeoutError from None
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
        write_line("error: the daemon ended before the command had\nhint: run it again; its log tells why")
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


def write_line(text: str, descriptor: int = _STDERR) -> None:
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
                write_line(f"error: stdout cannot be written: {error.strerror}")
                raise SystemExit(INTERRUPTED) from None
            return


def _read() -> bytes:
    try:
        return os.read(0, 65536)
    except OSError:
        return b""


def _describe_tty() -> dict[str, object]:
    stdin, stdout, stderr = os.isatty(0), os.isatty(1), os.isatty(2)
    given = os.environ.get("COLUMNS", "")
    columns = int(given) if given.isdecimal() and given != "0" else 80
    if stdin or stdout or stderr:
        from dari.cli.kit.console import terminal_columns

        columns = terminal_columns()
    return {"stdin": stdin, "stdout": stdout, "stderr": stderr, "columns": columns}


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


STOP_TIMEOUT_S = 30.0
MAX_ATTEMPTS = 4
_ADDRESSES = ("--endpoint=", "--http=", "http://", "https://")


def main(program: str, argv: list[str], *, leaves: bool = False) -> int:
    """Run the words of a program and return its exit code. Ctrl-C is 4; a closed stdout is the end, and no failure.

    With `leaves` the process ends here: to take down an interpreter that ran a command itself costs 50 ms.
    """
    try:
        code = _main(program, argv)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if leaves:
        exit_at_once(code)
    return code


def exit_at_once(code: int) -> None:
    """End the process with what it has printed, and do not take the interpreter down."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # closed, or nobody reads it any more
    os._exit(code)


def _main(program: str, argv: list[str]) -> int:
    open_standard_descriptors()
    if os.environ.get("DARI_NO_DAEMON", "") not in ("", "0") or _says_no_daemon(argv):
        return _run_here(program, argv)
    try:
        at = _count_leading(argv)
        if argv[at : at + 1] == ["daemon"]:
            from dari.cli.daemons import run_daemon_word

            return run_daemon_word(program, argv[at:], argv[:at])
        return through_daemon(program, argv, starts=not _is_help(argv))
    except KeyboardInterrupt:
        return INTERRUPTED


def through_daemon(program: str, argv: list[str], *, starts: bool = True, stays: bool = False) -> int:
    """Ask the daemon, and start it first when there is none and it may be started; else run here."""
    run_dir = runtime_dir("bridge")
    # A daemon that a server of ours starts would have that server's sandbox, and end with it.
    starts = starts and not os.environ.get("DARI_CHILD")
    for _ in range(MAX_ATTEMPTS):
        try:
            sock = connect(run_dir)
            if sock is None:
                if not starts:
                    return _run_here(program, argv)
                from dari.cli.hub.paths import BridgePaths

                paths = BridgePaths()
                if _names_an_address(argv):
                    # It needs no process of its own: what it costs to wait for a daemon is saved, and the next has one.
                    from dari.daemon.launch import start_unattended

                    start_unattended(paths, paths.command())
                    return _run_here(program, argv)
                from dari.daemon.launch import ensure_started_sync

                ensure_started_sync(paths, paths.command(stays=stays), socket=paths.cli_socket_text)
                continue
            try:
                return CommandRelay(sock, program).run(run_dir, argv, stays=stays)
            finally:
                sock.close()
        except DaemonGone:
            continue
        except CliSocketRefused as refused:
            if refused.code == "skew":
                problem = _replaced(run_dir)
                if problem is None:
                    continue
            elif refused.code == "child":
                return _run_here(program, argv)
            else:
                return _complain(program, refused.message, refused.hint)
        except TimeoutError:
            return _complain_of_hang(program)
        except OSError as error:
            problem = f"{error.filename or run_dir}: {error.strerror or error}"
        except Exception as error:
            problem = _reason(error)
        return _run_here(program, argv, problem)
    return _run_here(program, argv, "it ends again and again")


def _run_here(program: str, argv: list[str], problem: str | None = None) -> int:
    if problem is not None:
        write_line(f"warning: the daemon cannot be used ({problem}); running without it")
    import gc

    # Importing makes no garbage, and one command not enough to look for it.
    gc.disable()
    from dari.cli.kit.errors import run_guarded
    from dari.cli.remote.main import run_here

    return run_guarded(lambda: run_here(program, argv), interrupted=INTERRUPTED, failed=INTERRUPTED)


def _replaced(run_dir: str) -> str | None:
    """Ask a daemon of another release to end; None when it has, else why not."""
    try:
        ask_to_finish(run_dir, STOP_TIMEOUT_S)
    except CliSocketRefused as refused:
        return refused.message
    except TimeoutError:
        return "a daemon of another release does not end"
    return None


def _reason(error: Exception) -> str:
    from dari.errors import DariError

    if not isinstance(error, DariError):
        raise error
    return f"{error.message}: {error.hint}" if error.hint else error.message


def _complain(program: str, message: str, hint: str) -> int:
    from dari.cli.kit.hints import PROGRAM, name_program

    PROGRAM.set(program)
    write_line(f"error: {name_program(message)}")
    if hint:
        write_line(f"hint: {name_program(hint)}")
    return NETWORK


def _complain_of_hang(program: str) -> int:
    """It may still run what it was sent, so the command is not run here as well."""
    from dari.cli.hub.paths import BridgePaths
    from dari.daemon.lock import lock_holder

    paths = BridgePaths()
    pid = lock_holder(paths.lock_text)
    fact = f"the daemon{f' (pid {pid})' if pid else ''} has not taken the command within {BEGIN_TIMEOUT_S:g} s"
    return _complain(program, fact, f"if it hangs, end it with kill -KILL; its log is {paths.log_text}")


def _count_leading(argv: list[str]) -> int:
    """How many words stand before the command: options that every command takes."""
    at = 0
    while at < len(argv) and (argv[at] in ("--log", "--config") or argv[at].startswith("--config=")):
        at += 2 if argv[at] == "--config" else 1
    return at


def _says_no_daemon(argv: list[str]) -> bool:
    for word in argv:
        if word == "--no-daemon":
            return True
        if word == "--":
            return False
    return False


def _names_an_address(argv: list[str]) -> bool:
    own = argv[: argv.index("--")] if "--" in argv else argv
    if "add" in own[:3]:
        return False
    return any(word in ("--endpoint", "--http") or word.startswith(_ADDRESSES) for word in own)


def _is_help(argv: list[str]) -> bool:
    """What only prints a text is not worth a daemon; one that runs is asked all the same."""
    texts = ("-h", "--help", "help", "completion", "__complete")
    return not argv or argv[0] in texts or argv[-1] in ("-h", "--help")
