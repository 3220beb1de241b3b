"""`kebab ingest`, `ingest-file`, `ingest-stdin` and `watch`: files into the index, with progress."""

from __future__ import annotations

import argparse
import asyncio
import gc
import threading
from collections.abc import Callable

from msgspec import UNSET, json

from dari.cli.kebab.context import ERROR, OK, KebabContext, print_wire, show_error
from dari.cli.kebab.progress import ProgressBar
from dari.cli.kit.parser import Command
from dari.cli.kit.table import format_duration, one_line
from dari.errors import DariError, InvalidInput
from dari.knowledge.errors import IngestAssetError
from dari.knowledge.wire.reports import IngestProgressV1, IngestReportV1

WAIT_S = 3600.0
_MAX_SHOWN = 8
_OTHER_SKIPS = {
    "symlink": "symbolic links",
    "special": "files that are neither text nor folder",
    "name_not_utf8": "names that are not UTF-8",
    "binary": "binary files",
    "too_deep": "folders too deep",
    "ocr_unavailable": "pictures without OCR",
}
_READ_HINT = "kebab reads Markdown, text, PDF, HTML, docx, pptx, xlsx, code, notebooks, and pictures where tesseract is"
_LEFT_OUT = {
    "extension": "kebab does not read files of this kind",
    "secret": "keys, .env files and the like stay out",
    "binary": "it is binary data",
    "gitignore": "a .gitignore leaves it out",
    "kebabignore": "a .kebabignore leaves it out",
    "excluded": "exclude or include leaves it out",
    "builtin_blacklist": "it is in a tool's own folder",
    "generated": "it is generated",
    "size_exceeded": "it is too large",
    "symlink": "it is a symbolic link",
    "special": "it is not a regular file",
    "ocr_unavailable": "tesseract is not installed",
}


def _add_wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wait", action="store_true", help="wait for another process that writes, up to an hour")


def _add_ingest(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", nargs="?", help="only this folder (default: all that are configured)")
    add("--root", metavar="DIR", help="the same as FOLDER")
    add("--summary-only", action="store_true", help="leave the list of files out of the report")
    add("--force-reingest", action="store_true", help="parse every file again, changed or not")
    add("--take-over", action="store_true", help="in a shared store: make sources of another machine this one's")
    add("--no-embed", action="store_true", help="make no vectors now; kebabd or the next ingest does")
    _add_wait(parser)


async def _run_ingest(arguments: argparse.Namespace, context: KebabContext) -> int:
    from dari.knowledge.indexing import index_folders

    if arguments.folder and arguments.root:
        raise InvalidInput("a folder and --root name the same thing", "give one of them")
    chosen = arguments.folder or arguments.root
    root = context.resolve(chosen) if chosen else None
    settings = (await context.open()).settings

    def work(progress: IngestDisplay) -> IngestReportV1:
        return index_folders(
            settings,
            root,
            force=arguments.force_reingest,
            take_over=arguments.take_over,
            has_items=not arguments.summary_only,
            embeds=not arguments.no_embed,
            listener=progress.tell,
            cancelled=progress.cancelled,
            wait_s=WAIT_S if arguments.wait else None,
        )

    return await _carry_out(context, "kebab ingest", work)


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="the file; outside of your folders a copy is kept")
    _add_wait(parser)


async def _run_file(arguments: argparse.Namespace, context: KebabContext) -> int:
    from dari.knowledge.indexing import index_file

    path, settings = context.resolve(arguments.path), (await context.open()).settings
    wait_s = WAIT_S if arguments.wait else None
    return await _carry_out(
        context,
        "kebab ingest-file",
        lambda progress: index_file(
            settings, path, listener=progress.tell, cancelled=progress.cancelled, wait_s=wait_s
        ),
        one_line(arguments.path),
    )


def _add_stdin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--title", required=True, help="what the text is called")
    parser.add_argument("--source-uri", metavar="URI", default="", help="where it came from")
    _add_wait(parser)


