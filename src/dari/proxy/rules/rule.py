"""The rules: what each kind does to a request that its matcher fits. Values only; `RuleStore` keeps and orders them."""

from __future__ import annotations

import mimetypes
from random import Random
from typing import ClassVar, Literal

from msgspec import Struct

from dari.proxy.rules.matchers import MatcherKind

Direction = Literal["request", "response"]
MAX_EDITED_BYTES = 64 * 1024 * 1024
"""A letter replaced by a page would turn 8 MB of that letter into more than the machine has."""


class Rule(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What all kinds share. The book gives the id; a disabled rule is kept and never matches."""

    kind: ClassVar[str]
    matcher: str
    id: str = ""
    enabled: bool = True
    matcher_kind: MatcherKind = "prefix"
    method: str | None = None
    """Only requests of this method; None for all."""


class AllowRule(Rule, frozen=True, kw_only=True, tag="allow"):
    """Record and decrypt. No allow rule at all: everything is recorded and nothing decrypted for its sake."""

    kind: ClassVar[str] = "allow"


class BlockRule(Rule, frozen=True, kw_only=True, tag="block"):
    """Answer with a status; the origin never hears of it."""

    kind: ClassVar[str] = "block"
    status_code: int = 403


class MapLocalSource(Struct, frozen=True):
    """Where a local answer comes from: a text, or the path of a file."""

    kind: Literal["file", "text"]
    value: str


class MapLocalRule(Rule, frozen=True, kw_only=True, tag="map_local"):
    """Answer from a text or a file."""

    kind: ClassVar[str] = "map_local"
    source: MapLocalSource
    status_code: int = 200
    content_type: str | None = None

    @property
    def media_type(self) -> str:
        """The content type of the answer: as given, else plain text, else by the file's extension."""
        if self.content_type is not None:
            return self.content_type
        if self.source.kind == "text":
            return "text/plain; charset=utf-8"
        return mimetypes.guess_type(self.source.value)[0] or "application/octet-stream"


class MockRule(Rule, frozen=True, kw_only=True, tag="mock"):
    """Answer with a response seen before: status, headers and body."""

    kind: ClassVar[str] = "mock"
    status_code: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class MapRemoteRule(Rule, frozen=True, kw_only=True, tag="map_remote"):
    """Send the request elsewhere: the destination followed by what the matcher left over."""

    kind: ClassVar[str] = "map_remote"
    destination: str
    keeps_credentials: bool = False
    """Another origin gets the cookies, tokens and passwords as well; only a person switches that on."""


class StatusRewriteRule(Rule, frozen=True, kw_only=True, tag="status_rewrite"):
    """Show another status. `from_status_code` None stands for any."""

    kind: ClassVar[str] = "status_rewrite"
    to_status_code: int = 200
    from_status_code: int | None = None


class HeaderEdit(Struct, frozen=True):
    """`set` replaces every header of that name, `add` appends one, `remove` drops all."""

    action: Literal["set", "add", "remove"]
    name: str
    value: str = ""


class HeaderRewriteRule(Rule, frozen=True, kw_only=True, tag="header_rewrite"):
    """Edit headers on the way; every matching rule applies, in order."""

    kind: ClassVar[str] = "header_rewrite"
    edits: tuple[HeaderEdit, ...]
    on: Direction = "request"


class BodyReplaceRule(Rule, frozen=True, kw_only=True, tag="body_replace"):
    """Replace a text wherever it stands, or (`find` None) the whole body; every matching rule applies, in order."""

    kind: ClassVar[str] = "body_replace"
    text: str
    find: str | None = None
    on: Direction = "response"

    def apply(self, body: bytes) -> bytes:
        """The body must be decoded (no gzip); one that would become longer than `MAX_EDITED_BYTES` stays as it is."""
        text = self.text.encode()
        if self.find is None:
            return text
        find = self.find.encode()
        if len(body) + body.count(find) * (len(text) - len(find)) > MAX_EDITED_BYTES:
            return body
        return body.replace(find, text)


class DelayRule(Rule, frozen=True, kw_only=True, tag="delay"):
    """Wait before the request goes on: `delay_ms`, give or take up to `jitter_ms`."""

    kind: ClassVar[str] = "delay"
    delay_ms: int
    jitter_ms: int = 0

    def delay_s(self, random: Random) -> float:
        return max(0.0, self.delay_ms + random.uniform(-self.jitter_ms, self.jitter_ms)) / 1000


class FaultRule(Rule, frozen=True, kw_only=True, tag="fault"):
    """Break the answer: reset the connection at once, or end it after `after_bytes` of the body."""

    kind: ClassVar[str] = "fault"
    mode: Literal["reset", "truncate"] = "reset"
    after_bytes: int = 0


class BreakpointRule(Rule, frozen=True, kw_only=True, tag="breakpoint"):
    """Hold the request or the response until it is resumed, or the time limit passes."""

    kind: ClassVar[str] = "breakpoint"
    on: Direction = "request"
    time_limit_s: float = 60.0


AnyRule = (
    AllowRule
    | BlockRule
    | BreakpointRule
    | DelayRule
    | FaultRule
    | HeaderRewriteRule
    | BodyReplaceRule
    | MapLocalRule
    | MockRule
    | MapRemoteRule
    | StatusRewriteRule
)
KINDS: dict[str, type[AnyRule]] = {
    kind.kind: kind
    for kind in (
        AllowRule,
        BlockRule,
        BreakpointRule,
        DelayRule,
        FaultRule,
        HeaderRewriteRule,
        BodyReplaceRule,
        MapLocalRule,
        MockRule,
        MapRemoteRule,
        StatusRewriteRule,
    )
}
"""By name, in the order in which they are looked at."""
