"""Clients of one daemon, written by hand and without a loop, so that a module's tests may share them.

socket  the Unix socket, lines of JSON         bridge  crux-mcp-bridge on stdio
http    Streamable HTTP on 127.0.0.1           hub     `dari mcp` on stdio
"""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.crux_processes import Home, new_home

Json = dict[str, Any]
DEADLINE_S = 30.0
BIN = Path(sys.executable).parent


class McpConnection:
    """One session: questions in order, notifications kept in `notes`, a person's answers from `answer`."""

    def __init__(self) -> None:
        self.notes: list[Json] = []
        self.questions: list[Json] = []
        self.late: list[Json] = []
        """Replies to requests that were only told."""
        self.answer: Any = None
        self._count = 0

    def exchange(self, message: Json) -> Json:
        """Send a request, answer what comes in between, return its reply."""
        raise NotImplementedError

    def tell(self, message: Json) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def start(self, version: str = "2025-11-25", **capabilities: Any) -> Json:
        opened = self.ask(
            "initialize",
            protocolVersion=version,
            capabilities=capabilities,
            clientInfo={"name": "test", "version": "1"},
        )
        self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return opened

    def ask(self, method: str, **params: Any) -> Json:
        self._count += 1
        return self.exchange({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})

    def result(self, tool: str, /, **arguments: Any) -> Json:
        """All of a tool's result: content, structuredContent, isError."""
        reply = self.ask("tools/call", name=tool, arguments=arguments)
        assert "result" in reply, reply
        return dict(reply["result"])

    def call(self, tool: str, /, **arguments: Any) -> Json:
        """The structured result of a call that has to work."""
        result = self.result(tool, **arguments)
        assert not result.get("isError"), result
        return dict(result["structuredContent"])

    def fails(self, tool: str, /, **arguments: Any) -> Json:
        """The error of a call that has to fail."""
        result = self.result(tool, **arguments)
        assert result.get("isError"), result
        return dict(result["_meta"]["dari/error"])

    def _heard(self, message: Json) -> None:
        if "method" not in message:
            self.late.append(message)
        elif "id" in message:
            self.questions.append(message)
            self.tell({"jsonrpc": "2.0", "id": message["id"], "result": self.answer})
        else:
            self.notes.append(message)


class LineConnection(McpConnection):
    """Lines of JSON on two descriptors."""

    def __init__(self, source: int, sink: int) -> None:
        super().__init__()
        self._source, self._sink = source, sink
        self._rest = bytearray()
        self._ready: list[Json] = []

    def exchange(self, message: Json) -> Json:
        self.tell(message)
        while True:
            heard = self.receive()
            if heard.get("id") == message["id"] and "method" not in heard:
                return heard
            self._heard(heard)

    def tell(self, message: Json) -> None:
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            data = data[os.write(self._sink, data) :]

    def receive(self) -> Json:
        """The next message."""
        deadline = time.monotonic() + DEADLINE_S
        while not self._ready:
            assert select.select([self._source], [], [], max(0.0, deadline - time.monotonic()))[0], "no answer"
            data = os.read(self._source, 1 << 20)
            assert data, "the server closed the connection"
            *lines, rest = (bytes(self._rest) + data).split(b"\n") if b"\n" in data else (self._rest + data,)
            self._rest = bytearray(rest)
            self._ready += [json.loads(line) for line in lines if line.strip()]
        return self._ready.pop(0)

    def noted(self, method: str) -> Json:
        """The next notification of this kind, also one that came before."""
        while True:
            for note in self.notes:
                if note["method"] == method:
                    self.notes.remove(note)
                    return note
            self._heard(self.receive())


class SocketConnection(LineConnection):
    def __init__(self, path: Path) -> None:
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(str(path))
        super().__init__(self._line.fileno(), self._line.fileno())

    def close(self) -> None:
        self._line.close()


