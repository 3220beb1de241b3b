"""What a gateway costs: one call after another, many at once, and a list with a dead server in it."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from bench import http_load, stdio_load
from bench.bridge.contenders import (
    FASTMCP_RUN,
    FASTMCP_SHARED,
    OURS,
    PROXY,
    PROXY_TUNED,
    SUPERGATEWAY,
    Contender,
    present,
)
from bench.bridge.gateways import Gateway, gateway
from bench.bridge.plan import Plan
from bench.bridge.upstreams import DIRECT, Server, fast_echo, program
from bench.bridge.usage import own_cpu_s, rss_mb
from bench.errors import BenchError
from bench.http_load import CheckedCall
from bench.machine import LOAD_CORE, on_core
from bench.messages import HANDSHAKE, Call
from bench.processes import spawn, stop
from bench.results import Measurement, Target

Measurements = Iterator[Measurement[Contender]]

CONNECTIONS = 32
WARM_UP_S = 1
SERVERS = 10
TOOLS_EACH = 12
MOST_LIST_MS = 50.0
FIRST_LISTS_S = 30.0
INIT_TIMEOUT_MS = 1500


def added(plan: Plan) -> Measurements:
    """One call after another, against the same server asked directly."""
    who = (OURS, PROXY, PROXY_TUNED, FASTMCP_RUN, SUPERGATEWAY)
    targets = (Target(PROXY, "≤", 1 / 3), Target(FASTMCP_RUN, "≤", 1 / 5))
    over = Measurement("gateway: p50 added to direct stdio", "µs", who, targets)
    total = Measurement("gateway: p50, 1 connection", "µs", who, ())
    p99 = Measurement("gateway: p99, 1 connection", "µs", who, ())
    with on_core(LOAD_CORE), _direct(plan) as direct, _echoing(plan, who) as echoing:
        for _, echo in echoing:
            echo.load(1, WARM_UP_S, plan.scratch.path)
        for _ in range(plan.rounds):
            direct_us = direct.p50_us(plan.seconds)
            for one, echo in echoing:
                load = echo.load(1, plan.seconds, plan.scratch.path)
                over.add(one.contender, load.p50_us - direct_us)
                total.add(one.contender, load.p50_us)
                p99.add(one.contender, load.p99_us)
    yield from (over, total, p99)


def rate(plan: Plan) -> Measurements:
    """Many calls at once."""
    who = (OURS, PROXY, PROXY_TUNED, FASTMCP_RUN, FASTMCP_SHARED, SUPERGATEWAY)
    targets = (Target(PROXY, "≥", 25), Target(FASTMCP_SHARED, "≥", 20), Target(SUPERGATEWAY, "≥", 5))
    name = f"gateway: `tools/call`, {CONNECTIONS} connections"
    calls = Measurement(name, "calls/s", who, targets)
    p99 = Measurement(f"{name}: p99", "ms", who, ())
    cpu = Measurement(f"{name}: CPU of the gateway for each", "µs", who, ())
    memory = Measurement(f"{name}: RSS afterwards", "MB", who, ())
    made: Counter[str] = Counter()
    with on_core(LOAD_CORE), _echoing(plan, who) as echoing:
        for _, echo in echoing:
            echo.load(CONNECTIONS, WARM_UP_S, plan.scratch.path)
        for _ in range(plan.rounds):
            for one, echo in echoing:
                before_s = own_cpu_s(one.process.pid)
                load = echo.load(CONNECTIONS, plan.seconds, plan.scratch.path)
                made[one.contender.name] += load.requests
                calls.add(one.contender, load.per_s)
                p99.add(one.contender, load.p99_us / 1000)
                cpu.add(one.contender, (own_cpu_s(one.process.pid) - before_s) * 1e6 / load.requests)
        for one, _ in echoing:
            memory.add(one.contender, rss_mb(one.process.pid))
            if one.contender is OURS:
                one.require_audit(made[OURS.name])
    yield from (calls, p99, cpu, memory)


def lists(plan: Plan) -> Measurements:
    """Ten servers, one of which hangs from its start; only ours is asked."""
    who = (OURS,)
    name = f"`tools/list` of {SERVERS} servers"
    first = Measurement(f"{name}, one hangs today: the first after a restart", "ms", who, (), limit=MOST_LIST_MS)
    p50 = Measurement(f"{name}, one hangs today: p50", "ms", who, (), limit=MOST_LIST_MS)
    p99 = Measurement(f"{name}, one hangs today: p99", "ms", who, ())
    never = Measurement(f"{name}, one never worked: the first after a restart", "ms", who, (), limit=MOST_LIST_MS)
    flag = plan.scratch.path / "hang"
    servers = {f"server{number}": program(fast_echo(TOOLS_EACH)) for number in range(1, SERVERS)}
    mortal = {**servers, "server0": program(fast_echo(TOOLS_EACH, until=flag), initTimeoutMs=INIT_TIMEOUT_MS)}
    for contender in present(who):
        with on_core(LOAD_CORE):
            _fill_memory(plan, contender, mortal, "mortal", SERVERS)
            flag.touch()
            _fill_memory(plan, contender, mortal, "stillborn", SERVERS - 1, stays_s=2 * INIT_TIMEOUT_MS / 1000)
            for _ in range(plan.rounds):
                with gateway(contender, plan.scratch, mortal, "mortal") as one:
                    took_ms, listing = _whole_list(one, SERVERS)
                    load = listing.load(1, plan.seconds, plan.scratch.path)
                    first.add(contender, took_ms)
                    p50.add(contender, load.p50_us / 1000)
                    p99.add(contender, load.p99_us / 1000)
                with gateway(contender, plan.scratch, mortal, "stillborn") as one:
                    never.add(contender, _whole_list(one, SERVERS - 1)[0])
    yield from (first, p50, p99, never)


def _fill_memory(
    plan: Plan, contender: Contender, servers: Mapping[str, Server], home: str, answering: int, stays_s: float = 0.0
) -> None:
    """A run whose lists the next one finds on disk; it `stays` until a server that hangs is given up."""
    with gateway(contender, plan.scratch, servers, home) as one:
        _whole_list(one, answering, within_s=FIRST_LISTS_S)
        time.sleep(stays_s)


def _whole_list(one: Gateway, servers: int, within_s: float = 0.0) -> tuple[float, CheckedCall]:
    """How long `tools/list` took that has the tools of so many servers; the first one has to, unless there is time."""
    request = one.request(Call("tools/list", {}))
    deadline = time.monotonic() + within_s
    while True:
        started = time.perf_counter()
        reply = http_load.exchange(one.contender.name, one.port, request)
        took_ms = (time.perf_counter() - started) * 1000
        found = reply.body.count(b'"name":"server')
        if found == servers * TOOLS_EACH:
            return took_ms, CheckedCall(one.contender.name, one.port, request, reply.size)
        if time.monotonic() > deadline:
            raise BenchError(f"{one.contender.title} lists {found} tools of {servers} servers with {TOOLS_EACH} each")
        time.sleep(0.1)


@contextmanager
def _echoing(plan: Plan, who: tuple[Contender, ...]) -> Iterator[list[tuple[Gateway, CheckedCall]]]:
    """All gateways at once, so that rounds can take turns; one that is not loaded only waits."""
    with ExitStack() as stack:
        running = [stack.enter_context(gateway(one, plan.scratch)) for one in present(who)]
        yield [(one, one.echo()) for one in running]


@contextmanager
def _direct(plan: Plan) -> Iterator[stdio_load.Pipe]:
    process = spawn(DIRECT, fast_echo(), plan.scratch, pipes=True)
    try:
        yield stdio_load.connect(DIRECT, process, HANDSHAKE)
    finally:
        stop(process)
