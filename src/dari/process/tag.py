"""A child's tag: how its processes are found again, wherever they went."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Mapping

from msgspec import Struct

from dari.process.reaper_main import TAG_VARIABLE, brand_of, state_of

_BRAND_BITS = 60
if sys.platform == "linux":
    import resource

    _prlimit: Callable[[int, int, tuple[int, int]], object] | None = resource.prlimit
    _RSS = resource.RLIMIT_RSS
else:
    _prlimit, _RSS = None, 0


class ProcessTag(Struct, frozen=True):
    token: str
    """In the environment, at the end of the chain of those that started us."""
    brand: int
    """As a resource limit without effect; 0 when it could not be set."""

    @classmethod
    def new(cls) -> ProcessTag:
        return cls(secrets.token_hex(12), (1 << _BRAND_BITS) | secrets.randbits(_BRAND_BITS))

    def environment(self, source: Mapping[str, str] | None = None) -> dict[str, str]:
        """A daemon of ours may itself be somebody's child: the older tags stay, so that theirs finds us all."""
        older = (os.environ if source is None else source).get(TAG_VARIABLE, "")
        return {TAG_VARIABLE: f"{older}:{self.token}" if older else self.token}

    def apply(self, pid: int) -> bool:
        """Brand a process that has just been started, and what it has managed to start since; the rest inherits it.

        From outside, after the start: set on ourselves around the fork, it would reach whatever another thread
        forks at that moment.
        """
        if _prlimit is None:
            return False
        try:
            _prlimit(pid, _RSS, (self.brand, self.brand))
        except (OSError, ValueError):
            return False  # it has ended, or our own limit is lower: the environment has to do
        for started in children_of(pid):
            self.apply(started)
        return True

    def as_dict(self) -> dict[str, int]:
        return {self.token: self.brand}


def find_adopted_zombies(tags: Mapping[str, int]) -> list[int]:
    """Ended processes that became our children because we are a subreaper: ours to reap, nobody waits for them."""
    brands = {b"%d" % brand for brand in tags.values() if brand}
    return [pid for pid in children_of(os.getpid()) if state_of(pid) == "Z" and brand_of(pid) in brands]


def children_of(pid: int) -> set[int]:
    """Empty where it is gone, and where the kernel does not tell."""
    children: set[int] = set()
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return children
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children.update(map(int, file.read().split()))
        except OSError:
            continue
    return children
