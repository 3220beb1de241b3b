"""Python's `unittest`, also as Django runs it; with and without `-v`."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Parsed, Text, number
from dari.terminal.reading.suites.report import Report

_RAN = re.compile(r"Ran (\d++) tests? in ([\d.]++)s$")
_RESULT = re.compile(r"(OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$")
_COUNT = re.compile(r"(failures|errors|skipped|expected failures|unexpected successes)=(\d++)")
_HEAD = re.compile(r"(ERROR|FAIL): (\w++) \(([\w.<>]++)\)(?: (.*+))?$")
_LINE = re.compile(
    r"(?:\s*+(\w++) \(([\w.<>]++)\)(?: (\(.*?\)))? \.\.\.|.* \.\.\.) "
    r"(ok|FAIL|ERROR|skipped '?(.*?)'?|expected failure|unexpected success)$"
)
_STARTED = re.compile(r"(\w++) \(([\w.<>]++)\)$")
_PLACE = re.compile(r'  File "([^"]++)", line (\d++)')
_OUTCOMES = {
    "ok": "passed", "FAIL": "failed", "ERROR": "error", "expected failure": "xfailed", "unexpected success": "failed"
}  # fmt: skip


def read_unittest(text: Text) -> Parsed | None:
    report = Report("unittest")
    total, duration_s, result = None, 0.0, ""
    name = started = ""
    for index, line in enumerate(text.lines):
        if match := _RAN.match(line):
            total, duration_s = number(match[1]), float(match[2]) if match[2].count(".") == 1 else 0.0
        elif total is not None and (match := _RESULT.match(line)):
            result = match[1]
            for what, amount in _COUNT.findall(match[2] or ""):
                key = {"failures": "failed", "expected failures": "xfailed", "unexpected successes": "failed"}
                report.count(key.get(what, what), int(amount[:9]))
        elif match := _HEAD.match(line):
            name = _name(match[2], match[3]) + (f" {match[4]}" if match[4] else "")
            report.test(name, "error" if match[1] == "ERROR" else "failed")
        elif match := _LINE.match(line):
            shown = _name(match[1], match[2]) if match[1] else started
            if shown:
                shown += f" {match[3]}" if match[3] else ""
                report.test(shown, _OUTCOMES.get(match[4], "skipped"), message=match[5])
        elif match := _STARTED.match(line):  # with a docstring the result is in the next line
            started = _name(match[1], match[2])
        elif name and (match := _PLACE.match(line)):
            report.tests[name] |= {"file": match[1], "line": number(match[2])}  # the innermost frame is the last
        elif "file" in report.tests.get(name, ()) and line and not line.startswith((" ", "-", "=", "Traceback")):
            report.test(name, message=line)
        else:
            if line.startswith("======"):
                name = ""
            continue
        report.used.add(index)
    if total is None:
        return None
    bad = sum(report.counts.get(key, 0) for key in ("failed", "errors", "skipped", "xfailed"))
    report.counts = {"passed": max(0, total - bad), "failed": 0, "errors": 0, "skipped": 0} | report.counts
    report.extra |= {"total": total, "duration_s": duration_s, "is_failed": result == "FAILED"}
    notes = [] if result else ["the run has not ended: no line with the result"]
    return report.parsed(0.97 if result else 0.7, notes)


def _name(method: str, place: str) -> str:
    """As the test is named on the command line; Python 3.11 prints the method twice."""
    return place if place.endswith(f".{method}") else f"{place}.{method}"
