"""Questions to a person that wait in the daemon, for clients that cannot ask one; and a record of every answer.

A question is the whole text that a person has to agree to. Its answer is good for one call: the same text by the same
client, within ten minutes. Only callers with the scope `admin` answer, and no tool of an agent has that.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dari.errors import Conflict, NotFound, Unavailable
from dari.text.redact import redact_secrets

KEPT_S = 600.0
MOST_WAITING = 100
MOST_ENDED = 100
MOST_RECORD_BYTES = 1 << 20
_log = logging.getLogger("dari.terminal")

State = Literal["waiting", "approved", "denied"]


@dataclass(slots=True)
class Question:
    id: str
    message: str
    client: str
    asked_unix: float
    state: State = "waiting"
    by: str = ""
    reason: str = ""
    answered_unix: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Approvals:
    """The questions of one daemon, oldest first. Everything runs on one loop."""

    def __init__(self, record: Path | None = None, now: Callable[[], float] = time.time) -> None:
        self._record = record
        self._now = now
        self._open: OrderedDict[str, Question] = OrderedDict()
        self._ended: list[Question] = []
        self.on_change: Callable[[], None] = lambda: None
        """Called when a question is asked or answered."""

    def waiting(self) -> list[Question]:
        self._forget_old()
        return [each for each in self._open.values() if each.state == "waiting"]

    def ended(self) -> list[Question]:
        """Newest first, those of this daemon's life."""
        return self._ended[::-1]

    async def ask(self, message: str, client: str, wait_s: float) -> Question:
        """The question with its answer, or still "waiting" after the time. An answer is handed out once."""
        self._forget_old()
        question = next(
            (each for each in self._open.values() if (each.message, each.client) == (message, client)), None
        )
        if question is None:
            if len(self._open) >= MOST_WAITING:
                raise Unavailable(f"{len(self._open)} questions wait for a person", "crux approvals shows them")
            question = Question(secrets.token_hex(3), message, client, self._now())
            self._open[question.id] = question
            _log.info("daemon=cruxd event=asked id=%s client=%s", question.id, client)
            self.on_change()
        if question.state == "waiting" and wait_s > 0:
            try:
                async with asyncio.timeout(wait_s):
                    await question.changed.wait()
            except TimeoutError:
                pass
        if question.state != "waiting" and self._open.pop(question.id, None) is None:
            # Two calls with the same text were one question: the answer was for one of them.
            raise Conflict("the answer was used by another call with the same text", "ask again")
        return question

    def answer(self, question_id: str, is_approved: bool, by: str, reason: str = "") -> Question:
        self._forget_old()
        question = self._open.get(question_id)
        if question is None or question.state != "waiting":
            known = ", ".join(each.id for each in self.waiting()) or "none"
            raise NotFound(f"no question {question_id!r} waits for an answer", f"waiting now: {known}")
        question.state = "approved" if is_approved else "denied"
        question.by, question.reason, question.answered_unix = by, reason, self._now()
        question.changed.set()
        self._keep(question)
        self.on_change()
        return question

    def note(self, message: str, client: str, is_approved: bool, by: str) -> None:
        """Record an answer that a client brought from its person."""
        now = self._now()
        state: State = "approved" if is_approved else "denied"
        self._keep(Question(secrets.token_hex(3), message, client, now, state, by, "", now))

    def _keep(self, question: Question) -> None:
        self._ended = [*self._ended[1 - MOST_ENDED :], question]
        _log.info("daemon=cruxd event=%s id=%s by=%s", question.state, question.id, question.by)
        if self._record is None:
            return
        line = {
            name: getattr(question, name)
            for name in ("id", "state", "by", "client", "message", "reason", "asked_unix", "answered_unix")
        }
        try:
            if self._record.exists() and self._record.stat().st_size > MOST_RECORD_BYTES:
                self._record.replace(self._record.with_suffix(".old.jsonl"))
            handle = os.open(self._record, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.write(handle, json.dumps(redact_secrets(line), ensure_ascii=False).encode(errors="replace") + b"\n")
            finally:
                os.close(handle)
        except OSError as error:
            _log.warning("daemon=cruxd event=unrecorded id=%s error=%s", question.id, error)

    def _forget_old(self) -> None:
        limit = self._now() - KEPT_S
        for question in [each for each in self._open.values() if max(each.asked_unix, each.answered_unix) < limit]:
            del self._open[question.id]
