"""pytest (quiet, verbose, xdist, with or without the short summary) and unittest (also as Django runs it)."""

from __future__ import annotations

import re

from dari.terminal.output_parsers.result import OutputText, Parsed, SuiteReport, number

_PYTEST_LAST = re.compile(
    r"=*+ ?((?:\d++ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun|subtests passed)"
    r"(?:, )?)+|no tests ran) in ([\d.]++)s(?: \([\d:]++\))?(?: =*+)?$"
)
_PYTEST_COUNT = re.compile(r"(\d++) (failed|passed|skipped|deselected|xfailed|xpassed|warning|error|rerun)")
_PYTEST_ITEM_END = re.compile(r" (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?: \((.*)\))?(?: ++\[ *+\d++%\])?$")
_PYTEST_WORKER = re.compile(r"\[gw\d++\](?: \[ *+\d++%\])? (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S.*+)$")
_PYTEST_TITLE = re.compile(r"_{3,}+ (?:(ERROR) (?:at (?:setup|teardown|call) of|collecting) )?(\S.*?) _{3,}$")
_PYTEST_PLACE = re.compile(r"(\S[^:]*+):(\d++): (?:([A-Za-z_][\w.]*+)|in )")
_PYTEST_OUTCOMES = {"XFAIL": "xfailed", "XPASS": "xpassed", "ERROR": "error"}
_PYTEST_SESSION = re.compile(r"=+ test session starts =+$|(?:rootdir|plugins|platform) ?[:\w-]")


def read_pytest(text: OutputText) -> Parsed | None:
    report = SuiteReport("pytest")
    has_end = has_session = False
    section: tuple[str, list[str]] | None = None
    place: re.Match[str] | None = None
    found: dict[str, tuple[str, str, int | None]] = {}
    for index, line in enumerate(text.lines):
        title = _PYTEST_TITLE.match(line) if line.startswith("___") else None
        if title or (line.startswith("=") and section):
            _pytest_close(found, section, place)
            section, place = ((title[2], []) if title else None), None
        if title:
            report.used.add(index)
        elif section and line.startswith("E "):
            section[1].append(line[1:].strip())
            report.used.add(index)
        elif section and (match := _PYTEST_PLACE.match(line)):
            place = match
            report.used.add(index)
        elif end := _PYTEST_LAST.match(line):
            has_end = True
            report.used.add(index)
            for amount, outcome in _PYTEST_COUNT.findall(end[1]):
                name = {"error": "errors", "warning": "warnings"}.get(outcome, outcome)
                report.counts[name] = number(amount) or 0
            report.extra["duration_s"] = _pytest_seconds(end[2])
        elif _pytest_read_item(report, line):
            report.used.add(index)
        elif line.startswith(("===", "rootdir", "plugins", "platform ")) and _PYTEST_SESSION.match(line):
            has_session = True
            report.used.add(index)
    _pytest_close(found, section, place)
    if not has_end and not has_session and len(report.tests) < 2 and not ("pytest" in text.command and report.tests):
        return None
    _pytest_join(report, found)
    notes = [] if has_end else ["the run has not ended: no line with the totals"]
    return report.parsed(0.97 if has_end else 0.8 if has_session else 0.6, notes)


def _pytest_read_item(report: SuiteReport, line: str) -> bool:
    if match := _PYTEST_WORKER.match(line):
        report.test(match[2], _pytest_outcome(match[1]))
    elif "::" in line.partition(" ")[0] and (match := _PYTEST_ITEM_END.search(line)):
        report.test(line[: match.start()], _pytest_outcome(match[1]), message=match[2])
    elif line.startswith(("FAILED ", "ERROR ", "SKIPPED ", "XFAIL ", "XPASS ", "PASSED ")):
        outcome, name, message = _pytest_short(line)
        if "::" not in name and ".py" not in name:
            return False
        report.test(name, _pytest_outcome(outcome), message=message, file=name.split("::")[0].split(":")[0])
    else:
        return False
    return True


