"""The four kinds of rules of the original, found again by their text. `rules_by_id` has all kinds, by id."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from dari.core.tool import tool
from dari.proxy.engine_settings import Changed
from dari.proxy.rule_desk import Removed
from dari.proxy.rules.classic import MapLocalDump, MapRemoteDump, RulesDump, StatusRewriteDump
from dari.proxy.service import ProxyService
from dari.proxy.tools.arguments import FromStatusCode, Matcher, StatusCode, status_or_any

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
    async def rules_clear(self) -> Changed:
        """Remove every rule of every kind; returns {ok}."""
        return await self._rules.clear()

    @tool(scope="rules.write", idempotent=False)
    async def rules_add_allow(self, matcher: Matcher) -> Changed:
        """Record and decrypt what matches; with no allow rule all is recorded and nothing decrypted. Returns {ok}."""
        return await self._rules.add_allow(matcher)

    @tool(scope="rules.write", destructive=True)
    async def rules_remove_allow(self, matcher: SameMatcher) -> Removed:
        """Remove the allow rules with this matcher; returns {ok, removed}."""
        return await self._rules.remove_allow(matcher)

    @tool(scope="rules.write", idempotent=False)
    async def rules_add_map_local_text(
        self,
        matcher: Matcher,
        text: Annotated[str, Meta(description="body of the answer")],
        status_code: StatusCode = 200,
        content_type: ContentType | None = None,
    ) -> Changed:
        """Answer matching requests with a text, without asking the origin; returns {ok}."""
        return await self._rules.add_map_local_text(matcher, text, status_code, content_type)

    @tool(scope="rules.write", idempotent=False)
    async def rules_add_map_local_file(
        self,
        matcher: Matcher,
        file_path: Annotated[str, Meta(description="absolute path; read for each request")],
        status_code: StatusCode = 200,
        content_type: ContentType | None = None,
    ) -> Changed:
        """Answer matching requests with a file, without asking the origin; returns {ok}."""
        return await self._rules.add_map_local_file(matcher, file_path, status_code, content_type)

    @tool(scope="rules.write", destructive=True)
    async def rules_remove_map_local(
        self,
        matcher: SameMatcher,
        source_kind: Annotated[Literal["file", "text"], Meta(description="only rules that answer with this")]
        | None = None,
        source_value: Annotated[str, Meta(description="only the rule with this text or path")] | None = None,
    ) -> Removed:
        """Remove the map_local rules with this matcher, source kind and source; returns {ok, removed}."""
        return await self._rules.remove_map_local(matcher, source_kind, source_value)

    @tool(scope="rules.write", idempotent=False)
    async def rules_add_map_remote(
        self,
        matcher: Matcher,
        destination: Annotated[str, Meta(description="URL that takes the place of the matched prefix")],
    ) -> Changed:
        """Send matching requests to another URL; returns {ok}."""
        return await self._rules.add_map_remote(matcher, destination)

    @tool(scope="rules.write", destructive=True)
    async def rules_remove_map_remote(
        self, matcher: SameMatcher, destination: SameDestination | None = None
    ) -> Removed:
        """Remove the map_remote rules with this matcher and destination; returns {ok, removed}."""
        return await self._rules.remove_map_remote(matcher, destination)

    @tool(scope="rules.write", idempotent=False)
    async def rules_add_status_rewrite(
        self, matcher: Matcher, to_status_code: StatusCode, from_status_code: FromStatusCode = -1
    ) -> Changed:
        """Show clients another status than the origin's; returns {ok}."""
        only = status_or_any("from_status_code", from_status_code)
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
    ) -> Removed:
        """Remove the status_rewrite rules with this matcher and codes (-1: those for any); returns {ok, removed}."""
        only = status_or_any("from_status_code", from_status_code)
        return await self._rules.remove_status_rewrite(matcher, only, to_status_code)