class ProcessConnection(LineConnection):
    """A server that a client starts and speaks to on stdio."""

    def __init__(self, words: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        assert self.process.stdin and self.process.stdout
        super().__init__(self.process.stdout.fileno(), self.process.stdin.fileno())

    def close(self) -> None:
        """As a client ends its server: its input first."""
        self.end()

    def end(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, errors.decode()


class HttpConnection(McpConnection):
    """Streamable HTTP: every request is a POST, an answer is JSON or a stream that ends with it."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__()
        self.url, self.token = url, token
        self._session = ""
        self._connection = self._connect()

    def exchange(self, message: Json) -> Json:
        reply = self._post(self._connection, message)
        if session := reply.getheader("Mcp-Session-Id"):
            self._session = session
        if not reply.getheader("Content-Type", "").startswith("text/event-stream"):
            return dict(json.loads(reply.read()))
        answer: Json = {}
        while line := reply.readline():
            if line.startswith(b"data: {"):
                heard = json.loads(line[6:])
                if heard.get("id") == message["id"] and "method" not in heard:
                    answer = heard
                else:
                    self._heard(heard)
        return answer

    def tell(self, message: Json) -> None:
        self.status(message)

    def status(self, message: Json) -> int:
        """Of a POST on a connection of its own: ours may be waiting for the answer to this."""
        connection = self._connect()
        try:
            reply = self._post(connection, message)
            reply.read()
            return reply.status
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=DEADLINE_S)

    def _post(self, connection: http.client.HTTPConnection, message: Json) -> http.client.HTTPResponse:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self.token}",
        }
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        connection.request("POST", urlsplit(self.url).path, json.dumps(message).encode(), headers)
        return connection.getresponse()

    def close(self) -> None:
        self._connection.close()


class UnixHttpDoor(HttpConnection):
    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__("http://localhost/mcp", "")

    def _connect(self) -> http.client.HTTPConnection:
        connection = super()._connect()
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(DEADLINE_S)
        connection.sock.connect(str(self._path))
        return connection


class Terminal:
    """A home with its daemon."""

    def __init__(self, home: Home, process: subprocess.Popen[bytes], url: str) -> None:
        self.home, self.process, self.url = home, process, url

    @property
    def path(self) -> Path:
        return self.home.path

    @property
    def token(self) -> str:
        return self.home.place.http_token.read_text().strip()

    def connection(self, name: str) -> McpConnection:
        """Not started yet."""
        if name == "socket":
            return SocketConnection(self.home.place.mcp_socket)
        if name == "http":
            return HttpConnection(self.url, self.token)
        if name == "http on unix":
            return UnixHttpDoor(self.home.place.mcp_socket)
        if name == "bridge":
            return ProcessConnection([str(BIN / "crux-mcp-bridge"), "--socket", "~/.crux/mcp.sock"], self.home.env)
        return ProcessConnection([str(BIN / "dari"), "mcp"], self.home.env)

    @contextmanager
    def client(self, name: str = "socket", answer: Any = None, version: str = "2025-11-25") -> Iterator[Any]:
        """A session; with an answer, one that can ask a person."""
        connection = self.connection(name)
        try:
            connection.answer = answer
            connection.start(version, **({} if answer is None else {"elicitation": {}}))
            yield connection
        finally:
            connection.close()


NO_WAIT = '[mcp.security]\napproval_wait_ms = 0\nelicitation_clients = ["test"]\n'


@contextmanager
def terminal(config: str = NO_WAIT) -> Iterator[Terminal]:
    """`cruxd` with HTTP on a port of its own and without a limit of calls, in a home of its own."""
    with new_home() as home:
        (home.path / ".bashrc").write_text("PS1='$ '\n")
        settings = home.path / ".config" / "crux" / "crux.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(config)
        settings.chmod(0o600)
        process = subprocess.Popen(
            [str(BIN / "cruxd"), "serve", "--http", "0", "--rate", "0"],
            env=home.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            seen = b""
            while line := process.stderr.readline():
                seen += line
                if found := re.search(rb"event=serving mcp=\S+ url=(\S*)", line):
                    break
            else:
                raise AssertionError(f"cruxd did not start:\n{seen.decode()}")
            yield Terminal(home, process, found[1].decode())
        finally:
            process.terminate()
            process.communicate(timeout=DEADLINE_S)
