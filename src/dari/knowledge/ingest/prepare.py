"""One file to what the store takes: read, hashed, parsed in a child process, cut into chunks. Runs in threads."""

from __future__ import annotations

import threading
from pathlib import PurePosixPath

import msgspec
from msgspec import Struct

from dari.files.inside import FileContent, FileTooLarge, read_inside
from dari.files.secrets import holds_private_key
from dari.knowledge.chunk import ChunkPolicy, chunk_document, chunker_version, current_chunkers
from dari.knowledge.config import IngestSettings, Source
from dari.knowledge.document import Block, Chunk, Media, ParsedDocument, TrustLevel
from dari.knowledge.ids import asset_id, doc_id
from dari.knowledge.ingest.walk import FoundFile, SkipKind, max_bytes_of
from dari.knowledge.parse import (
    HEAD_BYTES,
    ParseFailed,
    ParseLimits,
    ParserPool,
    default_title,
    media_of,
    parser_version,
)
from dari.knowledge.store.filters import TRUST_LEVELS
from dari.knowledge.store.records import DocumentRecord, FileState, utc_text
from dari.knowledge.store.store import Store
from dari.os_errors import describe_os_error

MAX_ATTEMPTS = 3
"""A file whose parser was late or died is tried this often, an ingest each: the machine may have been busy."""
_TRIED_AGAIN = frozenset({"timeout", "crashed"})


class Candidate(Struct, frozen=True, gc=False):
    """A file that is new or may have changed; `doc_no` and `asset_id` are of the document that it was, 0 and "" when
    it is new. `has_versions`: the document was made by the parser, rules and settings of today. `attempts`: how often
    it was not parsed in time before."""

    found: FoundFile
    doc_no: int = 0
    asset_id: str = ""
    has_versions: bool = False
    attempts: int = 0


class NewContent(Struct, frozen=True):
    """To be put into the store."""

    record: DocumentRecord
    chunks: tuple[Chunk, ...]
    blocks: tuple[Block, ...]
    warnings: tuple[str, ...] = ()


class SameContent(Struct, frozen=True):
    """Written again, with the content it had."""

    mtime_ns: int
    modified_at: str


class NewPath(Struct, frozen=True):
    """A document that has moved."""

    doc_no: int
    old_path: str
    record: DocumentRecord
    chunk_ids: tuple[str, ...]


class LeftOut(Struct, frozen=True):
    kind: SkipKind


class Unreadable(Struct, frozen=True):
    """`is_lasting`: trying again is of no use until the file changes."""

    reason: str
    is_lasting: bool
    mtime_ns: int = 0
    is_ocr: bool = False


class Vanished(Struct, frozen=True):
    """Gone since the walk."""


Outcome = NewContent | SameContent | NewPath | LeftOut | Unreadable | Vanished


class MissingDocuments:
    """Documents whose file is gone, by content: the first new file with that content is where it went."""

    def __init__(self) -> None:
        self._by_asset: dict[str, list[int]] = {}
        self._lock = threading.Lock()

    def add(self, state: FileState) -> None:
        self._by_asset.setdefault(state.asset_id, []).append(state.doc_no)

    def take(self, asset: str) -> int | None:
        with self._lock:
            left = self._by_asset.get(asset)
            return left.pop() if left else None

    def put_back(self, asset: str, doc_no: int) -> None:
        with self._lock:
            self._by_asset.setdefault(asset, []).append(doc_no)


