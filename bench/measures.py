"""What is measured, between whom, and the targets of the project for it."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from bench import audit, cold, http_load, stdio_load
from bench.contenders import ASGI, FASTMCP, OURS, SDK, Contender, present
from bench.drivers.run import ClientRun, run_client
from bench.messages import ECHO, ERAS, HANDSHAKE, LIST, Call, Era
from bench.processes import Scratch, http_server, rss_mb, stdio_server
from bench.results import Measurement, Target, interleave

IN_FLIGHT = 32
WARM_UP_S = 1


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int
    seconds: int
    cold_starts: int
    scratch: Scratch


def call_rate(plan: Plan) -> Iterator[Measurement[Contender]]:
    for era in ERAS:
        targets = (Target(SDK, "≥", 10), Target(FASTMCP, "≥", 20), Target(ASGI, "≥", 1.2))
        measurement = Measurement(
            f"`tools/call` echo, HTTP, {IN_FLIGHT} connections, {era}",
            "calls/s",
            (OURS, SDK, FASTMCP, ASGI),
            targets,
        )
        yield _over_http(plan, measurement, ECHO, era, IN_FLIGHT)


def call_latency(plan: Plan) -> Iterator[Measurement[Contender]]:
    for era in ERAS:
        measurement = Measurement(
            f"`tools/call` echo, HTTP, 1 connection, p50, {era}",
            "µs",
            (OURS, SDK, ASGI),
            (Target(SDK, "≤", 0.4),),
        )
        yield _over_http(plan, measurement, ECHO, era, connections=1)


def list_rate(plan: Plan) -> Iterator[Measurement[Contender]]:
    for era in ERAS:
        name = f"`tools/list` of {LIST.expected_tools} tools, HTTP, {IN_FLIGHT} connections, {era}"
        measurement = Measurement(name, "calls/s", (OURS, SDK), (Target(SDK, "≥", 25),))
        yield _over_http(plan, measurement, LIST, era, IN_FLIGHT)


def stdio(plan: Plan) -> Iterator[Measurement[Contender]]:
    for era in ERAS:
        p50 = Measurement(f"`tools/call` echo, stdio, p50, {era}", "µs", (OURS, SDK), (Target(SDK, "≤", 0.25),))
        name = f"`tools/call` echo, stdio, {IN_FLIGHT} in flight, {era}"
        rate = Measurement(name, "calls/s", (OURS, SDK), (Target(SDK, "≥", 20),))
        with ExitStack() as stack:
            pipes = []
            for contender in present(p50.contenders):
                process = stack.enter_context(stdio_server(contender, plan.scratch))
                pipe = stdio_load.connect(contender, process, era)
                pipe.calls_per_s(IN_FLIGHT, WARM_UP_S)
                pipes.append((contender, pipe))
            for _ in range(plan.rounds):
                for contender, pipe in pipes:
                    p50.add(contender, pipe.p50_us(plan.seconds))
                    rate.add(contender, pipe.calls_per_s(IN_FLIGHT, plan.seconds))
        yield p50
        yield rate


def cold_start(plan: Plan) -> Iterator[Measurement[Contender]]:
    measurement = Measurement(
        "cold start: spawn to the first `initialize` reply, stdio",
        "ms",
        (OURS, SDK, FASTMCP),
        (Target(SDK, "≤", 0.2),),
    )
    running = [(contender, _cold_starter(contender, plan.scratch)) for contender in present(measurement.contenders)]
    for _, start in running:
        start()  # fills the page cache and compiles bytecode
    yield interleave(measurement, plan.cold_starts, running)
    hub = cold.HubStarts.open(plan.scratch)
    try:
        for title, most, start_hub in cold.HUB_STARTS:
            name = f"`dari mcp`: spawn to the first `initialize` reply, {title}"
            measurement = Measurement(name, "ms", (OURS, SDK), (Target(SDK, "≤", most),))
            running = [(SDK, _cold_starter(SDK, plan.scratch))] if not SDK.missing else []
            running.append((OURS, partial(start_hub, hub)))
            for _, start in running:
                start()
            yield interleave(measurement, plan.cold_starts, running)
    finally:
        hub.close()


def memory(plan: Plan) -> Iterator[Measurement[Contender]]:
    http = Measurement("RSS after load, HTTP", "MB", (OURS, SDK, FASTMCP, ASGI), (Target(SDK, "≤", 0.5),))
    for contender in present(http.contenders):
        with http_server(contender, plan.scratch, tools=1) as (port, process):
            echo = http_load.prepare(contender, port, ECHO, HANDSHAKE)
            echo.load(IN_FLIGHT, plan.seconds, plan.scratch.path)
            http.add(contender, rss_mb(process))
    yield http
    pipe = Measurement("RSS after load, stdio", "MB", (OURS, SDK), (Target(SDK, "≤", 0.5),))
    for contender in present(pipe.contenders):
        with stdio_server(contender, plan.scratch) as process:
            stdio_load.connect(contender, process, HANDSHAKE).calls_per_s(IN_FLIGHT, plan.seconds)
            pipe.add(contender, rss_mb(process))
    yield pipe


def client_rate(plan: Plan) -> Iterator[Measurement[Contender]]:
    """Both clients against our server; until that exists, the SDK's client shows that the step works."""
    server = SDK if OURS.missing else OURS
    for transport, in_flight in itertools.product(("stdio", "http"), (1, IN_FLIGHT)):
        name = f"client: `tools/call` echo of {server.title}, {transport}, {in_flight} in flight"
        measurement = Measurement(name, "calls/s", (OURS, SDK), (Target(SDK, "≥", 4),))
        with ExitStack() as stack:
            port = 0
            if transport == "http":
                port, _ = stack.enter_context(http_server(server, plan.scratch, tools=1))
            running = [
                (client, _client(ClientRun(client, server, transport, port, in_flight, plan.seconds), plan.scratch))
                for client in measurement.contenders
                if not client.client_missing
            ]
            yield interleave(measurement, plan.rounds, running)


def audit_cost(plan: Plan) -> Iterator[Measurement[Contender]]:
    return audit.measure(plan.rounds, plan.seconds)


MEASURES: dict[str, Callable[[Plan], Iterator[Measurement[Contender]]]] = {
    "call": call_rate,
    "latency": call_latency,
    "list": list_rate,
    "stdio": stdio,
    "start": cold_start,
    "memory": memory,
    "client": client_rate,
    "audit": audit_cost,
}


def _over_http(
    plan: Plan, measurement: Measurement[Contender], call: Call, era: Era, connections: int
) -> Measurement[Contender]:
    with ExitStack() as stack:
        running = []
        for contender in present(measurement.contenders):
            tools = call.expected_tools or 1
            port, _ = stack.enter_context(http_server(contender, plan.scratch, tools))
            checked = http_load.prepare(contender, port, call, era)
            checked.load(connections, WARM_UP_S, plan.scratch.path)
            running.append((contender, _loader(plan, checked, connections, measurement.unit == "µs")))
        return interleave(measurement, plan.rounds, running)


def _loader(plan: Plan, call: http_load.CheckedCall, connections: int, latency: bool) -> Callable[[], float]:
    def measure() -> float:
        load = call.load(connections, plan.seconds, plan.scratch.path)
        return load.p50_us if latency else load.per_s

    return measure


def _cold_starter(contender: Contender, scratch: Scratch) -> Callable[[], float]:
    return lambda: cold.start_ms(contender, scratch)


def _client(run: ClientRun, scratch: Scratch) -> Callable[[], float]:
    return lambda: run_client(run, scratch)
