"""What is kept of a server's life for people: bounded, in order, without secrets."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import cast

from dari.bridge.config.secret import Mask
from dari.bridge.upstream.journal import MAX_EVENTS, ServerJournal
from dari.core.context import LoggingMessage
from dari.process.child import Child
from dari.process.stderr_tail import StderrTail


def child(pid: int, *lines: bytes, clock: itertools.count[int]) -> Child:
    tail = StderrTail(clock=lambda: float(next(clock)))
    for line in lines:
        tail.data_received(line + b"\n")
    return cast(Child, SimpleNamespace(pid=pid, tail=tail))


def test_events_messages_and_stderr_stand_in_the_order_of_their_times() -> None:
    clock = itertools.count(1)
    journal = ServerJournal(Mask(["hunter2hunter2"]), clock=lambda: float(next(clock)))
    journal.note_state("starting")
    journal.watch(child(7, b"key hunter2hunter2", clock=clock))
    journal.note_message(LoggingMessage("warning", {"careful": ["\u202ehidden"]}))
    journal.note_state("backoff", "it ended")
    told = [(line.source, line.level, line.text) for line in journal.lines(10)]
    assert told == [
        ("event", "starting", ""),
        ("stderr", "", "key <secret>"),
        ("event", "started", "process 7"),
        ("message", "warning", '{"careful":["\ufffdhidden"]}'),
        ("event", "backoff", "it ended"),
    ]
    assert [line.text for line in journal.lines(1)] == ["it ended"]


def test_only_the_last_two_processes_and_so_many_events_are_kept() -> None:
    clock = itertools.count(1)
    journal = ServerJournal(Mask(), clock=lambda: float(next(clock)))
    for pid in range(200):
        journal.watch(child(pid, b"line of %d" % pid, clock=clock))
    lines = journal.lines(1000)
    assert {line.pid for line in lines if line.source == "stderr"} == {198, 199}
    assert len([line for line in lines if line.source == "event"]) == MAX_EVENTS


def test_the_revision_changes_with_every_line() -> None:
    clock = itertools.count(1)
    journal = ServerJournal(Mask())
    seen = [journal.revision]
    journal.note_state("starting")
    seen.append(journal.revision)
    process = child(1, clock=clock)
    journal.watch(process)
    seen.append(journal.revision)
    process.tail.data_received(b"half a line")
    seen.append(journal.revision)
    assert len(set(seen)) == 4 and journal.revision == seen[-1]
