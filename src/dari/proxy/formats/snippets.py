"""A request to paste: into a shell as curl, into Python as httpx or urllib. What it sends is what was seen."""

from __future__ import annotations

import base64
from typing import Literal

from dari.errors import Conflict
from dari.proxy import content_coding, headers
from dari.proxy.flow import Flow, Headers
from dari.proxy.query import views
from dari.proxy.recording.bodies import BodyStore
from dari.proxy.replay import sent_headers
from dari.text.redact import HIDING, REVEALED, Redactor

# The kernel takes 128 KiB in one argument (MAX_ARG_STRLEN).
_ARGUMENT_BYTES = 100_000


def curl(flow: Flow, bodies: BodyStore | None = None, redactor: Redactor = HIDING) -> str:
    """A command for a POSIX shell."""
    request = _Request(flow, bodies, redactor)
    names = {name.lower() for name, _ in request.headers}
    words = ["curl", *_method_words(request), quote(request.url)]
    if any(character in request.url for character in "[]{}"):
        words.insert(1, "--globoff")
    if "/." in request.url:
        words.insert(1, "--path-as-is")
    for name, value in request.headers:
        line = f"{headers.text(name)}: {headers.text(value)}" if value.strip() else f"{headers.text(name)};"
        words.append(f"-H {quote(line)}")
    # curl adds these by itself; the request did not have them.
    unwanted = [b"user-agent", b"accept", *([b"content-type", b"expect"] if request.sends_length else [])]
    words += [f"-H {quote(name.decode().title() + ':')}" for name in unwanted if name not in names]
    if b"accept-encoding" in names:
        words.append("--compressed")
    before = ""
    if request.body:
        text = request.text
        if text is not None and "\0" not in text and len(request.body) <= _ARGUMENT_BYTES:
            words.append(f"--data-raw {quote(text)}")
        else:
            # printf is a builtin: no limit on its arguments, and base64 keeps every byte.
            before = f"printf %s {quote(base64.b64encode(request.body).decode())} | base64 -d | "
            words.append("--data-binary @-")
    elif request.sends_length:
        words.append("--data-raw ''")
    return _notes(request.notes) + before + " \\\n  ".join(words)


def python(
    flow: Flow,
    bodies: BodyStore | None = None,
    redactor: Redactor = HIDING,
    client: Literal["httpx", "urllib"] = "httpx",
) -> str:
    """A script that sends the request and prints the answer."""
    request = _Request(flow, bodies, redactor)
    return _notes(request.notes) + (_httpx(request) if client == "httpx" else _urllib(request))


def quote(text: str) -> str:
    """One word for a POSIX shell: everything but a quote is itself inside quotes, line breaks included."""
    return "'" + text.replace("'", "'\\''") + "'"


class _Request:
    """What both kinds of snippet send."""

    def __init__(self, flow: Flow, bodies: BodyStore | None, redactor: Redactor) -> None:
        if flow.method == "CONNECT" or flow.is_encrypted:
            raise Conflict(f"flow {flow.id} is a tunnel: its content was not seen", "add an allow rule for its host")
        self.method = flow.method
        self.url = redactor.url(flow.url)
        sent = sent_headers(flow)
        self.headers: Headers = list(redactor.headers(sent))
        is_hidden = self.url != flow.url or self.headers != sent
        host = headers.value(flow.request_headers, b"host")
        if host is not None and host.lower() != flow.authority.lower():
            self.headers.insert(0, (b"Host", host.encode()))
        self.body = views.raw(flow, True, bodies)
        has_length = headers.value(flow.request_headers, b"content-length") is not None
        self.sends_length = bool(self.body) or (has_length and self.method != "HEAD")
        """Of an empty body, too: without it some servers answer a POST with 411."""
        self.notes: list[str] = []
        if not views.is_whole(flow, True, bodies):
            self.notes.append(f"{len(self.body)} of {flow.request_body.size_bytes} bytes of the body were kept")
        if redactor is not REVEALED:
            if self.body:
                self._redact_body(redactor, flow.request_headers)
            if is_hidden:
                self.notes.append("secrets are hidden; put in your own")
        self.text = self._utf8()

    def _redact_body(self, redactor: Redactor, head: Headers) -> None:
        codings = headers.codings(head)
        decoded = content_coding.decode((self.body,), codings) if codings else content_coding.Decoded(self.body)
        content = decoded.data
        found = content_coding.text_of(content, head)
        if found is None:
            safe = views.hide_readable(content, redactor)
            is_searched = not (decoded.problem or decoded.is_cut or views.shows_secret(safe, redactor))
        else:
            shown = redactor.whole_body(found[0], headers.mime(head))
            safe = content if shown == found[0] else shown.encode(found[1], "replace")
            is_searched = bool(content) or decoded.problem is None
        if not is_searched:
            self.body = b""
            self.notes.append(f"the body is left out: {decoded.problem or 'it may hold secrets'}")
        elif safe != content:
            self.body = safe
            self.headers = [(name, value) for name, value in self.headers if name.lower() != b"content-encoding"]
            self.notes.append("secrets in the body are hidden")

    def _utf8(self) -> str | None:
        try:
            return self.body.decode()
        except UnicodeDecodeError:
            return None


def _method_words(request: _Request) -> list[str]:
    if request.method == "HEAD":
        return ["--head"]
    implied = "POST" if request.sends_length else "GET"
    return [] if request.method == implied else [f"-X {quote(request.method)}"]


def _notes(notes: list[str]) -> str:
    return "".join(f"# {note}\n" for note in notes)


def _httpx(request: _Request) -> str:
    lines = ["import httpx", "", "response = httpx.request(", f"    {request.method!r},", f"    {request.url!r},"]
    lines += ["    headers=[", *(f"        ({name!r}, {value!r})," for name, value in request.headers), "    ],"]
    if request.body:
        lines.append(f"    content={request.body!r},")
    return "\n".join([*lines, ")", "print(response.status_code)", "print(response.text)", ""])


def _urllib(request: _Request) -> str:
    # One value per name is all that urllib keeps; equal names are joined, as RFC 9110 allows.
    joined: dict[str, str] = {}
    for name, value in request.headers:
        key, content = name.decode("latin-1").capitalize(), value.decode("latin-1")
        separator = "; " if key == "Cookie" else ", "
        joined[key] = joined[key] + separator + content if key in joined else content
    lines = ["import urllib.error", "import urllib.request", "", "request = urllib.request.Request("]
    lines += [f"    {request.url!r},", f"    method={request.method!r},", "    headers={"]
    lines += [f"        {name!r}: {value!r}," for name, value in joined.items()]
    lines += ["    },", *([f"    data={request.body!r},"] if request.body else []), ")", "try:"]
    lines += ["    response = urllib.request.urlopen(request)", "except urllib.error.HTTPError as error:"]
    lines += ["    response = error", "with response:", "    print(response.status)"]
    return "\n".join([*lines, "    print(response.read().decode(errors='replace'))", ""])
