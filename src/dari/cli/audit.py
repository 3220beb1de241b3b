"""`dari audit`: who called what, what came of it, and is the log whole? Reads files only; no daemon is needed."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from io import TextIOWrapper
from pathlib import Path
from typing import TypeVar, get_args

from dari.cli.audit_logs import (
    Follower,
    Found,
    Log,
    logs_in,
    newest,
    reader_has_left,
    record_of,
    settle,
    waiting,
)
from dari.cli.kit.program import ProgramParser
from dari.core.audit.files import Head
from dari.core.audit.query import RecordFilter
from dari.core.audit.record import AuditRecord, Outcome, RecordKind, encode
from dari.core.audit.spool import SPOOL_FOLDER, SpoolReport, check_spools
from dari.core.audit.verify import VerifyReport, last_record, verify
from dari.paths import home
from dari.text.sanitize import escape_hidden

WORDS = ("tail", "query", "show", "verify")
PARTS = ("crab", "crux", "kebab", "crewx_tools", "bridge", "dari")
BROKEN = 3
MAX_PLACES = 20
Report = TypeVar("Report")
_EPILOG = """\
examples:
  dari audit                                  the last 20 records
  dari audit --follow --server 'git*'         watch one server; Ctrl-C ends it
  dari audit --part crux                      what agents did in the terminal
  dari audit query --outcome denied --since 2h
  dari audit query --who 'mcp:*' --tool '*delete*' --since 2026-11-01 --json
  dari audit query --session 3f1c… --text build
  dari audit show 42                          one record with its arguments and its hashes
  dari audit verify                           exit 0: whole; 3: the first broken line is named; spools too
  dari audit verify --known 1042:9f2c…        … and record 1042 is still the one that was noted

