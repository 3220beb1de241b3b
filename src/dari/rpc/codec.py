"""JSON-RPC 2.0 messages as data: decoded once, encoded by splicing.

One typed decode reads the whole message, `params` included: the fields below are the union of
what MCP methods take. A tool's `arguments` stay raw until the tool's own type reads them.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from dari.struct_types import ready

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

RequestId = int | str


class Meta(Struct, rename={"progress_token": "progressToken"}):
    """`params._meta`; the long names are the stateless era's envelope."""

    progress_token: int | str | UnsetType = UNSET
    version: str | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/protocolVersion")
    capabilities: Raw | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/clientCapabilities")
    client_info: Raw | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/clientInfo")
    log_level: str | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/logLevel")


class Params(Struct, rename="camel"):
    """Every parameter that a method of ours reads; the rest is ignored, as MCP asks."""

    name: str | UnsetType = UNSET
    arguments: Raw | UnsetType = UNSET
    meta: Meta | UnsetType = field(default=UNSET, name="_meta")
    input_responses: dict[str, Raw] | UnsetType = UNSET
    request_state: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    cursor: str | None | UnsetType = UNSET
    level: str | UnsetType = UNSET
    request_id: int | str | UnsetType = UNSET
    reason: str | None | UnsetType = UNSET
    ref: Raw | UnsetType = UNSET
    argument: Raw | UnsetType = UNSET
    context: Raw | UnsetType = UNSET
    protocol_version: str | UnsetType = UNSET
    capabilities: Raw | UnsetType = UNSET
    client_info: Raw | UnsetType = UNSET
    notifications: Raw | UnsetType = UNSET
    progress_token: int | str | UnsetType = UNSET
    progress: float | UnsetType = UNSET
    total: float | None | UnsetType = UNSET
    message: Any = UNSET
    logger: str | None | UnsetType = UNSET
    data: Raw | UnsetType = UNSET


class ErrorObject(Struct, omit_defaults=True):
    """The `error` member of a response."""

    code: int
    message: str
    data: Any = None


class Message(Struct):
    """One request, notification or response; the members that are set say which."""

    jsonrpc: str = ""
    id: int | str | float | None | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Params | None | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorObject | None | UnsetType = UNSET


class Envelope(Struct):
    """The same message with `params` unread: what is left when the typed decode fails."""

    jsonrpc: Any = ""
    id: Any = UNSET
    method: Any = UNSET
    params: Any = UNSET


encoder = msgspec.json.Encoder()
encode = encoder.encode
_decode_message = msgspec.json.Decoder(ready(Message)).decode
decode_envelope = msgspec.json.Decoder(ready(Envelope)).decode
_decode_batch = msgspec.json.Decoder(list[Raw]).decode
decode_any = msgspec.json.Decoder().decode
decode_members = msgspec.json.Decoder(dict[str, Raw]).decode

# What json text can raise besides msgspec's own errors: bad UTF-8 inside a string, nesting beyond the C stack guard.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

EMPTY_PARAMS = Params()

MAX_MENDED_BYTES = 128 * 1024
"""A larger message is not searched for halves of pairs: 16 MB of backslashes would hold everybody up for seconds."""

MAX_BATCH_MESSAGES = 1000
_MAX_BATCH_COMMAS = 500_000
_CHUNK_BYTES = 1 << 20

# Every escape in turn, so that a backslash which is itself escaped begins none; a lone half of a pair is group 1.
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)


def decode_message(data: bytes) -> Message:
    """The message. Half of an emoji, as a program leaves it that cuts text by UTF-16 units, becomes U+FFFD: a reply
    without the request's id, which is all that a parse error can give, would let its client wait for ever."""
    data = single_line(data)
    try:
        return _decode_message(data)
    except UNREADABLE:
        mended = mend_surrogates(data)
        if mended == data:
            raise
        return _decode_message(mended)


def decode_batch(data: bytes) -> list[Raw]:
    """The messages of a batch; DecodeError above `MAX_BATCH_MESSAGES`. Each costs 60 bytes for two of the text, so
    their commas are counted first: 32 MB of `[0,0,…]` would take 2 GB and five seconds of everybody's time."""
    if data.count(b",") > _MAX_BATCH_COMMAS or len(parts := _decode_batch(data)) > MAX_BATCH_MESSAGES:
        raise msgspec.DecodeError(f"a batch holds {MAX_BATCH_MESSAGES} messages at most")
    return parts


def single_line(data: bytes) -> bytes:
    """JSON text without line ends between its tokens. What we leave raw goes on as part of a line, an event or a
    record, and a value that stands on a line of its own would be a message there: a call that nobody approved."""
    if data.find(b"\n", 0, -1) < 0 and b"\r" not in data:
        return data
    return data.replace(b"\r", b" ").replace(b"\n", b" ")


def mend_surrogates(data: bytes) -> bytes:
    """JSON text with U+FFFD for each escape of a lone surrogate; text above `MAX_MENDED_BYTES` as it is."""
    if len(data) > MAX_MENDED_BYTES:
        return data
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], data)


def is_utf8(data: bytes) -> bool:
    """Whether the bytes are UTF-8. Decoders do not look at what they leave raw, and it would reach somebody else."""
    if data.isascii():
        return True
    decoder = getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(data), _CHUNK_BYTES):  # a text as a whole may take four times as much
            decoder.decode(data[at : at + _CHUNK_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def decode_sloppy(data: bytes) -> Any:
    """What JSON text of a careless program means: `NaN` and `Infinity` (null here), control characters and halves of
    pairs in a string, a byte order mark. None where it means nothing, or is long."""
    import json

    if len(data) > MAX_MENDED_BYTES:
        return None
    try:
        # As text: from bytes, halves of pairs written as UTF-8 would become strings that nothing can encode.
        text = mend_surrogates(data).decode("utf-8-sig", "replace")
        return json.loads(text, strict=False, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return None


def result_message(request_id: RequestId, result: bytes) -> bytes:
    """A success response around an already encoded result."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(request_id), result)


def error_message(request_id: RequestId | None, code: int, message: str, data: Any = None) -> bytes:
    """An error response; `id` is null when the request's own could not be read."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode(request_id), encode(ErrorObject(code, message, data)))


def notification_message(method: str, params: Any = None) -> bytes:
    """A notification; `params` is anything msgspec encodes to an object."""
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}' % encode(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode(method), encode(params))


def request_message(request_id: RequestId, method: str, params: Any = None) -> bytes:
    """A request; `params` is anything msgspec encodes to an object."""
    head = b'{"jsonrpc":"2.0","id":%b,"method":%b' % (encode(request_id), encode(method))
    return head + (b"}" if params is None else b',"params":%b}' % encode(params))
