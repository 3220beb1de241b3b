"""What has to be known of another server's lists, which are shown as they are."""

from __future__ import annotations

from typing import Any, NamedTuple

from dari.core.header_params import find_header_params
from dari.core.prompt import PromptArgument

JsonObject = dict[str, Any]
CAPABILITIES = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
"""What a client has to declare before a server may ask it."""

LABEL = "dari/server"
"""In `_meta` of a tool that the daemon lists for a process of ours: which server it is of, and what that is for."""
MAX_ABOUT_CHARS = 600


class Label(NamedTuple):
    server: str
    about: str


def with_label(shown: JsonObject, label: Label) -> JsonObject:
    """The tool as a process of ours is shown it; a server cannot write the label itself."""
    meta = shown.get("_meta")
    return {**shown, "_meta": {**(meta if isinstance(meta, dict) else {}), LABEL: label._asdict()}}


def take_label(shown: JsonObject) -> tuple[JsonObject, Label]:
    """The tool without its label, and the label; an empty one where the daemon gave none."""
    meta = shown.get("_meta")
    label = meta.get(LABEL) if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(label, dict):
        return shown, Label("", "")
    rest = {key: value for key, value in meta.items() if key != LABEL}
    bare = {key: value for key, value in shown.items() if key != "_meta"}
    return {**bare, "_meta": rest} if rest else bare, Label(str(label.get("server", "")), str(label.get("about", "")))


def prompt_arguments(listed: JsonObject) -> list[PromptArgument]:
    """Only what is required matters here: the server checks the rest."""
    given = listed.get("arguments")
    return [
        PromptArgument(str(one["name"]), required=one.get("required") is True)
        for one in (given if isinstance(given, list) else [])
        if isinstance(one, dict) and "name" in one
    ]


def read_header_params(schema: Any) -> dict[str, tuple[str, ...]]:
    try:
        return find_header_params(schema)
    except ValueError:
        return {}  # clients leave such a tool out over HTTP; over a pipe it works
