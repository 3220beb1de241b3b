"""What a model is told about the servers behind a gateway, in a bounded text."""

from __future__ import annotations

from collections.abc import Sequence

from dari.bridge.gateway.mounted_server import MountedServer
from dari.text.sanitize import sanitize_for_model

MAX_CHARS = 8000
MAX_CHARS_PER_SERVER = 1500
_LINE_CHARS = 160


def write_instructions(mounts: Sequence[MountedServer], separator: str, *, is_prefixed: bool) -> str:
    """One line per server first, then what each says about itself, until the text is full."""
    if not mounts:
        return ""
    lines = [_line(mount, separator if is_prefixed else "") for mount in mounts]
    parts = ["Other MCP servers are reached through this one:\n" + "\n".join(lines)] if len(mounts) > 1 else lines
    left = MAX_CHARS - len(parts[0])
    for mount in mounts:
        said = mount.upstream.instructions.strip()
        if not said:
            continue
        text = f"## {mount.id}\n{_cut(said, MAX_CHARS_PER_SERVER)}"
        if len(text) > left:
            break
        left -= len(text) + 2
        parts.append(text)
    return "\n\n".join(parts)[:MAX_CHARS]


def _line(mount: MountedServer, separator: str) -> str:
    tools = mount.upstream.known_tools()
    known = "its tools are not known yet" if tools is None else f"{len(tools)} tools"
    named = f", named {mount.id}{separator}…" if separator else ""
    about = mount.upstream.profile.description
    return f"- {mount.id}: {_cut(sanitize_for_model(about)[0], _LINE_CHARS) + '; ' if about else ''}{known}{named}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
