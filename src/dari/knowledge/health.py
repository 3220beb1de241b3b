"""`doctor.v1`, `schema.v1` and the OCR reports: what is installed, what works, what is indexed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

from dari.errors import DariError
from dari.knowledge.config import read_toml
from dari.knowledge.errors import ConfigInvalid, NotIndexed, classify
from dari.knowledge.render import stale_before
from dari.knowledge.wire.reports import (
    Capabilities,
    CorpusStats,
    DoctorCheck,
    DoctorV1,
    IndexBytes,
    ModelVersions,
    OcrFailure,
    OcrFailuresV1,
    OcrStatsV1,
    SchemaV1,
    WireNames,
)
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.knowledge.service import KnowledgeService, OpenBase

LLM_TIMEOUT_S = 3.0


def run_doctor(open_service: Callable[[], KnowledgeService]) -> DoctorV1:
    """Every check that can be made. A configuration that cannot be read is a failed check, not an error."""
    try:
        service = open_service()
    except Exception as error:
        return DoctorV1(ok=False, checks=(_failed("config_loaded", error),))
    checks = tuple(_checks(service))
    return DoctorV1(ok=all(check.ok for check in checks), checks=checks)


def _checks(service: KnowledgeService) -> Iterator[DoctorCheck]:
    settings = service.settings
    named = str(settings.config_file) if settings.has_file else "no file: the defaults hold"
    yield DoctorCheck(name="config_loaded", ok=True, detail=named)
    yield DoctorCheck(name="config_migration", ok=True, detail=f"version {settings.config.config_version}")
    yield _check_roots(service)
    yield _check_data_dir(service)
    yield from _check_password(service)
    try:
        opened = service.base()
        base: OpenBase | None = opened
        yield DoctorCheck(name="store", ok=True, detail=f"{service.backend.place}, revision {opened.store.revision()}")
    except NotIndexed as error:
        base = None
        yield DoctorCheck(name="store", ok=False, detail=error.message, hint=error.hint)
    except Exception as error:
        base = None
        yield _failed("store", error)
    if base is not None:
        yield _check_lexical(base)
    yield from _check_embedding(service, base)
    yield _check_llm(service)
    yield _check_ocr(service)


def _check_roots(service: KnowledgeService) -> DoctorCheck:
    sources = service.settings.sources
    missing = [str(source.root) for source in sources if not source.root.is_dir()]
    if missing:
        detail = f"no folder: {', '.join(missing)}"
        return DoctorCheck(
            name="folders", ok=False, detail=detail, hint="correct [workspace] root in the configuration"
        )
    if not sources:
        return DoctorCheck(name="folders", ok=True, detail="none is configured", hint="kebab init FOLDER")
    return DoctorCheck(name="folders", ok=True, detail=", ".join(str(source.root) for source in sources))


def _check_data_dir(service: KnowledgeService) -> DoctorCheck:
    """The nearest folder that exists must take files; nothing is made."""
    folder = service.settings.data.data
    existing = next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return DoctorCheck(
            name="data_dir_writable",
            ok=False,
            detail=f"{existing} cannot be written to",
            hint="check its owner and mode, or set [store] data_dir",
        )
    free = shutil.disk_usage(existing).free
    if free < 100_000_000:
        return DoctorCheck(
            name="data_dir_writable",
            ok=False,
            detail=f"{existing} has {free // 1_000_000} MB left",
            hint="free some space",
        )
    return DoctorCheck(name="data_dir_writable", ok=True, detail=f"{folder}, {free // 1_000_000_000} GB free")


def _check_password(service: KnowledgeService) -> Iterator[DoctorCheck]:
    """A password in the file is for its owner's eyes only."""
    from dari.knowledge.store.postgres import password_of

    settings = service.settings
    url = read_toml(settings.config_file).get("store", {}).get("url", "") if settings.has_file else ""
    try:
        has_password = bool(url and password_of(url))
    except (ImportError, ConfigInvalid):  # the variable KEBAB_STORE_URL is used instead of it
        has_password = "@" in url or "password" in url
    if not has_password:
        return
    mode = settings.config_file.stat().st_mode & 0o777
    if mode & 0o077:
        yield DoctorCheck(
            name="store_password",
            ok=False,
            detail=f"{settings.config_file} holds the password of the store, and others may read it (mode {mode:o})",
            hint=f"chmod 600 {settings.config_file}, or keep the password in ~/.pgpass",
        )


