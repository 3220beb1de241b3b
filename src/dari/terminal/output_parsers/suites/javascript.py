"""jest, vitest, mocha and node's own runner."""

from __future__ import annotations

import re

from dari.terminal.output_parsers.result import OutputText, Parsed, SuiteReport, number

_JEST_TOTAL = re.compile(r"Tests: ++((?:\d++ \w++,? ?)+)$")
_VITEST_TOTAL = re.compile(r" ++Tests ++((?:\d++ \w++(?: \| )?)+) \((\d++)\)")
_MOCHA_TOTAL = re.compile(r" {2}(\d++) (passing|failing|pending)(?: \(.*)?$")
_NODE_TOTAL = re.compile(r"[#ℹ] (pass|fail|skipped|todo|cancelled|tests) (\d++)$")
_COUNT = re.compile(r"(\d++) (failed|passed|skipped|todo|pending)")
_FILE = re.compile(r" ?(PASS|FAIL) {1,2}(\S.*?)(?: \([\d.]++ m?s\))?$")
_MARK = re.compile(r" *+([✓✔✕✖×√○✎↓]) {1,2}(\S.*?)(?: \(?[\d.]++ ?m?s\)?)?$")
_MOCHA_MARK = re.compile(r" {4,}+(\d++)\) (\S.*+)$")
_MOCHA_DETAIL = re.compile(r" {2}\d++\) \S")
_DETAIL = re.compile(r" {2}● (\S.*+)$")
_VITEST_FILE = re.compile(r"\(\d++ tests?\b")
_COUNTED = re.compile(r" \(\d+\)$")
_PLACE = re.compile(r"(.*):(\d++):\d++$")
_OUTCOMES = {"✓": "passed", "✔": "passed", "√": "passed", "○": "skipped", "✎": "skipped", "↓": "skipped"}
_NAMES = {
    "pass": "passed",
    "fail": "failed",
    "passing": "passed",
    "failing": "failed",
    "pending": "skipped",
    "todo": "skipped",
}


def read_javascript_tests(text: OutputText) -> Parsed | None:
    reader = _Reader()
    for index, line in enumerate(text.lines):
        following = text.lines[index + 1] if index + 1 < len(text.lines) else ""
        if reader.read_total(line) or reader.read_line(line, following):
            reader.report.used.add(index)
    return reader.parsed()


class _Reader:
    def __init__(self) -> None:
        self.report = SuiteReport("jest")
        self.has_end = False
        self.current = ""
        self.titles: list[tuple[int, str]] = []
        self.failures: dict[str, str] = {}
        self.detail_count = 0

    def read_total(self, line: str) -> bool:
        report = self.report
        if total := _JEST_TOTAL.match(line) or _VITEST_TOTAL.match(line):
            report.framework = "jest" if total.re is _JEST_TOTAL else "vitest"
            for amount, outcome in _COUNT.findall(total[1]):
                report.count(_NAMES.get(outcome, outcome), number(amount) or 0)
        elif total := _MOCHA_TOTAL.match(line):
            report.framework = "mocha"
            report.count(_NAMES[total[2]], number(total[1]) or 0)
        elif total := _NODE_TOTAL.match(line):
            report.framework = "node"
            if total[1] in ("tests", "cancelled"):
                return True
            report.count(_NAMES.get(total[1], total[1]), number(total[2]) or 0)
        else:
            return False
        self.has_end = True
        return True

    def read_line(self, line: str, following: str) -> bool:
        if file := _FILE.match(line):
            self._read_file(file[1], file[2])
        elif detail := _DETAIL.match(line):
            self.current = self._failure(detail[1].replace(" › ", " > "))
        elif mark := _MARK.match(line):
            if not _VITEST_FILE.search(mark[2]) and mark[2] != "failing tests:":
                self._read_mark(line, mark[2], _OUTCOMES.get(mark[1], "failed"))
        elif (mark := _MOCHA_MARK.match(line)) and not self.has_end:
            self._read_mark(line, mark[2], "failed")
        elif self.has_end and (mark := _MOCHA_DETAIL.match(line)) and self.detail_count < len(self.failures):
            # Mocha repeats the name over several lines, then says why after a blank line or under the name.
            self.current = list(self.failures.values())[self.detail_count]
            self.detail_count += 1
        elif self.current and line.strip():
            return self._read_detail(line.strip())
        elif _depth(following) > _depth(line) and 0 < len(line.strip()) < 200:
            self.titles = [title for title in self.titles if title[0] < _depth(line)]
            title = line.strip()
            if not _VITEST_FILE.search(title):
                self.titles.append((_depth(line), _COUNTED.sub("", title.removeprefix("▶ ").removeprefix("❯ "))))
            return False
        else:
            return False
        return True

    def parsed(self) -> Parsed | None:
        if not self.has_end and not (self.report.extra.get("is_failed") and self.report.tests):
            return None
        return self.report.parsed(0.96 if self.has_end else 0.65)

    def _read_file(self, outcome: str, name: str) -> None:
        path, arrow, test = name.partition(" > ")
        self.titles, self.current = [], ""
        if arrow:
            self.current = self._failure(test)
            self.report.test(self.current, file=path.split(" ")[0])
        self.report.extra["is_failed"] = bool(self.report.extra.get("is_failed")) or outcome == "FAIL"

    def _read_mark(self, line: str, name: str, outcome: str) -> None:
        names = [title for depth, title in self.titles if depth < _depth(line)]
        whole = " > ".join([*names, name.replace(" › ", " > ")])
        self.current = ""
        if outcome == "failed":
            self._failure(whole)
        else:
            self.report.test(whole, outcome)

    def _failure(self, name: str) -> str:
        """A failure is printed in the list and again with its message: one entry, by the last part of its name."""
        known = self.failures.setdefault(name.rpartition(" > ")[2], name)
        self.report.test(known, "failed")
        return known

    def _read_detail(self, line: str) -> bool:
        entry = self.report.tests[self.current]
        if line.startswith(("at ", "❯ ")):
            place = _PLACE.match(line.removesuffix(")"))
            path = place[1].rpartition("(")[2].rpartition(" ")[2] if place else ""
            if place and path and "node_modules" not in path and "node:" not in path and "line" not in entry:
                entry.setdefault("file", path)
                entry["line"] = number(place[2])
            return True
        if "message" not in entry and not (self.report.framework == "mocha" and line.endswith(":")):
            entry["message"] = line
            return True
        return False


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
