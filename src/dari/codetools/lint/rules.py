"""Which of the caller's rules go to which linter: their names tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from dari.errors import InvalidInput

_BIOME_GROUPS = "a11y|complexity|correctness|nursery|performance|security|style|suspicious"
_SHAPES = {
    "ruff": re.compile(r"(?!SC\d)[A-Z]{1,6}\d{0,4}"),
    "flake8": re.compile(r"(?!SC\d)[A-Z]{1,6}\d{0,4}"),
    "shellcheck": re.compile(r"SC\d{4}"),
    "biome": re.compile(rf"(?:lint/)?(?:{_BIOME_GROUPS})(?:/[A-Za-z0-9]+)?"),
    # `no-var`, `@typescript-eslint/no-explicit-any`, and printf or copylocks of vet.
    "eslint": re.compile(rf"(?!(?:lint/)?(?:{_BIOME_GROUPS})(?:/|$))@?[a-z][a-z0-9-]*(?:/[a-z0-9./-]+)?"),
    "go vet": re.compile(r"[a-z]+"),
}
_ALL = "ALL"


class RuleFilter(Struct, frozen=True):
    select: tuple[str, ...] = ()
    """Only these; empty for those of the project."""
    ignore: tuple[str, ...] = ()

    def of(self, engine: str) -> RuleFilter | None:
        """The rules of one engine; None when only rules of others are selected."""
        shape = _SHAPES[engine]
        select = tuple(rule for rule in self.select if rule == _ALL or shape.fullmatch(rule))
        if self.select and not select:
            return None
        return RuleFilter(select, tuple(rule for rule in self.ignore if shape.fullmatch(rule)))

    @property
    def is_narrow(self) -> bool:
        return bool(self.ignore) or bool(self.select and _ALL not in self.select)

    def keeps(self, rule: str) -> bool:
        """For engines that cannot be asked for single rules."""
        return (not self.select or rule in self.select or _ALL in self.select) and rule not in self.ignore


def make_filter(select: Sequence[str], ignore: Sequence[str]) -> RuleFilter:
    """Refuse what is a rule of no linter: a typing error would select nothing, silently."""
    for rule in (*select, *ignore):
        if not any(shape.fullmatch(rule) for shape in _SHAPES.values()):
            raise InvalidInput(
                f"rules must be names of rules, got {rule[:60]!r}",
                "such as F401, E, suspicious/noDebugger, no-var or SC2086",
            )
    return RuleFilter(tuple(select), tuple(ignore))
