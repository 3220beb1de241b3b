"""How often each rule acted. Kept outside the rules, which are values, and outside the sets, which come and go."""

from __future__ import annotations


class Hits:
    def __init__(self, counts: dict[str, int] | None = None) -> None:
        self._counts = dict(counts or {})

    def count(self, rule_id: str) -> None:
        self._counts[rule_id] = self._counts.get(rule_id, 0) + 1

    def of(self, rule_id: str) -> int:
        return self._counts.get(rule_id, 0)

    def forget(self, rule_id: str) -> None:
        self._counts.pop(rule_id, None)

    def copy(self) -> Hits:
        return Hits(self._counts)

    def snapshot(self) -> dict[str, int]:
        return dict(self._counts)

    def replace(self, counts: dict[str, int]) -> None:
        self._counts = dict(counts)
