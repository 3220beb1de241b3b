"""`git log` in its default form, `--oneline` and `--graph`."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Document, Parsed, Text, ranges, share

_GRAPH = re.compile(r"[*|\\/_ .-]*+")
_COMMIT = re.compile(r"commit ([0-9a-f]{7,64})(?: \(([^()]*+(?:\([^()]*+\)[^()]*+)*)\))?$")
_FIELD = re.compile(r"(Author|AuthorDate|Commit|CommitDate|Date|Merge|Reflog|Reflog message): ++(.*+)$")
_PERSON = re.compile(r"([^<]*+)<([^>]*+)>")
_ONE_LINE = re.compile(r"([0-9a-f]{7,40})(?: \(([^()]++)\))? (.++)$")
_LINE = re.compile(r"(?:[*|\\/_ .-]*+)(?=[0-9a-f]{7})")


def read_commits(text: Text) -> Parsed | None:
    """Commits in the order printed: `commit`, `refs`, `author`, `email`, `date`, `subject`, `body`, `parents`."""
    if "commit " in text.raw and "Author: " in text.raw:
        return _read_full(text)
    return _read_short(text)


def _read_full(text: Text) -> Parsed | None:
    items: list[dict[str, Document]] = []
    used: set[int] = set()
    is_graph = False
    for index, line in enumerate(text.lines):
        bare = line[_end_of_graph(line) :]
        match = _COMMIT.match(bare)
        if match:
            is_graph = is_graph or not line.startswith("commit")
            items.append({"commit": match[1], "refs": _refs(match[2]), "subject": "", "body": ""})
            used.add(index)
            continue
        if not items:
            continue
        item = items[-1]
        field = _FIELD.match(bare) if not item["subject"] else None
        if field:
            _set_field(item, field[1], field[2])
            used.add(index)
        elif "date" in item and (text_line := _message(line, bare, is_graph)) is not None:
            used.add(index)
            if not item["subject"]:
                item["subject"] = text_line
            else:
                item["body"] += text_line + "\n"
    for item in items:
        item["body"] = item["body"].strip("\n")
    if not items or not any("author" in item for item in items):
        return None
    trust = 0.75 + 0.23 * share(used, text.lines)
    notes = [] if share(used, text.lines) > 0.9 else ["changes and statistics between the messages were left out"]
    return Parsed(type="commits", confidence=trust, items=items, notes=notes, lines=ranges(used))


def _end_of_graph(line: str) -> int:
    match = _GRAPH.match(line)
    return match.end() if match else 0


def _message(line: str, bare: str, is_graph: bool) -> str | None:
    """A message is indented by four; under a graph by four more than the graph."""
    if is_graph:
        before = line[: len(line) - len(bare)]
        return bare if before.endswith("    ") else None
    return line[4:] if line.startswith("    ") else None


def _set_field(item: dict[str, Document], name: str, value: str) -> None:
    if name == "Author":
        person = _PERSON.match(value)
        item["author"], item["email"] = (person[1].strip(), person[2]) if person else (value, "")
    elif name in ("Date", "AuthorDate"):
        item["date"] = value
    elif name == "Merge":
        item["parents"] = value.split()
    elif name == "Commit":
        item["committer"] = value


def _read_short(text: Text) -> Parsed | None:
    items: list[dict[str, Document]] = []
    used: set[int] = set()
    with_digit = 0
    for index, line in enumerate(text.lines):
        start = _LINE.match(line)
        match = _ONE_LINE.match(line, start.end()) if start else None
        if match:
            items.append({"commit": match[1], "refs": _refs(match[2]), "subject": match[3]})
            with_digit += any(char.isdigit() for char in match[1])
            used.add(index)
        elif line and not line.strip("*|\\/_ .-"):
            used.add(index)
    coverage = share(used, text.lines)
    # A word such as `defaced` is hexadecimal too; seven digits of a hash hardly ever are all letters.
    if not items or coverage < 0.5 or with_digit < 0.5 * len(items):
        return None
    trust = 0.5 + 0.3 * coverage + (0.1 if any(item["refs"] for item in items) else 0)
    return Parsed(type="commits", confidence=trust, items=items, lines=ranges(used))


def _refs(names: str | None) -> list[str]:
    return [name.strip() for name in names.split(",")] if names else []
