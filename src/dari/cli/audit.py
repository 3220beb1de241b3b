"""`dari audit`: who called what, what came of it, and is the log whole? Reads files only; no daemon is needed."""

from __future__ import annotations

import argparse
import re
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, get_args

if TYPE_CHECKING:
    from dari.bridge.trust.audit.checking import Report
    from dari.bridge.trust.audit.files import Head
    from dari.bridge.trust.audit.record import Record

WORDS = ("tail", "query", "show", "verify")
BROKEN = 3
_EPILOG = """\
examples:
  dari audit                                  the last 20 records
  dari audit --follow --server 'git*'         watch one server; Ctrl-C ends it
  dari audit query --outcome denied --since 2h
  dari audit query --who 'mcp:*' --tool '*delete*' --since 2026-11-01 --json
  dari audit show 42                          one record with its arguments and its hashes
  dari audit verify                           exit 0: whole; 3: the first broken line is named
  dari audit verify --known 1042:9f2c…        … and record 1042 is still the one that was noted

--server, --tool and --who are globs. --since and --until take 90s, 15m, 2h, 7d, a date, or a time (2026-11-16T14:00).
guide: docs/guide/trust.md
"""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TORN_TRIES = 4
_TORN_WAIT_S = 0.4


def make_parser() -> argparse.ArgumentParser:
    from dari.bridge.trust.audit.record import Kind, Outcome

    parser = argparse.ArgumentParser(
        prog="dari audit",
        description="What went through the bridge: every call, every decision of a person, in a chain of hashes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("word", nargs="?", choices=WORDS, default="tail", help="default: %(default)s")
    parser.add_argument("number", nargs="?", type=int, metavar="N", help="show: the number of the record")
    parser.add_argument("--server", metavar="GLOB", help="records of these servers")
    parser.add_argument("--tool", metavar="GLOB", help="records of these tools")
    parser.add_argument("--who", metavar="GLOB", help="records of these callers, or people for decisions")
    parser.add_argument("--outcome", choices=get_args(Outcome), help="how the call ended")
    parser.add_argument("--kind", choices=get_args(Kind), help="calls, decisions, or what befell the log itself")
    parser.add_argument("--since", metavar="WHEN", type=moment, help="not before this time")
    parser.add_argument("--until", metavar="WHEN", type=moment, help="before this time")
    parser.add_argument("--limit", metavar="N", type=_positive, help="at most so many (default: tail 20, query 100)")
    parser.add_argument("--follow", "-f", action="store_true", help="tail: go on as records are written")
    parser.add_argument("--known", metavar="N:HASH", type=_head, help="verify: a head that was noted earlier")
    parser.add_argument("--directory", metavar="PATH", type=Path, help="another log than Dari's own, such as a copy")
    parser.add_argument("--json", action="store_true", help="records as they stand in the file, one a line")
    return parser


def main(words: list[str]) -> int:
    """Exit 0; 1 for a wrong word or an unknown record; 3 for a log that is not whole."""
    parser = make_parser()
    try:
        arguments = parser.parse_args(words)
    except SystemExit as ended:
        return 1 if ended.code else 0
    if (arguments.word == "show") != (arguments.number is not None):
        parser.print_usage(sys.stderr)
        print("error: show needs the number of a record, and only show takes one", file=sys.stderr)
        return 1
    directory = arguments.directory or log_directory()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a record may hold what the terminal's encoding lacks
    try:
        if arguments.word == "verify":
            return _verify(directory, arguments)
        if arguments.word == "show":
            return _show(directory, arguments)
        return _list(directory, arguments)
    except KeyboardInterrupt:
        return 4
    except BrokenPipeError:  # `| head` has seen enough; the interpreter's own flush must not complain
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def log_directory() -> Path:
    from dari.paths import home

    return home() / "bridge" / "audit"


def moment(text: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> datetime:
    """A time with its zone: some time ago (`2h`), or a date or time, local where it names no zone."""
    if ago := re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text):
        try:
            return now() - timedelta(seconds=float(ago[1]) * _UNITS[ago[2]])
        except OverflowError:
            raise argparse.ArgumentTypeError(f"{text!r} is too long ago") from None
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is no time; use 2h, 7d, 2026-11-16 or 2026-11-16T14:00") from None


def line_of(record: Record) -> str:
    """One record as one line for a person; nothing in it can move a cursor."""
    at = record.at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if record.kind != "call":
        told = [record.server, *(f"{name}={value}" for name, value in record.detail.items())]
        return _plain(f"{record.n:>6}  {at}  {record.kind:<10} {' '.join(filter(None, told))}  {record.who}").rstrip()
    name = f"{record.server}/{record.tool}" if record.tool else record.server
    size = f"  {record.result_bytes} B" if record.result_bytes else ""
    error = f"  {record.error}" if record.error else ""
    return _plain(f"{record.n:>6}  {at}  {record.outcome:<10} {name}  {record.who}  {record.ms:.1f} ms{size}{error}")


def _list(directory: Path, arguments: argparse.Namespace) -> int:
    from dari.bridge.trust.audit.query import query

    is_tail = arguments.word == "tail"
    follows = is_tail and arguments.follow
    fresh = _fresh(directory) if follows else iter(())
    if follows:
        next(fresh)  # from here on nothing is missed, and nothing comes twice: numbers only grow
    found = query(
        directory,
        server=arguments.server,
        tool=arguments.tool,
        who=arguments.who,
        outcome=arguments.outcome,
        kind=arguments.kind,
        since=arguments.since,
        until=arguments.until,
        limit=arguments.limit or (20 if is_tail else 100),
    )
    if is_tail:
        found.reverse()
    _print(found, arguments.json)
    if not found and not follows and not arguments.json:
        where = "no record matches" if _has_records(directory) else f"nothing has been recorded yet in {directory}"
        print(where, file=sys.stderr)
    last = max((record.n for record in found), default=0)
    for record in fresh:
        if record is not None and record.n > last and _matches(record, arguments):
            _print([record], arguments.json)
    return 0


def _matches(record: Record, arguments: argparse.Namespace) -> bool:
    from fnmatch import fnmatchcase

    globs = ("server", "tool", "who")
    wanted = [(getattr(record, name), getattr(arguments, name)) for name in globs]
    return (
        all(glob is None or fnmatchcase(value, glob) for value, glob in wanted)
        and arguments.outcome in (None, record.outcome)
        and arguments.kind in (None, record.kind)
        and (arguments.since is None or record.at >= arguments.since)
        and (arguments.until is None or record.at < arguments.until)
    )


def _fresh(directory: Path, every_s: float = 0.25) -> Iterator[Record | None]:
    """Records that are written from now on, for ever; the first value only says that the place is marked."""
    import msgspec

    from dari.bridge.trust.audit.files import log_files, torn_bytes
    from dari.bridge.trust.audit.record import decode

    files = log_files(directory)
    current = files[-1] if files else None
    done = current.path.stat().st_size - torn_bytes(current.path) if current is not None else 0
    rest = b""
    yield None
    while True:
        later = [file for file in log_files(directory) if current is None or file >= current]
        for file in later:
            if file != current:
                current, done, rest = file, 0, b""
            with file.path.open("rb") as stream:
                stream.seek(done)
                data = stream.read()
            done += len(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                try:
                    yield decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue  # `verify` is for what is broken
        if _has_left(every_s):
            return


def _has_left(within_s: float) -> bool:
    """Whether the reader of our stdout is gone, noticed without writing to it."""
    try:
        watched = select.poll()
        watched.register(sys.stdout, 0)  # the kernel tells of a closed pipe unasked
    except (OSError, ValueError, AttributeError):
        time.sleep(within_s)  # Windows, or no real stream
        return False
    return bool(watched.poll(within_s * 1000))


def _show(directory: Path, arguments: argparse.Namespace) -> int:
    import msgspec

    from dari.bridge.trust.audit.checking import records_backwards
    from dari.bridge.trust.audit.record import encode

    record = next((one for one in records_backwards(directory) if one.n <= arguments.number), None)
    if record is None or record.n != arguments.number:
        print(f"error: there is no record {arguments.number} in {directory}", file=sys.stderr)
        print("hint: dari audit shows the newest ones with their numbers", file=sys.stderr)
        return 1
    line = encode(record)
    print(_json(line) if arguments.json else _plain(msgspec.json.format(line, indent=2).decode(), one_line=False))
    return 0


def _verify(directory: Path, arguments: argparse.Namespace) -> int:
    from dari.bridge.trust.audit.checking import verify

    report = verify(directory, arguments.known)
    for _ in range(_TORN_TRIES):
        if report.broken is not None or not report.torn:
            break
        time.sleep(_TORN_WAIT_S)  # perhaps a daemon is writing this very line
        report = verify(directory, arguments.known)
    if arguments.json:
        from dari.rpc.codec import encode

        print(encode({"directory": str(directory), "whole": report.is_whole, **_told(report)}).decode())
    else:
        for line in verdict(directory, report):
            print(line)
    return 0 if report.is_whole else BROKEN


def verdict(directory: Path, report: Report) -> list[str]:
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
    return [
        f"ok      {report.records} records in {report.files} files, each with the hash of the one before it",
        f"head    {report.head.n}:{report.head.hash}",
        "hint: note the head somewhere else; dari audit verify --known N:HASH then finds a log that was rewritten",
    ]


def _told(report: Report) -> dict[str, object]:
    head = {"n": report.head.n, "hash": report.head.hash} if report.head else None
    broken = report.broken
    told = {"file": broken.file, "line": broken.line, "why": broken.why} if broken else None
    return {"files": report.files, "records": report.records, "head": head, "broken": told, "torn": report.torn}


def _print(records: Iterable[Record], as_json: bool) -> None:
    from dari.bridge.trust.audit.record import encode

    for record in records:
        print(_json(encode(record)) if as_json else line_of(record), flush=True)


def _json(line: bytes) -> str:
    """As it stands in the file; for a terminal the same value, with nothing raw in it that a terminal obeys."""
    text = line.decode()
    if text.isascii() or not sys.stdout.isatty():
        return text
    import json

    return json.dumps(json.loads(text), separators=(",", ":"))


def _has_records(directory: Path) -> bool:
    from dari.bridge.trust.audit.checking import last_record

    return last_record(directory) is not None


def _plain(text: str, *, one_line: bool = True) -> str:
    from dari.bridge.trust.sanitising import for_terminal

    return for_terminal(text, one_line=one_line)


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number from 1 to 1000000")
    return int(text)


def _head(text: str) -> Head:
    from dari.bridge.trust.audit.files import Head

    number, _, digest = text.partition(":")
    if not number.isdigit() or not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is no head; use N:HASH as `dari audit verify` prints it")
    return Head(int(number), digest)
