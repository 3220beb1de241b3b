"""Rules survive a restart, and one that cannot be read does not take the others with it."""

from __future__ import annotations

import msgspec
import pytest

from dari.errors import InvalidInput
from dari.proxy.rules.explanation import Explanation
from dari.proxy.rules.rule import BlockRule, HeaderEdit, HeaderRewriteRule, MockRule
from dari.proxy.rules.rule_store import RuleStore, RulesWithHits
from tests.support.proxy_rules import allow, ask, book_of, local, remote, rewrite


def restarted(book: RuleStore) -> RuleStore:
    new = RuleStore()
    assert new.load_state(book.dump_state()) == ()
    return new


def test_rules_order_hits_and_the_next_id_come_back() -> None:
    book = book_of(
        allow("*"),
        local("/a", "ü"),
        remote("/b", "https://b.com"),
        rewrite("/c", 503, 200),
        MockRule(matcher="/d", headers=(("x", "y"),), body=b"\x00\xff"),
        HeaderRewriteRule(matcher="/e", edits=(HeaderEdit("set", "a", "b"),)),
        BlockRule(matcher=r"x\d", matcher_kind="regex", method="GET", enabled=False),
    )
    ask(book.current, "http://h/a")
    book.remove("r3")
    new = restarted(book)
    assert new.rules() == book.rules()
    assert new.listed() == book.listed()
    assert new.add(allow("x")).rule.id == "r8"
    assert ask(new.current, "http://h/a").map_local is not None


def test_loading_replaces_what_was_there_and_tells_listeners() -> None:
    book = book_of(local("/old"))
    heard: list[str] = []
    book.subscribe(lambda change: heard.append(change.action))
    book.load_state(book_of(local("/new")).dump_state())
    assert [rule.matcher for rule in book.rules()] == ["/new"]
    assert heard == ["load"]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"version":"1"}', b'{"rules":[]}', b'{"version":2}'])
def test_bytes_that_are_no_state_are_refused_and_change_nothing(data: bytes) -> None:
    book = book_of(local("/kept"))
    with pytest.raises(InvalidInput):
        book.load_state(data)
    assert [rule.matcher for rule in book.rules()] == ["/kept"]


def test_what_a_newer_dari_wrote_is_read_as_far_as_understood() -> None:
    state = {
        "version": 1,
        "mood": "good",
        "rules": [
            {"kind": "allow", "id": "r7", "matcher": "a.com", "colour": "red"},
            {"kind": "teleport", "id": "r8", "matcher": "/"},
            {"kind": "block", "id": "r9", "matcher": "(", "matcher_kind": "regex"},
            {"kind": "block", "id": "r7", "matcher": "/twice"},
            {"kind": "block"},
            5,
            {"kind": "block", "matcher": "/no-id"},
        ],
        "hits": {"r7": 4, "gone": 1},
    }
    book = RuleStore()
    notes = book.load_state(msgspec.json.encode(state))
    assert [(rule.id, rule.matcher) for rule in book.rules()] == [("r7", "a.com"), ("r1", "/twice"), ("r2", "/no-id")]
    assert len(notes) == 5
    assert "colour" in notes[0] and "teleport" in notes[1]
    assert book.hits("r7") == 4
    assert book.add(allow("b.com")).rule.id == "r8"


def test_a_mapped_file_that_is_gone_stays_a_rule() -> None:
    state = (
        b'{"version":1,"rules":[{"kind":"map_local","id":"r1","matcher":"/","source":{"kind":"file","value":"/gone"}}]}'
    )
    book = RuleStore()
    assert book.load_state(state) == ()
    assert ask(book.current, "http://h/").map_local is not None


def test_the_hits_of_a_removed_rule_are_not_kept() -> None:
    book = book_of(local("/a"), local("/b"))
    for path in "ab":
        ask(book.current, f"http://h/{path}")
    book.remove("r1")
    assert msgspec.json.decode(book.dump_state())["hits"] == {"r2": 1}


def test_listings_and_explanations_cross_the_wire_whole() -> None:
    book = book_of(allow("*"), local("/a"), MockRule(matcher="/d", body=b"\xff"), rewrite("/c", 503))
    listed = book.listed()
    assert msgspec.json.decode(msgspec.json.encode(listed), type=tuple[RulesWithHits, ...]) == listed
    explanation = book.explain("https://h/a", has_ca=True)
    assert msgspec.json.decode(msgspec.json.encode(explanation), type=Explanation) == explanation
    assert msgspec.json.schema(RulesWithHits) and msgspec.json.schema(Explanation)
