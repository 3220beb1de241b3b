"""Exit codes 0 to 4 (design 001 §4), one cause after the other."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from socket import AF_INET, SOCK_STREAM, socket

import pytest

from dari.cli.remote.context import exit_code
from dari.errors import Conflict, Denied, Failed, InvalidInput, NeedsApproval, NotFound, TimedOut, Unavailable
from dari.mcp.client.errors import RemoteError, ServerRefused, SessionExpired, Unauthorized
from tests.support.remote_command import shop
from tests.support.wire import ROOT, demo_process


@pytest.mark.parametrize(
    "error, code",
    [
        (InvalidInput("x"), 1),
        (NotFound("x"), 1),
        (Conflict("x"), 1),
        (Denied("x"), 2),
        (Unauthorized("x"), 2),
        (NeedsApproval("x"), 2),
        (TimedOut("x"), 2),
        (Unavailable("x"), 2),
        (ServerRefused("x", status=500), 2),
        (SessionExpired("x"), 2),
        (RemoteError(-32000, "x"), 3),
        (Failed("x"), 3),
        (RuntimeError("x"), 4),
        (OSError("x"), 4),
    ],
)
def test_every_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert exit_code(error) == code


async def test_0_is_success(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        assert (await run("call-tool", "say", "--text", "x")).code == 0


async def test_1_is_usage_and_configuration(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        for words in ((), ("nonsense",), ("list-tools", "--nonsense"), ("call-tool", "say", "--params", "[]")):
            done = await run(*words)
            assert (done.code, done.out) == (1, "") and done.err


@contextmanager
def answering(status: str, body: str = "") -> Iterator[str]:
    """An HTTP server that has one answer; its address."""
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(int(status))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("status", ["401", "403", "404", "500", "503"])
async def test_2_is_an_http_status_instead_of_an_answer(tmp_path: Path, status: str) -> None:
    async with shop(tmp_path) as run:
        with answering(status) as url:
            done = await run("list-tools", "--endpoint", url, "--timeout", "5000")
        assert (done.code, done.out) == (2, "") and done.err.startswith("error: ")


async def test_2_is_a_server_that_nobody_finds(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        with closing(socket(AF_INET, SOCK_STREAM)) as taken:
            taken.bind(("127.0.0.1", 0))
            refused = f"http://127.0.0.1:{taken.getsockname()[1]}"
            for url in (refused, "http://name.invalid"):
                done = await run("call-tool", "x", "--endpoint", url, "--timeout", "5000")
                assert (done.code, done.out) == (2, "") and "error:" in done.err


async def test_2_is_a_server_that_never_answers(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        with closing(socket(AF_INET, SOCK_STREAM)) as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            assert (await run("list-tools", "--endpoint", url, "--timeout", "200")).code == 2


async def test_2_is_a_call_that_takes_too_long(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        await run("call-tool", "say", "--text", "the server is up now")
        done = await run("call-tool", "hang", "--timeout", "1000")
        assert (done.code, done.out) == (2, "") and "error:" in done.err
        assert (await run("call-tool", "cancelled", "--raw")).json["content"][0]["text"] == "yes"


async def test_2_is_a_server_that_cannot_be_started_and_its_last_words_are_told(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        crash = "import sys; sys.exit('the licence has expired')"
        run.write(
            {"id": "missing", "kind": "stdio", "command": "/nowhere/at/all"},
            {"id": "crash", "kind": "stdio", "command": sys.executable, "args": ["-c", crash]},
        )
        for id, said in (("missing", "/nowhere/at/all"), ("crash", "the licence has expired")):
            done = await run("list-tools", "--server", id)
            assert (done.code, done.out) == (2, "") and said in done.err


async def test_2_is_a_server_that_dies_during_the_call(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "die")
        assert (done.code, done.out) == (2, "") and "error:" in done.err


async def test_2_is_a_wrong_token(tmp_path: Path) -> None:
    async with demo_process(tmp_path) as demo, shop(tmp_path) as run:
        url = f"http://127.0.0.1:{demo.port}"
        done = await run("list-tools", "--endpoint", url, "--key", "wrong-token-wrong-token")
        assert done.code == 2 and "wrong-token-wrong-token" not in done.err


async def test_3_is_a_failure_that_the_tool_reports_with_its_payload(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        friendly = await run("call-tool", "fail")
        assert friendly.code == 3 and friendly.out.startswith("✗ shop/fail (")
        assert "the disk is full" in friendly.out and "reported an error: the disk is full" in friendly.err
        payload = await run("call-tool", "fail", "--json")
        assert payload.code == 3 and payload.json["isError"] is True
        assert payload.json["structuredContent"] == {"free": 0}


async def test_3_is_a_json_rpc_error_told_in_the_servers_words(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "refuse", "--raw")
        assert (done.code, done.out) == (3, "")
        assert '{"error":{"code":-32123,"message":"not today","data":{"hint":"come tomorrow"}}}' in done.err
        assert "not today (JSON-RPC error -32123)" in done.err and "hint: come tomorrow" in done.err


async def test_3_over_http(tmp_path: Path) -> None:
    async with demo_process(tmp_path) as demo, shop(tmp_path) as run:
        run.write(run.http("web", demo.port, demo.token, default=True))
        done = await run("call-tool", "demo_missing", "--json")
        assert done.code == 3 and done.json["isError"] is True


async def test_4_is_anything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shop(tmp_path) as run:
        monkeypatch.setattr(type(run.bridge), "view", lambda *_: 1 / 0)
        done = await run("servers")
        assert (done.code, done.out) == (4, "") and "ZeroDivisionError" in done.err
        assert "Traceback" not in done.err and "Traceback" in (await run("servers", "--log")).err


async def test_4_is_ctrl_c_and_nothing_is_left_running(tmp_path: Path) -> None:
    """In a process of its own, without a daemon: the server is ended too."""
    async with shop(tmp_path) as run:
        run.write(run.entry("shop", default=True))
        script = "import sys; from dari.cli.remote.main import run_here; sys.exit(run_here(sys.argv[1], sys.argv[2:]))"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", script, "dari remote", "call-tool", "hang", "--log"),
            cwd=run.cwd,
            env={**run.environ, "DARI_HOME": str(tmp_path / "dari"), "PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr
        try:
            while b"tools/call hang" not in await process.stderr.readline():
                pass
            process.send_signal(signal.SIGINT)
            out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert (process.returncode, out) == (4, b"") and b"Traceback" not in err
        (start,) = [line for line in run.noted() if line.startswith("start")]
        with pytest.raises(ProcessLookupError):
            os.kill(int(start.split()[1]), 0)
