"""`git log` (default, `--oneline`, `--graph`) and diff statistics: `--stat`, `--numstat`, `--shortstat`."""

from __future__ import annotations

import re

from dari.terminal.output_parsers.result import Document, OutputText, Parsed, ranges, share

_GRAPH = re.compile(r"[*|\\/_ .-]*+")
_COMMIT = re.compile(r"commit ([0-9a-f]{7,64})(?: \(([^()]*+(?:\([^()]*+\)[^()]*+)*)\))?$")
_FIELD = re.compile(r"(Author|AuthorDate|Commit|CommitDate|Date|Merge|Reflog|Reflog message): ++(.*+)$")
_PERSON = re.compile(r"([^<]*+)<([^>]*+)>")
_ONE_LINE = re.compile(r"([0-9a-f]{7,40})(?: \(([^()]++)\))? (.++)$")
_LINE = re.compile(r"(?:[*|\\/_ .-]*+)(?=[0-9a-f]{7})")


def read_commits(text: OutputText) -> Parsed | None:
    """Commits in the order printed: `commit`, `refs`, `author`, `email`, `date`, `subject`, `body`, `parents`."""
    if "commit " in text.raw and "Author: " in text.raw:
        return _read_full(text)
    return _read_short(text)


def _read_full(text: OutputText) -> Parsed | None:
    items: list[dict[str, Document]] = []
    used: set[int] = set()
    is_graph = is_diff = False
    bodies: list[list[str]] = []
    for index, line in enumerate(text.lines):
        bare = line[_end_of_graph(line) :]
        match = _COMMIT.match(bare)
        if match:
            is_graph = is_graph or not line.startswith("commit")
            items.append({"commit": match[1], "refs": _refs(match[2]), "subject": "", "body": ""})
            bodies.append([])
            is_diff = False
            used.add(index)
            continue
        is_diff = is_diff or bare.startswith(("diff --git ", "diff --cc ", "diff --combined "))
        if not items or is_diff:  # unchanged lines of a diff are indented as a message is
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
                bodies[-1].append(text_line)
    for item, body in zip(items, bodies, strict=True):
        item["body"] = "\n".join(body).strip("\n")
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


def _read_short(text: OutputText) -> Parsed | None:
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


_STAT = re.compile(r" ?(\S.*?) +\| +(?:(\d+) ?(\+*)(-*)|Bin(?: (\d+) -> (\d+) bytes)?|Unmerged)")
_NUMBERS = re.compile(r"(\d+|-) +(\d+|-) +(\S.*)")
_TAB = 8
"""A terminal shows a tab as blanks up to the next column of eight."""
_SUMMARY = re.compile(
    r" ?(\d+) files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?(?:, \d+ modifications?\(!\))?"
)
_MODE = re.compile(
    r" (?:(create|delete) mode (\d{6}) (.+)|(rename|copy|rewrite) (.+) \((\d+)%\)|mode change (\d{6}) => (\d{6}) (.+))"
)
_BRACES = re.compile(r"\{(.*?) => (.*?)\}")


def read_diff_stat(text: OutputText) -> Parsed | None:
    """`items`: one a file, with its old name where it was renamed; `value`: the sums."""
    items: dict[str, dict[str, Document]] = {}
    value: dict[str, Document] = {}
    used: set[int] = set()
    notes: list[str] = []
    for index, line in enumerate(text.lines):
        if match := _STAT.fullmatch(line):
            item = _item(match[1])
            item |= _counts(match, notes)
        elif (match := _NUMBERS.fullmatch(line)) and not (match.start(2) % _TAB or match.start(3) % _TAB):
            item = _item(match[3])
            item |= {"is_binary": True} if match[1] == "-" else _added(int(match[1]), int(match[2]))
        elif match := _SUMMARY.fullmatch(line):
            value = {
                "files_changed": int(match[1]),
                "insertions": int(match[2] or 0),
                "deletions": int(match[3] or 0),
            }
            used.add(index)
            continue
        elif match := _MODE.fullmatch(line):
            _mode(match, items)
            used.add(index)
            continue
        else:
            continue
        items[str(item["path"])] = item
        used.add(index)
    has_numbers = not value and bool(items)
    if has_numbers and len(items) < 2 and "diff" not in text.command:
        return None  # two numbers and a word are printed by much else
    if not (value or (items and all("insertions" in each or "is_binary" in each for each in items.values()))):
        return None
    if not value:
        value = {
            "files_changed": len(items),
            "insertions": sum(each.get("insertions", 0) for each in items.values()),
            "deletions": sum(each.get("deletions", 0) for each in items.values()),
        }
    if any(str(path).startswith("...") for path in items):
        notes.append("git shortened some paths; --numstat prints them whole")
    trust = 0.5 + 0.45 * share(used, text.lines)
    return Parsed(
        type="diff_stat",
        confidence=trust,
        items=list(items.values()),
        value=value,
        notes=list(dict.fromkeys(notes)),
        lines=ranges(used),
    )


def _item(path: str) -> dict[str, Document]:
    """`a/{old => new}/c` and `old => new` as both names."""
    if match := _BRACES.search(path):
        old, new = (path[: match.start()] + match[side] + path[match.end() :] for side in (1, 2))
        return {"path": new.replace("//", "/"), "old_path": old.replace("//", "/")}
    old, arrow, new = path.partition(" => ")
    return {"path": new, "old_path": old} if arrow else {"path": path}


def _counts(match: re.Match[str], notes: list[str]) -> dict[str, Document]:
    if match[2] is None:
        sizes: dict[str, Document] = {"old_bytes": int(match[5]), "new_bytes": int(match[6])} if match[5] else {}
        return {"is_unmerged": True} if match[0].endswith("Unmerged") else {"is_binary": True, **sizes}
    changes = int(match[2])
    if changes == len(match[3]) + len(match[4]):
        return {"changes": changes, **_added(len(match[3]), len(match[4]))}
    notes.append("the bars of + and - are scaled to the width; --numstat prints the counts")
    return {"changes": changes}


def _added(insertions: int, deletions: int) -> dict[str, Document]:
    return {"insertions": insertions, "deletions": deletions}


def _mode(match: re.Match[str], items: dict[str, dict[str, Document]]) -> None:
    if match[1]:
        _whole(match[3], items)
        items.setdefault(match[3], {"path": match[3]})["status"] = {"create": "added", "delete": "deleted"}[match[1]]
    elif match[4]:
        item = _item(match[5])
        entry = items.setdefault(str(item["path"]), item)
        entry["status"] = {"rename": "renamed", "copy": "copied", "rewrite": "rewritten"}[match[4]]
        entry["similarity_percent"] = int(match[6])
    else:
        items.setdefault(match[9], {"path": match[9]})["mode"] = match[8]


def _whole(path: str, items: dict[str, dict[str, Document]]) -> None:
    """The path that git printed shortened above, `.../d/e.txt`, gets its whole name."""
    for shown in items:
        if shown.startswith(".../") and path.endswith(shown[3:]):
            items[path] = {**items.pop(shown), "path": path}
            return
