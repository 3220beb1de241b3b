"""Running a program to its end: what comes back, and what ends it."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dari.process.child import ChildSpec
from dari.process.children import Children
from dari.process.reaper_main import state_of
from dari.process.run import ProgramRun, run_program

MAX_BYTES = 1 << 20


@asynccontextmanager
async def running() -> AsyncIterator[Children]:
    async with asyncio.timeout(30), Children() as children:
        yield children


def python(code: str, *words: str) -> ChildSpec:
    return ChildSpec("test", (sys.executable, "-c", code, *words))


async def run(
    code: str, *words: str, stdin: bytes = b"", timeout_s: float = 20, max_output_bytes: int = MAX_BYTES
) -> ProgramRun:
    async with running() as children:
        return await run_program(
            children, python(code, *words), stdin=stdin, timeout_s=timeout_s, max_output_bytes=max_output_bytes
        )


def test_output_exit_code_and_the_end_of_stderr_come_back() -> None:
    done = asyncio.run(run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"))
    assert (done.returncode, done.stdout, done.stderr, done.end) == (3, b"out\n", "err", "exited")


def test_more_input_than_a_pipe_holds_is_fed_while_output_is_read() -> None:
    data = b"x" * 3_000_000
    code = "import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
    done = asyncio.run(run(code, stdin=data, max_output_bytes=4_000_000))
    assert done.stdout == data


def test_a_program_that_does_not_read_its_input_does_not_hold_us() -> None:
    done = asyncio.run(run("print('done')", stdin=b"x" * 3_000_000))
    assert (done.stdout, done.end) == (b"done\n", "exited")


def test_a_program_that_prints_for_ever_is_ended_at_the_limit() -> None:
    done = asyncio.run(run("while True: print('y' * 1000)", max_output_bytes=10_000))
    assert (done.end, len(done.stdout)) == ("output_limit", 10_000)


def test_a_program_that_takes_too_long_is_ended_with_what_it_had_printed() -> None:
    done = asyncio.run(run("import time; print('begun', flush=True); time.sleep(600)", timeout_s=3))
    assert (done.end, done.stdout) == ("timed_out", b"begun\n")


def test_a_reader_that_has_enough_ends_the_program() -> None:
    seen = bytearray()

    def read(data: bytes) -> bool:
        seen.extend(data)
        return len(seen) > 5

    async def main() -> ProgramRun:
        async with running() as children:
            code = "import time; print('0123456789', flush=True); time.sleep(600)"
            return await run_program(children, python(code), timeout_s=20, max_output_bytes=MAX_BYTES, on_output=read)

    assert asyncio.run(main()).end == "stopped"


def test_an_error_of_the_reader_ends_the_program_and_reaches_the_caller() -> None:
    def read(_: bytes) -> bool:
        raise ValueError("cannot read this")

    async def main() -> None:
        async with running() as children:
            await run_program(children, python("print(1)"), timeout_s=20, max_output_bytes=MAX_BYTES, on_output=read)

    with pytest.raises(ValueError, match="cannot read this"):
        asyncio.run(main())


DETACH = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1); os.close(2)
        open(sys.argv[1], "w").write(str(os.getpid()))
        os.rename(sys.argv[1], sys.argv[2])
        time.sleep(600)
    os._exit(0)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
"""


@pytest.mark.parametrize("end", ["exited", "cancelled"])
def test_what_a_program_left_behind_is_gone_when_the_run_ends(tmp_path: Path, end: str) -> None:
    draft, pid_file = tmp_path / "draft", tmp_path / "pid"
    code = DETACH if end == "exited" else DETACH + "print('up', flush=True); time.sleep(600)"

    async def main() -> None:
        async with running() as children:
            up = asyncio.Event()

            def seen(_: bytes) -> None:
                up.set()

            spec = python(code, str(draft), str(pid_file))
            running_program = asyncio.create_task(
                run_program(children, spec, timeout_s=20, max_output_bytes=MAX_BYTES, on_output=seen)
            )
            if end == "cancelled":
                await up.wait()
                running_program.cancel()
            await asyncio.gather(running_program, return_exceptions=True)

    asyncio.run(main())
    assert state_of(int(pid_file.read_text())) in ("", "Z")


def test_a_run_may_be_cancelled_at_every_step_and_leaves_no_pipe_open() -> None:
    """A pipe that nobody closes is a ResourceWarning, and warnings are errors."""

    async def cancel_after(turns: int) -> bool:
        async with running() as children:
            task = asyncio.create_task(
                run_program(children, python("import time; time.sleep(60)"), timeout_s=20, max_output_bytes=MAX_BYTES)
            )
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return not children.running

    for turns in range(1, 9):
        assert asyncio.run(cancel_after(turns))
    gc.collect()
