"""Which model is active: a person's word, else the languages of the documents."""

from __future__ import annotations

import gc
import json
import os
import weakref
from pathlib import Path

import numpy as np
import pytest

from dari.errors import Failed, InvalidInput, NotFound
from dari.knowledge.errors import ModelNotInstalled
from dari.knowledge.models import installed
from dari.knowledge.models.catalog import CATALOG, better_model, catalog_model, default_name, default_names, preferred
from dari.knowledge.models.installed import (
    active_model,
    model_rows,
    read_active,
    use_folder,
    use_for_languages,
    use_installed,
)
from dari.knowledge.models.model import load_model
from dari.knowledge.models.settings import EmbeddingSettings
from tests.support.tiny_models import own_folder

SETTINGS = EmbeddingSettings()


@pytest.mark.parametrize(
    ("languages", "name"),
    [
        ({"en": 100}, "minilm"),
        ({"en": 99, "ko": 1}, "minilm"),
        ({"en": 90, "ko": 10}, "use-m"),
        ({"ko": 5}, "use-m"),
        ({"fr": 5, "und": 100}, "use-m"),
        ({"und": 10}, "minilm"),
        ({}, "minilm"),
    ],
)
def test_english_folders_get_minilm_and_all_others_use_m(languages: dict[str, int], name: str) -> None:
    assert default_name(languages) == name


def test_one_model_for_each_kind_of_folder_is_installed_before_anything_is_indexed() -> None:
    assert default_names({}) == ("use-m", "minilm")
    assert default_names({"en": 5}) == ("minilm",)
    assert default_names({"en": 5, "ko": 5}) == ("use-m", "minilm")
    assert default_names({"ko": 5, "und": 2}) == ("use-m",)


def test_an_english_model_is_never_chosen_for_korean_documents() -> None:
    assert preferred({"ko": 3}, ["minilm", "gte-small"]) is None
    assert preferred({"ko": 3}, ["minilm", "potion-ml"]) == "potion-ml"
    assert preferred({"en": 3}, ["use-m", "minilm"]) == "minilm"
    assert preferred({"en": 3}, ["use-m", "minilm", "gte-small"]) == "gte-small"


def test_the_languages_choose_until_a_person_does(tmp_path: Path) -> None:
    _pretend_installed(tmp_path, "use-m", "minilm")
    assert use_for_languages(SETTINGS, tmp_path, {"en": 4}) == "minilm"
    assert use_for_languages(SETTINGS, tmp_path, {"en": 4}) is None
    assert use_for_languages(SETTINGS, tmp_path, {"en": 4, "ko": 4}) == "use-m"
    use_folder(tmp_path, own_folder(tmp_path / "own"))
    assert use_for_languages(SETTINGS, tmp_path, {"en": 4}) is None
    assert [row.name for row in model_rows(SETTINGS, tmp_path) if row.is_active] == ["mine"]


def test_a_folder_of_ones_own_is_run_with_its_prefixes_and_weight(tmp_path: Path) -> None:
    folder = own_folder(tmp_path / "own", query_prefix="the cat ", lexical_weight=0.3)
    use_folder(tmp_path, folder)
    model = load_model(SETTINGS, tmp_path)
    assert model is not None
    assert (model.name, model.dim, model.lexical_weight) == ("mine", 32, 0.3)
    assert np.array_equal(model.embed_query("sat"), model.embed_passages(["the cat sat"])[0])
    tuned = load_model(EmbeddingSettings(lexical_weight=0.9), tmp_path)
    assert tuned is not None
    assert (tuned.lexical_weight, tuned.key) == (0.9, model.key)


def test_those_who_open_the_same_model_share_one_copy_until_the_last_lets_go(tmp_path: Path) -> None:
    use_folder(tmp_path, own_folder(tmp_path / "own"))
    searching, embedding = load_model(SETTINGS, tmp_path), load_model(SETTINGS, tmp_path)
    assert searching is not None and searching is embedding
    assert load_model(EmbeddingSettings(lexical_weight=0.9), tmp_path) is not searching
    own_folder(tmp_path / "own", passage_prefix="the ")
    assert load_model(SETTINGS, tmp_path) is not searching
    watched = weakref.ref(searching)
    del searching, embedding
    gc.collect()
    assert watched() is None


