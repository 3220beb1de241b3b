"""What people decide is carried out and written down, whether they sit at a shell or at a page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dari.bridge.decisions import Decisions
from dari.bridge.service import Bridge
from dari.core.audit.query import query
from dari.core.scopes import ALL_SCOPES
from dari.daemon.caller_scopes import limit_scopes, serve_own_process
from dari.errors import Conflict, DariError, Denied, InvalidInput, NotFound, Unavailable
from tests.support.bridge import ME, Place, lab


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    return Place(tmp_path, lab(tmp_path, tools={"confirm": ["greet"]}))


@pytest.fixture(autouse=True)
def at_a_terminal() -> Iterator[None]:
    """The tests decide as a command does that runs in this process."""
    with serve_own_process(ALL_SCOPES):
        yield


def recorded(place: Place) -> list[tuple[str, str, str, dict[str, Any]]]:
    found = query(place.root / "state/audit", kind="decision")
    return [(one.who, one.server, one.tool, one.detail) for one in reversed(found)]


async def waiting(place: Place, bridge: Bridge) -> tuple[str, asyncio.Task[bytes]]:
    """A call that waits for a person: the id of its question, and its task."""
    asked = asyncio.Event()
    stop = bridge.approvals.subscribe(lambda told: asked.set())
    upstream = bridge.view(place.around()).upstream("lab")

    async def greet() -> bytes:
        return bytes(await upstream.call_tool("greet", b"{}", ME))

    call = asyncio.create_task(greet())
    await asked.wait()
    stop()
    (question,) = bridge.approvals.pending()
    return question.id, call


async def held(place: Place, bridge: Bridge) -> None:
    """Two tools that changed since they were pinned."""
    upstream = bridge.view(place.around()).upstream("lab")
    shown = [{"name": name, "inputSchema": {"type": "object"}} for name in ("one", "two")]
    (place.root / "tools.json").write_text(json.dumps(shown))
    await upstream.tools(fresh=True)
    (place.root / "tools.json").write_text(json.dumps([{**tool, "description": "new"} for tool in shown]))
    await upstream.tools(fresh=True)
    assert len(bridge.pins.held("lab")) == 2


async def test_a_call_that_is_let_through_is_recorded_with_its_caller(place: Place) -> None:
    async with place.bridge() as bridge:
        id, call = await waiting(place, bridge)
        Decisions(bridge, "ann").let_through(id, for_session=True)
        assert b"hello" in await call
    ((who, server, tool, detail),) = recorded(place)
    assert (who, server, tool) == ("ann", "lab", "greet")
    assert detail == {"event": "call approved", "id": id, "caller": ME.who, "for_session": True}


async def test_a_denial_is_recorded_with_its_reason(place: Place) -> None:
    async with place.bridge() as bridge:
        id, call = await waiting(place, bridge)
        Decisions(bridge, "ann").deny(id, "not now")
        with pytest.raises(Denied):
            await call
    ((who, _, _, detail),) = recorded(place)
    assert who == "ann" and detail["event"] == "call denied" and detail["reason"] == "not now"


async def test_each_item_that_is_approved_or_rejected_is_a_record(place: Place) -> None:
    async with place.bridge() as bridge:
        await held(place, bridge)
        one, two = bridge.pins.held("lab")
        assert Decisions(bridge, "ann").decide_on([one], approves=False) == 1
        assert Decisions(bridge, "bob").approve("lab", "tool", "two", two.digest) == 1
        assert [left.name for left in bridge.pins.held("lab")] == ["one"]
    told = [(who, tool, detail["event"], detail["new"]) for who, _, tool, detail in recorded(place)]
    assert told == [("ann", "one", "rejected", one.digest), ("bob", "two", "approved", two.digest)]


async def test_what_is_refused_is_not_recorded(place: Place) -> None:
    async with place.bridge() as bridge:
        await held(place, bridge)
        with pytest.raises(Conflict):
            Decisions(bridge, "ann").approve("lab", "tool", "one", "0" * 64)
        with pytest.raises(DariError):
            Decisions(bridge, "ann").let_through("nothing")
        assert len(bridge.pins.held("lab")) == 2
    assert [(one[3]["event"], one[3].get("id")) for one in recorded(place)] == [("refused", "nothing")]


async def test_one_content_seen_under_two_capability_profiles_is_one_decision(place: Place) -> None:
    from dari.bridge.trust.items import ServerListing

    async with place.bridge() as bridge:
        for profile in ("a", "b"):
            bridge.pins.review("lab", ServerListing(tools=[{"name": "one"}]), profile=profile)
        for profile in ("a", "b"):
            bridge.pins.review("lab", ServerListing(tools=[{"name": "one", "description": "x"}]), profile=profile)
        bridge.pins.review("lab", ServerListing(tools=[{"name": "one", "description": "y"}]), profile="c")
        seen = [one for one in bridge.pins.held("lab") if one.profile in "ab"]
        assert Decisions(bridge, "ann").decide_on(seen, approves=True) == 2
        assert [left.profile for left in bridge.pins.held("lab")] == ["c"]


async def test_forgotten_pins_are_recorded(place: Place) -> None:
    async with place.bridge() as bridge:
        await held(place, bridge)
        assert Decisions(bridge, "ann").forget("lab") >= 2
    assert [(who, detail["event"]) for who, _, _, detail in recorded(place)] == [("ann", "forgotten")]


async def test_what_cannot_be_recorded_is_not_decided(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place.bridge() as bridge:
        id, call = await waiting(place, bridge)
        await held(place, bridge)
        assert bridge.audit is not None

        def full() -> None:
            raise Unavailable("the disk is full", "")

        monkeypatch.setattr(bridge.audit, "check", full)
        ann = Decisions(bridge, "ann")
        for decide in (lambda: ann.let_through(id), lambda: ann.deny(id), lambda: ann.approve("lab")):
            with pytest.raises(Unavailable):
                decide()
        assert len(bridge.approvals.pending()) == 1 and len(bridge.pins.held("lab")) == 2
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)


async def test_what_a_server_changed_is_one_entry_of_the_queue_that_approves_exactly_that(place: Place) -> None:
    async with place.bridge() as bridge:
        service = bridge.approval_service
        await held(place, bridge)
        (entry,) = (await service.list_approvals()).waiting
        assert entry.server == "lab" and entry.arguments == {"items": ["tool one", "tool two"]}
        assert entry.expires_unix == 0 and bridge.approvals.pending() == []
        shown = await service.show(entry.id)
        assert any("+new" in line for change in shown.arguments["changes"] for line in change["diff"])
        with pytest.raises(InvalidInput):
            await service.approve(entry.id, for_session=True)
        assert (await service.approve(entry.id, by="ann")).state == "approved"
        assert bridge.pins.held("lab") == [] and service.pending() == []
        with pytest.raises(NotFound):
            await service.approve(entry.id, by="ann")
    told = [(who, tool, detail["event"]) for who, _, tool, detail in recorded(place)]
    assert told == [("ann", "one", "approved"), ("ann", "two", "approved"), ("cli", "", "refused")]


async def test_an_id_is_void_once_the_server_has_changed_again(place: Place) -> None:
    async with place.bridge() as bridge:
        await held(place, bridge)
        (entry,) = bridge.approval_service.pending()
        shown = [{"name": name, "description": "newer", "inputSchema": {"type": "object"}} for name in ("one", "two")]
        (place.root / "tools.json").write_text(json.dumps(shown))
        await bridge.view(place.around()).upstream("lab").tools(fresh=True)
        with pytest.raises(NotFound):
            await bridge.approval_service.approve(entry.id)
        (again,) = bridge.approval_service.pending()
        assert again.id != entry.id
        assert (await bridge.approval_service.deny(again.id, "no", "ann")).state == "denied"
        assert {one.rejected_by for one in bridge.pins.held("lab")} == {"ann"}
        assert bridge.approval_service.pending() == []


async def test_an_agent_neither_decides_on_a_change_nor_reads_it(place: Place) -> None:
    async with place.bridge() as bridge:
        await held(place, bridge)
        (entry,) = bridge.approval_service.pending()
        with limit_scopes({"read", "control"}):
            assert (await bridge.approval_service.show(entry.id)).arguments == {"items": ["tool one", "tool two"]}
            with pytest.raises(Denied):
                await bridge.approval_service.approve(entry.id)
        assert len(bridge.pins.held("lab")) == 2
    ((_, _, _, detail),) = recorded(place)
    assert detail["event"] == "refused" and detail["id"] == entry.id


async def test_a_projects_file_that_a_client_met_is_an_entry_until_it_is_trusted(place: Place) -> None:
    project = place.root / ".crewx/mcp.json"
    project.parent.mkdir()
    project.write_text(json.dumps({"version": "1", "servers": [{"id": "evil", "command": "sh", "args": ["-c", "x"]}]}))
    async with place.bridge() as bridge:
        service = bridge.approval_service
        assert service.pending() == []
        bridge.view(place.around())
        (entry,) = service.pending()
        assert entry.arguments["file"] == str(project) and entry.arguments["state"] == "unknown"
        (shown,) = (await service.show(entry.id)).arguments["servers"]
        assert (shown["command"], shown["args"]) == ("sh", ["-c", "x"])
        await service.deny(entry.id, "not mine", "ann")
        assert service.pending() == []
        project.write_text(project.read_text().replace('"x"', '"y"'))
        (changed,) = service.pending()
        assert changed.id != entry.id
        await service.approve(changed.id, by="ann")
        assert service.pending() == []
        assert bridge.view(place.around()).book.trust_state()[2].state == "trusted"
    told = [(who, detail["event"]) for who, _, _, detail in recorded(place)]
    assert told == [("ann", "trust refused"), ("ann", "trusted")]


async def test_a_no_to_a_projects_file_outlives_the_hub_and_ends_with_its_content(place: Place) -> None:
    project = place.root / ".crewx/mcp.json"
    project.parent.mkdir()
    project.write_text(json.dumps({"version": "1", "servers": [{"id": "evil", "command": "sh"}]}))
    async with place.bridge() as bridge:
        bridge.view(place.around())
        (denied,) = bridge.approval_service.pending()
        await bridge.approval_service.deny(denied.id, by="ann")
    async with place.bridge() as bridge:
        book, service = bridge.view(place.around()).book, bridge.approval_service
        assert service.pending() == [] and book.trust_state()[2].state == "unknown"
        with pytest.raises(NotFound):
            await service.approve(denied.id, by="agent")
        assert book.trust_state()[2].state == "unknown"
        content = project.read_text()
        project.write_text(content + "\n")
        (changed,) = service.pending()
        assert changed.id != denied.id
        project.write_text(content)
        path, sha256, _ = book.trust_state()
        Decisions(bridge, "ann").trust(book, path, sha256)  # `dari remote trust`: a person may change their mind
        assert book.trust_state()[2].state == "trusted"
    told = [(who, detail["event"]) for who, _, _, detail in recorded(place)]
    assert told == [("ann", "trust refused"), ("cli", "refused"), ("ann", "trusted")]
