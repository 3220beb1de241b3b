"""What people wait for: one command, with a warm daemon and without one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from bench.bridge import household
from bench.bridge.commands import Commands, Run, commands_of
from bench.bridge.contenders import MCPDO, MCPORTER, OURS, Contender, present
from bench.bridge.plan import Plan
from bench.bridge.upstreams import everything_over_http
from bench.results import Measurement, Target

Measurements = Iterator[Measurement[Contender]]

TYPED_BEFORE = 2
"""Commands that do not count: pages are in memory, the daemon and its server run."""


def warm(plan: Plan) -> Measurements:
    """Commands that find a daemon with an open session to the reference server."""
    who = (OURS, MCPORTER, MCPDO)
    with ExitStack() as stack:
        ready = [stack.enter_context(warmed(plan, one)) for one in present(who)]
        call = (Target(MCPORTER, "≤", 1 / 8), Target(MCPDO, "≤", 1 / 6))
        yield from _typed(plan, "warm `call-tool`, stdio", who, call, ready, Commands.time_call)
        # Not of the issue: the reference asks the same of lists, and more.
        listing = (Target(MCPORTER, "≤", 1 / 10),)
        yield from _typed(plan, "warm `list-tools`, stdio", who, listing, ready, Commands.time_list)


def cold(plan: Plan) -> Measurements:
    """A call of a server with HTTP while no daemon runs: ours starts one on the way, or is told not to."""
    who = (OURS, MCPORTER)
    for how, ours_only in (("it starts the daemon", ()), ("`--no-daemon`", ("--no-daemon",))):
        name = f"cold `call-tool`, HTTP, {how}"
        wall = Measurement(name, "ms", who, (Target(MCPORTER, "≤", 1 / 3),))
        cpu = Measurement(f"{name}: CPU of the command", "ms", who, ())
        with everything_over_http(plan.scratch) as url:
            all_of_them = [commands_of(one, plan.scratch, url) for one in present(who)]
            for number in range(plan.commands + 1):
                for one in all_of_them:
                    more = ours_only if one.contender is OURS else ()
                    with household.visit():
                        run = one.time_http_call(*more)
                        one.run(one.stop)
                    if number:  # the first fills the page cache, and what is remembered on disk
                        wall.add(one.contender, run.wall_ms)
                        cpu.add(one.contender, run.cpu_ms)
        yield from (wall, cpu)


@contextmanager
def warmed(plan: Plan, contender: Contender) -> Iterator[Commands]:
    """Its daemon runs and has called the reference server; it is stopped, and gone, afterwards."""
    commands = commands_of(contender, plan.scratch)
    with household.visit():
        try:
            commands.run(commands.start)
            for _ in range(TYPED_BEFORE):
                commands.time_call()
                commands.time_list()
            yield commands
        finally:
            commands.run(commands.stop)


def _typed(
    plan: Plan,
    name: str,
    who: tuple[Contender, ...],
    targets: tuple[Target, ...],
    ready: Sequence[Commands],
    time: Callable[[Commands], Run],
) -> Measurements:
    wall = Measurement(name, "ms", who, targets)
    cpu = Measurement(f"{name}: CPU of the command", "ms", who, ())
    for _ in range(plan.commands):
        for one in ready:
            run = time(one)
            wall.add(one.contender, run.wall_ms)
            cpu.add(one.contender, run.cpu_ms)
    yield from (wall, cpu)
