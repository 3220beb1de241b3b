"""RSpec, in its progress and documentation forms."""

from __future__ import annotations

import re

from dari.terminal.output_parsers.result import OutputText, Parsed, SuiteReport, number

_RESULT = re.compile(
    r"(\d++) examples?, (\d++) failures?(?:, (\d++) pending)?(?:, (\d++) errors? occurred outside of examples)?$"
)
_TIME = re.compile(r"Finished in (?:(\d++) minutes? )?([\d.]++) seconds?")
_HEAD = re.compile(r"  \d++\) (\S.*+)$")
_PLACE = re.compile(r"     # (\.?[^:\s]++):(\d++)(?::in .*+)?$")
_RERUN = re.compile(r"rspec ([^\s:\[]++)(?::(\d++)|\[[\d:,]++\]) # (\S.*+)$")


def read_rspec(text: OutputText) -> Parsed | None:
    report = SuiteReport("rspec")
    section = name = ""
    message: list[str] = []
    has_result = False
    duration_s = 0.0

    def finish() -> None:
        if name:
            report.test(name, message="\n".join(message).strip("\n"))
        message.clear()

    for index, line in enumerate(text.lines):
        if match := _RESULT.match(line):
            finish()
            has_result, name, section = True, "", ""
            examples, failed, pending, outside = (number(match[group] or "0") or 0 for group in (1, 2, 3, 4))
            report.count("passed", max(0, examples - failed - pending))
            report.count("failed", failed)
            report.count("skipped", pending)
            report.count("errors", outside)
        elif match := _TIME.match(line):
            finish()
            name, section = "", ""
            seconds = float(match[2]) if match[2].count(".") == 1 else 0.0
            duration_s = (number(match[1] or "0") or 0) * 60 + seconds
        elif line.startswith(("Pending:", "Failures:")):
            finish()
            name, section = "", "skipped" if line.startswith("Pending") else "failed"
        elif section and (match := _HEAD.match(line)):
            finish()
            name = match[1]
            report.test(name, section)
        elif name and (match := _PLACE.match(line)):
            report.test(name, file=match[1].removeprefix("./"), line=number(match[2]))
        elif match := _RERUN.match(line):
            report.test(match[3], "failed", file=match[1].removeprefix("./"), line=number(match[2] or ""))
        elif name and line.startswith("     "):
            message.append(line[5:].removeprefix("# ") if len(message) < 40 else "")
        else:
            continue
        report.used.add(index)
    if not has_result:
        return None
    report.extra["duration_s"] = round(duration_s, 3)
    return report.parsed(0.96 if duration_s or report.tests else 0.8)
