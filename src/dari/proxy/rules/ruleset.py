"""The rules in force at one moment, compiled. Immutable for its readers: a change of rules makes a new one."""

from __future__ import annotations

from collections.abc import Iterable

from dari.proxy.rules.matched import RECORDED, Decryption, MatchedRules, StatusChange
from dari.proxy.rules.matchers import Matcher, read_matcher
from dari.proxy.rules.rule import AllowRule, AnyRule, StatusRewriteRule
from dari.proxy.rules.site import Site
from dari.proxy.rules.site_index import SiteIndex, tunnel_decision


class HitCounts:
    def __init__(self, counts: dict[str, int] | None = None) -> None:
        self._counts = dict(counts or {})

    def count(self, rule_id: str) -> None:
        self._counts[rule_id] = self._counts.get(rule_id, 0) + 1

    def of(self, rule_id: str) -> int:
        return self._counts.get(rule_id, 0)

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
            known = self._decryptions[connect_authority] = self._decryption(Site.of("https", connect_authority))
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
