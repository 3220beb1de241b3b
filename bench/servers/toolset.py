"""Names, descriptions and parameters of 32 tools such as a workbench has; the first one is `echo`."""

from dataclasses import dataclass

Schema = dict[str, object]

ECHO_DESCRIPTION = "Return the text that was given."
ECHO_SCHEMA: Schema = {
    "type": "object",
    "properties": {"text": {"title": "Text", "description": "What to return", "type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}

# What our decorator says of a tool that reads; the peers list the same, so that all lists are one size.
HINTS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}

NOUNS = ("rules", "flows", "panes", "notes", "files", "sessions", "certificates", "profiles")
VERBS = ("list", "get", "update", "delete")

# name: (type, description, default); parameters without a default are required.
Parameter = tuple[str, str, str | int | bool | None]
PARAMETERS: dict[str, dict[str, Parameter]] = {
    "list": {
        "query": ("string", "Text that the {noun} must contain", ""),
        "limit": ("integer", "How many {noun} to return at most", 50),
        "cursor": ("string", "Where the page before ended", ""),
        "newest_first": ("boolean", "Order by the time of the last change", True),
    },
    "get": {
        "id": ("string", "Identifier from {noun}_list", None),
        "fields": ("string", "Comma-separated fields to return, all when empty", ""),
        "include_body": ("boolean", "Return the content as well", False),
    },
    "update": {
        "id": ("string", "Identifier from {noun}_list", None),
        "title": ("string", "New title, kept when empty", ""),
        "content": ("string", "New content", None),
        "revision": ("integer", "Revision that the change is based on", 0),
        "dry_run": ("boolean", "Report the change without making it", False),
    },
    "delete": {
        "id": ("string", "Identifier from {noun}_list", None),
        "reason": ("string", "Why, for the audit log", ""),
        "force": ("boolean", "Delete even when something refers to it", False),
    },
}


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    description: str
    parameters: dict[str, Parameter]

    def schema(self) -> Schema:
        properties: Schema = {}
        for name, (kind, description, default) in self.parameters.items():
            shown: Schema = {"title": title_of(name), "description": description, "type": kind}
            properties[name] = shown if default is None else {**shown, "default": default}
        required = [name for name, (_, _, default) in self.parameters.items() if default is None]
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }


def title_of(name: str) -> str:
    return name.replace("_", " ").capitalize()


def other_tools(count: int) -> list[ToolSpec]:
    """The tools beside `echo` in a server of `count` tools."""
    specs = [
        ToolSpec(
            f"{noun}_{verb}",
            f"{verb.capitalize()} {noun} of the workbench; returns what is there afterwards.",
            {name: (kind, text.format(noun=noun), default) for name, (kind, text, default) in PARAMETERS[verb].items()},
        )
        for noun in NOUNS
        for verb in VERBS
    ]
    return specs[: count - 1]
