"""What an agent could try to approve its own calls: each attempt is refused, and each is in the audit log.

A real terminal daemon and the hub that it starts. The person is this process; the agent is a shell in a pane, a program
with the agent's token, or a program below the one that started an MCP server of ours.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dari.cli.crux.line import Line
from dari.cli.hub.paths import BridgePaths
from dari.core.audit.query import query
from dari.core.audit.record import AuditRecord
from dari.daemon.client import DaemonClient
from dari.daemon.paths import DaemonPaths
from dari.errors import DariError, NeedsApproval
from dari.terminal.paths import CruxPaths
from tests.support.crux_command import Crux, crux_in

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="panes are recognised by what /proc shows"),
]
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def crux() -> Iterator[Crux]:
    with TemporaryDirectory(prefix="attack-") as home, crux_in(Path(home)) as made:
        yield made


def asked(crux: Crux, command: str) -> str:
    """The id of the approval that this command waits for."""
    refused = crux("exec", command)
    found = re.search(r"crux approvals approve (\w+)", refused.err)
    assert refused.code == 125 and found is not None, refused
    return found[1]


def waiting(crux: Crux) -> set[str]:
    return {each["id"] for each in crux.json("approvals")["waiting"]}


def records() -> list[AuditRecord]:
    return query(BridgePaths().state_dir / "audit", outcome="denied", limit=1000)


async def over_ipc(daemon: DaemonPaths, method: str, **params: object) -> object:
    async with DaemonClient(daemon, "mcp") as client:
        return await client.call(method, params)


def in_pane(crux: Crux, script: str) -> str:
    """What a shell in a pane prints for this script. It is typed as raw bytes: an agent that got past the policy."""
    said = crux.home / "said"
    os.mkfifo(said)
    try:
        (crux.home / "attack.sh").write_text(f"{{ {script}\n}} > {said} 2>&1 </dev/null\n")
        pane = crux.json("list")["panes"][0]["id"]
        line = Line(CruxPaths.of_environment())
        try:
            typed = base64.b64encode(f". {crux.home}/attack.sh\r".encode()).decode()
            line.call("crux:pane/write", data=typed, pane_id=pane)
        finally:
            line.close()
        return said.read_text()  # until the last process of the attack has ended
    finally:
        said.unlink()


def test_the_agents_token_approves_nothing_over_ipc(crux: Crux) -> None:
    id = asked(crux, "rm one")
    before = len(records())
    hub, terminal = BridgePaths(), CruxPaths.of_environment()
    for daemon, method, params in (
        (hub, "approvals.approve", {"id": id}),
        (hub, "bridge.approve", {"id": id}),
        (terminal, "crux:approval/answer", {"question_id": id}),
    ):
        with pytest.raises(DariError) as refused:
            asyncio.run(over_ipc(daemon, method, is_approved=True, **params))
        assert refused.value.name == "insufficient_scope"
    with pytest.raises(DariError) as refused:
        asyncio.run(over_ipc(hub, "approvals.relay", id=id, is_approved=True, by="me"))
    assert refused.value.name == "denied"
    assert id in waiting(crux)
    assert len(records()) >= before + 4


def test_a_message_that_is_sent_back_is_no_approval(crux: Crux) -> None:
    def execute(**more: object) -> object:
        call = over_ipc(CruxPaths.of_environment(), "crux:command/execute", command="rm two", **more)
        return asyncio.run(call)

    with pytest.raises(NeedsApproval) as first:
        execute()
    message = first.value.message.rpartition(" (approval")[0]
    for echoed in ({"approved": message}, {"approval": first.value.approval_id}, {"message": message}):
        with pytest.raises(NeedsApproval):
            execute(**echoed)
    held = query(BridgePaths().state_dir / "audit", outcome="held", limit=100)
    assert len([each for each in held if first.value.approval_id in each.error]) == 4


ATTACKS = {
    "plain": "{bin}/crux approvals approve {id}",
    "variables": "A=approvals; B=approve; {bin}/crux $A $B {id}",
    "glob": "{bin}/cru? approvals approve {id}",
    "link": "ln -sf {bin}/crux ./x; ./x approvals approve {id}",
    "other command": "{bin}/dari approvals approve {id}",
    "python -c": '{python} -c \'from dari.cli.approvals import main; main(["approve", "{id}"])\'',
    "xargs": "echo {id} | xargs {bin}/dari approvals approve",
    "cleared environment": "env -i HOME=$HOME DARI_HOME=$DARI_HOME {bin}/dari approvals approve {id}",
    "setsid": "setsid -w env -i HOME=$HOME DARI_HOME=$DARI_HOME {bin}/dari approvals approve {id}",
    "double fork": "(setsid env -i HOME=$HOME DARI_HOME=$DARI_HOME {bin}/dari approvals approve {id} &"
    " echo $! > pid); wait; while kill -0 $(cat pid) 2>/dev/null; do :; done",
    "nohup": "nohup {bin}/dari approvals approve {id} & wait",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_shell_in_a_pane_approves_nothing(crux: Crux, attack: str) -> None:
    id = asked(crux, f"rm '{attack}'")
    before = len(records())
    said = in_pane(crux, ATTACKS[attack].format(id=id, bin=BIN, python=sys.executable))
    assert id in waiting(crux), said
    after = records()
    assert len(after) > before, said
    assert any("pane" in str(each.detail.get("reason")) for each in after[: len(after) - before])


def test_an_approval_is_used_once_and_only_for_its_arguments(crux: Crux) -> None:
    one, two = crux.home / "first", crux.home / "second"
    one.touch()
    two.touch()
    id = asked(crux, f"rm {one}")
    crux.ok("approvals", "approve", id)
    assert crux("exec", f"rm {two}").code == 125
    assert two.exists()
    assert crux("exec", f"rm {one}").code == 0
    assert crux("approvals", "approve", id).code == 1  # it is used up
    assert crux("exec", f"rm {one}").code == 125


def test_a_program_below_the_host_of_a_live_mcp_server_approves_nothing(crux: Crux) -> None:
    import subprocess

    id = asked(crux, "rm host")
    before = len(records())
    host = (
        "import subprocess as s; "
        f"server = s.Popen([{str(BIN / 'crux-mcp-bridge')!r}], stdin=s.PIPE, stdout=s.DEVNULL); "
        f"s.run(['sh', '-c', {f'{BIN}/dari approvals approve {id}'!r}]); server.communicate()"
    )
    said = subprocess.run([sys.executable, "-c", host], capture_output=True, text=True, timeout=60, check=False)
    assert id in waiting(crux), said
    after = records()
    assert len(after) > before
    assert "MCP server" in str(after[0].detail.get("reason"))
    crux.ok("approvals", "deny", id)  # the host is gone, and this process is a person's again
