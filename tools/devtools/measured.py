"""Run by every Python of .venv while `./dev coverage` lasts: measures this process, in silence where it cannot.

Most processes of a run live for a tenth of a second, and `import coverage` takes longer than that. So this loads its
tracer alone, and writes what the tracer gathered; `measured_parts.py` joins the parts.
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
import threading
from importlib.machinery import ExtensionFileLoader, ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

_TRACER = "coverage.tracer"
_OURS = "dari_measured_tracer"
"""Its name here: a test that imports coverage loads the other one as a part of its package."""
# ruff: noqa: F821 — MEASURING is set by the line in .venv that runs this
_pid, _source, _tracer_file, _folder, _unfinished = MEASURING  # type: ignore[name-defined]


def _is_running() -> bool:
    try:
        os.kill(_pid, 0)
    except ProcessLookupError:
        return False  # that run was killed and could not clean up
    except OSError:
        pass
    return True


class _Measuring:
    def __init__(self, tracers: Any) -> None:
        self._tracers = tracers
        self._arcs: dict[str, set[int]] = {}
        self._files: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._started: list[Any] = []

    def start(self) -> Any:
        """Of one thread; what is called with its first event."""
        tracer = self._tracers.CTracer()
        tracer.data = self._arcs
        tracer.lock_data, tracer.unlock_data = self._lock.acquire, self._lock.release
        tracer.trace_arcs = True
        tracer.should_trace, tracer.should_trace_cache = self._describe, self._files
        tracer.warn = lambda *_, **__: None
        tracer.concur_id_func = tracer.should_start_context = None
        tracer.file_tracers = {}
        self._started.append(tracer)
        return tracer.start()

    def start_in_thread(self, frame: FrameType, event: str, argument: Any) -> Any:
        sys.settrace(None)
        return self.start()(frame, event, argument)

    def _describe(self, filename: str, frame: FrameType) -> Any:
        described = self._tracers.CFileDisposition()
        described.original_filename = described.canonical_filename = described.source_filename = filename
        described.trace = filename.startswith(_source)
        described.reason = ""
        described.file_tracer = None
        described.has_dynamic_filename = False
        return described

    def save(self) -> None:
        threading.settrace(None)
        for tracer in self._started:
            tracer.stop()
        try:
            name = f"{os.getpid()}-{os.urandom(6).hex()}"
            with open(f"{_unfinished}/{name}", "wb") as file, self._lock:
                marshal.dump(self._arcs, file)
            os.rename(f"{_unfinished}/{name}", f"{_folder}/{name}")
        except Exception:  # a process that is confined, or another user's, cannot write there
            pass


def _measure() -> None:
    if "DARI_UNMEASURED" in os.environ or not _is_running():  # a test that counts what a command imports
        return
    if _OURS in sys.modules:
        return  # the folder of packages was added a second time
    try:
        loader = ExtensionFileLoader(_TRACER, _tracer_file)
        tracers = sys.modules[_OURS] = loader.create_module(ModuleSpec(_TRACER, loader, origin=_tracer_file))
        loader.exec_module(tracers)
    except ImportError:
        return
    measuring = _Measuring(tracers)
    measuring.start()
    threading.settrace(measuring.start_in_thread)
    atexit.register(measuring.save)


_measure()
