"""One file, or what comes from stdin. A file of a configured folder stays where it is; anything else is copied into
the data folder and has the path `_external/<hash>.<extension>`."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path, PurePosixPath

from blake3 import blake3

from dari.errors import Denied
from dari.files.inside import FileContent, opened_file, read_open
from dari.files.secrets import holds_private_key, is_secret_name
from dari.knowledge.chunk import ChunkPolicy
from dari.knowledge.config import Settings, Source
from dari.knowledge.errors import IngestAssetError, InvalidArgument
from dari.knowledge.ids import asset_id
from dari.knowledge.ingest.pipeline import IngestRun, IngestScope
from dari.knowledge.ingest.prepare import LeftOut, MissingDocuments, NewContent, Preparer, Unreadable, limits_of
from dari.knowledge.ingest.report import Listener, ReportWriter
from dari.knowledge.ingest.sources import all_sources, source_of
from dari.knowledge.ingest.walk import SkipKind, is_utf8, max_bytes_of
from dari.knowledge.ingest.writer import KnowledgeWriter, open_writer
from dari.knowledge.parse import HEAD_BYTES, ParserPool, media_of
from dari.knowledge.paths import EXTERNAL
from dari.knowledge.wire.reports import IngestReportV1

HASH_DIGITS = 12


def ingest_file(
    settings: Settings,
    path: Path,
    *,
    title: str = "",
    source_uri: str = "",
    is_checked: bool = False,
    listener: Listener | None = None,
    cancelled: threading.Event | None = None,
    wait_s: float | None = None,
) -> IngestReportV1:
    """Index one file. `is_checked`: an agent named it, and somebody decided about this very path, which has no links;
    Denied when a link stands in it now."""
    if not is_utf8(str(path)):
        raise InvalidArgument(f"the name of the file must be UTF-8, got {str(path)!a}", "rename it")
    if not path.exists():
        raise InvalidArgument(f"the file must exist, got {path}", "check the path")
    if path.is_dir():
        raise InvalidArgument(f"ingest-file takes one file, got the folder {path}", f"kebab ingest --root {path}")
    with open_writer(settings, wait_s, cancelled) as writer, opened_file(path) as (file, real):
        if is_checked and real != str(path):
            raise Denied(f"{path} leads to {real} now", "name the file itself, and ask again")
        found = source_of(real, all_sources(settings, writer.store))
        if found is not None:
            scope = IngestScope(found.source, (found.relative,))
            return IngestRun(writer, [scope], listener=listener, cancelled=cancelled).run()
        media = media_of(PurePosixPath(path.name), b"")
        content = read_open(file, str(path), max_bytes_of(media or "pdf", settings.config.ingest))
        return _ingest_external(
            writer, content, path.name, title or path.name, source_uri or path.absolute().as_uri(), listener
        )


def ingest_bytes(
    settings: Settings,
    data: bytes,
    title: str,
    source_uri: str = "",
    extension: str = "md",
    *,
    listener: Listener | None = None,
    cancelled: threading.Event | None = None,
    wait_s: float | None = None,
) -> IngestReportV1:
    """Index a text that is in no file: stdin, or what an agent sends. Markdown unless `extension` says otherwise."""
    if not title.strip():
        raise InvalidArgument("a text from stdin needs a title", "give one: --title TITLE")
    if not data.strip():
        raise InvalidArgument("the text must not be empty", "pipe the text into the command")
    limit = settings.config.ingest.max_text_bytes
    if len(data) > limit:
        raise InvalidArgument(f"the text must have at most {limit} bytes, got {len(data)}", "split it")
    if re.fullmatch(r"[A-Za-z0-9]{1,10}", extension) is None:
        raise InvalidArgument(f"the extension must be 1 to 10 letters or digits, got {extension!r}", "such as md")
    with open_writer(settings, wait_s, cancelled) as writer:
        return _ingest_external(
            writer, FileContent(data, 0, time.time()), f"stdin.{extension}", title, source_uri, listener
        )


def _ingest_external(
    writer: KnowledgeWriter, content: FileContent, name: str, title: str, source_uri: str, listener: Listener | None
) -> IngestReportV1:
    suffix = PurePosixPath(name).suffix.lower() or ".txt"
    path = f"{EXTERNAL}/{blake3(content.data).hexdigest()[:HASH_DIGITS]}{suffix}"
    tell = ReportWriter(path, listener)
    tell.recovered = "; ".join(writer.notes)
    journal = writer.store.journal
    run_no = journal.begin_run(path)
    tell.run_id = str(run_no)
    tell.scan_started()
    tell.scanned()
    tell.scan_completed(1)
    tell.started(path)
    try:
        _store_external(writer, tell, content, name, path, title, source_uri)
    except BaseException as error:
        tell.end(aborted=True, error=str(error))
        journal.end_run(run_no, "failed", "")
        raise
    report = tell.end(aborted=False)
    journal.end_run(run_no, "completed", "")
    return report


def _store_external(
    writer: KnowledgeWriter,
    tell: ReportWriter,
    content: FileContent,
    name: str,
    path: str,
    title: str,
    source_uri: str,
) -> None:
    settings, store, data = writer.settings, writer.store, content.data
    if is_secret_name(name) or holds_private_key(data[:HEAD_BYTES]):
        return _skip(tell, path, "secret")
    source = Source(id=EXTERNAL, root=settings.data.assets, type="inbox")
    chunking, asset = settings.config.chunking, asset_id(data)
    policy = ChunkPolicy(chunking.target_tokens, chunking.overlap_tokens, chunking.max_tokens)
    old = store.document_by_path(path)
    with ParserPool(limits_of(settings.config.ingest)) as pool:
        preparer = Preparer(source, settings.config.ingest, policy, store, pool, MissingDocuments())
        state = store.file_state(path)
        is_same = old is not None and (old.title, old.source_uri) == (title, source_uri)
        if is_same and state is not None and old is not None and preparer.has_current_versions(state, old.media):
            return tell.unchanged(path, was_candidate=True)
        outcome = preparer.parse(path, content, asset, title=title, source_uri=source_uri)
    if isinstance(outcome, LeftOut):
        return _skip(tell, path, outcome.kind)
    if isinstance(outcome, Unreadable):
        tell.failed(path, outcome.reason)
        return None
    if not isinstance(outcome, NewContent):
        raise IngestAssetError(f"{name} was not indexed", "try again")
    writer.backend.put_asset(asset, data)
    with store.write() as transaction:
        result = transaction.put_document(outcome.record, outcome.chunks, outcome.blocks)
        revision = transaction.revision
    writer.index([result], revision)
    writer.commit_index()
    tell.stored("updated" if old else "new", outcome.record, outcome.warnings)
    return None


def _skip(tell: ReportWriter, path: str, kind: SkipKind) -> None:
    if kind == "extension":
        tell.skips.add_extension(path)
    else:
        tell.skips.add(kind, path)
    tell.skipped(path, kind)
