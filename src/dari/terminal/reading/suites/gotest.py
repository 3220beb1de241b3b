"""`go test`, with and without `-v`."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Document, Parsed, Text, number
from dari.terminal.reading.suites.report import Report

_TEST = re.compile(r"\s*+--- (PASS|FAIL|SKIP): (\S++) \(([\d.]++)s\)$")
_PACKAGE = re.compile(r"(ok|FAIL|\?|---) ++(\S++)(?: ++(\(cached\)|[\d.]++s|\[[^\]]++\]|no test files))?")
_MESSAGE = re.compile(r"\s++([\w.\-]+\.go):(\d++): (.*+)$")
_OUTCOMES = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}


def read_go_test(text: Text) -> Parsed | None:
    report = Report("go test")
    packages: list[dict[str, Document]] = []
    current: dict[str, Document] | None = None
    waiting: tuple[str, int | None, str] | None = None
    running = 0
    for index, line in enumerate(text.lines):
        if match := _TEST.match(line):
            current = report.test(match[2], _OUTCOMES[match[1]])
            if waiting:  # with -v the message stands before the result, without it after
                report.test(match[2], file=waiting[0], line=waiting[1], message=waiting[2])
                waiting = None
        elif match := _MESSAGE.match(line):
            if current is not None:
                report.test(str(current["name"]), file=match[1], line=number(match[2]), message=match[3])
            else:
                waiting = (match[1], number(match[2]), match[3])
        elif line.startswith("=== "):
            running += line.startswith("=== RUN")
            current = None
        elif (match := _PACKAGE.match(line)) and match[3]:
            packages.append(
                {"package": match[2], "status": {"ok": "passed", "FAIL": "failed"}.get(match[1], "no tests")}
            )
        elif line not in ("PASS", "FAIL"):
            continue
        report.used.add(index)
    if not packages and not report.tests and not running:
        return None
    if not report.tests and not any(entry["status"] != "no tests" for entry in packages):
        return None
    report.extra["packages"] = packages
    report.extra["is_failed"] = any(entry["status"] == "failed" for entry in packages)
    return report.parsed(0.95 if packages and (report.tests or len(report.used) > 1) else 0.75)
