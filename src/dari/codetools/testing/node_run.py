"""vitest and jest out of the project's node_modules, each with a reporter of ours beside its own configuration."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dari.codetools.engines.locate import EngineProgram, find_engine
from dari.codetools.testing.event_pipe import Event, EventPipe
from dari.codetools.testing.launch import OutputLines, launch, signal_name
from dari.codetools.testing.pytest_run import IN_PROJECT
from dari.codetools.testing.report import FailedTest, Outcome, RunLog, clean
from dari.codetools.testing.request import RunRequest, Target, to_id
from dari.errors import InvalidInput, Unavailable
from dari.paths import read_regular
from dari.process.run import ProgramRun
from dari.text.regex import GuardedRegex, PatternTooSlow

_FRAME = re.compile(
    r"^[ \t]+at (?:(?P<name>.+?) \()?(?:file://)?(?P<path>[^():\s]+):(?P<line>\d+):\d+\)?$", re.MULTILINE
)
_ANY_FRAME = re.compile(r"^[ \t]+at .+$", re.MULTILINE)
_EXPECTED = re.compile(r"^[ \t]*(?:Expected|Received)[^:\n]*: .+$", re.MULTILINE)
_BETWEEN_NAMES = " > "
_MAX_MANIFEST_BYTES = 1 << 20
_MAX_SAID_CHARS = 64_000
_NO_FILES = re.compile(r"No test files found|No tests found", re.IGNORECASE)


async def run_vitest(request: RunRequest, log: RunLog) -> None:
    reporter = IN_PROJECT / "vitest_reporter.mjs"
    arguments = ["run", f"--reporter={reporter}", *(("--bail=1",) if request.fail_fast else ())]
    if pattern := _name_pattern(request):
        arguments.append(f"--testNamePattern={pattern}")
    # A filter is a part of an absolute path here, so it cannot become an option.
    files = dict.fromkeys(os.path.join(one.path, "") if one.path.is_dir() else str(one.path) for one in request.targets)
    await _NodeRun(request, log).run([*arguments, *files])


async def run_jest(request: RunRequest, log: RunLog) -> None:
    arguments = [f"--reporters={IN_PROJECT / 'jest_reporter.cjs'}", "--testLocationInResults", "--watchAll=false"]
    arguments.append("--ci")  # a snapshot that is missing is a failure, not a file
    if request.fail_fast:
        arguments.append("--bail=1")
    if pattern := _name_pattern(request):
        arguments.append(f"--testNamePattern={pattern}")
    # Patterns of paths are regular expressions.
    files = dict.fromkeys(f"^{_escape(str(one.path))}{'/' if one.path.is_dir() else '$'}" for one in request.targets)
    await _NodeRun(request, log).run([*arguments, *(("--", *files) if files else ())])


class _NodeRun:
    def __init__(self, request: RunRequest, log: RunLog) -> None:
        self._request = request
        self._log = log
        self._output: dict[str, str] = {}
        self._files: dict[str, None] = {}
        self._finish: Event | None = None
        self._chosen = _compile(_name_pattern(request))
        log.framework = request.framework

    async def run(self, arguments: Sequence[str]) -> None:
        engine = self._find()
        output = OutputLines()
        with EventPipe(self._event) as pipe:
            run = await launch(
                self._request.launch({"DARI_TEST_EVENTS": str(pipe.path)}),
                engine,
                arguments,
                output,
                self._log,
                is_over=lambda: self._finish is not None,
            )
            pipe.drain()
        self._settle(run, output.tail)

    def _find(self) -> EngineProgram:
        request, name = self._request, self._request.framework
        path = {**request.session.environ, **request.env}.get("PATH", os.defpath)
        if shutil.which("node", path=path) is None:
            raise Unavailable("node is not installed", "install Node.js 20 or newer, so that `node` is on PATH")
        engine = find_engine(
            name, request.workspace, request.project, request.session.environ, origins=("project", "path")
        )
        if engine is None:
            install = f"npm install --save-dev {name}"
            if not (request.project / "node_modules").is_dir() and (request.project / "package.json").is_file():
                install = f"npm install (pnpm install, yarn) in {request.project}, and {install} where it is not listed"
            raise Unavailable(f"{name} is not installed in {request.show(request.project)}", f"install it: {install}")
        self._log.version = _package_version(Path(engine.command[0]), name)
        return engine

    def _event(self, event: Event) -> None:
        log = self._log
        match event.get("event"):
            case "session":
                log.version = str(event.get("version") or log.version)
            case "collected":
                if self._chosen is None:  # with a pattern it counts those that the pattern leaves out
                    log.add_total(int(event["count"]))
            case "file":
                self._files[self._request.show(str(event["path"]))] = None
            case "fileEnd":
                self._files.pop(self._request.show(str(event["path"])), None)
            case "start":
                log.start(self._id(event))
            case "output":
                self._add_output(event)
            case "error":
                log.fail(self._failure(event, is_error=True))
            case "end":
                if event["outcome"] == "skipped" and self._is_left_out(str(event.get("name"))):
                    return
                outcome: Outcome = event["outcome"] if event["outcome"] in ("passed", "skipped") else "failed"
                failure = self._failure(event) if outcome == "failed" else None
                log.finish(self._id(event), outcome, float(event.get("ms") or 0) / 1000, failure)
            case "finish":
                self._finish = event

    def _is_left_out(self, name: str) -> bool:
        """Both frameworks report the tests that a pattern leaves out as skipped."""
        try:
            return self._chosen is not None and not self._chosen.search(name[:1000].replace(_BETWEEN_NAMES, " "))
        except PatternTooSlow:
            return False

    def _id(self, event: Event) -> str:
        path = str(event.get("path") or "")
        return to_id(self._request.show(path) if path else self._request.framework, str(event.get("name") or ""))

    def _add_output(self, event: Event) -> None:
        """jest hands out what a file printed at its end: its failures were reported already."""
        shown = self._request.show(str(event["path"]))
        for test, failure in list(self._log.failures.items()):
            if test.partition("::")[0] == shown and not failure.output:
                self._log.describe(test, output=str(event.get("text", "")))

    def _failure(self, event: Event, *, is_error: bool = False) -> FailedTest:
        first: Mapping[str, Any] = next(iter(event.get("failures") or []), {})
        text = _said(first.get("message") or next(iter(event.get("messages") or []), ""))
        frames = [
            (str(one.get("path")), int(one.get("line") or 0), str(one.get("in") or ""))
            for one in first.get("frames") or []
        ] or [
            (found["path"], int(found["line"]), found["name"] or "")
            for found in _FRAME.finditer(_said(first.get("stack") or "") or text)
        ]
        own = [frame for frame in frames if self._request.is_inside(frame[0])]
        said = _ANY_FRAME.sub("", text).rstrip()
        if diff := _said(first.get("diff") or "").strip("\n"):
            said = f"{said}\n{diff}"
        shown = [f"{self._request.show(path)}:{line}{f': in {name}' if name else ''}" for path, line, name in own]
        path = own[0][0] if own else str(event.get("path") or "")
        lines = [line for line in said.splitlines() if line.strip()]
        # jest begins what it says about a file with a heading.
        message = next((line for line in lines if not line.lstrip().startswith("●")), "failed")
        if "expect(" in message:
            message = "; ".join([message, *(line.strip() for line in _EXPECTED.findall(said)[:2])])
        return FailedTest(
            id=self._id(event),
            message=message,
            path=self._request.show(path) if path else "",
            line=own[0][1] if own else int(event.get("line") or 0),
            traceback="\n".join([*lines, *shown]),
            output=str(event.get("output") or ""),
            is_error=is_error,
        )

    def _settle(self, run: ProgramRun, stdout: str) -> None:
        log = self._log
        if log.stopped is not None:
            for one in self._files if not log.running else ():
                log.start(one)
            return
        said = f"{run.stderr}\n{stdout}".strip()
        log.running.clear()
        if self._finish is None or (run.returncode and not log.has_failed and not log.done):
            if _NO_FILES.search(said):
                log.note("no test file was found: check the targets, and `include` or `testMatch` of the configuration")
                return
            log.stopped = "crashed" if self._finish is None else None
            how = signal_name(run.returncode)
            log.fail(FailedTest(log.framework, f"{log.framework} ended with {how}", traceback=said, is_error=True))
        elif self._request.fail_fast and log.has_failed:
            log.stopped = "fail_fast"
        elif not log.done and not log.has_failed:
            log.note("no test ran: check the targets and the keyword")


def _said(value: object) -> str:
    """What a hostile test says may be a megabyte of line ends."""
    return clean(str(value)[:_MAX_SAID_CHARS])


def _name_pattern(request: RunRequest) -> str:
    """One regular expression for the names of tests: both frameworks join names of suites and tests with spaces."""
    names = [_name_regex(one) for one in request.targets if one.test]
    if any(not one.test for one in request.targets):
        names = []  # a whole file is among them
    if not names:
        return request.keyword
    chosen = f"^(?:{'|'.join(names)})(?:$| )"
    return f"^(?=.*(?:{request.keyword})){chosen}" if request.keyword else chosen


def _compile(pattern: str) -> GuardedRegex | None:
    try:
        return GuardedRegex(pattern, ignore_case=True, max_chars=100_000, total_s=1.0) if pattern else None
    except InvalidInput:
        return None  # JavaScript's syntax is not quite Python's


def _name_regex(target: Target) -> str:
    return "(?: > | )".join(_escape(part) for part in target.test.split(_BETWEEN_NAMES))


def _escape(text: str) -> str:
    """For JavaScript, which refuses escapes that are not needed in some modes."""
    return re.sub(r"[.*+?^${}()|\[\]\\/]", r"\\\g<0>", text)


def _package_version(program: Path, name: str) -> str:
    """Of the package that a file in node_modules/.bin belongs to."""
    for folder in (*Path(os.path.realpath(program)).parents, program.parent.parent / name):
        try:
            package = json.loads(read_regular(folder / "package.json", _MAX_MANIFEST_BYTES))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(package, dict) and package.get("name") == name:
            return str(package.get("version", ""))
    return ""
