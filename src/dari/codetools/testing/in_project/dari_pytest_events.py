"""A plugin of pytest (6 to 9, with and without xdist) that writes what happens as JSON lines into a named pipe.

It runs in the project's environment: standard library and pytest only. Nothing of it is left in the environment of
what tests start.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
from typing import Any

import pytest

EVENTS = "DARI_TEST_EVENTS"
ONLY = "DARI_TEST_ONLY"
MAX_TEXT_CHARS = 20000
MAX_ENTRIES = 40
_NO_REPORTS = {"xmlpath": None, "log_file": os.devnull, "htmlpath": None, "report_log": None, "json_report": False}
"""Options for files that a project's `addopts` may ask for: JUnit, logs, pytest-html, -reportlog, -json-report."""


@pytest.hookimpl(hookwrapper=True, tryfirst=True)  # pytest-cov begins in the same hook
def pytest_load_initial_conftests(early_config: Any) -> Any:
    """No coverage: its files would lie in the repository, and nobody reads its numbers here."""
    if _pipe is not None and getattr(early_config.known_args_namespace, "cov_source", None):
        early_config.known_args_namespace.cov_source = []
    yield


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: Any) -> None:
    if _pipe is None:
        return
    for name, value in _NO_REPORTS.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)
    pipe = _pipe
    is_worker = hasattr(config, "workerinput")
    has_workers = not is_worker and getattr(config.option, "dist", "no") != "no"
    if not has_workers:
        _leave_no_trace()
    captures = _capture_files(config)
    if captures:
        pipe.send(event="capture", pid=os.getpid(), files=captures)
    if _only_path:
        config.pluginmanager.register(Selection(_only_path), "dari-selection")
    if not is_worker:
        config.pluginmanager.register(Events(config, pipe), "dari-events")


class Pipe:
    def __init__(self, path: str) -> None:
        self._pid = os.getpid()
        self._file = os.open(path, os.O_WRONLY)

    def send(self, **event: Any) -> None:
        if os.getpid() != self._pid:
            return  # a test forked, and its child went on with the run
        data = json.dumps(event).encode() + b"\n"
        while data:
            try:
                data = data[os.write(self._file, data) :]
            except OSError:
                return

    def dump_stack_on_signal(self) -> None:
        first = getattr(signal, "SIGRTMIN", None)
        if first is not None:
            faulthandler.register(first + 13, file=self._file, all_threads=True)


class Selection:
    """Only the tests whose ids, with absolute paths, are in a file; all of them when none of those is left."""

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            self._ids = frozenset(json.load(file))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        root = str(getattr(config, "rootpath", None) or config.rootdir)
        wanted = [item for item in items if self._is_wanted(os.path.join(root, item.nodeid))]
        if 0 < len(wanted) < len(items):
            others = [item for item in items if item not in wanted]
            items[:] = wanted
            config.hook.pytest_deselected(items=others)

    def _is_wanted(self, test: str) -> bool:
        """Itself, or its whole file."""
        return test in self._ids or test.partition("::")[0] in self._ids


class Events:
    def __init__(self, config: Any, pipe: Pipe) -> None:
        self._root = str(getattr(config, "rootpath", None) or config.rootdir)
        self._send = pipe.send
        self._is_counted = False
        self._send(event="session", version=pytest.__version__, python=sys.version.split()[0], root=self._root)

    def pytest_collection_finish(self, session: Any) -> None:
        self._count(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self._count(len(ids))

    def _count(self, count: int) -> None:
        """Each worker collects everything: the first one tells."""
        if count and not self._is_counted:
            self._is_counted = True
            self._send(event="collected", count=count)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._send(event="error", id=report.nodeid, **self._describe(report))

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[Any, ...]) -> None:
        self._send(event="start", id=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.outcome == "rerun":
            return
        if "Sub" in type(report).__name__:
            if report.failed:
                part = getattr(report, "sub_test_description", lambda: "subtest")()
                self._send(event="part", id=report.nodeid, part=part, **self._describe(report))
            return
        if report.when == "call" or (report.when == "setup" and not report.passed):
            outcome = "error" if report.when == "setup" and report.failed else report.outcome
            self._send(
                event="end",
                id=report.nodeid,
                outcome=outcome,
                s=round(getattr(report, "duration", 0), 4),
                **(self._describe(report) if report.failed else {}),
            )
        elif report.when == "teardown" and report.failed:
            self._send(event="error", id=report.nodeid, when="teardown", **self._describe(report))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[Any, ...]) -> None:
        self._send(event="left", id=nodeid)

    def pytest_internalerror(self, excrepr: Any) -> None:
        self._send(event="internal", text=str(excrepr)[-MAX_TEXT_CHARS:])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any, exitstatus: Any) -> None:
        reason = getattr(session, "shouldfail", False) or getattr(session, "shouldstop", False)
        self._send(event="finish", code=int(exitstatus), reason=str(reason or ""))

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """After reports of coverage and the end of workers, which take their time."""
        self._send(event="over")

    def _describe(self, report: Any) -> dict[str, Any]:
        location = getattr(report, "location", None) or ("", 0, "")
        found: dict[str, Any] = {
            "path": os.path.join(self._root, location[0]) if location[0] else "",
            "line": (location[1] or 0) + 1 if location[0] else 0,
            "message": "",
            "trace": [],
            "output": [[name, text[-4000:]] for name, text in report.sections[-6:]],
        }
        longrepr = report.longrepr
        crash = getattr(longrepr, "reprcrash", None)
        if crash is not None:
            found["message"] = str(crash.message)[:MAX_TEXT_CHARS]
        chain = getattr(longrepr, "chain", None) or [(getattr(longrepr, "reprtraceback", None), crash, None)]
        for trace, _, why in chain:
            for entry in list(getattr(trace, "reprentries", None) or [])[-MAX_ENTRIES:]:
                found["trace"].append(self._entry(entry))
            if why:
                found["trace"].append({"text": str(why)})
        if not found["trace"]:
            found["trace"].append({"text": str(longrepr)[-MAX_TEXT_CHARS:]})
            found["message"] = found["message"] or _last_words(str(longrepr))
        return found

    def _entry(self, entry: Any) -> dict[str, Any]:
        place = getattr(entry, "reprfileloc", None)
        text = "\n".join(getattr(entry, "lines", ()))[-MAX_TEXT_CHARS:]
        if place is None:
            return {"text": text}
        path = str(place.path)
        return {
            "path": path if os.path.isabs(path) else os.path.join(os.getcwd(), path),
            "line": place.lineno,
            "in": str(place.message),
            "text": text,
        }


def _last_words(text: str) -> str:
    """Of a collection error: the line with the exception."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    return errors[-1] if errors else (lines[-1] if lines else "")


def _capture_files(config: Any) -> list[int] | None:
    try:
        capturing = config.pluginmanager.getplugin("capturemanager")._global_capturing
        return [one.tmpfile.fileno() for one in (capturing.out, capturing.err) if one is not None]
    except Exception:  # captured in memory, or not at all
        return None


def _leave_no_trace() -> None:
    os.environ.pop(EVENTS, None)
    os.environ.pop(ONLY, None)
    own = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != own]
    if others:
        os.environ["PYTHONPATH"] = os.pathsep.join(others)
    else:
        os.environ.pop("PYTHONPATH", None)


_only_path = os.environ.get(ONLY, "")
_pipe = Pipe(os.environ[EVENTS]) if EVENTS in os.environ else None
if _pipe is not None:
    _pipe.dump_stack_on_signal()  # before a conftest, which may hang
