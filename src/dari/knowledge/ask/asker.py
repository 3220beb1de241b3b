"""A question to an answer: resolve, search, judge, write, check, remember.

1. A follow-up of a conversation is made to stand by itself, by the language model where one is set.
2. The search finds passages; the gate refuses what they cannot answer before a language model writes anything. Several
   hops take the question apart with the language model first and do not use the gate.
3. A language model writes the answer from the passages, or the best sentences are the answer.
4. What is written is checked against what it cites: markers, numbers, quotes. An answer that fails is refused.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Struct

from dari.errors import DariError
from dari.knowledge.ask import extractive
from dari.knowledge.ask.attribute import attribute
from dari.knowledge.ask.calibration import measured_fit
from dari.knowledge.ask.chat import ChatModel, Sampler, choose_chat, prompt_tokens
from dari.knowledge.ask.conversation import make_standalone, read_turns
from dari.knowledge.ask.evidence import Sentence, narrow, read_evidence
from dari.knowledge.ask.gate import DENSE_FITS, Judgement, judge
from dari.knowledge.ask.instructions import without_instructions
from dari.knowledge.ask.multi_hop import gather
from dari.knowledge.ask.nearness import Nearness
from dari.knowledge.ask.prompt import NO_ANSWER, PROMPT_VERSION, answer_messages, count_tokens, pack
from dari.knowledge.ask.verify import check_answer, normalize_markers, without_markers
from dari.knowledge.config import AskSettings, LlmSettings
from dari.knowledge.document import Location, SearchMode
from dari.knowledge.errors import InvalidArgument
from dari.knowledge.search.coverage import read_question
from dari.knowledge.search.request import Hit, SearchRequest, SearchResult
from dari.knowledge.store.records import EVERY_DOCUMENT, AnswerRecord, DocumentFilter, DocumentRecord, utc_text
from dari.knowledge.wire.objects import (
    AnswerCitation,
    AnswerHop,
    AnswerModel,
    AnswerRetrieval,
    AnswerUsage,
    AnswerV1,
    AnswerVerification,
    CitationV1,
    RefusalReason,
)

if TYPE_CHECKING:
    from dari.knowledge.models.model import EmbeddingModel
    from dari.knowledge.search.searcher import Searcher
    from dari.knowledge.store.store import Store

MAX_QUESTION_CHARS = 4000
MAX_SESSION_ID_CHARS = 200
_PROMPT_OVERHEAD_TOKENS = 400
_REFUSALS = {
    "en": "The documents do not hold an answer to this.",
    "ko": "문서에서 이 질문의 답을 찾지 못했습니다.",
}
Cite = Callable[[DocumentRecord, Location], CitationV1]


class AskRequest(Struct, frozen=True, kw_only=True):
    question: str
    mode: SearchMode | None = None
    """None: `[search] default_mode`, which the service fills in; hybrid for a bare asker."""
    k: int | None = None
    where: DocumentFilter = EVERY_DOCUMENT
    session_id: str = ""
    multi_hop: bool = False


class AskEvents(Struct, frozen=True):
    """Who wants to hear of the steps. `on_text` gets the pieces of a model's answer before it is checked."""

    on_retrieved: Callable[[SearchResult], None] = lambda result: None
    on_text: Callable[[str], None] = lambda text: None


class Asker:
    """Answers questions over one store. Safe for several threads."""

    def __init__(
        self,
        store: Store,
        searcher: Searcher,
        embedding: EmbeddingModel | None,
        ask: AskSettings,
        llm: LlmSettings,
        cite: Cite,
        english: EmbeddingModel | None = None,
    ) -> None:
        self._store = store
        self._searcher = searcher
        self._embedding = embedding
        self._ask = ask
        self._llm = llm
        self._cite = cite
        self._english = english

    def answer(self, request: AskRequest, sampler: Sampler | None = None, events: AskEvents | None = None) -> AnswerV1:
        """An answer or a refusal; a refusal is an answer that is not grounded, never an error."""
        if not request.question.strip():
            raise InvalidArgument("question must not be empty", "ask about something in the documents")
        if len(request.question) > MAX_QUESTION_CHARS:
            raise InvalidArgument(
                f"question must have at most {MAX_QUESTION_CHARS} characters, got {len(request.question)}",
                "ask a shorter question; kebab search takes long texts",
            )
        if len(request.session_id) > MAX_SESSION_ID_CHARS:
            raise InvalidArgument(
                f"session_id must have at most {MAX_SESSION_ID_CHARS} characters, got {len(request.session_id)}",
                "any short name of your own",
            )
        work = _Work(self, request, choose_chat(self._llm, sampler), events or AskEvents())
        answer = work.run()
        self._remember(request, work.question, answer)
        return answer

    def _remember(self, request: AskRequest, standalone: str, answer: AnswerV1) -> None:
        if self._store.is_readonly:
            return
        text = msgspec.json.encode(answer).decode()
        if request.session_id:
            self._store.journal.put_turn(request.session_id, request.question, standalone, text)
        if self._ask.keep_answers:
            record = AnswerRecord(
                trace_id=answer.retrieval.trace_id,
                question=request.question,
                answer=text,
                grounded=answer.grounded,
                created_at=answer.created_at,
            )
            self._store.journal.put_answer(record)


