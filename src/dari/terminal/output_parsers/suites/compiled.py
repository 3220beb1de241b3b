"""`cargo test`, `go test`, CMake's `ctest`, Maven's Surefire and Failsafe, and Gradle's lines for failed tests."""

from __future__ import annotations

import re

from dari.terminal.output_parsers.result import Document, OutputText, Parsed, SuiteReport, number

_CARGO_TEST = re.compile(r"test (\S.*?)(?: - should panic)? \.\.\. (ok|FAILED|ignored|bench:)(?:, (.*+))?")
_CARGO_RESULT = re.compile(
    r"test result: (ok|FAILED)\. (\d++) passed; (\d++) failed; (\d++) ignored; (\d++) measured; (\d++) filtered out"
    r"(?:; finished in ([\d.]++)s)?"
)
_CARGO_OUTPUT = re.compile(r"---- (\S.*?) stdout ----$")
_CARGO_PANIC = re.compile(r"thread '[^']*+'(?: \(\d++\))? panicked at (?:'(.*)', )?([^:']++):(\d++)(?::\d++)?:?$")
_CARGO_OUTCOMES = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}


def read_cargo_test(text: OutputText) -> Parsed | None:
    report = SuiteReport("cargo test")
    results = 0
    name = ""
    message: list[str] | None = None
    duration_s = 0.0
    for index, line in enumerate(text.lines):
        if match := _CARGO_TEST.match(line):
            report.test(match[1], _CARGO_OUTCOMES.get(match[2], "measured"), message=match[3])
        elif match := _CARGO_RESULT.match(line):
            results += 1
            report.count("passed", number(match[2]) or 0)
            report.count("failed", number(match[3]) or 0)
            report.count("skipped", number(match[4]) or 0)
            report.count("filtered_out", number(match[6]) or 0)
            duration_s += float(match[7]) if match[7] and match[7].count(".") < 2 and match[7] != "." else 0.0
            name = ""
        elif match := _CARGO_OUTPUT.match(line):
            name, message = match[1], None
        elif name and (match := _CARGO_PANIC.match(line)):
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


_GO_TEST = re.compile(r"\s*+--- (PASS|FAIL|SKIP): (\S++) \(([\d.]++)s\)$")
_GO_PACKAGE = re.compile(r"(ok|FAIL|\?|---) ++(\S++)(?: ++(\(cached\)|[\d.]++s|\[[^\]]++\]|no test files))?")
_GO_MESSAGE = re.compile(r"\s++([\w.\-]+\.go):(\d++): (.*+)$")
_GO_OUTCOMES = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}


def read_go_test(text: OutputText) -> Parsed | None:
    report = SuiteReport("go test")
    packages: list[dict[str, Document]] = []
    current: dict[str, Document] | None = None
    waiting: tuple[str, int | None, str] | None = None
    running = 0
    for index, line in enumerate(text.lines):
        if match := _GO_TEST.match(line):
            current = report.test(match[2], _GO_OUTCOMES[match[1]])
            if waiting:  # with -v the message stands before the result, without it after
                report.test(match[2], file=waiting[0], line=waiting[1], message=waiting[2])
                waiting = None
        elif match := _GO_MESSAGE.match(line):
            if current is not None:
                report.test(str(current["name"]), file=match[1], line=number(match[2]), message=match[3])
            else:
                waiting = (match[1], number(match[2]), match[3])
        elif line.startswith("=== "):
            running += line.startswith("=== RUN")
            current = None
        elif (match := _GO_PACKAGE.match(line)) and match[3]:
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


_CTEST_TEST = re.compile(
    r" *+\d++/\d++ Test +#\d++: (\S++) \.++ *+(?:\*\*\*)?"
    r"(Passed|Failed|Timeout|Skipped|Not Run(?: \(Disabled\))?|Exception: ?\w*+|[A-Z]\w++)(.*?) ++([\d.]++) sec"
)
_CTEST_RESULT = re.compile(r"(\d++)% tests passed, (\d++) tests? failed out of (\d++)$")
_CTEST_TIME = re.compile(r"Total Test time \(real\) = ++([\d.]++) sec")
_CTEST_LISTED = re.compile(r"\s++\d++ - (\S++) \((.++)\)")
_CTEST_OUTCOMES = {"Passed": "passed", "Skipped": "skipped", "Not Run (Disabled)": "skipped"}


