"""One conversation with `crab-mcp --transport both` over stdio and over HTTP: design 000 §8."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proxy.tools.conversation import content, conversation, known_paths, talk
from tests.support.crab_processes import crab_mcp, run_directory

VERSIONS = ["2024-11-05", "2025-11-25", "2026-07-28"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_tool_answers_alike_over_stdio_and_http(version: str, tmp_path: Path) -> None:
    with run_directory() as run_dir:
        steps = conversation(tmp_path)
        known = known_paths(run_dir)
        async with crab_mcp(run_dir) as server:
            # Settings and CA outlast the first run, so the next two begin alike.
            first = await talk(server.stdio(), version, steps, known)
            over_http = await talk(await server.http(), version, steps, known)
            over_stdio = await talk(server.stdio(), version, steps, known)
    assert over_stdio[:2] == over_http[:2]
    assert sorted(name for name, _ in steps) == sorted(tool["name"] for tool in first[1]["result"]["tools"])
    for (name, _), one, other in zip(steps, over_stdio[2:], over_http[2:], strict=True):
        assert content(one) == content(other), name
        failed = one.get("error") or one["result"].get("isError")
        assert bool(failed) is (name == "crab_breakpoints_resume"), (name, one)
