"""The stack that faulthandler wrote when the time was over: where the test was."""

from __future__ import annotations

import re

from dari.codetools.testing.report import FailedTest, RunLog
from dari.codetools.testing.request import RunRequest

_FRAME = re.compile(r'^  File "(?P<path>.+)", line (?P<line>\d+) in (?P<name>.+)$', re.MULTILINE)


def blame_stack(request: RunRequest, log: RunLog, stack: str) -> None:
    """The running test becomes a failure of its own, with its frames in the project, outermost first."""
    running = next(iter(log.running), None)
    if running is None:
        return
    frames = [found for found in _FRAME.finditer(stack) if request.is_inside(found["path"])]
    shown = [f"{request.show(one['path'])}:{one['line']}: in {one['name']}" for one in reversed(frames)]
    log.fail(
        FailedTest(
            id=running,
            message=f"still running when the time limit of {round(request.timeout_s, 1):g} s passed",
            path=request.show(frames[0]["path"]) if frames else "",
            line=int(frames[0]["line"]) if frames else 0,
            traceback="\n".join(shown),
            is_error=True,
        )
    )
