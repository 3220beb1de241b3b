"""Writing the file of settings: a new one with every setting explained by its default, and one of an older version
brought up to date. The file that was there stays beside it as a backup."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from dari.errors import Conflict
from dari.knowledge.config import CONFIG_VERSION, KebabConfig, check_config, read_toml
from dari.knowledge.errors import ConfigInvalid, ConfigNotFound
from dari.knowledge.wire.reports import ConfigMigrationV1
from dari.paths import make_dirs, write_private

_HEAD = """\
# Settings of kebab. A line with # shows a default. The environment wins: KEBAB_SEARCH_DEFAULT_K=20.
"""
# Sections and keys of the original kebab (no `config_version`), and where they are now. "": left out.
_MOVED = {
    "storage.data_dir": "store.data_dir",
    "models.embedding.provider": "embedding.provider",
    "models.embedding.model": "embedding.model",
    "models.embedding.endpoint": "embedding.endpoint",
    "models.embedding.batch_size": "embedding.batch_size",
    "models.llm.endpoint": "llm.endpoint",
    "models.llm.model": "llm.model",
    "models.llm.context_tokens": "llm.context_tokens",
    "models.llm.temperature": "llm.temperature",
    "models.llm.seed": "llm.seed",
    "search.stale_threshold_days": "search.stale_after_days",
    "search.hybrid_fusion": "search.fusion",
    "rag.max_context_tokens": "llm.context_tokens",
    "indexing.watch_filesystem": "daemon.watch",
    "ingest.code.max_file_bytes": "ingest.max_code_bytes",
    "ingest.code.max_lines": "ingest.max_code_lines",
    "ingest.code.skip_generated_header": "ingest.skip_generated",
}


def init_config(path: Path, *, root: str = "", store_url: str = "", force: bool = False) -> str:
    """Write a new file; returns the path of the backup where one was replaced, else "". Conflict: it exists."""
    # What `kebab init` without a folder wrote holds no word of the person's.
    is_untouched = bool(root or store_url) and path.is_file() and path.read_bytes() == render({}).encode()
    if path.exists() and not force and not is_untouched:
        raise Conflict(
            f"{path} exists already",
            "set root in its [workspace], or replace it with --force: a backup is kept",
        )
    values: dict[str, Any] = {}
    if root:
        values["workspace"] = {"root": root}
    if store_url:
        values["store"] = {"url": store_url}
    backup = _back_up(path) if path.exists() and not is_untouched else ""
    make_dirs(path.parent)
    write_private(path, render(values).encode())
    return backup


def migrate_config(path: Path, *, dry_run: bool = False) -> ConfigMigrationV1:
    """Bring the file to this version and say what changes; with `dry_run` nothing is written."""
    if not path.exists():
        raise ConfigNotFound(f"the configuration file {path} does not exist", "make it: kebab init")
    old = read_toml(path)
    version = old.get("config_version", 0)
    if not isinstance(version, int) or version > CONFIG_VERSION:
        raise ConfigInvalid(
            f"{path} is of version {version!r}, this kebab knows up to {CONFIG_VERSION}", "install the newer kebab"
        )
    values, changes = (old, []) if version == CONFIG_VERSION else _from_original(old)
    checked = {key: value for key, value in values.items() if key != "config_version"}
    check_config(checked, str(path))
    report = ConfigMigrationV1(
        path=str(path), from_version=version, to_version=CONFIG_VERSION, changes=tuple(changes), written=False
    )
    if dry_run or not changes:
        return report
    backup = _back_up(path)
    mode = stat.S_IMODE(path.stat().st_mode)
    write_private(path, render(checked).encode())
    path.chmod(mode)
    return msgspec.structs.replace(report, written=True, backup=backup or UNSET)


def render(values: Mapping[str, Any]) -> str:
    """These settings as TOML, with all others as comments."""
    lines = [_HEAD, f"config_version = {CONFIG_VERSION}", ""]
    for field in msgspec.structs.fields(KebabConfig):
        if isinstance(field.default, Struct):
            lines += [f"[{field.name}]", *_render_section(field.default, values.get(field.name, {})), ""]
    sources = values.get("sources", ())
    if not sources:
        lines += ["# A further folder; paths of its documents begin with its id.", "# [[sources]]"]
        lines += ['# id = "work"', '# root = "~/work/docs"', '# trust_level = "secondary"', ""]
    for source in sources:
        lines += ["[[sources]]", *(f"{key} = {_toml(value)}" for key, value in source.items()), ""]
    return "\n".join(lines)


def _render_section(defaults: Struct, values: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for field in msgspec.structs.fields(defaults):
        if field.name in values:
            lines.append(f"{field.name} = {_toml(values[field.name])}")
        elif field.default is None:
            lines.append(f"# {field.name} =")
        else:
            lines.append(f"# {field.name} = {_toml(field.default)}")
    return lines


def _toml(value: object) -> str:
    """TOML's strings are JSON's; its arrays of them too."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | list | tuple):
        return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
    return repr(value)


def _from_original(old: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Version 0 is the original's file: what has a counterpart here moves, the rest is named and left out."""
    values: dict[str, Any] = {}
    changes: list[str] = [f"config_version = {CONFIG_VERSION} is added"]
    known = _known_settings()
    for name, value in _flatten(old):
        if name == "sources":
            values["sources"] = value
            continue
        target = _MOVED.get(name, name)
        value = _converted(target, value)
        if target not in known or value is None:
            changes.append(f"{name} is left out: this kebab does not have it")
            continue
        section, _, key = target.partition(".")
        values.setdefault(section, {})[key] = value
        if target != name:
            changes.append(f"{name} is now {target}")
    embedding = values.get("embedding", {})
    if embedding and embedding.get("provider", "local") not in ("openai", "ollama"):
        values.pop("embedding")
        changes.append("the local embedding model is left out: `kebab models use` chooses one")
    return values, changes


def _converted(target: str, value: object) -> object:
    """None: the value has no meaning here."""
    if target == "search.fusion":
        return "rrf" if value == "rrf" else None
    if target == "llm.endpoint" and isinstance(value, str) and value and not value.rstrip("/").endswith("/v1"):
        return f"{value.rstrip('/')}/v1"  # the original spoke Ollama's own protocol
    return value


def _flatten(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        found += _flatten(value, f"{prefix}{key}.") if isinstance(value, Mapping) else [(f"{prefix}{key}", value)]
    return found


def _known_settings() -> set[str]:
    sections = msgspec.structs.fields(KebabConfig)
    return {
        f"{section.name}.{field.name}"
        for section in sections
        if isinstance(section.default, Struct)
        for field in msgspec.structs.fields(section.default)
    }


def _back_up(path: Path) -> str:
    """A copy beside it that replaces no older one."""
    number = 0
    while os.path.lexists(backup := path.with_name(f"{path.name}.bak{number or ''}")):
        number += 1
    write_private(backup, path.read_bytes())
    return str(backup)
