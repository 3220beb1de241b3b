"""Which files a map_local rule may serve and a HAR may be written to: an agent that writes rules is not a shell."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from dari.errors import Denied

ROOTS_VARIABLE = "CRAB_MAP_LOCAL_ALLOWED_ROOTS"


class LocalFiles:
    """Files below the roots. In roots that nobody named, hidden files and folders stay out: `~/.ssh`, `~/.aws`."""

    def __init__(self, roots: Iterable[str] = (), *, hides_hidden: bool = True) -> None:
        self._roots = tuple(os.path.realpath(root) for root in roots)
        self._hides_hidden = hides_hidden

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> LocalFiles:
        """Roots from `CRAB_MAP_LOCAL_ALLOWED_ROOTS` (`:` between them), else the home and temporary directories."""
        named = [root for root in environment.get(ROOTS_VARIABLE, "").split(os.pathsep) if os.path.isabs(root)]
        if named:
            return cls(named, hides_hidden=False)
        return cls((str(Path.home()), tempfile.gettempdir()))

    @property
    def roots(self) -> tuple[str, ...]:
        return self._roots

    def permits(self, path: str) -> bool:
        """By where the path really leads, symbolic links followed."""
        if "\0" in path or not os.path.isabs(path):
            return False
        real = os.path.realpath(path)
        return any(self._is_inside(real, root) for root in self._roots)

    def check(self, path: str, what: str) -> None:
        """Raises Denied for a file that is out of bounds."""
        if not self.permits(path):
            shown = ", ".join(self._roots)
            hidden = "; hidden files and folders are left out" if self._hides_hidden else ""
            raise Denied(
                f"{what} {path!r} is not below an allowed folder",
                f"use an absolute path below {shown}{hidden} (set {ROOTS_VARIABLE} for crabd to allow others)",
            )

    def _is_inside(self, real: str, root: str) -> bool:
        inside = real.removeprefix(root.rstrip("/") + "/")
        if inside == real:
            return False
        return not (self._hides_hidden and any(part.startswith(".") for part in inside.split("/")))
