"""What a profile says, resolved; what the machine can do of it; and no start where it cannot under `enforce`."""

from __future__ import annotations

import ipaddress
import socket
import struct
from pathlib import Path

import pytest

from dari.errors import Denied, InvalidInput, Unavailable
from dari.sandbox import bubblewrap, capabilities, launcher, seccomp, system_paths
from dari.sandbox.builder import build_command
from dari.sandbox.capabilities import SandboxCapabilities
from dari.sandbox.confinement import UNCONFINED, Confinement, PathRule, resolve_path
from dari.sandbox.landlock import Right, Ruleset, handled_rights
from dari.sandbox.network_broker import is_loopback_address
from dari.sandbox.report import assess, build_report, require_enforced
from dari.sandbox.seatbelt import seatbelt_profile
from tests.support.leftovers import open_descriptors
from tests.support.requirements import require_kernel
from tests.support.wire import ROOT

FULL = SandboxCapabilities("linux", "x86_64", landlock_abi=7, has_seccomp=True, bubblewrap="/usr/bin/bwrap")
BARE = SandboxCapabilities("linux", "x86_64")
MAC = SandboxCapabilities("darwin", "arm64", sandbox_exec="/usr/bin/sandbox-exec")
WINDOWS = SandboxCapabilities("win32", "AMD64")
STRICT = Confinement("enforce", (), "none")


def test_a_path_is_resolved_before_it_is_compared(tmp_path: Path) -> None:
    (tmp_path / "allowed" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "allowed")
    (tmp_path / "allowed" / "out").symlink_to("/etc")
    confinement = Confinement(paths=(PathRule.of("link", "rw", tmp_path), PathRule.of(tmp_path / "book")))
    assert confinement.paths is not None and confinement.paths[0].path == tmp_path / "allowed"
    inside = ["allowed", "allowed/deep/new", "link/x", "allowed/deep/../x", "book"]
    outside = ["allowed/../secret", "allowed/out/passwd", "allowedx", "link/../../x", "/", ""]
    assert [path for path in inside if not confinement.permits(path, cwd=tmp_path)] == []
    assert [path for path in outside if path and confinement.permits(path, cwd=tmp_path)] == []
    assert confinement.permits("allowed/x", writing=True, cwd=tmp_path)
    assert not confinement.permits("book", writing=True, cwd=tmp_path)


def test_a_confinement_without_paths_permits_all() -> None:
    assert UNCONFINED.permits("/etc/shadow", writing=True) and Confinement().permits("/etc/shadow")
    assert not Confinement(paths=()).permits("/etc/shadow")


def test_the_roots_are_the_allowed_paths() -> None:
    assert Confinement(paths=(PathRule(Path("/a b"), "rw"), PathRule(Path("/c")))).roots() == [
        "file:///a%20b",
        "file:///c",
    ]
    assert Confinement().roots() == []


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput):
        resolve_path(path)


def test_an_unknown_access_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'rwx'"):
        PathRule.of("/tmp", "rwx")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "machine", [BARE, WINDOWS, SandboxCapabilities("darwin", "arm64")], ids=lambda machine: machine.system
)
def test_enforce_refuses_to_start_where_the_machine_cannot(machine: SandboxCapabilities) -> None:
    with pytest.raises(Unavailable, match="reads") as caught:
        build_command(Path("/bin/true"), [], {}, Path("/"), STRICT, machine=machine)
    assert "auto" in caught.value.hint


@pytest.mark.parametrize("machine", [BARE, WINDOWS], ids=lambda machine: machine.system)
def test_auto_starts_with_a_warning_for_everything_that_is_missing(machine: SandboxCapabilities) -> None:
    warnings = require_enforced(Confinement("auto", (), "none"), assess(Confinement("auto", (), "none"), machine))
    assert {warning.split(" not confined")[0] for warning in warnings} >= {"reads", "writes"}


def test_off_is_silent_and_starts_the_program_itself() -> None:
    prepared = build_command(Path("/bin/true"), ["x"], {"A": "b"}, Path("/"), UNCONFINED, machine=BARE)
    assert (prepared.command, prepared.environment, prepared.warnings) == (["/bin/true", "x"], {"A": "b"}, [])


def test_a_full_machine_enforces_everything() -> None:
    assert require_enforced(STRICT, assess(STRICT, FULL)) == []
    assert all(finding.is_enforced for finding in assess(STRICT, FULL))


