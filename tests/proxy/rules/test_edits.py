"""Header edits folded into one step do what they would do one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dari.proxy.rule_adapter import FoldedEdits, fold
from dari.proxy.rules.rule import HeaderEdit

Headers = list[tuple[bytes, bytes]]
names = st.sampled_from(["a", "A", "b", "C"])
edits = st.lists(st.builds(HeaderEdit, st.sampled_from(["set", "add", "remove"]), names, st.sampled_from("123")))
headers = st.lists(st.tuples(st.sampled_from([b"A", b"b", b"c", b"d"]), st.sampled_from([b"x", b"y"])), max_size=6)


def one_by_one(found: Headers, given_edits: list[HeaderEdit]) -> dict[bytes, list[bytes]]:
    for edit in given_edits:
        name = edit.name.lower().encode()
        if edit.action != "add":
            found = [pair for pair in found if pair[0].lower() != name]
        if edit.action != "remove":
            found = [*found, (name, edit.value.encode())]
    return by_name(found)


def at_once(found: Headers, folded: FoldedEdits) -> dict[bytes, list[bytes]]:
    gone = {name.lower() for name in (*folded.remove, *(name for name, _ in folded.replace))}
    return by_name([*(pair for pair in found if pair[0].lower() not in gone), *folded.replace, *folded.add])


def by_name(found: Headers) -> dict[bytes, list[bytes]]:
    grouped: dict[bytes, list[bytes]] = {}
    for name, value in found:
        grouped.setdefault(name.lower(), []).append(value)
    return grouped


@given(headers, edits)
def test_folded_edits_have_the_same_outcome(found: Headers, given_edits: list[HeaderEdit]) -> None:
    assert at_once(found, fold(given_edits)) == one_by_one(found, given_edits)


def test_no_edits_fold_to_nothing() -> None:
    assert fold([]) == FoldedEdits((), (), ())