def _check_lexical(base: OpenBase) -> DoctorCheck:
    if base.lexical.has_changed:
        base.lexical.reload()
    at, wanted = base.lexical.revision, base.store.revision()
    stored = base.store.stats().chunk_count
    detail = f"revision {at}, {base.lexical.chunk_count} chunks"
    if at == wanted and base.lexical.chunk_count != stored:
        return DoctorCheck(
            name="lexical_index",
            ok=False,
            detail=f"{detail}, and the store has {stored}",
            hint="kebab ingest --force-reingest makes it anew",
        )
    if at != wanted:
        return DoctorCheck(
            name="lexical_index",
            ok=False,
            detail=f"{detail}; the store is at revision {wanted}",
            hint="kebab ingest brings it up to date",
        )
    return DoctorCheck(name="lexical_index", ok=True, detail=detail)


def _check_embedding(service: KnowledgeService, base: OpenBase | None) -> Iterator[DoctorCheck]:
    from dari.knowledge.models.catalog import better_model
    from dari.knowledge.models.model import load_model

    settings = service.settings
    try:
        model = base.model if base is not None else None
        model = model or load_model(settings.config.embedding, settings.data.data)  # which says why there is none
        if model is None:
            detail = "no model: search compares words only"
            yield DoctorCheck(name="embedding_model", ok=True, detail=detail, hint="kebab models install")
            return
        model.embed_query("kebab")
    except Exception as error:
        yield _failed("embedding_model", error)
        return
    languages = {} if base is None else base.store.stats().lang_breakdown
    better = better_model(model.name, languages)
    yield DoctorCheck(
        name="embedding_model",
        ok=True,
        detail=f"{model.name}, {model.dim} dimensions" + (", for English only" if better else ""),
        hint=f"not all documents are in English: kebab models install {better}" if better else UNSET,
    )
    if base is not None:
        yield _check_vectors(base, model.key)


def _check_vectors(base: OpenBase, model_key: str) -> DoctorCheck:
    """Search compares words meanwhile, so it is in order that some are missing."""
    state = base.store.vector_state(model_key)
    embedded = 0 if state is None else state.embedded_chunks
    pending = base.store.stats().chunk_count if state is None else state.pending_chunks
    if not pending:
        return DoctorCheck(name="vectors", ok=True, detail=f"{embedded} chunks have a vector")
    return DoctorCheck(
        name="vectors",
        ok=True,
        detail=f"{embedded} chunks have a vector, {pending} wait",
        hint="kebab ingest makes the rest",
    )


def _check_llm(service: KnowledgeService) -> DoctorCheck:
    llm = service.settings.config.llm
    if llm.provider == "none" or not llm.endpoint:
        return DoctorCheck(name="llm_endpoint", ok=True, detail="none is configured: answers are quoted sentences")
    import json

    from dari.knowledge.model_server import ModelServer

    try:
        listed = ModelServer(llm.endpoint, llm.api_key_env, LLM_TIMEOUT_S).get("/models")
    except DariError as error:
        return _failed("llm_endpoint", error)
    url = f"{llm.endpoint.rstrip('/')}/models"
    if llm.model and llm.model not in json.dumps(listed, ensure_ascii=False):
        return DoctorCheck(
            name="llm_endpoint", ok=False, detail=f"{url} does not list {llm.model}", hint=f"ollama pull {llm.model}"
        )
    return DoctorCheck(name="llm_endpoint", ok=True, detail=f"{url} answers")


def _check_ocr(service: KnowledgeService) -> DoctorCheck:
    if not service.settings.config.ingest.ocr:
        return DoctorCheck(name="ocr", ok=True, detail="off")
    program = shutil.which("tesseract")
    if program is None:
        detail = "tesseract is not installed: pictures are skipped"
        return DoctorCheck(name="ocr", ok=True, detail=detail, hint="apt install tesseract-ocr tesseract-ocr-kor")
    return DoctorCheck(name="ocr", ok=True, detail=program)


