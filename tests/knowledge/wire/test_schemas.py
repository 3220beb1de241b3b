"""The shipped JSON Schemas: the same as the structs, and true of what is written."""

from __future__ import annotations

import json

import jsonschema_rs
import msgspec
import pytest

from dari.errors import NotFound
from dari.knowledge.eval import compare, run, tune
from dari.knowledge.eval.metrics import Estimate
from dari.knowledge.wire import objects, reports
from dari.knowledge.wire.schemas import encode_schema, make_schema, names, schema_text, wire_types

AT = "2026-11-17T09:00:00Z"
CITATION = objects.CitationV1(kind="line", path="a.md", uri="a.md#L1-L4", indexed_at=AT, stale=False, start=1, end=4)
HIT = objects.SearchHitV1(
    rank=1,
    score=4.2,
    score_kind="bm25",
    chunk_id="c" * 32,
    doc_id="d" * 32,
    doc_path="a.md",
    heading_path=("A", "B"),
    snippet="the words",
    citation=CITATION,
    retrieval=objects.RetrievalScores(method="lexical", fusion_score=4.2, lexical_score=4.2, lexical_rank=1),
    index_version="lexical-v1",
    chunker_version="md-heading-v2",
    indexed_at=AT,
    stale=False,
    highlights=((0, 3),),
)
RESPONSE = objects.SearchResponseV1(hits=(HIT,), next_cursor=None, truncated=False)
ERROR = objects.ErrorV1(code="doc_not_found", message="no document", details={"doc_id": "x"}, hint="kebab list docs")
ANSWER = objects.AnswerV1(
    answer="Four. [#1]",
    citations=(objects.AnswerCitation(marker="[#1]", citation=CITATION),),
    grounded=True,
    model=objects.AnswerModel(id="extractive", provider="extractive"),
    prompt_template_version="none",
    retrieval=objects.AnswerRetrieval(
        trace_id="t", mode="hybrid", k=8, score_gate=0.3, top_score=4.2, chunks_returned=1, chunks_used=1
    ),
    usage=objects.AnswerUsage(prompt_tokens=0, completion_tokens=0, latency_ms=3),
    created_at=AT,
)
SUMMARY = objects.DocSummaryV1(
    doc_id="d",
    doc_path="a.md",
    title="A",
    media="markdown",
    lang="en",
    chunk_count=1,
    byte_len=3,
    indexed_at=AT,
    stale=False,
    tags=(),
    trust_level="primary",
)
CHUNK = objects.ChunkInspectionV1(
    chunk_id="c",
    doc_id="d",
    doc_path="a.md",
    ordinal=0,
    heading_path=(),
    text="x",
    token_count=1,
    citation=CITATION,
    chunker_version="v",
)
REPORT = reports.IngestReportV1(
    scope="root",
    scanned=3,
    new=1,
    updated=0,
    skipped=1,
    unchanged=1,
    errors=0,
    duration_ms=5,
    skipped_by_extension={"exe": 1},
    items=(reports.IngestItem(kind="new", doc_path="a.md"),),
)
SCHEMA = reports.SchemaV1(
    kebab_version="1",
    wire=reports.WireNames(schemas=("error.v1",)),
    capabilities=reports.Capabilities(**dict.fromkeys(reports.Capabilities.__struct_fields__, True)),
    models=reports.ModelVersions(
        parser_version="p",
        chunker_version="c",
        embedding_version=None,
        prompt_template_version=None,
        index_version="i",
        corpus_revision=1,
    ),
    stats=reports.CorpusStats(doc_count=1, chunk_count=1, asset_count=1, last_ingest_at=None),
)
MODEL = reports.ModelV1(
    name="use-m",
    key="use-m-1",
    dim=512,
    languages=("ko",),
    size_bytes=1,
    download_bytes=2,
    licence="MIT",
    about="small",
    is_installed=True,
    is_active=False,
    lexical_weight=0.8,
    path="",
)
ESTIMATE = Estimate(0.8, 0.7, 0.9)
SCORES = run.Scores(questions=1, ndcg_at_10=ESTIMATE, recall_at_10=ESTIMATE, mrr_at_10=ESTIMATE, empty_rate=0.0)
RUN = run.RunReport(
    run_id="r",
    created_at=AT,
    set_name="house",
    corpus_hash="h",
    mode="hybrid",
    searched_mode="lexical",
    documents=1,
    model_key="",
    lexical_weight=1.0,
    fusion="convex",
    scores=SCORES,
    by_type={"plain": SCORES},
    by_lang={"ko": SCORES},
    refusal=run.RefusalScores(refused=1.0, false_refusals=0.0, gold_in_answer=1.0, by_type={"absent": 1.0}),
    p50_ms=1.0,
    p95_ms=2.0,
    results=(run.QuestionResult(id="q", type="plain", lang="ko", answerable=True, found=("d",)),),
)
INSTANCES = [
    RUN,
    compare.compare_runs(RUN, RUN),
    compare.aggregate_runs([RUN]),
    compare.VariantReport(
        run_id="r", groups=1, questions=2, found=2, all_found=ESTIMATE, worst_ndcg_at_10=ESTIMATE, broken=()
    ),
    tune.TuneReport(
        set_name="house",
        model_key="m",
        questions=1,
        current_weight=0.8,
        best_weight=0.7,
        gain=ESTIMATE,
        is_sure=True,
        weights=(tune.WeightScore(0.7, 0.8),),
    ),
    CITATION,
    HIT,
    RESPONSE,
    ERROR,
    ANSWER,
    SUMMARY,
    CHUNK,
    REPORT,
    SCHEMA,
    objects.AnswerEventV1(kind="token", ts=AT, delta="Fo"),
    objects.BulkSearchItemV1(index=0, query="q", response=RESPONSE),
    objects.BulkSearchItemV1(index=0, query="q", error=ERROR),
    objects.BulkSearchResponseV1(
        items=(objects.BulkSearchItemV1(index=0, query="q", error=ERROR),), succeeded=0, failed=1
    ),
    objects.DocListV1(docs=(SUMMARY,), next_cursor=None),
    objects.DocInspectionV1(doc=SUMMARY, chunks=(CHUNK,)),
    objects.FetchResultV1(
        kind="span",
        doc_id="d",
        doc_path="a.md",
        indexed_at=AT,
        stale=False,
        truncated=False,
        text="x",
        line_start=1,
        line_end=2,
    ),
    reports.IngestProgressV1(kind="completed", ts=AT, report=REPORT),
    reports.DoctorV1(ok=True, checks=(reports.DoctorCheck(name="config", ok=True, detail="read"),)),
    reports.ResetReportV1(scope="all", removed=("x",), removed_bytes=3),
    reports.ConfigMigrationV1(path="c", from_version=1, to_version=1, changes=(), written=False),
    reports.OcrStatsV1(available=False, engine=None, documents=0, pages=0, ms_total=0, failures=0),
    MODEL,
    reports.ModelListV1(models=(MODEL,)),
    reports.DaemonStatusV1(running=True, pid=7),
    reports.InitReportV1(config="c", root=None, data="d"),
    reports.OcrFailuresV1(failures=(reports.OcrFailure(doc_path="a.png", reason="no text"),)),
]


