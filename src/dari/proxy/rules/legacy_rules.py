"""The four original kinds in the shape of `engine.rules_dump`, and their removal with its filters."""

from __future__ import annotations

from msgspec import Struct

from dari.errors import InvalidInput
from dari.proxy.rules.rule import AllowRule, MapLocalRule, MapLocalSource, MapRemoteRule, StatusRewriteRule
from dari.proxy.rules.rule_store import RuleStore


class MapLocalDump(Struct, frozen=True):
    matcher: str
    source: MapLocalSource
    status_code: int
    content_type: str | None


class MapRemoteDump(Struct, frozen=True):
    matcher: str
    destination: str


class StatusRewriteDump(Struct, frozen=True):
    matcher: str
    from_status_code: int | None
    to_status_code: int


class RulesDump(Struct, frozen=True):
    allowlist: tuple[str, ...]
    map_local: tuple[MapLocalDump, ...]
    map_remote: tuple[MapRemoteDump, ...]
    status_rewrite: tuple[StatusRewriteDump, ...]


def dump(book: RuleStore) -> RulesDump:
    """The rules in force. A disabled one is left out: the original's daemon only ever held enabled rules."""
    live = [rule for rule in book.rules() if rule.enabled]
    return RulesDump(
        tuple(r.matcher for r in live if isinstance(r, AllowRule)),
        tuple(
            MapLocalDump(r.matcher, r.source, r.status_code, r.content_type)
            for r in live
            if isinstance(r, MapLocalRule)
        ),
        tuple(MapRemoteDump(r.matcher, r.destination) for r in live if isinstance(r, MapRemoteRule)),
        tuple(
            StatusRewriteDump(r.matcher, r.from_status_code, r.to_status_code)
            for r in live
            if isinstance(r, StatusRewriteRule)
        ),
    )


def remove_allow(book: RuleStore, matcher: str) -> int:
    """All allow rules with this text; removing none is allowed. Likewise below, where filters are ANDed."""
    return book.remove_where(AllowRule, matcher)


def remove_map_local(
    book: RuleStore, matcher: str, source_kind: str | None = None, source_value: str | None = None
) -> int:
    if source_kind not in (None, "file", "text"):
        raise InvalidInput(f"source_kind '{source_kind}' is unknown", "give 'file' or 'text', or leave it out")
    return book.remove_where(
        MapLocalRule,
        matcher,
        lambda rule: source_kind not in (None, rule.source.kind) or source_value not in (None, rule.source.value),
    )


def remove_map_remote(book: RuleStore, matcher: str, destination: str | None = None) -> int:
    return book.remove_where(MapRemoteRule, matcher, lambda rule: destination not in (None, rule.destination))


def remove_status_rewrite(
    book: RuleStore, matcher: str, from_status_code: int | None = None, to_status_code: int | None = None
) -> int:
    """`from_status_code` −1 stands for rules without one; None for no filter."""

    def keep(rule: StatusRewriteRule) -> bool:
        own = -1 if rule.from_status_code is None else rule.from_status_code
        wanted = from_status_code if from_status_code is None else max(from_status_code, -1)
        return wanted not in (None, own) or to_status_code not in (None, rule.to_status_code)

    return book.remove_where(StatusRewriteRule, matcher, keep)
