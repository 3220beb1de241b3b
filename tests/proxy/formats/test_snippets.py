"""Every snippet is run, and the server tells what arrived."""

from __future__ import annotations

import base64
import gzip
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tempfile import NamedTemporaryFile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.errors import Conflict
from dari.proxy.flow import Flow, Headers
from dari.proxy.formats import snippets
from dari.text.redact import REVEALED
from tests.support.flows import SECRET, Hiding, flow, tunnel


class Handler(BaseHTTPRequestHandler):
    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, self.headers, body))  # type: ignore[attr-defined]
        self.send_response(418)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PURGE = handle_any

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadingHTTPServer]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def curl(text: str) -> None:
    with NamedTemporaryFile("w", suffix=".sh") as script:  # a long one is no argument for `sh -c`
        script.write(text)
        script.flush()
        subprocess.run(["sh", script.name], check=True, capture_output=True, timeout=30)


def httpx(text: str) -> None:
    # The mcp package brings httpx under another name; the interface is the same.
    run_python("import sys, httpx2\nsys.modules['httpx'] = httpx2\n" + text)


def run_python(text: str) -> None:
    done = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and done.stdout.startswith("418"), done.stderr


RUN = {
    "curl": lambda one: curl(snippets.curl(one, redactor=REVEALED)),
    "httpx": lambda one: httpx(snippets.python(one, client="httpx", redactor=REVEALED)),
    "urllib": lambda one: run_python(snippets.python(one, client="urllib", redactor=REVEALED)),
}


def sent(server: ThreadingHTTPServer, how: str, one: Flow) -> tuple[str, str, Any, bytes]:
    RUN[how](one)
    return server.seen.pop()  # type: ignore[attr-defined, no-any-return]


def url(server: ThreadingHTTPServer, path: str = "/") -> str:
    return f"http://127.0.0.1:{server.server_port}{path}"


BODIES = {
    "none": b"",
    "quotes": b"""it's "quoted" `id` $HOME \\ !""",
    "lines": b"one\ntwo\r\n\nthree\n",
    "at sign": b"@/etc/passwd",
    "unicode": "žluťoučký 🐎".encode(),
    "binary": bytes(range(256)),
    "nul": b"a\0b",
    "long": b"x" * 200_000,
}


@pytest.mark.parametrize("how", RUN)
@pytest.mark.parametrize("name", BODIES)
def test_the_body_arrives_as_it_was(server: ThreadingHTTPServer, how: str, name: str) -> None:
    data = BODIES[name]
    head: Headers = [(b"Content-Type", b"application/x-thing")]
    one = flow(1, url(server), "POST", request=data, request_headers=head)
    one.request_body.sample = data
    method, _, headers, body = sent(server, how, one)
    assert (method, body) == ("POST", data) and headers["Content-Type"] == "application/x-thing"


@pytest.mark.parametrize("how", RUN)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "PURGE"])
def test_the_method_arrives_as_it_was(server: ThreadingHTTPServer, how: str, method: str) -> None:
    assert sent(server, how, flow(1, url(server), method))[0] == method


@pytest.mark.parametrize("how", RUN)
def test_the_url_arrives_as_it_was(server: ThreadingHTTPServer, how: str) -> None:
    path = "/a/b[1]{x}?q='%20$HOME&r=`id`&s=%22;--data"
    arrived = sent(server, how, flow(1, url(server, path)))[1]
    assert (
        arrived.replace("%27", "'")
        .replace("%60", "`")
        .replace("%5B", "[")
        .replace("%5D", "]")
        .replace("%7B", "{")
        .replace("%7D", "}")
        == path
    )


@pytest.mark.parametrize("how", RUN)
def test_headers_arrive_with_quotes_and_without_the_connections_own(server: ThreadingHTTPServer, how: str) -> None:
    block: Headers = [
        (b"Host", b"virtual.test"),
        (b"User-Agent", b'it\'s "me" $HOME'),
        (b"X-Empty", b""),
        (b"Cookie", b"a=1; b='2'"),
        (b"Connection", b"X-Hop"),
        (b"X-Hop", b"1"),
        (b"Accept-Encoding", b"gzip"),
    ]
    _, _, headers, _ = sent(server, how, flow(1, url(server), request_headers=block))
    assert headers["Host"] == "virtual.test" and headers["User-Agent"] == 'it\'s "me" $HOME'
    assert headers["X-Empty"] == "" and headers["Cookie"] == "a=1; b='2'"
    assert headers["X-Hop"] is None and headers["Accept-Encoding"] == "gzip"


