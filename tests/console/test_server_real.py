"""The Servers page's tools with servers that people use: from npm and PyPI, working and broken ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dari.errors import DariError
from tests.support.bridge import Place
from tests.support.console_servers import ServersPage, servers_page
from tests.support.real_servers import START_MS, Installed, broken_servers, installed, real_servers

pytestmark = pytest.mark.timeout(150)
CHOSEN = ("everything", "filesystem", "time")


@pytest.fixture
def there() -> Installed:
    return installed()


@pytest.fixture
def place(tmp_path: Path, there: Installed, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    servers = real_servers(tmp_path / "data", there, "postgresql://nobody@127.0.0.1:9/none")
    chosen = [servers[name] for name in CHOSEN]
    chosen += broken_servers(tmp_path, there, init_timeout_ms=2000).values()
    return Place(tmp_path, *({"id": one.id, "initTimeoutMs": START_MS, **one.entry} for one in chosen))


async def report_of(page: ServersPage, name: str) -> dict[str, Any]:
    return dict(await page.call("test", name=name))


@pytest.mark.parametrize("name", CHOSEN)
async def test_a_real_server_passes_every_step_and_its_tools_are_listed(place: Place, name: str) -> None:
    async with servers_page(place) as page:
        report = await report_of(page, name)
        assert report["ok"], report
        assert [step["name"] for step in report["steps"]][3:6] == ["start", "agree", "tools/list"]
        listed = await page.call("tools", name=name, start=True)
        # A server may list more to a client that can answer questions; the test's own session answers none.
        assert {tool["name"] for tool in listed["tools"]} >= set(report["tools"]) != set()
        assert (await page.card(name))["state"] == "ready"


async def test_a_server_that_ends_at_once_says_why_on_its_stderr(place: Place) -> None:
    async with servers_page(place) as page:
        report = await report_of(page, "crashing")
        assert not report["ok"] and report["steps"][-1]["status"] == "failed" and report["stderr"]
        with pytest.raises(DariError):
            await page.call("start", name="crashing")
        assert any(line["source"] == "stderr" for line in await page.log("crashing"))


async def test_a_server_that_says_nothing_is_given_up_after_its_time(place: Place) -> None:
    async with servers_page(place) as page:
        report = await report_of(page, "hanging")
    assert not report["ok"] and report["steps"][-1]["name"] == "agree"
