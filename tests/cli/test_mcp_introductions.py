"""What `dari mcp` keeps of the hub's answers, for a start before there is a hub."""

from __future__ import annotations

import resource
from pathlib import Path

from dari.cli.mcp.introductions import Introductions


def test_an_answer_is_found_again_for_its_method_and_version(tmp_path: Path) -> None:
    kept = Introductions(str(tmp_path), {}, "/")
    kept.keep("initialize", "2025-11-25", b'{"a":1}')
    assert kept.find("initialize", "2025-11-25") == b'{"a":1}'
    assert kept.find("initialize", "2024-11-05") == b""


def test_an_answer_that_the_disk_takes_only_a_part_of_is_not_kept(tmp_path: Path) -> None:
    kept = Introductions(str(tmp_path), {}, "/")
    kept.keep("initialize", "2025-11-25", b'{"a":1}')
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        kept.keep("initialize", "2025-11-25", b'{"instructions":"longer than that"}')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert kept.find("initialize", "2025-11-25") == b'{"a":1}'
    assert len(list((tmp_path / "bridge/introductions").iterdir())) == 1
