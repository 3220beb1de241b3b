from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dari import paths
from dari.errors import Denied, Failed, InvalidInput


def mode(path: Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def test_home_is_what_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    assert paths.home() == tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="XDG directories are for Linux")
@pytest.mark.parametrize(("data", "expected"), [("/data", "/data/dari"), ("relative", "/h/.local/share/dari")])
def test_home_follows_xdg_unless_it_is_relative(data: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DARI_HOME", raising=False)
    monkeypatch.setenv("HOME", "/h")
    monkeypatch.setenv("XDG_DATA_HOME", data)
    assert paths.home() == Path(expected)


def test_home_on_macos_is_application_support(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DARI_HOME", raising=False)
    monkeypatch.setenv("HOME", "/Users/me")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert paths.home() == Path("/Users/me/Library/Application Support/dari")


@pytest.mark.skipif(sys.platform != "linux", reason="XDG directories are for Linux")
def test_the_runtime_dir_is_in_the_sessions_own_when_that_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DARI_HOME", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert paths.runtime_path("crabd") == tmp_path / "dari/crabd"


@pytest.mark.parametrize("unusable", ["", "relative", "/nowhere/at/all", "shared", "file"])
def test_an_unusable_session_directory_falls_back_to_home(
    unusable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    (tmp_path / "file").touch()
    runtime = str(tmp_path / unusable) if unusable in ("shared", "file") else unusable
    monkeypatch.delenv("DARI_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    assert paths.runtime_path("crabd") == paths.home() / "run/crabd"


def test_a_home_of_its_own_has_daemons_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "session"))
    (tmp_path / "session").mkdir(mode=0o700)
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "home"))
    assert paths.runtime_path("crabd") == tmp_path / "home/run/crabd"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "a\0b"])
def test_a_daemons_name_cannot_leave_the_directory(name: str) -> None:
    with pytest.raises(InvalidInput):
        paths.runtime_path(name)


def test_missing_parents_are_private_too(tmp_path: Path) -> None:
    made = paths.private_dir(tmp_path / "a/b/c")
    assert [mode(level) for level in (made, made.parent, made.parent.parent)] == [0o700] * 3


def test_a_loose_directory_of_ours_is_tightened(tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(0o755)
    paths.private_dir(loose)
    assert mode(loose) == 0o700


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(InvalidInput):
        paths.private_dir(tmp_path / "link")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    with pytest.raises(InvalidInput):
        paths.private_dir(tmp_path / "dangling")


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput):
        paths.private_dir(tmp_path / "file")
    with pytest.raises(Failed):
        paths.private_dir(tmp_path / "file/below")


def test_a_shared_directory_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(InvalidInput):
        paths.private_dir(shared)
    assert mode(shared) == 0o1777


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(Denied):
        paths.private_dir(tmp_path)
    with pytest.raises(Denied):
        paths.own_dir(tmp_path)


def test_a_directory_for_a_socket_keeps_its_mode_unless_others_may_write(tmp_path: Path) -> None:
    chosen = tmp_path / "chosen"
    assert mode(paths.own_dir(chosen)) == 0o700
    chosen.chmod(0o755)
    assert mode(paths.own_dir(chosen)) == 0o755
    chosen.chmod(0o775)
    with pytest.raises(InvalidInput):
        paths.own_dir(chosen)


def test_a_private_file_is_0600_whatever_the_umask(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        paths.write_private(tmp_path / "token", b"secret")
    finally:
        os.umask(mask)
    assert mode(tmp_path / "token") == 0o600
    assert (tmp_path / "token").read_bytes() == b"secret"


def test_a_private_file_replaces_a_link_instead_of_following_it(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"untouched")
    (tmp_path / "token").symlink_to(victim)
    paths.write_private(tmp_path / "token", b"secret")
    assert victim.read_bytes() == b"untouched"
    assert not (tmp_path / "token").is_symlink()


def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    contents = {b"a" * 100_000, b"b" * 100_000}
    paths.write_private(token, min(contents))
    seen: set[bytes] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(token.read_bytes())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for content in sorted(contents) * 10:
        paths.write_private(token, content)
    done.set()
    reader.join(30)
    assert seen <= contents
    assert os.listdir(tmp_path) == ["token"]


def test_a_failed_write_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(OSError):
        paths.write_private(tmp_path / "directory", b"secret")
    assert os.listdir(tmp_path) == ["directory"]


def test_only_the_file_we_wrote_is_removed(tmp_path: Path) -> None:
    token = tmp_path / "token"
    ours = paths.write_private(token, b"ours")
    theirs = paths.write_private(token, b"theirs")
    paths.remove_own(token, ours)
    assert token.exists()
    paths.remove_own(token, theirs)
    assert not token.exists()
    paths.remove_own(token, theirs)


def test_importing_paths_costs_nothing_heavy() -> None:
    script = "import sys; before = set(sys.modules); import dari.paths; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert not {"tempfile", "subprocess", "asyncio", "msgspec", "logging"} & set(loaded.split())
