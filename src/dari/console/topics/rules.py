"""Topic `rules`: the proxy's rules in their order, then their hits as they are counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from dari.console.live import TopicOptions
from dari.proxy.api.rules import RuleView

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

LOOK_S = 1.0
SHARE_OF_TIME = 0.1
"""With thousands of rules a look takes long; crabd has other things to do."""
MAX_SHOWN_CHARS = 300


class RulesState(Struct, frozen=True):
    """Texts of `settings` are cut; `crab_rules_list` has them whole."""

    revision: int
    rules: list[RuleView]


class RuleHits(Struct, frozen=True):
    """Of the rules that were hit since the last event."""

    hits: dict[str, int]


async def follow_rules(
    backends: ConsoleBackends, argument: str, options: TopicOptions
) -> AsyncIterator[RulesState | RuleHits]:
    rules = backends.proxy(False).rules
    clock = asyncio.get_running_loop().time
    shown: list[RuleView] = []
    hits: dict[str, int] = {}
    revision = -1
    while True:
        began = clock()
        now = await rules.list()
        took_s = clock() - began
        still = [msgspec.structs.replace(rule, hits=0) for rule in now.rules]
        counted = {rule.id: rule.hits for rule in now.rules}
        # Also what was removed and brought back between two looks: the page has shown it as gone.
        if now.revision != revision or still != shown:
            yield RulesState(now.revision, [_shorten(rule) for rule in now.rules])
        elif counted != hits:
            yield RuleHits({rule_id: count for rule_id, count in counted.items() if hits.get(rule_id) != count})
        shown, hits, revision = still, counted, now.revision
        await asyncio.sleep(max(LOOK_S, took_s / SHARE_OF_TIME))


def _shorten(rule: RuleView) -> RuleView:
    return msgspec.structs.replace(rule, settings=_cut(rule.settings))


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_SHOWN_CHARS else value[:MAX_SHOWN_CHARS] + "…"
    if isinstance(value, bytes):
        return value[:MAX_SHOWN_CHARS]
    if isinstance(value, dict):
        return {name: _cut(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(member) for member in value[:20]]
    return value
