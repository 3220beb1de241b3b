"""The rules in force at one moment, compiled. Immutable for its readers: a change of rules makes a new one.

`SiteIndex` holds the rules that can concern one site, reduced to conditions on the target, behind one cheap filter. It
is made once per scheme and authority: a request that no rule concerns costs two dictionary look-ups, with one rule or
with a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from dari.proxy.rules.conditions import Condition
from dari.proxy.rules.matched import RECORDED, SILENT, Decryption, MatchedRules, StatusChange
from dari.proxy.rules.matchers import Matcher, read_matcher
from dari.proxy.rules.rule import AllowRule, AnyRule, MapRemoteRule, StatusRewriteRule
from dari.proxy.rules.site import Site, destination_problem


class HitCounts:
    def __init__(self, counts: dict[str, int] | None = None) -> None:
        self._counts = dict(counts or {})

    def count(self, rule_id: str) -> None:
        self._counts[rule_id] = self._counts.get(rule_id, 0) + 1

    def of(self, rule_id: str) -> int:
        return self._counts.get(rule_id, 0)

    def set(self, rule_id: str, count: int) -> None:
        self._counts[rule_id] = count

    def forget(self, rule_id: str) -> None:
        self._counts.pop(rule_id, None)

    def copy(self) -> HitCounts:
        return HitCounts(self._counts)

    def snapshot(self) -> dict[str, int]:
        return dict(self._counts)

    def replace(self, counts: dict[str, int]) -> None:
        self._counts = dict(counts)


MAX_SITES = 2048
"""Short lists kept; a client that walks through random hosts makes us start over, not grow."""


class RuleSet:
    """Answers for the engine. `rules` holds the disabled ones too, for explanations."""

    __slots__ = (
        "rules",
        "matchers",
        "revision",
        "rewrites_status",
        "live",
        "_records_all",
        "_hits",
        "_sites",
        "_decryptions",
    )

    def __init__(
        self,
        rules: Iterable[AnyRule] = (),
        *,
        revision: int = 0,
        hits: HitCounts | None = None,
        matchers: dict[str, Matcher] | None = None,
    ) -> None:
        self.rules = tuple(rules)
        self.revision = revision
        known = matchers or {}
        self.matchers = {rule.id: known.get(rule.id) or matcher_of(rule) for rule in self.rules}
        self.live = tuple((rule, self.matchers[rule.id]) for rule in self.rules if rule.enabled)
        """The enabled ones, in order."""
        self._records_all = not any(type(rule) is AllowRule for rule, _ in self.live)
        self.rewrites_status = any(type(rule) is StatusRewriteRule for rule, _ in self.live)
        """Whether a response has to be looked at again."""
        self._hits = hits if hits is not None else HitCounts()
        self._sites: dict[tuple[str, str], SiteIndex] = {}
        self._decryptions: dict[str, Decryption] = {}

    def decide(self, method: str, scheme: str, authority: str, target: str) -> MatchedRules:
        """What to do with a request, counted as a hit of every rule that acts on it.

        `authority` is the request's own (Host header inside a decrypted tunnel), `target` path and query.
        """
        if not self.live:
            return RECORDED
        shortlist = self._sites.get((scheme, authority)) or self._shorten(scheme, authority)
        decision = shortlist.answer(method, target)
        if decision.allowed_by is not None:
            self._hits.count(decision.allowed_by)
        for rule_id in decision.rule_ids:
            self._hits.count(rule_id)
        return decision

    def preview(self, method: str, scheme: str, authority: str, target: str) -> MatchedRules:
        """The same answer, without counting."""
        shortlist = self._sites.get((scheme, authority)) or self._shorten(scheme, authority)
        return shortlist.answer(method, target)

    def status_for(self, decision: MatchedRules, status: int) -> StatusChange | None:
        """The status the client shall see instead, counted as a hit; None to leave it."""
        change = decision.status_for(status) if decision.status_rewrites else None
        if change is not None:
            self._hits.count(change.rule.id)
        return change

    def decrypts(self, connect_authority: str) -> Decryption:
        """Shall a CONNECT to this authority be decrypted? (Only if there is a CA, which the engine knows.)"""
        known = self._decryptions.get(connect_authority)
        if known is None:
            if len(self._decryptions) >= MAX_SITES:
                self._decryptions.clear()
            plain = Site.of("http", connect_authority)
            known = self._decryption(Site.of("https", connect_authority))
            reads_plain = known.wanted or any(matcher.names(plain) for _, matcher in self.live)
            known = self._decryptions[connect_authority] = known._replace(reads_plain=reads_plain)
        return known

    def decide_tunnel(self, connect_authority: str, *, counts: bool = True) -> MatchedRules:
        """What to do with a connection that stays encrypted; always recorded, as one tunnel.

        Only block, delay and fault rules that cover the whole host can act on it: there is no path to look at.
        """
        if not self.live:
            return RECORDED
        site = Site.of("https", connect_authority)
        if not self._records_all and not any(
            type(rule) is AllowRule and matcher.names(site) for rule, matcher in self.live
        ):
            return RECORDED
        decision = tunnel_decision(site, self.live)
        for rule_id in decision.rule_ids if counts else ():
            self._hits.count(rule_id)
        return decision

    def _decryption(self, site: Site) -> Decryption:
        naming = [rule for rule, matcher in self.live if matcher.names(site)]
        for rule in sorted(naming, key=lambda rule: type(rule) is not AllowRule):
            return Decryption(True, f"{rule.kind} rule {rule.id} ({rule.matcher}) names the host", rule.id)
        if self._records_all:
            return Decryption(False, "the allow list is empty and no rule names the host")
        return Decryption(False, "host not in allow list, and no rule names it")

    def _shorten(self, scheme: str, authority: str) -> SiteIndex:
        if len(self._sites) >= MAX_SITES:
            self._sites.clear()
        shortlist = SiteIndex(Site.of(scheme, authority), self.live, records_all=self._records_all)
        self._sites[scheme, authority] = shortlist
        return shortlist


def matcher_of(rule: AnyRule) -> Matcher:
    """Raises InvalidInput for a regex that cannot be."""
    return read_matcher(rule.matcher, rule.matcher_kind, is_allow=type(rule) is AllowRule)


SEES_TUNNELS = frozenset({"block", "delay", "fault"})


class SiteRule(NamedTuple):
    """One rule at one site; `place` keeps the order in which rules were added."""

    place: int
    condition: Condition
    method: str | None
    rule: AnyRule

    def fits(self, method: str, target: str) -> bool:
        return (self.method is None or self.method == method) and self.condition.holds(target)


class SiteIndex:
    """Answers for one site."""

    __slots__ = ("_plain", "_allow", "_by_prefix", "_lengths", "_filter", "_filter_chars")

    def __init__(self, site: Site, rules: Iterable[tuple[AnyRule, Matcher]], *, records_all: bool) -> None:
        self._allow: list[SiteRule] = []
        self._by_prefix: dict[str, list[SiteRule]] = {}
        for place, (rule, matcher) in enumerate(rules):
            condition = matcher.narrow(site)
            if condition is not None:
                entry = SiteRule(place, condition, rule.method and rule.method.upper(), rule)
                is_allow = type(rule) is AllowRule
                (self._allow if is_allow else self._by_prefix.setdefault(condition.prefix, [])).append(entry)
        self._plain = self._without_rules(records_all)
        self._lengths = tuple(sorted({len(prefix) for prefix in self._by_prefix}))
        self._filter_chars = self._lengths[0] if self._lengths else 0
        self._filter = _prefixes_by_start(self._by_prefix, self._filter_chars)

    def answer(self, method: str, target: str) -> MatchedRules:
        decision = self._plain or self._allowed(method, target)
        if not decision.is_recorded:
            return decision
        # A necessary condition in one look-up and one call into C; what passes is examined exactly.
        prefixes = self._filter.get(target[: self._filter_chars])
        if prefixes is None or not target.startswith(prefixes):
            return decision
        return self._examined(method, target, decision.allowed_by) or decision

    def _without_rules(self, records_all: bool) -> MatchedRules | None:
        """The answer when no rule fits; None if the path decides whether it is allowed."""
        if records_all:
            return RECORDED
        if not self._allow:
            return SILENT
        first = self._allow[0]
        is_enough = first.method is None and first.condition.covers_all
        return MatchedRules(allowed_by=first.rule.id) if is_enough else None

    def _allowed(self, method: str, target: str) -> MatchedRules:
        for entry in self._allow:
            if entry.fits(method, target):
                return MatchedRules(allowed_by=entry.rule.id)
        return SILENT

    def _examined(self, method: str, target: str, allowed_by: str | None) -> MatchedRules | None:
        """The rules that fit, put together; None if there is none."""
        fitting: list[SiteRule] = []
        for length in self._lengths:
            if length > len(target):
                break
            entries = self._by_prefix.get(target[:length], ())
            fitting.extend(entry for entry in entries if entry.fits(method, target))
        if not fitting:
            return None
        found: dict[str, list[SiteRule]] = {}
        for entry in sorted(fitting, key=lambda entry: entry.place):
            found.setdefault(entry.rule.kind, []).append(entry)
        return _assembled(found, target, allowed_by)


def tunnel_decision(site: Site, rules: Iterable[tuple[AnyRule, Matcher]]) -> MatchedRules:
    """The rules that need no look inside."""
    found: dict[str, list[SiteRule]] = {}
    for place, (rule, matcher) in enumerate(rules):
        if rule.kind in SEES_TUNNELS and (rule.method or "CONNECT").upper() == "CONNECT":
            condition = matcher.narrow(site)
            if condition is not None and condition.covers_all:
                found.setdefault(rule.kind, []).append(SiteRule(place, condition, None, rule))
    return _assembled(found, "", None) if found else RECORDED


def _prefixes_by_start(prefixes: Iterable[str], chars: int) -> dict[str, tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for prefix in sorted(prefixes):
        group = groups.setdefault(prefix[:chars], [])
        if not group or not prefix.startswith(group[-1]):  # a shorter prefix covers a longer one
            group.append(prefix)
    return {start: tuple(group) for start, group in groups.items()}


def _assembled(found: dict[str, list[SiteRule]], target: str, allowed_by: str | None) -> MatchedRules:
    """First match wins inside a kind; header and body edits add up. Local answers come before map_remote."""
    chosen: dict[str, Any] = {}
    used: list[AnyRule] = []

    def take(field: str, entries: list[SiteRule]) -> None:
        if entries:
            chosen[field] = entries[0].rule
            used.append(entries[0].rule)

    def take_all(kind: str, on: str) -> list[Any]:
        rules = [entry.rule for entry in found.get(kind, ()) if getattr(entry.rule, "on", None) == on]
        used.extend(rules)
        return rules

    if "block" in found:
        take("block", found["block"])
        return MatchedRules(allowed_by=allowed_by, rule_ids=(used[0].id,), **chosen)
    for on in ("request", "response"):
        stops = [entry for entry in found.get("breakpoint", ()) if getattr(entry.rule, "on", None) == on]
        take(f"{on}_breakpoint", stops)
        chosen[f"{on}_edits"] = tuple(edit for rule in take_all("header_rewrite", on) for edit in rule.edits)
        chosen[f"{on}_bodies"] = tuple(take_all("body_replace", on))
    for kind in ("delay", "fault"):
        take(kind, found.get(kind, []))
    answering = next((kind for kind in ("map_local", "mock", "map_remote") if kind in found), None)
    if answering is not None:
        take(answering, found[answering])
        if answering == "map_remote":
            chosen |= _mapping(found[answering][0], target)
    statuses = tuple(e.rule for e in found.get("status_rewrite", ()) if isinstance(e.rule, StatusRewriteRule))
    return MatchedRules(
        allowed_by=allowed_by, status_rewrites=statuses, rule_ids=tuple(rule.id for rule in used), **chosen
    )


def _mapping(entry: SiteRule, target: str) -> dict[str, str | None]:
    assert isinstance(entry.rule, MapRemoteRule)
    url = entry.condition.mapped(entry.rule.destination.strip(), target)
    return {"mapped_url": url, "map_remote_problem": destination_problem(url)}
