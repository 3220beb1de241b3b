"""`dari doctor`: the checks of the built-in toolkit, for a person."""

from __future__ import annotations

import sys

from dari import app
from dari.system.service import SystemService, worst_status
from dari.system.tools import DoctorReport

_MARKS = {"ok": "ok  ", "warning": "warn", "failed": "FAIL"}


def run_doctor(*, as_json: bool) -> int:
    """Print every check; exit 1 when one failed."""
    checks = SystemService(app.token_path(), app.socket_path(), app.DEFAULT_PORT, app.further_tokens).checks()
    status = worst_status(checks)
    if as_json:
        from dari.rpc.codec import encode

        sys.stdout.write(encode(DoctorReport(status, checks)).decode() + "\n")
    else:
        for check in checks:
            print(f"{_MARKS[check.status]}  {check.name:<9} {check.found}")
            if check.hint:
                print(f"      hint: {check.hint}")
    return 1 if status == "failed" else 0
