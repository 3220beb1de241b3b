"""The engine as a whole: start, stop, changes while it runs, who may come in, what it leaves behind."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
import gc
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dari.errors import Conflict, Failed, InvalidInput
from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.config import EngineConfig
from dari.proxy.engine.hooks import Decision, LocalResponse, NoRules
from dari.proxy.engine.listener import ProxyEngine
from dari.proxy.flow import Flow
from tests.proxy.faults.process import many_files
from tests.support.origins.origin import Line, origin
from tests.support.proxy_engine import FAST, Memory, proxy, request, tunnel, wire
from tests.support.waiting import until


async def turns_until(is_so: Callable[[], bool]) -> None:
    """Sockets are closed on later turns of the loop; a leak never is, and runs into the test's deadline."""
    await until(is_so)


class Answering(NoRules):
    def decide(self, flow: Flow) -> Decision:
        return Decision(local=LocalResponse(200, (), b"ruled"))


async def test_rules_change_while_a_connection_lives() -> None:
    async with origin() as there, proxy() as engine, wire(engine) as line:
        assert (await line.get(there.url())).body == b"ok"
        engine.use(rules=Answering())
        assert (await line.get(there.url())).body == b"ruled"
        engine.use(rules=NoRules())
        assert (await line.get(there.url())).body == b"ok"


async def test_settings_change_while_a_connection_lives() -> None:
    async def silent(line: Line) -> None:
        await line.request()
        await line.reader.read()

    async with origin() as there, origin(silent) as mute, proxy() as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 200
        await engine.apply(replace(FAST, response_timeout_s=0.03))
        assert (await line.get(mute.url())).status == 504


async def test_a_new_address_is_bound_and_old_connections_live_on() -> None:
    async with origin() as there, proxy() as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 200
        before = engine.address
        await engine.apply(replace(FAST, host="127.0.0.2"))
        assert engine.address is not None and engine.address[0] == "127.0.0.2"
        assert await line.is_open(there.url())
        async with wire(engine) as fresh:
            assert await fresh.is_open(there.url())
        with pytest.raises(ConnectionRefusedError):
            async with wire(engine, before):
                pass


async def test_an_address_that_is_taken_leaves_the_old_one() -> None:
    async with origin() as there, proxy() as engine:
        before = engine.address
        with pytest.raises(Failed):
            await engine.apply(replace(FAST, port=there.port))
        assert engine.address == before
        async with wire(engine) as line:
            assert await line.is_open(there.url())


async def test_it_starts_once_and_stops_twice() -> None:
    engine = ProxyEngine(FAST)
    await engine.start()
    with pytest.raises(Conflict):
        await engine.start()
    await engine.stop()
    await engine.stop()
    assert not engine.is_running
    await engine.start()
    await engine.stop()


async def test_a_taken_port_fails_and_leaves_nothing_running() -> None:
    async with origin() as there:
        engine = ProxyEngine(EngineConfig(port=there.port))
        with pytest.raises(Failed):
            await engine.start()
        assert not engine.is_running


async def test_stopping_ends_a_waiting_request_and_finishes_its_flow() -> None:
    memory = Memory()
    asked = asyncio.Event()

    async def silent(line: Line) -> None:
        await line.request()
        asked.set()
        await line.reader.read()

    async with origin(silent) as there, proxy(recorder=memory) as engine, wire(engine) as line:
        await line.send(request(there.url()))
        await asked.wait()
        await engine.stop()
        assert len(memory.done) == 1 and memory.done[0].state == "done"


class OnlyFrom:
    def __init__(self, peers: set[str], targets: set[str]) -> None:
        self.peers, self.targets = peers, targets

    def admits(self, peer_ip: str) -> bool:
        return peer_ip in self.peers

    def permits(self, ip: str) -> bool:
        return ip in self.targets


async def test_a_peer_that_is_not_admitted_gets_not_a_byte() -> None:
    async with proxy(gate=OnlyFrom({"10.0.0.1"}, set())) as engine, wire(engine) as line:
        assert await line.rest() == b""
        engine.use(gate=OnlyFrom({"127.0.0.1"}, set()))
        async with wire(engine) as second:
            assert (await second.get("http://proxy.crab/")).status == 503


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_a_target_that_is_not_permitted_is_403_by_address_and_by_name(name: str) -> None:
    async with origin() as there, proxy(gate=OnlyFrom({"127.0.0.1"}, {"8.8.8.8"})) as engine, wire(engine) as line:
        assert (await line.get(f"http://{name}:{there.port}/")).status == 403
        await line.send(f"CONNECT {name}:{there.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert (await line.reply()).status == 403
        assert there.connections == 0


async def test_connections_beyond_the_limit_are_dropped() -> None:
    async with proxy(replace(FAST, max_connections=2)) as engine:
        async with wire(engine) as one, wire(engine) as two, wire(engine) as three:
            assert (await one.get("http://proxy.crab/")).status == 503
            assert (await two.get("http://proxy.crab/")).status == 503
            assert await three.rest() == b""


async def test_the_portal_is_served_under_its_names() -> None:
    authority = CertificateAuthority.generate()
    memory = Memory()
    async with proxy(authority=authority, recorder=memory) as engine, wire(engine) as line:
        for host in ("crab-proxy.local", "crab-proxy.invalid", "proxy.crab"):
            assert (await line.get(f"http://{host}/ca.pem")).body == authority.pem
        assert (await memory.flow(3)).event == "cert_portal"


async def test_a_thousand_connections_leave_nothing_behind() -> None:
    memory = Memory()
    async with origin() as there, proxy(recorder=memory) as engine:

        async def visit(number: int) -> None:
            if number % 10 == 0:
                async with tunnel(engine, there.authority) as line:
                    await line.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                    assert (await line.reply()).status == 200
            else:
                async with wire(engine) as line:
                    assert (await line.get(there.url())).status == 200

        for _ in range(50):
            await visit(1)
        gc.collect()
        files, tasks = len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())
        for start in range(0, 1000, 50):
            await asyncio.gather(*(visit(number) for number in range(start, start + 50)))
        await memory.until(lambda: len(memory.done) >= 1050)
        await turns_until(lambda: not engine.connection_count)
        await engine.apply(FAST)  # closes what waits in the pool
        await turns_until(lambda: len(asyncio.all_tasks()) <= tasks)
        gc.collect()
        await turns_until(lambda: len(os.listdir("/proc/self/fd")) <= files + 2)


