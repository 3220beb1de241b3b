"""Runs unittest in the project's environment, and writes what happens into a named pipe. Standard library only.

`dari_unittest_events.py WHAT.json`: {"files": […], "tests": {file: [names]}, "keyword": "", "fail_fast": false}
"""

from __future__ import annotations

import faulthandler
import importlib
import io
import json
import os
import platform
import signal
import sys
import time
import traceback
import unittest
from typing import Any

MAX_TEXT_CHARS = 20000


class Pipe:
    def __init__(self, path: str) -> None:
        self._pid = os.getpid()
        self._file = os.open(path, os.O_WRONLY)
        first = getattr(signal, "SIGRTMIN", None)
        if first is not None:
            faulthandler.register(first + 13, file=self._file, all_threads=True)

    def send(self, **event: Any) -> None:
        if os.getpid() != self._pid:
            return
        data = json.dumps(event).encode() + b"\n"
        while data:
            try:
                data = data[os.write(self._file, data) :]
            except OSError:
                return


class Result(unittest.TestResult):
    def __init__(self, pipe: Pipe, files: dict[str, str]) -> None:
        super().__init__()
        self._pipe = pipe
        self._files = files
        self._started = 0.0
        self._has_failed = False

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._has_failed = False
        self._started = time.perf_counter()
        self._pipe.send(event="start", **self._name(test))

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._end(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self._end(test, "failed", err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        is_case = isinstance(test, unittest.TestCase)  # otherwise setUpClass or setUpModule
        self._end(test, "failed" if is_case else "error", err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self._end(test, "skipped")

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._end(test, "skipped")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        super().addUnexpectedSuccess(test)
        self._end(test, "failed", message="passed, but is marked as an expected failure")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None and not self._has_failed:
            self._end(test, "failed", err)

    def wasSuccessful(self) -> bool:
        return not (self.failures or self.errors)

    def _end(self, test: Any, outcome: str, err: Any = None, message: str = "") -> None:
        if self._has_failed:
            return
        self._has_failed = outcome == "failed"
        frames, text = [], message
        if err is not None:
            kind, value, trace = err
            frames = [
                {"path": one.filename, "line": one.lineno, "in": one.name, "text": one.line or ""}
                for one in traceback.extract_tb(trace)
                if "__unittest" not in one.name
            ]
            text = "".join(traceback.format_exception_only(kind, value)).strip()
        seconds = time.perf_counter() - self._started if self._started else 0
        self._pipe.send(
            event="end",
            outcome=outcome,
            s=round(seconds, 4),
            message=text[:MAX_TEXT_CHARS],
            frames=frames[-40:],
            output=_captured(),
            **self._name(test),
        )

    def _name(self, test: Any) -> dict[str, str]:
        if not isinstance(test, unittest.TestCase):
            name = str(getattr(test, "description", test))
            module = name.rpartition("(")[2].rstrip(")").rpartition(".")[0]
            return {"path": self._files.get(module, ""), "name": name}
        module, _, rest = test.id().rpartition("." + type(test).__qualname__ + ".")
        return {"path": self._files.get(type(test).__module__, ""), "name": type(test).__qualname__ + "::" + rest}


def main() -> int:
    pipe = Pipe(os.environ.pop("DARI_TEST_EVENTS"))
    with open(sys.argv[1], encoding="utf-8") as file:
        what = json.load(file)
    sys.path[0] = os.getcwd()
    pipe.send(event="session", version=platform.python_version())
    files: dict[str, str] = {}
    suite = unittest.TestSuite()
    loader = unittest.TestLoader()
    if what["keyword"]:
        loader.testNamePatterns = ["*" + what["keyword"] + "*"]
    for path in what["files"]:
        _load(pipe, loader, suite, files, path, what["tests"].get(path))
    pipe.send(event="collected", count=suite.countTestCases())
    result = Result(pipe, files)
    result.failfast = what["fail_fast"]
    sys.stdout, sys.stderr = _Tail(), _Tail()
    suite.run(result)
    pipe.send(event="finish", code=0)
    return 0 if result.wasSuccessful() else 1


def _load(pipe: Pipe, loader: Any, suite: Any, files: dict[str, str], path: str, names: list[str] | None) -> None:
    """Import a file under the name that its packages give it."""
    folder, parts = os.path.dirname(path), [os.path.splitext(os.path.basename(path))[0]]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        parts.insert(0, os.path.basename(folder))
        folder = os.path.dirname(folder)
    if folder not in sys.path:
        sys.path.insert(1, folder)
    module = ".".join(parts)
    try:
        imported = importlib.import_module(module)
        files[module] = path
        suite.addTest(loader.loadTestsFromModule(imported) if names is None else _named(loader, imported, names))
    except unittest.SkipTest:
        return
    except BaseException as error:
        frames = [
            {"path": one.filename, "line": one.lineno, "in": one.name, "text": one.line or ""}
            for one in traceback.extract_tb(error.__traceback__)
            if "importlib" not in one.filename and one.filename != __file__
        ]
        if isinstance(error, SyntaxError) and error.filename:
            frames.append({"path": error.filename, "line": error.lineno or 0, "in": "", "text": error.text or ""})
        text = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()[-1]
        pipe.send(event="end", outcome="error", path=path, name="", message=text, frames=frames, s=0, output="")


def _named(loader: Any, module: Any, names: list[str]) -> Any:
    return loader.loadTestsFromNames([name.replace("::", ".") for name in names], module)


class _Tail(io.TextIOBase):
    """stdout and stderr of tests: their ends are kept, per test."""

    text = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text = (self.text + text)[-4000:]
        return len(text)


def _captured() -> str:
    said = ""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, _Tail):
            said += stream.text
            stream.text = ""
    return said


if __name__ == "__main__":
    sys.exit(main())
