"""`kebab search`: passages for a query, or for many at once."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, get_args

import msgspec
from msgspec import Struct

from dari.cli.kebab.context import ERROR, NOTHING, OK, KebabContext, print_wire
from dari.cli.kit.console import print_error
from dari.cli.kit.parser import Command, count_between
from dari.cli.kit.table import one_line
from dari.errors import InvalidInput
from dari.knowledge.document import Media, SearchMode, TrustLevel
from dari.knowledge.errors import classify
from dari.knowledge.search.request import MAX_BULK_QUERIES, MAX_K
from dari.knowledge.store.records import DocumentFilter, to_timestamp
from dari.knowledge.wire.objects import BulkSearchItemV1, ErrorV1, SearchHitV1, SearchResponseV1, SearchTrace
from dari.struct_types import ready

MODES: tuple[str, ...] = get_args(SearchMode)
TRUST_LEVELS: tuple[str, ...] = get_args(TrustLevel)
MEDIA: tuple[str, ...] = get_args(Media)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Which documents are searched or listed."""
    add = parser.add_argument_group("which documents").add_argument
    add("--tag", action="append", default=[], metavar="TAG", help="with this tag; given twice: with both")
    add("--lang", action="append", default=[], metavar="CODE", help="in this language, such as ko or en")
    add("--path-glob", metavar="PATTERN", default="", help="* stays inside a folder, ** crosses folders")
    add("--trust-min", choices=TRUST_LEVELS, help="at least this trusted")
    add("--media", action="append", default=[], choices=MEDIA, metavar="KIND", help=", ".join(MEDIA))
    add("--ingested-after", metavar="DATE", default="", help="indexed later than this, such as 2026-11-01")
    add("--doc-id", action="append", default=[], metavar="ID", help="only this document")
    add("--repo", action="append", default=[], metavar="NAME", help="of this repository")
    add("--code-lang", action="append", default=[], metavar="NAME", help="code in this language")
    add("--source-type", action="append", default=[], metavar="TYPE", help="of a source of this type")
    add("--source", action="append", default=[], metavar="ID", help="of this source")


def read_filter(arguments: argparse.Namespace) -> DocumentFilter:
    after: str = arguments.ingested_after
    if after:
        from datetime import UTC, datetime

        try:
            moment = datetime.fromisoformat(after)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):  # the year 1 of another time zone
            raise InvalidInput(
                f"--ingested-after must be a date or a time, got {after[:40]!r}",
                "such as 2026-11-01 or 2026-11-01T09:00Z",
            ) from None
        after = to_timestamp(moment)
    return DocumentFilter(
        tags=tuple(arguments.tag),
        langs=tuple(arguments.lang),
        path_glob=arguments.path_glob,
        trust_min=arguments.trust_min,
        media=tuple(arguments.media),
        ingested_after=after,
        doc_ids=tuple(arguments.doc_id),
        repos=tuple(arguments.repo),
        code_langs=tuple(arguments.code_lang),
        source_types=tuple(arguments.source_type),
        source_ids=tuple(arguments.source),
    )