@pytest.mark.parametrize(
    ("machine", "missing"),
    [
        (SandboxCapabilities("linux", "x86_64", landlock_abi=2, has_seccomp=True), {"writes"}),  # truncation by path
        (SandboxCapabilities("linux", "x86_64", landlock_abi=7), {"udp", "unix sockets"}),
        (SandboxCapabilities("linux", "riscv64", landlock_abi=3), {"tcp", "udp", "unix sockets"}),
        (SandboxCapabilities("linux", "x86_64", has_seccomp=True), {"reads", "writes"}),
        (SandboxCapabilities("linux", "x86_64", has_seccomp=True, bubblewrap="/usr/bin/bwrap"), set()),
        (MAC, set()),
        (WINDOWS, {"reads", "writes", "network", "unix sockets"}),
    ],
)
def test_the_findings_are_honest(machine: SandboxCapabilities, missing: set[str]) -> None:
    found = {finding.aspect for finding in assess(STRICT, machine) if finding.is_wanted and not finding.is_enforced}
    assert found == missing


def test_the_report_says_for_each_aspect_what_enforces_it() -> None:
    full, bare = build_report(machine=FULL), build_report(machine=BARE)
    assert "reads: enforced by landlock 7 + bubblewrap" in full.lines()
    assert any(line.startswith("reads: NOT enforced (no Landlock, bubblewrap not installed") for line in bare.lines())
    assert build_report().machine == capabilities.probe_capabilities()


def test_our_own_files_are_never_within_what_is_allowed(tmp_path: Path) -> None:
    run = tmp_path / "home" / "run"
    run.mkdir(parents=True)
    without = SandboxCapabilities("linux", "x86_64", landlock_abi=7, has_seccomp=True)
    for allowed in (tmp_path / "home", run, run / "deeper"):
        confinement = Confinement("enforce", (PathRule.of(allowed),), "none")
        with pytest.raises(Denied):
            build_command(Path("/bin/true"), [], {}, tmp_path, confinement, protected=[run], machine=without)


def test_a_path_that_is_not_there_is_an_error_of_the_start(tmp_path: Path) -> None:
    require_kernel()
    confinement = Confinement("enforce", (PathRule.of(tmp_path / "gone"),), "none", uses_bubblewrap=False)
    before = open_descriptors()
    with pytest.raises(Unavailable, match="/gone"):
        build_command(Path("/bin/true"), [], {}, tmp_path, confinement)
    assert open_descriptors() <= before


def test_each_landlock_version_handles_what_it_knows() -> None:
    assert not handled_rights(1) & (Right.REFER | Right.TRUNCATE | Right.IOCTL_DEV)
    assert handled_rights(3) & Right.TRUNCATE and not handled_rights(3) & Right.IOCTL_DEV
    assert handled_rights(9) & Right.RESOLVE_UNIX and not handled_rights(8) & Right.RESOLVE_UNIX


def test_older_landlock_versions_still_make_a_ruleset() -> None:
    require_kernel()
    for version in (1, 2, 3, 4, 5, 6):
        rules = Ruleset(paths=True, tcp=True, unix=True, version=version)
        rules.allow(Path("/usr"), Right.READ_FILE | Right.READ_DIR)
        assert rules.descriptor >= 0
        rules.close()


