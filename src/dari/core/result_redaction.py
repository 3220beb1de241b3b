"""What a tool or resource of ours gives out passes the redaction gate, unless it declares to show things as they are.

The gate sits where tools are made (`typed_tool`) and where resources are read, so a new tool cannot go round it. Other
servers' results (`RawResult`) are passed on as they are: that is what they were asked for.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec.structs import replace

from dari.core.content import AudioContent, EmbeddedResource, ImageContent, RawResult, ToolResult
from dari.text.redact import redact_secrets

OutputPolicy = Literal["redacted", "as_is"]
"""`as_is` only for what a program printed on a screen, and for what passed a gate before it got here."""


def redact_result(value: Any) -> Any:
    """A tool's return value with its secrets hidden."""
    if isinstance(value, (RawResult, ImageContent, AudioContent)):
        return value
    if isinstance(value, EmbeddedResource):
        # A blob is base64 of something binary; there is no text in it to search.
        return value if not isinstance(value.resource.text, str) else redact_secrets(value)
    if isinstance(value, ToolResult):
        content = [redact_result(block) for block in value.content]
        return replace(value, content=content, structured_content=redact_secrets(value.structured_content))
    if isinstance(value, list):
        return [redact_result(each) for each in value]
    return redact_secrets(value)
