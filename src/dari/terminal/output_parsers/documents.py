"""JSON, alone or inside other output, JSON lines, and YAML (which needs PyYAML, of the extra `bridge`)."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator

from dari.terminal.output_parsers.result import Document, OutputText, Parsed, ranges

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
    return iter(yaml.load_all(raw, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


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
