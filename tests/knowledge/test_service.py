"""The services of one process: what is evicted ends its calls before it ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dari.knowledge.ask.asker import AskRequest
from dari.knowledge.ask.prompt import ChatMessage
from dari.knowledge.service import MAX_OPEN_SERVICES, ServiceCache
from tests.support.knowledge_base import index_notes, write_config, write_notes

WAIT_S = 30.0


def _configs(folder: Path, count: int) -> list[str]:
    notes, data = write_notes(folder / "notes"), folder / "data"
    index_notes(notes, data)
    return [str(write_config(folder / f"{number}.toml", notes, data)) for number in range(count)]


def test_an_answer_is_finished_and_remembered_by_a_service_that_was_evicted_meanwhile(tmp_path: Path) -> None:
    first, *others = _configs(tmp_path, MAX_OPEN_SERVICES + 1)
    is_asked, may_answer = threading.Event(), threading.Event()

    def sample(messages: Sequence[ChatMessage], max_tokens: int) -> str:
        is_asked.set()
        assert may_answer.wait(WAIT_S)
        return "Backups are kept for 35 days [#1]."

    with ServiceCache() as services, ThreadPoolExecutor(1) as threads:
        service = services.get(first, {}, False)
        request = AskRequest(question="How long are backups kept?", session_id="talk")
        asked = threads.submit(service.ask, request, sample)
        try:
            assert is_asked.wait(WAIT_S)
            for config in others:
                services.get(config, {}, False)
            assert services.get(first, {}, False) is not service
        finally:
            may_answer.set()
        assert asked.result(WAIT_S).grounded
        turns = services.get(first, {}, False).base().store.journal.turns("talk", 10)
        assert [turn.question for turn in turns] == [request.question]
        assert service._base is None, "the last call left it open"


def test_a_service_that_was_evicted_and_is_used_again_closes_after_each_call(tmp_path: Path) -> None:
    (config,) = _configs(tmp_path, 1)
    with ServiceCache() as services:
        service = services.get(config, {}, False)
    assert service.search("backups", mode="lexical").hits
    assert service._base is None
