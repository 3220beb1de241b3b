"""Data formats in output: JSON, JSON lines, YAML (needs PyYAML, of the extra `bridge`), CSV and TSV, `key: value`."""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from dari.terminal.output_parsers.result import Document, OutputText, Parsed, ranges, share

_JSON_MAX_DEPTH = 100
_MAX_STARTS = 64
"""Places where a document may begin that are tried; each costs one reading of the text at most."""
_MAX_ITEMS = 100_000

_MARK = re.compile(r"[\[{\n]")
_REST = re.compile(r"[ \t\r]*+\n")


class _TooDeep(ValueError):
    pass


def read_json(text: OutputText) -> Parsed | None:
    """The documents of the text: one is a `json` value, several are `json_lines` items."""
    raw = text.raw
    decoder = json.JSONDecoder()
    found: list[Document] = []
    used: set[int] = set()
    notes: list[str] = []
    position, line, tries, skipped = 0, 0, 0, 0
    while position < len(raw) and tries < _MAX_STARTS and len(found) < _MAX_ITEMS:
        start = _MARK.search(raw, position)
        if start is None or start[0] == "\n":
            end = start.start() if start else len(raw)
            skipped += bool(raw[position:end].strip())
            line, position = line + 1, end + 1
            continue
        try:
            value, end = decoder.raw_decode(raw, start.start())
            value = _tellable(value, 0)
        except (ValueError, RecursionError) as problem:
            if isinstance(problem, _TooDeep | RecursionError):
                notes.append(f"a document at line {line + 1} is nested deeper than {_JSON_MAX_DEPTH} levels")
            end = raw.find("\n", position)
            line, position = line + 1, (len(raw) if end == -1 else end) + 1
            tries += 1
            skipped += 1
            continue
        height = raw.count("\n", start.start(), end)
        used.update(range(line, line + height + 1))
        if raw[position : start.start()].strip() and len(notes) < 20:
            notes.append(f"line {line + 1} has text before the document")
        found.append(value)
        line += height
        rest = _REST.match(raw, end)
        position, line = (rest.end(), line + 1) if rest else (end, line)
    skipped += bool(raw[position:].strip())
    found_containers = [value for value in found if isinstance(value, dict | list) and value]
    if not found or (not found_containers and skipped):
        return None
    coverage = len(used) / (len(used) + skipped)
    if skipped:
        notes.append(f"{skipped} other lines were left out")
    trust = 0.99 if not skipped else 0.55 + 0.4 * coverage
    if len(found) == 1:
        if not isinstance(found[0], dict) and skipped and len(used) == 1:
            trust = 0.3  # `[info] …` and `[1/4]` open a line far more often than an array does
        return Parsed(type="json", confidence=trust, value=found[0], notes=notes, lines=ranges(used))
    if not all(isinstance(value, dict) for value in found):
        trust *= 0.5 if skipped else 0.9
        items = [value if isinstance(value, dict) else {"value": value} for value in found]
    else:
        items = found
    return Parsed(type="json_lines", confidence=trust, items=items, notes=notes[:20], lines=ranges(used))


def _tellable(value: Document, depth: int) -> Document:
    """The value as any wire carries it: numbers beyond 64 bits and lone surrogates become text that shows them."""
    if depth > _JSON_MAX_DEPTH:
        raise _TooDeep
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_tellable(key, depth): _tellable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_tellable(item, depth + 1) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value


_MAX_CHARS = 200_000
"""More is not read: PyYAML takes seconds for a megabyte."""
_MAX_NODES = 50_000
_MAX_MERGED = 4 * _MAX_NODES
_MAX_DIGITS = 1000
_YAML_MAX_DEPTH = 60
_LOOKS = re.compile(r"(?:\s*#.*\n|\s*\n)*(?:%YAML.*\n)?(?:---(?:\s|$)|[\w./\"'-][\w ./\"'-]*:(?:\s|$)|- \S)")
_COMMANDS = re.compile(
    r"\.ya?ml\b|-o[ =]?yaml\b|--output[= ]yaml\b|\bhelm (?:template|get)\b|compose .*config\b|\byq\b"
)


