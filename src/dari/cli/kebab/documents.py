"""`kebab list docs`, `kebab inspect …` and `kebab fetch …`: what is indexed, and its text word for word."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from msgspec import UNSET

from dari.cli.kebab.context import NOTHING, OK, KebabContext, print_wire
from dari.cli.kebab.search import add_filters, read_filter
from dari.cli.kit.parser import Command, count_between
from dari.cli.kit.table import format_pairs, format_size, print_table
from dari.errors import InvalidInput
from dari.knowledge.wire.objects import FetchResultV1
from dari.text.sanitize import escape_hidden


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("docs",), help="the documents")
    parser.add_argument("--limit", type=count_between(1, 10_000), default=100, metavar="N", help="default: 100")
    parser.add_argument("--cursor", metavar="CURSOR", help="the next page")
    add_filters(parser)


async def _run_list(arguments: argparse.Namespace, context: KebabContext) -> int:
    service = await context.open()
    where = read_filter(arguments)
    listed = await context.call(service.list_docs, where=where, cursor=arguments.cursor, limit=arguments.limit)
    if context.as_json:
        print_wire(context, listed)
        return OK
    rows = [
        (doc.doc_path, doc.media, doc.lang, doc.chunk_count, format_size(doc.byte_len), doc.indexed_at[:16], doc.doc_id)
        for doc in listed.docs
    ]
    if rows:
        print_table(context.console, ("path", "media", "lang", "chunks", "size", "indexed", "id"), rows)
    else:
        context.note("no document is indexed, or none fits")
    if listed.next_cursor:
        context.note(f"more: --cursor {listed.next_cursor}")
    return OK


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    document = kinds.add_parser("doc", help="a document with its chunks")
    document.add_argument("id", help="its id or its path")
    chunk = kinds.add_parser("chunk", help="a chunk as it is stored")
    chunk.add_argument("id")
    kinds.add_parser("ocr-stats", help="how much was read by OCR, and whether it is installed")
    kinds.add_parser("ocr-failures", help="pictures and pages that OCR could not read")


def _facts(pairs: Mapping[str, object]) -> list[str]:
    shown = {name: ("no", "yes")[value] if isinstance(value, bool) else value for name, value in pairs.items()}
    return format_pairs({name: value for name, value in shown.items() if value is not UNSET})


async def _run_inspect(arguments: argparse.Namespace, context: KebabContext) -> int:
    service = await context.open()
    if arguments.what == "doc":
        document = await context.call(service.inspect_doc, arguments.id)
        if context.as_json:
            print_wire(context, document)
            return OK
        doc = document.doc
        pairs = {name: getattr(doc, name) for name in doc.__struct_fields__ if name != "schema_version"}
        context.output.text(*_facts(pairs))
        rows = [(one.ordinal, one.citation.uri, one.token_count, one.chunk_id) for one in document.chunks]
        if rows:
            context.output.text("")
            print_table(context.console, ("#", "place", "tokens", "chunk"), rows)
        return OK
    if arguments.what == "chunk":
        found = await context.call(service.inspect_chunk, arguments.id)
        if context.as_json:
            print_wire(context, found)
            return OK
        shown = {
            "chunk": found.chunk_id,
            "document": found.doc_path,
            "place": found.citation.uri,
            "section": " › ".join(found.heading_path),
            "tokens": found.token_count,
            "chunker": found.chunker_version,
        }
        context.output.text(*format_pairs(shown), "", escape_hidden(found.text))
        return OK
    if arguments.what == "ocr-stats":
        stats = await context.call(service.ocr_stats)
        pairs = {name: getattr(stats, name) for name in stats.__struct_fields__ if name != "schema_version"}
        if context.as_json:
            print_wire(context, stats)
        else:
            context.output.text(*_facts(pairs))
        return OK
    failures = await context.call(service.ocr_failures)
    if context.as_json:
        print_wire(context, failures)
    elif failures.failures:
        print_table(context.console, ("path", "reason"), [(one.doc_path, one.reason) for one in failures.failures])
    else:
        context.note("OCR has failed on no document")
    return OK


def _add_fetch(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    chunk = kinds.add_parser("chunk", help="a chunk, with its neighbours if wanted")
    chunk.add_argument("id")
    chunk.add_argument("--context", type=count_between(0, 20), default=0, metavar="N", help="chunks before and after")
    document = kinds.add_parser("doc", help="the whole document")
    document.add_argument("id", help="its id, its path, or a citation of it")
    span = kinds.add_parser("span", help="some lines of a document")
    span.add_argument("id", help="its id, its path, or a citation such as notes/a.md#L3-L9")
    span.add_argument(
        "start", type=count_between(1, 100_000_000), nargs="?", help="the first line, from 1 (default: the citation's)"
    )
    span.add_argument("end", type=count_between(1, 100_000_000), nargs="?", help="the last line (default: the first)")
    for one in (chunk, document, span):
        one.add_argument("--max-tokens", type=count_between(1, 10_000_000), metavar="N", help="cut after this many")


async def _run_fetch(arguments: argparse.Namespace, context: KebabContext) -> int:
    service = await context.open()
    if arguments.what == "chunk":
        found = await context.call(
            service.fetch, chunk_id=arguments.id, context=arguments.context, max_tokens=arguments.max_tokens
        )
    elif arguments.what == "doc":
        found = await context.call(service.fetch, doc_id=arguments.id, max_tokens=arguments.max_tokens)
    else:
        start, end = arguments.start, arguments.end
        if start is None:
            from dari.knowledge.ids import read_citation

            _, start, end = read_citation(arguments.id)
            if not start:
                raise InvalidInput(
                    "a span needs its first line, or a citation with lines", "kebab fetch span notes/a.md#L3-L9"
                )
        found = await context.call(
            service.fetch,
            doc_id=arguments.id,
            line_start=start,
            line_end=start if end is None else end,
            max_tokens=arguments.max_tokens,
        )
    if context.as_json:
        print_wire(context, found)
    else:
        context.output.text(escape_hidden(_text_of(found)))
        if found.truncated:
            context.note("it goes on: raise --max-tokens")
    return OK if _text_of(found) else NOTHING


def _text_of(found: FetchResultV1) -> str:
    if isinstance(found.text, str):
        return found.text
    parts = []
    for group in (found.context_before, (found.chunk,), found.context_after):
        if group is not UNSET:
            parts += [chunk.text for chunk in group if chunk is not UNSET]
    return "\n\n".join(parts)


COMMANDS = (
    Command(
        "list",
        "list what is indexed",
        _add_list,
        _run_list,
        "List the indexed documents by path.",
        (("list docs", "the first hundred"), ("list docs --media pdf --json", "all PDFs as doc_list.v1")),
    ),
    Command(
        "inspect",
        "look at a document or a chunk as it is stored",
        _add_inspect,
        _run_inspect,
        "Look at what the index holds of a document or a chunk.",
        (("inspect doc notes/setup.md", "its chunks and their places"), ("inspect ocr-failures", "what was not read")),
    ),
    Command(
        "fetch",
        "print the text of a chunk, a document or a span of lines",
        _add_fetch,
        _run_fetch,
        "Print text word for word: what a search found, with what stands around it.",
        (
            ("fetch chunk 4f1c… --context 1", "a chunk and its neighbours"),
            ("fetch span notes/setup.md 12 34", "lines 12 to 34"),
            ("fetch span notes/setup.md#L12-L34", "the same, as a search or an answer cites them"),
            ("fetch doc paper.pdf --max-tokens 2000", "the beginning of a document"),
        ),
    ),
)
