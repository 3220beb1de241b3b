"""What the guide of the special tools shows is what works."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from dari.terminal.api.workflow import WorkflowStep
from dari.terminal.layout.workspace import parse_workspace
from tests.support.terminal_tools import client_in
from tests.support.wire import ROOT

GUIDE = (ROOT / "docs" / "guide" / "crux-tools.md").read_text()


async def test_every_tool_that_the_guide_names_exists_and_every_special_one_is_named(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        listed = [tool["name"] for tool in (await client.ask("tools/list"))["result"]["tools"]]
    named = set(re.findall(r"`(crux_\w+)", GUIDE))
    assert named <= set(listed)
    special = listed[listed.index("crux_parse_output_structured") :]
    assert set(special) <= named


def test_the_examples_of_the_guide_are_read() -> None:
    (own,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.S)
    assert parse_workspace(own.encode(), "guide.toml").names == ("api", "tests")
    (steps,) = re.findall(r'```json\n\{"steps": (\[.*?\])\}\n```', GUIDE, re.S)
    assert [step.pane for step in msgspec.json.decode(steps, type=list[WorkflowStep])] == [
        "backend",
        "frontend",
        "test",
    ]
