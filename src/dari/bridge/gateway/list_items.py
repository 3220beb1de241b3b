"""What has to be known of another server's lists, which are shown as they are."""

from __future__ import annotations

from typing import Any

from dari.core.header_params import find_header_params
from dari.core.prompt import PromptArgument

JsonObject = dict[str, Any]
CAPABILITIES = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
"""What a client has to declare before a server may ask it."""

MAX_ABOUT_CHARS = 600


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
