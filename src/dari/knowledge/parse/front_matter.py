"""The front matter of a Markdown file: the few keys that mean something here, read without a YAML parser.

A YAML parser follows anchors, and a file of 300 bytes makes it build gigabytes. What is read here is what people
write: `key: value`, `[a, b]`, and items with a dash below a key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast, get_args

from msgspec import Struct

from dari.knowledge.document import TrustLevel

MAX_LINES = 200
MAX_TAGS = 64
_KEY = re.compile(r"([A-Za-z_][\w-]*)\s*[:=]\s*(.*)")
_LANGUAGE = re.compile(r"([a-z]{2,3})(?:[-_][A-Za-z]{2,4})?$", re.IGNORECASE)


class FrontMatter(Struct, frozen=True):
    end: int = 0
    """The number of lines it takes; 0: there is none."""
    title: str = ""
    lang: str = ""
    tags: tuple[str, ...] = ()
    trust_level: TrustLevel = "primary"


def read_front_matter(lines: Sequence[str]) -> FrontMatter:
    """`---` YAML or `+++` TOML at the very start; anything else is text of the document."""
    if not lines or lines[0].rstrip() not in ("---", "+++"):
        return FrontMatter()
    fence = lines[0].rstrip()
    closing = (fence, "...") if fence == "---" else (fence,)
    end = next((n for n in range(1, min(len(lines), MAX_LINES)) if lines[n].rstrip() in closing), 0)
    if not end or not any(_KEY.match(line) for line in lines[1:end]):
        return FrontMatter()
    if fence == "---" and not all(map(_may_be_yaml, lines[1:end])):
        return FrontMatter()  # text between two rules
    values = _read_values(lines[1:end])
    lang = _LANGUAGE.match(_scalar(values, "lang") or _scalar(values, "language"))
    trust = _scalar(values, "trust_level") or _scalar(values, "trust")
    return FrontMatter(
        end + 1,
        _scalar(values, "title"),
        lang[1].lower() if lang else "",
        tuple(dict.fromkeys([*values.get("tags", ()), *values.get("keywords", ())]))[:MAX_TAGS],
        cast(TrustLevel, trust) if trust in get_args(TrustLevel) else "primary",
    )


def _may_be_yaml(line: str) -> bool:
    """At the margin stand keys, items, comments and closing brackets; what goes on from a line above is indented."""
    return not line or line[0] in " \t#-]}" or ":" in line or _KEY.match(line) is not None


def _scalar(values: dict[str, list[str]], name: str) -> str:
    return " ".join(values.get(name, ()))


def _read_values(lines: Sequence[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        if found := _KEY.match(line):
            name, value = found[1].lower(), found[2].strip()
            current = values.setdefault(name, [])
            current += _items(value, is_list=name in ("tags", "keywords"))
        elif current is not None and line.lstrip().startswith("- "):
            current.append(_unquote(line.lstrip()[2:].strip()))
    return values


def _items(value: str, *, is_list: bool) -> list[str]:
    value = value if value.startswith(('"', "'")) else value.partition(" #")[0].strip()
    if value in ("", "|", ">", "|-", ">-"):
        return []
    if value.startswith("[") and value.endswith("]"):
        return [one for one in (_unquote(part.strip()) for part in value[1:-1].split(",")) if one]
    if is_list and "," in value:
        return [one for one in (_unquote(part.strip()) for part in value.split(",")) if one]
    return [_unquote(value)]


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value.lstrip("#") if value.startswith("#") else value
