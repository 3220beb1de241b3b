"""Can a rule act at all? The allow list may leave out everything it matches, or another rule may answer first.

Decided by made-up requests: from the hosts and paths that both matchers name, tried against the matchers themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Literal, NamedTuple

from dari.proxy.rules.conditions import GlobCondition
from dari.proxy.rules.matchers import Extent, Matcher
from dari.proxy.rules.rule import AllowRule, AnyRule, BlockRule, BreakpointRule, FaultRule, MapLocalRule, MockRule
from dari.proxy.rules.site import Site

MAX_PAIRS = 2000
"""Pairs of rules that one change compares, about 50 µs each; what is beyond gets no warning."""
_MAX_NAMED = 5
_ANY_METHOD = "ANY"
"""Stands for a method that no rule names."""

LiveRule = tuple[AnyRule, Matcher]


class SampleRequest(NamedTuple):
    method: str
    site: Site
    target: str


class Obstacle(NamedTuple):
    """What keeps a rule from some or all requests that it matches, in words, and what to do about it."""

    extent: Literal["some", "all"]
    reason: str
    fix: str
    is_certain: bool = True

    @property
    def sentence(self) -> str:
        return f"{self.reason}; {self.fix}"


def obstacles(live: Sequence[LiveRule], wanted: Iterable[str] | None = None) -> dict[str, Obstacle]:
    """By rule id, for the rules of those ids or for all; `live` are the enabled rules in their order."""
    ids = None if wanted is None else frozenset(wanted)
    allows = [one for one in live if type(one[0]) is AllowRule]
    answering = [one for one in live if type(one[0]) in (BlockRule, MapLocalRule, MockRule)]
    found: dict[str, Obstacle] = {}
    pairs = 0
    for one in live:
        if type(one[0]) is AllowRule or (ids is not None and one[0].id not in ids):
            continue
        pairs += len(allows) + len(answering)
        if pairs > MAX_PAIRS:
            break
        obstacle = (_left_out(one, allows) if allows else None) or _answered_before(one, answering)
        if obstacle is not None:
            found[one[0].id] = obstacle
    return found


def newly_hidden(before: Sequence[LiveRule], after: Sequence[LiveRule], changed: Iterable[str]) -> list[str]:
    """Which other rules act on less after a change than before it, in words."""
    ids = frozenset(changed)
    touched = [rule for rule, _ in (*before, *after) if rule.id in ids]
    if not any(isinstance(rule, AllowRule | BlockRule | MapLocalRule | MockRule) for rule in touched):
        return []
    others = [rule.id for rule, _ in after if rule.id not in ids]
    earlier = obstacles(before, others)
    worse: list[str] = []
    for rule_id, obstacle in obstacles(after, others).items():
        was = earlier.get(rule_id)
        if was is None or (was.extent, obstacle.extent) == ("some", "all"):
            verb = "can no longer act" if obstacle.extent == "all" else "acts on less now"
            worse.append(f"rule {rule_id} {verb}: {obstacle.sentence}")
    if len(worse) > _MAX_NAMED:
        more = f"{len(worse) - _MAX_NAMED} more rules are affected in the same way; crab_rules_list shows them"
        return [*worse[:_MAX_NAMED], more]
    return worse


def _left_out(one: LiveRule, allows: Sequence[LiveRule]) -> Obstacle | None:
    """By the allow list, which ends the rules of every request outside it."""
    rule, matcher = one
    own = _own(one)
    if not own:
        return None
    listed = _listed(allows)
    if not any(_meet(one, allow) for allow in allows):
        is_certain = matcher.extent.is_known and all(allow.extent.is_known for _, allow in allows)
        host = next((host for host in matcher.extent.hosts if "*" not in host), None)
        add = f"add an allow rule for {host}" if host else "add an allow rule for the hosts it is meant for"
        reason = f"the allow list ({listed}) leaves out everything that {rule.kind} {rule.matcher!r} matches"
        return Obstacle("all", reason, f"{add} (crab_rules_add_allow), or remove the allow rules", is_certain)
    if all(any(_fits(allow, request) for allow in allows) for request in own):
        return None
    reason = f"{rule.kind} {rule.matcher!r} acts only on what the allow list ({listed}) lets in"
    return Obstacle("some", reason, "allow the other hosts too (crab_rules_add_allow) if it is meant for them")


def _answered_before(one: LiveRule, answering: Sequence[LiveRule]) -> Obstacle | None:
    """A held or broken request needs one that goes to its origin; a block, mock or local answer comes before."""
    rule, matcher = one
    if not isinstance(rule, BreakpointRule | FaultRule):
        return None
    # A reset happens before a local answer is made; a block comes before everything.
    first = [other for other in answering if type(other[0]) is BlockRule or not _resets(rule)]
    own = _own(one)
    shadows = [other for other in first if own and all(_fits(other, request) for request in own)]
    if not shadows:
        return None
    other = shadows[0][0]
    reason = (
        f"{other.kind} rule {other.id} ({other.matcher}) answers everything that {rule.kind} {rule.matcher!r} matches"
    )
    return Obstacle("all", reason, f"switch {other.id} off or remove it", matcher.extent.is_known)


def _resets(rule: BreakpointRule | FaultRule) -> bool:
    return isinstance(rule, FaultRule) and rule.mode == "reset"


def _own(one: LiveRule) -> list[SampleRequest]:
    """What its author had in mind: the host and path as written, without sub-domains."""
    rule, matcher = one
    method = rule.method.upper() if rule.method is not None else _ANY_METHOD
    plain = matcher.extent._replace(hosts=matcher.extent.hosts[:1])
    return [made for request in _requests(plain) if _fits(one, made := request._replace(method=method))]


def _meet(one: LiveRule, other: LiveRule) -> bool:
    """Whether some request fits both."""
    methods = {rule.method.upper() for rule in (one[0], other[0]) if rule.method is not None}
    if len(methods) > 1:
        return False
    method = next(iter(methods), _ANY_METHOD)
    for request in _requests(one[1].extent, other[1].extent):
        asked = request._replace(method=method)
        if all(_is_meant(asked, each[1].extent) and _fits(each, asked) for each in (one, other)):
            return True
    return False


def _is_meant(request: SampleRequest, extent: Extent) -> bool:
    """`other.test` is a prefix of `other.test.example.com`, too, which is seldom meant."""
    return any(GlobCondition(host).holds(request.site.host) for host in extent.hosts)


def _fits(one: LiveRule, request: SampleRequest) -> bool:
    rule, matcher = one
    if rule.method is not None and rule.method.upper() != request.method:
        return False
    condition = matcher.narrow(request.site)
    return condition is not None and condition.holds(request.target)


def _requests(extent: Extent, other: Extent | None = None) -> Iterator[SampleRequest]:
    """Requests at the hosts and paths of one matcher, or of two mixed."""
    extents = (extent,) if other is None else (extent, other)
    hosts = dict.fromkeys(host for one in extents for host in _filled(one.hosts, _words(extents, "hosts"), "x"))
    paths = dict.fromkeys(path for one in extents for path in _filled((one.path,), _words(extents, "paths"), ""))
    ports = dict.fromkeys((None, *(one.port for one in extents)))
    schemes = [scheme for scheme in extent.schemes if other is None or scheme in other.schemes]
    for scheme, host, port in product(schemes, hosts, ports):
        shown = f"[{host}]" if ":" in host else host
        site = Site.of(scheme, shown if port is None else f"{shown}:{port}")
        for path in paths:
            yield SampleRequest(_ANY_METHOD, site, path or "/")


def _words(extents: Sequence[Extent], part: Literal["hosts", "paths"]) -> list[str]:
    """The literal parts of the globs, to put where another has its `*`."""
    globs = [glob for one in extents for glob in (one.hosts if part == "hosts" else (one.path,))]
    return [word for word in (glob.replace("*", "").strip("./") for glob in globs) if word]


def _filled(globs: Iterable[str], words: Sequence[str], blank: str) -> Iterator[str]:
    for glob in globs:
        yield glob.replace("*", blank)
        if "*" in glob:
            yield from (glob.replace("*", word) for word in words)


def _listed(allows: Sequence[LiveRule]) -> str:
    named = ", ".join(f"{rule.id} {rule.matcher}" for rule, _ in allows[:_MAX_NAMED])
    return named if len(allows) <= _MAX_NAMED else f"{named} and {len(allows) - _MAX_NAMED} more"