class _TooMuch(ValueError):
    pass


def is_available() -> bool:
    from importlib.util import find_spec

    return find_spec("yaml") is not None


def read_yaml(text: OutputText) -> Parsed | None:
    """The documents: one is a `yaml` value, several are `yaml_documents` items."""
    raw = text.raw.lstrip("\ufeff")
    if len(raw) > _MAX_CHARS or not _LOOKS.match(raw):
        return None
    is_expected = text.is_wanted or _COMMANDS.search(text.command) is not None
    if not is_expected and not _is_likely(raw):
        return None
    try:
        import yaml
    except ImportError:
        return None
    notes: list[str] = []
    try:
        budget = _Budget()
        documents = [budget.plain(value, 0) for value in _load(yaml, raw)]
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError, TypeError):
        return None
    documents = [value for value in documents if value is not None]
    if not documents or not all(isinstance(value, dict | list) for value in documents):
        return None
    trust = 0.9 if is_expected else 0.8 if raw.lstrip().startswith("---") or len(documents) > 1 else 0.72
    lines = [(1, max(raw.rstrip("\n").count("\n") + 1, 1))]
    if len(documents) == 1:
        return Parsed(type="yaml", confidence=trust, value=documents[0], notes=notes, lines=lines)
    items = [value if isinstance(value, dict) else {"value": value} for value in documents]
    return Parsed(type="yaml_documents", confidence=trust, items=items, notes=notes, lines=lines)


def _is_likely(raw: str) -> bool:
    """Whether it is more than `key: value` lines, which many programs print: nested, or marked as a document."""
    if re.match(r"\s*---(?:\s|$)", raw):
        return True
    return re.search(r"^( *)[\w./\"'-]+:[ ]*\n(?:\1 +[\w\"'-]+:(?: |$)|\1 *- \S)", raw, re.MULTILINE) is not None


def _load(yaml: Document, raw: str) -> Iterator[Document]:
    # libyaml is ten times faster, where PyYAML was built with it.
    return iter(yaml.load_all(raw, _bounded(getattr(yaml, "CSafeLoader", yaml.SafeLoader))))


@cache
def _bounded(safe: Document) -> Document:
    """The loader with a limit on what `<<` copies: merged mappings that merge others grow 10⁹-fold in 400 bytes."""

    class BoundedLoader(safe):  # type: ignore[misc]
        merged = 0

        def flatten_mapping(self, node: Document) -> None:
            super().flatten_mapping(node)  # comes here again for each mapping that is merged, before it is copied
            self.merged += len(node.value)
            if self.merged > _MAX_MERGED:
                raise _TooMuch

        def construct_yaml_int(self, node: Document) -> Document:
            """Base 60 (`1:30:00`) takes seconds for long ones."""
            return super().construct_yaml_int(node) if len(node.value) <= _MAX_DIGITS else node.value

    BoundedLoader.add_constructor("tag:yaml.org,2002:int", BoundedLoader.construct_yaml_int)
    return BoundedLoader


class _Budget:
    """Counts values: an alias makes one value stand in many places, which a text of 300 bytes can do 10⁹ times."""

    def __init__(self) -> None:
        self.left = _MAX_NODES

    def plain(self, value: Document, depth: int) -> Document:
        self.left -= 1
        if self.left < 0 or depth > _YAML_MAX_DEPTH:
            raise _TooMuch
        if isinstance(value, dict):
            return {self._key(key): self.plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple | set):
            return [self.plain(item, depth + 1) for item in value]
        if isinstance(value, bytes):
            return b64encode(value).decode()
        if isinstance(value, str):
            return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return value if -(2**63) <= value < 2**64 else str(value)
        if isinstance(value, float):
            return value if value == value and abs(value) != float("inf") else str(value)
        return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)

    def _key(self, key: Document) -> str:
        if isinstance(key, bool):
            return "true" if key else "false"
        return "null" if key is None else str(key)


