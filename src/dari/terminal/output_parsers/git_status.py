"""`git status`: long, short, and both porcelain forms."""

from __future__ import annotations

import re

from dari.terminal.output_parsers.result import MAX_LINE_CHARS, Document, OutputText, Parsed, number, ranges, share

_SECTIONS = {
    "Changes to be committed:": "staged",
    "Changes not staged for commit:": "unstaged",
    "Unmerged paths:": "unmerged",
    "Untracked files:": "untracked",
    "Ignored files:": "ignored",
}
_ENTRY = re.compile(
    r"\s++(?:(new file|modified|deleted|renamed|copied|typechange|both modified|both added|both deleted|added by us"
    r"|added by them|deleted by us|deleted by them): ++)?(\S.*+)$"
)
_AHEAD = re.compile(r"Your branch is (ahead of|behind|up to date with) '([^']++)'(?: by (\d++))?")
_DIVERGED = re.compile(r"Your branch and '([^']++)' have diverged")
_EACH = re.compile(r"and have (\d++) and (\d++) different commits")
_HEAD = re.compile(r"(On branch|HEAD detached at|HEAD detached from|Not currently on any branch)(?: (\S++))?")
_OPERATIONS = (
    ("You have unmerged paths", "merge"),
    ("All conflicts fixed but you are still merging", "merge"),
    ("rebase in progress", "rebase"),
    ("You are currently rebasing", "rebase"),
    ("You are currently cherry-picking", "cherry-pick"),
    ("You are currently reverting", "revert"),
    ("You are currently bisecting", "bisect"),
)
_SHORT_HEAD = re.compile(r"## (?:No commits yet on )?(HEAD \(no branch\)|\S+?)(?:\.\.\.(\S++))?(?: \[([^\]]++)\])?$")
_SHORT = re.compile(r"([ MTADRCU?!])([ MTADRCU?!]) (\S.*+)$")
_V2 = re.compile(r"([12u]) (\S\S) \S{4} .*+$")
_CHANGES = {"M": "modified", "T": "typechange", "A": "added", "D": "deleted", "R": "renamed", "C": "copied"}
_CONFLICTS = {
    "DD": "both deleted",
    "AU": "added by us",
    "UD": "deleted by them",
    "UA": "added by them",
    "DU": "deleted by us",
    "AA": "both added",
    "UU": "both modified",
}
_ESCAPE = re.compile(r'\\([0-7]{3}|["\\abtnvfr])')
_LETTERS = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


class _Status:
    """What is known so far, in the shape that is returned."""

    def __init__(self) -> None:
        self.value: dict[str, Document] = {
            "branch": None,
            "upstream": None,
            "ahead": 0,
            "behind": 0,
            **{name: [] for name in ("staged", "unstaged", "unmerged", "untracked")},
        }
        self.used: set[int] = set()

    def add(self, section: str, change: str, path: str) -> None:
        before, arrow, after = path.partition(" -> ")
        entry = {"path": _plain(after if arrow else path), "change": change}
        if arrow:
            entry["from"] = _plain(before)
        self.value.setdefault(section, []).append(entry)

    def parsed(self, lines: list[str], trust: float) -> Parsed:
        changes = [self.value[name] for name in ("staged", "unstaged", "unmerged", "untracked")]
        self.value["is_clean"] = not any(changes)
        trust += (0.98 - trust) * share(self.used, lines)
        return Parsed(type="git_status", confidence=trust, value=self.value, lines=ranges(self.used))


def read_status(text: OutputText) -> Parsed | None:
    """`branch` (None when detached), `upstream`, `ahead`, `behind`, and entries `path`, `change`, `from` by section."""
    return _read_long(text.lines) or _read_v2(text) or _read_short(text)


def _read_long(lines: list[str]) -> Parsed | None:
    status = _Status()
    section = ""
    head = next((i for i, line in enumerate(lines) if _HEAD.match(line) or line.startswith("interactive rebase")), None)
    if head is None:
        return None
    for index in range(head, len(lines)):
        line = lines[index]
        if line in _SECTIONS:
            section = _SECTIONS[line]
        elif section and (entry := _ENTRY.match(line)):
            if entry[2].startswith('(use "git') or entry[2].startswith("(commit or discard"):
                status.used.add(index)
                continue
            change = entry[1] or ("ignored" if section == "ignored" else "untracked")
            status.add(section, change.replace("new file", "added"), entry[2])
        elif not _read_head(status.value, line):
            known = line.startswith(
                ("nothing to commit", "nothing added", "no changes added", "No commits yet", "  (use")
            )
            if line and not known and not line.startswith(("  (", "Last command", "Next command", "No commands")):
                continue
        if line:
            status.used.add(index)
    return status.parsed(lines, 0.6)


