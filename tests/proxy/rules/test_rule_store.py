"""The live book: ids, order, removal in the original's way, listeners, and sets that never change."""

from __future__ import annotations

import msgspec
import pytest

from dari.errors import Conflict, InvalidInput, NotFound
from dari.proxy.rules import legacy_rules
from dari.proxy.rules.rule import BlockRule, DelayRule, MapLocalRule, MapLocalSource
from dari.proxy.rules.rule_store import MAX_REMOVED_RULES, RulesChanged, RuleStore
from tests.support.proxy_rules import allow, ask, book_of, local, remote, rewrite


def test_ids_are_given_in_order_and_never_reused() -> None:
    book = book_of(allow("a.com"), allow("b.com"))
    book.remove("r2")
    assert book.add(allow("c.com")).rule.id == "r3"
    assert [rule.id for rule in book.rules()] == ["r1", "r3"]


def test_an_id_chosen_by_the_caller_is_replaced() -> None:
    assert book_of().add(BlockRule(id="mine", matcher="/")).rule.id == "r1"


def test_a_change_is_seen_by_the_next_request_and_not_by_a_set_already_taken() -> None:
    book = book_of(local("/api"))
    before = book.current
    book.clear()
    assert ask(before, "http://a/api").map_local is not None
    assert ask(book.current, "http://a/api").map_local is None


def test_every_change_raises_the_revision_and_tells_listeners_after_it_is_in_force() -> None:
    book = RuleStore()
    heard: list[tuple[RulesChanged, int]] = []
    stop = book.subscribe(lambda change: heard.append((change, len(book.current.rules))))
    book.add(local("/a"))
    book.update("r1", {"enabled": False})
    book.update("r1", {"matcher": "/b"})
    book.remove("r1")
    book.clear()
    stop()
    book.add(local("/a"))
    assert [(change.revision, change.action, change.ids, size) for change, size in heard] == [
        (1, "add", ("r1",), 1),
        (2, "update", ("r1",), 1),
        (3, "update", ("r1",), 1),
        (4, "remove", ("r1",), 0),
    ]
    assert book.revision == book.current.revision == 5


def test_a_disabled_rule_never_matches_until_it_is_enabled() -> None:
    book = book_of(local("/api"))
    book.update("r1", {"enabled": False})
    assert ask(book.current, "http://a/api").map_local is None
    book.update("r1", {"enabled": True})
    assert ask(book.current, "http://a/api").map_local is not None


def test_an_update_keeps_id_place_and_hits() -> None:
    book = book_of(local("/api", "one"), local("/api", "two"))
    ask(book.current, "http://a/api")
    book.update("r1", {"source": {"kind": "text", "value": "new"}, "status_code": 201})
    first = book.rules()[0]
    assert isinstance(first, MapLocalRule)
    assert (first.id, first.source, first.status_code) == ("r1", MapLocalSource("text", "new"), 201)
    assert book.hits("r1") == 1


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"destination": "x"}, "destination"),
        ({"id": "r9"}, "id"),
        ({"kind": "allow"}, "kind"),
        ({"status_code": "high"}, "status_code"),
        ({"status_code": 99}, "99"),
        ({"matcher_kind": "fuzzy"}, "fuzzy"),
    ],
)
def test_a_wrong_update_is_refused_by_name_and_changes_nothing(changes: dict[str, object], named: str) -> None:
    book = book_of(local("/api"))
    before = book.rules()
    with pytest.raises(InvalidInput) as refused:
        book.update("r1", changes)
    assert named in refused.value.message
    assert (book.rules(), book.revision) == (before, 1)


def test_an_unknown_id_is_not_found() -> None:
    book = book_of()
    for call in (book.get, book.remove, book.hits):
        with pytest.raises(NotFound):
            call("r9")
    with pytest.raises(NotFound):
        book.update("r9", {})


def test_the_dump_has_the_shape_of_the_original() -> None:
    book = book_of(
        allow("a.com"),
        allow("a.com"),
        local("/t", "text", status_code=201, content_type="text/css"),
        remote("/r", "https://b.com"),
        rewrite("/s", 503),
        rewrite("/s", 500, 200),
        DelayRule(matcher="/", delay_ms=1),
    )
    assert msgspec.to_builtins(legacy_rules.dump(book)) == {
        "allowlist": ("a.com", "a.com"),
        "map_local": (
            {
                "matcher": "/t",
                "source": {"kind": "text", "value": "text"},
                "status_code": 201,
                "content_type": "text/css",
            },
        ),
        "map_remote": ({"matcher": "/r", "destination": "https://b.com"},),
        "status_rewrite": (
            {"matcher": "/s", "from_status_code": None, "to_status_code": 503},
            {"matcher": "/s", "from_status_code": 200, "to_status_code": 500},
        ),
    }


