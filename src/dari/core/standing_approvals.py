"""Standing approvals: rules by which a call of one kind needs no further answer of a person.

A rule is made from a call that waits, by the person who answers it with "always", and it always covers that call. It
names server and tool (and, by a hash, the program or address behind the server's name), and says of the caller, of each
argument and of the effect in words how a later call must agree:

    is      the very value; written down as its hash, since it may hold a secret
    like    a pattern: `*` stands for plain characters of one word, never for what a shell obeys, a space, an option at
            the start of a word, a name that begins with a dot, or `..`
    any     whatever it is; not for the effect in words, because then nothing says what would happen

A call with an argument that the rule does not name does not agree. The file is 0600 and has one writer, the hub: it is
read once, and a file that cannot be read, or that others may write, holds no rule. A part that denies a call by itself
never asks, so no rule lets such a call through.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from dari.core.jcs import digest
from dari.core.proposal_redaction import redact_proposal
from dari.errors import Conflict, InvalidInput, NotFound
from dari.paths import private_dir, write_private
from dari.struct_types import ready

if TYPE_CHECKING:
    from dari.core.approvals import ProposedCall
    from dari.core.audit.log import AuditLog

FILE_NAME = "standing-approvals.json"
PREFIX = "rule-"
MAX_RULES = 500
MAX_PATTERN_CHARS = 1000
MAX_VALUE_CHARS = 20_000
"""A longer value is like no pattern."""
MAX_SHOWN_CHARS = 400
MAX_FILE_BYTES = 16 * 1024 * 1024
MatchKind = Literal["is", "like", "any"]
_PLAIN = re.compile(r"[\w./:@%+=,-]*")
_WORD_START = re.compile(r"(?:^|[\s=:,;|&<>'\"`({])$")


class ArgumentMatch(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one value of a later call must agree."""

    kind: MatchKind = "is"
    text: str = ""
    """The pattern; of a value its text without secrets, for people."""
    sha256: str = ""
    """Of the value, for `is`."""

    def accepts(self, value: object) -> bool:
        if self.kind == "any":
            return True
        if self.kind == "is":
            return digest(value) == self.sha256
        return isinstance(value, str) and is_like(self.text, value)


class RuleDraft(Struct, frozen=True, kw_only=True):
    """What a person chooses. What is not named must be the very same as in the call that waits."""

    who: ArgumentMatch = ArgumentMatch()
    effect: ArgumentMatch = ArgumentMatch()
    arguments: dict[str, ArgumentMatch] = {}
    lasts_s: float = 0.0
    """0: until it is taken back."""


class StandingRule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    server: str
    tool: str
    identity: str = ""
    who: ArgumentMatch
    effect: ArgumentMatch
    arguments: dict[str, ArgumentMatch] = {}
    by: str = ""
    """The person who made it."""
    made_unix: float = 0.0
    expires_unix: float = 0.0
    """0: it does not expire."""

    def covers(self, call: ProposedCall) -> bool:
        given = named_arguments(call.arguments)
        return (
            (call.server, call.tool, call.identity) == (self.server, self.tool, self.identity)
            and given.keys() == self.arguments.keys()
            and self.who.accepts(call.who)
            and self.effect.accepts(call.message)
            and all(match.accepts(given[name]) for name, match in self.arguments.items())
        )


class RuleUse(Struct, frozen=True, kw_only=True):
    """A rule with what it did since the hub was started."""

    rule: StandingRule
    summary: str
    uses: int = 0
    last_used_unix: float = 0.0


class StandingApprovalList(Struct, frozen=True, kw_only=True):
    rules: list[RuleUse]
    file: str
    problem: str = ""
    """Why the rules of the file do not count; empty when they do."""


class _File(Struct, frozen=True):
    rules: list[StandingRule]
    version: int = 1


