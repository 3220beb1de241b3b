"""Settings of kebab: a TOML file, then the environment (`KEBAB_<SECTION>_<KEY>`), checked once at the edge.

An unknown section or key is an error that names the nearest known one. `config_file.py` writes and migrates files.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from dari.knowledge.document import SearchMode, TrustLevel
from dari.knowledge.errors import ConfigInvalid, ConfigNotFound
from dari.knowledge.models.settings import EmbeddingSettings
from dari.knowledge.paths import EXTERNAL, DataPaths, config_file, default_data_dir, expand, is_config_named, logs_dir
from dari.paths import read_regular
from dari.struct_types import ready

CONFIG_VERSION = 1
MAX_CONFIG_BYTES = 1024 * 1024
MIB = 1024 * 1024
DEFAULT_ANN_ABOVE_CHUNKS = 25_000

Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]


class WorkspaceSettings(Struct, frozen=True, kw_only=True):
    """The folder that is indexed without further words; its documents have paths relative to it."""

    root: str = ""
    include: tuple[str, ...] = ()
    """Patterns as in .gitignore; empty: every file that has a parser."""
    exclude: tuple[str, ...] = ()
    type: str = "note"
    trust_level: TrustLevel = "primary"


class SourceSettings(Struct, frozen=True, kw_only=True):
    """A further folder, `[[sources]]`; paths of its documents begin with its id."""

    id: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    root: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    type: str = "note"
    trust_level: TrustLevel = "primary"


class StoreSettings(Struct, frozen=True, kw_only=True):
    data_dir: str = ""
    """Empty: the standard place."""
    url: str = ""
    """Empty: the data folder. Else PostgreSQL >= 15 with pgvector: postgresql://user@host:5432/database."""
    schema: Annotated[str, Meta(pattern=r"^[a-z_][a-z0-9_]{0,39}$")] = "kebab"
    """Where its tables are in that database: another name is another knowledge base."""
    lock_wait_s: Annotated[float, Meta(ge=0)] = 1.0
    """How long a writer waits for another one. Vectors that are made in the background hold the lock for moments."""


class IngestSettings(Struct, frozen=True, kw_only=True):
    max_file_bytes: Positive = 64 * MIB
    max_text_bytes: Positive = 8 * MIB
    """Of text, Markdown, HTML and notebooks."""
    max_code_bytes: Positive = 256 * 1024
    max_code_lines: Positive = 5000
    skip_generated: bool = True
    """Files whose head says that a program wrote them."""
    gitignore: bool = True
    batch_files: Positive = 64
    batch_bytes: Positive = 4 * MIB
    """A transaction ends after this many files or bytes, whichever comes first."""
    parse_timeout_s: Annotated[float, Meta(gt=0)] = 60.0
    parse_memory_bytes: Positive = 1024 * MIB
    parse_processes: Annotated[int, Meta(ge=0)] = 0
    """0: as many as cores, at most 4."""
    ocr: bool = True
    ocr_languages: str = "kor+eng"
    watch_debounce_ms: Positive = 1600


class ChunkingSettings(Struct, frozen=True, kw_only=True):
    target_tokens: Positive = 500
    overlap_tokens: Annotated[int, Meta(ge=0)] = 80
    max_tokens: Positive = 4000


class SearchSettings(Struct, frozen=True, kw_only=True):
    default_k: Annotated[int, Meta(ge=1, le=100)] = 10
    """Of `kebab search`. Agents' searches have the defaults of their tools: 10 and hybrid."""
    default_mode: SearchMode = "hybrid"
    """Of `kebab search`, and of every question."""
    fusion: Literal["convex", "rrf"] = "convex"
    rrf_k: Positive = 60
    snippet_chars: Positive = 220
    stale_after_days: Positive = 30
    ann_above_chunks: Positive = DEFAULT_ANN_ABOVE_CHUNKS
    """Above this many vectors an approximate index finds candidates, which are scored exactly."""


class LlmSettings(Struct, frozen=True, kw_only=True):
    provider: Literal["auto", "openai", "sampling", "none"] = "auto"
    """`auto`: the server of `endpoint` where one is set, else the client's own model, else none."""
    endpoint: str = ""
    """An OpenAI-compatible server, such as http://127.0.0.1:11434/v1."""
    model: str = ""
    api_key_env: str = ""
    """The name of the environment variable that holds the key, never the key."""
    context_tokens: Positive = 8000
    max_answer_tokens: Positive = 700
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.0
    seed: int | None = None
    timeout_s: Annotated[float, Meta(gt=0)] = 120.0


class AskSettings(Struct, frozen=True, kw_only=True):
    k: Annotated[int, Meta(ge=1, le=100)] = 8
    score_gate: Share | None = None
    """Questions whose chance of an answer is below this are refused; None: the calibrated point."""
    sentences: Annotated[int, Meta(ge=1, le=10)] = 3
    session_turns: Annotated[int, Meta(ge=0)] = 6
    """How much of a conversation a follow-up question sees."""
    keep_answers: bool = True
    multi_hop_depth: Annotated[int, Meta(ge=1, le=5)] = 3
    multi_hop_questions: Annotated[int, Meta(ge=1, le=10)] = 5


