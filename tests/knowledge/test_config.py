"""Settings: the file, the environment, what is refused, and files of an older version."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest

from dari.errors import Conflict
from dari.knowledge.config import KebabConfig, check_config, load_settings
from dari.knowledge.config_file import init_config, migrate_config, render
from dari.knowledge.errors import ConfigInvalid, ConfigNotFound

ORIGINAL = """
schema_version = 1
[workspace]
root = "~/notes"
include = ["*.md"]
[storage]
data_dir = "~/kb"
copy_threshold_mb = 100
[chunking]
target_tokens = 400
overlap_tokens = 60
chunker_version = "md-heading-v1"
[models.embedding]
provider = "fastembed"
model = "multilingual-e5-large"
[models.llm]
provider = "ollama"
model = "gemma4:e4b"
endpoint = "http://127.0.0.1:11434"
[search]
default_k = 12
hybrid_fusion = "rrf"
stale_threshold_days = 60
[rag]
score_gate = 0.3
"""


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_without_a_file_the_defaults_hold_and_everything_is_below_dari_home(tmp_path: Path) -> None:
    settings = load_settings(None, {"DARI_HOME": str(tmp_path)})
    assert settings.config == KebabConfig()
    assert not settings.has_file
    assert settings.config_file == tmp_path / "kebab/config.toml"
    assert settings.data.sqlite == tmp_path / "kebab/data/kebab.sqlite"
    assert settings.logs == tmp_path / "kebab/logs"
    assert settings.sources == ()


def test_without_dari_home_the_places_are_those_of_the_desktop(tmp_path: Path) -> None:
    environ = {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE")}
    settings = load_settings(None, environ)
    assert settings.config_file == tmp_path / "config/kebab/config.toml"
    assert settings.data.data == tmp_path / "data/kebab"
    assert settings.logs == tmp_path / "state/kebab/logs"


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "c.toml", "config_version = 1\n[search]\ndefault_k = 5\nsnippet_chars = 100\n")
    environ = {
        "KEBAB_SEARCH_DEFAULT_K": "7",
        "KEBAB_WORKSPACE_EXCLUDE": "a, b",
        "KEBAB_WORKSPACE_INCLUDE": '["*.md"]',
        "KEBAB_INGEST_OCR": "false",
        "KEBAB_TOOLS": "all",
        "KEBAB_READONLY": "1",
    }
    settings = load_settings(path, environ)
    assert (settings.config.search.default_k, settings.config.search.snippet_chars) == (7, 100)
    assert settings.config.workspace.exclude == ("a", "b")
    assert settings.config.workspace.include == ("*.md",)
    assert (settings.config.ingest.ocr, settings.config.mcp.tools, settings.is_readonly) == (False, "all", True)


def test_relative_paths_count_from_the_file_s_folder(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.toml",
        'config_version = 1\n[workspace]\nroot = "notes"\n[store]\ndata_dir = "kb"\n'
        '[embedding]\nmodels_dir = "models"\n'
        '[[sources]]\nid = "w"\nroot = "../w"\n',
    )
    settings = load_settings(path, {})
    assert settings.data.data == tmp_path / "kb"
    assert settings.config.embedding.models_dir == str(tmp_path / "models")
    assert [(source.id, source.root) for source in settings.sources] == [
        ("default", tmp_path / "notes"),
        ("w", tmp_path.parent / "w"),
    ]
    assert settings.sources[1].document_path("a.md") == "w/a.md"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[search]\ndefault_kk = 5", "default_k"),
        ("[serch]\nx = 1", "search"),
        ("[search]\ndefault_k = 500", "search.default_k"),
        ("[search]\ndefault_k = 'many'", "search.default_k"),
        ("[chunking]\ntarget_tokens = 100\noverlap_tokens = 60", "overlap_tokens"),
        ("[[sources]]\nid = 'a'\nroot = 'x'\n[[sources]]\nid = 'a'\nroot = 'y'", "'a'"),
        ("[[sources]]\nid = 'default'\nroot = 'x'", "'default'"),
        ("[[sources]]\nid = '../x'\nroot = 'x'", "sources"),
    ],
)
def test_a_wrong_value_or_key_is_refused_by_its_name(tmp_path: Path, text: str, named: str) -> None:
    path = write(tmp_path / "c.toml", f"config_version = 1\n{text}\n")
    with pytest.raises(ConfigInvalid) as caught:
        load_settings(path, {})
    assert named in caught.value.message + caught.value.hint


@pytest.mark.parametrize("text", ["[search", "config_version = 1\n\xff".encode("latin-1").decode("latin-1") + "[["])
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigInvalid):
        load_settings(write(tmp_path / "c.toml", text), {})


def test_a_named_file_must_exist_and_a_newer_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigNotFound):
        load_settings(str(tmp_path / "none.toml"), {})
    with pytest.raises(ConfigNotFound):
        load_settings(None, {"KEBAB_CONFIG": str(tmp_path / "none.toml")})
    newer = write(tmp_path / "c.toml", "config_version = 99\n")
    with pytest.raises(ConfigInvalid):
        load_settings(newer, {})
    with pytest.raises(ConfigInvalid):
        migrate_config(Path(newer))


def test_an_unknown_variable_of_a_known_section_is_refused_and_others_are_left_alone() -> None:
    load_settings(None, {"KEBAB_HOME": "x", "KEBABD": "y", "KEBAB_CONFIG": ""})
    with pytest.raises(ConfigInvalid) as caught:
        load_settings(None, {"KEBAB_SEARCH_DEFAULT_L": "1"})
    assert "default_k" in caught.value.hint


def test_a_new_file_is_private_and_means_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "deep/config.toml"
    assert init_config(path, root='~/my "notes"') == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    settings = load_settings(str(path), {})
    assert settings.config.workspace.root == '~/my "notes"'
    with pytest.raises(Conflict):
        init_config(path)
    backup = init_config(path, root="~/other", force=True)
    assert 'my \\"notes\\"' in Path(backup).read_text()
    assert load_settings(str(path), {}).config.workspace.root == "~/other"


def test_every_default_in_a_new_file_is_what_the_code_has() -> None:
    lines = render({}).splitlines()
    commented = [line.removeprefix("# ") for line in lines if line.startswith("# ") and " = " in line]
    active = "\n".join(
        line.removeprefix("# ") if line.startswith("# ") and " = " in line and not line.startswith("# Set") else line
        for line in lines
        if not line.startswith(('# id = "work"', '# root = "~/work', '# trust_level = "secondary"', "# [["))
    )
    values = tomllib.loads(active)
    values.pop("config_version")
    assert check_config(values, "test") == KebabConfig()
    assert len(commented) > 50


def test_a_file_of_the_original_is_brought_over_and_kept_as_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    write(path, ORIGINAL)
    with pytest.raises(ConfigInvalid) as caught:
        load_settings(str(path), {})
    assert "config migrate" in caught.value.hint
    planned = migrate_config(path, dry_run=True)
    assert (planned.from_version, planned.to_version, planned.written) == (0, 1, False)
    assert path.read_text() == ORIGINAL
    done = migrate_config(path)
    assert done.written
    assert done.changes == planned.changes
    assert isinstance(done.backup, str)
    assert Path(done.backup).read_text() == ORIGINAL
    config = load_settings(str(path), {}).config
    assert (config.workspace.root, config.workspace.include) == ("~/notes", ("*.md",))
    assert (config.store.data_dir, config.chunking.target_tokens) == ("~/kb", 400)
    assert (config.search.default_k, config.search.fusion, config.search.stale_after_days) == (12, "rrf", 60)
    assert (config.llm.endpoint, config.llm.model) == ("http://127.0.0.1:11434/v1", "gemma4:e4b")
    assert any("rag.score_gate" in change for change in done.changes)
    again = migrate_config(path)
    assert (again.changes, again.written) == ((), False)
