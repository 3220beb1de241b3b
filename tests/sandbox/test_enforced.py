"""The kernel says no: every way out that is known, tried for real under `enforce`, and open again with `off`."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dari.sandbox.capabilities import probe_capabilities
from dari.sandbox.confinement import UNCONFINED, Confinement, PathRule
from tests.support.requirements import require_asking, require_bubblewrap, require_kernel, require_node, require_root
from tests.support.sandboxes import outcome, outcome_as_nobody, said

BOTH = pytest.mark.parametrize("wrapped", [False, True], ids=["landlock", "bubblewrap"])


@dataclass(frozen=True)
class World:
    inside: Path
    readable: Path
    outside: Path
    tcp_port: int
    udp_port: int
    socket: Path
    abstract: str

    def confinement(self, *, wrapped: bool = False, **other: object) -> Confinement:
        require_kernel()
        if wrapped:
            require_bubblewrap()
        paths = (PathRule.of(self.inside, "rw"), PathRule.of(self.readable, "ro"))
        options = {"mode": "enforce", "paths": paths, "network": "none", "uses_bubblewrap": wrapped, **other}
        return Confinement(**options)  # type: ignore[arg-type]

    def escapes(self) -> list[tuple[str | Path, ...]]:
        """What must fail under `enforce`, and work without."""
        return [
            ("read", self.outside / "secret"),
            ("list", self.outside),
            ("write", self.outside / "new"),
            ("truncate", self.outside / "empty"),
            ("read", self.inside / "way-out" / "secret"),
            ("read", self.inside / ".." / "outside" / "secret"),
            ("write", self.readable / "new"),
            ("rename", self.inside / "mine", self.outside / "mine"),
            ("read", "/proc/1/environ"),
            ("read", f"/proc/{os.getpid()}/environ"),
            ("tcp", "127.0.0.1", str(self.tcp_port)),
            ("udp", "127.0.0.1", str(self.udp_port)),
            ("listen",),
            ("unix", self.socket),
            ("unix", self.abstract),
            ("pair", "SOCK_DGRAM"),
            ("signal", str(os.getpid())),
        ]


def can_read(path: str) -> bool:
    try:
        Path(path).read_bytes()
    except OSError:
        return False
    return True


@pytest.fixture
def world() -> Iterator[World]:
    # Not pytest's own folder: that one is closed to other users.
    with tempfile.TemporaryDirectory(prefix="dari-world-") as folder:
        os.chmod(folder, 0o755)
        yield from _worlds(Path(folder))


def _worlds(root: Path) -> Iterator[World]:
    places = [root / name for name in ("inside", "readable", "outside")]
    for place in places:
        place.mkdir()
        place.chmod(0o777)
    inside, readable, outside = places
    (outside / "secret").write_text("secret")
    (outside / "empty").write_text("not yet")
    (outside / "empty").chmod(0o666)
    (readable / "book").write_text("book")
    (inside / "mine").write_text("mine")
    (inside / "way-out").symlink_to(outside)
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        udp.bind(("127.0.0.1", 0))
        path = outside / "s"
        unix.bind(str(path))
        unix.listen()
        path.chmod(0o777)
        name = f"dari-test-{os.getpid()}"
        abstract.bind("\0" + name)
        abstract.listen()
        yield World(inside, readable, outside, tcp.getsockname()[1], udp.getsockname()[1], path, name)


@BOTH
async def test_every_escape_is_denied_under_enforce(world: World, wrapped: bool) -> None:
    found = await outcome(world.confinement(wrapped=wrapped), world.escapes())
    assert [step for step, result in found.items() if result == "ok"] == []
    assert (world.outside / "empty").read_text() == "not yet"


async def test_the_same_escapes_succeed_with_off(world: World) -> None:
    found = await outcome(UNCONFINED, world.escapes())
    failed = {step: result for step, result in found.items() if result != "ok"}
    # Without CAP_SYS_PTRACE or in a container, nobody reads the first process's environment: no sandbox needed.
    if not can_read("/proc/1/environ"):
        failed.pop("read /proc/1/environ")
    assert failed == {}


@BOTH
async def test_what_is_allowed_works(world: World, wrapped: bool) -> None:
    steps: list[tuple[str | Path, ...]] = [
        ("read", world.readable / "book"),
        ("list", world.readable),
        ("write", world.inside / "new"),
        ("rename", world.inside / "new", world.inside / "newer"),
        ("remove", world.inside / "newer"),
        ("run", "sh", "-c", "ls /usr > /dev/null"),
        ("pair", "SOCK_STREAM"),
        ("temporary",),
        ("write", "/dev/null"),
        ("read", "/dev/urandom"),
        ("read", "/etc/hosts"),
        ("signal", "0"),
    ]
    found = await outcome(world.confinement(wrapped=wrapped), steps)
    assert {step: result for step, result in found.items() if result != "ok"} == {}


async def test_a_temporary_folder_of_its_own_goes_away_with_the_child(world: World) -> None:
    from dari.process.child import ChildSpec
    from dari.process.children import Children

    command = ("sh", "-c", 'echo x > "$TMPDIR/file" && echo "$TMPDIR" >&2; cat')
    async with Children() as children:
        child = await children.start(ChildSpec("scratch", command, confinement=world.confinement()))
        await child.stop()
        folder = Path(await child.last_words())
    assert folder.name.startswith("dari-child-") and not folder.exists()


async def test_the_memory_and_the_kernel_are_out_of_reach(world: World) -> None:
    require_kernel()
    numbers = {"ptrace": "101", "mount": "165", "bpf": "321", "keyctl": "250", "io_uring_setup": "425", "setns": "308"}
    steps = [("syscall", number, "0", "0", "0") for number in numbers.values()]
    found = await outcome(world.confinement(), steps)
    assert set(found.values()) <= {"EPERM", "ENOSYS"}


async def test_root_makes_no_device_in_a_folder_it_may_write(world: World) -> None:
    require_root()
    step = ("device", world.inside / "disk")
    assert await outcome(world.confinement(), [step]) != {f"device {world.inside / 'disk'}": "ok"}
    assert await outcome(UNCONFINED, [step]) == {f"device {world.inside / 'disk'}": "ok"}


async def test_paths_alone_leave_the_network_open_but_not_unix_sockets(world: World) -> None:
    steps = [
        ("tcp", "127.0.0.1", str(world.tcp_port)),
        ("udp", "127.0.0.1", str(world.udp_port)),
        ("unix", world.socket),
    ]
    found = list((await outcome(world.confinement(network="all"), steps)).values())
    assert found == ["ok", "ok", "EACCES"]


async def test_a_profile_may_open_unix_sockets_and_nothing_else(world: World) -> None:
    steps = [("unix", world.socket), ("tcp", "127.0.0.1", str(world.tcp_port))]
    found = list((await outcome(world.confinement(unix_sockets=True), steps)).values())
    assert found[0] == "ok" and found[1] != "ok"


async def test_network_none_without_paths_leaves_files_alone(world: World) -> None:
    steps = [("read", world.outside / "secret"), ("tcp", "127.0.0.1", str(world.tcp_port)), ("unix", world.abstract)]
    found = list((await outcome(world.confinement(paths=None), steps)).values())
    assert found[0] == "ok" and found[1] != "ok" and found[2] != "ok"


@BOTH
async def test_loopback_reaches_this_machine_and_no_other(world: World, wrapped: bool) -> None:
    require_asking()
    steps = [
        ("tcp", "127.0.0.1", str(world.tcp_port)),
        ("tcp", "localhost", str(world.tcp_port)),
        ("listen",),
        ("tcp", "127.0.0.1", "1"),
        ("tcp", "203.0.113.1", "80"),
        ("udp", "127.0.0.1", str(world.udp_port)),
        ("unix", world.socket),
        ("fast-open", "203.0.113.1", "80"),
        ("listen-on", "0.0.0.0"),
        ("listen-unbound",),
    ]
    found = list((await outcome(world.confinement(wrapped=wrapped, network="loopback"), steps)).values())
    assert found == ["ok", "ok", "ok", "ECONNREFUSED"] + ["EACCES"] * 6


async def test_a_child_that_does_not_block_reaches_loopback_too(world: World) -> None:
    require_asking()
    node = require_node()
    confinement = world.confinement(network="loopback")
    script = (
        "const net = require('net'); const tell = (text) => {console.log(text); process.exit()};"
        f"net.connect({world.tcp_port}, '127.0.0.1', () => "
        "net.connect(80, '203.0.113.1').on('error', (error) => tell(error.code))).on('error', (e) => tell('no ' + e))"
    )
    assert await said((node, "-e", script), confinement) == "EACCES\n"


async def test_without_questions_loopback_is_a_network_of_its_own(world: World) -> None:
    steps = [("listen",), ("tcp", "127.0.0.1", str(world.tcp_port)), ("udp", "127.0.0.1", str(world.udp_port))]
    confinement = world.confinement(wrapped=True, network="loopback")
    deaf = replace(probe_capabilities(), can_ask=False)
    found = list((await outcome(confinement, steps, machine=deaf)).values())
    assert found == ["ok", "ECONNREFUSED", "EACCES"]


async def test_limits_hold_inside_and_outside_of_a_sandbox(world: World) -> None:
    import resource

    step = ("limit", str(resource.RLIMIT_NOFILE))
    for confinement in (UNCONFINED, world.confinement()):
        assert await outcome(confinement, [step], limits={"nofile": 99}) == {" ".join(step): "99"}


async def test_the_child_sees_no_more_of_our_environment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    for name in ("LC_ALL", "LANG", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    names = (await outcome(world.confinement(), [("environment",)]))["environment"].split("\n")
    assert set(names) - {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG"} <= {
        "DARI_CHILD",
        "TMPDIR",
        "LC_CTYPE",
    }
    assert "SECRET_OF_OURS" not in names


@BOTH
def test_an_unprivileged_user_is_confined_just_as_well(world: World, wrapped: bool) -> None:
    require_root()
    require_kernel()
    if wrapped:
        require_bubblewrap()
    paths = f"(PathRule.of({str(world.inside)!r}, 'rw'), PathRule.of({str(world.readable)!r}))"
    confinement = f"Confinement('enforce', {paths}, 'none', uses_bubblewrap={wrapped})"
    denied = outcome_as_nobody(confinement, world.escapes())
    assert [step for step, result in denied.items() if result == "ok"] == []
    steps: list[tuple[str | Path, ...]] = [("read", world.readable / "book"), ("write", world.inside / "of-nobody")]
    assert set(outcome_as_nobody(confinement, steps).values()) == {"ok"}
    # The kernel itself keeps other users from our processes.
    open_to_all = [
        step
        for step in world.escapes()
        if not str(step[-1]).startswith("/proc/") and step[0] not in ("signal", "write")
    ]
    found = outcome_as_nobody("Confinement('off')", open_to_all)
    assert {step: result for step, result in found.items() if result != "ok"} == {}
