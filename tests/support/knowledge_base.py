"""A small knowledge base, made without files: documents in the store, and the lexical index over them."""

from __future__ import annotations

from pathlib import Path

from dari.knowledge.chunk import ChunkPolicy, chunk_document
from dari.knowledge.ids import asset_id, doc_id
from dari.knowledge.index.lexical import LexicalIndex
from dari.knowledge.parse import ParseLimits, parse_file
from dari.knowledge.paths import DataPaths
from dari.knowledge.store.records import DocumentRecord, utc_text
from dari.knowledge.store.sqlite import make_store

NOTES = {
    "backups.md": "# Backups\n\n## Schedule\n\nBackups are made every night at 02:30 by the cron job `nightly_dump`.\n"
    "They are kept for 35 days.\n\n## Restore\n\nRun `restore_dump --latest` to restore the newest backup.\n",
    "deploy.md": "# Deploys\n\nA deploy starts when a tag is pushed. The canary takes five percent of the traffic.\n",
    "korean/보안.md": "# 보안 정책\n\n비밀번호는 90일마다 바꿔야 한다. 관리자는 이중 인증을 쓴다.\n",
}


def write_notes(root: Path) -> Path:
    """The notes as files."""
    for name, text in NOTES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def write_config(path: Path, root: Path, data: Path, more: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    sections = f'[workspace]\nroot = "{root}"\n[store]\ndata_dir = "{data}"\n[embedding]\nmodel = "none"'
    path.write_text(f"config_version = 1\n{sections}\n{more}")
    return path


def index_notes(root: Path, data: Path) -> None:
    """Parse, cut, store and index every note below a folder."""
    paths = DataPaths(data)
    data.mkdir(parents=True, exist_ok=True)
    store, _ = make_store(paths.sqlite)
    lexical = LexicalIndex.open(paths.lexical, writable=True)
    for path in sorted(root.rglob("*.md")):
        name, content = str(path.relative_to(root)), path.read_bytes()
        parsed = parse_file(path, name, ParseLimits())
        asset = asset_id(content)
        identity = doc_id(name, asset, parsed.parser_version)
        chunks = chunk_document(identity, parsed, ChunkPolicy())
        record = DocumentRecord(
            doc_id=identity,
            path=name,
            asset_id=asset,
            media=parsed.media,
            title=parsed.title,
            lang=parsed.lang,
            byte_len=len(content),
            block_count=len(parsed.blocks),
            chunk_count=len(chunks),
            parser_version=parsed.parser_version,
            chunker_version="md-heading-v2",
            indexed_at=utc_text(),
        )
        with store.write() as transaction:
            put = transaction.put_document(record, chunks, parsed.blocks)
            revision = transaction.revision
        for row in put.added:
            lexical.add(row.chunk_no, row.doc_no, row.text, row.title_text)
        lexical.commit(revision)
    store.close()
