"""The vectors of a model: exact scores, deletions, what a crash leaves, the approximate index."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

np = pytest.importorskip("numpy")

from dari.errors import Conflict, InvalidInput  # noqa: E402
from dari.knowledge.index.vectors import VectorIndex  # noqa: E402

if TYPE_CHECKING:
    from dari.knowledge.index.vectors import Vectors

DIM = 16
# Looked for and not imported: imported before onnxruntime it crashes the process (see ann.py).
needs_usearch = pytest.mark.skipif(find_spec("usearch") is None, reason="usearch is not installed")


def unit_rows(count: int, seed: int = 1) -> Vectors:
    rows = np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)
    unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def index_with(path: Path, rows: Vectors, first: int = 1, ann_above_rows: int = 200_000) -> VectorIndex:
    index = VectorIndex.open(path, DIM, "model-1", 0, writable=True, ann_above_rows=ann_above_rows)
    index.refresh(index.append(range(first, first + len(rows)), rows))
    return index


def nearest(rows: Vectors, query: Vectors, k: int) -> list[int]:
    return [int(row) + 1 for row in np.argsort(-(rows @ query), kind="stable")[:k]]


def test_the_nearest_rows_come_first_with_their_cosines(tmp_path: Path) -> None:
    rows = unit_rows(500)
    index = index_with(tmp_path, rows)
    hits = index.search(rows[7], 10)
    assert [number for number, _ in hits] == nearest(rows, rows[7], 10)
    assert hits[0] == (8, pytest.approx(1.0, abs=1e-5))


@pytest.mark.parametrize("allowed", [{3}, set(range(1, 31)), set(range(1, 451))])
def test_a_filter_of_any_width_gives_the_exact_order_of_its_chunks(tmp_path: Path, allowed: set[int]) -> None:
    rows = unit_rows(500)
    hits = index_with(tmp_path, rows).search(rows[400], 10, allowed)
    assert [number for number, _ in hits] == [n for n in nearest(rows, rows[400], 500) if n in allowed][:10]


def test_deleted_chunks_are_not_found_also_after_opening_again(tmp_path: Path) -> None:
    rows = unit_rows(50)
    index = index_with(tmp_path, rows)
    index.delete([8, 9, 12345])
    for one in (index, VectorIndex.open(tmp_path, DIM, "model-1", 50)):
        assert one.search(rows[7], 1)[0][0] != 8
        assert (one.chunk_count, one.row_count) == (48, 50)
        assert one.scores(rows[7], [8, 1]).keys() == {1}


def test_rows_that_the_store_did_not_commit_are_cut_off_by_the_next_writer(tmp_path: Path) -> None:
    rows = unit_rows(30)
    index_with(tmp_path, rows[:20]).append(range(21, 31), rows[20:])
    with (tmp_path / "model-1" / "g1" / "rows.f32").open("ab") as file:
        file.write(b"torn")
    assert VectorIndex.open(tmp_path, DIM, "model-1", 20).row_count == 20
    index = VectorIndex.open(tmp_path, DIM, "model-1", 20, writable=True)
    assert index.append([99], rows[25:26]) == 21
    index.refresh(21)
    assert index.search(rows[25], 1)[0][0] == 99


def test_a_reader_follows_the_committed_rows(tmp_path: Path) -> None:
    rows = unit_rows(20)
    writer = index_with(tmp_path, rows[:10])
    reader = VectorIndex.open(tmp_path, DIM, "model-1", 10)
    count = writer.append(range(11, 21), rows[10:])
    assert reader.has_changed
    reader.refresh(10)
    assert reader.search(rows[15], 1)[0][0] != 16
    reader.refresh(count)
    assert reader.search(rows[15], 1)[0][0] == 16
    assert not reader.has_changed


def test_a_chunk_that_is_appended_again_has_its_last_vector(tmp_path: Path) -> None:
    rows = unit_rows(5)
    index = index_with(tmp_path, rows)
    index.refresh(index.append([2], rows[:1]))
    assert index.scores(rows[0], [2])[2] == pytest.approx(1.0, abs=1e-5)
    assert [number for number, _ in index.search(rows[0], 10)].count(2) == 1
    assert index.chunk_count == 5


def test_compacting_drops_dead_rows_and_survives_a_store_that_still_has_the_old_count(tmp_path: Path) -> None:
    rows = unit_rows(100)
    index = index_with(tmp_path, rows)
    index.delete(range(1, 61))
    reader = VectorIndex.open(tmp_path, DIM, "model-1", 100)
    assert index.compact() == 40
    assert reader.has_changed
    for one in (index, VectorIndex.open(tmp_path, DIM, "model-1", 100, writable=True)):
        assert (one.row_count, one.search(rows[70], 1)[0][0]) == (40, 71)
    assert sorted(path.name for path in (tmp_path / "model-1").iterdir()) == ["current", "g2"]


def test_retaining_forgets_everything_else(tmp_path: Path) -> None:
    index = index_with(tmp_path, unit_rows(10))
    assert index.retain([2, 3, 77]) == 8
    assert index.chunk_nos() == [2, 3]


@needs_usearch
def test_the_approximate_index_proposes_and_exact_scores_decide(tmp_path: Path) -> None:
    rows = unit_rows(3000)
    index = index_with(tmp_path, rows[:2500], ann_above_rows=1000)
    assert index.build_ann()
    index.refresh(index.append(range(2501, 3001), rows[2500:]))
    index.delete([5])
    found = 0
    for query in unit_rows(50, seed=2):
        exact = [number for number in nearest(rows, query, 12) if number != 5][:10]
        hits = index.search(query, 10)
        found += len({number for number, _ in hits} & set(exact))
        assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)
        assert all(score == pytest.approx(float(rows[number - 1] @ query), abs=1e-5) for number, score in hits)
    assert found >= 490
    assert index.search(rows[2800], 1)[0][0] == 2801  # behind the index


@needs_usearch
def test_an_approximate_index_is_made_once_and_anew_after_compacting(tmp_path: Path) -> None:
    rows = unit_rows(300)
    index = index_with(tmp_path, rows, ann_above_rows=100)
    assert not index.build_ann(lambda: True)  # cancelled
    assert index.build_ann() and not index.build_ann()
    index.delete(range(1, 101))
    index.compact()
    assert index.search(rows[200], 1)[0][0] == 201
    assert index.build_ann() and index.search(rows[200], 1)[0][0] == 201


@needs_usearch
def test_a_damaged_approximate_index_is_as_good_as_none(tmp_path: Path) -> None:
    rows = unit_rows(200)
    index_with(tmp_path, rows, ann_above_rows=100).build_ann()
    (tmp_path / "model-1" / "g1" / "ann.usearch").write_bytes(b"not an index")
    index = VectorIndex.open(tmp_path, DIM, "model-1", 200, ann_above_rows=100)
    assert index.search(rows[3], 1)[0][0] == 4


def test_vectors_of_another_size_are_refused_and_readers_cannot_write(tmp_path: Path) -> None:
    index = index_with(tmp_path, unit_rows(3))
    with pytest.raises(InvalidInput):
        index.search(np.zeros(3, np.float32), 1)
    with pytest.raises(InvalidInput):
        index.append([1, 2], unit_rows(1))
    with pytest.raises(Conflict):
        VectorIndex.open(tmp_path, DIM, "model-1", 3).append([4], unit_rows(1))


@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
def test_a_model_can_be_loaded_after_the_approximate_index(tmp_path: Path) -> None:
    """usearch before onnxruntime ends the process with SIGSEGV, so this runs in one of its own."""
    program = (
        "import pathlib, sys, numpy;"
        "from dari.knowledge.index.ann import ApproximateIndex;"
        "ApproximateIndex.build(pathlib.Path(sys.argv[1]), 8, numpy.eye(8, dtype=numpy.float32));"
        "import onnxruntime"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_looks_between_the_append_and_its_commit_sees_the_rows_after_it(tmp_path: Path) -> None:
    rows = unit_rows(20)
    writer = index_with(tmp_path, rows[:10])
    reader = VectorIndex.open(tmp_path, DIM, "model-1", 10)
    assert not reader.has_changed
    committed = writer.append(range(11, 21), rows[10:])
    assert reader.has_changed
    reader.refresh(10)  # the store does not know of the rows yet
    assert reader.chunk_count == 10
    assert reader.has_changed
    reader.refresh(10)
    reader.refresh(committed)
    assert reader.search(rows[15], 1)[0][0] == 16
    assert not reader.has_changed