def _pytest_short(line: str) -> tuple[str, str, str]:
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


def _pytest_outcome(word: str) -> str:
    return _PYTEST_OUTCOMES.get(word, word.lower())


def _pytest_close(
    found: dict[str, tuple[str, str, int | None]], section: tuple[str, list[str]] | None, place: re.Match[str] | None
) -> None:
    if section:
        found[section[0]] = ("\n".join(section[1]), place[1] if place else "", number(place[2]) if place else None)


def _pytest_join(report: SuiteReport, found: dict[str, tuple[str, str, int | None]]) -> None:
    """Sections name a test by its own name, summaries by its path: they are the same test where the ends agree."""
    by_end = {name.split("::", 1)[-1].replace("::", "."): name for name in report.tests}
    for title, (detail, file, line) in found.items():
        name = by_end.get(title) or (f"{file}::{title.replace('.', '::')}" if file else title)
        if title in report.tests:
            name = title
        outcome = "" if name in report.tests else "failed" if "test" in title.lower() else "error"
        report.test(name, outcome, detail=detail, file=file, line=line, message=detail.split("\n")[0])


def _pytest_seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


_UNITTEST_RAN = re.compile(r"Ran (\d++) tests? in ([\d.]++)s$")
_UNITTEST_RESULT = re.compile(r"(OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$")
_UNITTEST_COUNT = re.compile(r"(failures|errors|skipped|expected failures|unexpected successes)=(\d++)")
_UNITTEST_HEAD = re.compile(r"(ERROR|FAIL): (\w++) \(([\w.<>]++)\)(?: (.*+))?$")
_UNITTEST_LINE = re.compile(
    r"(?:\s*+(\w++) \(([\w.<>]++)\)(?: (\(.*?\)))? \.\.\.|.* \.\.\.) "
    r"(ok|FAIL|ERROR|skipped '?(.*?)'?|expected failure|unexpected success)$"
)
_UNITTEST_STARTED = re.compile(r"(\w++) \(([\w.<>]++)\)$")
_UNITTEST_PLACE = re.compile(r'  File "([^"]++)", line (\d++)')
_UNITTEST_OUTCOMES = {
    "ok": "passed", "FAIL": "failed", "ERROR": "error", "expected failure": "xfailed", "unexpected success": "failed"
}  # fmt: skip


def read_unittest(text: OutputText) -> Parsed | None:
    report = SuiteReport("unittest")
    total, duration_s, result = None, 0.0, ""
    name = started = ""
    for index, line in enumerate(text.lines):
        if match := _UNITTEST_RAN.match(line):
            total, duration_s = number(match[1]), float(match[2]) if match[2].count(".") == 1 else 0.0
        elif total is not None and (match := _UNITTEST_RESULT.match(line)):
            result = match[1]
            for what, amount in _UNITTEST_COUNT.findall(match[2] or ""):
                key = {"failures": "failed", "expected failures": "xfailed", "unexpected successes": "failed"}
                report.count(key.get(what, what), int(amount[:9]))
        elif match := _UNITTEST_HEAD.match(line):
            name = _unittest_name(match[2], match[3]) + (f" {match[4]}" if match[4] else "")
            report.test(name, "error" if match[1] == "ERROR" else "failed")
        elif match := _UNITTEST_LINE.match(line):
            shown = _unittest_name(match[1], match[2]) if match[1] else started
            if shown:
                shown += f" {match[3]}" if match[3] else ""
                report.test(shown, _UNITTEST_OUTCOMES.get(match[4], "skipped"), message=match[5])
        elif match := _UNITTEST_STARTED.match(line):  # with a docstring the result is in the next line
            started = _unittest_name(match[1], match[2])
        elif name and (match := _UNITTEST_PLACE.match(line)):
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


def _unittest_name(method: str, place: str) -> str:
    """As the test is named on the command line; Python 3.11 prints the method twice."""
    return place if place.endswith(f".{method}") else f"{place}.{method}"
