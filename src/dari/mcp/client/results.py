"""What a server's results hold. Big members stay raw until they are looked at."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from dari.core.content import AudioContent, Contents, EmbeddedResource, ImageContent, ResourceLink, TextContent
from dari.errors import Failed
from dari.mcp.client.decode import without_nulls
from dari.rpc.codec import UNREADABLE, decode_any, encode
from dari.struct_types import ready

_NOTHING = Raw(b"")
_KNOWN: Any = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink
_decode_block: Callable[[Raw], TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink] = (
    msgspec.json.Decoder(ready(_KNOWN)).decode
)
_decode_list = msgspec.json.Decoder(list[Raw]).decode


class UnknownBlock(Struct, frozen=True):
    """A content block of a kind that we do not know, or that breaks the schema of its kind."""

    fields: dict[str, Any]


Block = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink | UnknownBlock


def read_block(raw: Raw) -> Block:
    try:
        return _decode_block(raw)
    except UNREADABLE:
        fields = decode_any(raw)
    try:
        return _decode_block(Raw(encode(without_nulls(fields))))
    except UNREADABLE:
        return UnknownBlock(fields if isinstance(fields, dict) else {"value": fields})


class RemoteTool(Struct, rename="camel", frozen=True, kw_only=True, dict=True):
    """A tool as `tools/list` shows it."""

    name: str
    title: str = ""
    description: str = ""
    annotations: dict[str, Any] = {}
    icons: list[dict[str, Any]] = []
    execution: dict[str, Any] = {}
    meta: dict[str, Any] = field(default_factory=dict, name="_meta")
    raw_input_schema: Raw = field(default=Raw(b"{}"), name="inputSchema")
    raw_output_schema: Raw = field(default=_NOTHING, name="outputSchema")

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        return _object(self.raw_input_schema)

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        return _object(self.raw_output_schema) if self.raw_output_schema else None


class RemoteResource(Struct, rename="camel", frozen=True, kw_only=True):
    """A resource as `resources/list` shows it."""

    uri: str
    name: str = ""
    title: str = ""
    description: str = ""
    mime_type: str = ""
    size: int | None = None
    annotations: dict[str, Any] = {}
    icons: list[dict[str, Any]] = []
    meta: dict[str, Any] = field(default_factory=dict, name="_meta")


class RemoteTemplate(Struct, rename="camel", frozen=True, kw_only=True):
    """A family of resources as `resources/templates/list` shows it."""

    uri_template: str
    name: str = ""
    title: str = ""
    description: str = ""
    mime_type: str = ""
    annotations: dict[str, Any] = {}
    icons: list[dict[str, Any]] = []
    meta: dict[str, Any] = field(default_factory=dict, name="_meta")


class RemotePromptArgument(Struct, frozen=True, kw_only=True):
    name: str
    title: str = ""
    description: str = ""
    required: bool = False


class RemotePrompt(Struct, frozen=True, kw_only=True):
    """A prompt as `prompts/list` shows it."""

    name: str
    title: str = ""
    description: str = ""
    arguments: list[RemotePromptArgument] = []
    icons: list[dict[str, Any]] = []
    meta: dict[str, Any] = field(default_factory=dict, name="_meta")


class CallResult(Struct, rename="camel", frozen=True, kw_only=True, dict=True):
    """What a tool returned. A failure of the tool is a result too: see `is_error`."""

    is_error: bool = False
    meta: dict[str, Any] = field(default_factory=dict, name="_meta")
    raw_content: Raw = field(default=Raw(b"[]"), name="content")
    raw_structured: Raw = field(default=_NOTHING, name="structuredContent")

    @cached_property
    def content(self) -> list[Block]:
        return [read_block(raw) for raw in _decode_list(self.raw_content)]

    @cached_property
    def structured_content(self) -> Any:
        """The structured value; None when the tool gave none."""
        return decode_any(self.raw_structured) if self.raw_structured else None

    @property
    def text(self) -> str:
        """The text blocks, one after the other."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    def raise_if_error(self) -> None:
        """Turn a failure that the tool reported into an exception."""
        if self.is_error:
            raise Failed(self.text or "the tool failed without a word")


class ReadResult(Struct, frozen=True, kw_only=True):
    """The contents behind a URI."""

    contents: list[Contents]
    meta: dict[str, Any] = field(default_factory=dict, name="_meta")


class RemotePromptMessage(Struct, frozen=True, dict=True):
    """One message of a prompt."""

    role: Literal["user", "assistant"]
    raw_content: Raw = field(name="content")

    @cached_property
    def content(self) -> Block:
        return read_block(self.raw_content)


class PromptResult(Struct, frozen=True, kw_only=True):
    """A prompt, filled in."""

    messages: list[RemotePromptMessage]
    description: str = ""
    meta: dict[str, Any] = field(default_factory=dict, name="_meta")


class Completion(Struct, rename="camel", frozen=True, kw_only=True):
    """Values that fit what was typed so far."""

    values: list[str] = []
    total: int | None = None
    has_more: bool = False


class Implementation(Struct, rename="camel", frozen=True, kw_only=True):
    """Who a server says it is. For display only."""

    name: str = ""
    version: str = ""
    title: str = ""
    website_url: str = ""


class ListResult(Struct, frozen=True):
    """All pages of a list, every item as the server wrote it."""

    items: list[Raw]
    ttl_ms: int | None = None
    cache_scope: str | None = None


class CompleteResult(Struct):
    completion: Completion


class InputRequiredResult(Struct, rename="camel"):
    """The stateless era's way to ask back: answer and call again."""

    result_type: str = "complete"
    input_requests: dict[str, InputRequest] | UnsetType = UNSET
    request_state: str | UnsetType = UNSET


class InputRequest(Struct):
    method: str
    params: Raw = Raw(b"{}")


def _object(raw: Raw) -> dict[str, Any]:
    value = decode_any(raw)
    return value if isinstance(value, dict) else {}