def test_the_dump_shows_what_is_in_force() -> None:
    book = book_of(allow("a.com"), allow("b.com"))
    book.update("r1", {"enabled": False})
    assert legacy_rules.dump(book).allowlist == ("b.com",)


def test_removal_by_matcher_takes_all_duplicates_and_zero_is_no_error() -> None:
    book = book_of(allow("a.com"), allow("a.com"), allow(" a.com"), allow("b.com"), local("a.com"))
    assert legacy_rules.remove_allow(book, " a.com ") == 3
    assert legacy_rules.remove_allow(book, "a.com") == 0
    assert [rule.id for rule in book.rules()] == ["r4", "r5"]


@pytest.mark.parametrize("matcher", ["", "  "])
def test_removal_needs_a_matcher(matcher: str) -> None:
    with pytest.raises(InvalidInput):
        legacy_rules.remove_allow(book_of(), matcher)


def test_filters_of_map_local_removal_are_anded() -> None:
    book = book_of(local("/a", "1"), local("/a", "2"), local("/b", "1"))
    assert legacy_rules.remove_map_local(book, "/a", "file", "1") == 0
    assert legacy_rules.remove_map_local(book, "/a", "text", "1") == 1
    assert legacy_rules.remove_map_local(book, "/a") == 1
    with pytest.raises(InvalidInput, match="source_kind"):
        legacy_rules.remove_map_local(book, "/b", "url")


def test_map_remote_is_removed_by_destination() -> None:
    book = book_of(remote("/a", "https://b.com"), remote("/a", "https://c.com"))
    assert legacy_rules.remove_map_remote(book, "/a", "https://c.com") == 1
    assert legacy_rules.remove_map_remote(book, "/a") == 1


def test_minus_one_removes_only_status_rules_without_from() -> None:
    book = book_of(rewrite("/a", 500), rewrite("/a", 500, 200), rewrite("/a", 404, 200))
    assert legacy_rules.remove_status_rewrite(book, "/a", from_status_code=-7) == 1
    assert legacy_rules.remove_status_rewrite(book, "/a", from_status_code=-1) == 0
    assert legacy_rules.remove_status_rewrite(book, "/a", from_status_code=200, to_status_code=500) == 1
    assert legacy_rules.remove_status_rewrite(book, "/a") == 1


def test_clear_takes_everything_or_one_kind() -> None:
    book = book_of(allow("a.com"), local("/a"), BlockRule(matcher="/"))
    assert book.clear("block") == 1
    assert book.clear() == 2
    assert len(book) == 0
    with pytest.raises(InvalidInput):
        book.clear("nothing")


def test_a_book_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dari.proxy.rules.rule_store.MAX_RULES", 2)
    book = book_of(allow("a"), allow("b"))
    with pytest.raises(Conflict):
        book.add(allow("c"))


def test_a_moved_rule_stands_in_front_of_another_or_at_the_end() -> None:
    book = book_of(local("/a"), local("/b"), local("/c"))

    def order() -> str:
        return " ".join(rule.id for rule in book.current.rules)

    book.move("r3", before="r1")
    assert order() == "r3 r1 r2"
    book.move("r3")
    assert order() == "r1 r2 r3"
    revision = book.revision
    book.move("r2", before="r2")
    assert (order(), book.revision) == ("r1 r2 r3", revision)
    for wrong in (("r9", None), ("r1", "r9")):
        with pytest.raises(NotFound):
            book.move(*wrong)


def test_a_draft_that_only_moved_rules_is_adopted() -> None:
    book = book_of(local("/a"), local("/b"))
    draft = book.draft()
    draft.move("r2", before="r1")
    book.adopt(draft)
    assert [rule.id for rule in book.rules()] == ["r2", "r1"]


def test_the_last_removed_rules_can_be_restored_and_no_more() -> None:
    book = book_of(*(local(f"/{number}") for number in range(MAX_REMOVED_RULES + 1)))
    book.clear()
    with pytest.raises(NotFound):
        book.restore("r1")
    for number in range(2, MAX_REMOVED_RULES + 2):
        book.restore(f"r{number}")
    assert len(book) == MAX_REMOVED_RULES
    assert sorted(int(rule.id[1:]) for rule in book.rules()) == list(range(2, MAX_REMOVED_RULES + 2))
