"""`cargo test`."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Parsed, Text, number
from dari.terminal.reading.suites.report import Report

_TEST = re.compile(r"test (\S.*?)(?: - should panic)? \.\.\. (ok|FAILED|ignored|bench:)(?:, (.*+))?")
_RESULT = re.compile(
    r"test result: (ok|FAILED)\. (\d++) passed; (\d++) failed; (\d++) ignored; (\d++) measured; (\d++) filtered out"
    r"(?:; finished in ([\d.]++)s)?"
)
_OUTPUT = re.compile(r"---- (\S.*?) stdout ----$")
_PANIC = re.compile(r"thread '[^']*+'(?: \(\d++\))? panicked at (?:'(.*)', )?([^:']++):(\d++)(?::\d++)?:?$")
_OUTCOMES = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}


def read_cargo_test(text: Text) -> Parsed | None:
    report = Report("cargo test")
    results = 0
    name = ""
    message: list[str] | None = None
    duration_s = 0.0
    for index, line in enumerate(text.lines):
        if match := _TEST.match(line):
            report.test(match[1], _OUTCOMES.get(match[2], "measured"), message=match[3])
        elif match := _RESULT.match(line):
            results += 1
            report.count("passed", number(match[2]) or 0)
            report.count("failed", number(match[3]) or 0)
            report.count("skipped", number(match[4]) or 0)
            report.count("filtered_out", number(match[6]) or 0)
            duration_s += float(match[7]) if match[7] and match[7].count(".") < 2 and match[7] != "." else 0.0
            name = ""
        elif match := _OUTPUT.match(line):
            name, message = match[1], None
        elif name and (match := _PANIC.match(line)):
            report.test(name, "failed", message=match[1], file=match[2], line=number(match[3]))
            message = []
        elif name and message is not None and line and not line.startswith(("note: ", "stack backtrace")):
            message.append(line)
            report.tests[name]["message"] = "\n".join(message[:40])
        elif line == "failures:" or not line.startswith(("running ", "     Running ", "   Doc-tests ")):
            message = None if not line else message
            continue
        report.used.add(index)
    if not results and not any(
        line.startswith("running ") and line.endswith((" tests", " test")) for line in text.lines
    ):
        return None
    report.extra["duration_s"] = round(duration_s, 3)
    notes = [] if results else ["the run has not ended: no line with the result"]
    return report.parsed(0.97 if results else 0.7, notes)