class StandingApprovals:
    """`audit` returns the log, or None where nothing is recorded."""

    def __init__(
        self,
        path: Path,
        audit: Callable[[], AuditLog | None] = lambda: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._audit = audit
        self._now = now
        self._rules, self.problem = _read(path)
        self._uses: dict[str, tuple[int, float]] = {}

    def listed(self) -> StandingApprovalList:
        """Those that count now, newest first."""
        self._forget_expired()
        found = []
        for rule in reversed(self._rules.values()):
            uses, last_unix = self._uses.get(rule.id, (0, 0.0))
            found.append(RuleUse(rule=rule, summary=describe_rule(rule), uses=uses, last_used_unix=last_unix))
        return StandingApprovalList(rules=found, file=str(self._path), problem=self.problem)

    def find(self, call: ProposedCall) -> StandingRule | None:
        """The rule that lets this call through, its use recorded; None when a person has to be asked."""
        now = self._now()
        for rule in self._rules.values():
            if (not rule.expires_unix or rule.expires_unix > now) and rule.covers(call):
                audit = self._audit()
                if audit is not None:
                    audit.check()  # what cannot be recorded is not done
                    detail = {"event": "call approved by rule", "rule": rule.id}
                    detail |= {"effect": call.message} if call.message else {}
                    names = {"server": call.server, "tool": call.tool, "session": call.session}
                    audit.note_decision(who=call.who, **names, **detail)
                self._uses[rule.id] = (self._uses.get(rule.id, (0, 0.0))[0] + 1, now)
                return rule
        return None

    def draft(self, call: ProposedCall, draft: RuleDraft, by: str) -> StandingRule:
        """The rule that this choice would make of the call; nothing is written."""
        given = named_arguments(call.arguments)
        if unknown := draft.arguments.keys() - given.keys():
            known = ", ".join(sorted(given)) or "none"
            raise InvalidInput(f"the call has no argument {min(unknown)!r}", f"its arguments: {known}")
        if call.message and draft.effect.kind == "any":
            raise InvalidInput(
                "the effect must be 'is' or 'like': only its words say what the call does",
                "name the part that stays the same, with * for a word; crux.toml allows commands in general",
            )
        if not 0 <= draft.lasts_s < float("inf"):
            raise InvalidInput(f"lasts_s must be 0 or more, got {draft.lasts_s:g}", "0 lasts until it is taken back")
        now = self._now()
        return StandingRule(
            id=PREFIX + secrets.token_hex(4),
            server=call.server,
            tool=call.tool,
            identity=call.identity,
            who=_made("who", draft.who, call.who),
            effect=_made("effect", _follow_patterns(draft, given, call.message), call.message),
            arguments={
                name: _made(name, draft.arguments.get(name, ArgumentMatch()), value) for name, value in given.items()
            },
            by=by,
            made_unix=now,
            expires_unix=now + draft.lasts_s if draft.lasts_s else 0.0,
        )

    def add(self, rule: StandingRule) -> None:
        """Write it down; when the disk does not take it, it does not count."""
        self._forget_expired()
        if self.problem:
            raise Conflict(
                f"the rules cannot be changed: {self.problem}", f"correct or remove {self._path} and restart"
            )
        if len(self._rules) >= MAX_RULES:
            raise Conflict(f"there may be {MAX_RULES} rules, there are {len(self._rules)}", "take some back first")
        self._write({**self._rules, rule.id: rule})

    def remove(self, id: str) -> StandingRule:
        """Take a rule back; calls of its kind ask again."""
        rule = self._rules.get(id)
        if rule is None:
            raise NotFound(f"no rule has the id {id[:40]!r}", "see the rules: dari approvals rules")
        self._write({name: each for name, each in self._rules.items() if name != id})
        return rule

    def _forget_expired(self) -> None:
        now = self._now()
        self._rules = {id: rule for id, rule in self._rules.items() if not rule.expires_unix or rule.expires_unix > now}

    def _write(self, rules: dict[str, StandingRule]) -> None:
        private_dir(self._path.parent)
        write_private(self._path, msgspec.json.format(msgspec.json.encode(_File(list(rules.values()))), indent=2))
        self._rules = rules


def named_arguments(arguments: object) -> Mapping[str, object]:
    """The arguments by name; what is not an object has none, and counts as one argument."""
    if isinstance(arguments, dict):
        return arguments
    return {} if arguments is None else {"": arguments}


def is_like(pattern: str, value: str) -> bool:
    """Whether the value is the pattern, with plain characters for each `*`."""
    if len(value) > MAX_VALUE_CHARS or value.count("..") > pattern.count(".."):
        return False
    first, *rest = pattern.split("*")
    if not value.startswith(first):
        return False
    at, before = len(first), first
    for number, literal in enumerate(rest, 1):
        # The leftmost place: what it misses is asked about once more, which is the safe side.
        is_last = number == len(rest)
        end = len(value) - len(literal) if is_last and value.endswith(literal) else value.find(literal, at)
        if end < at or (is_last and end + len(literal) != len(value)) or not _is_plain(before, value[at:end]):
            return False
        at, before = end + len(literal), literal
    return at == len(value)


def describe_rule(rule: StandingRule) -> str:
    """The rule as one sentence."""
    said = [f"{rule.server}/{rule.tool}", f"called by {_said(rule.who, 'anybody')}"]
    if rule.effect.text or rule.effect.kind == "like":
        said.append(f"to {_said(rule.effect, 'do anything')}")
    said += [f"{name or 'value'} {_said(match, 'anything')}" for name, match in rule.arguments.items()]
    return ", ".join(said)


def _said(match: ArgumentMatch, anything: str) -> str:
    if match.kind == "any":
        return anything
    return f"like {match.text}" if match.kind == "like" else match.text


def _is_plain(before: str, text: str) -> bool:
    is_start = _WORD_START.search(before) is not None
    if is_start and text.startswith("-"):
        return False  # `git log *` must not pass `--output=…`
    if "/." in text or (text.startswith(".") and (is_start or before.endswith("/"))):
        return False  # `/home/ann/*` must not reach `/home/ann/.ssh`
    return _PLAIN.fullmatch(text) is not None


def _follow_patterns(draft: RuleDraft, given: Mapping[str, object], message: str) -> ArgumentMatch:
    """Words that quote an argument as `this` follow the pattern of that argument, unless the person says otherwise."""
    words = message
    for name, match in draft.arguments.items():
        if match.kind == "like" and isinstance(given[name], str):
            words = words.replace(f"`{given[name]}`", f"`{match.text}`")
    return ArgumentMatch(kind="like", text=words) if words != message and draft.effect.kind == "is" else draft.effect


def _made(name: str, match: ArgumentMatch, value: object) -> ArgumentMatch:
    if match.kind == "any":
        return ArgumentMatch(kind="any")
    if match.kind == "is":
        return ArgumentMatch(text=_shown(value), sha256=digest(value))
    if not match.text or len(match.text) > MAX_PATTERN_CHARS:
        raise InvalidInput(
            f"the pattern for {name!r} must have 1 to {MAX_PATTERN_CHARS} characters, got {len(match.text)}",
            "use 'any' for whatever it is",
        )
    if not isinstance(value, str):
        raise InvalidInput(f"{name!r} is not a text, so no pattern fits it", "use 'is' or 'any'")
    if not is_like(match.text, value):
        raise InvalidInput(
            f"{_shown(value)!r} is not like {match.text[:MAX_SHOWN_CHARS]!r}, so the rule would not cover this call",
            "* stands for letters, digits and ./:@%+=,-_ inside one word",
        )
    return ArgumentMatch(kind="like", text=match.text)


def _shown(value: object) -> str:
    shown = redact_proposal(value)
    text = shown if isinstance(shown, str) else msgspec.json.encode(shown).decode()
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _read(path: Path) -> tuple[dict[str, StandingRule], str]:
    """The rules, or why they do not count."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        return {}, f"{path} cannot be read: {error.strerror}"
    with open(file, "rb") as stream:
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
            return {}, f"{path} must be a file of yours that nobody else may write"
        data = stream.read(MAX_FILE_BYTES + 1)
    try:
        rules = msgspec.json.decode(data, type=ready(_File)).rules
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return {}, f"{path} does not hold rules: {error}"
    return {rule.id: rule for rule in rules[:MAX_RULES]}, ""