async def _run_stdin(arguments: argparse.Namespace, context: KebabContext) -> int:
    from dari.knowledge.indexing import index_text

    settings = (await context.open()).settings
    text = await context.console.read_stdin()
    wait_s = WAIT_S if arguments.wait else None
    return await _carry_out(
        context,
        "kebab ingest-stdin",
        lambda progress: index_text(
            settings,
            text,
            arguments.title,
            arguments.source_uri,
            listener=progress.tell,
            cancelled=progress.cancelled,
            wait_s=wait_s,
        ),
        one_line(arguments.title),
    )


class IngestDisplay:
    """A bar for a person, `ingest_progress.v1` lines for a program. `cancelled` ends the work."""

    def __init__(self, context: KebabContext) -> None:
        self._context = context
        self._line = ProgressBar(context)
        self.cancelled = threading.Event()

    def tell(self, event: IngestProgressV1) -> None:
        """In the thread that works."""
        context = self._context
        if context.as_json:
            if not context.is_quiet:
                context.console.err(json.encode(event).decode() + "\n")
            return
        if event.kind == "asset_failed" and context.is_verbose:
            self._line.clear()
            context.note(f"{one_line(event.doc_path)}: {one_line(event.error)}")
        done = event.done if isinstance(event.done, int) else 0
        total = event.total if isinstance(event.total, int) else 0
        if event.kind.startswith("embed"):
            self._line.show("vectors", done, total)
        elif event.kind.startswith("scan"):
            self._line.show(f"looking at {done} files")
        elif isinstance(event.doc_path, str):
            self._line.show(event.doc_path, done, total)

    def clear(self) -> None:
        self._line.clear()


async def _carry_out(
    context: KebabContext, what: str, work: Callable[[IngestDisplay], IngestReportV1], single: str = ""
) -> int:
    """Run it in a thread; Ctrl-C ends it after the file at hand, with a report of what was done. `single` names the one
    document that was asked for: IngestAssetError where it was left out or could not be read."""
    (await context.open()).require_writable(what)
    gc.enable()
    progress = IngestDisplay(context)
    running = asyncio.ensure_future(context.call(work, progress))
    try:
        report = await asyncio.shield(running)
    except asyncio.CancelledError:
        progress.cancelled.set()
        context.note("ending: what is done stays done")
        report = await running
    finally:
        progress.clear()
    left_out = _why_left_out(report) if single and not report.aborted else ""
    if context.as_json:
        print_wire(context, report)
    elif not left_out:
        _show(context, report)
    if left_out:
        raise IngestAssetError(f"{single} was not indexed: {left_out}", _READ_HINT)
    return ERROR if report.aborted else OK


def _why_left_out(report: IngestReportV1) -> str:
    """Why a single document is not in the index; empty where it is."""
    if report.new or report.updated or report.unchanged or report.renamed:
        return ""
    items = report.items if report.items is not UNSET else ()
    examples = report.skip_examples if report.skip_examples is not UNSET else {}
    reasons = [*(item.error for item in items if isinstance(item.error, str)), *examples]
    return _LEFT_OUT.get(reasons[0], reasons[0]) if reasons else "it was left out"


def _show(context: KebabContext, report: IngestReportV1) -> None:
    output = context.output
    counts = {
        "new": report.new,
        "updated": report.updated,
        "renamed": report.renamed,
        "removed": report.removed,
        "unchanged": report.unchanged,
        "skipped": report.skipped,
        "failed": report.errors,
    }
    shown = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing to do"
    end = "ended early" if report.aborted else "done"
    output.text(f"{end} in {format_duration(report.duration_ms)}: {shown}")
    if report.aborted:
        context.note(context.rewrite("the next kebab ingest goes on where this one ended"))
    if isinstance(report.recovered, str):
        output.note(f"mended first: {report.recovered}")
    reasons = {
        "by .gitignore": report.skipped_gitignore,
        "by .kebabignore": report.skipped_kebabignore,
        "keys and secrets": report.skipped_secret,
        "by exclude or include": report.skipped_excluded,
        "generated": report.skipped_generated,
        "too large": report.skipped_size_exceeded,
        "tools' own folders": report.skipped_builtin_blacklist,
    } | {_extension(name): count for name, count in report.skipped_by_extension.items()}
    counted = [f"{count} {name}" for name, count in reasons.items() if count][:_MAX_SHOWN]
    counted += _other_skips(report)
    if counted:
        context.note(f"skipped: {', '.join(counted)}")
    if report.errors and report.items is not UNSET:
        failed = [item for item in report.items if item.kind == "error"]
        for item in failed[:_MAX_SHOWN]:
            output.note(f"failed: {one_line(item.doc_path)}: {one_line(item.error)}")


