"""The servers, their database and what each says without anything between: once for each run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bridge.real.direct import Said, ask_all
from tests.support.real_servers import Installed, RealServer, broken_servers, database_serving, installed, real_servers
from tests.support.real_servers_home import House


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))


@pytest.fixture(scope="session")
def there() -> Installed:
    return installed()


@pytest.fixture(scope="session")
def database_url(there: Installed) -> Iterator[str]:
    with database_serving(there) as url:
        yield url


@pytest.fixture(scope="session")
def servers(there: Installed, database_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, RealServer]:
    return real_servers(tmp_path_factory.mktemp("real"), there, database_url)


@pytest.fixture(scope="session")
def broken(there: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, RealServer]:
    return broken_servers(tmp_path_factory.mktemp("broken"), there)


@pytest.fixture(scope="session")
def said(servers: dict[str, RealServer]) -> dict[str, Said]:
    return asyncio.run(ask_all(servers.values()))


@pytest.fixture(scope="session")
def house(
    servers: dict[str, RealServer], broken: dict[str, RealServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """All servers, two of which never come up; one daemon for all tests that run a command here."""
    with House(tmp_path_factory.mktemp("house"), [*servers.values(), *broken.values()]).daemon() as house:
        yield house
