"""What makes an open knowledge base open again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from dari.knowledge.config import load_settings
from dari.knowledge.service import KnowledgeService
from tests.support.knowledge_base import index_notes, write_notes


def test_a_model_that_appears_in_the_configured_folder_opens_the_base_again(tmp_path: Path) -> None:
    notes, data, models = write_notes(tmp_path / "notes"), tmp_path / "data", tmp_path / "shared-models"
    index_notes(notes, data)
    models.mkdir()
    environ = {
        "DARI_HOME": str(tmp_path / "home"),
        "KEBAB_STORE_DATA_DIR": str(data),
        "KEBAB_EMBEDDING_MODELS_DIR": str(models),
    }
    with closing(KnowledgeService(load_settings(None, environ))) as service:
        first = service.base()
        assert service.base() is first
        (models / "minilm-0123").mkdir()
        assert service.base() is not first