def test_curl_adds_nothing_that_was_not_there(server: ThreadingHTTPServer) -> None:
    one = flow(1, url(server), "POST", request=b"x", request_headers=[(b"X-Only", b"1")])
    _, _, headers, _ = sent(server, "curl", one)
    assert {name.lower() for name in headers} == {"host", "x-only", "content-length"}


@pytest.mark.parametrize("path", ["/a/../b", "/./x"])
def test_curl_does_not_tidy_up_the_path(server: ThreadingHTTPServer, path: str) -> None:
    assert sent(server, "curl", flow(1, url(server, path)))[1] == path


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
def test_any_text_is_one_word_for_the_shell(text: str) -> None:
    done = subprocess.run(["sh", "-c", f"printf %s {snippets.quote(text)}"], capture_output=True, check=True)
    assert done.stdout == text.encode()


def test_secrets_are_hidden_and_a_note_says_so_unless_revealed() -> None:
    head: Headers = [(b"Authorization", f"Bearer {SECRET}".encode()), (b"Content-Type", b"application/json")]
    one = flow(1, f"http://a.test/?key={SECRET}", "POST", request=f'{{"p":"{SECRET}"}}'.encode(), request_headers=head)
    for shown in (snippets.curl(one, redactor=Hiding()), snippets.python(one, redactor=Hiding())):
        assert SECRET not in shown and shown.startswith("# secrets")
        assert shown.count("<redacted>") == 3
    revealed = snippets.curl(one, redactor=REVEALED)
    assert SECRET in revealed and not revealed.startswith("#")


PICTURE = b"\x89PNG\r\n\x1a\n\0\0\xff\xfe"
PART = b"--x\r\nContent-Disposition: form-data; name="
FORM = PART + b'"password"\r\n\r\nopen-sesame\r\n' + PART + b'"f"\r\n\r\n' + PICTURE + b"\r\n--x--\r\n"


@pytest.mark.parametrize(
    ("mime", "data"),
    [
        (b"multipart/form-data; boundary=x", FORM),
        (b"application/octet-stream", PICTURE + b'{"password": "open-sesame"}' + PICTURE),
        (b"application/grpc", b"\0\0\0\0\x1bpassword=open-sesame"),
    ],
)
def test_a_secret_beside_binary_data_is_hidden_and_the_data_stays(mime: bytes, data: bytes) -> None:
    one = flow(method="POST", request=data, request_headers=[(b"Content-Type", mime)])
    packed = flow(
        method="POST",
        request=gzip.compress(data),
        request_headers=[(b"Content-Type", mime), (b"Content-Encoding", b"gzip")],
    )
    for each in (one, packed):
        shown = snippets.curl(each)
        (sent,) = re.findall("printf %s '([^']*)'", shown)
        assert base64.b64decode(sent) == re.sub(rb"open-sesame", b"<redacted>", data)
        assert "secrets in the body are hidden" in shown and "content-encoding" not in shown.lower()
        assert "open-sesame" not in snippets.python(each)
        assert snippets.curl(each, redactor=REVEALED).startswith("printf")


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        (
            b"gzip, gzip, gzip, gzip",
            gzip.compress(gzip.compress(gzip.compress(gzip.compress(b"password=open-sesame")))),
        ),
        (b"gzip, unheard-of", gzip.compress(b"password=open-sesame")),
        (b"gzip", b"password=open-sesame"),
        (b"", "password=open-sesame".encode("utf-16-le")),
    ],
    ids=["packed too often", "unknown coding", "not packed", "UTF-16"],
)
def test_a_body_in_which_secrets_cannot_be_looked_for_is_left_out_with_a_note(coding: bytes, data: bytes) -> None:
    head: Headers = [(b"Content-Type", b"text/plain"), (b"Content-Encoding", coding), (b"Content-Length", b"9")]
    shown = snippets.curl(flow(method="POST", request=data, request_headers=head))
    assert "the body is left out: " in shown and shown.endswith("--data-raw ''")


def test_a_body_that_was_not_kept_whole_is_noted() -> None:
    one = flow(1, method="POST", request=b"x" * 100_000)
    assert snippets.curl(one, redactor=REVEALED).startswith("# 16384 of 100000 bytes of the body were kept\n")


def test_a_tunnel_has_no_request_to_copy() -> None:
    with pytest.raises(Conflict):
        snippets.curl(tunnel(1))


def test_curl_sends_the_length_of_a_body_that_was_empty(server: ThreadingHTTPServer) -> None:
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    one = flow(url=url, method="POST", request_headers=[(b"Host", b"x"), (b"Content-Length", b"0")])
    curl(snippets.curl(one))
    method, _, head, body = server.seen[-1]  # type: ignore[attr-defined]
    assert (method, head["Content-Length"], head["Content-Type"], body) == ("POST", "0", None, b"")