def test_other_weights_or_prefixes_are_another_model(tmp_path: Path) -> None:
    folder = own_folder(tmp_path / "own")
    keys = [use_folder(tmp_path, folder).manifest.hash]
    own_folder(folder, passage_prefix="the ")
    keys.append(use_folder(tmp_path, folder).manifest.hash)
    (folder / "model.onnx").write_bytes((folder / "model.onnx").read_bytes() + b"\x1a\x00")
    found = active_model(SETTINGS, tmp_path)
    assert found is not None
    keys.append(found.manifest.hash)
    assert len(set(keys)) == 3


def test_a_long_passage_is_the_mean_of_its_windows_or_its_first_one(tmp_path: Path) -> None:
    text = "the cat sat on a mat " + "dog ran under a tree " * 5
    vectors = {}
    for kind in ("mean", "first"):
        folder = own_folder(tmp_path / kind, windows=kind, max_tokens=8)
        use_folder(tmp_path, folder)
        model = load_model(SETTINGS, tmp_path)
        assert model is not None
        vectors[kind] = model.embed_passages([text])[0]
        first = model.embed_passages(["the cat sat on a mat"])[0]
    assert np.allclose(vectors["first"], first)
    assert not np.allclose(vectors["mean"], first)
    assert abs(np.linalg.norm(vectors["mean"]) - 1) < 1e-5


def test_a_manifest_that_promises_too_long_windows_fails_with_its_name(tmp_path: Path) -> None:
    use_folder(tmp_path, own_folder(tmp_path / "own", max_tokens=128))
    model = load_model(SETTINGS, tmp_path)
    assert model is not None
    assert model.embed_passages(["the cat"]).shape == (1, 32)
    with pytest.raises(Failed, match="mine") as caught:
        model.embed_passages(["the cat " * 60])
    assert "max_tokens" in caught.value.hint


@pytest.mark.parametrize(
    "manifest", [{"dim": "many"}, {"model_file": "../model.onnx"}, {"tokenizer_file": "none.json"}, {"extra": 1}]
)
def test_a_wrong_manifest_is_refused_before_it_is_active(tmp_path: Path, manifest: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        use_folder(tmp_path, own_folder(tmp_path / "own", **manifest))
    assert read_active(tmp_path) is None


def test_a_folder_without_a_manifest_says_what_one_looks_like(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        use_folder(tmp_path, tmp_path)
    assert '"pooling"' in caught.value.hint


def test_every_entry_of_the_catalogue_is_pinned_and_has_a_licence() -> None:
    for entry in CATALOG:
        digests = [entry.archive_sha256, *(file.sha256 for file in entry.files)]
        assert {len(digest) for digest in digests} == {64}, entry.name
        assert entry.manifest.licence and entry.archive_bytes and entry.about, entry.name
        assert catalog_model(entry.name) is entry
    with pytest.raises(NotFound):
        catalog_model("bge-m3")


def _pretend_installed(data_dir: Path, *names: str) -> None:
    for name in names:
        folder = data_dir / "models" / f"{name}-0"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"name": name, "dim": 8, "tokenizer_file": ""}))
        (folder / "model.onnx").write_bytes(b"")


def test_an_english_model_over_other_documents_is_named_with_the_better_one() -> None:
    mixed = {"en": 5, "ko": 5, "und": 9}
    assert better_model("minilm", mixed) == "use-m"
    assert [better_model(name, mixed) for name in ("use-m", "potion-ml", "mine")] == ["", "", ""]
    assert better_model("minilm", {"en": 99, "ko": 1, "und": 9}) == ""


def test_a_name_that_no_catalog_has_is_not_offered_for_installing(tmp_path: Path) -> None:
    for name, hint in (("none", "kebab models list"), ("use-m", "kebab models install use-m")):
        with pytest.raises(ModelNotInstalled) as caught:
            use_installed(SETTINGS, tmp_path, name)
        assert hint in caught.value.hint


def test_a_folder_whose_files_have_another_time_is_hashed_once_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read = own_folder(tmp_path / "own"), []
    key = use_folder(tmp_path, folder).manifest.hash
    os.utime(folder / "model.onnx", (1, 1))  # as a copy or a backup that was put back has it
    sha256_of = installed.sha256_of
    monkeypatch.setattr(installed, "sha256_of", lambda path: read.append(path) or sha256_of(path))
    for _ in range(3):
        found = active_model(SETTINGS, tmp_path)
        assert found is not None and found.manifest.hash == key
    assert len(read) == len(set(read))
