"""`cargo test`: what the compiler says as JSON, what libtest says as its text (its JSON is for nightly only)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dari.codetools.engines.locate import EngineProgram, need_engine
from dari.codetools.testing.launch import OutputLines, TestLaunch, launch, signal_name
from dari.codetools.testing.report import FailedTest, RunLog
from dari.codetools.testing.request import RunRequest, Target, to_id
from dari.process.run import ProgramRun

INSTALL = "apt install cargo, or https://rustup.rs"
PASSED_ON = ("CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_TARGET_DIR", "RUSTFLAGS")
VERSION_TIMEOUT_S = 30.0
_MAX_BLOCK_CHARS = 16_000
_MAX_ERRORS = 50
_MAX_UNSEEN = 1000
_RUNNING = re.compile(r"^\s*Running (?:unittests |benches )?(?P<path>\S+\.rs) \((?P<program>.+)\)$")
_DOC_TESTS = re.compile(r"^\s*Doc-tests (?P<crate>\S+)$")
_COUNT = re.compile(r"^running (?P<count>\d+) tests?$")
_TEST = re.compile(r"^test (?P<name>.+?)(?: - should panic)? \.\.\. ?(?P<rest>.*)$")
# Behind what a test printed without an end of line.
_TEST_BEHIND = re.compile(r"test (?P<name>[\w:]+)(?: - should panic)? \.\.\. (?P<rest>ok|FAILED|ignored)$")
_LISTED = re.compile(r" {4}(?P<name>\S.*)")
_END = re.compile(r"(?P<word>ok|FAILED|ignored)(?:, .*)?(?: <[\d.]+s>)?$")
_SLOW = re.compile(r"^test (?P<name>.+) has been running for over \d+ seconds$")
_BLOCK = re.compile(r"^---- (?P<name>.+?)(?: stdout)? ----$")
_RESULT = re.compile(r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed; (?P<ignored>\d+) ignored")
_PANIC = re.compile(r"panicked at (?P<path>[^\s:'][^:\n]*\.rs):(?P<line>\d+):\d+:?\n?(?P<said>.*)")
# Before Rust 1.73.
_OLD_PANIC = re.compile(r"panicked at '(?P<said>.*?)', (?P<path>[^\s:'][^:\n]*\.rs):(?P<line>\d+):\d+", re.DOTALL)
_SIDES = re.compile(r"^\s*(?:left|right): .+$", re.MULTILINE)
_DOC_NAME = re.compile(r"(?P<path>.+?) - (?P<rest>.*\(line (?P<line>\d+)\).*)")
_DOC_TARGET = re.compile(r"\(line \d+\)")


async def run_cargo(request: RunRequest, log: RunLog) -> None:
    engine = need_engine("cargo", request.workspace, request.project, request.session.environ, INSTALL)
    environ = request.session.environ
    env = {name: environ[name] for name in PASSED_ON if name in environ}
    log.framework = "cargo"
    log.version = await _version(request, engine, env)
    await _CargoRun(request, log, env).run(engine)


class _CargoRun:
    def __init__(self, request: RunRequest, log: RunLog, env: Mapping[str, str]) -> None:
        self._request = request
        self._log = log
        self._env = env
        self._source = ""
        """The file whose tests run now; empty for doc tests, whose names have their own."""
        self._failed: list[str] = []
        self._named: list[str] = []
        """The list at the end: a test may print a line that looks like a failed one."""
        self._is_list = False
        self._passed = 0
        self._pending = ""
        self._block = ""
        self._blocks: dict[str, str] = {}
        self._said = ""

    async def run(self, engine: EngineProgram) -> None:
        request = self._request
        output = OutputLines(self._line)
        kinds, filters, is_exact = _selection(request)
        arguments = ["test", "--color=never", "--message-format=json", *kinds]
        if not request.fail_fast:
            arguments.append("--no-fail-fast")
        arguments.append("--")
        if is_exact:
            arguments.append("--exact")
        # The second one is for libtest: a filter that begins with a dash is a filter.
        arguments += ["--", *filters] if filters else []
        run = await launch(request.launch(self._env), engine, arguments, output, self._log, is_merged=True)
        self._settle(run)

    def _line(self, data: bytes) -> None:
        line = data.decode("utf-8", "replace").rstrip("\r")
        if line.startswith('{"reason":'):
            self._message(line)
        elif self._block:
            self._in_block(line)
        else:
            self._outside(line)

    def _outside(self, line: str) -> None:
        log = self._log
        if found := _RUNNING.match(line):
            self._begin(found["path"])
        elif _DOC_TESTS.match(line):
            self._begin("")
        elif found := _COUNT.match(line):
            log.add_total(int(found["count"]))
        elif found := _SLOW.match(line):
            log.start(self._id(found["name"]))
        elif self._is_list and (found := _LISTED.fullmatch(line)):
            self._named.append(found["name"])
        elif found := _TEST.match(line) or _TEST_BEHIND.search(line):
            self._test(found["name"], found["rest"])
        elif line == "failures:":
            self._is_list = True
        elif found := _BLOCK.match(line):
            self._block = found["name"]
        elif found := _RESULT.match(line):
            self._result(found)
        elif self._pending and (end := _END.search(line)):
            self._test(self._pending, end[0])
        else:
            self._said = (self._said + line + "\n")[-_MAX_BLOCK_CHARS:]

    def _begin(self, source: str) -> None:
        self._source = source
        self._failed, self._named, self._blocks, self._pending, self._is_list = [], [], {}, "", False
        self._passed = 0

    def _test(self, name: str, rest: str) -> None:
        """A test that prints past libtest has its word further down."""
        end = _END.search(rest)
        if end is None:
            self._pending = name
            self._log.start(self._id(name))
            return
        self._pending = ""
        if end["word"] == "FAILED":
            self._failed.append(name)
            self._log.running.pop(self._id(name), None)
        else:
            self._passed += end["word"] == "ok"
            self._log.finish(self._id(name), "passed" if end["word"] == "ok" else "skipped")

    def _in_block(self, line: str) -> None:
        """What a failed test printed, until the next block or the list of names."""
        if found := _BLOCK.match(line):
            self._block = found["name"]
        elif line == "failures:" or _RESULT.match(line):
            self._block, self._is_list = "", True
            if found := _RESULT.match(line):
                self._result(found)
        else:
            text = self._blocks.get(self._block, "") + line + "\n"
            self._blocks[self._block] = text[:_MAX_BLOCK_CHARS]

    def _result(self, result: re.Match[str]) -> None:
        """libtest's own count is the truth: what a test printed may have hidden its line."""
        for name in dict.fromkeys(self._named or (*self._failed, *self._blocks)):
            self._log.finish(self._id(name), "failed", 0, self._failure(name))
        if self._pending and self._pending not in self._blocks:
            self._passed += 1
            self._log.finish(self._id(self._pending), "passed")
        for _ in range(min(int(result["passed"]) - self._passed, _MAX_UNSEEN)):
            self._log.finish(self._id("(its line was torn by output)"), "passed")
        self._begin(self._source)

    def _failure(self, name: str) -> FailedTest:
        text = self._blocks.get(name, "").strip("\n")
        path, line, message = self._place_of(name)
        if found := _OLD_PANIC.search(text) or _PANIC.search(text):
            if self._source:  # the line of a doc test is in its name; here it is one of the program made of it
                path, line = self._show(found["path"]), int(found["line"])
            first, *rest = found["said"].splitlines() or [message]
            sides = _SIDES.findall("\n".join(rest) or text[found.end() :])
            message = "; ".join([first, *(one.strip().rstrip(",") for one in sides)])
        elif text:
            message = next((one for one in text.splitlines() if one.startswith("error")), text.splitlines()[0])
        kept = [one for one in text.splitlines() if not one.startswith("note: run with `RUST_BACKTRACE")]
        return FailedTest(self._id(name), message, path, line, "\n".join(kept))

    def _place_of(self, name: str) -> tuple[str, int, str]:
        doc = _DOC_NAME.fullmatch(name) if not self._source else None
        if doc is not None:
            return self._show(doc["path"]), int(doc["line"]), "the doc test failed"
        return self._show(self._source) if self._source else "", 0, "failed"

    def _id(self, name: str) -> str:
        doc = _DOC_NAME.fullmatch(name) if not self._source else None
        if doc is not None:
            return to_id(self._show(doc["path"]), doc["rest"])
        return to_id(self._show(self._source), name)

    def _show(self, path: str) -> str:
        """Paths are relative to the package or to the workspace of cargo, whichever has the file."""
        for folder in (self._request.project, *self._request.project.parents):
            if (folder / path).is_file():
                return self._request.show(folder / path)
        return path

    def _message(self, line: str) -> None:
        try:
            message: dict[str, Any] = json.loads(line)
        except (ValueError, RecursionError):
            return
        said = message.get("message")
        if message.get("reason") != "compiler-message" or not isinstance(said, dict) or said.get("level") != "error":
            return
        spans = [one for one in said.get("spans") or [] if one.get("is_primary")]
        if not spans or len(self._log.failures) >= _MAX_ERRORS:
            return  # "aborting due to 2 previous errors"
        path, number = self._show(str(spans[0]["file_name"])), int(spans[0]["line_start"])
        code = (said.get("code") or {}).get("code") or ""
        text = f"error{f'[{code}]' if code else ''}: {said.get('message')}"
        self._log.fail(
            FailedTest(f"{path}:{number}", text, path, number, str(said.get("rendered") or ""), is_error=True)
        )

    def _settle(self, run: ProgramRun) -> None:
        log = self._log
        if log.stopped is not None:
            if self._source and not log.running:
                log.start(self._show(self._source))
            return
        for name in dict.fromkeys((*self._failed, *self._blocks)):
            log.finish(self._id(name), "failed", 0, self._failure(name))
        if (run.returncode and not log.has_failed) or self._pending:
            self._died(run)
        elif not log.done and not log.has_failed:
            log.note("no test ran: check the targets and the keyword")
        elif self._request.fail_fast and log.has_failed:
            log.stopped = "fail_fast"
        if log.stopped is None:
            log.running.clear()

    def _died(self, run: ProgramRun) -> None:
        """The test program ended by a signal or an exit of its own, or cargo could not begin."""
        log = self._log
        said = self._said.strip()
        is_test = bool(self._source) and log.total is not None
        log.stopped = "crashed" if is_test else None
        errors = [line for line in said.splitlines() if line.startswith(("error", "Caused by"))]
        message = errors[0] if errors else f"cargo test ended with {signal_name(run.returncode)}"
        where = next(iter(log.running), self._show(self._source) if self._source else "cargo")
        log.fail(FailedTest(where, message, traceback=said, is_error=True))