_MAX_ROWS = 100_000
_FIRST_LINES = 20
"""Delimiters are counted here; every record of a file has the same."""
_FILES = re.compile(r"\.(?:csv|tsv|tab)\b")
_DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}


def read_delimited(text: OutputText) -> Parsed | None:
    """A table whose first record names the columns. Records of another width are kept and noted, if they are few."""
    raw = text.raw.lstrip("\ufeff\n")
    skipped = text.raw.count("\n") - raw.count("\n")
    best: Parsed | None = None
    for delimiter in _DELIMITERS:
        if delimiter in raw:
            found = _read(raw, delimiter, text.is_wanted or bool(_FILES.search(text.command)), skipped)
            if found and (best is None or found.confidence > best.confidence):
                best = found
    return best


def _read(raw: str, delimiter: str, is_named: bool, skipped: int) -> Parsed | None:
    records: list[list[str]] = []
    used: list[int] = []
    reader = csv.reader(io.StringIO(raw), delimiter=delimiter, strict=True)
    start = 0
    try:
        for record in reader:
            if record:
                records.append(record)
                used += range(start, reader.line_num)
            start = reader.line_num
            if len(records) > _MAX_ROWS:
                break
            if len(records) == _FIRST_LINES and not is_named and _width_of(records)[1] < 0.9:
                return None
    except csv.Error:
        return None
    width, fitting = _width_of(records)
    if width < 2 or len(records) < 2 or fitting < 0.8:
        return None
    headers, rows = records[0], records[1:]
    if len(headers) != width:
        return None
    trust = _trust(headers, rows, delimiter, fitting)
    if is_named:
        trust = max(trust, 0.9)
    notes = [f"fields stand between {_DELIMITERS[delimiter]}"] if delimiter != "," else []
    odd = [index for index, row in enumerate(rows) if len(row) != width]
    if odd:
        notes.append(f"{len(odd)} of {len(rows)} rows have not {width} fields, the first is row {odd[0] + 1}")
    if len(records) > _MAX_ROWS:
        notes.append(f"only the first {_MAX_ROWS} rows were read")
    return Parsed(
        type="table",
        confidence=trust,
        headers=[header.strip() for header in headers],
        rows=rows[:_MAX_ROWS],
        notes=notes,
        lines=ranges(index + skipped for index in used),
    )


def _width_of(records: list[list[str]]) -> tuple[int, float]:
    """The width that most records have, and how many of them have it, 0 to 1."""
    if not records:
        return 0, 0.0
    width, count = Counter(map(len, records)).most_common(1)[0]
    return width, count / len(records)


def _trust(headers: list[str], rows: list[list[str]], delimiter: str, fitting: float) -> float:
    """Prose has commas as well: a header is short, unlike the others, and no comma in it is followed by a blank."""
    cells = [cell for row in [headers, *rows[:200]] for cell in row]
    blank_first = sum(cell[:1] == " " for cell in cells) / len(cells)
    names = [header.strip() for header in headers]
    is_header = len(set(names)) == len(names) and all(0 < len(name) <= 60 and not name[0].isdigit() for name in names)
    trust = 0.45 + 0.1 * min(len(headers) - 1, 3) + 0.05 * min(len(rows), 4)
    trust -= 0.5 * blank_first + (0.0 if is_header else 0.25) + (1 - fitting)
    if delimiter == "|" or any(re.search(r"[{}<>]|https?:", name) for name in names):
        trust -= 0.3
    return max(0.05, min(trust, 0.93))


