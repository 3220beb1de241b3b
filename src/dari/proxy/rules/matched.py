"""The rules that apply to one request, by kind. `proxy.rule_adapter` makes the engine's `Decision` of them."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

from msgspec import Struct

from dari.proxy.rules.rule import (
    BlockRule,
    BodyReplaceRule,
    BreakpointRule,
    DelayRule,
    FaultRule,
    HeaderEdit,
    MapLocalRule,
    MapRemoteRule,
    MockRule,
    StatusRewriteRule,
)


class StatusChange(NamedTuple):
    """A status as the client shall see it, and the value of `x-crab-mitm-status-rewrite`."""

    status: int
    rule: StatusRewriteRule
    header: str


class MatchedRules(Struct, frozen=True):
    """The rule of each kind that applies, or None. A request that is not recorded is proxied, and no rule applies."""

    is_recorded: bool = True
    allowed_by: str | None = None
    """Id of the allow rule; None also when the allow list is empty."""
    block: BlockRule | None = None
    request_breakpoint: BreakpointRule | None = None
    response_breakpoint: BreakpointRule | None = None
    delay: DelayRule | None = None
    fault: FaultRule | None = None
    request_edits: tuple[HeaderEdit, ...] = ()
    response_edits: tuple[HeaderEdit, ...] = ()
    request_bodies: tuple[BodyReplaceRule, ...] = ()
    response_bodies: tuple[BodyReplaceRule, ...] = ()
    map_local: MapLocalRule | None = None
    mock: MockRule | None = None
    map_remote: MapRemoteRule | None = None
    mapped_url: str | None = None
    """The final URL of map_remote, even if not valid: `map_remote_problem` then says why, and the answer is 502."""
    map_remote_problem: str | None = None
    status_rewrites: tuple[StatusRewriteRule, ...] = ()
    """Those whose matcher fits; `status_for` picks by status."""
    rule_ids: tuple[str, ...] = ()
    """What acts on the request, without the allow rule. A status rewrite joins when it is used."""

    def status_for(self, status: int) -> StatusChange | None:
        """The first status_rewrite that fits the current status."""
        for rule in self.status_rewrites:
            if rule.from_status_code in (None, status):
                return StatusChange(
                    rule.to_status_code, rule, f"{status_line(status)}->{status_line(rule.to_status_code)}"
                )
        return None


RECORDED = MatchedRules()
SILENT = MatchedRules(is_recorded=False)


class Decryption(NamedTuple):
    """Whether the rules ask for a connection's decryption, and why (not)."""

    wanted: bool
    reason: str
    rule_id: str | None = None
    reads_plain: bool = False
    """A rule names the host, for http or https: requests that are not under TLS are read, which takes no CA."""


def status_line(status: int) -> str:
    """`503 Service Unavailable`; a status without a name is shown as the original does."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} <unknown status code>"