def _failed(name: str, error: Exception) -> DoctorCheck:
    shown = classify(error)
    return DoctorCheck(name=name, ok=False, detail=shown.message, hint=shown.hint)


def describe(service: KnowledgeService) -> SchemaV1:
    """What this installation can do and what it holds; zeros before the first ingest."""
    from dari.knowledge.ask.prompt import PROMPT_VERSION
    from dari.knowledge.wire.schemas import names

    try:
        base: OpenBase | None = service.base()
    except NotIndexed:
        base = None
    model = None if base is None else base.model
    parsers, chunkers = _active_versions(base)
    return SchemaV1(
        kebab_version=VERSION,
        wire=WireNames(schemas=names()),
        capabilities=Capabilities(
            json_mode=True,
            ingest_progress=True,
            ingest_cancellation=True,
            rag_multi_turn=True,
            search_cache=False,
            incremental_ingest=True,
            streaming_ask=True,
            http_daemon=False,
            mcp_server=True,
            single_file_ingest=True,
            bulk_search=True,
            warm_daemon=True,
            vector_search=model is not None,
            ocr=shutil.which("tesseract") is not None,
        ),
        models=ModelVersions(
            parser_version=parsers[0] if parsers else "none",
            chunker_version=chunkers[0] if chunkers else "none",
            embedding_version=None if model is None else model.key,
            prompt_template_version=PROMPT_VERSION,
            index_version=service.backend.index_version,
            corpus_revision=0 if base is None else base.store.revision(),
            active_parsers=parsers or UNSET,
            active_chunkers=chunkers or UNSET,
        ),
        stats=_stats(service, base),
    )


def _active_versions(base: OpenBase | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if base is None:
        return (), ()
    stats = base.store.stats()
    return stats.parser_versions, stats.chunker_versions


def _stats(service: KnowledgeService, base: OpenBase | None) -> CorpusStats:
    if base is None:
        return CorpusStats(doc_count=0, chunk_count=0, asset_count=0, last_ingest_at=None)
    stats = base.store.stats(stale_before(service.settings.config.search.stale_after_days))
    lexical_bytes, vector_bytes = service.backend.index_bytes()
    state = None if base.model is None else base.store.vector_state(base.model.key)
    return CorpusStats(
        doc_count=stats.doc_count,
        chunk_count=stats.chunk_count,
        asset_count=stats.asset_count,
        last_ingest_at=stats.last_ingest_at,
        media_breakdown=stats.media_breakdown,
        lang_breakdown=stats.lang_breakdown,
        index_bytes=IndexBytes(sqlite=stats.store_bytes, lexical=lexical_bytes, vectors=vector_bytes),
        stale_doc_count=stats.stale_doc_count,
        code_lang_breakdown=stats.code_lang_breakdown,
        repo_breakdown=stats.repo_breakdown,
        code_lang_chunk_breakdown=stats.code_lang_chunk_breakdown,
        embedded_chunk_count=state.embedded_chunks if state else 0,
    )


def ocr_stats(service: KnowledgeService) -> OcrStatsV1:
    store = service.base().store
    program = shutil.which("tesseract")
    documents = pages = milliseconds = 0
    after = ""
    while found := store.list_documents(after=after, limit=1000):
        read = [one for one in found if one.ocr_pages]
        documents += len(read)
        pages += sum(one.ocr_pages for one in read)
        milliseconds += sum(one.ocr_ms for one in read)
        after = found[-1].path
    return OcrStatsV1(
        available=program is not None,
        engine=program,
        documents=documents,
        pages=pages,
        ms_total=milliseconds,
        failures=len(store.failures(only_ocr=True)),
    )


def ocr_failures(service: KnowledgeService) -> OcrFailuresV1:
    failures = service.base().store.failures(only_ocr=True)
    return OcrFailuresV1(
        failures=tuple(OcrFailure(doc_path=one.path, reason=one.reason, at=one.failed_at or UNSET) for one in failures)
    )
