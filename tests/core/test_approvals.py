"""Calls that wait for a person: 30 s in silence, 270 s more once the caller is told."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from dari.bridge.upstream.tool_view import ConfirmPatterns
from dari.core.approvals import Approval, ApprovalEvent, ApprovalQueue, ProposedCall
from dari.errors import Conflict, Denied, NeedsApproval, NotFound, TimedOut, Unavailable
from tests.support.fake_clock import FakeClock, settled


class Asker:
    """Approvals with a clock that the test sets, and all that a listener was told."""

    def __init__(self, **more: Any) -> None:
        self.clock = FakeClock()
        self.slept_s = 0.0
        self.told: list[ApprovalEvent] = []
        self.approvals = ApprovalQueue(
            redact=lambda value: {"redacted": True}, clock=self.clock, now=lambda: self.clock.now + self.slept_s, **more
        )
        self.approvals.subscribe(self.told.append)

    def ask(
        self,
        arguments: object = None,
        *,
        who: str = "claude",
        session: str = "s1",
        pid: int = 0,
        identity: str = "",
        **more: Any,
    ) -> Coroutine[Any, Any, Approval]:
        call = ProposedCall(
            server="fs",
            tool="delete",
            arguments=arguments or {"path": "/a"},
            who=who,
            session=session,
            asker_pid=pid,
            identity=identity,
        )
        return self.approvals.ask(call, **more)

    async def asked(self, arguments: object = None, **more: Any) -> tuple[asyncio.Task[Approval], Approval]:
        task = asyncio.create_task(self.ask(arguments, **more))
        await settled()
        return task, self.approvals.pending()[-1]

    @property
    def changes(self) -> list[str]:
        return [told.change for told in self.told]


async def test_an_approved_call_goes_on() -> None:
    asker = Asker()
    task, question = await asker.asked()
    assert (question.server, question.tool, question.who, question.arguments) == (
        "fs",
        "delete",
        "claude",
        {"redacted": True},
    )
    asker.approvals.approve(question.id, by="ann")
    assert (await task).by == "ann"
    assert asker.approvals.pending() == [] and asker.clock.timers == 0
    assert asker.changes == ["asked", "approved"]


async def test_a_denied_call_ends_with_the_reason() -> None:
    asker = Asker()
    task, question = await asker.asked()
    asker.approvals.deny(question.id, by="ann", reason="not on a Friday")
    with pytest.raises(Denied, match=r"ann.*fs/delete") as caught:
        await task
    assert caught.value.hint == "not on a Friday"


async def test_after_30_s_the_caller_is_told_and_after_270_more_it_is_over() -> None:
    asker = Asker()
    waiting: list[Approval] = []
    task, question = await asker.asked(on_waiting=waiting.append)
    asker.clock.advance(29.9)
    assert waiting == []
    asker.clock.advance(0.1)
    assert waiting == [question] and asker.changes == ["asked", "waiting"]
    asker.clock.advance(269.9)
    await settled()
    assert not task.done()
    asker.clock.advance(0.1)
    with pytest.raises(TimedOut, match=r"fs/delete.*300 s"):
        await task
    assert asker.changes == ["asked", "waiting", "expired"]
    assert asker.approvals.pending() == [] and asker.clock.timers == 0


async def test_an_answer_in_the_second_phase_still_counts() -> None:
    asker = Asker()
    task, question = await asker.asked()
    asker.clock.advance(200)
    asker.approvals.approve(question.id, by="ann")
    assert (await task).state == "approved"


async def test_a_caller_of_short_patience_is_sent_away_and_gets_the_answer_when_it_calls_again() -> None:
    asker = Asker()
    task, question = await asker.asked(wait_s=0)
    with pytest.raises(NeedsApproval, match=question.id) as caught:
        await task
    assert f"approvals approve {question.id}" in caught.value.hint
    asker.approvals.approve(question.id, by="ann")
    answer = await asker.ask(wait_s=0)
    assert answer.by == "ann"
    assert asker.approvals.pending() == []
    assert asker.changes == ["asked", "waiting", "approved"]


async def test_a_call_made_again_before_the_answer_joins_its_question() -> None:
    asker = Asker()
    task, question = await asker.asked(wait_s=0)
    await asyncio.gather(task, return_exceptions=True)
    again, same = await asker.asked(wait_s=0)
    assert same.id == question.id
    with pytest.raises(NeedsApproval, match=question.id):
        await again
    asker.approvals.deny(question.id, by="ann")
    last = asker.ask(wait_s=0)
    with pytest.raises(Denied):
        await last


async def test_an_approval_that_nobody_fetches_does_not_last() -> None:
    asker = Asker()
    task, question = await asker.asked(wait_s=0)
    await asyncio.gather(task, return_exceptions=True)
    asker.approvals.approve(question.id, by="ann")
    asker.clock.advance(300)
    task, fresh = await asker.asked()
    assert fresh.id != question.id
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_one_approval_lets_one_call_through() -> None:
    asker = Asker()
    first, question = await asker.asked()
    second, other = await asker.asked()
    assert question.id != other.id
    asker.approvals.approve(question.id, by="ann")
    await first
    await settled()
    assert not second.done()
    asker.approvals.deny(other.id, by="ann")
    with pytest.raises(Denied):
        await second


async def test_other_arguments_or_another_caller_are_another_question() -> None:
    asker = Asker()
    task, question = await asker.asked(wait_s=0)
    await asyncio.gather(task, return_exceptions=True)
    asker.approvals.approve(question.id, by="ann")
    for more in ({"arguments": {"path": "/b"}}, {"who": "other"}, {"session": "s2"}, {"pid": 7}):
        task, fresh = await asker.asked(**more)
        assert fresh.id != question.id and not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_approval_for_the_session_covers_this_tool_of_this_session_until_it_ends() -> None:
    asker = Asker()
    task, question = await asker.asked()
    asker.approvals.approve(question.id, by="ann", for_session=True)
    await task
    answer = await asker.ask({"path": "/other"})
    assert answer.for_session and answer.by == "ann"
    assert not asker.approvals.is_granted("s1", "fs", "write")
    assert not asker.approvals.is_granted("s2", "fs", "delete")
    asker.approvals.end_sessions(lambda session: session == "s1")
    assert not asker.approvals.is_granted("s1", "fs", "delete")


async def test_an_approval_for_a_session_is_good_only_in_the_process_that_asked() -> None:
    asker = Asker()
    task, question = await asker.asked(pid=7)
    asker.approvals.approve(question.id, by="ann", for_session=True)
    await task
    assert (await asker.ask({"path": "/other"}, pid=7)).for_session
    for pid in (0, 8):  # another process that gives the same name for its session
        with pytest.raises(NeedsApproval):
            await asker.ask({"path": "/other"}, pid=pid, wait_s=0)


async def test_an_approval_for_a_session_is_not_for_another_program_behind_the_same_name() -> None:
    asker = Asker()
    task, question = await asker.asked(identity="program-1")
    asker.approvals.approve(question.id, by="ann", for_session=True)
    await task
    assert (await asker.ask({"path": "/other"}, identity="program-1")).for_session
    with pytest.raises(NeedsApproval):
        await asker.ask({"path": "/other"}, identity="program-2", wait_s=0)


async def test_a_session_ends_in_the_process_that_has_it_and_in_no_other() -> None:
    asker = Asker()
    for pid in (0, 7, 8):
        task, question = await asker.asked(pid=pid)
        asker.approvals.approve(question.id, by="ann", for_session=True)
        await task
    asker.approvals.end_sessions(lambda session: session == "s1", 7)
    assert [asker.approvals.is_granted("s1", "fs", "delete", pid) for pid in (0, 7, 8)] == [True, False, True]
    asker.approvals.end_sessions(lambda session: session == "s1")
    assert [asker.approvals.is_granted("s1", "fs", "delete", pid) for pid in (0, 7, 8)] == [False, False, True]


async def test_an_approval_that_a_sleeping_machine_slept_through_has_expired() -> None:
    """Timers do not run meanwhile, the time of day does."""
    asker = Asker(long_wait_s=10)
    for is_answered in (False, True):
        task, question = await asker.asked(wait_s=0)
        await asyncio.gather(task, return_exceptions=True)
        if is_answered:
            asker.approvals.approve(question.id, by="ann")
        asker.slept_s += 3600
        with pytest.raises(Conflict):
            asker.approvals.approve(question.id, by="ann")
        with pytest.raises(NeedsApproval) as again:
            await asker.ask(wait_s=0)
        assert again.value.approval_id != question.id
        asker.approvals.close()


async def test_two_calls_at_the_moment_of_one_approval_do_not_share_it() -> None:
    asker = Asker()
    task, question = await asker.asked(wait_s=0)
    await asyncio.gather(task, return_exceptions=True)
    asker.approvals.approve(question.id, by="ann")
    both = await asyncio.gather(*(asker.ask(wait_s=0) for _ in range(2)), return_exceptions=True)
    assert sorted(type(one) is Approval for one in both) == [False, True]
    assert any(isinstance(one, NeedsApproval) and one.approval_id != question.id for one in both)


async def test_without_a_session_nothing_is_approved_for_it() -> None:
    asker = Asker()
    task, question = await asker.asked(session="")
    asker.approvals.approve(question.id, by="ann", for_session=True)
    await task
    assert not asker.approvals.is_granted("", "fs", "delete")


async def test_a_caller_who_leaves_takes_its_question_along() -> None:
    asker = Asker()
    task, question = await asker.asked()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled() and asker.approvals.pending() == [] and asker.clock.timers == 0
    assert asker.changes == ["asked", "withdrawn"]
    with pytest.raises(Conflict, match="withdrawn"):
        asker.approvals.approve(question.id, by="ann")


async def test_the_end_of_a_session_ends_what_it_asked() -> None:
    asker = Asker()
    task, _ = await asker.asked()
    asker.approvals.end_sessions(lambda session: session == "s1")
    with pytest.raises(Unavailable, match="withdrawn"):
        await task
    assert asker.clock.timers == 0


async def test_a_second_answer_is_a_conflict_and_an_unknown_id_is_not_found() -> None:
    asker = Asker()
    task, question = await asker.asked()
    asker.approvals.approve(question.id, by="ann")
    with pytest.raises(Conflict, match="approved"):
        asker.approvals.deny(question.id, by="bob")
    await task
    with pytest.raises(Conflict, match="approved"):
        asker.approvals.deny(question.id, by="bob")
    with pytest.raises(NotFound):
        asker.approvals.approve("nope", by="ann")


async def test_the_queue_has_a_bound() -> None:
    asker = Asker(max_waiting=2)
    tasks = [(await asker.asked({"n": at}))[0] for at in range(2)]
    with pytest.raises(Unavailable, match="2"):
        await asker.ask({"n": 3})
    asker.approvals.close()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [Unavailable] * 2
    assert asker.clock.timers == 0


async def test_a_listener_that_left_is_told_no_more() -> None:
    asker = Asker()
    told: list[ApprovalEvent] = []
    leave = asker.approvals.subscribe(told.append)
    leave()
    task, question = await asker.asked()
    asker.approvals.approve(question.id, by="ann")
    await task
    assert told == []


async def test_the_usual_clock_is_the_event_loop() -> None:
    approvals = ApprovalQueue(redact=lambda value: value, first_wait_s=0.005, long_wait_s=0.005)
    with pytest.raises(TimedOut):
        await approvals.ask(ProposedCall(server="fs", tool="delete", arguments={}, who="claude"))


@pytest.mark.parametrize(
    ("patterns", "named", "not_named"),
    [
        (["*delete*"], ["delete", "deleteFile", "bulk_Delete_all"], ["del", "write"]),
        (["write_file", "move_?"], ["write_file", "move_a"], ["write_files", "move_ab"]),
        (["*"], ["anything", "with\nline"], []),
        ([], [], ["delete"]),
        (["[ab]*"], ["a1", "b"], ["c"]),
    ],
)
def test_confirm_patterns_are_globs_over_the_whole_name(
    patterns: list[str], named: list[str], not_named: list[str]
) -> None:
    confirming = ConfirmPatterns(patterns)
    for _ in range(2):
        assert [name for name in named if not confirming.names(name)] == []
        assert [name for name in not_named if confirming.names(name)] == []