def read_ctest(text: OutputText) -> Parsed | None:
    report = SuiteReport("ctest")
    has_result = False
    failing = ""
    output: dict[str, list[str]] = {}
    for index, line in enumerate(text.lines):
        if match := _CTEST_TEST.match(line):
            outcome = _CTEST_OUTCOMES.get(match[2], "failed")
            failing = match[1] if outcome == "failed" else ""
            report.test(match[1], outcome, duration_s=_ctest_seconds(match[4]))
            if outcome == "failed" and match[2] != "Failed":
                report.tests[match[1]]["reason"] = match[2]
        elif match := _CTEST_RESULT.match(line):
            has_result, failing = True, ""
            failed = number(match[2]) or 0
            report.count("failed", failed)
            report.count("passed", max(0, (number(match[3]) or 0) - failed))
        elif match := _CTEST_TIME.match(line):
            report.extra["duration_s"] = _ctest_seconds(match[1])
        elif match := _CTEST_LISTED.match(line):
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


def _ctest_seconds(word: str) -> float:
    return float(word) if word.count(".") < 2 and word != "." else 0.0


_SUREFIRE_MARK = re.compile(r"\[(?:INFO|ERROR|WARNING)\] ?")
_SUREFIRE_COUNTS = re.compile(r"Tests run: (\d++), Failures: (\d++), Errors: (\d++), Skipped: (\d++)(.*+)$")
_SUREFIRE_TIMED = re.compile(r", Time elapsed: ([\d.]++) s(?:ec)?\b.*?(?:(?: -- in | - in )(\S++))?$")
_SUREFIRE_TEST = re.compile(
    r"([\w.$]++)(?:\(([\w.$]++)\))?(?:\[[^\]]*+\])?(?: --)? ++Time elapsed: [\d.]++ s(?:ec)? ++<<< (FAILURE|ERROR)!"
)
_SUREFIRE_FRAME = re.compile(r"\s++at ([\w.$]+)\.(\w++)\(([\w$]++\.\w++):(\d++)\)$")
_SUREFIRE_SUMMARY = re.compile(r"  ([\w$]++)\.([\w$\[\]]++):(\d++)(?:->\S++)? (.*+)$")
_SUREFIRE_BUILD = re.compile(r"BUILD (SUCCESS|FAILURE)$")


def read_surefire(text: OutputText) -> Parsed | None:
    report = SuiteReport("surefire")
    totals: tuple[int, ...] | None = None
    added = (0, 0, 0, 0)
    name = ""
    for index, raw in enumerate(text.lines):
        line = _SUREFIRE_MARK.sub("", raw, count=1)
        if match := _SUREFIRE_COUNTS.match(line):
            numbers = tuple(number(match[group]) or 0 for group in (1, 2, 3, 4))
            timed = _SUREFIRE_TIMED.match(match[5])
            if timed:
                added = tuple(map(sum, zip(added, numbers, strict=True)))  # type: ignore[assignment]
            else:
                # One such line for each module, after the classes of that module.
                totals = numbers if totals is None else tuple(map(sum, zip(totals, numbers, strict=True)))
            name = ""
        elif match := _SUREFIRE_TEST.match(line):
            name = f"{match[2]}.{match[1]}" if match[2] else match[1]
            report.test(name, "failed" if match[3] == "FAILURE" else "error")
        elif name and (match := _SUREFIRE_FRAME.match(line)):
            if name.rpartition(".")[0] == match[1]:
                report.test(name, file=match[3], line=number(match[4]))
        elif name and line and not line.startswith(("\t", " ", "[")) and "message" not in report.tests[name]:
            report.test(name, message=line)
        elif match := _SUREFIRE_SUMMARY.match(line):
            known = [each for each in report.tests if each.endswith(f"{match[1]}.{match[2]}")]
            report.test(
                known[0] if known else f"{match[1]}.{match[2]}", "failed", line=number(match[3]), message=match[4]
            )
        elif match := _SUREFIRE_BUILD.match(line):
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
