"""How long calls of the terminal may wait: declared here once, for tools, api and panes."""

from __future__ import annotations

from dari.errors import InvalidInput

DEFAULT_WAIT_S = 30.0
MAX_WAIT_S = 3600.0
MAX_POLL_S = 600.0
"""One look for news; who follows something asks again."""
DEFAULT_WAIT_MS = int(DEFAULT_WAIT_S * 1000)
MAX_WAIT_MS = int(MAX_WAIT_S * 1000)


def check_wait(timeout_s: float, max_s: float = MAX_WAIT_S) -> float:
    """The time itself; InvalidInput when it is out of range."""
    if not 0 <= timeout_s <= max_s:
        raise InvalidInput(
            f"timeout_s must be between 0 and {max_s:g}, got {timeout_s:g}", "wait less long, and wait again"
        )
    return timeout_s


def to_seconds(timeout_ms: int, min_ms: int = 0) -> float:
    """The milliseconds of a tool's argument as seconds; InvalidInput when they are out of range."""
    if not min_ms <= timeout_ms <= MAX_WAIT_MS:
        raise InvalidInput(
            f"timeout_ms must be between {min_ms} and {MAX_WAIT_MS}, got {timeout_ms}", "wait less long, and wait again"
        )
    return timeout_ms / 1000
