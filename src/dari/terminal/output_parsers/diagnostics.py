"""What compilers, type checkers and linters complain about, in one shape."""

from __future__ import annotations

import re
from collections import Counter

from dari.terminal.output_parsers.result import Document, OutputText, Parsed, number, ranges, share

_FILE = r"(?P<file>(?:[A-Za-z]:|(?![A-Za-z]:))[^\s:(][^:(]{0,300}?)"
_GCC = re.compile(
    rf"{_FILE}:(?P<line>\d++):(?:(?P<column>\d++):)?"
    r" (?P<severity>fatal error|error|warning|note|info): (?P<message>.*+)$"
)
_GO = re.compile(r"(?:vet: )?(?P<file>[\w./\-]+\.go):(?P<line>\d++):(?P<column>\d++): (?P<message>\S.*+)$")
_CODED = re.compile(
    rf"{_FILE}:(?P<line>\d++):(?P<column>\d++): (?P<code>[A-Z]{{1,4}}\d{{1,5}}|invalid-syntax):?"
    r" (?:\[\*\] )?(?P<message>.*+)$"
)
_TSC = re.compile(
    rf"{_FILE}(?:\((?P<line>\d++),(?P<column>\d++)\):|:(?P<line2>\d++):(?P<column2>\d++) -)"
    r" (?P<severity>error|warning|message) (?P<code>[A-Z]{2,5}\d++): (?P<message>.*+)$"
)
_PYRIGHT = re.compile(
    rf" ++{_FILE}:(?P<line>\d++):(?P<column>\d++) - (?P<severity>error|warning|information): (?P<message>.*+)$"
)
_ESLINT = re.compile(r" ++(?P<line>\d++):(?P<column>\d++) ++(?P<severity>error|warning) ++(?P<message>.*+)$")
_ESLINT_FILE = re.compile(r"(?:/|\./|[A-Za-z]:\\)?[^\s:][^:]*\.(?:[cm]?[jt]sx?|vue|svelte|json)$")
_LINKER = re.compile(
    r"(?:\S*ld(?:\.\w++)?: )?(?P<file>[^\s:]++):(?:(?P<line>\d++)|\([^)]*+\)): (?P<message>(?:undefined|multiple) .*+)$"
)
_RUST = re.compile(r"(?P<severity>error|warning)(?:\[(?P<code>\w++)\])?: (?P<message>.*+)$")
_RUFF = re.compile(r"(?P<code>[A-Z]{1,4}\d{3,5}|invalid-syntax):? (?:\[\*\] )?(?P<message>\S.*+)$")
_ARROW = re.compile(r" *+--> (?P<file>[^:]++):(?P<line>\d++):(?P<column>\d++)$")
_FLAG = re.compile(r"[\w\-=+,@/.]++\]$")
_SUMMARY = re.compile(
    r"Found \d++ errors?|\d++ (?:errors?|warnings?)(?: generated)?\.?$|✖ \d++ problems?|error: could not compile"
    r"|error: aborting due to|warning: `\S++` \(|make(?:\[\d++\])?: \*\*\*|In file included from|\S++: In function"
    r"|Success: no issues|All checks passed|collect2: error"
)
_TOOLS = {".py": "mypy", ".pyi": "mypy", ".java": "javac", ".kt": "kotlinc", ".swift": "swiftc", ".rs": "rustc"}
_NAMED = ("flake8", "pylint", "pycodestyle", "clang", "clippy", "basedpyright")
"""These print as others do; the command tells them apart."""

Item = dict[str, Document]


def read_diagnostics(text: OutputText) -> Parsed | None:
    """One item a complaint: `file`, `line`, `column`, `severity`, `code`, `message`; `value` has the counts."""
    items: list[Item] = []
    tools: Counter[str] = Counter()
    used: set[int] = set()
    file = ""
    lines = text.lines
    for index, line in enumerate(lines):
        if not line:
            continue
        found = _on_one_line(line)
        if found:
            tool, item = found
            items.append(item)
            tools[tool] += 1
            used.add(index)
        elif _ESLINT_FILE.match(line):
            file = line
        elif file and (match := _ESLINT.match(line)):
            item = _item(match, file=file)
            # The rule stands in a column of its own, two blanks or more after the message.
            before, gap, rule = item["message"].rpartition("  ")
            if gap and " " not in rule:
                item["message"], item["code"] = before.rstrip(), rule
            items.append(item)
            tools["eslint"] += 1
            used.add(index)
        elif pair := _over_two_lines(lines, index):
            items.append(pair[1])
            tools[pair[0]] += 1
            used.update((index, index + 1))
        elif _SUMMARY.match(line) or (items and _is_quote(line)):
            used.add(index)
    if not items:
        return None
    tool = next((name for name in _NAMED if name in text.command), tools.most_common(1)[0][0])
    severities = Counter(str(item["severity"]) for item in items)
    value = {"tool": tool, "errors": severities["error"] + severities["fatal error"], "warnings": severities["warning"]}
    trust = 0.6 + 0.35 * share(used, lines)
    return Parsed(type="diagnostics", confidence=trust, value=value, items=items, lines=ranges(used))


def _on_one_line(line: str) -> tuple[str, Item] | None:
    if ":" not in line:
        return None
    if match := _TSC.match(line):
        item = _item(match)
        item["line"], item["column"] = (
            number(match["line"] or match["line2"]),
            number(match["column"] or match["column2"]),
        )
        return "tsc" if str(item["code"]).startswith("TS") else "msbuild", item
    if match := _GCC.match(line):
        item = _item(match)
        ending = "." + str(item["file"]).rpartition(".")[2]
        return _TOOLS.get(ending, "gcc"), item
    for pattern, tool in ((_CODED, "ruff"), (_GO, "go"), (_PYRIGHT, "pyright"), (_LINKER, "ld")):
        if match := pattern.match(line):
            return tool, _item(match)
    return None


def _over_two_lines(lines: list[str], index: int) -> tuple[str, Item] | None:
    """rustc and ruff say what first and where on the next line."""
    following = lines[index + 1] if index + 1 < len(lines) else ""
    place = _ARROW.match(following)
    if not place:
        return None
    for pattern, tool in ((_RUST, "rustc"), (_RUFF, "ruff")):
        if match := pattern.match(lines[index]):
            item = _item(match, file=place["file"])
            item["line"], item["column"] = number(place["line"]), number(place["column"])
            return tool, item
    return None


def _item(match: re.Match[str], file: str = "") -> Item:
    parts = match.groupdict()
    message, code = parts["message"].strip(), parts.get("code")
    before, bracket, flag = message.rpartition(" [")
    if not code and bracket and _FLAG.match(flag):
        message, code = before.rstrip(), flag[:-1]
    return {
        "file": (file or parts.get("file") or "").strip(),
        "line": number(parts.get("line")),
        "column": number(parts.get("column")),
        "severity": parts.get("severity") or "error",
        "code": code or "",
        "message": message,
    }


def _is_quote(line: str) -> bool:
    """Source shown under a complaint, with its carets, bars and help."""
    bare = line.lstrip()
    return line[0] == " " or bare.startswith(("|", "^", "~", "= ", "...")) or (line[0].isdigit() and " |" in line[:12])
