"""CMake's `ctest`, also as `make test` and `ninja test` print it."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Parsed, Text, number
from dari.terminal.reading.suites.report import Report

_TEST = re.compile(
    r" *+\d++/\d++ Test +#\d++: (\S++) \.++ *+(?:\*\*\*)?"
    r"(Passed|Failed|Timeout|Skipped|Not Run(?: \(Disabled\))?|Exception: ?\w*+|[A-Z]\w++)(.*?) ++([\d.]++) sec"
)
_RESULT = re.compile(r"(\d++)% tests passed, (\d++) tests? failed out of (\d++)$")
_TIME = re.compile(r"Total Test time \(real\) = ++([\d.]++) sec")
_LISTED = re.compile(r"\s++\d++ - (\S++) \((.++)\)")
_OUTCOMES = {"Passed": "passed", "Skipped": "skipped", "Not Run (Disabled)": "skipped"}


def read_ctest(text: Text) -> Parsed | None:
    report = Report("ctest")
    has_result = False
    failing = ""
    output: dict[str, list[str]] = {}
    for index, line in enumerate(text.lines):
        if match := _TEST.match(line):
            outcome = _OUTCOMES.get(match[2], "failed")
            failing = match[1] if outcome == "failed" else ""
            report.test(match[1], outcome, duration_s=_seconds(match[4]))
            if outcome == "failed" and match[2] != "Failed":
                report.tests[match[1]]["reason"] = match[2]
        elif match := _RESULT.match(line):
            has_result, failing = True, ""
            failed = number(match[2]) or 0
            report.count("failed", failed)
            report.count("passed", max(0, (number(match[3]) or 0) - failed))
        elif match := _TIME.match(line):
            report.extra["duration_s"] = _seconds(match[1])
        elif match := _LISTED.match(line):
            outcome = "skipped" if match[2] in ("Disabled", "Skipped") else "failed"
            report.test(match[1], outcome, reason=match[2] if outcome == "failed" and match[2] != "Failed" else "")
        elif line.lstrip().startswith("Start ") and line.startswith("  "):
            failing = ""
        elif failing and line:
            output.setdefault(failing, []).append(line)  # --output-on-failure
        else:
            continue
        report.used.add(index)
    if not has_result and not report.tests:
        return None
    for name, lines in output.items():
        report.test(name, message="\n".join(lines[:40]))
    notes = [] if has_result else ["the run has not ended: no line with the result"]
    if has_result:  # a skipped test counts as passed in that line
        skipped = sum(entry["outcome"] == "skipped" for entry in report.tests.values())
        passed = sum(entry["outcome"] == "passed" for entry in report.tests.values())
        report.counts["skipped"] = skipped
        report.counts["passed"] = passed or report.counts["passed"]
    return report.parsed(0.97 if has_result else 0.7, notes)


def _seconds(word: str) -> float:
    return float(word) if word.count(".") < 2 and word != "." else 0.0
