"""What `since` may say: a commit or branch, a time, or the begin of the session."""

from __future__ import annotations

import re
import time
from datetime import datetime

from dari.errors import InvalidInput

SESSION = "session"
_AGO = re.compile(r"(\d{1,6}|an?|one)\s*(s|sec|second|m|min|minute|h|hour|d|day|w|week|month|year)s?(?:\s+ago)?")
_SECONDS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_SECONDS |= {"d": 86400, "day": 86400, "w": 604800, "week": 604800, "month": 2629800, "year": 31557600}
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?\s*(?:Z|[+-]\d\d:?\d\d)?")


def parse_time(since: str, now: float | None = None) -> float | None:
    """Seconds since 1970 when it is a time: ISO 8601 (local time without an offset), `2 hours ago`, `yesterday`."""
    now = time.time() if now is None else now
    words = " ".join(since.strip().lower().split())
    if words in ("today", "yesterday"):
        start = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        return start if words == "today" else start - 86400
    if (found := _AGO.fullmatch(words)) and ("ago" in words or " " in words):
        count = int(found[1]) if found[1].isdigit() else 1
        return now - count * _SECONDS[found[2]]
    if _ISO.fullmatch(since.strip()):
        try:
            return datetime.fromisoformat(since.strip().replace("Z", "+00:00")).timestamp()
        except (ValueError, OverflowError, OSError):
            raise InvalidInput(
                f"since must be a time such as 2026-01-31T12:00, got {since!r}", "check the date"
            ) from None
    return None
