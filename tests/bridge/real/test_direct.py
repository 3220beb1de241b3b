"""Real servers as children of ours, without anything between: what each speaks, lists and answers."""

from __future__ import annotations

import pytest

from tests.bridge.real.direct import Said
from tests.support.real_servers import IDS, RealServer

pytestmark = [pytest.mark.local_mcp, pytest.mark.xdist_group("real servers")]


@pytest.mark.parametrize("name", IDS)
def test_a_real_server_lists_its_tools_and_answers(
    name: str, servers: dict[str, RealServer], said: dict[str, Said]
) -> None:
    server, told = servers[name], said[name]
    assert (told.era, told.version) == (server.era, server.version)
    assert server.tools <= told.tools.keys()
    assert told.answer == server.answer