class McpSettings(Struct, frozen=True, kw_only=True):
    tools: Literal["default", "all"] = "default"
    """`all` adds bulk_search, fetch, ingest_file, ingest_stdin, list_docs and inspect_chunk. Also KEBAB_TOOLS."""


class DaemonSettings(Struct, frozen=True, kw_only=True):
    watch: bool = False
    """kebabd re-indexes on change."""
    idle_s: Annotated[float, Meta(ge=0)] = 1800.0
    """kebabd ends after this long without a request; 0: never."""


class LoggingSettings(Struct, frozen=True, kw_only=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Of the log of `kebab mcp`."""


class KebabConfig(Struct, frozen=True, kw_only=True):
    """All settings, checked. Relative paths count from the file's folder."""

    config_version: int = CONFIG_VERSION
    workspace: WorkspaceSettings = WorkspaceSettings()
    sources: tuple[SourceSettings, ...] = ()
    store: StoreSettings = StoreSettings()
    ingest: IngestSettings = IngestSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    search: SearchSettings = SearchSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    llm: LlmSettings = LlmSettings()
    ask: AskSettings = AskSettings()
    mcp: McpSettings = McpSettings()
    daemon: DaemonSettings = DaemonSettings()
    logging: LoggingSettings = LoggingSettings()


class Source(Struct, frozen=True, kw_only=True):
    """A folder to index, with its root from `/`."""

    id: str
    root: Path
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    type: str = "note"
    trust_level: TrustLevel = "primary"

    def document_path(self, relative: str) -> str:
        """The path of a document in the store; the default source has no prefix."""
        return relative if self.id == DEFAULT_SOURCE else f"{self.id}/{relative}" if relative else self.id


DEFAULT_SOURCE = "default"


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of one run, with the places they lead to."""

    config: KebabConfig
    config_file: Path
    has_file: bool
    data: DataPaths
    logs: Path
    is_readonly: bool = False

    @property
    def sources(self) -> tuple[Source, ...]:
        """The workspace first, where it has a root."""
        base, config = self.config_file.parent, self.config
        found = []
        if config.workspace.root:
            one = config.workspace
            found.append(_source(DEFAULT_SOURCE, one, base))
        return (*found, *(_source(one.id, one, base) for one in config.sources))


def load_settings(
    given: str | None = None, environ: Mapping[str, str] | None = None, is_readonly: bool = False
) -> Settings:
    """Read the file and the environment. A named file must exist; the standard one need not."""
    environ = os.environ if environ is None else environ
    path = config_file(given, environ)
    has_file = path.exists()
    if not has_file and is_config_named(given, environ):
        raise ConfigNotFound(f"the configuration file {path} does not exist", f"make it: kebab init --config {path}")
    values = read_toml(path) if has_file else {}
    version = values.get("config_version", 0 if values else CONFIG_VERSION)
    if version != CONFIG_VERSION:
        raise _wrong_version(path, version)
    from_file = {name: dict(value) if isinstance(value, dict) else value for name, value in values.items()}
    variables = _apply_environment(values, environ)
    try:
        config = check_config(values, str(path))
    except ConfigInvalid:
        if variables:
            check_config(from_file, str(path))  # raises where the file is to blame
            raise _wrong_variable(from_file, variables, environ) from None
        raise
    data = expand(config.store.data_dir, path.parent) if config.store.data_dir else default_data_dir(environ)
    if models := config.embedding.models_dir:
        embedding = msgspec.structs.replace(config.embedding, models_dir=str(expand(models, path.parent)))
        config = msgspec.structs.replace(config, embedding=embedding)
    return Settings(
        config=config,
        config_file=path,
        has_file=has_file,
        data=DataPaths(data),
        logs=logs_dir(environ),
        is_readonly=is_readonly or is_true(environ.get("KEBAB_READONLY", "")),
    )


def read_toml(path: Path) -> dict[str, Any]:
    """The file as it is, unchecked."""
    try:
        return tomllib.loads(read_regular(path, MAX_CONFIG_BYTES).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigInvalid(
            f"{path} must be TOML in UTF-8: {error}", "correct the line, or start anew: kebab init --force"
        ) from error


def check_config(values: Mapping[str, Any], origin: str) -> KebabConfig:
    """Values as settings, or an error that names the key."""
    _refuse_unknown(values, origin)
    try:
        config = msgspec.convert(values, ready(KebabConfig), strict=False)
    except msgspec.ValidationError as error:
        raise ConfigInvalid(
            f"{origin}: {_readable(str(error))}",
            "correct the value; `kebab init --config NEW.toml` writes every setting with its default",
        ) from error
    check_store_url(config.store.url, origin)
    ids = [source.id for source in config.sources]
    for name in ids:
        if name in (DEFAULT_SOURCE, EXTERNAL) or ids.count(name) > 1:
            raise ConfigInvalid(
                f"{origin}: each source needs an id of its own, got {name!r} twice or reserved", "rename it"
            )
    if config.chunking.overlap_tokens * 2 > config.chunking.target_tokens:
        raise ConfigInvalid(
            f"{origin}: chunking.overlap_tokens must be at most half of target_tokens, got "
            f"{config.chunking.overlap_tokens} of {config.chunking.target_tokens}",
            "lower overlap_tokens",
        )
    return config


def check_store_url(url: str, origin: str) -> None:
    """Refuse what PostgreSQL does not call a URL; the message leaves out the value, which may hold a password."""
    if url and not url.startswith(("postgresql://", "postgres://")):
        raise ConfigInvalid(
            f"{origin}: store.url must begin with postgresql://", "such as postgresql://user@host:5432/database"
        )


def _source(name: str, one: WorkspaceSettings | SourceSettings, base: Path) -> Source:
    return Source(
        id=name,
        root=Path(os.path.normpath(expand(one.root, base))),
        include=one.include,
        exclude=one.exclude,
        type=one.type,
        trust_level=one.trust_level,
    )


def _apply_environment(values: dict[str, Any], environ: Mapping[str, str]) -> list[str]:
    """KEBAB_SEARCH_DEFAULT_K=20 is `[search] default_k = 20`; a list is JSON or parted by commas. Returns the variables
    that were set."""
    used = []
    sections = {name: kind for name, kind in _sections().items() if name != "sources"}
    for variable, text in sorted(environ.items()):
        match = re.fullmatch(r"KEBAB_([A-Z]+)_([A-Z_]+)", variable)
        if match is None or (section := match[1].lower()) not in sections:
            continue
        key = match[2].lower()
        fields = {field.name: field for field in msgspec.structs.fields(sections[section])}
        if key not in fields:
            raise ConfigInvalid(f"{variable}: [{section}] has no setting {key!r}", _nearest(key, fields))
        if text == "" and fields[key].default is None:
            continue
        is_list = isinstance(fields[key].default, tuple)
        values.setdefault(section, {})[key] = _as_list(variable, text) if is_list else text
        used.append(variable)
    if tools := environ.get("KEBAB_TOOLS", ""):
        values.setdefault("mcp", {})["tools"] = tools
        used.append("KEBAB_TOOLS")
    return used


def _wrong_variable(values: Mapping[str, Any], variables: list[str], environ: Mapping[str, str]) -> ConfigInvalid:
    """Which of them the file is fine without."""
    for variable in variables:
        alone = {name: dict(value) if isinstance(value, dict) else value for name, value in values.items()}
        _apply_environment(alone, {variable: environ[variable]})
        try:
            check_config(alone, variable)
        except ConfigInvalid as error:
            return error
    return ConfigInvalid(f"these variables do not go together: {', '.join(variables)}", "leave one of them out")


def _as_list(variable: str, text: str) -> list[Any]:
    if text.lstrip().startswith("["):
        try:
            return msgspec.json.decode(text, type=list[Any])
        except msgspec.DecodeError as error:
            raise ConfigInvalid(f"{variable} must be a JSON array, or values parted by commas: {error}") from error
    return [one.strip() for one in text.split(",") if one.strip()]


def _refuse_unknown(values: Mapping[str, Any], origin: str) -> None:
    sections = _sections()
    for name, section in values.items():
        if name != "config_version" and name not in sections:
            raise ConfigInvalid(f"{origin}: section {name!r} is not known", _nearest(name, sections))
        for one in section if isinstance(section, list) else [section]:
            if not isinstance(one, Mapping):
                continue
            fields = [field.name for field in msgspec.structs.fields(sections[name])]
            for key in one:
                if key not in fields:
                    raise ConfigInvalid(f"{origin}: [{name}] has no setting {key!r}", _nearest(key, fields))


def _sections() -> dict[str, type[Struct]]:
    kinds = {field.name: type(field.default) for field in msgspec.structs.fields(KebabConfig)}
    return {name: kind for name, kind in kinds.items() if issubclass(kind, Struct)} | {"sources": SourceSettings}


def _nearest(name: str, known: Mapping[str, Any] | list[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return (
        f"did you mean {near[0]!r}?"
        if near
        else f"known are {', '.join(known)}; `kebab config migrate` mends old files"
    )


def _readable(message: str) -> str:
    """`Expected int <= 100 - at $.search.default_k` with the key first."""
    text, _, place = message.rpartition(" - at `$.")
    return f"{place.rstrip('`')}: {text[0].lower()}{text[1:]}" if text else message


def _wrong_version(path: Path, version: object) -> ConfigInvalid:
    if isinstance(version, int) and version > CONFIG_VERSION:
        return ConfigInvalid(
            f"{path} is of version {version}, this kebab knows up to {CONFIG_VERSION}", "install the newer kebab"
        )
    return ConfigInvalid(
        f"{path} is of an older version", "run `kebab config migrate`; --dry-run shows what it changes"
    )


def is_true(text: str) -> bool:
    """A variable such as KEBAB_READONLY: set, and not to a word for no."""
    return text.lower() not in ("", "0", "false", "no", "off")
