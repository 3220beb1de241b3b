"""A real gRPC client and server through the proxy, decrypted and in the clear: the reason why HTTP/2 is here."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives import serialization

from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.config import EngineConfig
from dari.proxy.engine.listener import ProxyEngine
from tests.support.proxy_engine import FAST, Memory
from tests.support.proxy_engine_h2 import MODERN, OURS, decrypting

CALL_S = 30


class Service:
    """What a test server does; `gone` is set when a call was cancelled."""

    def __init__(self) -> None:
        self.gone = threading.Event()

    def unary(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        sent = dict(context.invocation_metadata())
        context.set_trailing_metadata((("x-seen", sent.get("x-mine", "nothing")), ("x-raw-bin", bytes(range(256)))))
        return request[::-1]

    def fails(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no, because of ümläut")

    def download(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        for number in range(int(request)):
            yield b"%d" % number

    def upload(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        return b"%d" % sum(map(len, requests))

    def chat(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        for request in requests:
            yield b"you said " + request

    def endless(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        context.add_callback(self.gone.set)
        yield b"first"
        self.gone.wait(CALL_S)

    @property
    def handlers(self) -> dict[str, grpc.RpcMethodHandler]:
        return {
            "Unary": grpc.unary_unary_rpc_method_handler(self.unary),
            "Fails": grpc.unary_unary_rpc_method_handler(self.fails),
            "Download": grpc.unary_stream_rpc_method_handler(self.download),
            "Upload": grpc.stream_unary_rpc_method_handler(self.upload),
            "Chat": grpc.stream_stream_rpc_method_handler(self.chat),
            "Endless": grpc.unary_stream_rpc_method_handler(self.endless),
        }


def credentials(authority: CertificateAuthority) -> grpc.ServerCredentials:
    key = authority._leaf_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain = authority.leaf("localhost").public_bytes(serialization.Encoding.PEM) + authority.pem
    return grpc.ssl_server_credentials([(key, chain)])


@contextmanager
def server(is_secure: bool) -> Iterator[tuple[Service, int]]:
    service = Service()
    made = grpc.server(ThreadPoolExecutor(8))
    made.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("dari.Test", service.handlers),))
    port = (
        made.add_secure_port("localhost:0", credentials(MODERN)) if is_secure else made.add_insecure_port("localhost:0")
    )
    made.start()
    try:
        yield service, port
    finally:
        service.gone.set()
        made.stop(None).wait()


@contextmanager
def channel(engine: ProxyEngine, port: int, is_secure: bool) -> Iterator[grpc.Channel]:
    assert engine.address is not None
    options = [("grpc.http_proxy", f"http://127.0.0.1:{engine.address[1]}"), ("grpc.enable_http_proxy", 1)]
    target = f"localhost:{port}"
    if is_secure:
        made = grpc.secure_channel(target, grpc.ssl_channel_credentials(OURS.pem), options)
    else:
        made = grpc.insecure_channel(target, options)
    with made:
        yield made


@asynccontextmanager
async def calling(
    tmp_path: Path, is_secure: bool, memory: Memory, config: EngineConfig = FAST
) -> AsyncIterator[tuple[Service, grpc.Channel]]:
    async with decrypting(tmp_path, memory, config) as engine:
        with server(is_secure) as (service, port), channel(engine, port, is_secure) as line:
            yield service, line


async def off_loop(work: Any, *arguments: Any) -> Any:
    return await asyncio.to_thread(work, *arguments)


both = pytest.mark.parametrize("is_secure", [True, False], ids=["decrypted", "clear"])


@both
async def test_a_unary_call_brings_its_answer_and_its_trailers(tmp_path: Path, is_secure: bool) -> None:
    memory = Memory()
    async with calling(tmp_path, is_secure, memory) as (_, line):
        call = line.unary_unary("/dari.Test/Unary")
        for _ in range(3):
            answer, about = await off_loop(lambda: call.with_call(b"abc", timeout=CALL_S, metadata=(("x-mine", "me"),)))
            assert answer == b"cba" and about.code() is grpc.StatusCode.OK
            trailers = dict(about.trailing_metadata())
            assert trailers["x-seen"] == "me" and trailers["x-raw-bin"] == bytes(range(256))
        flow = await memory.flow(3)
        assert (flow.method, flow.target, flow.http_version, flow.status) == ("POST", "/dari.Test/Unary", "2", 200)
        assert dict(flow.response_body.trailers or [])[b"grpc-status"] == b"0"
        assert flow.request_body.sample == b"\0\0\0\0\3abc"


@both
async def test_an_error_keeps_its_status_and_message(tmp_path: Path, is_secure: bool) -> None:
    memory = Memory()
    async with calling(tmp_path, is_secure, memory) as (_, line):
        with pytest.raises(grpc.RpcError) as caught:
            await off_loop(lambda: line.unary_unary("/dari.Test/Fails")(b"", timeout=CALL_S))
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert caught.value.details() == "no, because of ümläut"
        with pytest.raises(grpc.RpcError) as caught:
            await off_loop(lambda: line.unary_unary("/dari.Test/Nowhere")(b"", timeout=CALL_S))
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


@both
async def test_streams_flow_in_each_direction(tmp_path: Path, is_secure: bool) -> None:
    async with calling(tmp_path, is_secure, Memory()) as (_, line):
        download = await off_loop(lambda: list(line.unary_stream("/dari.Test/Download")(b"500", timeout=CALL_S)))
        assert download == [b"%d" % number for number in range(500)]
        pieces = [bytes(30_000)] * 40
        upload = await off_loop(lambda: line.stream_unary("/dari.Test/Upload")(iter(pieces), timeout=CALL_S))
        assert upload == b"1200000"


@both
async def test_a_conversation_takes_turns(tmp_path: Path, is_secure: bool) -> None:
    """Each message waits for the answer to the one before: nothing may be held back on the way."""

    def talk(line: grpc.Channel) -> list[bytes]:
        turn = threading.Semaphore(1)

        def words() -> Iterator[bytes]:
            for number in range(20):
                turn.acquire()
                yield b"%d" % number

        heard = []
        for answer in line.stream_stream("/dari.Test/Chat")(words(), timeout=CALL_S):
            heard.append(answer)
            turn.release()
        return heard

    async with calling(tmp_path, is_secure, Memory()) as (_, line):
        assert await off_loop(talk, line) == [b"you said %d" % number for number in range(20)]


@both
async def test_a_conversation_may_be_silent_for_longer_than_any_timeout(tmp_path: Path, is_secure: bool) -> None:
    """A watch waits for hours, and a call has its own deadline: the proxy's are for requests."""
    config = replace(FAST, request_timeout_s=0.05, response_timeout_s=0.05, tick_s=0.01)
    async with calling(tmp_path, is_secure, Memory(), config) as (service, line):

        def talk() -> bytes:
            later = threading.Event()

            def words() -> Iterator[bytes]:
                later.wait(0.5)
                yield b"at last"

            return next(line.stream_stream("/dari.Test/Chat")(words(), timeout=CALL_S))

        def watch() -> list[bytes]:
            call = line.unary_stream("/dari.Test/Endless")(b"", timeout=CALL_S)
            heard = [next(call)]
            service.gone.wait(0.5)
            service.gone.set()
            return heard + list(call)

        assert await off_loop(talk) == b"you said at last"
        assert await off_loop(watch) == [b"first"]


@both
async def test_a_call_that_is_cancelled_is_cancelled_at_the_server(tmp_path: Path, is_secure: bool) -> None:
    memory = Memory()
    async with calling(tmp_path, is_secure, memory) as (service, line):

        def cancel() -> None:
            call = line.unary_stream("/dari.Test/Endless")(b"", timeout=CALL_S)
            assert next(call) == b"first"
            call.cancel()

        await off_loop(cancel)
        assert await off_loop(service.gone.wait, CALL_S)
        flow = await memory.flow()
        assert flow.error is not None and "CANCEL" in flow.error


@both
async def test_a_deadline_reaches_the_server(tmp_path: Path, is_secure: bool) -> None:
    memory = Memory()
    async with calling(tmp_path, is_secure, memory) as (service, line):
        with pytest.raises(grpc.RpcError) as caught:
            await off_loop(lambda: list(line.unary_stream("/dari.Test/Endless")(b"", timeout=0.5)))
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert await off_loop(service.gone.wait, CALL_S)
        flow = await memory.flow()
        assert any(name == b"grpc-timeout" for name, _ in flow.request_headers)
