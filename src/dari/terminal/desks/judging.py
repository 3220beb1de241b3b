"""Several texts before the policy at once: a person is asked one question about all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dari.errors import NeedsApproval
from dari.terminal.guard import Guard
from dari.terminal.policy.words import Dialect


@dataclass(frozen=True, slots=True)
class Intended:
    """A text that is to run in a directory; `doubt` is a reason of the caller's own to ask."""

    text: str
    cwd: str
    dialect: Dialect = "bash"
    doubt: str = ""


def check_all(guard: Guard, texts: Sequence[Intended], approved: str = "") -> dict[str, str]:
    """Return when all may run: for each text that a person agreed to, the words of that agreement.

    Denied for the first that may never run; NeedsApproval with one message about all that have to be asked for. The
    same call with `approved` set to that message passes.
    """
    asked: dict[str, str] = {}
    hint = ""
    for each in texts:
        try:
            guard.check(each.text, each.cwd, each.dialect, doubt=each.doubt)
        except NeedsApproval as need:
            asked.setdefault(each.text, need.message)
            hint = hint or need.hint
    message = "\n".join(dict.fromkeys(asked.values()))
    if asked and approved != message:
        raise NeedsApproval(message, hint)
    return asked
