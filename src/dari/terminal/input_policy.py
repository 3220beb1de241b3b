"""The policy in front of every pane: what would run is judged before it is sent.

Allowed texts pass, denied ones raise `Denied`. What a person has to agree to raises `NeedsApproval`; the same call with
`approved` set to that message passes, so what was agreed to is what runs, and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dari.errors import Conflict, Denied, InvalidInput, NeedsApproval, NotFound
from dari.terminal.out_of_band import KEY
from dari.terminal.panes import events
from dari.terminal.panes.pane import Pane
from dari.terminal.panes.shell_integration import find_shell, kind_of
from dari.terminal.policy.ast import Dialect
from dari.terminal.policy.line_buffer import LineBuffer
from dari.terminal.policy.policy import Policy, Verdict
from dari.terminal.typed_input import TypedInput
from dari.text.sanitize import escape_hidden

SHOWN_CHARS = 2000
REMEMBERED, REMEMBERED_CHARS = 256, 500
AHEAD_CHARS = 200
ENDING_S = 0.5
OWN_KEY = KEY.decode()
# They read keys themselves and hand them to a shell that we do not see.
CARRIERS = frozenset(
    [
        *("ssh", "mosh", "mosh-client", "tmux", "tmux: client", "screen", "docker", "podman", "kubectl", "sudo", "su"),
        *("doas", "script", "dash", "ash", "ksh", "mksh", "yash", "csh", "tcsh", "rbash", "busybox", "nu", "xonsh"),
        *("pwsh", "elvish", "rlwrap", "lxc", "machinectl", "nsenter", "chroot", "unshare", "bwrap", "crux", "expect"),
    ]
)
# A shell escape begins a command of the program; in a pager any keys may come before it.
_HANDED_OVER = r"!+\s*([^!\x00-\x1f][^\x00-\x1f]*)"
_ESCAPE = re.compile(r"(?:^|[\x00-\x1f:\\])(?:[\s\d.,%$']|r|w|read|write|sil(?:ent)?)*" + _HANDED_OVER)
_PAGER_ESCAPE = re.compile(_HANDED_OVER)
_PAGERS = frozenset(("less", "more", "most", "man", "pager"))
_MOVES = re.compile(r"^(\x1b(\[[\d;]*[A-Za-z~]|O[A-Za-z])?)+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# accept-and-hold of zsh; the editor on the line of fish. The ESC stays, which makes the line uncertain.
_TAKES = {"zsh": ("\x1ba", "\x1bA"), "fish": ("\x1be", "\x1bv", "\x1b[7702~")}


class PolicyEnforcer:
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

    def check_danger(self, lines: Sequence[str], cwd: str, approved: str = "") -> None:
        """Lines for a program other than a shell: asked about or denied where a line would be dangerous at a prompt.

        The program may end before it has read them all, and what is left goes to the shell.
        """
        for line in lines:
            verdict = self.policy.judge_danger(line, cwd)
            if verdict.decision == "deny":
                raise Denied(f"{_shown(line)} is not sent: {verdict.reason}", verdict.hint)
            message = f"{_shown(line)} needs a person's approval: {verdict.reason}, if a shell gets it"
            if not verdict.is_allowed and approved != message:
                raise NeedsApproval(message, verdict.hint)

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
                raise InvalidInput(
                    f"a variable name must have letters, digits and _ only, got {name!r}", "rename the variable"
                )
        if shell and kind_of(shell) is None:
            raise InvalidInput(f"shell must be bash, zsh, fish or sh, got {shell!r}", "run other programs as a command")
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


class PaneInputPolicy:
    """Follows all typing into one pane, and judges the line that Enter would run."""

    def __init__(self, pane: Pane, guard: PolicyEnforcer) -> None:
        self._pane = pane
        self._guard = guard
        self._line = LineBuffer()
        self._ahead = ""
        """What a full-screen program was sent last: if it ended in the middle, the shell has the rest."""
        self._last = self._tail = ""
        self._entered_at = 0.0
        self._key_reader = 0
        """The program that was last seen reading keys itself."""
        self._changes = 0
        self._stop = pane.events.subscribe(self._hear, events.LineReplaced)

    def admit(self, inputs: Sequence[TypedInput], approved: str = "") -> AdmittedInput:
        """Judge all of it before any of it is sent; what is returned sends it."""
        return AdmittedInput(self, self._pane, inputs, approved)

    @property
    def state(self) -> tuple[int, str]:
        """The same as before when nothing was typed meanwhile and the same kind of program reads."""
        return self._changes, self._reader()

    def check(self, text: str, approved: str = "", *, is_exact: bool = True) -> None:
        pane = self._pane
        if OWN_KEY in self._tail + text:
            raise InvalidInput("this key is reserved for the terminal itself", "run a command instead")
        self._line.inert = pane.inert_keys
        entry = self._line.peek(self._entering(text))
        if entry is None:
            return
        reader = self._reader()
        if reader == "shell":
            is_certain = is_exact and entry.is_certain and not (self._ahead and _edits(self._last))
            doubt = "" if is_certain else "editing keys were used, so the line may hold something else"
            self._guard.check(entry.text, pane.cwd(), pane.kind or "bash", approved, doubt)
            self._guard.check_danger(self._rests(entry.text, 0), pane.cwd(), approved)
        elif reader == "lines":
            lines = [*self._rests(entry.text, 0), *entry.text.split("\n")]
            self._guard.check_danger(lines, pane.cwd(), approved)
        else:
            lines = [] if pane.is_asking_secret else self._escapes(self._entering(text))
            if pane.kind is not None:
                # The first line is the program's, unless it may be about to end: after that, the shell's.
                is_ending = time.monotonic() - self._entered_at < ENDING_S and not pane.is_asking_secret
                entered = entry.text.split("\n")
                lines += [*self._rests(entry.text, 1), *(entered if is_ending else entered[1:])]
            self._guard.check_danger(lines, pane.cwd(), approved)

    def note(self, text: str, *, is_exact: bool = True) -> None:
        """Remember what was sent: call it at the moment when it is, as `admit` of `Pane.write`."""
        self._changes += 1
        entering = self._entering(text)
        self._tail = (self._tail + text)[1 - len(OWN_KEY) :]
        if self._reader() != "keys":
            self._line.inert = self._pane.inert_keys
            if self._line.add(entering) is not None:
                self._ahead = ""
            if not is_exact:
                self._line.doubt()
        else:
            # The program takes it, or leaves the end of it.
            self._line.clear()
            self._ahead = re.split(r"[\r\n]", self._ahead + entering)[-1][-AHEAD_CHARS:]
            self._last = entering
            if re.search(r"[\r\n]", entering):
                self._entered_at = time.monotonic()

    def close(self) -> None:
        self._stop()

    def _rests(self, entered: str, since: int) -> list[str]:
        """What the shell would have if the program ended at any of the keys that it was sent."""
        first = entered.partition("\n")[0]
        return [_MOVES.sub("", self._ahead[at:]) + first for at in range(since, len(self._ahead))]

    def _escapes(self, entering: str) -> list[str]:
        """Commands that a program hands to a shell: `:!rm x` of an editor, `!rm x` of a pager, `\\! rm x` of psql."""
        if "!" not in self._ahead + entering:
            return []
        pane, process = self._pane, self._pane.foreground()
        is_pager = not _PAGERS.isdisjoint(pane.foreground_names())
        # Of a pipe whose first program has ended, the last one may not be known: it is a pager as a rule.
        is_pager = is_pager or process is None or (process.pid == pane.pid and not pane.has_terminal)
        escape = _PAGER_ESCAPE if is_pager else _ESCAPE
        typed = self._ahead + entering
        lines = [*re.split(r"[\r\n]", typed)[:-1], *re.split(r"[\r\n]", _without_erased(typed))[:-1]]
        return [found[1] for line in dict.fromkeys(lines) for found in escape.finditer(line)]

    def _entering(self, text: str) -> str:
        """Every key that makes a shell take the line, or open an editor on it, as Enter."""
        text = text.replace("\x0f", "\r")  # operate-and-get-next
        for key in _TAKES.get(self._pane.kind or "", ()):
            text = text.replace(key, key[:-1] + "\r")
        return text

    def _reader(self) -> Literal["shell", "lines", "keys"]:
        """Which program gets the typing: a shell, a program that reads lines from the kernel, or one that reads keys.

        Lines that a program does not read are the shell's next ones. A line that is not shown is an answer to the
        program: a password.
        """
        pane = self._pane
        if pane.is_at_prompt:
            return "shell"
        if pane.is_asking_secret:
            return "keys"
        process = pane.foreground()
        name = process.name if process is not None else ""
        is_shell = kind_of(name) is not None or name in CARRIERS
        if process is not None and process.pid == pane.pid and not pane.has_terminal:
            is_shell = False  # the first of a pipe has ended, and the shell is named in the place of its pager
        if is_shell or pane.kind is None:
            return "shell" if is_shell else "keys"
        if process is not None and not pane.reads_lines:
            self._key_reader = process.pid
        # A REPL lets the kernel collect lines while it computes.
        return "lines" if process is None or process.pid != self._key_reader else "keys"

    def _hear(self, event: events.PaneEvent) -> None:
        # Not when a command begins or ends: what was typed ahead of that moment is what the shell has next.
        self._changes += 1
        self._line.clear()
        self._ahead = ""


class AdmittedInput:
    """Input that was judged as a whole and is sent piece by piece.

    Each piece is noted when its bytes go out and not before: one that is refused, or that another sender comes before,
    changes nothing. When somebody else typed meanwhile, or another program reads, the rest is judged again.
    """

    def __init__(self, policy: PaneInputPolicy, pane: Pane, inputs: Sequence[TypedInput], approved: str) -> None:
        self._policy = policy
        self._pane = pane
        self._rest = list(inputs)
        self._approved = approved
        self._has_begun = False
        self._check()
        self._state = policy.state

    async def send(self, count: int | None = None) -> None:
        """Send so many of the inputs, or all that are left."""
        for each in self._rest[:count]:
            await self._pane.write(each.data, self._go_out)

    def _check(self) -> None:
        text = "".join(each.text for each in self._rest)
        self._policy.check(text, self._approved, is_exact=all(each.is_exact for each in self._rest))

    def _go_out(self) -> None:
        if self._policy.state != self._state:
            self._check_again()
        each = self._rest.pop(0)
        self._policy.note(each.text, is_exact=each.is_exact)
        self._has_begun = True
        self._state = self._policy.state

    def _check_again(self) -> None:
        try:
            self._check()
        except NeedsApproval as need:
            if not self._has_begun:
                raise
            # An approval repeats the call, and would type the first part twice.
            raise Conflict(
                f"pane {self._pane.id} changed while this was typed, and the rest of it was not sent: {need.message}",
                "look at the screen, and clear the line with C-c",
            ) from None


def _edits(ahead: str) -> bool:
    """Whether keys follow the first one that may have ended a program; those before it moved something there."""
    return re.search(r"[\x00-\x1f\x7f]", _MOVES.sub("", ahead)[1:]) is not None


def _without_erased(typed: str) -> str:
    """The text as it stands on a program's line after ^H and DEL."""
    if not re.search(r"[\x08\x7f]", typed):
        return typed
    kept: list[str] = []
    for character in typed:
        if character not in "\x08\x7f":
            kept.append(character)
        elif kept and kept[-1] not in "\r\n":
            kept.pop()
    return "".join(kept)


def _is_usual(shell: str) -> bool:
    """Whether the path is that of the shell which its name alone would find."""
    try:
        return os.path.realpath(shell) == os.path.realpath(find_shell(os.path.basename(shell)))
    except NotFound:
        return False


def _shown(text: str) -> str:
    """The text as a person may read it; of one too long its beginning, its size and its digest."""
    shown = escape_hidden(text.strip("\n"))
    if len(shown) <= SHOWN_CHARS:
        return f"`{shown}`"
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
    return f"`{shown[:SHOWN_CHARS]}…` ({len(text)} characters, sha256 {digest})"


@dataclass(frozen=True, slots=True)
class PendingText:
    """A text that is to run in a directory; `doubt` is a reason of the caller's own to ask."""

    text: str
    cwd: str
    dialect: Dialect = "bash"
    doubt: str = ""


def check_all(guard: PolicyEnforcer, texts: Sequence[PendingText], approved: str = "") -> dict[str, str]:
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
