"""What is measured, between whom, and the targets of the project for it."""

import os
import shlex
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.codetools.contenders import BIN, FILESYSTEM, MCP_GREP, MCP_RIPGREP, OURS, RIPGREP, RUFF, SDK, server_command
from bench.codetools.tree import FILES, NEEDLE, NEEDLE_EVERY
from bench.cold import start_ms
from bench.contenders import SDK as SDK_SERVER
from bench.errors import BenchError
from bench.machine import clean_environment
from bench.messages import Json, encode, initialize, initialized
from bench.processes import Scratch, spawn, stop
from bench.programs import Contender
from bench.results import Measurement, Target, interleave
from bench.stdio_load import Pipe as StdioPipe

CALLS = 5
SETTLE_S = 30
Rows = Iterator[Measurement[Contender]]


@dataclass(slots=True)
class Pipe(StdioPipe):
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int
    starts: int
    scratch: Scratch
    tree: Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one call."""

    ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Pattern:
    title: str
    text: str
    is_regex: bool
    least: int
    """How many lines a right answer has at least."""


PATTERNS = (
    Pattern("rare text", NEEDLE, is_regex=False, least=FILES // NEEDLE_EVERY),
    Pattern("a regular expression", rf"{NEEDLE.replace('needle', 'ne+dle')} [0-9]+$", True, FILES // NEEDLE_EVERY),
    Pattern("text on many lines", "return", is_regex=False, least=100),
)


def search(plan: Plan) -> Rows:
    targets = (Target(RIPGREP, "≤", 1.5), Target(MCP_RIPGREP, "≤", 1), Target(MCP_GREP, "≤", 0.2))
    servers = (OURS, MCP_RIPGREP, MCP_GREP, FILESYSTEM)
    with ExitStack() as stack:
        pipes = {
            one.name: stack.enter_context(serving(one, plan.tree, plan.scratch)) for one in servers if not one.missing
        }
        for one in (one for one in servers if one.name in pipes):
            pipes[one.name].ask(_call(0, _question(one, PATTERNS[0], plan.tree)[0]))
            settle(pipes[one.name])
        for pattern in PATTERNS:
            contenders = (OURS, RIPGREP, MCP_RIPGREP, MCP_GREP)
            name = f"search {FILES:,} files, {pattern.title}, on a running server"
            wall = Measurement(name, "ms", contenders, targets)
            # Beside the time, which says more of the scheduler on a busy machine.
            cpu = Measurement(f"{name}: processor time", "ms", contenders, ())
            running: list[tuple[Contender, Callable[[], Cost]]] = [(RIPGREP, partial(shell_cost, pattern, plan.tree))]
            running += [
                (one, partial(call_cost, pipes[one.name], *_question(one, pattern, plan.tree), pattern.least))
                for one in contenders
                if one.name in pipes
            ]
            for _, measure in running:
                measure()  # fills the page cache
            for _ in range(plan.rounds):
                for one, measure in running:
                    cost = measure()
                    wall.add(one, cost.ms)
                    cpu.add(one, cost.cpu_ms)
            yield from (wall, cpu)
        named = Measurement(
            f"files named *.pyi among {FILES:,}, on a running server",
            "ms",
            (OURS, FILESYSTEM),
            (Target(FILESYSTEM, "≤", 0.2),),
        )
        asked = {OURS: _NAMES_OF_US, FILESYSTEM: _names_of_filesystem(plan.tree)}
        yield interleave(
            named,
            plan.rounds,
            [(one, partial(call_ms, pipes[one.name], asked[one], ".pyi", 20)) for one in asked if one.name in pipes],
        )


def lint(plan: Plan) -> Rows:
    """One file of ordinary size, with findings."""
    file = plan.tree / "lint_me.py"
    file.write_text("import os\nimport sys\n\n\ndef run(value):\n    unused = 1\n    return sys.argv\n" * 20)
    measurement = Measurement("lint one file, on a running server", "ms", (OURS, RUFF), (Target(RUFF, "≤", 3),))
    with serving(OURS, plan.tree, plan.scratch) as pipe:
        question: Json = {"name": "crewx_tools_lint", "arguments": {"paths": [file.name]}}
        running = [
            (RUFF, partial(_ruff_ms, file)),
            (OURS, partial(call_ms, pipe, question, "F401", 1)),
        ]
        for _, measure in running:
            measure()
        settle(pipe)
        yield interleave(measurement, plan.rounds, running)
    file.unlink()


def start(plan: Plan) -> Rows:
    name = "`crewx-tools serve`: spawn to the first `initialize` reply"
    measurement = Measurement(name, "ms", (OURS, SDK), (Target(SDK, "≤", 0.2),))
    running = [
        (OURS, partial(_start_ms, plan.tree, plan.scratch)),
        (SDK, partial(start_ms, SDK_SERVER, plan.scratch)),
    ]
    for _, measure in running:
        measure()
    yield interleave(measurement, plan.starts, running)


MEASURES: Mapping[str, Callable[[Plan], Rows]] = {"search": search, "lint": lint, "start": start}


@contextmanager
def serving(contender: Contender, tree: Path, scratch: Scratch) -> Iterator[Pipe]:
    """A server on stdio with its handshake done. On all cores, since ripgrep uses them."""
    with scratch.log(contender).open("ab") as log:
        process = subprocess.Popen(
            server_command(contender, tree),
            cwd=tree,
            env=_environment(),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    try:
        assert process.stdin is not None and process.stdout is not None
        pipe = Pipe(contender.name, process.stdin.fileno(), process.stdout.fileno(), b"", 0, pid=process.pid)
        pipe.ask(initialize())
        os.write(pipe.write_fd, encode(initialized()) + b"\n")
        yield pipe
    finally:
        stop(process)


def settle(pipe: Pipe) -> None:
    """Wait until a server has done what it does after its first call: ours takes stock of the files for
    `crewx_tools_diff`."""
    readings: list[float] = []
    deadline = time.monotonic() + SETTLE_S
    while len(readings) < 3 or (len(set(readings[-3:])) > 1 and time.monotonic() < deadline):
        time.sleep(0.2)
        readings.append(_cpu_ms(pipe.pid))


def _cpu_ms(pid: int) -> float:
    """Of a process and of those that it ran and waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) * 1000 / os.sysconf("SC_CLK_TCK")


