"""Topics and tools of the Terminals page, with a real cruxd behind them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest

from dari.console.backends import ConsoleBackends
from dari.console.live import TopicOptions
from dari.console.tools.terminals import ConsoleTerminalTools
from dari.console.topics.panes import PanesEvent, follow_pane, follow_panes
from dari.core.scopes import ADMIN
from dari.core.tool import tools_of
from dari.daemon.lock import FileLock
from dari.daemon.paths import DaemonPaths
from dari.errors import DariError, NeedsApproval, NotFound, Unavailable
from dari.terminal.api.watch import TypedPiece
from dari.terminal.daemon import cruxd_client
from dari.terminal.paths import CruxPaths
from dari.terminal.service import TerminalService, remote_service
from tests.support.cruxd import cruxd
from tests.support.panes import Gate
from tests.support.terminal_service import queue_here
from tests.support.waiting import until

E = TypeVar("E")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CRUX_SOCKET", "CRUX_CONFIG", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    monkeypatch.setenv("SHELL", "/bin/bash")
    (tmp_path / ".bashrc").write_text("PS1='$ '\n")


def _backends() -> ConsoleBackends:
    def terminal(starts: bool) -> TerminalService:
        return remote_service(cruxd_client(CruxPaths(), "app", starts=starts, keep=False))

    return cast(ConsoleBackends, SimpleNamespace(approvals=queue_here(), terminal=terminal))


async def _until(events: AsyncIterator[E], holds: Callable[[E], object]) -> E:
    async with asyncio.timeout(30):
        async for event in events:
            if holds(event):
                return event
    raise AssertionError("the topic ended")


async def test_a_pane_is_followed_and_typed_into_as_a_person() -> None:
    backends = _backends()
    tools = ConsoleTerminalTools(backends)
    async with cruxd():
        pane = (await tools.open()).pane_id
        frames = cast(Any, follow_pane(backends, pane, TopicOptions()))
        first = await anext(frames)
        assert first.is_whole
        await tools.type(pane, [TypedPiece(text="echo by''hand"), TypedPiece(key="Enter")])
        block = await _until(frames, lambda frame: any(not one.is_running for one in frame.blocks))
        assert block.blocks[-1].typists[0].kind == "person"
        command = await tools.command(block.blocks[-1].id)
        assert command.output.strip() == "byhand"
        assert (await tools.search(pane, "byhand")).hits
        await tools.hand_back(pane)
        handed = await _until(frames, lambda frame: frame.facts is not None and frame.facts.holder is None)
        assert handed.facts is not None
        await backends.terminal(False).panes.close_pane(pane)
        await _until(frames, lambda frame: frame.is_over)
        with pytest.raises(StopAsyncIteration):
            await anext(frames)


@contextmanager
def _as_hub() -> Iterator[None]:
    """This process holds the hub's lock: only the hub is believed about whose call it passes on."""
    hub = DaemonPaths("bridge", lock_name="host.lock")
    Path(hub.lock_text).parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(hub.lock_text)
    assert lock.try_acquire()
    try:
        yield
    finally:
        lock.release()


async def test_the_name_of_the_hubs_client_reaches_the_pane() -> None:
    from dari.daemon.caller_scopes import pass_on_call_of

    backends = _backends()
    async with cruxd(), cruxd_client(CruxPaths(), "mcp") as client:
        with _as_hub(), pass_on_call_of("mcp:claude-code"):
            pane = (await remote_service(client).commands.execute("true")).pane_id
        frames = cast(Any, follow_pane(backends, pane, TopicOptions()))
        frame = await _until(frames, lambda each: each.blocks)
        assert (frame.blocks[0].typists[0].kind, frame.blocks[0].typists[0].name) == ("agent", "claude-code")
        await frames.aclose()


async def test_the_list_follows_the_daemon_through_its_end_and_its_next_start() -> None:
    backends = _backends()
    events = cast(Any, follow_panes(backends, "", TopicOptions()))
    assert not (await anext(events)).is_running
    async with cruxd() as served:
        await served.service.panes.spawn_pane(name="first")
        seen: PanesEvent = await _until(events, lambda event: event.panes)
        assert seen.panes[0].name == "first"
        frames = cast(Any, follow_pane(backends, seen.panes[0].id, TopicOptions()))
        await anext(frames)
        served.kill()
        with pytest.raises(Unavailable):
            await _until(frames, lambda frame: False)
        await _until(events, lambda event: not event.is_running)
    async with cruxd() as served:
        await served.service.panes.spawn_pane(name="second")
        seen = await _until(events, lambda event: event.panes)
        assert seen.panes[0].name == "second"
        await events.aclose()


async def test_calls_that_wait_for_a_person_are_shown_at_their_pane() -> None:
    backends = _backends()
    async with cruxd() as served:
        pane = (await served.service.panes.spawn_pane()).id
        events = cast(Any, follow_panes(backends, "", TopicOptions()))
        await _until(events, lambda event: event.panes)
        with pytest.raises(NeedsApproval):
            await backends.approvals.queue.ask(
                _call({"command": "rm -rf /srv", "pane_id": ""}), wait_s=0, lifetime_s=60
            )
        waiting = (await _until(events, lambda event: event.waiting)).waiting
        assert (waiting[0].pane_id, waiting[0].client) == (pane, "claude")
        await events.aclose()


def _call(arguments: dict[str, Any]) -> Any:
    from dari.core.approvals import ProposedCall

    return ProposedCall(
        server="crux", tool="command/execute", arguments=arguments, who="mcp:claude", client="claude", message="rm"
    )


async def test_a_pane_that_is_not_there_ends_the_topic_with_the_reason() -> None:
    async with cruxd():
        frames = cast(Any, follow_pane(_backends(), "99", TopicOptions()))
        with pytest.raises(NotFound):
            await anext(frames)


async def test_the_daemon_is_not_started_by_looking() -> None:
    frames = cast(Any, follow_pane(_backends(), "1", TopicOptions()))
    with pytest.raises(DariError):
        await anext(frames)
    assert not CruxPaths().socket.exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "sh"])
async def test_lines_that_a_person_enters_before_the_first_prompt_are_in_the_audit_log(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (path := shutil.which(shell)) is None:
        pytest.skip(f"{shell} is not on this machine")
    gate = Gate(tmp_path)
    monkeypatch.setenv("SHELL", path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    gate.hold_start(tmp_path)
    if shell == "sh":
        (tmp_path / ".profile").write_text(f"{gate.command}\n")
    tools = ConsoleTerminalTools(_backends())
    async with cruxd():
        pane = (await tools.open()).pane_id
        await gate.reached()
        await tools.type(pane, [TypedPiece(text="echo typed-line"), TypedPiece(key="Enter")])
        gate.let_on()
        folder = tmp_path / "dari"

        def recorded() -> bool:
            return any(b"typed-line" in path.read_bytes() for path in folder.rglob("*.jsonl*") if path.is_file())

        await until(recorded, lambda: [str(path) for path in folder.rglob("*")])


def test_every_tool_is_for_people_and_keys_are_not_recorded() -> None:
    tools = {tool.name: tool for tool in tools_of(ConsoleTerminalTools(_backends()))}
    assert {tool.scope for tool in tools.values()} == {ADMIN}
    assert not tools["dari_terminal_type"].is_recorded
    assert tools["dari_terminal_take_over"].is_recorded
