"""The rules as they are now: one writer changes them, readers take the compiled set and never wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from dari.errors import Conflict, DariError, InvalidInput, NotFound
from dari.proxy.rules.explanation import Explanation, explain
from dari.proxy.rules.matchers import Matcher
from dari.proxy.rules.reach import Obstacle, newly_hidden, obstacles
from dari.proxy.rules.rule import KINDS, AnyRule, BreakpointRule, FaultRule, MapRemoteRule, Rule
from dari.proxy.rules.ruleset import HitCounts, RuleSet, matcher_of
from dari.proxy.rules.validation import check_rule, warnings_about
from dari.struct_types import ready

FILE_VERSION = 1


class RulesFile(Struct):
    version: int
    last_number: int = 0
    rules: list[msgspec.Raw] = []
    hits: dict[str, int] = {}


class LoadedRules(NamedTuple):
    rules: list[tuple[AnyRule, Matcher]]
    last_number: int
    hits: dict[str, int]
    notes: tuple[str, ...]


def encode_rules(rules: Iterable[AnyRule], last_number: int, hits: dict[str, int]) -> bytes:
    raw = [msgspec.Raw(msgspec.json.encode(rule)) for rule in rules]
    return msgspec.json.encode(RulesFile(FILE_VERSION, last_number, raw, hits))


def decode_rules(data: bytes) -> LoadedRules:
    """Rules that cannot be read are left out with a note: one bad rule must not cost the others."""
    try:
        state = msgspec.json.decode(data, type=ready(RulesFile))
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise InvalidInput(f"the saved rules cannot be read: {wrong}", "move the file away to start empty") from None
    if state.version > FILE_VERSION:
        raise InvalidInput(
            f"the saved rules are of version {state.version}; this Dari reads {FILE_VERSION}", "install a newer Dari"
        )
    rules: dict[str, tuple[AnyRule, Matcher]] = {}
    notes: list[str] = []
    last_number = max(state.last_number, 0)
    for place, raw in enumerate(state.rules, 1):
        try:
            rule, extra = _decode_rule(raw)
            rule_id = rule.id
            if not rule_id or rule_id in rules:
                last_number += 1
                rule_id = f"r{last_number}"
                rule = msgspec.structs.replace(rule, id=rule_id)
            rules[rule_id] = (rule, matcher_of(rule))
        except (msgspec.DecodeError, DariError, KeyError) as wrong:
            notes.append(f"rule {place} left out: {wrong}")
            continue
        if extra:
            notes.append(f"rule {rule_id}: unknown {', '.join(extra)} ignored")
    numbers = [int(rule_id[1:]) for rule_id in rules if rule_id[1:].isascii() and rule_id[1:].isdigit()]
    return LoadedRules(list(rules.values()), max([last_number, *numbers]), state.hits, tuple(notes))


def _decode_rule(raw: msgspec.Raw) -> tuple[AnyRule, list[str]]:
    values: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, Any])
    kind = KINDS.get(str(values.get("kind")))
    if kind is None:
        raise InvalidInput(f"unknown kind {values.get('kind')!r}")
    rule = msgspec.json.decode(raw, type=ready(kind))
    return rule, sorted(values.keys() - set(kind.__struct_fields__) - {"kind"})


MAX_RULES = 10_000
MAX_REMOVED_RULES = 20
"""Kept to be brought back; a rule may hold 16 MiB of text."""
R = TypeVar("R", bound=Rule)


class RulesChanged(NamedTuple):
    """Sent to listeners once the new set is in force."""

    revision: int
    action: str
    ids: tuple[str, ...]


class RuleAdded(Struct, frozen=True):
    """The rule as stored, and what its author should know about it."""

    rule: AnyRule
    advice: tuple[str, ...] = ()
    """Likely mistakes in the rule itself."""
    obstacle: Obstacle | None = None
    """What keeps it from acting."""
    hidden: tuple[str, ...] = ()
    """The other rules that it keeps from acting, in words."""

    @property
    def reach(self) -> tuple[str, ...]:
        return (self.obstacle.sentence, *self.hidden) if self.obstacle is not None else self.hidden

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.advice, *self.reach)


class RulesWithHits(Struct, frozen=True):
    rule: AnyRule
    kind: str
    hits: int
    warnings: tuple[str, ...] = ()


class RemovedRule(NamedTuple):
    """A rule that `restore` brings back, in front of the one that followed it."""

    rule: AnyRule
    before: str | None
    hits: int


Listener = Callable[[RulesChanged], None]


class RuleStore:
    """`current` is the set in force: read it anew for each request; it is replaced whole, never changed."""

    def __init__(self) -> None:
        self._rules: dict[str, AnyRule] = {}
        self._matchers: dict[str, Matcher] = {}
        self._hits = HitCounts()
        self._removed: dict[str, RemovedRule] = {}
        self._listeners: dict[object, Listener] = {}
        self._last_number = 0
        self.revision = 0
        self.current = RuleSet(hits=self._hits)

    def __len__(self) -> int:
        return len(self._rules)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a function after every change; it only enqueues. Call what is returned to stop."""
        key = object()
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None

    def add(self, rule: AnyRule) -> RuleAdded:
        """Append a rule under a new id. Duplicates are kept, as in the original."""
        if len(self._rules) >= MAX_RULES:
            raise Conflict(f"there are {MAX_RULES} rules already", "remove some, or match several URLs with one glob")
        matcher, warnings = check_rule(rule)
        stored = msgspec.structs.replace(rule, id=f"r{self._last_number + 1}")
        reach = self._check_reach(stored, matcher, None)
        self._last_number += 1
        self._put(stored, matcher)
        self._changed("add", stored.id)
        return RuleAdded(stored, warnings, *reach)

    def get(self, rule_id: str) -> AnyRule:
        try:
            return self._rules[rule_id]
        except KeyError:
            raise NotFound(f"no rule has the id '{rule_id}'", "list the rules to see their ids") from None

    def update(self, rule_id: str, changes: dict[str, Any]) -> RuleAdded:
        """Change fields of a rule; its id, kind and place stay. Same checks as for a new one."""
        old = self.get(rule_id)
        fields = set(old.__struct_fields__) - {"id"}
        unknown = sorted(changes.keys() - fields)
        if unknown:
            raise InvalidInput(
                f"a {old.kind} rule has no field '{unknown[0]}' to change", f"it has: {', '.join(sorted(fields))}"
            )
        values = {name: getattr(old, name) for name in fields} | changes
        try:
            new = msgspec.convert({**values, "id": rule_id, "kind": old.kind}, ready(type(old)), from_attributes=True)
        except msgspec.ValidationError as wrong:
            raise InvalidInput(f"rule {rule_id}: {wrong}", "see the fields of this kind of rule") from None
        matcher, warnings = check_rule(new)
        reach = self._check_reach(new, matcher, old)
        self._put(new, matcher)
        self._changed("update", rule_id)
        return RuleAdded(new, warnings, *reach)

    def move(self, rule_id: str, before: str | None = None) -> AnyRule:
        """Put a rule in front of another one, or at the end: the first of a kind that matches wins."""
        rule = self.get(rule_id)
        if before is not None:
            self.get(before)
        if before != rule_id:
            self._place(rule_id, before)
            self._changed("move", rule_id)
        return rule

    def remove(self, rule_id: str) -> AnyRule:
        rule = self.get(rule_id)
        self._discard([rule])
        return rule

    def restore(self, rule_id: str) -> RuleAdded:
        """Bring a removed rule back: same id, place and hits. What a person granted it is not."""
        removed = self._removed.get(rule_id)
        if removed is None:
            raise NotFound(
                f"no removed rule '{rule_id}' is kept",
                f"the last {MAX_REMOVED_RULES} that were removed since the daemon started are: "
                f"{', '.join(self._removed) or 'none'}",
            )
        if len(self._rules) >= MAX_RULES:
            raise Conflict(f"there are {MAX_RULES} rules already", "remove some first")
        rule = removed.rule
        notes: tuple[str, ...] = ()
        if isinstance(rule, MapRemoteRule) and rule.keeps_credentials:
            rule = msgspec.structs.replace(rule, keeps_credentials=False)
            notes = (f"keeps_credentials is off again: dari proxy rules keep-credentials {rule_id} switches it on",)
        matcher = matcher_of(rule)
        own, hidden = self._reach(rule, matcher)
        del self._removed[rule_id]
        self._put(rule, matcher)
        self._place(rule_id, removed.before)
        self._hits.set(rule_id, removed.hits)
        self._changed("restore", rule_id)
        return RuleAdded(rule, (*warnings_about(rule, matcher), *notes), own, hidden)

    def remove_where(self, kind: type[R], matcher: str, keep: Callable[[R], bool] | None = None) -> int:
        """Remove all rules of a kind with that matcher text that `keep` does not spare; how many were removed."""
        text = matcher.strip()
        if not text:
            raise InvalidInput("matcher is empty", "give the matcher exactly as the rule was added, or remove by id")
        chosen = [
            rule
            for rule in self._rules.values()
            if isinstance(rule, kind) and text in (rule.matcher, rule.matcher.strip()) and not (keep and keep(rule))
        ]
        self._discard(chosen)
        return len(chosen)

    def clear(self, kind: str | None = None) -> int:
        """Remove all rules, or all of one kind; how many were removed."""
        chosen = self.rules(kind)
        self._discard(chosen)
        return len(chosen)

    def rules(self, kind: str | None = None) -> tuple[AnyRule, ...]:
        """In their order, which is the order in which they are tried: as added, unless moved."""
        if kind is not None and kind not in KINDS:
            raise InvalidInput(f"no kind of rule is called '{kind}'", f"kinds: {', '.join(KINDS)}")
        return tuple(rule for rule in self._rules.values() if kind is None or rule.kind == kind)

    def listed(self, kind: str | None = None) -> tuple[RulesWithHits, ...]:
        """The rules with their hit counts and warnings."""
        hidden = obstacles(self.current.live)

        def warnings(rule: AnyRule) -> Iterator[str]:
            yield from warnings_about(rule, self._matchers[rule.id])
            if rule.id in hidden:
                yield hidden[rule.id].sentence

        return tuple(
            RulesWithHits(rule, rule.kind, self._hits.of(rule.id), tuple(warnings(rule))) for rule in self.rules(kind)
        )

    def draft(self) -> RuleStore:
        """A copy to change and to save; `adopt` puts it in force. Nobody listens to it."""
        copy = RuleStore()
        copy._rules, copy._matchers = dict(self._rules), dict(self._matchers)
        copy._hits, copy._last_number = self._hits.copy(), self._last_number
        copy._removed = dict(self._removed)
        copy.revision, copy.current = self.revision, self.current
        return copy

    def adopt(self, draft: RuleStore) -> None:
        """Put the rules of a draft of this book in force, in one step."""
        gone = [rule_id for rule_id in self._rules if rule_id not in draft._rules]
        changed = [rule_id for rule_id, rule in draft._rules.items() if self._rules.get(rule_id) is not rule]
        if not gone and not changed and list(self._rules) == list(draft._rules):
            return
        for rule_id in self._removed.keys() & draft._rules.keys():
            self._hits.set(rule_id, self._removed[rule_id].hits)
        self._rules, self._matchers, self._last_number = draft._rules, draft._matchers, draft._last_number
        self._removed = draft._removed
        for rule_id in gone:
            self._hits.forget(rule_id)
        self._changed("remove" if gone else "change", *gone, *changed)

    def hits(self, rule_id: str) -> int:
        return self._hits.of(self.get(rule_id).id)

    def explain(self, url: str, method: str = "GET", *, has_ca: bool) -> Explanation:
        return explain(self.current, url, method, has_ca=has_ca)

    def dump_state(self) -> bytes:
        """Everything a restart must bring back."""
        return encode_rules(self._rules.values(), self._last_number, self._hits.snapshot())

    def load_state(self, data: bytes) -> tuple[str, ...]:
        """Replace all rules by those saved; notes say what could not be taken over. Bad data changes nothing."""
        saved = decode_rules(data)
        self._rules.clear()
        self._matchers.clear()
        for rule, matcher in saved.rules:
            self._put(rule, matcher)
        self._last_number = saved.last_number
        self._hits.replace({rule_id: count for rule_id, count in saved.hits.items() if rule_id in self._rules})
        self._changed("load", *self._rules)
        return saved.notes

    def _check_reach(
        self, new: AnyRule, matcher: Matcher, old: AnyRule | None
    ) -> tuple[Obstacle | None, tuple[str, ...]]:
        """What is in its way, and which rules it is in the way of.

        Raises for a breakpoint or fault that would never act: its author would wait for it in vain.
        """
        own, hidden = self._reach(new, matcher)
        if own is not None and own.extent == "all" and own.is_certain and isinstance(new, BreakpointRule | FaultRule):
            is_old = old is not None and old.enabled
            was = obstacles(self.current.live, (new.id,)).get(new.id) if is_old else None
            if was is None or was.extent != "all":
                raise InvalidInput(f"the rule cannot be reached: {own.reason}", own.fix)
        return own, hidden

    def _reach(self, new: AnyRule, matcher: Matcher) -> tuple[Obstacle | None, tuple[str, ...]]:
        before = self.current.live
        rules = {**self._rules, new.id: new}
        matchers = {**self._matchers, new.id: matcher}
        after = [(rule, matchers[rule.id]) for rule in rules.values() if rule.enabled]
        own = obstacles(after, (new.id,)).get(new.id)
        return own, tuple(newly_hidden(before, after, (new.id,)))

    def _put(self, rule: AnyRule, matcher: Matcher) -> None:
        self._rules[rule.id] = rule
        self._matchers[rule.id] = matcher

    def _place(self, rule_id: str, before: str | None) -> None:
        """In front of `before`; at the end for None and for a rule that is gone."""
        rule = self._rules.pop(rule_id)
        if before not in self._rules:
            self._rules[rule_id] = rule
            return
        placed: dict[str, AnyRule] = {}
        for other_id, other in self._rules.items():
            if other_id == before:
                placed[rule_id] = rule
            placed[other_id] = other
        self._rules = placed

    def _discard(self, rules: Iterable[AnyRule]) -> None:
        ids = tuple(rule.id for rule in rules)
        order = list(self._rules)
        followers = dict(pairwise(order))
        for rule_id in ids:
            self._removed[rule_id] = RemovedRule(self._rules[rule_id], followers.get(rule_id), self._hits.of(rule_id))
            del self._rules[rule_id], self._matchers[rule_id]
            self._hits.forget(rule_id)
        for rule_id in list(self._removed)[:-MAX_REMOVED_RULES]:
            del self._removed[rule_id]
        if ids:
            self._changed("remove", *ids)

    def _changed(self, action: str, *ids: str) -> None:
        self.revision += 1
        self.current = RuleSet(self._rules.values(), revision=self.revision, hits=self._hits, matchers=self._matchers)
        for listener in list(self._listeners.values()):
            listener(RulesChanged(self.revision, action, ids))
