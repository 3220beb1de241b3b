"""Runs attempts inside a sandbox, in this process or in one of another user, and tells what came of each."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dari.process.child import ChildSpec
from dari.process.children import Children
from dari.sandbox.capabilities import SandboxCapabilities
from dari.sandbox.confinement import Confinement
from tests.support.wire import ROOT

ATTEMPTS = Path(__file__).with_name("attempts.py")
NOBODY = 65534

Steps = Sequence[Sequence[str | Path]]


async def outcome(
    confinement: Confinement,
    steps: Steps,
    *,
    limits: dict[str, int] | None = None,
    python: str = sys.executable,
    machine: SandboxCapabilities | None = None,
) -> dict[str, str]:
    """Each step, as words, with `ok` or the name of the errno."""
    words = json.dumps([[str(word) for word in step] for step in steps])
    line = await said((python, str(ATTEMPTS), words), confinement, limits=limits, machine=machine)
    result: dict[str, str] = json.loads(line)
    return result


async def said(
    command: tuple[str, ...],
    confinement: Confinement,
    *,
    limits: dict[str, int] | None = None,
    machine: SandboxCapabilities | None = None,
    cwd: Path | None = None,
) -> str:
    """What it writes to stdout until its end, which must be a good one."""
    async with Children(machine=machine) as children:
        spec = ChildSpec("attempts", command, confinement=confinement, limits=limits or {}, cwd=cwd)
        child = await children.start(spec)
        stdin, stdout = child.take_pipes()
        with stdin, stdout:
            output = await asyncio.to_thread(stdout.read)
        await child.ended(10)
        told = await child.last_words()
    assert child.returncode == 0, f"{child.status}\n{told}"
    return output.decode()


def outcome_as_nobody(confinement: str, steps: Steps) -> dict[str, str]:
    """The same in a process of uid 65534, daemon included."""
    python = python_of_nobody()
    code = (
        "import asyncio, json, sys\n"
        "from dari.sandbox.confinement import Confinement, PathRule\n"
        "from tests.support.sandboxes import outcome\n"
        f"found = asyncio.run(outcome({confinement}, json.loads(sys.argv[1]), python={python!r}))\n"
        "print(json.dumps(found))\n"
    )
    done = as_nobody(python, code, json.dumps([[str(word) for word in step] for step in steps]))
    assert done.returncode == 0, done.stderr
    result: dict[str, str] = json.loads(done.stdout)
    return result


def python_of_nobody() -> str:
    """An interpreter of our version that another user may run: ours often lies in a home of its own."""
    for python in (sys.executable, "/usr/bin/python3"):
        code = f"import sys, dari.errors, tests.support.wire; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
        try:
            if as_nobody(python, code).returncode == 0:
                return python
        except OSError:
            continue
    # In CI too: where the checkout lies, and who may read it, is not ours to choose.
    pytest.skip(f"ANOTHER USER WAS NOT TESTED: uid {NOBODY} can run no such Python, or not read {ROOT}")


def as_nobody(python: str, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    site = next(path for path in sys.path if path.endswith("site-packages"))
    return subprocess.run(
        [python, "-c", code, *arguments],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd=ROOT,
        env={"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT), site)), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30,
    )
