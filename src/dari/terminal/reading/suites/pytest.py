"""pytest: quiet, verbose, with xdist, with or without the short summary."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Parsed, Text, number
from dari.terminal.reading.suites.report import Report

_LAST = re.compile(
    r"=*+ ?((?:\d++ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun|subtests passed)"
    r"(?:, )?)+|no tests ran) in ([\d.]++)s(?: \([\d:]++\))?(?: =*+)?$"
)
_COUNT = re.compile(r"(\d++) (failed|passed|skipped|deselected|xfailed|xpassed|warning|error|rerun)")
_ITEM_END = re.compile(r" (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?: \((.*)\))?(?: ++\[ *+\d++%\])?$")
_WORKER = re.compile(r"\[gw\d++\](?: \[ *+\d++%\])? (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S.*+)$")
_TITLE = re.compile(r"_{3,}+ (?:(ERROR) (?:at (?:setup|teardown|call) of|collecting) )?(\S.*?) _{3,}$")
_PLACE = re.compile(r"(\S[^:]*+):(\d++): (?:([A-Za-z_][\w.]*+)|in )")
_OUTCOMES = {"XFAIL": "xfailed", "XPASS": "xpassed", "ERROR": "error"}
_SESSION = re.compile(r"=+ test session starts =+$|(?:rootdir|plugins|platform) ?[:\w-]")


def read_pytest(text: Text) -> Parsed | None:
    report = Report("pytest")
    has_end = has_session = False
    section: tuple[str, list[str]] | None = None
    place: re.Match[str] | None = None
    found: dict[str, tuple[str, str, int | None]] = {}
    for index, line in enumerate(text.lines):
        title = _TITLE.match(line) if line.startswith("___") else None
        if title or (line.startswith("=") and section):
            _close(found, section, place)
            section, place = ((title[2], []) if title else None), None
        if title:
            report.used.add(index)
        elif section and line.startswith("E "):
            section[1].append(line[1:].strip())
            report.used.add(index)
        elif section and (match := _PLACE.match(line)):
            place = match
            report.used.add(index)
        elif end := _LAST.match(line):
            has_end = True
            report.used.add(index)
            for amount, outcome in _COUNT.findall(end[1]):
                name = {"error": "errors", "warning": "warnings"}.get(outcome, outcome)
                report.counts[name] = number(amount) or 0
            report.extra["duration_s"] = _seconds(end[2])
        elif _read_item(report, line):
            report.used.add(index)
        elif line.startswith(("===", "rootdir", "plugins", "platform ")) and _SESSION.match(line):
            has_session = True
            report.used.add(index)
    _close(found, section, place)
    if not has_end and not has_session and len(report.tests) < 2 and not ("pytest" in text.command and report.tests):
        return None
    _join(report, found)
    notes = [] if has_end else ["the run has not ended: no line with the totals"]
    return report.parsed(0.97 if has_end else 0.8 if has_session else 0.6, notes)


def _read_item(report: Report, line: str) -> bool:
    if match := _WORKER.match(line):
        report.test(match[2], _outcome(match[1]))
    elif "::" in line.partition(" ")[0] and (match := _ITEM_END.search(line)):
        report.test(line[: match.start()], _outcome(match[1]), message=match[2])
    elif line.startswith(("FAILED ", "ERROR ", "SKIPPED ", "XFAIL ", "XPASS ", "PASSED ")):
        outcome, name, message = _short(line)
        if "::" not in name and ".py" not in name:
            return False
        report.test(name, _outcome(outcome), message=message, file=name.split("::")[0].split(":")[0])
    else:
        return False
    return True


def _short(line: str) -> tuple[str, str, str]:
    """`FAILED path::test[a b] - why`: the name may hold blanks inside its brackets."""
    outcome, _, rest = line.partition(" ")
    if rest.startswith("[") and outcome == "SKIPPED":
        rest = rest.partition("] ")[2]
        name, _, message = rest.partition(": ")
        return outcome, name, message
    depth = 0
    for place, char in enumerate(rest):
        depth += (char == "[") - (char == "]")
        if depth <= 0 and char == " " and rest.startswith(" - ", place):
            return outcome, rest[:place].strip(), rest[place + 3 :]
    return outcome, rest.strip(), ""


def _outcome(word: str) -> str:
    return _OUTCOMES.get(word, word.lower())


def _close(
    found: dict[str, tuple[str, str, int | None]], section: tuple[str, list[str]] | None, place: re.Match[str] | None
) -> None:
    if section:
        found[section[0]] = ("\n".join(section[1]), place[1] if place else "", number(place[2]) if place else None)


def _join(report: Report, found: dict[str, tuple[str, str, int | None]]) -> None:
    """Sections name a test by its own name, summaries by its path: they are the same test where the ends agree."""
    by_end = {name.split("::", 1)[-1].replace("::", "."): name for name in report.tests}
    for title, (detail, file, line) in found.items():
        name = by_end.get(title) or (f"{file}::{title.replace('.', '::')}" if file else title)
        if title in report.tests:
            name = title
        outcome = "" if name in report.tests else "failed" if "test" in title.lower() else "error"
        report.test(name, outcome, detail=detail, file=file, line=line, message=detail.split("\n")[0])


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
