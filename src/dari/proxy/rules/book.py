"""The rules as they are now: one writer changes them, readers take the compiled set and never wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from dari.errors import Conflict, InvalidInput, NotFound
from dari.proxy.rules import state
from dari.proxy.rules.advice import warnings_about
from dari.proxy.rules.explanation import Explanation, explain
from dari.proxy.rules.hits import Hits
from dari.proxy.rules.matchers import Matcher
from dari.proxy.rules.reach import Obstacle, newly_hidden, obstacles
from dari.proxy.rules.rule import KINDS, AnyRule, Breakpoint, Fault, Rule
from dari.proxy.rules.ruleset import RuleSet
from dari.proxy.rules.validation import checked

MAX_RULES = 10_000
R = TypeVar("R", bound=Rule)


class RulesChanged(NamedTuple):
    """Told to listeners after the new set is in force."""

    revision: int
    action: str
    ids: tuple[str, ...]


class Added(Struct, frozen=True):
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


class Listed(Struct, frozen=True):
    rule: AnyRule
    kind: str
    hits: int
    warnings: tuple[str, ...] = ()


Listener = Callable[[RulesChanged], None]


class RuleBook:
    """`current` is the set in force: read it anew for each request; it is replaced whole, never changed."""

    def __init__(self) -> None:
        self._rules: dict[str, AnyRule] = {}
        self._matchers: dict[str, Matcher] = {}
        self._hits = Hits()
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

    def add(self, rule: AnyRule) -> Added:
        """Append a rule under a new id. Duplicates are kept, as in the original."""
        if len(self._rules) >= MAX_RULES:
            raise Conflict(f"there are {MAX_RULES} rules already", "remove some, or match several URLs with one glob")
        matcher, warnings = checked(rule)
        stored = msgspec.structs.replace(rule, id=f"r{self._last_number + 1}")
        reach = self._check_reach(stored, matcher, None)
        self._last_number += 1
        self._put(stored, matcher)
        self._changed("add", stored.id)
        return Added(stored, warnings, *reach)

    def get(self, rule_id: str) -> AnyRule:
        try:
            return self._rules[rule_id]
        except KeyError:
            raise NotFound(f"no rule with id '{rule_id}'", "list the rules to see their ids") from None

    def update(self, rule_id: str, changes: dict[str, Any]) -> Added:
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
            new = msgspec.convert({**values, "id": rule_id, "kind": old.kind}, type(old), from_attributes=True)
        except msgspec.ValidationError as wrong:
            raise InvalidInput(f"rule {rule_id}: {wrong}", "see the fields of this kind of rule") from None
        matcher, warnings = checked(new)
        reach = self._check_reach(new, matcher, old)
        self._put(new, matcher)
        self._changed("update", rule_id)
        return Added(new, warnings, *reach)

    def set_enabled(self, rule_id: str, enabled: bool) -> AnyRule:
        """Switch a rule on or off without another look at its values."""
        self._rules[rule_id] = msgspec.structs.replace(self.get(rule_id), enabled=enabled)
        self._changed("enable" if enabled else "disable", rule_id)
        return self._rules[rule_id]

    def remove(self, rule_id: str) -> AnyRule:
        rule = self.get(rule_id)
        self._discard([rule])
        return rule

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
        """In the order they were added, which is the order in which they are tried."""
        if kind is not None and kind not in KINDS:
            raise InvalidInput(f"no kind of rule is called '{kind}'", f"kinds: {', '.join(KINDS)}")
        return tuple(rule for rule in self._rules.values() if kind is None or rule.kind == kind)

    def listed(self, kind: str | None = None) -> tuple[Listed, ...]:
        """The rules with their hit counts and warnings."""
        hidden = obstacles(self.current.live)

        def warnings(rule: AnyRule) -> Iterator[str]:
            yield from warnings_about(rule, self._matchers[rule.id])
            if rule.id in hidden:
                yield hidden[rule.id].sentence

        return tuple(
            Listed(rule, rule.kind, self._hits.of(rule.id), tuple(warnings(rule))) for rule in self.rules(kind)
        )

    def draft(self) -> RuleBook:
        """A copy to change and to save; `adopt` puts it in force. Nobody listens to it."""
        copy = RuleBook()
        copy._rules, copy._matchers = dict(self._rules), dict(self._matchers)
        copy._hits, copy._last_number = self._hits.copy(), self._last_number
        copy.revision, copy.current = self.revision, self.current
        return copy

    def adopt(self, draft: RuleBook) -> None:
        """Put the rules of a draft of this book in force, in one step."""
        gone = [rule_id for rule_id in self._rules if rule_id not in draft._rules]
        changed = [rule_id for rule_id, rule in draft._rules.items() if self._rules.get(rule_id) is not rule]
        if not gone and not changed:
            return
        self._rules, self._matchers, self._last_number = draft._rules, draft._matchers, draft._last_number
        for rule_id in gone:
            self._hits.forget(rule_id)
        self._changed("remove" if gone else "change", *gone, *changed)

    def hits(self, rule_id: str) -> int:
        return self._hits.of(self.get(rule_id).id)

    def explain(self, url: str, method: str = "GET", *, has_ca: bool) -> Explanation:
        return explain(self.current, url, method, has_ca=has_ca)

    def dump_state(self) -> bytes:
        """Everything a restart must bring back."""
        return state.encode(self._rules.values(), self._last_number, self._hits.snapshot())

    def load_state(self, data: bytes) -> tuple[str, ...]:
        """Replace all rules by those saved; notes say what could not be taken over. Bad data changes nothing."""
        saved = state.decode(data)
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
        before = self.current.live
        rules = {**self._rules, new.id: new}
        matchers = {**self._matchers, new.id: matcher}
        after = [(rule, matchers[rule.id]) for rule in rules.values() if rule.enabled]
        own = obstacles(after, (new.id,)).get(new.id)
        if own is not None and own.extent == "all" and own.is_certain and isinstance(new, Breakpoint | Fault):
            was = obstacles(before, (new.id,)).get(new.id) if old is not None and old.enabled else None
            if was is None or was.extent != "all":
                raise InvalidInput(f"the rule cannot be reached: {own.reason}", own.fix)
        return own, tuple(newly_hidden(before, after, (new.id,)))

    def _put(self, rule: AnyRule, matcher: Matcher) -> None:
        self._rules[rule.id] = rule
        self._matchers[rule.id] = matcher

    def _discard(self, rules: Iterable[AnyRule]) -> None:
        ids = tuple(rule.id for rule in rules)
        for rule_id in ids:
            del self._rules[rule_id], self._matchers[rule_id]
            self._hits.forget(rule_id)
        if ids:
            self._changed("remove", *ids)

    def _changed(self, action: str, *ids: str) -> None:
        self.revision += 1
        self.current = RuleSet(self._rules.values(), revision=self.revision, hits=self._hits, matchers=self._matchers)
        for listener in list(self._listeners.values()):
            listener(RulesChanged(self.revision, action, ids))
