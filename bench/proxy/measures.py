"""What is measured of the proxies, and the targets of the project for it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench.machine import free_port
from bench.processes import Process, Scratch, spawn, stop, wait_until_listening
from bench.proxy import load, streams, usage
from bench.proxy.contenders import (
    CONTENDERS,
    MITM,
    MITM_STREAMING,
    MOCKTTP,
    OURS,
    PROXYPY,
    Contender,
    Mode,
    Surroundings,
)
from bench.proxy.load import Load, Shape, Way
from bench.proxy.origin import DOWNLOAD_BYTES, JSON_BYTES
from bench.results import Measurement, Target, Unit

PATH = "/api/items"
WARM_UP_S = 1.5
FIRST_ANSWERS_S = 20.0
MOST_GROWTH_MB = 10.0
FORGIVEN = 0.05
"""mockttp answers 500 now and then when each request has a new connection. We are forgiven nothing."""


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int
    seconds: float
    cold_starts: int
    scratch: Scratch
    around: Surroundings


@dataclass(frozen=True, slots=True)
class Running:
    contender: Contender
    port: int
    process: Process

    def load(
        self,
        plan: Plan,
        shape: Shape,
        seconds: float,
        requests: int = 0,
        on_ready: Callable[[], None] | None = None,
    ) -> Load:
        origin = plan.around.origin
        origin_port = origin.plain_port if shape.way == "forward" else origin.tls_port
        forgiven = 0.0 if self.contender is OURS else FORGIVEN
        return load.run(self.contender.title, shape, self.port, origin_port, seconds, requests, forgiven, on_ready)

    def cpu_load(self, plan: Plan, shape: Shape, seconds: float, requests: int = 0) -> tuple[Load, float]:
        """A load, and the CPU seconds that the proxy used from its first request to its end."""
        before_s: list[float] = []
        done = self.load(plan, shape, seconds, requests, lambda: before_s.append(usage.cpu_s(self.process.pid)))
        return done, usage.cpu_s(self.process.pid) - before_s[0]


def plain(plan: Plan) -> Iterator[Measurement[Contender]]:
    targets = (Target(MITM, "≥", 20, aim=25), Target(PROXYPY, "≥", 2.5), Target(MOCKTTP, "≥", 5))
    yield from _rate(plan, "plain HTTP", "plain", _keep_alive("forward", 32), targets)
    yield from _latency(plan, "plain HTTP", "plain", _keep_alive("forward", 1))


def decrypted(plan: Plan) -> Iterator[Measurement[Contender]]:
    targets = (Target(MITM, "≥", 14, aim=17), Target(MOCKTTP, "≥", 3.5))
    yield from _rate(plan, "decrypted HTTPS", "decrypted", _keep_alive("connect", 32), targets)
    yield from _latency(plan, "decrypted HTTPS", "decrypted", _keep_alive("connect", 1))


def new(plan: Plan) -> Iterator[Measurement[Contender]]:
    shape = Shape("connect", PATH, JSON_BYTES, 8, is_new=True)
    name = "new decrypted connection for each request"
    yield from _rate(plan, name, "decrypted", shape, (Target(MITM, "≥", 5),), "connections/s")


def tunnel(plan: Plan) -> Iterator[Measurement[Contender]]:
    yield from _rate(plan, "tunnel", "tunnel", _keep_alive("connect", 32), (Target(MITM, "≥", 3),))


def download(plan: Plan) -> Iterator[Measurement[Contender]]:
    """Without proxy.py: an earlier measurement saw 2 MB/s, and a download would take most of a minute."""
    who = (OURS, MITM, MITM_STREAMING, MOCKTTP)
    name = f"{DOWNLOAD_BYTES >> 20} MB, plain"
    shape = Shape("forward", "/download", DOWNLOAD_BYTES, 1)
    rate = Measurement(name, "MB/s", who, (Target(MITM, "≥", 3),))
    cpu = Measurement(f"{name}: CPU of the proxy", "ms", who, ())
    growth = Measurement(f"{name}: growth of RSS", "MB", who, (), limit=MOST_GROWTH_MB)
    with _all(plan, who, "plain") as running:
        for _ in range(max(plan.rounds, 3)):
            for one in running:
                # Freshly started proxies grow by what they import; one small request has made them do so.
                one.load(plan, _keep_alive("forward", 1), 0.2)
                pid = one.process.pid
                before_mb = usage.rss_mb(pid)
                usage.forget_peak(pid)
                done, cpu_s = one.cpu_load(plan, shape, 30, requests=1)
                rate.add(one.contender, DOWNLOAD_BYTES / 1e6 / (done.p50_us / 1e6))
                cpu.add(one.contender, cpu_s * 1000)
                growth.add(one.contender, max(usage.peak_mb(pid) - before_mb, 0.0))
    yield from (rate, cpu, growth)


def start(plan: Plan) -> Iterator[Measurement[Contender]]:
    cold = Measurement("cold start: exec until it accepts", "ms", CONTENDERS, (Target(MITM, "≤", 1 / 3),))
    idle = Measurement("RSS after a cold start", "MB", CONTENDERS, ())
    for number in range(plan.cold_starts + 1):
        for contender in _present(CONTENDERS):
            took_ms, rss_mb = _start_once(plan, contender)
            if number:  # the first fills the page cache and compiles bytecode
                cold.add(contender, took_ms)
                idle.add(contender, rss_mb)
    yield from (cold, idle)


def streaming(plan: Plan) -> Iterator[Measurement[Contender]]:
    first = Measurement("first of six server-sent events, 250 ms apart", "ms", CONTENDERS, ())
    unread = Measurement("200 MB to a client that does not read: growth of RSS", "MB", CONTENDERS, ())
    with _all(plan, CONTENDERS, "plain") as running:
        for one in running:
            one.load(plan, _keep_alive("forward", 1), 0.2)
            for _ in range(plan.rounds):
                first.add(one.contender, streams.first_event_ms(one.port, plan.around.origin.events_port))
            growth_mb = streams.unread_growth_mb(one.port, plan.around.origin.plain_port, one.process.pid)
            unread.add(one.contender, growth_mb)
    yield from (first, unread)


MEASURES: dict[str, Callable[[Plan], Iterator[Measurement[Contender]]]] = {
    "plain": plain,
    "decrypted": decrypted,
    "new": new,
    "tunnel": tunnel,
    "download": download,
    "start": start,
    "streaming": streaming,
}


def _keep_alive(way: Way, connections: int) -> Shape:
    return Shape(way, PATH, JSON_BYTES, connections)


def _rate(
    plan: Plan, name: str, mode: Mode, shape: Shape, targets: tuple[Target, ...], unit: Unit = "requests/s"
) -> Iterator[Measurement[Contender]]:
    label = f"{name}, {shape.connections} connections"
    rate = Measurement(label, unit, CONTENDERS, targets)
    cpu = Measurement(f"{label}: CPU of the proxy for each", "µs", CONTENDERS, ())
    p99 = Measurement(f"{label}: p99", "ms", CONTENDERS, ())
    with _all(plan, CONTENDERS, mode) as running:
        _warm_up(plan, running, shape)
        for _ in range(plan.rounds):
            for one in running:
                done, cpu_s = one.cpu_load(plan, shape, plan.seconds)
                rate.add(one.contender, done.per_s)
                cpu.add(one.contender, cpu_s * 1e6 / done.requests)
                p99.add(one.contender, done.p99_us / 1000)
    yield from (rate, cpu, p99)


def _latency(plan: Plan, name: str, mode: Mode, shape: Shape) -> Iterator[Measurement[Contender]]:
    p50 = Measurement(f"{name}, 1 connection: p50", "µs", CONTENDERS, ())
    with _all(plan, CONTENDERS, mode) as running:
        _warm_up(plan, running, shape)
        for _ in range(plan.rounds):
            for one in running:
                p50.add(one.contender, one.load(plan, shape, plan.seconds).p50_us)
    yield p50


def _warm_up(plan: Plan, running: Sequence[Running], shape: Shape) -> None:
    for one in running:
        # At least one answer for each connection, however long it takes: certificates are made, connections opened.
        took_s = one.load(plan, shape, FIRST_ANSWERS_S, requests=shape.connections).seconds
        if took_s < WARM_UP_S:
            one.load(plan, shape, WARM_UP_S)


def _present(contenders: Sequence[Contender]) -> list[Contender]:
    return [contender for contender in contenders if not contender.missing]


@contextmanager
def _all(plan: Plan, contenders: Sequence[Contender], mode: Mode) -> Iterator[list[Running]]:
    """All of them at once, so that rounds can take turns; one that is not loaded only waits."""
    with ExitStack() as stack:
        yield [stack.enter_context(_one(plan, contender, mode)) for contender in _present(contenders)]


@contextmanager
def _one(plan: Plan, contender: Contender, mode: Mode) -> Iterator[Running]:
    port = free_port()
    process = spawn(contender, contender.command(plan.around, port, mode), plan.scratch, pipes=False)
    try:
        wait_until_listening(contender, process, port, plan.scratch)
        yield Running(contender, port, process)
    finally:
        stop(process)


def _start_once(plan: Plan, contender: Contender) -> tuple[float, float]:
    port = free_port()
    command = contender.command(plan.around, port, "plain")
    timer = streams.Timer()
    process = spawn(contender, command, plan.scratch, pipes=False)
    try:
        wait_until_listening(contender, process, port, plan.scratch, pause_s=0.001)
        return timer.ms, usage.rss_mb(process.pid)
    finally:
        stop(process)
