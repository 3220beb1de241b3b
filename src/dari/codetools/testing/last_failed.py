"""Which tests failed last, per project and framework, outside of the repository."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.paths import home, private_dir, read_regular, write_private

MAX_IDS = 5000
_MAX_BYTES = 4 << 20


class FailedIds(Struct, frozen=True):
    project: str
    ids: list[str]


class LastFailed:
    """One file per project and framework. `folder` is made with the first failure."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def read(self, project: Path, framework: str) -> frozenset[str]:
        """Nothing where nothing failed, and where the file cannot be read."""
        try:
            found = msgspec.json.decode(read_regular(self._file(project, framework), _MAX_BYTES), type=FailedIds)
        except (OSError, msgspec.DecodeError):
            return frozenset()
        return frozenset(found.ids)

    def update(self, project: Path, framework: str, failed: Iterable[str], passed: Iterable[str]) -> None:
        """Those that failed are added, those that passed are taken out, the others stay: a run may be of a part."""
        before, gone, new = self.read(project, framework), frozenset(passed), frozenset(failed)
        # A file that could not be loaded is done with once a test of it ran.
        loaded = {one.partition("::")[0] for one in (*gone, *new) if "::" in one}
        after = (before - gone - loaded) | new
        if after == before:
            return
        path = self._file(project, framework)
        if not after:
            path.unlink(missing_ok=True)
            return
        private_dir(path.parent)
        write_private(path, msgspec.json.encode(FailedIds(str(project), sorted(after)[:MAX_IDS])))

    def _file(self, project: Path, framework: str) -> Path:
        digest = hashlib.sha256(str(project).encode("utf-8", "surrogateescape")).hexdigest()[:24]
        folder = self._folder or home() / "codetools" / "tests"
        return folder / f"{digest}-{framework}.json"
