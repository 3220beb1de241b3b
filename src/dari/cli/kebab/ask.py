"""`kebab ask`: an answer from the documents, with citations, or a refusal."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from msgspec import UNSET, json
from msgspec.structs import replace

from dari.cli.kebab.context import NOTHING, OK, KebabContext, print_wire
from dari.cli.kebab.search import MODES, add_filters, read_filter
from dari.cli.kit.parser import Command, count_between
from dari.cli.kit.table import format_pairs, one_line
from dari.errors import InvalidInput
from dari.knowledge.ask.asker import AskEvents, AskRequest
from dari.knowledge.search.request import SearchResult
from dari.knowledge.store.records import utc_text
from dari.knowledge.wire.objects import AnswerEventV1, AnswerV1
from dari.text.sanitize import escape_hidden

MAX_TEMPERATURE = 2.0


def _add(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("query", nargs="*", help="the question")
    add("--session", metavar="ID", default="", help="a conversation: follow-up questions know what was said")
    add(
        "--k",
        "-k",
        type=count_between(1, 100),
        metavar="N",
        help="how many passages to answer from (default: [ask] k, 8)",
    )
    add("--mode", choices=MODES, help="how passages are found (default: [search] default_mode, hybrid)")
    add("--stream", action="store_true", help="print the model's words as they come; with --json answer_event.v1 lines")
    add("--multi-hop", action="store_true", help="take the question apart and search for each part (needs a model)")
    add("--explain", action="store_true", help="how the answer came about: gate, passages, model")
    add("--temperature", type=_temperature, metavar="T", help="of the language model, 0 to 2")
    add("--seed", type=int, metavar="N", help="of the language model")
    citations = parser.add_mutually_exclusive_group().add_argument
    citations("--show-citations", action="store_true", help="list the passages behind the answer (default)")
    citations("--hide-citations", action="store_true", help="print the answer only")
    add_filters(parser)


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MAX_TEMPERATURE:
        raise argparse.ArgumentTypeError(f"must be 0 to {MAX_TEMPERATURE:g}, got {text[:40]!r}")
    return value


async def _run(arguments: argparse.Namespace, context: KebabContext) -> int:
    query = " ".join(arguments.query)
    if not query.strip():
        raise InvalidInput("a question must have a word", 'such as: kebab ask "How often are backups made?"')
    service = await context.open()
    llm = service.settings.config.llm
    if arguments.temperature is not None:
        llm = replace(llm, temperature=arguments.temperature)
    if arguments.seed is not None:
        llm = replace(llm, seed=arguments.seed)
    request = AskRequest(
        question=query,
        mode=arguments.mode,
        k=arguments.k,
        where=read_filter(arguments),
        session_id=arguments.session,
        multi_hop=arguments.multi_hop,
    )
    stream = AnswerStream(context) if arguments.stream else None
    answer = await _in_own_thread(lambda: service.ask(request, None, stream.events() if stream else None, llm))
    if stream is not None:
        stream.end(answer)
        await asyncio.sleep(0)  # what is on its way to stderr comes before the answer
    if context.as_json:
        print_wire(context, answer)
    else:
        _show(context, answer, has_citations=not arguments.hide_citations, explains=arguments.explain)
    return OK if answer.grounded else NOTHING


async def _in_own_thread(work: Callable[[], AnswerV1]) -> AnswerV1:
    """Not one of the few that kebabd's commands share: an ask that waits for its model keeps no search waiting."""
    threads = ThreadPoolExecutor(1, thread_name_prefix="kebab-ask")
    try:
        return await asyncio.get_running_loop().run_in_executor(threads, work)
    finally:
        threads.shutdown(wait=False)


class AnswerStream:
    """For a person the words on stderr as they come; for a program `answer_event.v1` lines there.

    Made on the loop, called in the thread that answers: kebabd's consoles belong to the loop.
    """

    def __init__(self, context: KebabContext) -> None:
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._has_spoken = False

    def events(self) -> AskEvents:
        return AskEvents(self._retrieved, self._text)

    def end(self, answer: AnswerV1) -> None:
        if self._context.as_json:
            self._emit(AnswerEventV1(kind="final", ts=utc_text(), answer=answer))
        elif self._has_spoken:
            self._context.console.err("\n\n")

    def _retrieved(self, result: SearchResult) -> None:
        if self._context.as_json:
            renderer = self._context.service().renderer()
            self._emit(AnswerEventV1(kind="retrieval_done", ts=utc_text(), hits=tuple(map(renderer.hit, result.hits))))
        else:
            self._loop.call_soon_threadsafe(self._context.note, f"{len(result.hits)} passages")

    def _text(self, text: str) -> None:
        if self._context.as_json:
            self._emit(AnswerEventV1(kind="token", ts=utc_text(), delta=text))
            return
        self._has_spoken = True
        if not self._context.is_quiet:
            self._loop.call_soon_threadsafe(self._context.console.err, escape_hidden(text))

    def _emit(self, event: AnswerEventV1) -> None:
        self._loop.call_soon_threadsafe(self._context.console.err, json.encode(event).decode() + "\n")


def _show(context: KebabContext, answer: AnswerV1, *, has_citations: bool, explains: bool) -> None:
    output = context.output
    output.text(escape_hidden(answer.answer))
    if has_citations and answer.citations:
        output.text("")
        for one in answer.citations:
            output.text(f"{output.paint(one.marker, 'bold')} {output.paint(one_line(one.citation.uri), 'cyan')}")
    if answer.refusal_reason is not None:
        context.note(f"refused: {answer.refusal_reason}")
    if answer.hint is not UNSET:
        context.note(context.rewrite(one_line(answer.hint)))
    if explains:
        found = answer.retrieval
        output.text(
            "",
            *format_pairs(
                {
                    "model": f"{answer.model.id} ({answer.model.provider})",
                    "mode": found.mode,
                    "chance of an answer": f"{found.top_score:.2f}, {found.score_gate:.2f} is needed",
                    "passages": f"{found.chunks_used} used of {found.chunks_returned}",
                    "question as searched": "" if answer.resolved_query is UNSET else answer.resolved_query,
                    "tokens": f"{answer.usage.prompt_tokens} in, {answer.usage.completion_tokens} out",
                    "time": f"{answer.usage.latency_ms} ms",
                    "trace": found.trace_id,
                }
            ),
        )
        for hop in () if answer.hops is UNSET else answer.hops:
            output.text(f"  hop {hop.hop}: {one_line(hop.question)} ({hop.chunks} passages, {one_line(hop.decision)})")


COMMANDS = (
    Command(
        "ask",
        "answer a question from your documents, with citations",
        _add,
        _run,
        "Answer from the documents only. Without a language model the answer is made of the best sentences. What the "
        "documents do not hold is refused, with exit code 1.",
        (
            ('ask "How often are backups made?"', "an answer with its places"),
            ('ask --session talk "And how long are they kept?"', "a follow-up question"),
            ('ask --stream --json "…" 2> events.ndjson', "answer.v1 on stdout, answer_event.v1 lines on stderr"),
        ),
    ),
)
