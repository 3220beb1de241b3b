"""Where kebab keeps its files.

--config FILE, else $KEBAB_CONFIG, else $XDG_CONFIG_HOME/kebab/config.toml    settings
`[store] data_dir`, else $XDG_DATA_HOME/kebab/                                documents, indexes, vectors, models
$XDG_STATE_HOME/kebab/logs/                                                   log of `kebab mcp`

With DARI_HOME set all three are below $DARI_HOME/kebab instead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from dari.home import absolute

EXTERNAL = "_external"
"""The folder, in paths of documents, of what was ingested as a single file or from stdin."""


class DataPaths(Struct, frozen=True):
    """The files of one knowledge base. Copying `data` moves it."""

    data: Path

    @property
    def sqlite(self) -> Path:
        return self.data / "kebab.sqlite"

    @property
    def lexical(self) -> Path:
        return self.data / "lexical"

    @property
    def vectors(self) -> Path:
        return self.data / "vectors"

    @property
    def assets(self) -> Path:
        return self.data / "assets"

    @property
    def models(self) -> Path:
        return self.data / "models"

    @property
    def active_model(self) -> Path:
        """Names the model in use (`kebab models use`)."""
        return self.data / "model.json"

    @property
    def runs(self) -> Path:
        return self.data / "runs"

    @property
    def writer_lock(self) -> Path:
        return self.data / "writer.lock"

    @property
    def reset_marker(self) -> Path:
        """Names a reset that has begun; the next writer ends it."""
        return self.data / "reset.json"

    @property
    def local_sources(self) -> Path:
        """What this machine has in a shared store: its installation id, and the folders of `--root`."""
        return self.data / "sources.json"

    def asset(self, asset_id: str) -> Path:
        """The bytes of a document of `_external`."""
        return self.assets / asset_id[:2] / asset_id


def config_file(given: str | None, environ: Mapping[str, str]) -> Path:
    """The file of settings; it need not exist unless it was named."""
    chosen = given or environ.get("KEBAB_CONFIG", "")
    if chosen:
        return expand(chosen, Path.cwd())
    own = _own_home(environ)
    return own / "config.toml" if own else _base(environ, "XDG_CONFIG_HOME", ".config") / "kebab" / "config.toml"


def is_config_named(given: str | None, environ: Mapping[str, str]) -> bool:
    return bool(given or environ.get("KEBAB_CONFIG", ""))


def default_data_dir(environ: Mapping[str, str]) -> Path:
    own = _own_home(environ)
    return own / "data" if own else _base(environ, "XDG_DATA_HOME", ".local/share") / "kebab"


def logs_dir(environ: Mapping[str, str]) -> Path:
    own = _own_home(environ)
    return own / "logs" if own else _base(environ, "XDG_STATE_HOME", ".local/state") / "kebab" / "logs"


def expand(path: str, base: Path) -> Path:
    """Absolute, with `~` and relative to `base`; links are not resolved."""
    return base / os.path.expanduser(path)


def _own_home(environ: Mapping[str, str]) -> Path | None:
    chosen = environ.get("DARI_HOME", "")
    return Path(absolute(os.path.expanduser(chosen))) / "kebab" if chosen else None


def _base(environ: Mapping[str, str], name: str, otherwise: str) -> Path:
    value = environ.get(name, "")
    return Path(value) if os.path.isabs(value) else Path.home() / otherwise