_COLON = re.compile(r"(\s*+)([\w\"'(\[/.@$%+*#-][^:=]{0,59}?)\s*+:(?:\s++(.*+))?$")
_EQUALS = re.compile(r"(\s*+)([\w\"'.@-][\w.\-/@\[\]\"' ]{0,59}?)\s*+=\s*+(.*+)$")
_ASSIGNED = re.compile(r"(\s*+)([A-Za-z_][\w.\-]{0,59})=(.*+)$")
_STATUS = re.compile(r"HTTP/[\d.]+ \d{3}\b")
_LEVELS = frozenset(
    ("error", "warning", "warn", "fatal", "info", "debug", "note", "hint", "remote", "e", "w", "critical")
)
_TIME = re.compile(r"\d{1,2}(?::\d\d){1,2}")


@dataclass(slots=True)
class _Pair:
    index: int
    indent: int
    key: str
    value: str
    more: list[str] = field(default_factory=list)
    """Lines below it that belong to the value."""


def read_pairs(text: OutputText) -> Parsed | None:
    """The pairs as one object; a key that comes again gets a list of values."""
    best: tuple[float, list[_Pair], set[int]] | None = None
    for pattern in (_COLON, _EQUALS, _ASSIGNED):
        pairs, used, strange = _collect(text.lines, pattern)
        filled = len(used) + strange
        if len(pairs) < 2 or len(pairs) < 0.6 * filled:
            continue
        trust = 0.75 * share(used, text.lines) * _plausible(pairs)
        if best is None or trust > best[0]:
            best = (trust, pairs, used)
    if best is None:
        return None
    trust, pairs, used = best
    return Parsed(type="key_value", confidence=trust, value=_nested(pairs), lines=ranges(used))


def _collect(lines: list[str], pattern: re.Pattern[str]) -> tuple[list[_Pair], set[int], int]:
    pairs: list[_Pair] = []
    used: set[int] = set()
    strange = 0
    for index, line in enumerate(lines):
        if not line:
            continue
        match = pattern.match(line)
        if match and not _TIME.match(line.strip()):
            pairs.append(_Pair(index, len(match[1]), match[2].strip(), (match[3] or "").strip()))
            used.add(index)
        elif _STATUS.match(line) and not pairs:
            pairs.append(_Pair(index, 0, "status", line.strip()))
            used.add(index)
        elif pairs and len(line) - len(line.lstrip()) > pairs[-1].indent and index - 1 in used:
            pairs[-1].more.append(line.strip())
            used.add(index)
        else:
            strange += 1
    for pair in pairs:
        pair.value = "\n".join([pair.value, *pair.more]).strip()
    return pairs, used, strange


def _plausible(pairs: list[_Pair]) -> float:
    """Keys are short names that differ; a log or prose with colons has long or few ones."""
    keys = [pair.key for pair in pairs]
    if len(set(keys)) < 2:
        return 0.0
    logged = sum(key.lower().split()[0] in _LEVELS for key in keys) / len(keys)
    short = sum(len(key.split()) <= 4 and len(key) <= 40 for key in keys) / len(keys)
    different = len(set(keys)) / len(keys)
    if len(pairs) < 3 and any(len(pair.value) > 40 or len(pair.key.split()) > 2 for pair in pairs):
        short *= 0.7  # two sentences with a colon in each
    return min(1.0, (1 - logged) * (short**2) * (0.2 + 0.9 * different))


def _nested(pairs: list[_Pair]) -> dict[str, Document]:
    """A key without a value holds the deeper pairs that follow it."""
    root: dict[str, Document] = {}
    open_keys: list[tuple[int, dict[str, Document]]] = [(-1, root)]
    for here, following in zip(pairs, [*pairs[1:], None], strict=True):
        while open_keys[-1][0] >= here.indent:
            open_keys.pop()
        target = open_keys[-1][1]
        value: Document = here.value
        # No tool prints more than 30 levels, and a recursive encoder would fail on them.
        if not here.value and following and following.indent > here.indent and len(open_keys) < 30:
            value = {}
            open_keys.append((here.indent, value))
        if here.key not in target:
            target[here.key] = value
        elif isinstance(target[here.key], list):
            target[here.key].append(value)
        else:
            target[here.key] = [target[here.key], value]
    return root
