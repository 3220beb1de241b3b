"""`git diff --stat`, `--numstat` and `--shortstat`, `diffstat`, and the end of a pull or a commit."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Document, Parsed, Text, ranges, share

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


def read_diff_stat(text: Text) -> Parsed | None:
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
