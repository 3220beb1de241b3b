"""Real servers as children of ours, without anything between: what each speaks, lists and answers."""

from __future__ import annotations

import pytest

from dari.bridge.children.children import Children
from dari.bridge.children.session import ChildSession
from dari.errors import TimedOut, Unavailable
from tests.bridge.real.direct import Said, spec_of
from tests.bridge.real.servers import IDS, RealServer

pytestmark = pytest.mark.xdist_group("real servers")


@pytest.mark.parametrize("name", IDS)
def test_a_real_server_lists_its_tools_and_answers(
    name: str, servers: dict[str, RealServer], said: dict[str, Said]
) -> None:
    server, told = servers[name], said[name]
    assert (told.era, told.version) == (server.era, server.version)
    assert server.tools <= told.tools.keys()
    assert told.answer == server.answer


async def test_a_server_that_never_answers_is_given_up_with_what_it_wrote(broken: dict[str, RealServer]) -> None:
    async with Children() as children:
        with pytest.raises(TimedOut, match="did not answer within 3 s") as caught:
            await ChildSession.open(children, spec_of(broken["hanging"]), open_timeout_s=3)
        assert "Stripe MCP Server running on stdio" in caught.value.hint
        assert not children.running


async def test_a_server_that_ends_at_start_is_told_with_its_status_and_its_words(
    broken: dict[str, RealServer],
) -> None:
    async with Children() as children:
        with pytest.raises(Unavailable, match=r"ended \(exit status 1\)") as caught:
            await ChildSession.open(children, spec_of(broken["crashing"]))
        assert "AttributeError: 'Server' object has no attribute 'list_resources'" in caught.value.hint
        assert not children.running