def run_filter(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """The kernel's machine for such filters, as far as ours go."""
    data = struct.pack("=iIQ6Q", number, arch, 0, *(list(arguments) + [0] * 6)[:6])
    code = list(struct.iter_unpack("=HBBI", program))
    accumulator = position = 0
    while True:
        kind, if_true, if_false, value = code[position]
        position += 1
        match kind:
            case 0x20:
                accumulator = struct.unpack_from("=I", data, value)[0]
            case 0x54:
                accumulator &= value
            case 0x15:
                position += if_true if accumulator == value else if_false
            case 0x35:
                position += if_true if accumulator >= value else if_false
            case 0x06:
                return int(value)


ALLOWED = 0x7FFF0000


@pytest.mark.parametrize("name", seccomp.ARCHES)
def test_the_filter_decides_by_family_and_kind_of_socket_on_each_architecture(name: str) -> None:
    arch = seccomp.ARCHES[name]

    def may(network: str, family: int, kind: int = 1, *, unix: bool = False) -> bool:
        program = seccomp.build_filter(network, unix_sockets=unix, machine=name)  # type: ignore[arg-type]
        return run_filter(program, arch.audit, arch.socket, family, kind) == ALLOWED

    assert [may("none", family) for family in (1, 2, 10, 16, 17, 40)] == [False] * 6
    assert may("none", 1, unix=True) and not may("none", 2, unix=True)
    assert may("all", 2) and may("all", 10, 2) and not may("all", 1) and may("all", 1, unix=True)
    assert may("loopback", 2) and may("loopback", 10, 1 | 0o2000000) and not may("loopback", 2, 2)
    assert not may("loopback", 1) and not may("loopback", 17)
    program = seccomp.build_filter("none", unix_sockets=False, machine=name)
    assert run_filter(program, arch.audit, arch.socketpair, 1, 1) == ALLOWED
    assert run_filter(program, arch.audit, arch.socketpair, 1, 2) != ALLOWED
    assert run_filter(program, arch.audit, 0) == ALLOWED
    assert run_filter(program, 0x40000003, 359) != ALLOWED  # the 32-bit world has no calls at all
    assert all(run_filter(program, arch.audit, number) != ALLOWED for number in (*arch.refused, 425, 426, 427))


def test_the_x32_numbers_are_no_way_around() -> None:
    program = seccomp.build_filter("none", unix_sockets=False, machine="x86_64")
    assert run_filter(program, seccomp.ARCHES["x86_64"].audit, 0x40000000 | 41, 2, 1) != ALLOWED


@pytest.mark.parametrize("name", seccomp.ARCHES)
def test_for_loopback_the_filter_asks_and_leaves_no_other_way_to_connect(name: str) -> None:
    arch = seccomp.ARCHES[name]
    program = seccomp.build_filter("loopback", unix_sockets=False, machine=name, asks=True)

    def run(*call: int) -> int:
        return run_filter(program, arch.audit, *call)

    assert {run(number) for number in arch.asking} == {seccomp.ASK}
    assert run(arch.socket, 2, 1, 0) == run(arch.socket, 10, 1, 6) == ALLOWED
    assert ALLOWED not in (run(arch.socket, 2, 1, 132), run(arch.socket, 2, 2, 0), run(arch.socket, 2, 3, 6))
    assert run(arch.sendto, 3, 0, 0, 0, 0) == ALLOWED
    assert ALLOWED not in (run(arch.sendto, 3, 0, 0, 0, 5), run(arch.sendto, 3, 0, 0, 0, 5 << 32))
    assert run(arch.sendmsg, 3, 0, 0x4000) == run(arch.sendmmsg, 3, 0, 1, 0x4000) == ALLOWED
    assert ALLOWED not in (run(arch.sendmsg, 3, 0, 0x20000000), run(arch.sendmmsg, 3, 0, 1, 0x20000000))


@pytest.mark.parametrize(
    ("host", "to", "on"),
    [
        ("127.0.0.1", True, True),
        ("127.9.9.9", True, True),
        ("0.0.0.0", True, False),
        ("10.0.0.1", False, False),
        ("::1", True, True),
        ("::", True, False),
        ("::ffff:127.0.0.1", True, True),
        ("::ffff:10.0.0.1", False, False),
        ("fe80::1", False, False),
    ],
)
def test_an_address_is_of_this_machine_or_not(host: str, to: bool, on: bool) -> None:
    packed = ipaddress.ip_address(host).packed
    family, gap = (socket.AF_INET, b"") if len(packed) == 4 else (socket.AF_INET6, b"\0" * 4)
    address = struct.pack("=HH", family, 80) + gap + packed
    assert is_loopback_address(address, is_connect=True) is to
    assert is_loopback_address(address, is_connect=False) is on
    assert not is_loopback_address(address[:6], is_connect=True)


def test_a_family_that_is_no_internet_is_refused() -> None:
    assert not is_loopback_address(struct.pack("=H", socket.AF_UNIX) + b"/run/x.sock", is_connect=True)
    assert not is_loopback_address(b"", is_connect=True)
    assert is_loopback_address(struct.pack("=H", 0), is_connect=True)


@pytest.mark.parametrize(("folder", "is_bound"), [("/development/app", True), ("/process", True), ("/dev/shm", False)])
def test_a_folder_is_bound_whatever_its_name_begins_with(folder: str, is_bound: bool) -> None:
    path = Path(folder)
    command = bubblewrap.bubblewrap_command(
        "bwrap", readable=[], writable=[path], hidden=[], has_network=False, cwd=path
    )
    assert ("--bind" in command) is is_bound


def test_bubblewrap_binds_outer_folders_first_and_hides_ours(tmp_path: Path) -> None:
    home, inner, ours = tmp_path, tmp_path / "a" / "b", tmp_path / "run"
    ours.mkdir()
    command = bubblewrap.bubblewrap_command(
        "bwrap", readable=[inner / "c", home], writable=[inner], hidden=[ours], has_network=False, cwd=home
    )
    text = " ".join(command)
    assert (
        text.index(f"--ro-bind {home} {home}") < text.index(f"--bind {inner} {inner}") < text.index(f"--tmpfs {ours}")
    )
    assert "--unshare-net" in command and "--die-with-parent" in command
    assert str(inner / "c") not in command  # its folder is bound already


def test_a_mac_profile_denies_first_and_quotes_paths() -> None:
    confinement = Confinement("enforce", (PathRule(Path('/a "b"'), "rw"), PathRule(Path("/ro"))), "none")
    text = seatbelt_profile(confinement, [Path("/opt/node")])
    assert text.startswith("(version 1)\n(allow default)\n(deny file-read-data)\n(deny file-write*)\n")
    assert '(allow file-write* (subpath "/a \\"b\\""))' in text and '(allow file-write* (subpath "/ro"))' not in text
    assert '(allow file-read-data (subpath "/opt/node"))' in text
    assert "(deny network*)" in text and "(deny network-outbound (remote unix-socket))" in text
    loopback = seatbelt_profile(Confinement("enforce", network="loopback", unix_sockets=True), [])
    assert '(remote ip "localhost:*")' in loopback and "(allow network-outbound (remote unix-socket))" in loopback
    assert "file-read-data" not in loopback


def test_on_a_mac_the_program_runs_under_sandbox_exec() -> None:
    prepared = build_command(Path("/bin/echo"), ["hi"], {}, Path("/"), STRICT, machine=MAC)
    assert prepared.command[:2] == ["/usr/bin/sandbox-exec", "-p"]
    assert prepared.command[3:] == ["/bin/echo", "hi"]


def test_a_home_is_never_an_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    tool = tmp_path / "home" / "bin" / "tool"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/usr/bin/env python3\n")
    tool.chmod(0o755)
    script = tmp_path / "home" / "server.py"
    script.write_text("")
    places = system_paths.installation_of(tool, ["-u", "server.py"], {"PATH": "/usr/bin"}, tmp_path / "home")
    assert tool in places and script in places and Path("/usr/bin/python3") in places
    assert [place for place in places if (tmp_path / "home").is_relative_to(place)] == []


def test_a_script_brings_its_node_modules_or_its_project(tmp_path: Path) -> None:
    entry = tmp_path / "app" / "node_modules" / "@x" / "server" / "dist" / "index.js"
    project = tmp_path / "project" / "src" / "main.py"
    for file in (entry, project, tmp_path / "project" / "pyproject.toml"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    python = Path("/usr/bin/python3")
    assert tmp_path / "app" / "node_modules" in system_paths.installation_of(python, [str(entry)], {}, tmp_path)
    assert tmp_path / "project" in system_paths.installation_of(python, [str(project)], {}, tmp_path)


def test_the_argument_of_a_program_that_is_no_interpreter_is_data(tmp_path: Path) -> None:
    data = tmp_path / "data" / "table.csv"
    data.parent.mkdir()
    data.write_text("")
    places = system_paths.installation_of(Path("/usr/bin/sort"), [str(data)], {}, tmp_path)
    assert [place for place in places if place.is_relative_to(tmp_path)] == []


def test_a_program_text_as_an_argument_is_no_file() -> None:
    assert system_paths.installation_of(Path("/usr/bin/python3"), ["-c", "x" * 10_000, "a\0b"], {}, Path("/"))


def test_the_guide_lists_what_is_readable_by_default() -> None:
    text = (ROOT / "docs" / "guide" / "sandbox.md").read_text()
    assert [path for path in (*system_paths.READABLE, *system_paths.DEVICES) if f"`{path}`" not in text] == []


def test_the_launcher_needs_nothing_but_the_core_of_the_standard_library() -> None:
    source = Path(launcher.__file__).read_text()
    imported = {
        line.split()[1] for line in map(str.strip, source.splitlines()) if line.startswith(("import ", "from "))
    }
    assert imported == {"__future__", "os", "sys", "ctypes", "resource", "_signal", "_socket"}
