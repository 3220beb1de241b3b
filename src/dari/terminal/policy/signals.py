"""The signals that a tool may send to the program of a pane."""

from __future__ import annotations

import signal

from dari.errors import Denied, InvalidInput

ALLOWED = frozenset(("INT", "TERM", "HUP", "QUIT", "TSTP", "CONT", "WINCH", "USR1", "USR2"))
_HARD = {
    "KILL": "close the pane with force, which ends the whole process group",
    "STOP": "send TSTP, which the program can answer",
}


def parse_signal(name: str | int) -> signal.Signals:
    """The signal by name (`INT`, `SIGINT`, any case) or number, when it is one that may be sent."""
    try:
        if isinstance(name, int) or name.isdigit():
            found = signal.Signals(int(name))
        else:
            found = signal.Signals[f"SIG{name.strip().upper().removeprefix('SIG')}"]
    except (ValueError, KeyError) as error:
        raise InvalidInput(f"{name!r} is no signal", "one of " + ", ".join(sorted(ALLOWED))) from error
    short = found.name.removeprefix("SIG")
    if short not in ALLOWED:
        raise Denied(f"signal {short} may not be sent", _HARD.get(short, "one of " + ", ".join(sorted(ALLOWED))))
    return found