def _extension(name: str) -> str:
    from dari.knowledge.ingest.walk import NO_EXTENSION, OTHER_EXTENSIONS

    named = {NO_EXTENSION: "without an extension", OTHER_EXTENSIONS: "of other kinds"}
    return named.get(name) or f".{one_line(name)}"


def _other_skips(report: IngestReportV1) -> list[str]:
    """What the report only gives examples of, with a name of each kind."""
    examples = {} if report.skip_examples is UNSET else report.skip_examples
    return [
        f"{meaning} such as {one_line(examples[kind][0])}"
        for kind, meaning in _OTHER_SKIPS.items()
        if examples.get(kind)
    ]


def _add_watch(parser: argparse.ArgumentParser) -> None:
    del parser  # it has the options of every command and no others


async def _run_watch(arguments: argparse.Namespace, context: KebabContext) -> int:
    from dari.knowledge.indexing import make_vectors
    from dari.knowledge.ingest.watch import watch

    service = await context.open()
    service.require_writable("kebab watch")
    gc.enable()
    progress = IngestDisplay(context)

    def show(report: IngestReportV1) -> None:
        progress.clear()
        if context.as_json:
            print_wire(context, report)
        elif report.new or report.updated or report.renamed or report.removed or report.errors:
            _show(context, report)
        if not progress.cancelled.is_set():
            make_vectors(service.settings, lambda _: None, progress.cancelled)

    def complain(error: DariError) -> None:
        show_error(error, context.console, as_json=context.as_json, rewrite=context.rewrite)

    def work() -> None:
        watch(
            service.settings,
            stopped=progress.cancelled,
            on_report=show,
            on_error=complain,
            on_ready=lambda: context.note("watching; Ctrl-C ends it"),
        )

    running = asyncio.ensure_future(context.call(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        progress.cancelled.set()
        await running
    return OK


COMMANDS = (
    Command(
        "ingest",
        "index your folders, or what changed in them",
        _add_ingest,
        _run_ingest,
        "Index the configured folders: what is new or changed is read, what is gone is forgotten. Ctrl-C at any time.",
        (
            ("ingest", "all configured folders"),
            ("ingest ~/papers --summary-only", "one more folder, remembered from then on"),
            ("ingest --json 2> progress.ndjson", "the report on stdout, ingest_progress.v1 lines on stderr"),
        ),
    ),
    Command(
        "ingest-file",
        "index one file",
        _add_file,
        _run_file,
        "Index one file, inside or outside of your folders.",
        (("ingest-file ~/Downloads/paper.pdf", "a copy is kept, so that it stays citable"),),
    ),
    Command(
        "ingest-stdin",
        "index Markdown from stdin",
        _add_stdin,
        _run_stdin,
        "Index a text that is in no file.",
        (("ingest-stdin --title 'Meeting of 17 November' < notes.md", "under the name _external/…"),),
    ),
    Command(
        "watch",
        "index again whenever a file changes",
        _add_watch,
        _run_watch,
        "Index everything once, then each change when it has been quiet for a moment. kebabd can do it, too.",
        (("watch", "until Ctrl-C"), ("watch --json", "an ingest_report.v1 line for each run")),
    ),
)
