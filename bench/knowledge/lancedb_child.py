"""LanceDB without a vector index: every row compared, as the original has it."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

import lancedb
import numpy as np
import pyarrow as pa

from bench.knowledge.child import TOP, Numbers, Query, serve
from bench.knowledge.corpus import DIM, CorpusFiles

_BATCH = 20_000


class LanceFlat:
    def __init__(self, files: CorpusFiles, queries: Sequence[Query]) -> None:
        self._files = files
        self._queries = np.fromfile(files.query_vectors, np.float32).reshape(-1, DIM)

    def build(self) -> dict[str, float]:
        database = lancedb.connect(self._files.folder / "lancedb")
        schema = pa.schema([("number", pa.int64()), ("vector", pa.list_(pa.float32(), DIM))])
        self._table = database.create_table("t", self._batches(schema), schema=schema)
        self._table.optimize()
        return {}

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        rows = np.memmap(self._files.vectors, np.float32, "r").reshape(-1, DIM)
        for first in range(0, len(rows), _BATCH):
            part = np.array(rows[first : first + _BATCH])
            numbers = pa.array(range(first + 1, first + 1 + len(part)), pa.int64())
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(part.reshape(-1)), DIM)
            yield pa.RecordBatch.from_arrays([numbers, vectors], schema=schema)

    def searches(self) -> Mapping[str, Callable[[int], Numbers]]:
        return {"vector": self._search}

    def _search(self, number: int) -> Numbers:
        query = self._table.search(self._queries[number]).distance_type("cosine").select(["number"]).limit(TOP)
        numbers: Numbers = query.to_arrow()["number"].to_pylist()
        return numbers


if __name__ == "__main__":
    sys.exit(serve(LanceFlat))
