"""One server for the tests of a file; every test cleans up its panes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.crux_command import Crux, crux_in


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crux]:
    with crux_in(tmp_path_factory.mktemp("c")) as crux:
        crux.ok("split-pane")  # starts it; the pane is closed with the others of the first test
        yield crux


@pytest.fixture
def crux(server: Crux) -> Iterator[Crux]:
    for pane in server.json("list")["panes"]:
        server("close-pane", "--pane-id", pane["id"], "--force")
    yield server
