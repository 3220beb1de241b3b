from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.errors import Unavailable
from dari.proxy.flow import SAMPLE_BYTES, Flow
from dari.proxy.query import views
from dari.proxy.recording.bodies import BodyStore
from tests.support.flows import body, flow

LONG = bytes(range(256)) * 200  # 51,200 bytes


def passed(bodies: BodyStore, flow_id: int, data: bytes, chunk: int = 5000) -> Flow:
    """A flow whose response body went by in chunks."""
    one = flow(flow_id, response=data)
    for start in range(0, len(data), chunk):
        bodies.write(one, False, data[start : start + chunk])
    bodies.finish(one)
    return one


def files(bodies: BodyStore) -> list[str]:
    return sorted(os.listdir(bodies.directory))


def test_a_body_that_fits_the_sample_makes_no_file(tmp_path: Path) -> None:
    bodies = BodyStore(tmp_path / "bodies")
    one = passed(bodies, 1, b"x" * SAMPLE_BYTES)
    assert files(bodies) == [] and one.response_body.spool is None
    assert views.raw(one, False, bodies) == b"x" * SAMPLE_BYTES and bodies.is_whole(one.response_body)


def test_a_longer_body_is_kept_whole_in_a_private_file(tmp_path: Path) -> None:
    bodies = BodyStore(tmp_path / "bodies")
    one = passed(bodies, 1, LONG)
    assert views.raw(one, False, bodies) == LONG and bodies.is_whole(one.response_body)
    assert one.response_body.spool == "1.response"
    assert stat.S_IMODE(os.stat(bodies.directory / "1.response").st_mode) == 0o600
    assert stat.S_IMODE(os.stat(bodies.directory).st_mode) == 0o700


def test_a_body_above_its_cap_is_kept_as_far_as_the_cap(tmp_path: Path) -> None:
    bodies = BodyStore(tmp_path / "bodies", body_bytes=20_000)
    one = passed(bodies, 1, LONG)
    assert views.raw(one, False, bodies) == LONG[:20_000] and not bodies.is_whole(one.response_body)


def test_the_oldest_bodies_go_when_the_cap_is_reached(tmp_path: Path) -> None:
    bodies = BodyStore(tmp_path / "bodies", total_bytes=2 * len(LONG) + 10)
    flows = [passed(bodies, number, LONG) for number in range(1, 6)]
    assert files(bodies) == ["4.response", "5.response"] and bodies.evicted == 3
    assert views.raw(flows[0], False, bodies) == LONG[:SAMPLE_BYTES]
    assert not bodies.is_whole(flows[0].response_body) and bodies.is_whole(flows[4].response_body)


def test_a_body_pushed_out_while_it_was_written_does_not_pass_for_whole(tmp_path: Path) -> None:
    bodies = BodyStore(tmp_path / "bodies", total_bytes=len(LONG) + 10)
    slow = flow(1, response=LONG)
    bodies.write(slow, False, LONG[:20_000])
    passed(bodies, 2, LONG)
    bodies.write(slow, False, LONG[20_000:])
    bodies.finish(slow)
    assert slow.response_body.spool is None and not bodies.is_whole(slow.response_body)
    assert files(bodies) == ["2.response"]


def test_a_full_disk_costs_the_copy_and_not_the_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = BodyStore(tmp_path / "bodies")

    def full(file: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dari.proxy.recording.bodies.os.write", full)
    one = passed(bodies, 1, LONG)
    assert one.response_body.spool is None and bodies.failed == 1 and bodies.used_bytes == 0
    assert files(bodies) == []


def test_files_are_found_again_after_a_restart_and_orphans_removed(tmp_path: Path) -> None:
    first = BodyStore(tmp_path / "bodies")
    kept = passed(first, 1, LONG)
    passed(first, 2, LONG)
    (first.directory / "notes.txt").write_text("not ours")
    again = BodyStore(tmp_path / "bodies")
    assert again.used_bytes == 2 * len(LONG) and again.last_flow_id == 2
    again.keep_only({1})
    assert files(again) == ["1.response", "notes.txt"] and again.used_bytes == len(LONG)
    assert views.raw(kept, False, again) == LONG


def test_a_smaller_cap_after_a_restart_is_kept_at_once(tmp_path: Path) -> None:
    first = BodyStore(tmp_path / "bodies")
    for number in range(1, 5):
        passed(first, number, LONG)
    assert files(BodyStore(tmp_path / "bodies", total_bytes=len(LONG))) == ["4.response"]


def test_a_name_that_leads_elsewhere_is_never_opened(tmp_path: Path) -> None:
    bodies = BodyStore(tmp_path / "bodies")
    (tmp_path / "secret").write_text("secret")
    one = body(b"sample")
    for name in ("../secret", "/etc/passwd", "1.response/../../secret"):
        one.spool = name
        assert b"".join(bodies.pieces(one)) == b"sample"
    os.symlink(tmp_path / "secret", bodies.directory / "9.response")
    one.spool = "9.response"
    assert b"".join(bodies.pieces(one)) == b"sample"


def test_clearing_spares_what_is_being_written(tmp_path: Path) -> None:
    bodies = BodyStore(tmp_path / "bodies")
    passed(bodies, 1, LONG)
    running = flow(2, response=LONG)
    bodies.write(running, False, LONG[:30_000])
    bodies.remove(bodies.closed_names())
    bodies.write(running, False, LONG[30_000:])
    bodies.finish(running)
    assert files(bodies) == ["2.response"] and views.raw(running, False, bodies) == LONG


def test_a_file_that_cannot_be_removed_is_named_and_the_others_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = BodyStore(tmp_path / "bodies")
    for number in (1, 2, 3):
        passed(bodies, number, LONG)
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == "2.response":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(Unavailable, match=r"2\.response"):
        bodies.remove(bodies.closed_names())
    assert files(bodies) == ["2.response"] and bodies.used_bytes == len(LONG)


def test_a_disk_on_which_nothing_can_be_removed_costs_the_copy_and_not_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = BodyStore(tmp_path / "bodies", total_bytes=len(LONG))
    passed(bodies, 1, LONG)

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    one = passed(bodies, 2, LONG)
    assert bodies.failed == 1 and not bodies.is_whole(one.response_body)
    assert views.raw(one, False, bodies) == LONG[:SAMPLE_BYTES]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60_000), st.integers(1, 30_000)), max_size=8), st.integers(20_000, 150_000))
def test_the_cap_holds_and_whole_bodies_are_exact(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[tuple[int, int]], total: int
) -> None:
    bodies = BodyStore(tmp_path_factory.mktemp("cap") / "bodies", total_bytes=total)
    for number, (size, chunk) in enumerate(sizes, 1):
        data = (b"%d " % number * size)[:size]
        one = passed(bodies, number, data, chunk)
        on_disk = sum(os.stat(bodies.directory / name).st_size for name in files(bodies))
        assert on_disk == bodies.used_bytes <= total
        assert data.startswith(views.raw(one, False, bodies))
        assert not bodies.is_whole(one.response_body) or views.raw(one, False, bodies) == data
