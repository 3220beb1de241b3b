"""Why a URL is (not) recorded, decrypted, mapped: the answer of `rules_test`. Counts no hit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from dari.errors import InvalidInput
from dari.proxy.rules.matched import Decryption, MatchedRules
from dari.proxy.rules.rule import KINDS, AllowRule, AnyRule
from dari.proxy.rules.ruleset import RuleSet
from dari.proxy.rules.site import DEFAULT_PORTS, SCHEMES, Site, split_authority
from dari.proxy.rules.validation import warnings_about

MAX_MISSES = 20
"""Per kind; rules that nearly match come first, the rest is counted."""
_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*)://|(?![A-Za-z][A-Za-z0-9+.-]*://))([^/?#\s]+)([^#\s]*)(#.*)?")

Verdict = Literal["applies", "disabled", "method differs", "earlier rule wins", "does not match", "not reached"]
_NEAR: tuple[Verdict, ...] = ("disabled", "method differs", "earlier rule wins", "not reached", "does not match")


class RuleVerdict(Struct, frozen=True):
    """One rule and what becomes of it."""

    id: str
    matcher: str
    verdict: Verdict
    detail: str = ""


class KindReport(Struct, frozen=True):
    """`matched` are the rules of this kind that apply (more than one only for header and body edits)."""

    kind: str
    matched: tuple[RuleVerdict, ...]
    others: tuple[RuleVerdict, ...]
    others_left_out: int = 0


class Explanation(Struct, frozen=True):
    """`is_decrypted` is None for plain HTTP. Rules act only on what is recorded and readable."""

    url: str
    method: str
    is_recorded: bool
    recorded_because: str
    is_decrypted: bool | None
    decrypted_because: str
    rules_apply: bool
    mapped_url: str | None
    kinds: tuple[KindReport, ...]
    hints: tuple[str, ...]


def explain(rules: RuleSet, url: str, method: str = "GET", *, has_ca: bool) -> Explanation:
    """What would happen to a request of this URL now. `has_ca`: could we decrypt at all?"""
    site, target, notes = parse_url(url)
    method = method.strip().upper() or "GET"
    decision = rules.preview(method, site.scheme, site.authority, target)
    decryption = rules.decrypts(_connect_authority(site)) if site.scheme == "https" else None
    is_decrypted = None if decryption is None else decryption.wanted and has_ca
    reports = tuple(_report(rules, kind, site, target, method, decision) for kind in KINDS)
    recorded, because = _recording(rules, decision, is_decrypted)
    return Explanation(
        url=f"{site.scheme}://{site.authority}{target}",
        method=method,
        is_recorded=recorded,
        recorded_because=because,
        is_decrypted=is_decrypted,
        decrypted_because=_decryption_reason(decryption, has_ca),
        rules_apply=decision.is_recorded and is_decrypted is not False,
        mapped_url=decision.mapped_url,
        kinds=tuple(report for report in reports if report.matched or report.others),
        hints=(*notes, *_hints(rules, decision, decryption, site, has_ca), *_tunnel_hints(rules, site, is_decrypted)),
    )


def parse_url(url: str) -> tuple[Site, str, list[str]]:
    """Site and target as a client would send them, with notes on what was assumed."""
    found = _URL.fullmatch(url.strip())
    scheme = SCHEMES.get((found[1] or "https").lower()) if found is not None else None
    if found is None or scheme is None:
        raise InvalidInput(f"'{url}' is not an http or https URL", "give a URL such as https://example.com/path?x=1")
    notes = [] if found[1] else ["no scheme given: https assumed"]
    authority = found[2].rpartition("@")[2]
    host, port = split_authority(authority)
    if not host:
        raise InvalidInput(f"'{url}' has no host", "give a URL such as https://example.com/path?x=1")
    if port is not None and port == DEFAULT_PORTS[scheme]:
        authority = authority.rpartition(":")[0]
        notes.append(f"port {port} left out, as clients do in the Host header")
    if found[4]:
        notes.append("the fragment after # is never sent")
    target = found[3] if found[3].startswith("/") else "/" + found[3]
    return Site.of(scheme, authority), target, notes


def _connect_authority(site: Site) -> str:
    host = f"[{site.host}]" if ":" in site.host else site.host
    return f"{host}:{site.port}"


def _recording(rules: RuleSet, decision: MatchedRules, is_decrypted: bool | None) -> tuple[bool, str]:
    if is_decrypted is False:
        return True, "as a tunnel only: host, sizes and times, no content"
    if decision.allowed_by is not None:
        return True, f"allow rule {decision.allowed_by} matches"
    if decision.is_recorded:
        return True, "without an allow rule everything is recorded"
    return False, "the allow list has rules and none matches: it is proxied silently, without rules"


def _decryption_reason(decryption: Decryption | None, has_ca: bool) -> str:
    if decryption is None:
        return "plain http needs no decryption"
    if not has_ca:
        return "no CA" if decryption.wanted else f"no CA, and {decryption.reason}"
    return decryption.reason


def _report(rules: RuleSet, kind: str, site: Site, target: str, method: str, decision: MatchedRules) -> KindReport:
    acting = {decision.allowed_by, *decision.rule_ids, *(rule.id for rule in decision.status_rewrites)}
    matched: list[RuleVerdict] = []
    others: list[RuleVerdict] = []
    for rule in rules.rules:
        if rule.kind != kind:
            continue
        if rule.id in acting:
            matched.append(RuleVerdict(rule.id, rule.matcher, "applies", _effect(rule)))
        else:
            others.append(_miss(rules, rule, site, target, method, matched, decision))
    others.sort(key=lambda finding: _NEAR.index(finding.verdict))
    return KindReport(kind, tuple(matched), tuple(others[:MAX_MISSES]), max(0, len(others) - MAX_MISSES))


def _miss(
    rules: RuleSet,
    rule: AnyRule,
    site: Site,
    target: str,
    method: str,
    matched: list[RuleVerdict],
    decision: MatchedRules,
) -> RuleVerdict:
    """The reason closest to a match: a disabled rule that would not match is reported as not matching."""

    def finding(verdict: Verdict, detail: str = "") -> RuleVerdict:
        return RuleVerdict(rule.id, rule.matcher, verdict, detail)

    condition = rules.matchers[rule.id].narrow(site)
    if condition is None:
        return finding("does not match", "another scheme, host or port")
    if not condition.holds(target):
        return finding("does not match", "another path or query")
    if not rule.enabled:
        return finding("disabled")
    if rule.method is not None and rule.method.upper() != method:
        return finding("method differs", f"it wants {rule.method.upper()}, this is {method}")
    if not decision.is_recorded:
        return finding("not reached", "the allow list leaves this request out")
    if matched:
        return finding("earlier rule wins", f"rule {matched[0].id}")
    return finding("not reached", f"rule {', '.join(decision.rule_ids)} answers first")


def _effect(rule: AnyRule) -> str:
    shown = {name: getattr(rule, name) for name in rule.__struct_fields__ if name in _SHOWN}
    return ", ".join(f"{name} {value}" for name, value in shown.items() if value is not None)


_SHOWN = frozenset(
    {"destination", "status_code", "from_status_code", "to_status_code", "delay_ms", "mode", "on", "time_limit_s"}
)


def _hints(
    rules: RuleSet, decision: MatchedRules, decryption: Decryption | None, site: Site, has_ca: bool
) -> Iterator[str]:
    if decryption is not None and not decryption.wanted:
        yield f"add an allow rule for {site.host} to see and change its content"
    if decryption is not None and not has_ca:
        yield "generate or load a CA, and make the client trust it"
    if not decision.is_recorded and any(rule.enabled and not isinstance(rule, AllowRule) for rule in rules.rules):
        yield f"rules see only what the allow list lets in: add an allow rule for {site.host}"
    if decision.map_remote_problem is not None:
        yield f"{decision.map_remote_problem}: the answer will be 502"
    for rule in rules.rules:
        if rule.id in decision.rule_ids:
            yield from (f"rule {rule.id}: {text}" for text in warnings_about(rule, rules.matchers[rule.id]))


def _tunnel_hints(rules: RuleSet, site: Site, is_decrypted: bool | None) -> Iterator[str]:
    if is_decrypted is not False:
        return
    for rule_id in rules.decide_tunnel(_connect_authority(site), counts=False).rule_ids:
        yield f"rule {rule_id} covers the whole host and acts on the tunnel itself"
