"""Models in ONNX, run by onnxruntime on the processor.

One thread a run and several runs at once: threads inside a run wait for each other by spinning, which costs twice the
processor time for the same texts. Memory is bounded by the tokens of a batch; the arena is off, since it keeps the
largest batch ever seen.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock, get_native_id
from typing import TYPE_CHECKING, Any

from dari.errors import Failed
from dari.installation import install_extra
from dari.knowledge.errors import ModelNotInstalled
from dari.knowledge.models.manifest import ManifestModel, ModelManifest
from dari.knowledge.models.unit_rows import QueryCache, unit_rows

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    Vectors = NDArray[float32]

MAX_THREADS = 4
MAX_BATCH_TOKENS = 512  # 2048 took 426 MB instead of 199 and was slower: a batch then leaves the cache
MAX_BATCH_ROWS = 32
MAX_WINDOWS = 16
"""Of one passage: what follows them has no part in its vector."""
CHARS_PER_TOKEN = 3
MAX_CHARS_PER_TOKEN = 12
NICENESS = 10


class OnnxModel(ManifestModel):
    """A folder with a manifest, an ONNX file and, unless the graph takes text, a tokenizer."""

    def __init__(self, folder: Path, manifest: ModelManifest, threads: int = 0) -> None:
        super().__init__(manifest)
        self._folder = folder
        self._threads = threads or min(MAX_THREADS, os.cpu_count() or 1)
        self._lock = Lock()
        self._runner: _Runner | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._queries = QueryCache(self._embed_query)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        runner = self._opened()
        prefix = self._manifest.passage_prefix
        return runner.embed([prefix + text for text in texts], self._workers())

    def embed_query(self, text: str) -> Vectors:
        return self._queries.get(text)

    def _embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._opened().embed([self._manifest.query_prefix + text], None)[0]
        return vector

    def _opened(self) -> _Runner:
        with self._lock:
            if self._runner is None:
                kind = _TokenRunner if self._manifest.tokenizer_file else _TextRunner
                self._runner = kind(self._folder, self._manifest)
            return self._runner

    def _workers(self) -> ThreadPoolExecutor | None:
        """Passages are embedded in the background, so their threads yield to everything else."""
        if self._threads == 1:
            return None
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, "embedding", initializer=_be_nice)
            return self._pool


class _Runner(ABC):
    """A session and how texts go into it."""

    def __init__(self, folder: Path, manifest: ModelManifest) -> None:
        self._manifest = manifest
        self._session = _open_session(folder / manifest.model_file)

    @abstractmethod
    def embed(self, texts: list[str], workers: ThreadPoolExecutor | None) -> Vectors:
        """One unit row a text."""

    def _result(self, feed: dict[str, Any]) -> Vectors:
        try:
            found: Vectors = self._session.run(None, feed)[0]
        except Exception as error:  # of a class of its own for each status
            raise Failed(
                f"the model {self._manifest.name} failed: {error}",
                f"does it take texts of max_tokens = {self._manifest.max_tokens}? see its manifest.json",
            ) from error
        return found

    def _check(self, rows: Vectors) -> Vectors:
        if rows.shape[-1] != self._manifest.dim:
            raise Failed(
                f"the model {self._manifest.name} returned {rows.shape[-1]} dimensions, "
                f"its manifest says {self._manifest.dim}",
                "correct dim in manifest.json",
            )
        return rows


class _TextRunner(_Runner):
    """The graph takes text and returns its vector. One text a run: its quantisation would mix a batch."""

    def embed(self, texts: list[str], workers: ThreadPoolExecutor | None) -> Vectors:
        import numpy as np

        windows = [_char_windows(text, self._manifest) for text in texts]
        flat = [window for some in windows for window in some]
        found = list(workers.map(self._run, flat)) if workers else [self._run(window) for window in flat]
        rows = np.zeros((len(texts), self._manifest.dim), dtype=np.float32)
        at = 0
        for number, some in enumerate(windows):
            for window in some:
                rows[number] += found[at] * len(window)
                at += 1
        return unit_rows(rows)

    def _run(self, text: str) -> Vectors:
        import numpy as np

        name = self._session.get_inputs()[0].name
        rows = self._result({name: np.array([text], dtype=object)})
        vector: Vectors = unit_rows(self._check(rows))[0]
        return vector


class _TokenRunner(_Runner):
    """The graph takes tokens and returns one vector a token, or a pooled one."""

    def __init__(self, folder: Path, manifest: ModelManifest) -> None:
        super().__init__(folder, manifest)
        self._tokenizer = _open_tokenizer(folder / manifest.tokenizer_file)
        self._inputs = {one.name for one in self._session.get_inputs()}

    def embed(self, texts: list[str], workers: ThreadPoolExecutor | None) -> Vectors:
        import numpy as np

        windows = self._windows(texts)
        order = sorted(range(len(windows)), key=lambda index: len(windows[index][1]))
        batches = _batches(order, [len(window[1]) for window in windows])
        tokens = [[windows[index][1] for index in batch] for batch in batches]
        found = workers.map(self._run, tokens) if workers else map(self._run, tokens)
        rows = np.zeros((len(texts), self._manifest.dim), dtype=np.float32)
        for batch, vectors in zip(batches, found, strict=True):
            for index, vector in zip(batch, vectors, strict=True):
                rows[windows[index][0]] += vector * len(windows[index][1])
        return unit_rows(rows)

    def _windows(self, texts: list[str]) -> list[tuple[int, list[int]]]:
        """(number of the text, token ids with the special ones around them)."""
        limit = self._manifest.max_tokens
        # A hostile text of one endless word would cost the tokenizer quadratic time.
        cut = [text[: limit * MAX_WINDOWS * MAX_CHARS_PER_TOKEN] for text in texts]
        encoded = self._tokenizer.encode_batch(cut, add_special_tokens=False)
        empty = self._tokenizer.encode("").ids
        head, tail = empty[: (len(empty) + 1) // 2], empty[(len(empty) + 1) // 2 :]
        room = limit - len(empty)
        found: list[tuple[int, list[int]]] = []
        for number, one in enumerate(encoded):
            count = 1 if self._manifest.windows == "first" else MAX_WINDOWS
            for start in range(0, max(1, min(len(one.ids), room * count)), room):
                found.append((number, [*head, *one.ids[start : start + room], *tail]))
        return found

    def _run(self, tokens: list[list[int]]) -> Vectors:
        import numpy as np

        width = max(map(len, tokens))
        ids = np.zeros((len(tokens), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, one in enumerate(tokens):
            ids[row, : len(one)] = one
            mask[row, : len(one)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        given = {name: value for name, value in feed.items() if name in self._inputs}
        return unit_rows(self._check(self._pooled(self._result(given), mask)))

    def _pooled(self, states: Vectors, mask: NDArray[int64]) -> Vectors:
        if states.ndim == 2:
            return states
        if self._manifest.pooling == "cls":
            return states[:, 0]
        weights = mask[..., None].astype(states.dtype)
        pooled: Vectors = (states * weights).sum(axis=1) / weights.sum(axis=1)
        return pooled


def _batches(order: list[int], lengths: list[int]) -> list[list[int]]:
    """Texts of like length together, at most MAX_BATCH_TOKENS with their padding."""
    found: list[list[int]] = []
    for index in order:
        current = found[-1] if found else None
        if current and len(current) < MAX_BATCH_ROWS and (len(current) + 1) * lengths[index] <= MAX_BATCH_TOKENS:
            current.append(index)
        else:
            found.append([index])
    return found


def _char_windows(text: str, manifest: ModelManifest) -> list[str]:
    """Pieces of about `max_tokens`, cut at a space where there is one; the last one is what remains."""
    found: list[str] = []
    size, at = manifest.max_tokens * CHARS_PER_TOKEN, 0
    count = 1 if manifest.windows == "first" else MAX_WINDOWS
    while at < len(text) and len(found) < count:
        end = at + size
        if end < len(text) and (space := text.rfind(" ", at + size // 2, end)) > 0:
            end = space
        found.append(text[at:end])
        at = end
    return found or [""]


def _open_session(path: Path) -> InferenceSession:
    try:
        import onnxruntime
    except ImportError as error:
        raise _not_installed("onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4
    try:
        from onnxruntime_extensions import get_library_path

        options.register_custom_ops_library(get_library_path())
    except ImportError:
        pass  # only graphs that take text need it; the session names the operator that it lacks
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class of its own for each status, all below Exception
        raise Failed(f"onnxruntime cannot load {path}: {error}", "install the model again: kebab models install") from (
            error
        )


def _open_tokenizer(path: Path) -> Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise _not_installed("tokenizers") from error
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _not_installed(package: str) -> ModelNotInstalled:
    return ModelNotInstalled(f"the Python package {package} is not installed", install_extra("embeddings"))


def _be_nice() -> None:
    """Linux gives each thread its own priority."""
    try:
        os.setpriority(os.PRIO_PROCESS, get_native_id(), NICENESS)
    except (AttributeError, OSError):
        pass