def _add(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("query", nargs="*", help='words; "two words" in quotes are a phrase')
    add(
        "--k",
        "-k",
        type=count_between(1, MAX_K),
        metavar="N",
        help="how many passages (default: [search] default_k, 10)",
    )
    add(
        "--mode",
        choices=MODES,
        help="default: [search] default_mode, hybrid: needs a model (kebab models), says so without one",
    )
    add("--max-tokens", type=count_between(1, 1_000_000), metavar="N", help="stop when the snippets have this many")
    add("--snippet-chars", type=count_between(20, 100_000), metavar="N", help="the length of a snippet (default: 220)")
    add("--cursor", metavar="CURSOR", help="the next page: next_cursor of the page before")
    add("--trace", action="store_true", help="what each half found, and how long it took")
    add(
        "--bulk",
        action="store_true",
        help=f'read up to {MAX_BULK_QUERIES} queries from stdin, one a line: text, or {{"query": …}}',
    )
    add_filters(parser)


async def _run(arguments: argparse.Namespace, context: KebabContext) -> int:
    where = read_filter(arguments)
    wanted: dict[str, Any] = {
        "mode": arguments.mode,
        "k": arguments.k,
        "where": where,
        "max_tokens": arguments.max_tokens,
        "snippet_chars": arguments.snippet_chars,
    }
    if arguments.bulk:
        return await _run_bulk(arguments, context, wanted)
    query = " ".join(arguments.query)
    if not query.strip():
        raise InvalidInput("a query must have a word", 'such as: kebab search "how are backups made"')
    service = await context.open()
    response = await context.call(service.search, query, cursor=arguments.cursor, trace=arguments.trace, **wanted)
    if context.as_json:
        print_wire(context, response)
    else:
        _show(context, response, trace=arguments.trace)
    return OK if response.hits else NOTHING


async def _run_bulk(arguments: argparse.Namespace, context: KebabContext, wanted: dict[str, Any]) -> int:
    if arguments.query or arguments.cursor:
        raise InvalidInput("--bulk reads its queries from stdin; it takes no query and no cursor", "one query a line")
    data = await context.console.read_stdin()
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    if not 1 <= len(lines) <= MAX_BULK_QUERIES:
        raise InvalidInput(f"--bulk takes 1 to {MAX_BULK_QUERIES} queries, got {len(lines)}", "split them")
    service = await context.open()
    queries = [_query_of(line) for line in lines]
    items: list[BulkSearchItemV1] = []
    found = iter((await context.call(service.bulk_search, [q for q in queries if isinstance(q, str)], **wanted)).items)
    for index, (line, query) in enumerate(zip(lines, queries, strict=True)):
        if isinstance(query, InvalidInput):
            items.append(BulkSearchItemV1(index=index, query=line, error=classify(query)))
        else:
            items.append(msgspec.structs.replace(next(found), index=index))
    for item in items:
        if context.as_json:
            print_wire(context, item)
            continue
        context.output.text(context.output.paint(f"# {one_line(item.query)}", "bold"))
        if isinstance(item.response, SearchResponseV1):
            _show(context, item.response)
        elif isinstance(item.error, ErrorV1):
            hint = item.error.hint if isinstance(item.error.hint, str) else ""
            print_error(context.console, context.rewrite(item.error.message), context.rewrite(hint))
    if any(isinstance(item.error, ErrorV1) for item in items):
        return ERROR
    return OK if any(isinstance(i.response, SearchResponseV1) and i.response.hits for i in items) else NOTHING


class _BulkLine(Struct, forbid_unknown_fields=True):
    query: str


def _query_of(line: str) -> str | InvalidInput:
    """A line is a query; one that is a JSON object has it as its member `query`, and no other member."""
    if not line.startswith("{"):
        return line
    try:
        return msgspec.json.decode(line, type=ready(_BulkLine)).query
    except msgspec.ValidationError as error:
        message = f'a JSON line of --bulk must be {{"query": "…"}}, got {one_line(line[:80])}: {error}'
        return InvalidInput(message, "options such as --k hold for all lines")
    except msgspec.DecodeError:
        return line  # text that happens to begin with a brace


def _show(context: KebabContext, response: SearchResponseV1, *, trace: bool = False) -> None:
    output = context.output
    for hit in response.hits:
        output.text(*_lines(context, hit))
    if not response.hits:
        context.note("nothing found")
    if isinstance(response.hint, str):
        context.note(context.rewrite(response.hint))
    if response.next_cursor:
        context.note(f"more: --cursor {response.next_cursor}")
    if trace and isinstance(response.trace, SearchTrace):
        timing = response.trace.timing
        context.note(
            f"lexical {timing.lexical_ms:.1f} ms, vector {timing.vector_ms:.1f} ms, fusion {timing.fusion_ms:.1f} ms, "
            f"total {timing.total_ms:.1f} ms"
        )


def _lines(context: KebabContext, hit: SearchHitV1) -> Iterable[str]:
    paint = context.output.paint
    section = " › ".join(map(one_line, hit.heading_path))
    found = "+".join(
        name for name, rank in (("lexical", hit.retrieval.lexical_rank), ("vector", hit.retrieval.vector_rank)) if rank
    )
    yield f"{paint(f'{hit.rank}.', 'bold')} {paint(one_line(hit.citation.uri), 'cyan')}" + (
        f"  {paint(section, 'dim')}" if section else ""
    )
    yield f"   {_highlighted(context, hit)}"
    detail = f"score {hit.score:.3f} {hit.score_kind} · {found} · chunk {hit.chunk_id}"
    yield f"   {paint(detail, 'dim')}" + ("  (stale)" if hit.stale else "")


def _highlighted(context: KebabContext, hit: SearchHitV1) -> str:
    text, spans = hit.snippet.replace("\n", " "), hit.highlights
    if not context.output.is_coloured or not isinstance(spans, tuple):
        return one_line(text)
    pieces, at = [], 0
    for start, end in spans:
        pieces += [
            one_line(text[at:start]) if at < start else "",
            context.output.paint(one_line(text[start:end]), "bold"),
        ]
        at = end
    return "".join((*pieces, one_line(text[at:])))


COMMANDS = (
    Command(
        "search",
        "find passages: by words, by meaning, or by both",
        _add,
        _run,
        "Find the passages that fit a query best, with the place of each. Any punctuation may stand in a query.",
        (
            ('search "how are backups made"', "the ten best passages"),
            ("search --k 3 --mode lexical parse_config", "an identifier, by its words only"),
            ("search --path-glob 'docs/**' --json 백업 주기", "only below docs, as search_response.v1"),
            ("search --bulk < queries.txt", "one query a line"),
        ),
    ),
)
