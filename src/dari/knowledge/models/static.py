"""Static embeddings: a table of word pieces, the mean of a text's pieces. No network is run, so it is very fast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from dari.errors import Failed
from dari.installation import install_extra
from dari.knowledge.errors import ModelNotInstalled
from dari.knowledge.models.manifest import ManifestModel, ModelManifest
from dari.knowledge.models.unit_rows import QueryCache, unit_rows

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    Vectors = NDArray[float32]

MAX_CHARS = 20_000
UNKNOWN = 1
SCORE_OF_FIRST = -3.3


class StaticModel(ManifestModel):
    """`pieces.txt` (one piece a line, the most frequent first) and `vectors.npy` (a row each)."""

    def __init__(self, folder: Path, manifest: ModelManifest) -> None:
        super().__init__(manifest)
        self._folder = folder
        self._lock = Lock()
        self._table: tuple[Tokenizer, Vectors] | None = None
        self._queries = QueryCache(lambda text: self.embed_passages([text])[0])

    @property
    def max_tokens(self) -> int:
        """A mean of pieces has no limit."""
        return 0

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        tokenizer, vectors = self._opened()
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for number, one in enumerate(tokenizer.encode_batch([text[:MAX_CHARS] for text in texts])):
            ids = [piece for piece in one.ids if piece > UNKNOWN]
            if ids:
                rows[number] = vectors[ids].mean(axis=0, dtype=np.float32)
        return unit_rows(rows)

    def embed_query(self, text: str) -> Vectors:
        return self._queries.get(text)

    def _opened(self) -> tuple[Tokenizer, Vectors]:
        with self._lock:
            if self._table is None:
                self._table = _open_table(self._folder, self._manifest)
            return self._table


def _open_table(folder: Path, manifest: ModelManifest) -> tuple[Tokenizer, Vectors]:
    try:
        import numpy as np
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
    except ImportError as error:
        raise ModelNotInstalled(f"a Python package is not installed: {error}", install_extra("embeddings")) from error
    pieces = (folder / manifest.tokenizer_file).read_text(encoding="utf-8").split("\n")
    vectors = np.load(folder / manifest.model_file, mmap_mode="r", allow_pickle=False)
    if vectors.ndim != 2 or vectors.shape[1] != manifest.dim or len(pieces) < len(vectors):
        raise Failed(f"{folder}: the table is {vectors.shape}, {len(pieces)} pieces", "install the model again")
    # The file has no scores of the pieces but their order: by Zipf's law the chance of the n-th is like 1/n.
    scored = [(piece, SCORE_OF_FIRST - math.log(rank + 1)) for rank, piece in enumerate(pieces[: len(vectors)])]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=UNKNOWN, byte_fallback=False))
    tokenizer.normalizer = normalizers.NFKC()
    # Words alone: punctuation has vectors too, which say nothing about a text.
    words = pre_tokenizers.Split(Regex(r"\W+"), "removed")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.Metaspace()])
    return tokenizer, vectors
