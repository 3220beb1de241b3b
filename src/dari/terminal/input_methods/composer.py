"""The interface of every input method: keys in, committed text out, unfinished text in the preedit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CompositionStep:
    """What a key did. `commit` goes to the program, `preedit` never does.

    Not `is_used`: the key is none of the input method's, and goes to the program after `commit`.
    """

    commit: str = ""
    preedit: str = ""
    is_used: bool = True


class Composer(Protocol):
    """One input method at one place. Keys are single characters, or `space`, `enter`, `escape`, `tab`."""

    @property
    def preedit(self) -> str: ...

    @property
    def candidates(self) -> tuple[str, ...]:
        """What could be chosen now; empty when there is nothing to choose."""
        ...

    def feed(self, key: str) -> CompositionStep: ...

    def backspace(self) -> CompositionStep:
        """Undo the last key inside the preedit; with none, the key is not used."""
        ...

    def finish(self) -> CompositionStep:
        """Commit the preedit."""
        ...
