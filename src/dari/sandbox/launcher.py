"""The last step before a child: apply limits and sandbox, then exec the program.

Run as `python -IS launcher <status-fd> <orders-fd> <program> <argv0> <arguments…>`. A fresh process, and not
a hook between fork and exec: the daemon has threads, and Python code must not run in a fork of such a process.
The orders are lines; each one is obeyed or the program is not started. A failure is written to the status pipe,
which says `ready` at the end and closes by itself when the program starts.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes

REFUSED = 126
READY = "ready"
_SET_NO_NEW_PRIVS, _SET_SECCOMP, _SECCOMP_FILTER, _DROP_CAPABILITY = 38, 22, 2, 24
_RESTRICT_SELF = 446
_ADD_RULE = 445
# chown, dac_override, fowner, fsetid, kill, setgid, setuid: of use to an installer run by root, of none to an escape.
_KEPT_CAPABILITIES = frozenset((0, 1, 3, 4, 5, 6, 7))
_opened: list[ctypes.CDLL] = []


def main() -> None:
    status, orders = int(sys.argv[1]), int(sys.argv[2])
    program, arguments = sys.argv[3], sys.argv[4:]
    step = "read its orders"
    try:
        os.set_inheritable(status, False)
        lines = _read_all(orders).decode("utf-8", "surrogateescape").splitlines()
        for line in lines:
            step, _, rest = line.partition(" ")
            _STEPS[step](rest)
        step = f"run {program}"
        _reset_signals()
        os.write(status, READY.encode())
        os.execv(program, arguments)
    except BaseException as error:
        number = getattr(error, "errno", None) or 0
        reason = os.strerror(number) if number else f"{type(error).__name__}: {error}"
        os.write(status, f"{number} {step}: {reason}".encode("utf-8", "replace"))
        os._exit(REFUSED)


def _limit(rest: str) -> None:
    import resource

    kind, value = map(int, rest.split())
    _, hard = resource.getrlimit(kind)
    ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (ceiling, ceiling))


def _unset(rest: str) -> None:
    """Python sets LC_CTYPE for itself in a C locale; the program is not to see it."""
    os.unsetenv(rest)


def _no_new_privileges(rest: str) -> None:
    _prctl(_SET_NO_NEW_PRIVS, 1)


def _capabilities(rest: str) -> None:
    """Root keeps what concerns files; exec then grants no more than is left in the bounding set."""
    if os.geteuid() != 0:
        return
    for number in range(64):
        if number not in _KEPT_CAPABILITIES:
            try:
                _prctl(_DROP_CAPABILITY, number)
            except OSError:  # beyond the last one of this kernel, or a bounding set that is not ours to change
                continue


def _landlock_path(rest: str) -> None:
    """A path that exists only on this side of the namespaces."""
    import ctypes

    descriptor, rights, path = rest.split(" ", 2)
    place = os.open(path, os.O_PATH)
    rule = int(rights).to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
    _syscall(_ADD_RULE, int(descriptor), 1, ctypes.c_char_p(rule), 0)
    os.close(place)


def _landlock(rest: str) -> None:
    _syscall(_RESTRICT_SELF, int(rest), 0)
    os.close(int(rest))


def _seccomp(rest: str) -> None:
    import ctypes

    _prctl(_SET_SECCOMP, _SECCOMP_FILTER, ctypes.byref(_program(rest)))


def _ready_to_hand_over(rest: str) -> None:
    """Load what `seccomp-asking` needs, while its files can still be read."""
    import _socket  # noqa: F401


def _seccomp_asking(rest: str) -> None:
    """A filter that asks the daemon: it gets the descriptor on which the kernel puts the questions."""
    import _socket
    import ctypes

    number, broker_socket, code = rest.split()
    listener = _syscall(int(number), 1, 1 << 3, ctypes.byref(_program(code)))
    handing = _socket.socket(fileno=int(broker_socket))
    handing.sendmsg([b"?"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, listener.to_bytes(4, sys.byteorder))])
    handing.close()
    os.close(listener)


def _reset_signals() -> None:
    """Python ignores these two for itself, and exec would hand that on."""
    import _signal  # type: ignore[import-not-found]  # without the enums of `signal`, which cost as much as the rest

    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)


def _libc() -> ctypes.CDLL:
    """Opened once: dropping sixty capabilities one by one opened it sixty times."""
    import ctypes

    if not _opened:
        _opened.append(ctypes.CDLL(None, use_errno=True))
    return _opened[0]


def _prctl(option: int, first: int, second: object = 0) -> None:
    import ctypes

    word = ctypes.c_ulong
    last = word(second) if isinstance(second, int) else second
    if _libc().prctl(ctypes.c_int(option), word(first), last, word(0), word(0)) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _program(text: str) -> ctypes.Structure:
    """`struct sock_fprog`."""
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = (("count", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    code = bytes.fromhex(text)
    return Program(len(code) // 8, code)


def _syscall(number: int, *arguments: object) -> int:
    import ctypes

    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = _libc().syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), "syscall")
    return int(result)


def _read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 65536):
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts)


_STEPS = {
    "limit": _limit,
    "unset": _unset,
    "no-new-privileges": _no_new_privileges,
    "capabilities": _capabilities,
    "landlock-path": _landlock_path,
    "landlock": _landlock,
    "seccomp": _seccomp,
    "ready-to-hand-over": _ready_to_hand_over,
    "seccomp-asking": _seccomp_asking,
}

if __name__ == "__main__":
    main()
