"""Indexing in a process of its own, so that the hub stays as it is: progress and the report as lines of JSON."""

from __future__ import annotations

import sys
from pathlib import Path

from dari.errors import DariError
from dari.rpc.codec import encode

WAIT_S = 600.0


def main() -> int:
    """Arguments: the folder, or nothing for all of them, and `force`."""
    from dari.knowledge.config import load_settings
    from dari.knowledge.indexing import index_folders

    folder, force = sys.argv[1], sys.argv[2] == "force"

    def tell(line: object) -> None:
        sys.stdout.buffer.write(encode(line) + b"\n")
        sys.stdout.buffer.flush()

    try:
        root = Path(folder) if folder else None
        tell(index_folders(load_settings(), root, force=force, has_items=True, listener=tell, wait_s=WAIT_S))
    except DariError as error:
        tell({"schema_version": "error.v1", "message": error.message, "hint": error.hint})
        return 1
    return 0
