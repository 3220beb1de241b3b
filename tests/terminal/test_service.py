"""The special desks behind the daemon's socket: the same methods, arguments and answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dari.daemon.client import DaemonClient
from dari.daemon.paths import DaemonPaths
from dari.daemon.server import DaemonServer
from dari.errors import NeedsApproval, NotFound
from dari.terminal.api.workflow import WorkflowStep
from dari.terminal.service import TerminalService, daemon_methods, remote_service
from tests.support.terminal_service import house_in
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("own_home")


@asynccontextmanager
async def far_service(home: Path) -> AsyncIterator[TerminalService]:
    async with house_in(home) as house:
        daemon = DaemonServer(DaemonPaths("cruxd", home / "run"), daemon_methods(house.service))
        async with daemon:
            client = DaemonClient(daemon.paths, "cli")
            try:
                yield remote_service(client)
            finally:
                await client.close()


async def test_each_api_answers_from_afar_as_it_does_here(tmp_path: Path) -> None:
    async with far_service(tmp_path) as far:
        await far.commands.execute("""echo '{"a": 1}'""")
        assert (await far.output_analysis.parse()).value == {"a": 1}
        assert (await far.output_analysis.detect_intent()).exit_code == 0
        taken = await far.output_analysis.capture()
        assert (await far.output_analysis.visual_diff(taken.capture_id)).is_same
        copied = await far.clipboard.copy("words")
        assert (await far.clipboard.history()).entries[0].id == copied.id
        assert (await far.clipboard.paste(clip_id=copied.id)).text == "words"
        await far.commands.send_keys("C-u")
        assert (await far.input_method.type_with_ime("gksrmf")).committed == "한글"
        await far.commands.send_keys("C-u")
        context = await far.contexts.inject(env={"A": "1"}, expires_after_commands=3)
        assert (await far.contexts.list_contexts()).contexts == [context]
        assert (await far.contexts.remove(context.context_id)).names == ["A"]
        start = await far.streams.begin(command="echo streamed")
        news = await far.streams.follow(start.pane_id, start.mark, start.command_id)
        assert news.events[0].text == "streamed\n"
        done = await far.workflow.coordinate([WorkflowStep(pane="other", command="echo step")])
        assert (done.success, done.steps[0].output) == (True, "step")
        assert (await far.workspaces.load_workspace("agent-team-3", run=False)).success
        snapshot = await far.snapshots.create("far")
        assert (await far.snapshots.list_snapshots()).snapshots[0].snapshot_id == snapshot.snapshot_id


async def test_errors_come_from_afar_as_what_they_are(tmp_path: Path) -> None:
    async with far_service(tmp_path) as far:
        with pytest.raises(NotFound) as unknown:
            await far.output_analysis.parse("77")
        assert "crux_list_panes" in unknown.value.hint
        with pytest.raises(NeedsApproval) as need:
            await far.workflow.coordinate([WorkflowStep(pane="a", command="sudo -n true")])
        assert "sudo -n true" in need.value.message


async def test_a_client_that_leaves_ends_its_steps(tmp_path: Path) -> None:
    async with far_service(tmp_path) as far:
        script = "sh -c 'trap \"touch ended; exit\" INT; touch begun; while :; do sleep 0.05; done'"
        call = asyncio.create_task(far.workflow.coordinate([WorkflowStep(pane="w", command=script)]))
        await until((tmp_path / "begun").exists)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until((tmp_path / "ended").exists)
