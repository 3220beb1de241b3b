"""The rules of intents, which are data: files in `rules/`, read when the first question comes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from dari.struct_types import ready

RULES = Path(__file__).parent / "rules"
_FLAGS = re.MULTILINE


class IntentRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sign of an intent. All that is given has to hold; `weight` is how sure one match makes us."""

    id: str
    weight: float
    pattern: str = ""
    """Searched line by line in the output; `^` and `$` are the ends of a line."""
    command: str = ""
    exit: Literal["any", "ok", "failed", "running"] = "any"
    codes: list[int] = []
    where: Literal["anywhere", "last_line", "end"] = "anywhere"
    """`last_line` is the last one with text on it, `end` the last five of these."""
    says: dict[str, str] = {}
    """Facts for the context that a match means."""


class Extract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact for the context: the first group that matched, of every match where `many`."""

    name: str
    pattern: str
    many: bool = False
    source: Literal["output", "command", "last_line"] = "output"


class Suggest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command to run next. `{name}` is a fact (the first of many), `{*name}` all of them; quoted for the shell."""

    run: str
    when: str = ""
    given: dict[str, str] = {}
    is_missing: bool = False
    """Its paths need not exist; any other suggestion names only files that do."""


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far the way a command ended speaks for the intent: factors on its score."""

    ok: float = 1.0
    failed: float = 1.0
    running: float = 1.0
    shown: float = 1.0
    """The command only shows a text (`cat app.log`) and ended well: errors in the text are not its own."""


class IntentRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    about: str
    reader: str = ""
    """A type of `parse_structured` that fills the context."""
    priority: int = 0
    """Decides between intents that are equally sure; the more special one is higher."""
    most: float = 0.99
    """As sure as this intent gets; a general one stays below what one good sign of a special one gives."""
    alone: float = 0.0
    """As sure as this intent is at least when nothing speaks for another one."""
    exit: Weights = Weights()
    rule: list[IntentRule] = []
    extract: list[Extract] = []
    suggest: list[Suggest] = []


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    intent: list[IntentRules]


@cache
def load_rules() -> tuple[IntentRules, ...]:
    """Every intent of every file, in the order of the file names."""
    found: list[IntentRules] = []
    for path in sorted(RULES.glob("*.toml")):
        found += read_rules(path.read_text("utf-8"))
    return tuple(found)


def read_rules(text: str) -> list[IntentRules]:
    """The intents of one file; a name that is misspelt or a type that is wrong raises with its place."""
    import tomllib

    return msgspec.convert(tomllib.loads(text), ready(_File)).intent


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, _FLAGS)
