"""The rules from a caller's view: the original's methods on four kinds, and one set of methods for all kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import Conflict, Denied, InvalidInput
from dari.proxy.api.settings import SettingsChanged
from dari.proxy.api.traffic import flow_id_of
from dari.proxy.credentials import answers_same_origin, body_without_secrets, without_secrets
from dari.proxy.flow import Flow
from dari.proxy.query import views
from dari.proxy.rules import legacy_rules
from dari.proxy.rules.explanation import Explanation, parse_url
from dari.proxy.rules.reach import newly_hidden
from dari.proxy.rules.rule import (
    KINDS,
    AllowRule,
    AnyRule,
    MapLocalRule,
    MapLocalSource,
    MapRemoteRule,
    MockRule,
    StatusRewriteRule,
)
from dari.proxy.rules.rule_store import RuleAdded, RuleStore
from dari.proxy.rules.ruleset import SEES_TUNNELS
from dari.struct_types import ready
from dari.text.redact import MARK, redact_secrets

if TYPE_CHECKING:
    from dari.proxy.runtime import ProxyRuntime

_NOT_COPIED = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer", "transfer-encoding"),
        *("upgrade", "content-length", "content-encoding", "date", "x-crab-mitm", "x-crab-mitm-status-rewrite"),
    }
)


def mock_of(flow: Flow, body: bytes, matcher: str | None = None, *, is_encoded: bool = False) -> MockRule:
    """Answer such requests as this one was answered. `body` is decoded unless it `is_encoded` as it went by.

    Without a matcher: the same method and URL, whatever the query.
    """
    if flow.status is None:
        raise InvalidInput(f"request {flow.id} has no response to copy", "pick one that was answered")
    dropped = _NOT_COPIED - {"content-encoding"} if is_encoded else _NOT_COPIED
    headers = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in flow.response_headers)
    return MockRule(
        matcher=matcher if matcher is not None else flow.url.partition("?")[0],
        method=flow.method if matcher is None else None,
        status_code=flow.status,
        headers=tuple((name, value) for name, value in headers if name.lower() not in dropped),
        body=body,
    )


T = TypeVar("T")
_PERSONS_CHOICE = "keeps_credentials of a map_remote rule must be switched on by a person"
_LEFT_OUT = "secrets of the response were left out: the matcher is for another origin than the one they belong to"
_MOCK_BYTES = 1024 * 1024


class RulesRemoved(Struct, frozen=True):
    removed: int
    ok: bool = True


class RuleView(Struct, frozen=True):
    """A rule as it stands; `settings` are the members of its kind."""

    id: str
    kind: str
    matcher: str
    enabled: bool
    hits: int
    settings: dict[str, Any]
    matcher_kind: str = "prefix"
    method: str | None = None
    warnings: tuple[str, ...] = ()


class RuleList(Struct, frozen=True):
    revision: int
    rules: list[RuleView]


class RulesApi:
    """Every change is on disk, and in force, when the call returns; one that cannot be saved changes nothing."""

    def __init__(self, runtime: ProxyRuntime) -> None:
        self._runtime = runtime
        self._book = runtime.book
        self._changing = asyncio.Lock()

    @expose("engine.rules_dump", "read")
    async def dump(self) -> legacy_rules.RulesDump:
        return legacy_rules.dump(self._book)

    @expose("engine.rules_clear", "rules.write")
    async def clear(self, kind: str | None = None) -> SettingsChanged:
        """All rules, of every kind or of one."""
        _, warnings = await self._change(lambda book: book.clear(kind))
        return SettingsChanged(True, warnings)

    @expose("engine.rules_add_allow", "rules.write")
    async def add_allow(self, matcher: str) -> SettingsChanged:
        return await self._add_classic(AllowRule(matcher=matcher))

    @expose("engine.rules_add_map_local_text", "rules.write")
    async def add_map_local_text(
        self, matcher: str, text: str, status_code: int = 200, content_type: str | None = None
    ) -> SettingsChanged:
        source = MapLocalSource("text", text)
        return await self._add_classic(
            MapLocalRule(matcher=matcher, source=source, status_code=status_code, content_type=content_type)
        )

    @expose("engine.rules_add_map_local_file", "rules.write")
    async def add_map_local_file(
        self, matcher: str, file_path: str, status_code: int = 200, content_type: str | None = None
    ) -> SettingsChanged:
        source = MapLocalSource("file", file_path)
        return await self._add_classic(
            MapLocalRule(matcher=matcher, source=source, status_code=status_code, content_type=content_type)
        )

    @expose("engine.rules_add_map_remote", "rules.write")
    async def add_map_remote(self, matcher: str, destination: str) -> SettingsChanged:
        return await self._add_classic(MapRemoteRule(matcher=matcher, destination=destination))

    @expose("engine.rules_add_status_rewrite", "rules.write")
    async def add_status_rewrite(
        self, matcher: str, to_status_code: int = 200, from_status_code: int = -1
    ) -> SettingsChanged:
        """`from_status_code` below 0 stands for any."""
        only = from_status_code if from_status_code >= 0 else None
        return await self._add_classic(
            StatusRewriteRule(matcher=matcher, to_status_code=to_status_code, from_status_code=only)
        )

    @expose("engine.rules_remove_allow", "rules.write")
    async def remove_allow(self, matcher: str) -> RulesRemoved:
        return await self._removed(lambda book: legacy_rules.remove_allow(book, matcher))

    @expose("engine.rules_remove_map_local", "rules.write")
    async def remove_map_local(
        self, matcher: str, source_kind: Literal["file", "text"] | None = None, source_value: str | None = None
    ) -> RulesRemoved:
        return await self._removed(lambda book: legacy_rules.remove_map_local(book, matcher, source_kind, source_value))

    @expose("engine.rules_remove_map_remote", "rules.write")
    async def remove_map_remote(self, matcher: str, destination: str | None = None) -> RulesRemoved:
        return await self._removed(lambda book: legacy_rules.remove_map_remote(book, matcher, destination))

    @expose("engine.rules_remove_status_rewrite", "rules.write")
    async def remove_status_rewrite(
        self, matcher: str, from_status_code: int | None = None, to_status_code: int | None = None
    ) -> RulesRemoved:
        return await self._removed(
            lambda book: legacy_rules.remove_status_rewrite(book, matcher, from_status_code, to_status_code)
        )

    @expose("rules.list", "read")
    async def list(self, kind: str | None = None) -> RuleList:
        shown = [_view(one.rule, one.hits, one.warnings) for one in self._book.listed(kind)]
        return RuleList(self._book.revision, shown)

    @expose("rules.add", "rules.write")
    async def add(self, rule: dict[str, Any]) -> RuleView:
        """A rule of any kind: `{kind, matcher, matcher_kind?, method?, enabled?, …}`."""
        made = _read(rule)
        if isinstance(made, MapRemoteRule) and made.keeps_credentials:
            raise Denied(_PERSONS_CHOICE, "add it without, then: dari proxy rules keep-credentials ID")
        added = await self._add(made)
        return _view(added.rule, 0, added.warnings)

    @expose("rules.keep_credentials", "admin", needs_person=True)
    async def keep_credentials(self, id: str, keeps: bool = True) -> RuleView:
        """Let a map_remote rule send cookies, tokens and passwords to another origin: for a person."""
        if not isinstance(self._book.get(id), MapRemoteRule):
            raise InvalidInput(
                f"rule {id} must be a map_remote rule", "list them: dari proxy rules list --kind map-remote"
            )
        updated, _ = await self._change(lambda book: book.update(id, {"keeps_credentials": keeps}))
        return redact_secrets(_view(updated.rule, self._book.hits(id), updated.warnings))  # type: ignore[no-any-return]

    @expose("rules.update", "rules.write")
    async def update(self, id: str, changes: dict[str, Any]) -> RuleView:
        """Change members of a rule, `enabled` among them; its id, kind and place stay."""
        if MARK in str(changes):
            raise InvalidInput(
                f"changes must hold real values, got {MARK!r}: that stands for a secret which is not shown",
                "leave that member out to keep its value, or give the value itself",
            )
        old = self._book.get(id)
        changes = _kept_home(old, changes)
        if isinstance(old, MapLocalRule) and isinstance(changes.get("source"), dict):
            self._check_file(changes["source"])
        updated, _ = await self._change(lambda book: book.update(id, changes))
        return _view(updated.rule, self._book.hits(id), updated.warnings)

    @expose("rules.remove", "rules.write")
    async def remove(self, id: str) -> RuleView:
        hits = self._book.hits(id)
        rule, warnings = await self._change(lambda book: book.remove(id))
        return _view(rule, hits, warnings)

    @expose("rules.move", "rules.write")
    async def move(self, id: str, before: str | None = None) -> RuleView:
        """Put a rule in front of another one, or at the end: the first of a kind that matches wins."""
        rule, _ = await self._change(lambda book: book.move(id, before))
        return _view(rule, self._book.hits(id), ())

    @expose("rules.restore", "rules.write")
    async def restore(self, id: str) -> RuleView:
        """Bring back a rule that was removed since the daemon started, where it was."""
        restored, _ = await self._change(lambda book: book.restore(id))
        return _view(restored.rule, self._book.hits(id), restored.warnings)

    @expose("rules.mock", "rules.write")
    async def mock(self, request_id: str, matcher: str | None = None) -> RuleView:
        """Answer such requests as this recorded one was answered."""
        recording = self._runtime.recording
        flow = await recording.flow(flow_id_of(request_id))
        decoded = await recording.read(views.decoded, flow, False, recording.bodies, _MOCK_BYTES)
        if decoded.is_cut or decoded.problem:
            raise InvalidInput(
                f"the response of request {request_id} cannot be copied whole: {decoded.problem or 'it is over 1 MiB'}",
                "save it as a file and use a map_local file rule",
            )
        rule = mock_of(flow, decoded.data, matcher)
        warnings: tuple[str, ...] = ()
        if matcher is not None and not answers_same_origin(matcher, flow.url):
            safe = await asyncio.to_thread(_without_secrets, rule, flow)
            warnings = (_LEFT_OUT,) if safe != rule else ()
            rule = safe
        added = await self._add(rule)
        return _view(added.rule, 0, (*added.warnings, *warnings))

    @expose("rules.test", "read")
    async def test(self, url: str, method: str = "GET") -> Explanation:
        """What the rules would do with such a request now, and why not more."""
        runtime = self._runtime
        found = self._book.explain(url, method, has_ca=runtime.authority is not None)
        host = parse_url(url)[0].host
        if found.is_decrypted and host in runtime.engine.pinned_hosts:
            passes = runtime.configuration.passes_through_pinned
            then = "so it is passed through unread" if passes else "so the connection fails: install the CA there"
            hint = f"a client refused our certificate for {host} (pinned, or the CA is not installed), {then}"
            return msgspec.structs.replace(found, is_decrypted=not passes, hints=(*found.hints, hint))
        return found

    async def _add_classic(self, rule: AnyRule) -> SettingsChanged:
        # {ok} alone, as in design 000, for a rule that acts: advice and limits are in `rules.add` and `rules.list`.
        added = await self._add(rule)
        acts = added.obstacle is None or added.obstacle.extent == "some"
        return SettingsChanged(True, added.hidden if acts else added.reach)

    async def _add(self, rule: AnyRule) -> RuleAdded:
        if isinstance(rule, MapLocalRule):
            self._check_file(msgspec.to_builtins(rule.source))
        added, _ = await self._change(lambda book: book.add(rule))
        return msgspec.structs.replace(added, advice=(*added.advice, *self._about_ca(added.rule)))

    def _about_ca(self, rule: AnyRule) -> Iterator[str]:
        is_https = self._book.current.matchers[rule.id].extent.schemes == ("https",)
        if is_https and rule.enabled and self._runtime.authority is None and rule.kind not in SEES_TUNNELS:
            yield "no CA is loaded, so HTTPS is not decrypted and the rule cannot act yet; crab_ca_generate makes one"

    def _check_file(self, source: dict[str, Any]) -> None:
        if source.get("kind") == "file":
            self._runtime.local_files.check(str(source.get("value")), "map_local file")

    async def _removed(self, remove: Callable[[RuleStore], int]) -> RulesRemoved:
        count, _ = await self._change(remove)
        return RulesRemoved(count)

    async def _change(self, change: Callable[[RuleStore], T]) -> tuple[T, tuple[str, ...]]:
        """Change a draft, save it, and only then put it in force; with what a removal does to other rules.

        Shielded: a caller that goes away must not leave a saved change that is not in force.
        """
        return await asyncio.shield(asyncio.ensure_future(self._change_whole(change)))

    async def _change_whole(self, change: Callable[[RuleStore], T]) -> tuple[T, tuple[str, ...]]:
        async with self._changing:
            before, draft = self._book.current, self._book.draft()
            result = change(draft)
            await self._runtime.files.save_rules(draft)
            self._book.adopt(draft)
            gone = {rule.id for rule in before.rules} - {rule.id for rule in draft.current.rules}
            return result, tuple(newly_hidden(before.live, draft.current.live, gone))


def _kept_home(old: AnyRule, changes: dict[str, Any]) -> dict[str, Any]:
    """Changes that would carry secrets to another origin are refused, or lose the leave that a person gave."""
    if isinstance(old, MapRemoteRule):
        if changes.get("keeps_credentials"):
            raise Denied(_PERSONS_CHOICE, f"dari proxy rules keep-credentials {old.id}")
        leads_elsewhere = {"destination", "matcher", "matcher_kind"} & changes.keys()
        return {**changes, "keeps_credentials": False} if old.keeps_credentials and leads_elsewhere else changes
    matcher = changes.get("matcher")
    if isinstance(old, MockRule) and isinstance(matcher, str):
        was = old.matcher if "://" in old.matcher else f"http://{old.matcher}"
        held = msgspec.to_builtins(old, builtin_types=(bytes,))
        if not answers_same_origin(matcher, was) and redact_secrets(held) is not held:
            raise Conflict(
                f"mock {old.id} holds secrets of {old.matcher}, and {matcher} is another origin",
                "mock the recorded request again with that matcher: they are left out then",
            )
    return changes


def _without_secrets(rule: MockRule, flow: Flow) -> MockRule:
    kept, _ = without_secrets([(name.encode("latin-1"), value.encode("latin-1")) for name, value in rule.headers])
    head = [field for field in flow.response_headers if field[0].lower() != b"content-encoding"]
    return msgspec.structs.replace(
        rule,
        headers=tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in kept),
        body=body_without_secrets(rule.body, head),
    )


def _read(values: dict[str, Any]) -> AnyRule:
    kind = KINDS.get(str(values.get("kind")))
    if kind is None:
        raise InvalidInput(f"no kind of rule is called {values.get('kind')!r}", f"kinds: {', '.join(KINDS)}")
    known = {*kind.__struct_fields__, "kind"} - {"id"}
    unknown = sorted(values.keys() - known)
    if unknown:
        raise InvalidInput(f"a {kind.kind} rule has no member '{unknown[0]}'", f"it has: {', '.join(sorted(known))}")
    try:
        return msgspec.convert(values, ready(kind))
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{kind.kind} rule: {error}", "see the members of this kind in the guide") from None


def _view(rule: AnyRule, hits: int, warnings: tuple[str, ...]) -> RuleView:
    values = msgspec.to_builtins(rule, builtin_types=(bytes,))  # a body as bytes, so that the gate can read it
    shared = ("id", "kind", "matcher", "enabled", "matcher_kind", "method")
    settings = {name: value for name, value in values.items() if name not in shared}
    return RuleView(
        rule.id, rule.kind, rule.matcher, rule.enabled, hits, settings, rule.matcher_kind, rule.method, warnings
    )
