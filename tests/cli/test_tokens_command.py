"""`dari tokens`: a token for each client, from a shell, with a hub that runs and without one."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from dari.cli import tokens
from dari.cli.main import main
from dari.core.audit.log import AuditLog
from dari.core.audit.query import query
from dari.errors import Unavailable
from dari.transport.token_service import TokenService
from tests.support.installed_hub import Hub, dari_up
from tests.support.wire import HttpWire, call, initialize


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["tokens", *words]) == 0
    return capsys.readouterr().out


def test_without_a_hub_tokens_are_made_shown_and_taken_away_on_the_files(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = said(capsys, "create", "claude-code").strip()
    assert secret.startswith("dtk_")
    assert said(capsys, "show", "claude-code").strip() == secret
    new = said(capsys, "rotate", "claude-code").strip()
    assert new not in ("", secret)
    assert "claude-code" in said(capsys, "list") and new not in said(capsys)
    assert json.loads(said(capsys, "revoke", "claude-code", "--json"))["name"] == "claude-code"
    assert [each["name"] for each in json.loads(said(capsys, "--json"))["entries"]] == ["shared"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("show", "nobody"), "there is no token for 'nobody'"),
        (("create", "No Good"), "the name of a client must be"),
        (("revoke", "shared"), "cannot be revoked"),
    ],
)
def test_what_cannot_be_done_says_what_is_right(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    assert main(["tokens", *words]) == (3 if "revoke" in words else 1)
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("create",), "create takes a name"),
        (("list", "x"), "list takes no name"),
        (("rotate", "x", "--read-only"), "--read-only is for create"),
    ],
)
def test_wrong_words_say_what_is_right(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["tokens", *words])
    assert ended.value.code == 2 and complaint in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["create", "show", "rotate", "revoke"])
def test_a_program_in_a_pane_gets_no_secret_and_changes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    said(capsys, "create", "mine")
    before = (home / "dari/tokens.json").read_bytes()
    name = "other" if verb == "create" else "mine"
    command = [sys.executable, "-m", "dari", "tokens", verb, name]
    run = subprocess.run(command, env={**os.environ, "CRUX_PANE": "%1"}, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "is for a person" in run.stderr
    assert "dtk_" not in run.stdout
    assert (home / "dari/tokens.json").read_bytes() == before


async def dari(home: Path, *words: str) -> str:
    """What `dari` prints in the home of the hub."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "DARI_HOME": str(home / "dari")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dari", *words), cwd=home, env=environment, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


async def connected(hub: Hub, secret: str) -> HttpWire:
    port = int(hub.url.rsplit(":", 1)[1].removesuffix("/mcp"))
    wire = HttpWire(*await asyncio.open_connection("127.0.0.1", port), token=secret)
    assert "result" in await wire.ask(initialize())
    return wire


async def test_a_running_hub_makes_them_names_the_agent_in_its_records_and_ends_it(tmp_path: Path) -> None:
    async with dari_up(tmp_path) as hub:
        secret = (await dari(tmp_path, "tokens", "create", "work-laptop")).strip()
        wire = await connected(hub, secret)
        assert "result" in await wire.ask(call("dari_ping"))
        assert (await dari(tmp_path, "tokens", "show", "shared")).strip() == hub.token
        await dari(tmp_path, "tokens", "revoke", "work-laptop")

        async def is_refused() -> bool:
            return (await wire.post(call("dari_ping"))).status == 401

        async with asyncio.timeout(30):
            while not await is_refused():  # noqa: ASYNC110 (it ends in another process)
                await asyncio.sleep(0.05)
        wire.writer.close()
    records = query(tmp_path / "dari/bridge/audit", limit=100)
    assert "mcp@work-laptop:test" in {record.who for record in records if record.tool == "dari_ping"}
    events = {record.detail.get("event") for record in records if record.kind == "decision"}
    assert {"token created", "token shown", "token revoked"} <= events


class UnwritableLog:
    def check(self) -> None:
        raise Unavailable("the audit log cannot be written", "free some space")


async def test_what_a_hub_cannot_record_is_not_done_without_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    hub = TokenService.of_home(lambda: cast(AuditLog, UnwritableLog()))
    monkeypatch.setattr(tokens, "make_stub", lambda kind, client: hub)
    with pytest.raises(Unavailable, match="cannot be written"):
        await tokens._do(lambda service: service.create("laptop", by="ann"))
    assert [one.name for one in (await hub.list_tokens()).entries] == ["shared"]
