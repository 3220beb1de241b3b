"""Files that an output names, looked for where the command ran: only those that are there are worth a suggestion."""

from __future__ import annotations

import os
import re
from pathlib import Path

_WENT = re.compile(
    r"(?:^|[;&|(]\s*)cd\s+(\"[^\"]+\"|'[^']+'|[^\s;&|]+)|\s(?:-C|--directory|--prefix|--manifest-path)[ =]([^\s;&|]+)"
)
_ENTERED = re.compile(r"Entering directory [`'‘]([^'’]+)['’]")
_MAX_FOLDERS = 8
_MAX_LOOKUPS = 200


class FileFinder:
    """Looks in the folder of the pane, and in those that the command or the output says it went to."""

    def __init__(self, cwd: str, command: str = "", output: str = "") -> None:
        self._cwd = cwd
        self._lookups = 0
        went = [next(filter(None, match)).strip("\"'") for match in _WENT.findall(command)]
        went = [folder if not folder.endswith(".toml") else os.path.dirname(folder) for folder in went]
        folders = dict.fromkeys(["", *went, *_ENTERED.findall(output[:100_000])])
        self._folders = list(folders)[:_MAX_FOLDERS]

    def find(self, value: str) -> str:
        """The value as it is called from the pane's folder, `::test` and the like kept; "" when it is not there."""
        path, colons, rest = value.partition("::")
        for folder in self._folders:
            place = os.path.join(folder, path)
            if self._exists(place):
                return place + colons + rest
        return ""

    def nearest_folder(self, path: str) -> str:
        """The folder that a missing path would be in, or the next one above that exists; "" when that is the pane's."""
        for parent in Path(path).parents:
            if str(parent) != "." and self._exists(str(parent)):
                return str(parent)
        return ""

    def _exists(self, path: str) -> bool:
        self._lookups += 1
        if self._lookups > _MAX_LOOKUPS or "\0" in path or len(path) > 4096:
            return False
        try:
            return os.path.lexists(os.path.join(self._cwd, path))
        except (OSError, ValueError):
            return False
