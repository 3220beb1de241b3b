"""Evaluation sets on disk: `corpus.jsonl`, `queries.jsonl`, and judgements, as BEIR has them.

corpus.jsonl     {"_id", "title", "text"}; without it the questions are about the knowledge base itself
queries.jsonl    {"_id", "text"}, and of ours optionally "type", "lang", "answerable", "gold", "group"
qrels.tsv        query-id, corpus-id, score, with or without a header; or qrels.jsonl, or BEIR's qrels/test.tsv

An id is text or a number, in `_id` or `id`. Without a corpus a corpus-id is the path or the id of a document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from dari.errors import InvalidInput, NotFound
from dari.struct_types import ready

_T = TypeVar("_T")
HOUSE = "house"
MAX_LINE_BYTES = 16 * 1024 * 1024
_QRELS = ("qrels.tsv", "qrels.jsonl", "qrels/test.tsv", "qrels/dev.tsv", "qrels/train.tsv")


class CorpusDocument(Struct, frozen=True):
    """A document of `corpus.jsonl`."""

    id: str
    text: str
    title: str = ""


class Question(Struct, frozen=True, kw_only=True):
    """A question of `queries.jsonl` with its judgements: document → relevance, above 0."""

    id: str
    text: str
    type: str = ""
    lang: str = ""
    answerable: bool = True
    gold: str = ""
    """A string that the answer has to hold."""
    group: str = ""
    """Questions of one group ask for the same thing in other words."""
    relevant: dict[str, float] = {}


class EvalSet(Struct, frozen=True, kw_only=True):
    """Questions that can be scored: those with a judgement, and those that have no answer."""

    name: str
    folder: Path
    questions: tuple[Question, ...]
    has_corpus: bool
    hash: str
    """Of the corpus: what an index of it belongs to."""

    def corpus(self) -> Iterator[CorpusDocument]:
        path = self.folder / "corpus.jsonl"
        for line, data in _lines(path):
            row = _decode(data, _CorpusLine, path, line)
            yield CorpusDocument(_id_of(row.id, row.plain_id, path, line), row.text or "", row.title or "")


class _CorpusLine(Struct, frozen=True):
    """Further fields are left alone."""

    id: str | int | None = field(name="_id", default=None)
    plain_id: str | int | None = field(name="id", default=None)
    text: str | None = ""
    title: str | None = ""


class _QueryLine(Struct, frozen=True, kw_only=True):
    id: str | int | None = field(name="_id", default=None)
    plain_id: str | int | None = field(name="id", default=None)
    text: str
    type: str = ""
    lang: str = ""
    answerable: bool = True
    gold: str = ""
    group: str = ""


def load_set(given: str) -> EvalSet:
    """A folder, or `house`: the set that is shipped. InvalidInput names file and line of what is wrong."""
    folder = Path(__file__).with_name("data") / HOUSE if given == HOUSE else Path(given).expanduser()
    if not folder.is_dir():
        raise NotFound(
            f"{folder} must be a folder with an evaluation set", "name a folder with queries.jsonl and qrels, or house"
        )
    path = folder / "queries.jsonl"
    relevant = _read_qrels(folder)
    questions = []
    for line, data in _lines(path):
        question = _question(_decode(data, _QueryLine, path, line), path, line, relevant)
        if not question.relevant and question.answerable:
            continue
        if not question.text.strip():
            raise InvalidInput(f"{path}:{line}: a question must have a text", "write it, or take its judgements out")
        questions.append(question)
    if not questions:
        raise InvalidInput(
            f"no question of {path} has a judgement", "query ids of qrels must be those of queries.jsonl"
        )
    corpus = folder / "corpus.jsonl"
    digest = ""
    if corpus.is_file():
        with corpus.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return EvalSet(
        name=given if given == HOUSE else folder.resolve().name,
        folder=folder,
        questions=tuple(questions),
        has_corpus=corpus.is_file(),
        hash=digest,
    )


def _question(row: _QueryLine, path: Path, line: int, relevant: dict[str, dict[str, float]]) -> Question:
    name = _id_of(row.id, row.plain_id, path, line)
    return Question(
        id=name,
        text=row.text,
        type=row.type,
        lang=row.lang,
        answerable=row.answerable,
        gold=row.gold,
        group=row.group,
        relevant={doc: score for doc, score in relevant.get(name, {}).items() if score > 0},
    )


def _id_of(given: str | int | None, plain: str | int | None, path: Path, line: int) -> str:
    found = plain if given is None else given
    if found is None:
        raise InvalidInput(f"{path}:{line}: a line must have an _id", 'write {"_id": "…", "text": "…"}')
    return str(found)


def _read_qrels(folder: Path) -> dict[str, dict[str, float]]:
    path = next((folder / name for name in _QRELS if (folder / name).is_file()), None)
    if path is None:
        raise NotFound(f"{folder} has no judgements", f"one of {', '.join(_QRELS)} is needed")
    found: dict[str, dict[str, float]] = {}
    for line, data in _lines(path):
        if path.suffix == ".jsonl":
            row = _decode(data, dict[str, Any], path, line)
            query, doc, score = (row.get(key) for key in ("query-id", "corpus-id", "score"))
        else:
            text = data.decode("utf-8", "replace")
            cells = text.split("\t") if "\t" in text else text.split()
            if len(cells) == 4:  # TREC has an unused second column
                del cells[1]
            if line == 1 and len(cells) == 3 and not _is_number(cells[2]):
                continue  # the header
            query, doc, score = (*cells, None, None, None)[:3]
        if query is None or doc is None:
            raise InvalidInput(
                f"{path}:{line}: a judgement needs a query-id and a corpus-id, got {data[:80]!r}",
                "query-id, corpus-id and score, with a tab between them",
            )
        try:
            found.setdefault(str(query), {})[str(doc)] = float(1 if score is None else score)
        except (TypeError, ValueError):
            raise InvalidInput(f"{path}:{line}: score must be a number, got {score!r}", "write 0, 1, …") from None
    return found


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number, content) of the lines that are not blank."""
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist", "an evaluation set needs queries.jsonl and qrels") from None
    with stream:
        number = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise InvalidInput(f"{path}:{number}: a line may have {MAX_LINE_BYTES >> 20} MB", "cut the text")
            if line.strip():
                yield number, line.strip(b"\r\n").removeprefix(b"\xef\xbb\xbf")


def _decode(data: bytes, kind: type[_T], path: Path, line: int) -> _T:
    try:
        return msgspec.json.decode(data, type=ready(kind), strict=False)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"{path}:{line}: {error}", "one JSON object a line") from error


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