class Preparer:
    """Shared by the threads of one source."""

    def __init__(
        self,
        source: Source,
        settings: IngestSettings,
        policy: ChunkPolicy,
        store: Store,
        pool: ParserPool,
        missing: MissingDocuments,
        *,
        force: bool = False,
    ) -> None:
        self.source = source
        self.settings = settings
        self.policy = policy
        self.store = store
        self.pool = pool
        self.missing = missing
        self.force = force

    def has_current_versions(self, state: FileState, media: Media) -> bool:
        """Whether the document would be the same if it were made again. `media` is by its name; a PDF is one under any
        name."""
        parser, chunker, policy = state.versions
        has_parser = parser in (parser_version(media), parser_version("pdf"))
        return has_parser and chunker in current_chunkers() and policy == self.policy.hash

    def prepare(self, candidate: Candidate) -> Outcome:
        """Never raises for what is wrong with one file."""
        found = candidate.found
        try:
            content = read_inside(self.source.root, found.relative, max_bytes_of(found.media, self.settings))
        except FileNotFoundError:
            return Vanished()
        except FileTooLarge:
            return LeftOut("size_exceeded")
        except OSError as error:
            return Unreadable(f"io_error: {describe_os_error(error)}", is_lasting=False)
        if holds_private_key(content.data[:HEAD_BYTES]):
            return LeftOut("secret")
        asset = asset_id(content.data)
        if asset == candidate.asset_id and candidate.has_versions and not self.force:
            return SameContent(content.mtime_ns, utc_text(content.modified_s))
        if not candidate.doc_no and not self.force and (moved := self._moved(found, asset, content)) is not None:
            return moved
        return self.parse(self.source.document_path(found.relative), content, asset, found.repo)

    def parse(
        self, path: str, content: FileContent, asset: str, repo: str = "", title: str = "", source_uri: str = ""
    ) -> Outcome:
        """Content as a document with this path."""
        media = media_of(PurePosixPath(path), content.data[:HEAD_BYTES])
        if media is None:
            return LeftOut("binary")
        try:
            document = self.pool.parse_bytes(content.data, path)
        except ParseFailed as error:
            is_ocr = media == "image" or error.reason == "ocr_unavailable"
            if error.reason == "unsupported":
                return LeftOut("extension")
            if error.reason in ("size_exceeded", "generated", "binary", "ocr_unavailable"):
                return LeftOut(error.reason)
            return Unreadable(f"{error.reason}: {error.message}", error.reason != "io_error", content.mtime_ns, is_ocr)
        document = _encodable(document)
        identity = doc_id(path, asset, document.parser_version)
        chunks = chunk_document(identity, document, self.policy)
        record = DocumentRecord(
            doc_id=identity,
            path=path,
            source_id=self.source.id,
            source_type=self.source.type,
            source_uri=source_uri,
            asset_id=asset,
            media=document.media,
            title=title or document.title,
            lang=document.lang,
            tags=document.tags,
            trust_level=_lesser(document.trust_level, self.source.trust_level),
            repo=repo,
            code_lang=document.code_lang,
            byte_len=len(content.data),
            mtime_ns=content.mtime_ns,
            block_count=len(document.blocks),
            chunk_count=len(chunks),
            parser_version=document.parser_version,
            chunker_version=chunker_version(document),
            policy_hash=self.policy.hash,
            ocr_pages=document.ocr_pages,
            ocr_ms=document.ocr_ms,
            indexed_at=utc_text(),
            modified_at=utc_text(content.modified_s),
        )
        return NewContent(record, tuple(chunks), document.blocks, document.warnings)

    def _moved(self, found: FoundFile, asset: str, content: FileContent) -> NewPath | None:
        """A new file with the content of one that is gone: the document moves, and nothing is parsed or embedded.

        Ids hold the path, so they are made anew, from the blocks that the store has.
        """
        doc_no = self.missing.take(asset)
        if doc_no is None:
            return None
        old = self.store.documents([doc_no]).get(doc_no)
        path = self.source.document_path(found.relative)
        if old is None or not self._fits(old, path, found.media):
            self.missing.put_back(asset, doc_no)
            return None
        identity = doc_id(path, asset, old.parser_version)
        document = ParsedDocument(old.media, old.parser_version, self.store.blocks_of(doc_no), code_lang=old.code_lang)
        chunks = chunk_document(identity, document, self.policy)
        if [chunk.text for chunk in chunks] != [chunk.text for chunk in self.store.chunks_of(doc_no)]:
            self.missing.put_back(asset, doc_no)
            return None
        record = msgspec.structs.replace(
            old,
            doc_id=identity,
            path=path,
            source_id=self.source.id,
            source_type=self.source.type,
            trust_level=_lesser(old.trust_level, self.source.trust_level),
            repo=found.repo,
            title=_title_after_move(old, path),
            mtime_ns=content.mtime_ns,
            modified_at=utc_text(content.modified_s),
        )
        return NewPath(doc_no, old.path, record, tuple(chunk.chunk_id for chunk in chunks))

    def _fits(self, old: DocumentRecord, path: str, media: Media) -> bool:
        """Whether the parser would make the same of it under its new name."""
        before, after = PurePosixPath(old.path), PurePosixPath(path)
        trust = self.source.trust_level
        return (
            old.media == media
            and old.parser_version == parser_version(media)
            and old.policy_hash == self.policy.hash
            and before.suffix == after.suffix
            and (before.suffix != "" or before.name == after.name)
            # From a source of less trust: what the document itself says of its trust is not known without parsing it.
            and (old.source_id == self.source.id or _lesser(old.trust_level, trust) == trust)
        )


