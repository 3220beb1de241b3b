"""Approvals by a person: asked at this terminal where a person sits at it, else left for `crux approvals`."""

from __future__ import annotations

import os
import sys

from dari.errors import DariError, NeedsApproval

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dari.cli.crux.line import Line


def settle(line: Line, method: str, params: dict[str, Any], refusal: DariError) -> Any:
    """The call that was refused for want of an approval, made again if a person agrees; else why not."""
    approval_id = refusal.approval_id if isinstance(refusal, NeedsApproval) else ""
    if not approval_id or not _has_person(line) or not _agrees(refusal.message):
        raise refusal
    line.call("crux:approval/answer", question_id=approval_id, is_approved=True, by="the person at the terminal")
    return line.call(method, **params)


def is_in_pane(line: Line) -> bool:
    """Whether the terminal of this command is a pane: what is typed there may come from an agent."""
    if os.environ.get("CRUX_PANE"):
        return True
    try:
        here = os.ttyname(0)
    except OSError:
        return False
    return any(pane["tty"] == here for pane in line.call("crux:pane/list")["panes"])


def _has_person(line: Line) -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty() and not is_in_pane(line)


def _agrees(message: str) -> bool:
    from dari.text.sanitize import escape_hidden

    sys.stderr.write(f"{escape_hidden(message)}\nrun it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
