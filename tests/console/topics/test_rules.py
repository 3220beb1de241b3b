"""Topic `rules`: the list first, then what changes."""

from __future__ import annotations

from pathlib import Path

from dari.console.topics.rules import MAX_SHOWN_CHARS, RuleHits, RulesState, follow_rules
from tests.support.console_proxy import console_proxy, following
from tests.support.origins.origin import origin


async def test_a_page_sees_rules_hits_and_the_order_as_they_change(tmp_path: Path) -> None:
    async with origin() as site, console_proxy(tmp_path) as (rig, backends), following(backends, follow_rules) as page:
        assert (await page.next()).rules == []
        for text in ("one", "two"):
            await rig.service.rules.add_map_local_text(site.url("/"), text)
        state = await page.next()
        while len(state.rules) < 2:
            state = await page.next()
        assert isinstance(state, RulesState) and [rule.id for rule in state.rules] == ["r1", "r2"]
        await rig.get(site.url("/"))
        assert await page.next() == RuleHits({"r1": 1})
        await rig.service.rules.move("r2", before="r1")
        assert [(rule.id, rule.hits) for rule in (await page.next()).rules] == [("r2", 0), ("r1", 1)]


async def test_a_rule_that_was_removed_and_restored_between_two_looks_is_told_again(tmp_path: Path) -> None:
    async with console_proxy(tmp_path) as (rig, backends), following(backends, follow_rules) as page:
        await rig.service.rules.add_map_local_text("/", "x")
        before = await page.next()
        await rig.service.rules.remove("r1")
        await rig.service.rules.restore("r1")
        assert (await page.next()).rules == before.rules


async def test_a_long_text_of_a_rule_is_cut_for_the_list(tmp_path: Path) -> None:
    async with console_proxy(tmp_path) as (rig, backends), following(backends, follow_rules) as page:
        await rig.service.rules.add_map_local_text("/", "x" * 100_000)
        (rule,) = (await page.next()).rules
        assert len(rule.settings["source"]["value"]) == MAX_SHOWN_CHARS + 1