def _read_head(value: dict[str, Document], line: str) -> bool:
    if match := _HEAD.match(line):
        value["branch"] = match[2] if match[1] == "On branch" else None
        if match[1].startswith("HEAD"):
            value["detached_at"] = match[2]
    elif match := _AHEAD.match(line):
        value["upstream"] = match[2]
        if match[1] != "up to date with":
            value["ahead" if match[1] == "ahead of" else "behind"] = number(match[3]) or 0
    elif match := _DIVERGED.match(line):
        value["upstream"] = match[1]
    elif match := _EACH.match(line):
        value["ahead"], value["behind"] = number(match[1]) or 0, number(match[2]) or 0
    else:
        for words, name in _OPERATIONS:
            if words in line:
                value["operation"] = name
                return True
        return False
    return True


def _read_short(text: OutputText) -> Parsed | None:
    status = _Status()
    has_head = False
    for index, line in enumerate(text.lines):
        if head := _SHORT_HEAD.match(line):
            has_head = True
            _set_short_head(status.value, head)
        elif entry := _SHORT.match(line):
            codes, path = entry[1] + entry[2], entry[3]
            if codes in ("??", "!!"):
                status.add(
                    "untracked" if codes == "??" else "ignored", "untracked" if codes == "??" else "ignored", path
                )
            elif codes in _CONFLICTS:
                status.add("unmerged", _CONFLICTS[codes], path)
            elif "?" in codes or "!" in codes or codes == "  " or "U" in codes:
                continue
            else:
                _add_codes(status, codes.replace(" ", "."), path)
        else:
            continue
        status.used.add(index)
    coverage = share(status.used, text.lines)
    is_asked = "status" in text.command
    if not status.used or (coverage < 0.6 and not has_head) or (len(status.used) < 2 and not is_asked and not has_head):
        return None
    return status.parsed(text.lines, 0.6 if has_head or is_asked else 0.3)


def _set_short_head(value: dict[str, Document], head: re.Match[str]) -> None:
    value["branch"] = None if head[1].startswith("HEAD") else head[1]
    value["upstream"] = head[2]
    for part in (head[3] or "").split(", "):
        name, _, count = part.partition(" ")
        if name in ("ahead", "behind"):
            value[name] = number(count) or 0


def _add_codes(status: _Status, codes: str, path: str) -> None:
    for code, section in zip(codes, ("staged", "unstaged"), strict=True):
        if code in _CHANGES:
            status.add(section, _CHANGES[code], path)


def _read_v2(text: OutputText) -> Parsed | None:
    # The lines as printed: a tab stands between the two paths of a rename.
    lines = [line.rstrip()[:MAX_LINE_CHARS] for line in text.raw.split("\n")]
    status = _Status()
    for index, line in enumerate(lines):
        if line.startswith("# branch."):
            name, _, rest = line[9:].partition(" ")
            if name == "head":
                status.value["branch"] = None if rest == "(detached)" else rest
            elif name == "upstream":
                status.value["upstream"] = rest
            elif name == "ab":
                ahead, _, behind = rest.partition(" ")
                status.value["ahead"], status.value["behind"] = number(ahead[1:]) or 0, number(behind[1:]) or 0
        elif line.startswith(("? ", "! ")):
            status.add(
                "untracked" if line[0] == "?" else "ignored", "untracked" if line[0] == "?" else "ignored", line[2:]
            )
        elif match := _V2.match(line):
            parts = line.split(" ", {"1": 8, "2": 9, "u": 10}[match[1]])
            if match[1] == "u":
                status.add("unmerged", _CONFLICTS.get(match[2], "both modified"), parts[-1])
            else:
                path, _, before = parts[-1].partition("\t")
                _add_codes(status, match[2], f"{before.strip()} -> {path.strip()}" if before else path)
        else:
            continue
        status.used.add(index)
    has_head = any(line.startswith("# branch.") for line in lines)
    if not status.used or not (has_head or any(_V2.match(line) for line in lines)):
        return None
    return status.parsed(lines, 0.7)


def _plain(path: str) -> str:
    """A path as it is on disk: git quotes what is not ASCII, byte by byte."""
    path = path.strip()
    if len(path) < 2 or path[0] != '"' or path[-1] != '"':
        return path
    raw = bytearray()
    position = 0
    inner = path[1:-1]
    for match in _ESCAPE.finditer(inner):
        raw += inner[position : match.start()].encode("utf-8", "replace")
        raw.append(_LETTERS[match[1]] if match[1] in _LETTERS else int(match[1], 8) & 255)
        position = match.end()
    raw += inner[position:].encode("utf-8", "replace")
    return raw.decode("utf-8", "backslashreplace")
