"""JSON-RPC messages as the pipe reads them: who asks what, and nothing else. No import above a millisecond."""

from dari.cli.hub.protocol import to_json
from dari.rpc.plain_json import loads

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_RESPONSE = b'{"jsonrpc":"2.0","id":'
_NOTIFICATION = b'{"jsonrpc":"2.0","method":"'
_METHOD = b',"method":"'
_SPACED, _SPACED_METHOD = b'{"jsonrpc": "2.0", "id": ', b', "method": "'
"""As Python's `json` writes them."""
_METHOD_FIRST = b'{"method":"'
_ID_LAST = b',"jsonrpc":"2.0","id":'


class ClientMessage:
    """One message of the client: `id` is its JSON text, or None; `parts` are the messages of a batch.

    A request in the order of the SDKs is read at its head and its end; its params only when somebody asks for them.
    """

    __slots__ = ("_params", "data", "id", "method", "parts")

    def __init__(self, data: bytes, value: object = None, *, is_part: bool = False) -> None:
        self.data = data
        self.id: str | None = None
        self.method = ""
        self.parts: list[ClientMessage] = []
        self._params: dict[str, object] | None = None
        if value is None and not is_part:
            if (found := _scan_request(data)) is not None:
                self.id, self.method = found
                return
            value = _loads(data)
        if isinstance(value, list):
            self.parts = [ClientMessage(b"", part, is_part=True) for part in value]
        self._params = _params_of(value)
        if not isinstance(value, dict):
            return
        identifier, method = value.get("id"), value.get("method")
        if isinstance(identifier, (int, str)) and not isinstance(identifier, bool):
            self.id = to_json(identifier)
        self.method = method if isinstance(method, str) else ""

    @property
    def params(self) -> dict[str, object]:
        if self._params is None:
            self._params = _params_of(_loads(self.data))
        return self._params

    @property
    def is_request(self) -> bool:
        return bool(self.method) and self.id is not None

    @property
    def is_response(self) -> bool:
        return not self.method and self.id is not None

    @property
    def stateless_version(self) -> str:
        """The protocol version that the message itself names; empty in the handshake era."""
        meta = self.params.get("_meta")
        version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
        return version if isinstance(version, str) else ""


class HubMessage:
    """One message of the hub, which writes `jsonrpc` first, then `id` or `method`."""

    __slots__ = ("data", "id", "ids", "is_response", "method", "_at")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.id: str | None = None
        self.method = ""
        self.is_response = False
        self.ids: list[str] = []
        """The ids of a batch of responses."""
        self._at = 0
        if data.startswith(_RESPONSE):
            end = _value_end(data, len(_RESPONSE))
            raw = data[len(_RESPONSE) : end]
            self.id = _same_spelling(raw)
            rest = data[end : end + 10]
            self.is_response = rest.startswith((b',"result":', b',"error":'))
            self._at = end
            if not self.is_response:
                self.method = _quoted_at(data, end + len(b',"method":'))
        elif data.startswith(_NOTIFICATION):
            self.method = _quoted_at(data, len(_NOTIFICATION) - 1)
        elif data.startswith(b"["):
            try:
                parts = loads(data)
            except ValueError:
                return
            self.is_response = True
            known = [part.get("id") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
            self.ids = [to_json(each) for each in known if isinstance(each, (int, str))]

    @property
    def result(self) -> bytes:
        """The result's JSON; empty for an error."""
        start = self.data[self._at : self._at + 10]
        return self.data[self._at + 10 : -1] if start == b',"result":' else b""


def response(identifier: str, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (identifier.encode(), result)


def notification(method: str, params: object = None) -> bytes:
    body: dict[str, object] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        body["params"] = params
    return to_json(body).encode()


def _loads(data: bytes) -> object:
    """None where it cannot be read: the hub says what is wrong with it."""
    try:
        return loads(data)
    except ValueError:
        return None


def _params_of(value: object) -> dict[str, object]:
    params = value.get("params") if isinstance(value, dict) else None
    return params if isinstance(params, dict) else {}


def _scan_request(data: bytes) -> tuple[str, str] | None:
    """Id and method of a request that begins with them, or begins with the method and ends with the id; else None."""
    if data.startswith((_RESPONSE, _SPACED)):
        head, method_key = (_RESPONSE, _METHOD) if data.startswith(_RESPONSE) else (_SPACED, _SPACED_METHOD)
        end = _value_end(data, len(head))
        raw, start = data[len(head) : end], end + len(method_key)
        if data[end:start] != method_key:
            return None
    elif data.startswith(_METHOD_FIRST) and data.endswith(b"}") and (at := data.rfind(_ID_LAST)) > 0:
        raw, start = data[at + len(_ID_LAST) : -1], len(_METHOD_FIRST)
    else:
        return None
    method = data[start : data.find(b'"', start)]
    return (raw.decode(), method.decode()) if _is_plain_id(raw) and method.isascii() and b"\\" not in method else None


def _is_plain_id(raw: bytes) -> bool:
    """Whether an id is a number or text that every encoder writes the same way."""
    if raw.isdigit():
        return True
    inside = raw[1:-1]
    is_quoted = len(raw) > 1 and raw[:1] == raw[-1:] == b'"' and b'"' not in inside and b"\\" not in inside
    return is_quoted and inside.isascii() and inside.decode().isprintable()


def _value_end(data: bytes, at: int) -> int:
    """Where the number or string ends that starts at `at`."""
    return _string_end(data, at) if data[at : at + 1] == b'"' else data.find(b",", at)


def _string_end(data: bytes, at: int) -> int:
    """Where the JSON string ends that starts at `at`: behind its closing quote."""
    end = at + 1
    while True:
        end = data.find(b'"', end) + 1
        if end == 0:
            return len(data)
        slashes = 0
        while data[end - 2 - slashes : end - 1 - slashes] == b"\\":
            slashes += 1
        if slashes % 2 == 0:
            return end


def _quoted_at(data: bytes, at: int) -> str:
    return data[at + 1 : data.find(b'"', at + 1)].decode("utf-8", "replace")


def _same_spelling(raw: bytes) -> str:
    """The id as `to_json` writes it: our encoder leaves letters as they are that this one escapes."""
    if _is_plain_id(raw) or raw[:1] != b'"':
        return raw.decode("ascii", "replace")
    try:
        return to_json(loads(raw))
    except (ValueError, TypeError):
        return raw.decode("utf-8", "replace")
