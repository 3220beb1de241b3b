"""Conversations, answers and runs: small writes that need no writer lock and leave the revision alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dari.knowledge.store.records import (
    AnswerRecord,
    EvalRunRecord,
    IngestRunRecord,
    RunStatus,
    SessionRecord,
    TurnRecord,
    utc_text,
)
from dari.knowledge.store.rows import SqlConnection

MAX_ANSWERS = 10_000
MAX_RUNS = 1_000
_PUT_ANSWER = (
    "INSERT INTO answers (trace_id, question, answer, grounded, created_at) VALUES (?,?,?,?,?) ON CONFLICT (trace_id)"
    " DO UPDATE SET question = excluded.question, answer = excluded.answer, grounded = excluded.grounded,"
    " created_at = excluded.created_at"
)
_PUT_EVAL_RUN = (
    "INSERT INTO eval_runs (run_id, dataset, settings, report, created_at) VALUES (?,?,?,?,?) ON CONFLICT (run_id)"
    " DO UPDATE SET dataset = excluded.dataset, settings = excluded.settings, report = excluded.report,"
    " created_at = excluded.created_at"
)
_BEGIN_RUN = (
    "INSERT INTO ingest_runs (scope, status, started_at, finished_at, report) VALUES (?,?,?,?,?) RETURNING run_no"
)


class SqlJournal:
    """What `Journal` promises, with the connections of its store."""

    def __init__(
        self, change: Callable[[], AbstractContextManager[SqlConnection]], rows: Callable[..., list[Any]]
    ) -> None:
        self._changing = change
        self._rows = rows

    def put_turn(self, session_id: str, question: str, standalone: str, answer: str) -> TurnRecord:
        now = utc_text()
        with self._changing() as connection:
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?) ON CONFLICT (session_id)"
                " DO UPDATE SET updated_at = excluded.updated_at",
                (session_id, now, now),
            )
            ordinal = connection.execute(
                "SELECT coalesce(max(ordinal) + 1, 0) FROM turns WHERE session_id = ?", (session_id,)
            ).fetchone()[0]
            row = (session_id, ordinal, question, standalone, answer, now)
            connection.execute("INSERT INTO turns VALUES (?,?,?,?,?,?)", row)
        return _turn(row)

    def session(self, session_id: str) -> SessionRecord | None:
        sql = (
            "SELECT session_id, created_at, updated_at,"
            " (SELECT count(*) FROM turns t WHERE t.session_id = s.session_id) FROM sessions s WHERE session_id = ?"
        )
        row = self._row(sql, session_id)
        if row is None:
            return None
        return SessionRecord(session_id=row[0], created_at=row[1], updated_at=row[2], turn_count=row[3])

    def turns(self, session_id: str, limit: int = 20) -> list[TurnRecord]:
        sql = (
            "SELECT session_id, ordinal, question, standalone, answer, created_at FROM turns WHERE session_id = ?"
            " ORDER BY ordinal DESC LIMIT ?"
        )
        return [_turn(row) for row in reversed(self._rows(sql, session_id, limit))]

    def delete_session(self, session_id: str) -> bool:
        with self._changing() as connection:
            return connection.execute("DELETE FROM sessions WHERE session_id = ?", (session_id,)).rowcount > 0

    def put_answer(self, record: AnswerRecord) -> None:
        row = (record.trace_id, record.question, record.answer, int(record.grounded), record.created_at)
        with self._changing() as connection:
            connection.execute(_PUT_ANSWER, row)
            connection.execute(
                "DELETE FROM answers WHERE rowid <= (SELECT max(rowid) FROM answers) - ?", (MAX_ANSWERS,)
            )

    def answers(self, limit: int = 100) -> list[AnswerRecord]:
        sql = "SELECT trace_id, question, answer, grounded, created_at FROM answers ORDER BY rowid DESC LIMIT ?"
        return [
            AnswerRecord(trace_id=row[0], question=row[1], answer=row[2], grounded=bool(row[3]), created_at=row[4])
            for row in self._rows(sql, limit)
        ]

    def put_eval_run(self, record: EvalRunRecord) -> None:
        row = (record.run_id, record.dataset, record.settings, record.report, record.created_at)
        with self._changing() as connection:
            connection.execute(_PUT_EVAL_RUN, row)

    def eval_run(self, run_id: str) -> EvalRunRecord | None:
        row = self._row("SELECT run_id, dataset, settings, report, created_at FROM eval_runs WHERE run_id = ?", run_id)
        return _eval_run(row) if row else None

    def eval_runs(self, limit: int = 100) -> list[EvalRunRecord]:
        sql = "SELECT run_id, dataset, settings, report, created_at FROM eval_runs ORDER BY rowid DESC LIMIT ?"
        return [_eval_run(row) for row in self._rows(sql, limit)]

    def begin_run(self, scope: str) -> int:
        with self._changing() as connection:
            row = (scope, "running", utc_text(), "", "")
            number: int = connection.execute(_BEGIN_RUN, row).fetchone()[0]
            connection.execute("DELETE FROM ingest_runs WHERE run_no <= ?", (number - MAX_RUNS,))
        return number

    def end_run(self, run_no: int, status: RunStatus, report: str) -> None:
        with self._changing() as connection:
            connection.execute(
                "UPDATE ingest_runs SET status = ?, finished_at = ?, report = ? WHERE run_no = ?",
                (status, utc_text(), report, run_no),
            )

    def ingest_runs(self, limit: int = 20) -> list[IngestRunRecord]:
        sql = (
            "SELECT run_no, scope, status, started_at, finished_at, report FROM ingest_runs"
            " ORDER BY run_no DESC LIMIT ?"
        )
        return [
            IngestRunRecord(
                run_no=row[0], scope=row[1], status=row[2], started_at=row[3], finished_at=row[4], report=row[5]
            )
            for row in self._rows(sql, limit)
        ]

    def _row(self, sql: str, *values: Any) -> Any:
        return next(iter(self._rows(sql, *values)), None)


def _turn(row: Any) -> TurnRecord:
    return TurnRecord(
        session_id=row[0], ordinal=row[1], question=row[2], standalone=row[3], answer=row[4], created_at=row[5]
    )


def _eval_run(row: Any) -> EvalRunRecord:
    return EvalRunRecord(run_id=row[0], dataset=row[1], settings=row[2], report=row[3], created_at=row[4])