def _selection(request: RunRequest) -> tuple[list[str], list[str], bool]:
    """Which programs cargo runs, the names libtest is given, and whether those are whole names."""
    kinds: dict[str, None] = {}
    filters: list[str] = []
    is_exact = not request.keyword and all(one.test and not _DOC_TARGET.search(one.test) for one in request.targets)
    is_all = not request.targets
    for target in request.targets:
        found, name = _program_of(request.project, target)
        kinds.update(dict.fromkeys(found))
        filters += [name] if name else []
        is_all = is_all or not name
    if is_all:
        filters = []
    if request.keyword:
        filters = [request.keyword]
    return list(kinds), filters, is_exact and bool(filters)


def _program_of(project: Path, target: Target) -> tuple[list[str], str]:
    """cargo's option for the program that a file is built into, and the path of its module or the test's name."""
    relative = Path(os.path.relpath(target.path, project))
    parts = relative.parts
    if target.path.is_dir():
        if parts[:1] == ("tests",):
            return (["--test=*"] if len(parts) == 1 else [f"--test={parts[1]}"]), ""
        return [], ""
    if _DOC_TARGET.search(target.test):
        # rustdoc splits what it is given at spaces, and its names have spaces: the item's name alone, or all.
        return ["--doc"], target.test.partition(" (line")[0].split(" ")[0]
    stem = relative.stem
    match parts[:1]:
        case ("tests",):
            return [f"--test={stem if len(parts) == 2 else parts[1]}"], target.test
        case ("examples",):
            return [f"--example={stem}"], target.test
        case ("src",) if parts[1:2] == ("bin",):
            return [f"--bin={stem if len(parts) == 3 else parts[2]}"], target.test
        case ("src",) if stem in ("lib", "main") and len(parts) == 2:
            return (["--lib"] if stem == "lib" else ["--bins"]), target.test
        case ("src",):
            module = [*parts[1:-1], *([] if stem == "mod" else [stem])]
            return (["--lib"] if (project / "src" / "lib.rs").is_file() else ["--bins"]), (
                target.test or "::".join(module) + "::"
            )
    return [], target.test


async def _version(request: RunRequest, engine: EngineProgram, env: Mapping[str, str]) -> str:
    what = TestLaunch(request.session, request.project, VERSION_TIMEOUT_S, {**request.env, **env})
    output = OutputLines()
    await launch(what, engine, ["--version"], output, RunLog(), is_direct=True)
    found = re.search(r"cargo (\S+)", output.tail)
    return found[1] if found else ""