class _Work:
    """One question on its way."""

    def __init__(self, asker: Asker, request: AskRequest, chat: ChatModel | None, events: AskEvents) -> None:
        self._asker = asker
        self._request = request
        self._chat = chat
        self._events = events
        self._began = time.perf_counter()
        self._hops: tuple[AnswerHop, ...] = ()
        self._hint = ""
        self._sentences: tuple[Sentence, ...] = ()
        self.question = request.question

    def run(self) -> AnswerV1:
        asker, request = self._asker, self._request
        if request.session_id:
            turns = read_turns(asker._store.journal.turns(request.session_id, asker._ask.session_turns))
            self.question = make_standalone(request.question, turns, self._chat)
        result = self._search(self.question)
        self._events.on_retrieved(result)
        self._sentences = self._read_evidence(result.hits, result)
        judgement = self._judge(result)
        if not result.hits:
            return self._refuse("no_index" if not result.revision else "no_chunks", result, judgement)
        if request.multi_hop and self._chat is not None:
            return self._answer_in_hops(self._chat, result, judgement)
        if request.multi_hop:
            self._hint = "--multi-hop needs a language model ([llm] endpoint), so the question was asked as it is"
        if not judgement.may_answer:
            return self._refuse("score_gate", result, judgement)
        return self._write(result.hits, result, judgement)

    # --- finding

    def _search(self, question: str) -> SearchResult:
        request, settings = self._request, self._asker._ask
        k = request.k or settings.k
        return self._asker._searcher.search(
            SearchRequest(query=question, k=max(k, 10), mode=request.mode or "hybrid", where=request.where)
        )

    def _read_evidence(self, hits: tuple[Hit, ...], result: SearchResult) -> tuple[Sentence, ...]:
        words = read_question(self.question, result.query)
        try:
            model = self._model_of(result)
            return read_evidence(
                self.question, words, hits, None if model is None else Nearness(model, self._asker._english)
            )
        except (DariError, OSError):
            # The search had its vectors; a model that fails now leaves the words.
            return read_evidence(self.question, words, hits)

    def _model_of(self, result: SearchResult) -> EmbeddingModel | None:
        return self._asker._embedding if result.mode != "lexical" else None

    def _judge(self, result: SearchResult) -> Judgement:
        model, bar = self._model_of(result), self._asker._ask.score_gate
        name = model.name if model is not None else ""
        found = judge(self.question, result, self._sentences, name, bar)
        if found.may_answer or model is None or name in DENSE_FITS or not result.hits:
            return found
        measured = measured_fit(self.question, self._asker._searcher, model)
        return judge(self.question, result, self._sentences, name, bar, measured)

    # --- writing

    def _write(self, hits: tuple[Hit, ...], result: SearchResult, judgement: Judgement) -> AnswerV1:
        if self._chat is None:
            return self._extract(hits, result, judgement)
        try:
            return self._generate(self._chat, hits, result, judgement)
        except DariError as error:
            # The passages are there; a model that fails or a client that refuses to sample does not take them away.
            self._hint = f"the language model did not answer ({error.message}), so these are the best sentences"
            return self._extract(hits, result, judgement)

    def _answer_in_hops(self, chat: ChatModel, result: SearchResult, judgement: Judgement) -> AnswerV1:
        settings, llm = self._asker._ask, self._asker._llm
        gathered = gather(
            self.question,
            chat,
            lambda part: self._search(part).hits,
            settings.multi_hop_questions,
            settings.multi_hop_depth,
            _passage_budget(llm),
        )
        if gathered is None:
            return self._refuse("multi_hop_decompose_failed", result, judgement)
        self._hops = gathered.hops
        if not gathered.hits:
            return self._refuse("no_chunks", result, judgement)
        return self._write(gathered.hits, result, judgement)

    def _generate(self, chat: ChatModel, hits: tuple[Hit, ...], result: SearchResult, judgement: Judgement) -> AnswerV1:
        llm = self._asker._llm
        budget = _passage_budget(llm)
        packed = pack(hits[: self._request.k or self._asker._ask.k], budget)
        messages = answer_messages(self.question, packed, budget)
        pieces: list[str] = []
        for piece in chat.stream(messages, llm.max_answer_tokens):
            pieces.append(piece)
            self._events.on_text(piece)
        spoken = [_speakable(hit) for hit in packed]
        text = attribute(normalize_markers("".join(pieces).strip()), spoken, self.question)
        usage = (prompt_tokens(messages), count_tokens(text))
        if NO_ANSWER in text or not text:
            return self._refuse("llm_self_judge", result, judgement, chat, usage)
        verdict = check_answer(text, spoken, self.question)
        verification = AnswerVerification(
            markers_ok=verdict.markers_ok, numbers_ok=verdict.numbers_ok, quotes_ok=verdict.quotes_ok
        )
        if not verdict.markers_ok:
            return self._refuse("llm_self_judge", result, judgement, chat, usage, verification)
        if not verdict.holds:
            self._hint = f"the model wrote what no cited passage holds: {', '.join(verdict.missing[:5])}"
            return self._refuse("verification_failed", result, judgement, chat, usage, verification)
        citations = tuple(
            self._citation(number, packed[number - 1], packed[number - 1].chunk.location) for number in verdict.used
        )
        model = AnswerModel(id=chat.id, provider=chat.provider)
        return self._answer(text, citations, model, result, judgement, len(packed), usage, verification=verification)

    def _extract(self, hits: tuple[Hit, ...], result: SearchResult, judgement: Judgement) -> AnswerV1:
        asker = self._asker
        sentences = self._sentences if hits is result.hits else self._read_evidence(hits, result)
        chosen = extractive.best_sentences(sentences, hits, asker._ask.sentences)
        numbers: dict[tuple[str, Location], int] = {}
        lines, citations = [], []
        for one in chosen:
            sentence, hit = one.sentence, hits[one.sentence.hit]
            location = narrow(hit, sentence.start, sentence.end)
            key = (hit.chunk.chunk_id, location)
            if key not in numbers:
                numbers[key] = len(numbers) + 1
                citations.append(self._citation(numbers[key], hit, location, sentence.text))
            lines.append(f"{without_markers(sentence.text)} [#{numbers[key]}]")
        if not lines:
            return self._refuse("no_chunks", result, judgement)
        made_by = AnswerModel(id=extractive.MODEL_ID, provider="extractive")
        return self._answer("\n".join(lines), tuple(citations), made_by, result, judgement, len(citations), (0, 0))

    # --- the wire

    def _citation(self, number: int, hit: Hit, location: Location, quote: str = "") -> AnswerCitation:
        return AnswerCitation(
            marker=f"[#{number}]",
            citation=self._asker._cite(hit.document, location),
            quote=quote or UNSET,
            chunk_id=hit.chunk.chunk_id,
        )

    def _refuse(
        self,
        reason: RefusalReason,
        result: SearchResult,
        judgement: Judgement,
        chat: ChatModel | None = None,
        usage: tuple[int, int] = (0, 0),
        verification: AnswerVerification | None = None,
    ) -> AnswerV1:
        text = _REFUSALS["ko" if any("가" <= letter <= "힣" for letter in self._request.question) else "en"]
        model = AnswerModel(
            id=chat.id if chat else extractive.MODEL_ID, provider=chat.provider if chat else "extractive"
        )
        return self._answer(text, (), model, result, judgement, 0, usage, reason, verification)

    def _answer(
        self,
        text: str,
        citations: tuple[AnswerCitation, ...],
        model: AnswerModel,
        result: SearchResult,
        judgement: Judgement,
        chunks_used: int,
        usage: tuple[int, int],
        reason: RefusalReason | None = None,
        verification: AnswerVerification | None = None,
    ) -> AnswerV1:
        request, embedding = self._request, self._asker._embedding
        hint = "; ".join(filter(None, (self._hint, result.hint)))
        return AnswerV1(
            answer=text,
            citations=citations,
            grounded=reason is None,
            refusal_reason=reason,
            model=model,
            prompt_template_version=PROMPT_VERSION,
            retrieval=AnswerRetrieval(
                trace_id=secrets.token_hex(8),
                mode=result.mode,
                k=request.k or self._asker._ask.k,
                score_gate=judgement.threshold,
                top_score=round(judgement.chance, 4),
                chunks_returned=len(result.hits),
                chunks_used=chunks_used,
            ),
            usage=AnswerUsage(
                prompt_tokens=usage[0],
                completion_tokens=usage[1],
                latency_ms=round((time.perf_counter() - self._began) * 1000),
            ),
            created_at=utc_text(),
            session_id=request.session_id or UNSET,
            resolved_query=self.question if self.question != request.question else UNSET,
            embedding=embedding.key if embedding is not None and result.mode != "lexical" else UNSET,
            hops=self._hops or UNSET,
            verification=verification or UNSET,
            hint=hint or UNSET,
        )


def _passage_budget(llm: LlmSettings) -> int:
    return max(200, llm.context_tokens - llm.max_answer_tokens - _PROMPT_OVERHEAD_TOKENS)


def _speakable(hit: Hit) -> str:
    """What an answer may take from a passage: its text without instructions, title, headings and path."""
    return "\n".join(
        (without_instructions(hit.chunk.text), hit.document.title, *hit.chunk.heading_path, hit.document.path)
    )
