"""The section `[embedding]` of kebab's configuration: which model makes the vectors, and how it is reached."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

AUTO = "auto"
NONE = "none"
Provider = Literal["local", "openai", "ollama"]


class EmbeddingSettings(Struct, frozen=True, kw_only=True):
    """Defaults work offline; a server of embeddings needs `provider`, `endpoint` and `model`."""

    provider: Provider = "local"
    """`openai` is any server with `/v1/embeddings`, `ollama` one with `/api/embed`."""
    model: str = AUTO
    """`auto`: the active model of the data folder (`kebab models use`). `none`: no vectors. Else a model's name."""
    models_dir: str = ""
    """Where installed models are, from the file's folder; empty: `models` in the data folder."""
    endpoint: str = ""
    api_key_env: str = ""
    """The name of the environment variable that holds the key, never the key."""
    timeout_s: float = 30.0
    batch_size: int = 32
    dim: int = 0
    """Servers: dimensions to ask for; 0: as many as the model has."""
    query_prefix: str = ""
    passage_prefix: str = ""
    max_chars: int = 8000
    """Servers: longer passages are cut here; most servers refuse or cut silently what exceeds their window."""
    lexical_weight: float | None = None
    """The weight of the lexical half in hybrid search; None: the model's own. `kebab eval tune --write` sets it."""
    threads: int = 0
    """Threads of one local model; 0: the machine's cores, at most 4."""
