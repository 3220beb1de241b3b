"""Who imports what: edges from a file to those that it uses, and the way back from a change to the tests."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from msgspec import Struct


class Edges(Struct, frozen=True):
    """`weak`: it is run by the import, but nothing of it is named (`__init__.py` of a package)."""

    strong: frozenset[str]
    weak: frozenset[str] = frozenset()


class ImportGraph:
    def __init__(self, edges: Mapping[str, Edges]) -> None:
        self._users: dict[str, list[str]] = {}
        self._weak_users: dict[str, list[str]] = {}
        for file, used in edges.items():
            for target in used.strong:
                self._users.setdefault(target, []).append(file)
            for target in used.weak - used.strong:
                self._weak_users.setdefault(target, []).append(file)

    def walk_back(self, changed: Iterable[str]) -> dict[str, list[str]]:
        """Every file that reaches a change, with the way to it: [file, …, change]. The shortest one is taken."""
        ways: dict[str, list[str]] = {file: [file] for file in changed}
        waiting = deque(ways)
        while waiting:
            file = waiting.popleft()
            way = ways[file]
            near = self._users.get(file, [])
            for user in [*near, *self._weak_users.get(file, [])] if len(way) == 1 else near:
                if user not in ways:
                    ways[user] = [user, *way]
                    waiting.append(user)
        return ways
