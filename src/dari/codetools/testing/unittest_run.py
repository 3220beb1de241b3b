"""unittest, where a project has no pytest."""

from __future__ import annotations

import json
import os
from pathlib import Path

from dari.codetools.engines.locate import EngineProgram
from dari.codetools.testing import pythons
from dari.codetools.testing.event_pipe import Event, EventPipe
from dari.codetools.testing.launch import OutputLines, launch, signal_name
from dari.codetools.testing.projects import is_test_file
from dari.codetools.testing.pytest_run import IN_PROJECT
from dari.codetools.testing.report import FailedTest, Outcome, RunLog
from dari.codetools.testing.request import RunRequest, to_id
from dari.codetools.testing.stacks import blame_stack
from dari.errors import Unavailable
from dari.process.run import ProgramRun

RUNNER = IN_PROJECT / "dari_unittest_events.py"


async def run_unittest(request: RunRequest, log: RunLog) -> None:
    found = pythons.find_pythons(request.workspace, request.project, request.session.environ)
    python = next(found, None)
    if python is None:
        raise Unavailable("no Python was found", "install one, or make a virtual environment: python3 -m venv .venv")
    if (request.project / "manage.py").is_file():
        log.note(
            "a Django project needs its settings: pip install pytest pytest-django in its environment runs its tests"
        )
    await _UnittestRun(request, log, python).run()


class _UnittestRun:
    def __init__(self, request: RunRequest, log: RunLog, python: pythons.Python) -> None:
        self._request = request
        self._log = log
        self._python = python
        self._is_over = False
        log.framework = "unittest"

    async def run(self) -> None:
        request = self._request
        output = OutputLines()
        with EventPipe(self._event) as pipe:
            what = pipe.folder / "what.json"
            what.write_text(json.dumps(self._what()))
            engine = EngineProgram("unittest", (self._python.program, str(RUNNER)), "project", self._python.environment)
            path = {**request.session.environ, **request.env}.get("PATH", os.defpath)
            env = {
                "PYTHONDONTWRITEBYTECODE": "1",
                "DARI_TEST_EVENTS": str(pipe.path),
                "PATH": os.pathsep.join((str(Path(self._python.program).parent), path)),
            }
            run = await launch(
                request.launch(env), engine, [str(what)], output, self._log, is_over=lambda: self._is_over
            )
            pipe.drain()
            self._settle(run, output.tail, pipe.stack)

    def _what(self) -> dict[str, object]:
        """Files as the workspace has them, without what git ignores; names of tests per file."""
        request = self._request
        files: dict[str, None] = {}
        tests: dict[str, list[str]] = {}
        for target in request.targets:
            if target.path.is_file():
                files[str(target.path)] = None
                if target.test:
                    tests.setdefault(str(target.path), []).append(target.test)
        whole = {str(one.path) for one in request.targets if one.path.is_file() and not one.test}
        folders = [str(one.path) for one in request.targets if one.path.is_dir()]
        if folders or not request.targets:
            for found in request.workspace.files(folders or [str(request.project)], wants=_is_unittest_file):
                files[str(found.absolute)] = None
                whole.add(str(found.absolute))
        chosen = {path: names for path, names in tests.items() if path not in whole}
        return {
            "files": list(files),
            "tests": chosen,
            "keyword": request.keyword,
            "fail_fast": request.fail_fast,
        }

    def _event(self, event: Event) -> None:
        log = self._log
        match event.get("event"):
            case "session":
                log.version = str(event.get("version", ""))
            case "collected":
                log.add_total(int(event["count"]))
            case "start":
                log.start(self._id(event))
            case "finish":
                self._is_over = True
            case "end":
                outcome: Outcome = event["outcome"] if event["outcome"] in ("passed", "skipped", "error") else "failed"
                failure = self._failure(event, outcome == "error") if outcome in ("failed", "error") else None
                log.finish(self._id(event), outcome, float(event.get("s") or 0), failure)

    def _id(self, event: Event) -> str:
        path = str(event.get("path") or "")
        return to_id(self._request.show(path) if path else "unittest", str(event.get("name") or ""))

    def _failure(self, event: Event, is_error: bool) -> FailedTest:
        show = self._request.show
        own = [one for one in event.get("frames") or [] if self._request.is_inside(str(one["path"]))]
        lines = [
            line
            for one in own
            for line in (f"{show(one['path'])}:{one['line']}: in {one['in']}", f"    {str(one['text']).strip()}")
        ]
        return FailedTest(
            id=self._id(event),
            message=str(event.get("message") or "failed"),
            path=show(str(own[-1]["path"])) if own else show(str(event.get("path") or "")),
            line=int(own[-1]["line"]) if own else 0,
            traceback="\n".join([*lines, str(event.get("message") or "")]),
            output=str(event.get("output") or ""),
            is_error=is_error,
        )

    def _settle(self, run: ProgramRun, stdout: str, stack: str) -> None:
        log = self._log
        if log.stopped == "timed_out":
            blame_stack(self._request, log, stack)
        if log.stopped is not None:
            return
        if not self._is_over:
            log.stopped = "crashed"
            said = run.stderr.strip() or stdout.strip()
            where = next(iter(log.running), "unittest")
            message = f"the test process ended with {signal_name(run.returncode)} before the run was over"
            log.fail(FailedTest(where, message, traceback=said, is_error=True))
        elif not log.done and not log.has_failed:
            log.note("no test was found: unittest runs test*.py; check the targets and the keyword")
        elif self._request.fail_fast and log.has_failed:
            log.stopped = "fail_fast"


def _is_unittest_file(name: str) -> bool:
    return name.endswith(".py") and (name.startswith("test") or is_test_file(name))
