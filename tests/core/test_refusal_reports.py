"""What only a person may do and was refused is recorded, whoever runs the hub."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dari.core.approval_service import ApprovalService, RefusalReporter
from dari.core.approvals import ApprovalQueue
from dari.core.audit.spool import SPOOL_FOLDER, read_spool, spooled
from dari.daemon.session import Refusal
from dari.errors import Denied
from tests.support.waiting import until

REFUSAL = Refusal("settings.listen", "cli", 4711, "process 4711 runs in a pane", b"{}")


class HubInPane(ApprovalService):
    """As `hub_client` finds it: its answers do not count."""

    def __init__(self) -> None:
        super().__init__(ApprovalQueue(redact=lambda value: value))

    async def report_refusal(self, daemon: str, method: str, principal: str, pid: int, reason: str) -> bool:
        raise Denied("the hub runs in a pane", "start it in a terminal of your own")


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Path]]:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    return lambda: spooled(tmp_path / "bridge" / SPOOL_FOLDER)


async def test_a_refusal_that_no_hub_can_record_waits_in_a_spool(spool: Callable[[], list[Path]]) -> None:
    RefusalReporter(HubInPane(), "crab")(REFUSAL)
    await until(lambda: bool(spool()) and bool(read_spool(spool()[0])))
    (record,) = read_spool(spool()[0])
    assert (record.kind, record.outcome, record.who) == ("decision", "denied", "cli")
    assert record.detail == {
        "event": "refused",
        "method": "settings.listen",
        "daemon": "crab",
        "pid": 4711,
        "reason": "process 4711 runs in a pane",
    }
