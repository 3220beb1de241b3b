"""pytest in the project's own environment, with a plugin of ours that tells what happens."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dari.codetools.engines.locate import EngineProgram
from dari.codetools.session import CodeSession
from dari.codetools.testing.event_pipe import Event, EventPipe
from dari.codetools.testing.launch import OutputLines, TestLaunch, launch, signal_name
from dari.codetools.testing.pythons import Python, find_pythons, has_module
from dari.codetools.testing.report import TEARDOWN, FailedTest, Outcome, RunLog, one_line
from dari.codetools.testing.request import RunRequest, to_id
from dari.codetools.testing.stacks import blame_stack
from dari.errors import NotFound, Unavailable
from dari.process.run import ProgramRun

PLUGIN = "dari_pytest_events"
IN_PROJECT = Path(__file__).with_name("in_project")
INSTALL = "pip install pytest (uv add --dev pytest, poetry add --group dev pytest), in the project's own environment"
PROBE_TIMEOUT_S = 20.0
_INTERRUPTED, _INTERNAL, _USAGE, _NO_TESTS = 2, 3, 4, 5
_NOT_FOUND = re.compile(r"^ERROR: (?:not found|file or directory not found): (.+)$", re.MULTILINE)
_PRINTED_FRAME = re.compile(r'File "(?P<a>[^"\n]+)", line (?P<b>\d+)|^(?P<c>\S+\.py):(?P<d>\d+): ', re.MULTILINE)


async def find_pytest(request: RunRequest) -> Python | None:
    """The first interpreter that has it."""
    for python in find_pythons(request.workspace, request.project, request.session.environ):
        if await has_pytest(request.session, request.project, python):
            return python
    return None


async def has_pytest(session: CodeSession, folder: Path, python: Python) -> bool:
    """By its files where they tell, else by asking it."""
    has_it = has_module(python, "pytest")
    if has_it is not None:
        return has_it
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pytest') is None)"
    engine = EngineProgram("python", (python.program, "-I", "-c", code), "project")
    run = await launch(
        TestLaunch(session, folder, PROBE_TIMEOUT_S, {}), engine, (), OutputLines(), RunLog(), is_direct=True
    )
    return run.end == "exited" and run.returncode == 0


async def run_pytest(request: RunRequest, log: RunLog) -> None:
    """Run it; what happens is in `log`."""
    python = await find_pytest(request)
    if python is None:
        raise Unavailable("pytest is not installed", f"install it: {INSTALL}")
    await _PytestRun(request, log, python).run()


class _PytestRun:
    def __init__(self, request: RunRequest, log: RunLog, python: Python) -> None:
        self._request = request
        self._log = log
        self._python = python
        self._root = str(request.project)
        self._captures: list[tuple[int, int]] = []
        self._finish: Event | None = None
        self._is_over = False
        self._internal = ""
        self._other_python = ""
        log.framework = "pytest"
        if python.origin not in ("project", "caller"):
            where = "the one on PATH" if python.origin == "path" else "Dari's own, without the project's dependencies"
            self._other_python = (
                f"the project has no virtual environment with pytest: this is {where} ({python.program})"
            )

    async def run(self) -> None:
        request = self._request
        output = OutputLines()
        with EventPipe(self._event) as pipe:
            env = self._environment(pipe)
            arguments = self._arguments(pipe)
            engine = EngineProgram(
                "pytest", (self._python.program, "-m", "pytest"), "project", self._python.environment
            )
            run = await launch(
                request.launch(env),
                engine,
                arguments,
                output,
                self._log,
                captures=lambda: self._captures,
                is_over=lambda: self._is_over,
            )
            pipe.drain()
            self._settle(run, output.tail, pipe.stack)
            if self._other_python and self._log.has_errors:  # it explains imports that fail, and nothing else
                self._log.note(self._other_python)

    def _environment(self, pipe: EventPipe) -> dict[str, str]:
        request = self._request
        given = {**request.session.environ, **request.env}
        own_path = request.env.get("PYTHONPATH", "")
        env = {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(IN_PROJECT), own_path))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "DARI_TEST_EVENTS": str(pipe.path),
            "PATH": os.pathsep.join((str(Path(self._python.program).parent), given.get("PATH", os.defpath))),
        }
        if request.may_be_gone:
            only = pipe.folder / "only.json"
            only.write_text(json.dumps([to_id(str(one.path), one.test) for one in request.targets]))
            env["DARI_TEST_ONLY"] = str(only)
        return {**request.env, **env}

    def _arguments(self, pipe: EventPipe) -> list[str]:
        """Names are absolute paths, so none of them is an option; the cache is ours, not the repository's."""
        request = self._request
        arguments = ["-p", PLUGIN, "-q", "--tb=short", "--color=no", "-o", f"cache_dir={pipe.folder / 'cache'}"]
        if request.fail_fast:
            arguments.append("--exitfirst")
        if request.keyword:
            arguments.append(f"-k{request.keyword}")
        has_test = not request.may_be_gone
        named = (to_id(str(one.path), one.test if has_test else "") for one in request.targets)
        return [*arguments, *dict.fromkeys(named)]

    def _event(self, event: Event) -> None:
        log = self._log
        match event.get("event"):
            case "session":
                log.version = str(event.get("version", ""))
                self._root = str(event.get("root", self._root))
            case "capture":
                self._captures += [(int(event["pid"]), int(file)) for file in event["files"][:4]]
            case "collected":
                log.add_total(int(event["count"]))
            case "start":
                log.start(self._id(event))
            case "end":
                self._end(event)
            case "part":
                log.fail(self._failure(event, f"{self._id(event)} {event.get('part', '')}"))
            case "error":
                suffix = TEARDOWN if event.get("when") == "teardown" else ""
                log.fail(self._failure(event, f"{self._id(event)}{suffix}", is_error=True))
            case "left":
                log.running.pop(self._id(event), None)
            case "internal":
                self._internal = str(event.get("text", ""))
            case "finish":
                self._finish = event
            case "over":
                self._is_over = True

    def _end(self, event: Event) -> None:
        outcome: Outcome = event["outcome"] if event["outcome"] in ("passed", "skipped", "error") else "failed"
        test = self._id(event)
        is_failed = outcome in ("failed", "error")
        failure = self._failure(event, test, is_error=outcome == "error") if is_failed else None
        self._log.finish(test, outcome, float(event.get("s") or 0), failure)
        self._log.start(test)  # its teardown

    def _id(self, event: Event) -> str:
        """As a target that we take: its file relative to the workspace, whatever pytest's own root is."""
        path, separator, rest = str(event.get("id", "")).partition("::")
        return f"{self._request.show(os.path.join(self._root, path))}{separator}{rest}"

    def _failure(self, event: Event, test: str, *, is_error: bool = False) -> FailedTest:
        lines, place = self._trace(event.get("trace") or [])
        # A collection error is a text: its innermost frame of the project is the place.
        named = (str(event.get("path", "")), int(event.get("line") or 0))
        path, line = place or (self._blamed("\n".join(lines)) if is_error else None) or named
        output = [f"{text.strip()}" for name, text in event.get("output") or [] if str(text).strip()]
        return FailedTest(
            id=test,
            message=str(event.get("message", "")) or lines[-1:][0] if lines else "failed",
            path=self._request.show(path) if path else "",
            line=line,
            traceback="\n".join(lines),
            output="\n".join(output),
            is_error=is_error,
        )

    def _trace(self, entries: list[Mapping[str, Any]]) -> tuple[list[str], tuple[str, int] | None]:
        """Frames of the project with their source, others as one line; and the innermost frame of the project."""
        lines: list[str] = []
        place: tuple[str, int] | None = None
        skipped = 0
        for at, entry in enumerate(entries):
            path = str(entry.get("path", ""))
            is_own = not path or self._request.is_inside(path)
            if path and is_own:
                place = (path, int(entry.get("line") or 0))
            if not is_own and at < len(entries) - 1:
                skipped += 1
                continue
            if skipped:
                lines.append(f"… {skipped} frames of other packages")
                skipped = 0
            if path:
                lines.append(f"{self._request.show(path)}:{entry.get('line')}: {entry.get('in') or ''}".rstrip(": "))
            lines += str(entry.get("text", "")).splitlines()
        return lines, place

    def _settle(self, run: ProgramRun, stdout: str, stack: str) -> None:
        log = self._log
        if log.stopped == "timed_out":
            blame_stack(self._request, log, stack)
        if log.stopped is not None:
            return
        if self._finish is None:
            self._died(run, stdout)
            return
        log.running.clear()
        code = int(self._finish.get("code", run.returncode))
        reason = str(self._finish.get("reason", ""))
        if code == _USAGE and log.total is None:
            self._refused(run, stdout)
        elif code == _INTERNAL:
            log.stopped = "crashed"
            log.fail(
                FailedTest("pytest", one_line(_last_line(self._internal)), traceback=self._internal, is_error=True)
            )
        elif code == _INTERRUPTED and not log.has_failed:
            log.stopped = "interrupted"
            log.note(f"pytest was interrupted: {reason or _last_line(stdout)}")
        elif code == _NO_TESTS:
            log.note("no test was collected: check the targets and the keyword, and how the project names its tests")
        elif self._request.fail_fast and log.has_failed:
            log.stopped = "fail_fast"

    def _refused(self, run: ProgramRun, stdout: str) -> None:
        """pytest did not begin: a target that does not exist, a conftest that cannot be imported, a wrong option."""
        text = f"{stdout}\n{run.stderr}"
        if missing := _NOT_FOUND.search(text):
            path, separator, rest = missing[1].partition("::")
            name = f"{self._request.show(path)}{separator}{rest}"
            raise NotFound(f"pytest finds no test {name!r}", "name the file to run all of it; ids come with failures")
        self._died(run, stdout)

    def _died(self, run: ProgramRun, stdout: str) -> None:
        """Without a last word of the plugin: os._exit, a signal, or pytest never began."""
        log = self._log
        said = run.stderr.strip() or stdout.strip()
        if run.returncode == _USAGE:
            if missing := _NOT_FOUND.search(f"{stdout}\n{run.stderr}"):
                raise NotFound(f"pytest finds no test {missing[1]!r}", "name the file to run all of it")
            path, line = self._blamed(said) or ("", 0)
            log.fail(
                FailedTest("pytest", _last_line(said) or "pytest refused to begin", path, line, said, is_error=True)
            )
            return
        log.stopped = "crashed"
        running = list(log.running)
        how = signal_name(run.returncode)
        message = f"the test process ended with {how} before the run was over"
        path, line = self._blamed(said) or ("", 0)
        where = running[0] if running else "pytest"
        log.fail(FailedTest(where, message, path, line, said, is_error=True))

    def _blamed(self, text: str) -> tuple[str, int] | None:
        """The innermost frame of the project in what was printed."""
        own = [found for found in _PRINTED_FRAME.finditer(text) if self._request.is_inside(found["a"] or found["c"])]
        if not own:
            return None
        # faulthandler prints the innermost frame first.
        found = own[0] if "most recent call first" in text else own[-1]
        return self._request.show(found["a"] or found["c"]), int(found["b"] or found["d"])


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("E ").strip() if lines else ""
