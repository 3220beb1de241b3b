"""The hub's side of the spools: their records go into the log, once each, and the files go away."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from dari.core.audit.spool import read_spool, spooled, take_spool

if TYPE_CHECKING:
    from dari.core.audit.log import AuditLog

INTERVAL_S = 1.0
MAX_MARKS = 10_000
_log = logging.getLogger("dari.audit")


class SpoolTakeover:
    """`take` is for a thread: it reads files and waits for the disk.

    A hub that is killed may leave a file whose records are in the log. Records of a file go into the log in one batch
    that ends with a record of its name, so the next hub knows.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._written: set[str] = set()
        """Names of files whose records the log has, but which are still there: the disk had not answered yet."""

    def has_work(self) -> bool:
        """Whether a file waits; costs a look into a folder."""
        return bool(spooled(self._directory))

    def take(self, log: AuditLog) -> int:
        """Take over what there is; the number of records."""
        with self._lock:
            return sum(self._take(path, log) for path in spooled(self._directory))

    def _take(self, path: Path, log: AuditLog) -> int:
        try:
            taken = take_spool(path)
            number = 0
            if taken != path or not self._is_in_log(path, log):
                records = read_spool(taken)
                if not log.take_over(records, taken.name):
                    return 0  # the log is busy: at the next time
                number = len(records)
                self._written.add(taken.name)
            if log.flush():
                taken.unlink()
                self._written.discard(taken.name)
            return number
        except OSError as error:
            _log.warning("audit event=spool_left path=%s: %s", path, error)
            return 0

    def _is_in_log(self, path: Path, log: AuditLog) -> bool:
        """Whether a hub, this one or one that was killed, has written the records of this file already."""
        if path.name in self._written:
            return True
        from dari.core.audit.query import query

        since = datetime.fromtimestamp(path.stat().st_mtime, UTC) - timedelta(days=1)
        marks = query(log.directory, kind="spooled", since=since, limit=MAX_MARKS)
        return any(one.detail.get("file") == path.name for one in marks)
