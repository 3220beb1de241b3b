"""When the time is over: the tests that ran, and the stack that faulthandler wrote."""

from __future__ import annotations

import re

from dari.codetools.testing.report import FailedTest, RunLog
from dari.codetools.testing.request import RunRequest

_FRAME = re.compile(r'^  File "(?P<path>.+)", line (?P<line>\d+) in (?P<name>.+)$', re.MULTILINE)


MAX_BLAMED = 5


def blame_running(request: RunRequest, log: RunLog) -> None:
    """Every test that ran when the time was over is a failure: it may be the one that hangs."""
    for test in list(log.running)[:MAX_BLAMED]:
        log.fail(FailedTest(test, _message(request), is_error=True))


def blame_stack(request: RunRequest, log: RunLog, stack: str) -> None:
    """The running test becomes a failure of its own, with its frames in the project, outermost first."""
    running = next(iter(log.running), "collection")
    frames = [found for found in _FRAME.finditer(stack) if request.is_inside(found["path"])]
    shown = [f"{request.show(one['path'])}:{one['line']}: in {one['name']}" for one in reversed(frames)]
    log.fail(
        FailedTest(
            id=running,
            message=_message(request),
            path=request.show(frames[0]["path"]) if frames else "",
            line=int(frames[0]["line"]) if frames else 0,
            traceback="\n".join(shown),
            is_error=True,
        )
    )


def _message(request: RunRequest) -> str:
    return f"still running when the time limit of {round(request.timeout_s, 1):g} s passed"
