"""The rules as bytes on disk: versioned JSON that an older or newer Dari reads as far as it understands it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from dari.errors import DariError, InvalidInput
from dari.proxy.rules.matchers import Matcher
from dari.proxy.rules.rule import KINDS, AnyRule
from dari.proxy.rules.ruleset import matcher_of

VERSION = 1


class State(Struct):
    version: int
    last_number: int = 0
    rules: list[msgspec.Raw] = []
    hits: dict[str, int] = {}


class Saved(NamedTuple):
    rules: list[tuple[AnyRule, Matcher]]
    last_number: int
    hits: dict[str, int]
    notes: tuple[str, ...]


def encode(rules: Iterable[AnyRule], last_number: int, hits: dict[str, int]) -> bytes:
    raw = [msgspec.Raw(msgspec.json.encode(rule)) for rule in rules]
    return msgspec.json.encode(State(VERSION, last_number, raw, hits))


def decode(data: bytes) -> Saved:
    """Rules that cannot be read are left out with a note: one bad rule must not cost the others."""
    try:
        state = msgspec.json.decode(data, type=State)
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise InvalidInput(f"the saved rules cannot be read: {wrong}", "move the file away to start empty") from None
    if state.version > VERSION:
        raise InvalidInput(
            f"the saved rules are of version {state.version}; this Dari reads {VERSION}", "install a newer Dari"
        )
    rules: dict[str, tuple[AnyRule, Matcher]] = {}
    notes: list[str] = []
    last_number = max(state.last_number, 0)
    for place, raw in enumerate(state.rules, 1):
        try:
            rule, extra = _decode_rule(raw)
            rule_id = rule.id
            if not rule_id or rule_id in rules:
                last_number += 1
                rule_id = f"r{last_number}"
                rule = msgspec.structs.replace(rule, id=rule_id)
            rules[rule_id] = (rule, matcher_of(rule))
        except (msgspec.DecodeError, DariError, KeyError) as wrong:
            notes.append(f"rule {place} left out: {wrong}")
            continue
        if extra:
            notes.append(f"rule {rule_id}: unknown {', '.join(extra)} ignored")
    numbers = [int(rule_id[1:]) for rule_id in rules if rule_id[1:].isascii() and rule_id[1:].isdigit()]
    return Saved(list(rules.values()), max([last_number, *numbers]), state.hits, tuple(notes))


def _decode_rule(raw: msgspec.Raw) -> tuple[AnyRule, list[str]]:
    values: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, Any])
    kind = KINDS.get(str(values.get("kind")))
    if kind is None:
        raise InvalidInput(f"unknown kind {values.get('kind')!r}")
    rule = msgspec.json.decode(raw, type=kind)
    return rule, sorted(values.keys() - set(kind.__struct_fields__) - {"kind"})