def _call(number: int, question: Json) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": question}


def call_ms(pipe: Pipe, question: Json, needle: str, least: int) -> float:
    return call_cost(pipe, question, needle, least).ms


def call_cost(pipe: Pipe, question: Json, needle: str, least: int) -> Cost:
    """The median of some calls, each checked for the right answer, and what one takes of the processor."""
    took: list[float] = []
    before_ms = _cpu_ms(pipe.pid)
    for number in range(CALLS):
        message = _call(number, question)
        started = time.perf_counter()
        reply, _ = pipe.ask(message)
        took.append((time.perf_counter() - started) * 1000)
        if str(reply).count(needle) < least:
            raise BenchError(f"{pipe.who} answered {str(reply)[:400]}")
    time.sleep(0.1)  # what it ran counts when it is waited for
    return Cost(statistics.median(took), (_cpu_ms(pipe.pid) - before_ms) / CALLS)


def shell_cost(pattern: Pattern, tree: Path) -> Cost:
    options = "" if pattern.is_regex else "--fixed-strings "
    command = f"rg --json {options}-e {shlex.quote(pattern.text)} {shlex.quote(str(tree))}"
    took: list[float] = []
    before = os.times()
    for _ in range(CALLS):
        started = time.perf_counter()
        done = subprocess.run(["sh", "-c", command], capture_output=True, env=_environment(), timeout=60)
        took.append((time.perf_counter() - started) * 1000)
        if done.stdout.count(b'{"type":"match"') < pattern.least:
            raise BenchError(f"rg found {done.stdout[:400]!r} {done.stderr[:400]!r}")
    after = os.times()
    spent_s = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(statistics.median(took), spent_s * 1000 / CALLS)


def _question(contender: Contender, pattern: Pattern, tree: Path) -> tuple[Json, str]:
    """The call, and what stands once in the answer for each line that was found."""
    path = str(tree)
    needle = "of the benchmark" if pattern.least < 100 else pattern.text
    if contender is OURS:
        mode = "regex" if pattern.is_regex else "literal"
        # The same work for all: the default of ripgrep and of its wrapper is that case counts.
        arguments: Json = {"pattern": pattern.text, "mode": mode, "case": "sensitive"}
        return {"name": "crewx_tools_search", "arguments": arguments}, needle
    if contender is MCP_RIPGREP:
        arguments = {"pattern": pattern.text, "path": path, "fixedStrings": not pattern.is_regex}
        return {"name": "advanced-search", "arguments": arguments}, needle
    if contender is MCP_GREP:
        arguments = {"pattern": pattern.text, "paths": [path], "recursive": True, "fixed_strings": not pattern.is_regex}
        return {"name": "grep", "arguments": arguments}, needle
    return _names_of_filesystem(tree), ".pyi"


_NAMES_OF_US: Json = {
    "name": "crewx_tools_search",
    "arguments": {"pattern": "", "output": "files", "globs": ["*.pyi"], "maxMatches": 2000, "maxTokens": 100_000},
}


def _names_of_filesystem(tree: Path) -> Json:
    return {"name": "search_files", "arguments": {"path": str(tree), "pattern": "**/*.pyi"}}


def _ruff_ms(file: Path) -> float:
    command = f"ruff check --output-format json --no-cache {shlex.quote(file.name)}"
    took: list[float] = []
    for _ in range(CALLS):
        started = time.perf_counter()
        done = subprocess.run(["sh", "-c", command], cwd=file.parent, capture_output=True, env=_environment())
        took.append((time.perf_counter() - started) * 1000)
        if b"F401" not in done.stdout:
            raise BenchError(f"ruff answered {done.stdout[:400]!r} {done.stderr[:400]!r}")
    return statistics.median(took)


def _start_ms(tree: Path, scratch: Scratch) -> float:
    """On one core, as the SDK's server is started."""
    started = time.perf_counter()
    process = spawn(OURS, server_command(OURS, tree), scratch, pipes=True, env=_environment(), cwd=tree)
    try:
        assert process.stdin is not None and process.stdout is not None
        Pipe(OURS.name, process.stdin.fileno(), process.stdout.fileno(), b"", 0).ask(initialize())
        return (time.perf_counter() - started) * 1000
    finally:
        stop(process)


def _environment() -> dict[str, str]:
    """With ripgrep and ruff of this project on the PATH, for everybody."""
    environment = clean_environment()
    return {**environment, "PATH": f"{BIN}{os.pathsep}{environment.get('PATH', os.defpath)}"}
