"""Traffic at a glance: one line per host and path template, with how often, how fast and how badly."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from dari.proxy.flow import Flow
from dari.proxy.query import filters, views
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.query.search import Scan, Sources
from dari.text.redact import Redactor

DEFAULT_GROUPS = 50
_ID = re.compile(
    r"\d+"  # numbers
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # uuids
    r"|[0-9a-f]{16,}"  # hashes
    r"|(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}"  # tokens: long, with letters and digits
    r"|[a-z]{1,8}_(?=\w*\d)\w{8,}"  # cus_9s6XKzkNRiz8i3
    r"|\d{4}-\d\d-\d\d(T[\d:.Z+-]+)?",  # dates
    re.IGNORECASE,
)


class SummaryGroup(msgspec.Struct, frozen=True):
    """Durations are to the end of the response, over the flows that ended; an error is 400 and above, or a failure."""

    host: str
    path: str
    count: int
    methods: dict[str, int]
    error_rate: float
    p50_ms: float | None
    p95_ms: float | None
    request_bytes: int
    response_bytes: int
    statuses: dict[str, int]
    last_seen_unix_ms: int
    last_id: int


class Summary(msgspec.Struct, frozen=True):
    """The busiest groups. `truncated` when not every stored flow was looked at."""

    groups: list[SummaryGroup]
    flows: int
    left_out_groups: int = 0
    left_out_flows: int = 0
    truncated: bool = False


@dataclass(slots=True)
class _Tally:
    count: int = 0
    errors: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    last_seen_unix_ms: int = 0
    last_id: int = 0
    durations: list[float] = field(default_factory=list)
    methods: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)

    def add(self, flow: Flow, redactor: Redactor) -> None:
        self.count += 1
        self.errors += filters.is_error(flow)
        self.request_bytes += views.shown_size(flow.request_body, flow.request_headers, redactor)
        self.response_bytes += views.shown_size(flow.response_body, flow.response_headers, redactor)
        self.last_seen_unix_ms = max(self.last_seen_unix_ms, flow.started_unix_ms)
        self.last_id = max(self.last_id, flow.id)
        self.methods[flow.method] += 1
        self.statuses["none" if flow.status is None else f"{flow.status // 100}xx"] += 1
        if flow.total_ms is not None:
            self.durations.append(flow.total_ms)


def summarize(sources: Sources, wanted: TrafficFilter, groups: int = DEFAULT_GROUPS) -> Summary:
    """Group the wanted flows by host and path template, the busiest first."""
    walk = Scan(sources, wanted)
    tallies: dict[tuple[str, str], _Tally] = {}
    flows = 0
    for flow in walk:
        flows += 1
        key = flow.authority.lower(), "" if flow.method == "CONNECT" else template(flow.target)
        tallies.setdefault(key, _Tally()).add(flow, sources.redactor)
    ranked = sorted(tallies.items(), key=lambda item: (-item[1].count, item[0]))
    shown = [_group(host, _shown(path, sources.redactor), tally) for (host, path), tally in ranked[:groups]]
    left_out = sum(tally.count for _, tally in ranked[groups:])
    return Summary(shown, flows, len(ranked) - len(shown), left_out, walk.is_cut)


def template(target: str) -> str:
    """The path with `{id}` for numbers, uuids, hashes and tokens: `/users/42/posts` is `/users/{id}/posts`."""
    path = target.partition("?")[0].partition("#")[0]
    return "/".join("{id}" if _ID.fullmatch(part) else part[:100] for part in path.split("/"))


def percentile(ordered: list[float], share: float) -> float | None:
    """By nearest rank: a value that did occur."""
    if not ordered:
        return None
    return round(ordered[max(0, -(-len(ordered) * round(share * 100) // 100) - 1)], 1)


def _shown(path: str, redactor: Redactor) -> str:
    """Secrets hidden in what is left of them after templating; a few groups instead of every flow."""
    prefix = "http://host"
    return redactor.url(prefix + path).removeprefix(prefix)


def _group(host: str, path: str, tally: _Tally) -> SummaryGroup:
    ordered = sorted(tally.durations)
    return SummaryGroup(
        host,
        path,
        tally.count,
        dict(tally.methods.most_common()),
        round(tally.errors / tally.count, 4),
        percentile(ordered, 0.5),
        percentile(ordered, 0.95),
        tally.request_bytes,
        tally.response_bytes,
        dict(sorted(tally.statuses.items())),
        tally.last_seen_unix_ms,
        tally.last_id,
    )
