"""The doctor's look at the language model's server, and what `schema.v1` says of this installation."""

from __future__ import annotations

from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from dari.knowledge.ask.prompt import PROMPT_VERSION
from dari.knowledge.health import run_doctor
from dari.knowledge.models.installed import use_folder
from dari.knowledge.service import KnowledgeService
from dari.knowledge.wire.reports import DoctorCheck
from tests.support.http_replies import Reply, send, serving
from tests.support.knowledge_folder import make_settings, run, write_old
from tests.support.tiny_models import own_folder


def _check_llm(folder: Path, endpoint: str, **more: str) -> DoctorCheck:
    environ = {"KEBAB_LLM_ENDPOINT": endpoint, "KEBAB_LLM_MODEL": "small", "KEBAB_EMBEDDING_MODEL": "none", **more}
    with closing(KnowledgeService(make_settings(folder, environ))) as service:
        report = run_doctor(lambda: service)
    (check,) = [one for one in report.checks if one.name == "llm_endpoint"]
    return check


def test_the_doctor_does_not_carry_the_key_to_where_a_redirect_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")
    arrived: list[str] = []

    def elsewhere(handler: BaseHTTPRequestHandler) -> None:
        arrived.append(str(handler.headers["authorization"]))
        send(handler, 200, b'{"data": [{"id": "small"}]}')

    with serving(elsewhere) as other:
        redirect: Reply = lambda handler: send(handler, 302, b"", f"{other}/models")  # noqa: E731
        with serving(redirect) as endpoint:
            check = _check_llm(tmp_path, endpoint, KEBAB_LLM_API_KEY_ENV="MY_KEY")
    assert arrived == []
    assert not check.ok
    assert "302" in check.detail


@pytest.mark.parametrize(("listed", "ok"), [(b'{"data": [{"id": "small"}]}', True), (b'{"data": []}', False)])
def test_the_doctor_looks_for_the_model_in_the_server_s_list(tmp_path: Path, listed: bytes, ok: bool) -> None:
    with serving(lambda handler: send(handler, 200, listed)) as endpoint:
        check = _check_llm(tmp_path, endpoint)
    assert check.ok is ok
    assert ok or "small" in check.detail


def test_the_schema_names_the_version_of_the_prompt(tmp_path: Path) -> None:
    with closing(KnowledgeService(make_settings(tmp_path))) as service:
        assert service.schema().models.prompt_template_version == PROMPT_VERSION


def test_the_doctor_names_the_command_where_a_model_has_no_vectors_yet(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    write_old(settings.sources[0].root / "a.md", "# Backups\n\nThey are made at night.\n")
    run(settings)
    use_folder(settings.data.data, own_folder(tmp_path / "own"))
    with closing(KnowledgeService(make_settings(tmp_path, {}))) as service:
        checks = {one.name: one for one in run_doctor(lambda: service).checks}
    assert checks["vectors"].ok
    assert "0 chunks have a vector, 1 wait" in checks["vectors"].detail
    assert checks["vectors"].hint == "kebab ingest makes the rest"
