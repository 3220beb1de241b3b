"""The services of one process: an evicted one ends its calls first; what opens a base again, and what keeps it shut."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from dari.errors import InvalidInput, Unavailable
from dari.installation import install_extra
from dari.knowledge.ask.asker import AskRequest
from dari.knowledge.ask.prompt import ChatMessage
from dari.knowledge.config import load_settings
from dari.knowledge.health import run_doctor
from dari.knowledge.models.installed import use_folder
from dari.knowledge.service import MAX_OPEN_SERVICES, KnowledgeService, ServiceCache
from tests.support.knowledge_base import index_notes, write_config, write_notes
from tests.support.tiny_models import own_folder

WAIT_S = 30.0


def _configs(folder: Path, count: int) -> list[str]:
    notes, data = write_notes(folder / "notes"), folder / "data"
    index_notes(notes, data)
    return [str(write_config(folder / f"{number}.toml", notes, data)) for number in range(count)]


def test_an_answer_is_finished_and_remembered_by_a_service_that_was_evicted_meanwhile(tmp_path: Path) -> None:
    first, *others = _configs(tmp_path, MAX_OPEN_SERVICES + 1)
    is_asked, may_answer = threading.Event(), threading.Event()

    def sample(messages: Sequence[ChatMessage], max_tokens: int) -> str:
        is_asked.set()
        assert may_answer.wait(WAIT_S)
        return "Backups are kept for 35 days [#1]."

    with ServiceCache() as services, ThreadPoolExecutor(1) as threads:
        service = services.get(first, {}, False)
        request = AskRequest(question="How long are backups kept?", session_id="talk")
        asked = threads.submit(service.ask, request, sample)
        try:
            assert is_asked.wait(WAIT_S)
            for config in others:
                services.get(config, {}, False)
            assert services.get(first, {}, False) is not service
        finally:
            may_answer.set()
        assert asked.result(WAIT_S).grounded
        turns = services.get(first, {}, False).base().store.journal.turns("talk", 10)
        assert [turn.question for turn in turns] == [request.question]
        assert service._base is None, "the last call left it open"


def test_a_service_that_was_evicted_and_is_used_again_closes_after_each_call(tmp_path: Path) -> None:
    (config,) = _configs(tmp_path, 1)
    with ServiceCache() as services:
        service = services.get(config, {}, False)
    assert service.search("backups", mode="lexical").hits
    assert service._base is None


def test_a_model_that_appears_in_the_configured_folder_opens_the_base_again(tmp_path: Path) -> None:
    _configs(tmp_path, 1)
    models = tmp_path / "shared-models"
    models.mkdir()
    environ = {
        "DARI_HOME": str(tmp_path / "home"),
        "KEBAB_STORE_DATA_DIR": str(tmp_path / "data"),
        "KEBAB_EMBEDDING_MODELS_DIR": str(models),
    }
    with closing(KnowledgeService(load_settings(None, environ))) as service:
        first = service.base()
        assert service.base() is first
        (models / "minilm-0123").mkdir()
        assert service.base() is not first


def test_a_store_whose_package_is_not_installed_names_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    environ = {"DARI_HOME": str(tmp_path), "KEBAB_STORE_URL": "postgresql://127.0.0.1:9/none"}
    with closing(KnowledgeService(load_settings(None, environ))) as service, pytest.raises(Unavailable) as failure:
        service.base()
    assert failure.value.hint == install_extra("postgres")


def test_a_model_that_cannot_be_opened_leaves_the_words_and_is_used_when_it_is_back(tmp_path: Path) -> None:
    """Such as one on a disk that is not mounted."""
    _configs(tmp_path, 1)
    environ = {"DARI_HOME": str(tmp_path / "home"), "KEBAB_STORE_DATA_DIR": str(tmp_path / "data")}
    folder = own_folder(tmp_path / "disk" / "own")
    use_folder(tmp_path / "data", folder)
    away = folder.rename(tmp_path / "unmounted")
    with ServiceCache() as services:
        service = services.get(None, environ, False)
        found = service.search("backups")
        assert (found.mode, found.degraded) == ("lexical", "model_failed")
        assert found.hits and "manifest.json" in str(found.hint)
        assert service.list_docs().docs
        assert service.base() is service.base()
        with pytest.raises(InvalidInput, match=r"manifest\.json"):
            service.search("backups", mode="vector")
        checks = {check.name: check for check in run_doctor(lambda: service).checks}
        assert checks["store"].ok
        assert not checks["embedding_model"].ok and "manifest.json" in str(checks["embedding_model"].detail)
        away.rename(folder)
        assert service.search("backups").degraded == "no_vectors"
