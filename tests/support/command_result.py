"""What a command left behind, in this process or in one of its own."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The last line of stderr as JSON; progress may stand before it."""
        return json.loads(self.err.splitlines()[-1])
