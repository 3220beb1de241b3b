"""The audit logs of one person as one: the daemon's, and those of commands that ran beside it (`--no-daemon`)."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from dari.core.audit.files import LogFile, log_files, torn_bytes
from dari.core.audit.log import BATCH_S
from dari.core.audit.query import RecordFilter, query, record_at
from dari.core.audit.record import AuditRecord, decode
from dari.core.audit.spool import SPOOL_FOLDER, read_spool, spooled

POLL_S = 0.25
_WRITE_S = 0.05


@dataclass(frozen=True, slots=True)
class Log:
    """`label` stands before the numbers of its records: empty for the daemon's, `1/`, `2/` … for the others."""

    directory: Path
    label: str = ""


Found = tuple[Log, AuditRecord]


def logs_in(home: Path) -> list[Log]:
    """The daemon's first, whether it is there or not."""
    beside = home / "audit-beside"
    others = [path for path in beside.iterdir() if path.name.isdigit()] if beside.is_dir() else []
    found = sorted(others, key=lambda path: int(path.name))
    return [Log(home / "audit"), *(Log(path, f"{path.name}/") for path in found)]


def settle(home: Path, sleep: Callable[[float], None] = time.sleep) -> None:
    """Let a hub write what it has gathered, so that a call that has just ended is shown. Whether one runs is not asked
    for: looking at its lock could keep another from starting."""
    if (home / "audit").is_dir():
        sleep(BATCH_S + _WRITE_S)


def waiting(home: Path, filters: RecordFilter, on_unreadable: Callable[[OSError], None]) -> list[Found]:
    """Records that other processes keep until a hub runs, without numbers: `w` stands for them."""
    spool = home / SPOOL_FOLDER
    found: list[Found] = []
    for path in spooled(spool):
        try:
            records = [each.numbered(0, "") for each in read_spool(path)]
        except FileNotFoundError:
            continue  # the hub took it just now
        except OSError as error:
            on_unreadable(error)
            continue
        found += [(Log(spool, "w"), one) for one in records if filters.match(one)]
    return found


def newest(logs: list[Log], filters: RecordFilter, limit: int, waiting: Sequence[Found] = ()) -> list[Found]:
    """Records of all logs that match, newest first."""
    given = {name: getattr(filters, name) for name in RecordFilter.__slots__}
    found = [(log, record) for log in logs for record in query(log.directory, limit=limit, **given)]
    found += waiting
    # Within a log the number decides: clocks go back.
    found.sort(key=lambda one: (one[1].at, one[0].label, one[1].n), reverse=True)
    return found[:limit]


def record_of(log: Log, number: int) -> AuditRecord | None:
    return record_at(log.directory, number)


@dataclass(slots=True)
class _Place:
    """How far one log has been read."""

    file: LogFile | None
    done: int = 0
    rest: bytes = b""


@dataclass(slots=True)
class Follower:
    """Records as they are written. `find` is asked for the logs again and again: others may come."""

    find: Callable[[], list[Log]]
    _places: dict[Path, _Place] = field(default_factory=dict)

    def mark(self) -> None:
        """From here on nothing is missed."""
        for log in self.find():
            files = log_files(log.directory)
            newest_file = files[-1] if files else None
            size = newest_file.path.stat().st_size - torn_bytes(newest_file.path) if newest_file is not None else 0
            self._places[log.directory] = _Place(newest_file, size)

    def fresh(self) -> list[Found]:
        """What has been written since the last time."""
        return [(log, record) for log in self.find() for record in self._fresh(log.directory)]

    def _fresh(self, directory: Path) -> list[AuditRecord]:
        place = self._places.setdefault(directory, _Place(None))
        found: list[AuditRecord] = []
        for file in log_files(directory):
            if place.file is not None and file < place.file:
                continue
            if file != place.file:
                place.file, place.done, place.rest = file, 0, b""
            with file.path.open("rb") as stream:
                stream.seek(place.done)
                data = stream.read()
            place.done += len(data)
            *lines, place.rest = (place.rest + data).split(b"\n")
            for line in lines:
                try:
                    found.append(decode(line))
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue  # `verify` is for what is broken
        return found


def reader_has_left() -> bool:
    """Whether nobody reads our stdout any more, noticed without writing to it; else it waits POLL_S."""
    try:
        watched = select.poll()
        watched.register(sys.stdout, 0)  # the kernel tells of a closed pipe unasked
    except (OSError, ValueError, AttributeError):
        time.sleep(POLL_S)  # Windows, or no real stream
        return False
    return bool(watched.poll(POLL_S * 1000))
