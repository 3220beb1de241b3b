"""What a command does before its loop runs."""

from __future__ import annotations

import subprocess
import sys

RAISE = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from dari import runtime
runtime.MAX_OPEN_FILES = {most}
print(runtime.raise_file_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def limits(soft: int, hard: int, most: int) -> list[int]:
    code = RAISE.format(soft=soft, hard=hard, most=most)
    return [int(word) for word in subprocess.check_output([sys.executable, "-c", code], text=True).split()]


def test_the_limit_of_open_files_is_raised_as_far_as_the_system_allows() -> None:
    assert limits(soft=256, hard=2000, most=65_536) == [2000, 2000, 2000]
    assert limits(soft=256, hard=2000, most=500) == [500, 500, 2000]


def test_a_limit_that_is_higher_already_is_left_alone() -> None:
    assert limits(soft=1000, hard=2000, most=500) == [1000, 1000, 2000]
