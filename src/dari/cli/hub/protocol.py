"""The protocol of the hub's socket, and what a client needs. Standard library only, and little of that: every command
of `crewx mcp remote` imports this before it can say a word.

A client connects to `door.sock`, reads `door.token` beside it and sends one line of JSON:

    {"v": 1, "token": …, "purpose": "cli" | "mcp" | "finish", "version": …, "package": …,
     "program": "crewx mcp remote", "argv": […], "cwd": …, "env": {…}, "stays": false,
     "tty": {"stdin": bool, "stdout": bool, "stderr": bool, "columns": int}, "options": {…}}

Everything after it is frames: one byte of kind, four of length (big-endian), the payload. The first answer is BEGIN
(payload: the pid of the host, in decimal) or REFUSED (JSON: code, message, hint). Nothing has happened before BEGIN,
so a client whose connection ends without it may try again.

    cli      daemon to client: OUT and ERR (bytes for stdout and stderr), WANT (send me stdin), ASK (one byte, 1 when
             the answer is secret, then the prompt), EXIT (one byte: the code; the last frame)
             client to daemon: IN (stdin, in pieces), IN_END, ANSWER (a line of the person; empty at the end of input),
             CANCEL (Ctrl-C: the command is cancelled, its EXIT follows)
             A client that goes away cancels its command.
    mcp      after BEGIN the connection speaks MCP, one message a line, to a server made for the caller's cwd and
             environment; `options` are those of `dari mcp`
    finish   the host ends as after SIGTERM, once running commands have ended or their grace is over. The connection
             stays open until the process has: its end is the news. `v`, `version` and `package` may be any.

`version` and `package` (the folder of the client's `dari`) must be the host's own; else REFUSED with the code `skew`.
"""

import os

try:
    from _json import encode_basestring_ascii as _quoted
except ImportError:  # an interpreter without CPython's accelerators
    from json.encoder import py_encode_basestring_ascii as _quoted

PROTOCOL_VERSION = 1
SOCKET_NAME = "door.sock"
TOKEN_NAME = "door.token"

BEGIN = b"b"
REFUSED = b"!"
OUT = b"o"
ERR = b"e"
WANT = b"w"
ASK = b"a"
EXIT = b"x"
IN = b"i"
IN_END = b"z"
ANSWER = b"l"
CANCEL = b"c"

CLOSING = "dari/closing"
"""The last notification of a hub that was asked to end: the client should not start another one."""

HEADER_BYTES = 5
MAX_HANDSHAKE_BYTES = 16 * 1024 * 1024
"""Arguments and environment have 2 MB as a rule (a quarter of the stack limit), and an escape has six bytes."""
MAX_FRAME_BYTES = 1024 * 1024
"""The longest frame a client may send."""

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def encode_frame(kind: bytes, payload: bytes = b"") -> bytes:
    return kind + len(payload).to_bytes(4, "big") + payload


def to_json(value: object) -> str:
    """JSON of plain data; `import json` would cost as much as the rest of a call."""
    if isinstance(value, str):
        return _quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ",".join([f"{_quoted(str(name))}:{to_json(each)}" for name, each in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([to_json(each) for each in value]) + "]"
    raise TypeError(f"a handshake cannot hold a {type(value).__name__}")


def encode_handshake(purpose: str, token: str, version: str, **more: object) -> bytes:
    """The first line. Bytes outside UTF-8 travel as lone surrogates."""
    said = {"v": PROTOCOL_VERSION, "token": token, "purpose": purpose, "version": version, "package": PACKAGE, **more}
    return to_json(said).encode("ascii") + b"\n"


def read_token(run_dir: str) -> str:
    """Read it after connecting: then it is the token of the host that listens."""
    descriptor = os.open(f"{run_dir}/{TOKEN_NAME}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 256).decode("ascii", "replace").strip()
    finally:
        os.close(descriptor)
