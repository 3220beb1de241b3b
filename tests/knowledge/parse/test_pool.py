from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dari.errors import Unavailable
from dari.knowledge.parse import ParseFailed, ParseLimits, ParserPool, parse_bytes
from dari.knowledge.parse.pool import INLINE_BYTES, _Worker
from tests.support.requirements import require_kernel
from tests.support.waiting import wait_until

LIMITS = ParseLimits(max_wall_s=20.0, max_cpu_s=20)


def test_a_pool_parses_as_this_process_does(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# 제목\n\n본문이다.\n")
    with ParserPool(LIMITS, inline_bytes=0) as pool:
        assert pool.parse(tmp_path / "a.md", "notes/a.md") == parse_bytes(
            b"# \xec\xa0\x9c\xeb\xaa\xa9\n\n\xeb\xb3\xb8\xeb\xac\xb8\xec\x9d\xb4\xeb\x8b\xa4.\n", "notes/a.md"
        )
        assert pool.parse_bytes(b"", "empty.md").blocks == ()
        assert pool.restarts == 0


def test_a_name_that_is_not_utf_8_is_shown_escaped() -> None:
    with ParserPool(LIMITS, inline_bytes=0) as pool:
        assert pool.parse_bytes(b"words", "a/na\udcffme.txt").title == "na\\udcffme"
        assert pool.restarts == 0


def test_small_notes_are_parsed_without_a_child_and_the_rest_in_one(tmp_path: Path) -> None:
    with ParserPool(LIMITS) as pool:
        assert pool.parse_bytes(b"# A\n", "a.md").title == "A" and pool.pids == ()
        assert pool.parse_bytes(b"# A\n" + b"x\n" * INLINE_BYTES, "a.md").title == "A" and len(pool.pids) == 1
        assert pool.parse_bytes(b"<h1>B</h1>", "b.html").title == "B"


def test_a_child_of_a_large_process_is_kept_for_the_next_file() -> None:
    ballast = bytearray(b"x") * (400 << 20)  # a loaded model, say; its pages count as the child's peak, too
    with ParserPool(LIMITS, inline_bytes=0) as pool:
        pool.parse_bytes(b"# A\n", "a.md")
        (child,) = pool.pids
        pool.parse_bytes(b"# B\n", "b.md")
        assert pool.pids == (child,)
    del ballast


def test_a_file_of_several_pieces_arrives_whole(tmp_path: Path) -> None:
    text = "".join(f"paragraph {n} of a long text\n\n" for n in range(90_000))
    (tmp_path / "long.txt").write_text(text)
    with ParserPool(LIMITS, inline_bytes=0) as pool:
        document = pool.parse(tmp_path / "long.txt", "long.txt")
    assert len(text) > 2 << 20 and "\n\n".join(block.text for block in document.blocks) == text.strip()


def test_a_failure_between_many_files_of_several_threads_is_that_files_own() -> None:
    def parse(number: int) -> str:
        data = b"\0\1\2" * 40 if number % 7 == 3 else f"# T{number}\n".encode()
        try:
            return pool.parse_bytes(data, f"{number}.md").title
        except ParseFailed as error:
            return error.reason

    with ParserPool(LIMITS, workers=2, inline_bytes=0) as pool, ThreadPoolExecutor(4) as threads:
        found = list(threads.map(parse, range(60)))
    assert found == ["binary" if number % 7 == 3 else f"T{number}" for number in range(60)]


def test_two_threads_share_one_worker(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n")
    titles: list[str] = []
    with ParserPool(LIMITS, workers=1, inline_bytes=0) as pool:
        threads = [
            threading.Thread(target=lambda: titles.append(pool.parse(tmp_path / "a.md", "a.md").title))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert titles == ["A"] * 4


def test_a_child_that_is_killed_costs_one_file_and_the_next_one_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n")
    with ParserPool(LIMITS, inline_bytes=0) as pool:
        pool.parse(tmp_path / "a.md", "a.md")
        (child,) = pool.pids
        os.kill(child, signal.SIGKILL)
        wait_until(lambda: _has_ended(child))
        with pytest.raises(ParseFailed) as caught:
            pool.parse(tmp_path / "a.md", "a.md")
        assert caught.value.reason == "crashed"
        assert pool.parse(tmp_path / "a.md", "a.md").title == "A" and pool.restarts == 1


def test_a_child_that_stands_still_is_killed_when_its_time_is_up() -> None:
    with ParserPool(ParseLimits(max_wall_s=1.0), inline_bytes=0) as pool:
        pool.parse_bytes(b"# A\n", "a.md")
        os.kill(pool.pids[0], signal.SIGSTOP)
        with pytest.raises(ParseFailed) as caught:
            pool.parse_bytes(b"# A\n", "a.md")
        assert caught.value.reason == "timeout" and pool.parse_bytes(b"# B\n", "b.md").title == "B"


def test_a_child_that_was_being_made_when_the_pool_closed_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    class SlowlyMade(_Worker):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self.pid)
            pool.close()  # as another thread does it at this moment

    monkeypatch.setattr("dari.knowledge.parse.pool._Worker", SlowlyMade)
    pool = ParserPool(LIMITS, inline_bytes=0)
    with pytest.raises(Unavailable):
        pool.parse_bytes(b"# A\n", "a.md")
    assert pool.pids == ()
    with pytest.raises(ProcessLookupError):
        os.kill(made[0], 0)


def test_no_child_is_left_when_the_pool_closes(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n")
    with ParserPool(LIMITS, workers=2, inline_bytes=0) as pool:
        pool.parse(tmp_path / "a.md", "a.md")
        (child,) = pool.pids
    assert not Path(f"/proc/{child}").exists()
    with pytest.raises(Unavailable):
        pool.parse(tmp_path / "a.md", "a.md")


def test_a_child_ends_with_the_process_that_is_killed() -> None:
    program = (
        "import os, signal; from dari.knowledge.parse import ParserPool; pool = ParserPool(inline_bytes=0);"
        "pool.parse_bytes(b'x', 'a.txt'); print(pool.pids[0], flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    wait_until(lambda: _has_ended(int(killed.stdout)))


def test_a_child_sees_nothing_of_our_environment_and_none_of_our_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_kernel()
    monkeypatch.setenv("DARI_TEST_SECRET", "swordfish")
    (tmp_path / "a.md").write_text("# A\n")
    with ParserPool(LIMITS, inline_bytes=0) as pool:
        pool.parse(tmp_path / "a.md", "a.md")
        (child,) = pool.pids
        assert b"swordfish" not in Path(f"/proc/{child}/environ").read_bytes()
        status = Path(f"/proc/{child}/status").read_text()
        limits = Path(f"/proc/{child}/limits").read_text()
        assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status
        assert str(LIMITS.max_memory_bytes) in limits
        assert [os.readlink(f"/proc/{child}/fd/{fd}") for fd in ("0", "1")] == ["/dev/null", "/dev/null"]


@pytest.mark.parametrize("name", ["missing.md", "folder.md", "pipe.md"])
def test_what_is_no_readable_file_is_an_error_of_that_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    with ParserPool(LIMITS, inline_bytes=0) as pool, pytest.raises(ParseFailed) as caught:
        pool.parse(tmp_path / name, name)
    assert caught.value.reason == ("io_error" if name == "missing.md" else "unsupported")


def _has_ended(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
