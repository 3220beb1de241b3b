"""A folder as data, to compare it before and after: content, kind, mode, links."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

_MAX_BYTES = 64 << 20


def write_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def read_tree(root: Path) -> dict[str, tuple[int, bytes | str]]:
    """Path → mode and content; folders are there too, with the content `folder`."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            info = path.lstat()
            content: bytes | str
            if stat.S_ISLNK(info.st_mode):
                content = f"link to {os.readlink(path)}"
            elif stat.S_ISREG(info.st_mode):
                content = path.read_bytes() if info.st_size < _MAX_BYTES else f"{info.st_size} bytes"
            else:
                content = "folder" if stat.S_ISDIR(info.st_mode) else "special"
            found[os.path.relpath(path, root)] = info.st_mode, content
    return found