async def test_a_thousand_connections_are_held_at_once() -> None:
    with many_files(4000):
        await hold_a_thousand_connections()


async def hold_a_thousand_connections() -> None:
    async with origin() as there, proxy() as engine, wire(engine) as clock:
        lines = [wire(engine) for _ in range(1000)]
        opened = [await line.__aenter__() for line in lines]
        assert (await clock.get(there.url())).status == 200
        assert engine.connection_count == 1001
        for line in opened[::100]:
            assert (await line.get(there.url())).status == 200
        for closing in lines:
            await closing.__aexit__(None, None, None)


async def test_a_request_goes_through_an_upstream_proxy_with_its_password() -> None:
    async with origin() as there, origin() as middle:
        config = replace(FAST, upstream_proxy=f"http://me:p%40ss@127.0.0.1:{middle.port}")
        async with proxy(config) as engine, wire(engine) as line:
            reply = await line.get(there.url("/x"), "Proxy-Authorization: Basic Y2xpZW50")
            assert reply.status == 200 and there.connections == 0
            seen = middle.requests[0]
            assert seen.head.startswith(f"GET {there.url('/x')} HTTP/1.1".encode())
            assert seen.header("proxy-authorization") == "Basic bWU6cEBzcw=="


async def test_a_tunnel_goes_through_an_upstream_proxy() -> None:
    async with origin() as there, proxy() as middle:
        assert middle.address is not None
        config = replace(FAST, upstream_proxy=f"http://127.0.0.1:{middle.address[1]}")
        async with proxy(config) as engine, tunnel(engine, there.authority) as line:
            await line.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert (await line.reply()).body == b"ok"


async def test_https_goes_through_an_upstream_proxy(tmp_path: Path) -> None:
    theirs = CertificateAuthority.generate()
    (tmp_path / "roots.pem").write_bytes(theirs.pem)
    async with origin(tls=theirs.context_for("localhost")) as there, proxy() as middle:
        assert middle.address is not None
        config = replace(
            FAST, upstream_proxy=f"http://127.0.0.1:{middle.address[1]}", ca_file=str(tmp_path / "roots.pem")
        )
        async with proxy(config) as engine, wire(engine) as line:
            assert (await line.get(f"https://localhost:{there.port}/")).body == b"ok"


async def test_an_upstream_proxy_that_refuses_is_502() -> None:
    from tests.support.origins.origin import answering

    refusing = answering(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
    async with origin(refusing) as middle:
        config = replace(FAST, upstream_proxy=f"http://127.0.0.1:{middle.port}")
        async with proxy(config) as engine, wire(engine) as line:
            await line.send(b"CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n")
            reply = await line.reply()
            assert reply.status == 502 and b"407" in reply.body


async def test_the_process_that_asks_is_written_into_its_flow() -> None:
    memory = Memory()
    async with origin() as there, proxy(replace(FAST, finds_process=True), memory) as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 200
        flow = await memory.flow()
        await turns_until(lambda: flow.pid is not None)
        assert (flow.pid, flow.process) == (os.getpid(), Path("/proc/self/comm").read_text().strip())


@pytest.mark.parametrize("url", ["socks4://a:1", "http://", "http://a:99999", "nonsense"])
async def test_a_bad_upstream_proxy_is_refused_and_nothing_changes(url: str) -> None:
    async with origin() as there, proxy() as engine, wire(engine) as line:
        with pytest.raises(InvalidInput):
            await engine.apply(replace(FAST, upstream_proxy=url))
        assert await line.is_open(there.url())


async def test_a_listener_that_dies_is_bound_anew_where_it_was() -> None:
    async with proxy() as engine:
        assert engine.address is not None
        before = engine.address
        server = engine._servers["proxy"]
        for one in server.sockets:
            with socket.socket(fileno=os.dup(one.fileno())) as listening:
                listening.shutdown(socket.SHUT_RDWR)
        engine._tick()
        assert engine._core is not None
        await asyncio.gather(*engine._core._tasks)
        assert engine.address == before
        reader, writer = await asyncio.open_connection(*before)
        writer.write(b"GET http://proxy.crab/ HTTP/1.1\r\nHost: proxy.crab\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 ")
        writer.close()
