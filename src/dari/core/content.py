"""What a tool, prompt or resource hands back: MCP content blocks as data, and the redaction that they pass.

Results are redacted where tools are made (`typed_tool`) and where resources are read, so a new tool cannot go round it.
Other servers' results (`RawResult`) are passed on as they are.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.structs import replace

from dari.text.redact import redact_secrets
from dari.text.redact.patterns import hide_patterns


class ContentBlock(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """Members that every content block may carry."""

    annotations: dict[str, Any] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(default=UNSET, name="_meta")


class TextContent(ContentBlock, tag="text", tag_field="type", frozen=True):
    text: str


class ImageContent(ContentBlock, tag="image", tag_field="type", frozen=True):
    data: str
    mime_type: str

    @classmethod
    def of(cls, raw: bytes, mime_type: str) -> ImageContent:
        return cls(data=b64encode(raw).decode(), mime_type=mime_type)


class AudioContent(ContentBlock, tag="audio", tag_field="type", frozen=True):
    data: str
    mime_type: str

    @classmethod
    def of(cls, raw: bytes, mime_type: str) -> AudioContent:
        return cls(data=b64encode(raw).decode(), mime_type=mime_type)


class Contents(Struct, rename="camel", omit_defaults=True, frozen=True):
    """A resource's contents: `text` or `blob` (base64), never both."""

    uri: str
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET

    @classmethod
    def of(cls, uri: str, value: str | bytes, mime_type: str | None) -> Contents:
        mime = UNSET if mime_type is None else mime_type
        if isinstance(value, str):
            return cls(uri=uri, text=value, mime_type=mime)
        return cls(uri=uri, blob=b64encode(value).decode(), mime_type=mime)


class EmbeddedResource(ContentBlock, tag="resource", tag_field="type", frozen=True):
    resource: Contents


class ResourceLink(ContentBlock, tag="resource_link", tag_field="type", frozen=True):
    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET


Content = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink


class ToolResult(Struct, rename="camel", omit_defaults=True):
    """A result spelled out: for tools that return images, links, or text beside structured data."""

    content: list[Content]
    structured_content: Any = UNSET
    is_error: bool = False
    meta: dict[str, Any] | UnsetType = field(default=UNSET, name="_meta")


class PromptMessage(Struct, frozen=True):
    """One message of a prompt."""

    role: Literal["user", "assistant"]
    content: Content


class RawResult(Struct, frozen=True):
    """An already encoded result object (of a tool, a prompt or a resource), passed through unread."""

    body: Raw


OutputPolicy = Literal["redacted", "code", "as_is"]
"""`code`: keys that are known by their shape are hidden; names say little, since `token=None` is a part of code.
`as_is` only for what a program printed on a screen, and for what passed a gate before it got here."""


def redact_result(value: Any) -> Any:
    """A tool's return value with its secrets hidden."""
    if isinstance(value, (RawResult, ImageContent, AudioContent)):
        return value
    if isinstance(value, EmbeddedResource):
        # A blob is base64 of something binary, not text to search.
        return value if not isinstance(value.resource.text, str) else redact_secrets(value)
    if isinstance(value, ToolResult):
        content = [redact_result(block) for block in value.content]
        return replace(value, content=content, structured_content=redact_secrets(value.structured_content))
    if isinstance(value, list):
        return [redact_result(each) for each in value]
    return redact_secrets(value)


def redact_code(value: Any) -> Any:
    """A struct without the keys in its texts, whatever the names of its fields and of variables are."""
    if isinstance(value, str):
        return hide_patterns(value)[0]
    if isinstance(value, list):
        return [redact_code(each) for each in value]
    if isinstance(value, dict):
        return {key: redact_code(each) for key, each in value.items()}
    if isinstance(value, Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        changed = {name: new for name, old in fields.items() if (new := redact_code(old)) != old}
        return replace(value, **changed) if changed else value
    return value