def test_the_shipped_files_are_what_the_structs_say() -> None:
    assert {name: schema_text(name) for name in names()} == {
        name: encode_schema(make_schema(kind)) for name, kind in wire_types().items()
    }


def test_every_wire_object_has_an_instance_here() -> None:
    assert {instance.schema_version for instance in INSTANCES} == set(names())


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.schema_version)
def test_what_is_written_fits_its_schema(instance: msgspec.Struct) -> None:
    schema = json.loads(schema_text(instance.schema_version))  # type: ignore[attr-defined]
    validator = jsonschema_rs.Draft202012Validator(schema)
    written = json.loads(msgspec.json.encode(instance))
    assert [error.message for error in validator.iter_errors(written)] == []
    for name in schema["required"]:
        without = {key: value for key, value in written.items() if key != name}
        assert not validator.is_valid(without), f"{name} is said to be required"
    assert not validator.is_valid(written | {"schema_version": "other.v1"})


def test_a_schema_is_found_with_and_without_its_version() -> None:
    assert schema_text("search_hit") == schema_text("search_hit.v1")


def test_an_unknown_wire_object_names_those_that_exist() -> None:
    with pytest.raises(NotFound) as caught:
        schema_text("../errors.py")
    assert "search_hit.v1" in caught.value.hint
