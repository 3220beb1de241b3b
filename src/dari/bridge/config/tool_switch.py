"""Turn single tools of a server on and off: `tools.allow` and `tools.deny` of its entry; the rest stays."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection

from dari.bridge.config.jsonc import JsonValue
from dari.errors import Conflict

JsonEntry = dict[str, JsonValue]
_MORE_DENIED = ("excludeTools", "disabledTools")
_SPECIAL = re.compile(r"([*?[])")


def is_tool_on(name: str, allow: Collection[str], deny: Collection[str]) -> bool:
    """Globs of the server's own names; `deny` wins."""
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in deny):
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in allow)


def switch_tools(entry: JsonEntry, names: Collection[str], *, is_on: bool) -> JsonEntry:
    """The entry with these tools on or off. Raises Conflict where a pattern of the file, which names more tools than
    this, keeps one off."""
    changed = dict(entry)
    tools = changed.get("tools")
    rules: JsonEntry = dict(tools) if isinstance(tools, dict) else {}
    literal = {_literal(name) for name in names} | set(names)
    deny = _texts(rules.get("deny"))
    if is_on:
        deny = [pattern for pattern in deny if pattern not in literal]
        for field in _MORE_DENIED:
            if field in changed:
                changed[field] = [pattern for pattern in _texts(changed[field]) if pattern not in literal]
        _check_patterns(names, [*deny, *(one for field in _MORE_DENIED for one in _texts(changed.get(field)))])
        allow = _texts(rules.get("allow") if "allow" in rules else changed.get("includeTools"))
        missing = [name for name in names if allow and not is_tool_on(name, allow, ())]
        if missing:
            rules["allow"] = [*allow, *map(_literal, missing)]
            changed.pop("includeTools", None)
    else:
        deny += [_literal(name) for name in names if _literal(name) not in deny]
    if deny:
        rules["deny"] = list[JsonValue](deny)
    else:
        rules.pop("deny", None)
    if rules:
        changed["tools"] = rules
    else:
        changed.pop("tools", None)
    return changed


def _check_patterns(names: Collection[str], deny: Collection[str]) -> None:
    for name in names:
        if found := next((pattern for pattern in deny if fnmatch.fnmatchcase(name, pattern)), None):
            raise Conflict(f"the pattern '{found}' in tools.deny keeps '{name}' off", "change the pattern in the file")


def _literal(name: str) -> str:
    """A pattern that fits this name alone: what a server calls a tool is not ours to read as a pattern."""
    return _SPECIAL.sub(r"[\1]", name)


def _texts(value: JsonValue) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