--server, --tool and --who are globs. --since and --until take 90s, 15m, 2h, 7d, a date, or a time (2026-11-16T14:00).
What ran beside the daemon (--no-daemon) has a log of its own; its records are numbered 1/7, 2/7 …
Records that wait for the hub, because none runs, are shown with w0 in place of a number.
guide: docs/guide/trust.md
"""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TORN_TRIES = 4
_TORN_WAIT_S = 0.4


def make_parser() -> ProgramParser:
    parser = ProgramParser(
        prog="dari audit",
        description="Every tool call of every part and every decision of a person, in a chain of hashes.",
        epilog=_EPILOG,
    )
    parser.add_argument("word", nargs="?", choices=WORDS, default="tail", help="default: %(default)s")
    parser.add_argument("number", nargs="?", type=_number, metavar="N", help="show: the number of the record")
    parser.add_argument("--part", choices=PARTS, help="proxy, terminal, knowledge base, other servers, Dari itself")
    parser.add_argument("--server", metavar="GLOB", help="records of these servers")
    parser.add_argument("--tool", metavar="GLOB", help="records of these tools")
    parser.add_argument("--who", metavar="GLOB", help="records of these callers, or people for decisions")
    parser.add_argument("--not-who", metavar="GLOB", help="without records of these callers, such as 'app*'")
    parser.add_argument("--outcome", choices=get_args(Outcome), help="how the call ended")
    parser.add_argument("--kind", choices=get_args(RecordKind), help="calls, decisions, or what befell the log itself")
    parser.add_argument("--session", metavar="ID", help="records of one session of a client")
    parser.add_argument("--text", metavar="TEXT", help="records with this in names, arguments, errors or details")
    parser.add_argument("--since", metavar="WHEN", type=moment, help="not before this time")
    parser.add_argument("--until", metavar="WHEN", type=moment, help="before this time")
    parser.add_argument("--limit", metavar="N", type=_positive, help="at most so many (default: tail 20, query 100)")
    parser.add_argument("--follow", "-f", action="store_true", help="tail: go on as records are written")
    parser.add_argument("--known", metavar="N:HASH", type=_head, help="verify: a head that was noted earlier")
    parser.add_argument("--directory", metavar="PATH", type=Path, help="another log than Dari's own, such as a copy")
    parser.add_argument("--json", action="store_true", help="records as they stand in the file, one a line")
    return parser


def main(words: list[str]) -> int:
    """Exit 0; 1 for an unknown record; 2 for wrong words; 3 for a log that is not whole."""
    parser = make_parser()
    arguments = parser.parse_args(words)
    if (arguments.word == "show") != (arguments.number is not None):
        parser.error("show needs the number of a record, and only show takes one")
    if arguments.directory is not None and not arguments.directory.is_dir():
        parser.error(f"--directory must be a folder with the files of a log, got {str(arguments.directory)!r}")

    def find() -> list[Log]:
        return [Log(arguments.directory)] if arguments.directory else logs_in(home() / "bridge")

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a record may hold what the terminal's encoding lacks
    if arguments.word == "verify":
        return _verify(find(), arguments)
    if arguments.word == "show":
        return _show(find(), arguments)
    return _list(find, arguments)


def moment(text: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> datetime:
    """A time with its zone: some time ago (`2h`), or a date or time, local where it names no zone."""
    if ago := re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text):
        try:
            return now() - timedelta(seconds=float(ago[1]) * _UNITS[ago[2]])
        except OverflowError:
            raise argparse.ArgumentTypeError(f"must be less than 2000 years ago, got {text[:40]!r}") from None
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"must be a time like 2h, 7d, 2026-11-16 or 2026-11-16T14:00, got {text[:40]!r}"
        ) from None


def line_of(record: AuditRecord, label: str = "") -> str:
    """One record as one line for a person; nothing in it can move a cursor."""
    number = f"{label}{record.n}".rjust(6)
    at = _local(record.at).isoformat(" ")[:19]
    if record.kind != "call":
        texts = [record.server, *(f"{name}={value}" for name, value in record.detail.items())]
        return _plain(f"{number}  {at}  {record.kind:<10} {' '.join(filter(None, texts))}  {record.who}").rstrip()
    # A tool of ours has its part in its name.
    is_named = record.tool.startswith(f"{record.server}_") and record.part == record.server
    name = record.tool if is_named else "/".join(filter(None, (record.server, record.tool)))
    size = f"  {record.result_bytes} B" if record.result_bytes else ""
    error = f"  {record.error}" if record.error else ""
    return _plain(f"{number}  {at}  {record.outcome:<10} {name}  {record.who}  {record.ms:.1f} ms{size}{error}")


def _local(at: datetime) -> datetime:
    """As the clock here shows it; as it was written where no clock could (a log that somebody edited)."""
    try:
        return at.astimezone()
    except (OverflowError, ValueError):
        return at


def _list(find: Callable[[], list[Log]], arguments: argparse.Namespace) -> int:
    is_tail = arguments.word == "tail"
    filters = RecordFilter(**{name: getattr(arguments, name) for name in RecordFilter.__slots__})
    follower = Follower(find)
    follows = is_tail and arguments.follow
    if follows:
        follower.mark()
    if not arguments.directory:
        settle(home() / "bridge")
    unwritten = [] if arguments.directory else waiting(home() / "bridge", filters, _warn_unreadable)
    found = newest(find(), filters, arguments.limit or (20 if is_tail else 100), unwritten)
    if is_tail:
        found.reverse()
    _print(found, arguments.json)
    if not found and not follows and not arguments.json:
        is_empty = all(last_record(log.directory) is None for log in find())
        print("nothing has been recorded yet" if is_empty else "no record matches", file=sys.stderr)
    shown = {(log.directory, record.n) for log, record in found}
    while follows and not reader_has_left():
        # What was written between the mark and the listing would come twice.
        fresh = [one for one in follower.fresh() if filters.match(one[1]) and (one[0].directory, one[1].n) not in shown]
        _print(fresh, arguments.json)
    return 0


def _warn_unreadable(error: OSError) -> None:
    text = f"the records in {error.filename} cannot be read ({error.strerror}), and the hub does not take them over"
    print(f"warning: {_plain(text)}\nhint: correct the owner of the file", file=sys.stderr)


def _show(logs: list[Log], arguments: argparse.Namespace) -> int:
    import msgspec

    label, number = arguments.number
    log = next((one for one in logs if one.label == label), None)
    record = record_of(log, number) if log is not None else None
    if record is None:
        print(f"error: no record has the number {label}{number}", file=sys.stderr)
        print("hint: dari audit shows the newest ones with their numbers", file=sys.stderr)
        return 1
    line = encode(record)
    print(_json(line) if arguments.json else _plain(msgspec.json.format(line, indent=2).decode(), one_line=False))
    return 0


def _verify(logs: list[Log], arguments: argparse.Namespace) -> int:
    """All of them, and the spools beside them; the head that was noted is one of the first."""
    known = arguments.known
    reports = [(log, _report(log.directory, None if log.label else known)) for log in logs]
    spool = home() / "bridge" / SPOOL_FOLDER
    waiting = SpoolReport() if arguments.directory else _settled(lambda: check_spools(spool), lambda it: bool(it.torn))
    is_whole = waiting.is_whole and all(report.is_whole for _, report in reports)
    if arguments.json:
        from dari.rpc.codec import encode as encoded

        main, *beside = [{"directory": str(log.directory), **_report_fields(report)} for log, report in reports]
        others = {**({"beside": beside} if beside else {}), **({"spools": waiting} if waiting.files else {})}
        print(encoded({**main, "whole": is_whole, **others}).decode())
    else:
        for log, report in reports:
            if len(reports) > 1:
                print(log.directory)
            for line in verdict(log.directory, report):
                print(line)
        for line in _spool_verdict(spool, waiting):
            print(line)
    return 0 if is_whole else BROKEN


def _report(directory: Path, known: Head | None) -> VerifyReport:
    return _settled(lambda: verify(directory, known), lambda report: report.broken is None and report.torn > 0)


def _settled(check: Callable[[], Report], is_torn: Callable[[Report], bool]) -> Report:
    """The report, asked again while a last line is unfinished: perhaps a daemon is writing this very line."""
    report = check()
    for _ in range(_TORN_TRIES):
        if not is_torn(report):
            break
        time.sleep(_TORN_WAIT_S)
        report = check()
    return report


def _spool_verdict(directory: Path, report: SpoolReport) -> list[str]:
    said = [
        *(f"BROKEN  {_plain(str(directory / place))}: {_unread(place)}" for place in report.unreadable[:MAX_PLACES]),
        *(f"TORN    {_plain(str(directory / name))}: the last line is not finished" for name in report.torn),
    ]
    if said:
        said.append("hint: the hub takes over the whole records and leaves these lines out; keep a copy of the file")
    if report.files:
        said.append(f"waiting {report.records} records in {report.files} files for the hub, which chains them")
    return said


def _unread(place: str) -> str:
    return "no record" if ":" in place else "it cannot be read"


def verdict(directory: Path, report: VerifyReport) -> list[str]:
    """What a check of the log found, in words."""
    if report.broken is not None:
        where = f"{directory / report.broken.file}:{report.broken.line}" if report.broken.file else str(directory)
        return [
            f"BROKEN  {where}: {_plain(report.broken.why)}",
            f"        {report.records} records before it are in order",
            "hint: somebody changed the log; compare the file with a backup, and keep a copy as it is",
        ]
    if report.torn:
        return [
            f"TORN    the last line is not finished ({report.torn} bytes); {report.records} records are in order",
            "hint: its writer was killed; the next daemon moves it to a .torn file and says so in a record",
        ]
    if report.head is None:
        return [f"ok      nothing has been recorded yet in {directory}"]
    missing = "note    head.json is missing: records that were removed from the end would not be noticed"
    return [
        f"ok      {report.records} records in {report.files} files, each with the hash of the one before it",
        *([] if report.has_head else [missing]),
        f"head    {report.head.n}:{report.head.hash}",
        "hint: note the head somewhere else; dari audit verify --known N:HASH then finds a log that was rewritten",
    ]


def _report_fields(report: VerifyReport) -> dict[str, object]:
    head = {"n": report.head.n, "hash": report.head.hash} if report.head else None
    broken = report.broken
    broken_link = {"file": broken.file, "line": broken.line, "why": broken.why} if broken else None
    return {"files": report.files, "records": report.records, "head": head, "broken": broken_link, "torn": report.torn}


def _print(found: Iterable[Found], as_json: bool) -> None:
    for log, record in found:
        print(_json(encode(record)) if as_json else line_of(record, log.label), flush=True)


def _json(line: bytes) -> str:
    """As it stands in the file; for a terminal the same value, with nothing raw in it that a terminal obeys."""
    text = line.decode()
    if text.isascii() or not sys.stdout.isatty():
        return text
    import json

    return json.dumps(json.loads(text), separators=(",", ":"))


def _plain(text: str, *, one_line: bool = True) -> str:
    return escape_hidden(text, one_line=one_line)


def _positive(text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII) or not 0 < int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 1000000, got {text[:40]!r}")
    return int(text)


def _number(text: str) -> tuple[str, int]:
    """`42`, or `1/42` for a record of a command that ran beside the daemon."""
    found = re.fullmatch(r"(\d{1,3}/)?(\d{1,18})", text, re.ASCII)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be a record's number like 42 or 1/42, got {text[:40]!r}")
    return found[1] or "", int(found[2])


def _head(text: str) -> Head:
    number, _, digest = text.partition(":")
    if not re.fullmatch(r"\d{1,18}", number, re.ASCII) or not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise argparse.ArgumentTypeError(f"must be N:HASH as `dari audit verify` prints it, got {text[:80]!r}")
    return Head(int(number), digest)