def is_tried_again(reason: str) -> bool:
    """Whether this failure may be the machine's and not the file's."""
    return reason.partition(":")[0] in _TRIED_AGAIN


def tried_by(reason: str, media: Media, settings: IngestSettings) -> str:
    """What a failure depends on beside the file: the parser, and its limits where it may have met one."""
    version = parser_version(media)
    if is_tried_again(reason) or reason.startswith("memory:"):
        return f"{version}@{settings.parse_timeout_s:g}s,{settings.parse_memory_bytes}B"
    return version


def describe_failure(reason: str, attempts: int) -> str:
    """The reason, and when the file is tried again."""
    if not is_tried_again(reason):
        return reason
    if attempts < MAX_ATTEMPTS:
        return f"{reason}; attempt {attempts} of {MAX_ATTEMPTS}, the next ingest tries it again"
    return (
        f"{reason}; {attempts} attempts failed, it is tried again when it changes, when [ingest] parse_timeout_s or"
        " parse_memory_bytes change, or with --force-reingest"
    )


def limits_of(settings: IngestSettings) -> ParseLimits:
    return ParseLimits(
        max_file_bytes=settings.max_file_bytes,
        max_code_bytes=settings.max_code_bytes,
        max_code_lines=settings.max_code_lines,
        max_memory_bytes=settings.parse_memory_bytes,
        max_wall_s=settings.parse_timeout_s,
        max_cpu_s=max(1, round(settings.parse_timeout_s / 2)),
        ocr=settings.ocr,
        ocr_languages=settings.ocr_languages,
        skip_generated=settings.skip_generated,
    )


def _title_after_move(old: DocumentRecord, path: str) -> str:
    """A title that was the file's name follows it."""
    before = default_title(PurePosixPath(old.path), old.media)
    return default_title(PurePosixPath(path), old.media) if old.title == before else old.title


def _lesser(one: TrustLevel, other: TrustLevel) -> TrustLevel:
    return TRUST_LEVELS[min(TRUST_LEVELS.index(one), TRUST_LEVELS.index(other))]


def _encodable(document: ParsedDocument) -> ParsedDocument:
    """Lone surrogates are in no text that a store or a wire takes."""
    try:
        msgspec.msgpack.encode(document)
        return document
    except UnicodeEncodeError:
        pass
    return msgspec.structs.replace(
        document,
        title=_clean(document.title),
        tags=tuple(map(_clean, document.tags)),
        warnings=tuple(map(_clean, document.warnings)),
        blocks=tuple(
            msgspec.structs.replace(
                block,
                text=_clean(block.text),
                symbol=_clean(block.symbol),
                heading_path=tuple(map(_clean, block.heading_path)),
            )
            for block in document.blocks
        ),
    )


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
