"""The policy at the door of every pane: what would run is judged before it is sent.

Allowed texts pass, denied ones raise `Denied`. What a person has to agree to raises `NeedsApproval`; the same call with
`approved` set to that message passes, so what was agreed to is what runs, and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from dari.errors import Denied, InvalidInput, NeedsApproval, NotFound
from dari.sanitising import for_terminal
from dari.terminal.engine.keys import Key
from dari.terminal.panes import events
from dari.terminal.panes.integration import find_shell, kind_of
from dari.terminal.panes.pane import Pane
from dari.terminal.policy.policy import Policy, Verdict
from dari.terminal.policy.typed import TypedLine
from dari.terminal.policy.words import Dialect

SHOWN_CHARS = 2000
REMEMBERED, REMEMBERED_CHARS = 256, 500
# They read keys themselves and hand them to a shell that we do not see.
CARRIERS = frozenset(
    ("ssh", "mosh", "mosh-client", "tmux", "screen", "docker", "podman", "kubectl", "sudo", "su", "doas", "script")
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROLS = {"enter": "\r", "kp_enter": "\r", "tab": "\t", "space": " ", "backspace": "\x7f"}


class Guard:
    """Asks one policy."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._verdicts: OrderedDict[tuple[str, Dialect], Verdict] = OrderedDict()

    def check(self, text: str, cwd: str, dialect: Dialect = "bash", approved: str = "", doubt: str = "") -> None:
        """Return when `text` may run in `cwd`; `doubt` is a reason of the caller's own to ask."""
        verdict = self._verdict(text, cwd, dialect)
        if verdict.decision == "deny":
            raise Denied(f"{_shown(text)} is not run: {verdict.reason}", verdict.hint)
        reason = doubt or ("" if verdict.is_allowed else verdict.reason)
        if not reason:
            return
        message = f"{_shown(text)} needs a person's approval: {reason}"
        if approved != message:
            raise NeedsApproval(message, verdict.hint or "a person has to agree")

    def check_opening(
        self,
        text: str,
        cwd: str,
        *,
        env: Mapping[str, str] | None = None,
        shell: str = "",
        approved: str = "",
    ) -> None:
        """The same for a pane that is to be opened: its variables and its shell can run something, too."""
        for name in env or {}:
            if not _NAME.fullmatch(name):
                raise InvalidInput(f"{name!r} is no name of a variable", "use letters, digits and underscores")
        if shell and kind_of(shell) is None:
            raise InvalidInput(
                f"{shell!r} is no shell that we know", "one of bash, zsh, fish, sh, or run it as a command"
            )
        lines = [
            " ".join(f"{name}={shlex.quote(value)}" for name, value in (env or {}).items()),
            "" if "/" not in shell or _is_usual(shell) else shlex.quote(shell),
            text,
        ]
        self.check("\n".join(filter(None, lines)), cwd, approved=approved)

    def _verdict(self, text: str, cwd: str, dialect: Dialect) -> Verdict:
        if self.policy.security.allowed_directories or len(text) > REMEMBERED_CHARS:
            return self.policy.judge(text, cwd, dialect)  # it depends on links, which may change
        key = (text, dialect)
        verdict = self._verdicts.pop(key, None) or self.policy.judge(text, cwd, dialect)
        self._verdicts[key] = verdict
        if len(self._verdicts) > REMEMBERED:
            self._verdicts.popitem(last=False)
        return verdict


class InputGuard:
    """Follows what is typed into one pane, by whomever, and judges what Enter would run."""

    def __init__(self, pane: Pane, guard: Guard) -> None:
        self._pane = pane
        self._guard = guard
        self._line = TypedLine()
        self._stop = pane.events.subscribe(self._hear)

    def enter(self, text: str, approved: str = "") -> None:
        """Call before `text` is sent; nothing may be awaited between the check and the note of two senders."""
        self.check(text, approved)
        self.note(text)

    def check(self, text: str, approved: str = "") -> None:
        entry = self._line.peek(self._entering(text))
        if entry is None or not self._is_for_shell():
            return
        doubt = "" if entry.is_certain else "editing keys were used, so the line may hold something else"
        self._guard.check(entry.text, self._pane.cwd(), self._pane.kind or "bash", approved, doubt)

    def note(self, text: str) -> None:
        self._line.add(self._entering(text))

    def clear(self) -> None:
        """A whole command was run: what stood on the line is gone."""
        self._line.clear()

    def close(self) -> None:
        self._stop()

    def _entering(self, text: str) -> str:
        """Every key that makes a shell take the line, as Enter."""
        text = text.replace("\x0f", "\r")  # operate-and-get-next
        return text.replace("\x1ba", "\r").replace("\x1bA", "\r") if self._pane.kind == "zsh" else text

    def _is_for_shell(self) -> bool:
        """Whether a shell reads this, now or once the program that runs has ended.

        A program that reads keys itself (an editor, a REPL) takes them; one that reads lines may leave them to the
        shell. A line that is not shown is an answer to the program: a password.
        """
        pane = self._pane
        if pane.is_at_prompt:
            return True
        if pane.is_asking_secret:
            return False
        process = pane.foreground()
        name = process.name if process is not None else ""
        if kind_of(name) is not None or name in CARRIERS:
            return True
        return pane.kind is not None and pane.reads_lines

    def _hear(self, event: events.PaneEvent) -> None:
        if isinstance(event, events.CommandStarted | events.CommandEnded):
            self._line.clear()


def text_of_keys(keys: Iterable[Key]) -> str:
    """Keys as the characters that they send, as far as a shell's line is concerned; ESC for what edits it."""
    return "".join(map(_character, keys))


def _character(key: Key) -> str:
    if key.alt:
        return "\x1b" + key.name if key.is_character else "\x1b"
    if key.ctrl:
        code = ord(key.name.upper()) ^ 64 if len(key.name) == 1 and key.name.isascii() else 27
        return chr(code) if code < 32 else "\x1b"
    if key.is_character:
        return key.name.upper() if key.shift else key.name
    return _CONTROLS.get(key.name, "\x1b")


def _is_usual(shell: str) -> bool:
    """Whether the path is that of the shell which its name alone would find."""
    try:
        return os.path.realpath(shell) == os.path.realpath(find_shell(os.path.basename(shell)))
    except NotFound:
        return False


def _shown(text: str) -> str:
    """The text as a person may read it; of one too long its beginning, its size and its digest."""
    shown = for_terminal(text.strip("\n"))
    if len(shown) <= SHOWN_CHARS:
        return f"`{shown}`"
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
    return f"`{shown[:SHOWN_CHARS]}…` ({len(text)} characters, sha256 {digest})"
