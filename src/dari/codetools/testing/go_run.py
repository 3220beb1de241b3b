"""`go test -json`: events of packages, tests and their output."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from dari.codetools.engines.locate import EngineProgram, need_engine
from dari.codetools.testing.launch import OutputLines, TestLaunch, launch, signal_name
from dari.codetools.testing.report import FailedTest, RunLog
from dari.codetools.testing.request import RunRequest, Target, to_id
from dari.errors import InvalidInput
from dari.paths import read_regular
from dari.process.run import ProgramRun
from dari.text.regex import GuardedRegex

INSTALL = "apt install golang-go, brew install go, or https://go.dev/dl"
PASSED_ON = ("GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS", "GOPRIVATE", "GOROOT", "GOTOOLCHAIN", "GOSUMDB")
VERSION_TIMEOUT_S = 20.0
_MAX_TEST_OUTPUT_CHARS = 16_000
_MAX_SOURCE_BYTES = 4 << 20
_TEST_FUNCTION = re.compile(r"^func\s+((?:Test|Example|Fuzz)\w*)\s*\(", re.MULTILINE)
_PLACE = re.compile(r"^\s*(?P<path>[^\s:]+\.go):(?P<line>\d+)(?::\d+)?: (?P<text>.*)$", re.MULTILINE)
_FRAME = re.compile(r"^\t(?P<path>/\S+\.go):(?P<line>\d+)", re.MULTILINE)
_NOISE = re.compile(r"^\s*(?:=== (?:RUN|PAUSE|CONT|NAME)|--- (?:FAIL|PASS|SKIP):).*\n?", re.MULTILINE)
_TIMED_OUT = "panic: test timed out"


async def run_go(request: RunRequest, log: RunLog) -> None:
    engine = need_engine("go", request.workspace, request.project, request.session.environ, INSTALL)
    environ = request.session.environ
    env = {name: environ[name] for name in PASSED_ON if name in environ}
    log.framework = "go"
    log.version = await _version(request, engine, env)
    await _GoRun(request, log, env).run(engine)


class _GoRun:
    def __init__(self, request: RunRequest, log: RunLog, env: Mapping[str, str]) -> None:
        self._request = request
        self._log = log
        self._env = env
        self._module = _module_name(request.project)
        self._output: dict[str, str] = {}
        self._parents: set[str] = set()
        self._failed_parents: set[str] = set()
        self._builds: dict[str, str] = {}
        self._plain = ""

    async def run(self, engine: EngineProgram) -> None:
        request = self._request
        output = OutputLines(self._line)
        # Its own limit comes first: it prints the stacks of all goroutines.
        arguments = ["test", "-json", f"-timeout={max(request.timeout_s * 0.9, 0.1):.1f}s"]
        if request.fail_fast:
            arguments.append("-failfast")
        names = _names_of(request)
        if names is not None:
            arguments.append(f"-run={names}")
        packages = dict.fromkeys(map(self._package, request.targets)) or {"./...": None}
        run = await launch(request.launch(self._env), engine, [*arguments, *packages], output, self._log)
        self._settle(run)

    def _package(self, target: Target) -> str:
        """Always with `./` in front, so that no name is an option."""
        folder = target.path if target.path.is_dir() else target.path.parent
        relative = Path(os.path.relpath(folder, self._request.project)).as_posix()
        package = "." if relative == "." else f"./{relative}"
        return package if target.test or target.path.is_file() else f"{package}/..."

    def _line(self, line: bytes) -> None:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict) or "Action" not in event:
            self._plain = (self._plain + line.decode("utf-8", "replace") + "\n")[-_MAX_TEST_OUTPUT_CHARS:]
            return
        package, test, action = str(event.get("Package", "")), str(event.get("Test", "")), event["Action"]
        key = to_id(self._folder(package), test)
        match action:
            case "output" | "build-output":
                where = str(event.get("ImportPath", "")).split(" ")[0] if action == "build-output" else key
                text = self._output.get(where, "") + str(event.get("Output", ""))
                self._output[where] = text[-_MAX_TEST_OUTPUT_CHARS:]
            case "run":
                self._parents.update(_parents(key))
                self._log.start(key)
            case "pass" | "fail" | "skip":
                self._end(key, package, test, action, float(event.get("Elapsed") or 0))

    def _end(self, key: str, package: str, test: str, action: str, seconds: float) -> None:
        log, said = self._log, self._output.pop(key, "")
        if not test:
            if action == "fail":
                self._package_failed(key, package, said)
            return
        log.running.pop(key, None)
        if action == "fail":
            self._failed_parents.update(_parents(key))
        if key in self._parents and (action != "fail" or key in self._failed_parents):
            return  # its subtests are counted
        if action == "fail":
            log.finish(key, "failed", seconds, self._failure(key, package, said))
        else:
            log.finish(key, "passed" if action == "pass" else "skipped", seconds)

    def _package_failed(self, key: str, package: str, said: str) -> None:
        """Without a failed test: it does not compile, TestMain failed, or a panic ended it with tests still running."""
        log = self._log
        mine = [one for one in log.running if one.partition("::")[0] == key]
        for test in mine:
            text = self._output.pop(test, "") + said
            log.finish(test, "failed", 0, self._failure(test, package, text))
        if mine or any(one.partition("::")[0] == key for one in log.failures):
            return
        built = self._output.pop(package, "") or self._builds.get(package, "")
        log.fail(self._failure(key, package, built or said, is_error=True))

    def _failure(self, key: str, package: str, said: str, *, is_error: bool = False) -> FailedTest:
        text = _NOISE.sub("", said)
        request, folder = self._request, self._folder(package)
        path, line, message = "", 0, ""
        # The last one: what was logged comes before what failed.
        if places := list(_PLACE.finditer(text)):
            found = places[0] if is_error else places[-1]
            named = found["path"]
            inside = named if "/" in named else os.path.join(request.workspace.base, folder, named)
            path, line, message = request.show(inside), int(found["line"]), found["text"].strip()
        panic = re.search(r"^panic: .*$", text, re.MULTILINE)
        if panic:
            message = panic[0]
            own = [one for one in _FRAME.finditer(text) if request.is_inside(one["path"])]
            if _TIMED_OUT in text:
                self._log.stopped = "timed_out"  # all goroutines are in it: the test's own come first
                own.sort(key=lambda one: not one["path"].endswith("_test.go"))
            if own:
                path, line = request.show(own[0]["path"]), int(own[0]["line"])
            text = self._own_frames(text)
        if not message:
            message = next((one.strip() for one in text.splitlines() if one.strip()), "failed")
        return FailedTest(key, message, path, line, text, is_error=is_error)

    def _own_frames(self, text: str) -> str:
        """A panic with the frames of the project: the line of the function, then its place."""
        head, _, stack = text.partition("\ngoroutine ")
        lines = stack.splitlines()
        kept = []
        for name, place in pairwise(lines):
            if (found := _FRAME.match(place)) and self._request.is_inside(found["path"]):
                kept.append(f"{self._request.show(found['path'])}:{found['line']}: in {name.partition('(')[0]}")
        return "\n".join([head, *kept])

    def _folder(self, package: str) -> str:
        """The folder of a package, as the caller names it."""
        name = package.removesuffix(".test").split(" ")[0]
        relative = name.removeprefix(self._module).strip("/") if name.startswith(self._module) else name
        shown = self._request.show(relative or ".")
        return "." if shown == str(self._request.workspace.base) else shown

    def _settle(self, run: ProgramRun) -> None:
        log = self._log
        if log.stopped is not None:
            return
        log.running.clear()
        if run.returncode and run.stderr:
            self._builds_failed(run.stderr)
        if run.returncode and not log.has_failed:
            said = f"{run.stderr}\n{self._plain}".strip()
            log.fail(
                FailedTest("go", f"go test ended with {signal_name(run.returncode)}", traceback=said, is_error=True)
                if not said
                else FailedTest("go", said.splitlines()[-1], traceback=said, is_error=True)
            )
        elif not log.done and not log.has_failed:
            log.note("no test ran: check the targets and the keyword")
        elif self._request.fail_fast and log.has_failed:
            log.stopped = "fail_fast"

    def _builds_failed(self, stderr: str) -> None:
        """Go before 1.24 prints what the compiler says on stderr: `# package`, then places."""
        for block in re.split(r"^# ", stderr, flags=re.MULTILINE)[1:]:
            name, _, said = block.partition("\n")
            package = name.split(" ")[0].removesuffix(".test").removesuffix("_test")
            found = self._compile_error(package, said)
            if found is not None:
                self._log.fail(found, is_better=True)

    def _compile_error(self, package: str, said: str) -> FailedTest | None:
        place = _PLACE.search(said)
        if place is None:
            return None
        # Relative to where go was started.
        shown = self._request.show(place["path"])
        key = self._folder(package)
        return FailedTest(key, place["text"], shown, int(place["line"]), said.strip(), is_error=True)


async def _version(request: RunRequest, engine: EngineProgram, env: Mapping[str, str]) -> str:
    what = TestLaunch(request.session, request.project, VERSION_TIMEOUT_S, {**request.env, **env})
    output = OutputLines()
    await launch(what, engine, ["version"], output, RunLog(), is_direct=True)
    found = re.search(r"go(\d\S*)", output.tail.removeprefix("go version "))
    return found[1] if found else ""


def _names_of(request: RunRequest) -> str | None:
    """One regular expression: the tests of the files that were named, those that were named themselves, the keyword."""
    if not request.targets or any(not _is_narrow(one) for one in request.targets):
        return request.keyword or None
    names: list[str] = []
    for target in request.targets:
        names += [target.test] if target.test else _functions_in(target.path)
    if request.keyword:
        try:
            keyword = GuardedRegex(request.keyword, total_s=1.0)
            names = [name for name in names if keyword.search(name)]
        except InvalidInput:
            return request.keyword
    if len(names) == 1:
        return "/".join(f"^{_escape(part)}$" for part in names[0].split("/"))
    tops = dict.fromkeys(_escape(name.split("/")[0]) for name in names)
    return f"^({'|'.join(tops)})$"


def _is_narrow(target: Target) -> bool:
    return bool(target.test) or target.path.name.endswith("_test.go")


def _functions_in(path: Path) -> list[str]:
    try:
        return _TEST_FUNCTION.findall(read_regular(path, _MAX_SOURCE_BYTES).decode("utf-8", "replace"))
    except OSError:
        return []


def _escape(text: str) -> str:
    return re.sub(r"[.*+?^${}()|\[\]\\]", r"\\\g<0>", text)


def _parents(key: str) -> Iterator[str]:
    folder, separator, test = key.partition("::")
    parts = test.split("/")
    return (f"{folder}{separator}{'/'.join(parts[:count])}" for count in range(1, len(parts)))


def _module_name(project: Path) -> str:
    try:
        text = read_regular(project / "go.mod", _MAX_SOURCE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    found = re.search(r'^module\s+"?([^\s"]+)', text, re.MULTILINE)
    return found[1] if found else ""
