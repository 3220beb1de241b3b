"""The wire objects of ingest, health and upkeep, v1."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from dari.knowledge.wire.objects import Timestamp

ItemKind = Literal["new", "updated", "renamed", "unchanged", "skipped", "removed", "error"]
ProgressKind = Literal[
    "scan_started",
    "scan_progress",
    "scan_completed",
    "asset_started",
    "asset_finished",
    "asset_skipped",
    "asset_failed",
    "ocr_started",
    "ocr_finished",
    "embed_started",
    "embed_progress",
    "completed",
    "aborted",
]
TERMINAL_KINDS: frozenset[ProgressKind] = frozenset({"completed", "aborted"})


class IngestItem(Struct, frozen=True, kw_only=True):
    """What became of one file."""

    kind: ItemKind
    doc_path: str
    doc_id: str | UnsetType = UNSET
    asset_id: str | UnsetType = UNSET
    byte_len: int | UnsetType = UNSET
    block_count: int | UnsetType = UNSET
    chunk_count: int | UnsetType = UNSET
    parser_version: str | UnsetType = UNSET
    chunker_version: str | UnsetType = UNSET
    warnings: tuple[str, ...] | UnsetType = UNSET
    pdf_ocr_pages: int | UnsetType = UNSET
    pdf_ocr_ms_total: int | UnsetType = UNSET
    error: str | UnsetType = UNSET


class IngestReportV1(Struct, frozen=True, kw_only=True):
    """What an ingest did."""

    scope: str
    scanned: int
    new: int
    updated: int
    skipped: int
    unchanged: int
    errors: int
    duration_ms: int
    skipped_by_extension: dict[str, int]
    renamed: int = 0
    removed: int = 0
    skipped_gitignore: int = 0
    skipped_kebabignore: int = 0
    skipped_builtin_blacklist: int = 0
    skipped_generated: int = 0
    skipped_size_exceeded: int = 0
    skipped_secret: int = 0
    skipped_excluded: int = 0
    skip_examples: dict[str, tuple[str, ...]] | UnsetType = UNSET
    items: tuple[IngestItem, ...] | UnsetType = UNSET
    aborted: bool = False
    recovered: str | UnsetType = UNSET
    schema_version: Literal["ingest_report.v1"] = "ingest_report.v1"


class IngestProgressV1(Struct, frozen=True, kw_only=True):
    """A line of progress. A run ends with exactly one `completed` or `aborted`."""

    kind: ProgressKind
    ts: Timestamp
    run_id: str | UnsetType = UNSET
    doc_path: str | UnsetType = UNSET
    done: int | UnsetType = UNSET
    total: int | UnsetType = UNSET
    chunks: int | UnsetType = UNSET
    outcome: str | UnsetType = UNSET
    error: str | UnsetType = UNSET
    report: IngestReportV1 | UnsetType = UNSET
    schema_version: Literal["ingest_progress.v1"] = "ingest_progress.v1"


class Capabilities(Struct, frozen=True, kw_only=True):
    """What this installation can do now."""

    json_mode: bool
    ingest_progress: bool
    ingest_cancellation: bool
    rag_multi_turn: bool
    search_cache: bool
    incremental_ingest: bool
    streaming_ask: bool
    http_daemon: bool
    mcp_server: bool
    single_file_ingest: bool
    bulk_search: bool
    warm_daemon: bool
    vector_search: bool
    ocr: bool


class WireNames(Struct, frozen=True, kw_only=True):
    schemas: tuple[str, ...]


class ModelVersions(Struct, frozen=True, kw_only=True):
    parser_version: str
    chunker_version: str
    embedding_version: str | None
    prompt_template_version: str | None
    index_version: str
    corpus_revision: int
    active_parsers: tuple[str, ...] | UnsetType = UNSET
    active_chunkers: tuple[str, ...] | UnsetType = UNSET


class IndexBytes(Struct, frozen=True, kw_only=True):
    sqlite: int
    lexical: int
    vectors: int


class CorpusStats(Struct, frozen=True, kw_only=True):
    doc_count: int
    chunk_count: int
    asset_count: int
    last_ingest_at: Timestamp | None
    media_breakdown: dict[str, int] | UnsetType = UNSET
    lang_breakdown: dict[str, int] | UnsetType = UNSET
    index_bytes: IndexBytes | UnsetType = UNSET
    stale_doc_count: int | UnsetType = UNSET
    code_lang_breakdown: dict[str, int] | UnsetType = UNSET
    repo_breakdown: dict[str, int] | UnsetType = UNSET
    code_lang_chunk_breakdown: dict[str, int] | UnsetType = UNSET
    embedded_chunk_count: int | UnsetType = UNSET


class SchemaV1(Struct, frozen=True, kw_only=True):
    """Wire objects, capabilities, versions and sizes."""

    kebab_version: str
    wire: WireNames
    capabilities: Capabilities
    models: ModelVersions
    stats: CorpusStats
    schema_version: Literal["schema.v1"] = "schema.v1"


class DoctorCheck(Struct, frozen=True, kw_only=True):
    name: str
    ok: bool
    detail: str
    hint: str | UnsetType = UNSET


class DoctorV1(Struct, frozen=True, kw_only=True):
    """The checks of the installation; `ok` is false when one of them fails."""

    ok: bool
    checks: tuple[DoctorCheck, ...]
    schema_version: Literal["doctor.v1"] = "doctor.v1"


class ResetReportV1(Struct, frozen=True, kw_only=True):
    scope: Literal["all", "data-only", "vector-only", "config-only", "orphans-only"]
    removed: tuple[str, ...]
    removed_bytes: int
    documents_removed: int = 0
    schema_version: Literal["reset_report.v1"] = "reset_report.v1"


class ConfigMigrationV1(Struct, frozen=True, kw_only=True):
    path: str
    from_version: int
    to_version: int
    changes: tuple[str, ...]
    written: bool
    backup: str | UnsetType = UNSET
    schema_version: Literal["config_migration.v1"] = "config_migration.v1"


class OcrStatsV1(Struct, frozen=True, kw_only=True):
    available: bool
    engine: str | None
    documents: int
    pages: int
    ms_total: int
    failures: int
    schema_version: Literal["ocr_stats.v1"] = "ocr_stats.v1"


class OcrFailure(Struct, frozen=True, kw_only=True):
    doc_path: str
    reason: str
    page: int | UnsetType = UNSET
    at: Timestamp | UnsetType = UNSET


class OcrFailuresV1(Struct, frozen=True, kw_only=True):
    failures: tuple[OcrFailure, ...]
    schema_version: Literal["ocr_failures.v1"] = "ocr_failures.v1"


class ModelV1(Struct, frozen=True, kw_only=True):
    """A model that makes vectors, on this machine or in a registry."""

    name: str
    key: str
    dim: int
    languages: tuple[str, ...]
    size_bytes: int
    download_bytes: int
    licence: str
    about: str
    is_installed: bool
    is_active: bool
    lexical_weight: float
    path: str
    schema_version: Literal["model.v1"] = "model.v1"


class ModelListV1(Struct, frozen=True, kw_only=True):
    models: tuple[ModelV1, ...]
    schema_version: Literal["model_list.v1"] = "model_list.v1"


class DaemonStatusV1(Struct, frozen=True, kw_only=True):
    """kebabd; `stopped`: after `daemon stop`, whether there was one to end."""

    running: bool
    pid: int | None
    stopped: bool | UnsetType = UNSET
    schema_version: Literal["daemon_status.v1"] = "daemon_status.v1"


class InitReportV1(Struct, frozen=True, kw_only=True):
    """Where `kebab init` put things; `store`: the database, where it is not a file in `data`."""

    config: str
    root: str | None
    data: str
    store: str | UnsetType = UNSET
    schema_version: Literal["init_report.v1"] = "init_report.v1"
