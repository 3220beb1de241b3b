"""Maven's Surefire and Failsafe plugins (JUnit, TestNG), and Gradle's lines for failed tests."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Parsed, Text, number
from dari.terminal.reading.suites.report import Report

_MARK = re.compile(r"\[(?:INFO|ERROR|WARNING)\] ?")
_COUNTS = re.compile(r"Tests run: (\d++), Failures: (\d++), Errors: (\d++), Skipped: (\d++)(.*+)$")
_TIMED = re.compile(r", Time elapsed: ([\d.]++) s(?:ec)?\b.*?(?:(?: -- in | - in )(\S++))?$")
_TEST = re.compile(
    r"([\w.$]++)(?:\(([\w.$]++)\))?(?:\[[^\]]*+\])?(?: --)? ++Time elapsed: [\d.]++ s(?:ec)? ++<<< (FAILURE|ERROR)!"
)
_FRAME = re.compile(r"\s++at ([\w.$]+)\.(\w++)\(([\w$]++\.\w++):(\d++)\)$")
_SUMMARY = re.compile(r"  ([\w$]++)\.([\w$\[\]]++):(\d++)(?:->\S++)? (.*+)$")
_BUILD = re.compile(r"BUILD (SUCCESS|FAILURE)$")


def read_surefire(text: Text) -> Parsed | None:
    report = Report("surefire")
    totals: tuple[int, ...] | None = None
    added = (0, 0, 0, 0)
    name = ""
    for index, raw in enumerate(text.lines):
        line = _MARK.sub("", raw, count=1)
        if match := _COUNTS.match(line):
            numbers = tuple(number(match[group]) or 0 for group in (1, 2, 3, 4))
            timed = _TIMED.match(match[5])
            if timed:
                added = tuple(map(sum, zip(added, numbers, strict=True)))  # type: ignore[assignment]
            else:
                # One such line for each module, after the classes of that module.
                totals = numbers if totals is None else tuple(map(sum, zip(totals, numbers, strict=True)))
            name = ""
        elif match := _TEST.match(line):
            name = f"{match[2]}.{match[1]}" if match[2] else match[1]
            report.test(name, "failed" if match[3] == "FAILURE" else "error")
        elif name and (match := _FRAME.match(line)):
            if name.rpartition(".")[0] == match[1]:
                report.test(name, file=match[3], line=number(match[4]))
        elif name and line and not line.startswith(("\t", " ", "[")) and "message" not in report.tests[name]:
            report.test(name, message=line)
        elif match := _SUMMARY.match(line):
            known = [each for each in report.tests if each.endswith(f"{match[1]}.{match[2]}")]
            report.test(
                known[0] if known else f"{match[1]}.{match[2]}", "failed", line=number(match[3]), message=match[4]
            )
        elif match := _BUILD.match(line):
            report.extra["is_failed"] = match[1] == "FAILURE"
        else:
            name = "" if not line else name
            continue
        report.used.add(index)
    counts = totals or (added if any(added) else None)
    if counts is None:
        return None
    total, failed, errors, skipped = counts
    report.counts = {
        "passed": max(0, total - failed - errors - skipped), "failed": failed, "errors": errors, "skipped": skipped
    }  # fmt: skip
    report.extra["total"] = total
    return report.parsed(0.97 if totals else 0.85, [] if totals else ["the run has not ended: no line with the totals"])
