"""The four kinds of rules of the original, found again by their text. `rules_by_id` has all kinds, by id."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dari.core.tool import tool
from dari.errors import InvalidInput
from dari.proxy.api.rules import RuleList, RulesRemoved, RuleView
from dari.proxy.api.service import ProxyService
from dari.proxy.api.settings import SettingsChanged
from dari.proxy.rules.explanation import Explanation
from dari.proxy.rules.legacy_rules import MapLocalDump, MapRemoteDump, RulesDump, StatusRewriteDump
from dari.proxy.rules.matchers import MatcherKind
from dari.proxy.rules.rule import Direction
from dari.proxy.tools.arguments import FromStatusCode, HttpMethod, Matcher, RequestId, StatusCode, status_or_any

ContentType = Annotated[str, Meta(description="default: text/plain, or by the file's extension")]
SameDestination = Annotated[str, Meta(description="only the rule with this destination")]
SameMatcher = Annotated[str, Meta(description="the matcher exactly as it was added")]


class AllowRules(Struct, frozen=True):
    allowlist: tuple[str, ...]


class MapLocalRules(Struct, frozen=True):
    map_local: tuple[MapLocalDump, ...]


class MapRemoteRules(Struct, frozen=True):
    map_remote: tuple[MapRemoteDump, ...]


class StatusRewriteRules(Struct, frozen=True):
    status_rewrite: tuple[StatusRewriteDump, ...]


class RuleTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._rules = proxy.rules

    @tool()
    async def rules_dump(self) -> RulesDump:
        """Return the rules in force: allowlist, map_local, map_remote and status_rewrite."""
        return await self._rules.dump()

    @tool()
    async def rules_list_allow(self) -> AllowRules:
        """Return the matchers of the allow rules."""
        return AllowRules((await self._rules.dump()).allowlist)

    @tool()
    async def rules_list_map_local(self) -> MapLocalRules:
        """Return the map_local rules."""
        return MapLocalRules((await self._rules.dump()).map_local)

    @tool()
    async def rules_list_map_remote(self) -> MapRemoteRules:
        """Return the map_remote rules."""
        return MapRemoteRules((await self._rules.dump()).map_remote)

    @tool()
    async def rules_list_status_rewrite(self) -> StatusRewriteRules:
        """Return the status_rewrite rules."""
        return StatusRewriteRules((await self._rules.dump()).status_rewrite)

    @tool(scope="rules.write", destructive=True)
    async def rules_clear(self) -> SettingsChanged:
        """Remove every rule of every kind; returns {ok}."""
        return await self._rules.clear()

    @tool(scope="rules.write", idempotent=False)
    async def rules_add_allow(self, matcher: Matcher) -> SettingsChanged:
        """Record and decrypt what matches; with no allow rule all is recorded and nothing decrypted. Returns {ok}."""
        return await self._rules.add_allow(matcher)

    @tool(scope="rules.write", destructive=True)
    async def rules_remove_allow(self, matcher: SameMatcher) -> RulesRemoved:
        """Remove the allow rules with this matcher; returns {ok, removed}."""
        return await self._rules.remove_allow(matcher)

    @tool(scope="rules.write", idempotent=False)
    async def rules_add_map_local_text(
        self,
        matcher: Matcher,
        text: Annotated[str, Meta(description="body of the answer")],
        status_code: StatusCode = 200,
        content_type: ContentType | None = None,
    ) -> SettingsChanged:
        """Answer matching requests with a text, without asking the origin; returns {ok}."""
        return await self._rules.add_map_local_text(matcher, text, status_code, content_type)

    @tool(scope="rules.write", idempotent=False)
    async def rules_add_map_local_file(
        self,
        matcher: Matcher,
        file_path: Annotated[str, Meta(description="absolute path; read for each request")],
        status_code: StatusCode = 200,
        content_type: ContentType | None = None,
    ) -> SettingsChanged:
        """Answer matching requests with a file, without asking the origin; returns {ok}."""
        return await self._rules.add_map_local_file(matcher, file_path, status_code, content_type)

    @tool(scope="rules.write", destructive=True)
    async def rules_remove_map_local(
        self,
        matcher: SameMatcher,
        source_kind: Annotated[Literal["file", "text"], Meta(description="only rules that answer with this")]
        | None = None,
        source_value: Annotated[str, Meta(description="only the rule with this text or path")] | None = None,
    ) -> RulesRemoved:
        """Remove the map_local rules with this matcher, source kind and source; returns {ok, removed}."""
        return await self._rules.remove_map_local(matcher, source_kind, source_value)

    @tool(scope="rules.write", idempotent=False)
    async def rules_add_map_remote(
        self,
        matcher: Matcher,
        destination: Annotated[str, Meta(description="URL that takes the place of the matched prefix")],
    ) -> SettingsChanged:
        """Send matching requests to another URL; returns {ok}."""
        return await self._rules.add_map_remote(matcher, destination)

    @tool(scope="rules.write", destructive=True)
    async def rules_remove_map_remote(
        self, matcher: SameMatcher, destination: SameDestination | None = None
    ) -> RulesRemoved:
        """Remove the map_remote rules with this matcher and destination; returns {ok, removed}."""
        return await self._rules.remove_map_remote(matcher, destination)

    @tool(scope="rules.write", idempotent=False)
    async def rules_add_status_rewrite(
        self, matcher: Matcher, to_status_code: StatusCode, from_status_code: FromStatusCode = -1
    ) -> SettingsChanged:
        """Show clients another status than the origin's; returns {ok}."""
        only = status_or_any(from_status_code)
        return await self._rules.add_status_rewrite(matcher, to_status_code, -1 if only is None else only)

    @tool(scope="rules.write", destructive=True)
    async def rules_remove_status_rewrite(
        self,
        matcher: SameMatcher,
        from_status_code: Annotated[
            int,
            Meta(
                description="only the rule for this status; -1 for any",
                extra_json_schema={"minimum": -1, "maximum": 599},
            ),
        ]
        | None = None,
        to_status_code: StatusCode | None = None,
    ) -> RulesRemoved:
        """Remove the status_rewrite rules with this matcher and codes (-1: those for any); returns {ok, removed}."""
        only = status_or_any(from_status_code)
        return await self._rules.remove_status_rewrite(matcher, only, to_status_code)


