"""YAML, one document or several. PyYAML reads it, which comes with the extra `bridge`."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator

from dari.terminal.reading.result import Document, Parsed, Text

_MAX_CHARS = 200_000
"""More is not read: PyYAML takes seconds for a megabyte."""
_MAX_NODES = 50_000
_MAX_DEPTH = 60
_LOOKS = re.compile(r"(?:\s*#.*\n|\s*\n)*(?:%YAML.*\n)?(?:---(?:\s|$)|[\w./\"'-][\w ./\"'-]*:(?:\s|$)|- \S)")
_COMMANDS = re.compile(
    r"\.ya?ml\b|-o[ =]?yaml\b|--output[= ]yaml\b|\bhelm (?:template|get)\b|compose .*config\b|\byq\b"
)


class _TooMuch(ValueError):
    pass


def is_available() -> bool:
    from importlib.util import find_spec

    return find_spec("yaml") is not None


def read_yaml(text: Text) -> Parsed | None:
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
        if self.left < 0 or depth > _MAX_DEPTH:
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
