"""A client that speaks MCP over pipes and does nothing else: what it waits for is the server's time."""

import json
import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.errors import BenchError
from bench.processes import Process, Scratch, stop
from bench.results import Named

REPLY_TIMEOUT_S = 60.0
Json = dict[str, Any]


class Client:
    def __init__(self, who: str, process: Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.who = who
        self.process = process
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        self._rest = b""
        self._id = 0

    def shake_hands(self) -> None:
        about = {"name": "bench", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about})
        self._send({"method": "notifications/initialized"})

    def call(self, tool: str, **arguments: object) -> Json:
        """What the tool answered, as structured content."""
        self.begin(tool, **arguments)
        return self.finish()

    def begin(self, tool: str, **arguments: object) -> None:
        self._id += 1
        self._send({"id": self._id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})

    def finish(self) -> Json:
        result = self._result()
        if result.get("isError"):
            raise BenchError(f"{self.who} refused: {result['content']}")
        content: Json = result.get("structuredContent") or {}
        return content

    def ask(self, method: str, params: Json) -> Json:
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        return self._result()

    def _send(self, message: Json) -> None:
        os.write(self._in, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _result(self) -> Json:
        while True:
            line = self._line()
            if b'"id"' not in line:
                continue  # a notification
            reply: Json = json.loads(line)
            if reply.get("id") == self._id and "method" not in reply:
                if "error" in reply:
                    raise BenchError(f"{self.who} answered {reply['error']}")
                result: Json = reply["result"]
                return result

    def _line(self) -> bytes:
        while b"\n" not in self._rest:
            if not select.select([self._out], [], [], REPLY_TIMEOUT_S)[0]:
                raise BenchError(f"{self.who} did not answer within {REPLY_TIMEOUT_S:g} s")
            data = os.read(self._out, 65_536)
            if not data:
                raise BenchError(f"{self.who} closed its output")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line


@contextmanager
def client(contender: Named, command: list[str], env: dict[str, str], scratch: Scratch) -> Iterator[Client]:
    """A server on pipes, with its handshake done."""
    with scratch.log(contender).open("ab") as log:
        process = subprocess.Popen(
            command,
            env=env,
            cwd=scratch.path,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    try:
        speaking = Client(contender.title, process)
        speaking.shake_hands()
        yield speaking
    finally:
        stop(process)