Kind = Literal[
    "allow",
    "block",
    "breakpoint",
    "delay",
    "fault",
    "header_rewrite",
    "body_replace",
    "map_local",
    "map_remote",
    "status_rewrite",
]
ListedKind = Literal[Kind, "mock"]
RuleId = Annotated[str, Meta(description="id of a rule, as crab_rules_list shows it")]
OnlyKind = Annotated[ListedKind, Meta(description="only rules of this kind; default all")]
AtLeastZero = Annotated[int, Meta(ge=0)]


class RuleByIdTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._rules = proxy.rules

    @tool()
    async def rules_list(self, kind: OnlyKind | None = None) -> RuleList:
        """Return the rules in order with id, enabled and hit count, of one kind or all."""
        return await self._rules.list(kind)

    @tool(scope="rules.write", idempotent=False)
    async def rules_add(
        self,
        kind: Annotated[Kind, Meta(description="what the rule does; each other argument names the kinds it is for")],
        matcher: Matcher,
        matcher_kind: Annotated[MatcherKind, Meta(description="how matcher is read")] = "prefix",
        method: Annotated[str, Meta(description="only this HTTP method")] | None = None,
        enabled: Annotated[bool, Meta(description="false adds it switched off")] = True,
        text: Annotated[str, Meta(description="map_local: the answer; body_replace: what to put in")] | None = None,
        file_path: Annotated[str, Meta(description="map_local: answer with this file instead")] | None = None,
        content_type: Annotated[str, Meta(description="map_local: such as application/json")] | None = None,
        status_code: Annotated[StatusCode, Meta(description="block (403), map_local (200)")] | None = None,
        destination: Annotated[str, Meta(description="map_remote: URL in place of the matched prefix")] | None = None,
        to_status_code: Annotated[StatusCode, Meta(description="status_rewrite: the status to show")] | None = None,
        from_status_code: FromStatusCode | None = None,
        find: Annotated[str, Meta(description="body_replace: text to replace; default the whole body")] | None = None,
        set_headers: Annotated[dict[str, str], Meta(description="header_rewrite: values by name")] | None = None,
        remove_headers: Annotated[list[str], Meta(description="header_rewrite: names to drop")] | None = None,
        add_headers: Annotated[dict[str, str], Meta(description="header_rewrite: values to append")] | None = None,
        on: Annotated[
            Direction, Meta(description="header_rewrite, breakpoint (default request), body_replace (response)")
        ]
        | None = None,
        delay_ms: Annotated[AtLeastZero, Meta(description="delay: milliseconds to wait")] | None = None,
        jitter_ms: Annotated[AtLeastZero, Meta(description="delay: give or take so many milliseconds")] | None = None,
        mode: Annotated[
            Literal["reset", "truncate"], Meta(description="fault: reset the connection (default) or cut the body")
        ]
        | None = None,
        after_bytes: Annotated[AtLeastZero, Meta(description="fault: bytes of the body before the cut")] | None = None,
        time_limit_s: Annotated[
            float, Meta(description="breakpoint: seconds after which it goes on by itself; default 60")
        ]
        | None = None,
    ) -> RuleView:
        """Add a rule of any kind, in force at once; returns it with its id and warnings. See crab_rules_test."""
        given: dict[str, Any] = {
            "kind": kind,
            "matcher": matcher,
            "matcher_kind": matcher_kind,
            "method": method,
            "enabled": enabled,
            "content_type": content_type,
            "status_code": status_code,
            "destination": destination,
            "to_status_code": to_status_code,
            "find": find,
            "on": on,
            "delay_ms": delay_ms,
            "jitter_ms": jitter_ms,
            "mode": mode,
            "after_bytes": after_bytes,
            "time_limit_s": time_limit_s,
            "edits": _edits(set_headers, remove_headers, add_headers),
        }
        given |= {"source": _source(text, file_path)} if kind == "map_local" else {"text": text, "file_path": file_path}
        if status_or_any(from_status_code) != -1:
            given["from_status_code"] = from_status_code
        rule = {name: value for name, value in given.items() if value is not None}
        needed = _NEEDS.get(kind)
        if needed is not None and needed not in rule:
            raise InvalidInput(f"a {kind} rule needs {_NAMES.get(needed, needed)}", "give it and call again")
        return await self._rules.add(rule)

    @tool(scope="rules.write")
    async def rules_update(
        self,
        id: RuleId,
        enabled: Annotated[bool, Meta(description="true switches the rule on, false off")] | None = None,
        changes: Annotated[dict[str, Any], Meta(description="matcher, method, … or members of its settings")]
        | None = None,
    ) -> RuleView:
        """Switch a rule on or off, or change members of it as crab_rules_list shows them; returns the rule."""
        wanted = dict(changes or {})
        if enabled is not None:
            wanted["enabled"] = enabled
        if not wanted:
            raise InvalidInput(f"nothing to change in rule {id}", "give enabled or changes")
        return await self._rules.update(id, wanted)

    @tool(scope="rules.write")
    async def rules_move(
        self,
        id: RuleId,
        before: Annotated[str, Meta(description="id of the rule to put it in front of; default the end")] | None = None,
    ) -> RuleView:
        """Move a rule: the first of a kind that matches wins, and edits apply in order. Returns the rule."""
        return await self._rules.move(id, before)

    @tool(scope="rules.write", destructive=True)
    async def rules_remove(self, id: RuleId) -> RuleView:
        """Remove one rule; returns it as it was."""
        return await self._rules.remove(id)

    @tool()
    async def rules_test(
        self,
        url: Annotated[str, Meta(description="such as https://api.example.com/users")],
        method: HttpMethod = "GET",
    ) -> Explanation:
        """Tell what the rules do with such a request now: recorded, decrypted, which rule applies, and why not."""
        return await self._rules.test(url, method)

    @tool(scope="rules.write", idempotent=False)
    async def rules_mock(
        self,
        request_id: RequestId,
        matcher: Annotated[str, Meta(description="default: the URL of that request")] | None = None,
    ) -> RuleView:
        """Answer such requests as this recorded one was answered; returns the new rule."""
        return await self._rules.mock(request_id, matcher)


_NEEDS = {
    "map_local": "source",
    "map_remote": "destination",
    "status_rewrite": "to_status_code",
    "header_rewrite": "edits",
    "body_replace": "text",
    "delay": "delay_ms",
}
_NAMES = {"source": "text or file_path", "edits": "set_headers, add_headers or remove_headers"}


def _source(text: str | None, file_path: str | None) -> dict[str, str] | None:
    if text is not None and file_path is not None:
        raise InvalidInput("a map_local rule has text or file_path, not both", "leave one of them out")
    if text is not None:
        return {"kind": "text", "value": text}
    return None if file_path is None else {"kind": "file", "value": file_path}


def _edits(
    changed: dict[str, str] | None, removed: list[str] | None, added: dict[str, str] | None
) -> list[dict[str, str]] | None:
    edits = [{"action": "remove", "name": name} for name in removed or ()]
    edits += [{"action": "set", "name": name, "value": value} for name, value in (changed or {}).items()]
    edits += [{"action": "add", "name": name, "value": value} for name, value in (added or {}).items()]
    return edits or None
