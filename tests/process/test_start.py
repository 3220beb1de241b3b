"""How a child starts: its program, environment, directory, limits, and errors that say what to do."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from dari.errors import InvalidInput, Unavailable
from dari.process import program as environment_module
from dari.process.child import ChildSpec
from dari.process.children import Children
from dari.process.program import BASE_NAMES, build_environment, find_program

PATH = {"PATH": "/usr/bin:/bin"}


async def output_of(spec: ChildSpec) -> str:
    async with Children() as children:
        child = await children.start(spec)
        stdin, stdout = child.take_pipes()
        with stdin, stdout:
            output = await asyncio.to_thread(stdout.read)
        assert await child.ended(10) and child.returncode == 0, await child.last_words()
    return output.decode()


async def test_the_environment_is_built_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("EXTRA", "wanted")
    spec = ChildSpec("env", ("env",), env={"GIVEN": "1", "TERM": "dumb"}, inherit_env=("EXTRA", "NOT_THERE"))
    seen = dict(line.split("=", 1) for line in (await output_of(spec)).splitlines())
    assert (seen["GIVEN"], seen["TERM"], seen["EXTRA"], seen["PATH"]) == ("1", "dumb", "wanted", os.environ["PATH"])
    assert set(seen) <= {*BASE_NAMES, "GIVEN", "EXTRA", "DARI_CHILD"}


def test_a_shell_function_is_not_handed_on() -> None:
    assert build_environment({}, ["F"], {"F": "() { :; }", "HOME": "/h"}) == {"HOME": "/h"}


def test_windows_programs_find_their_system() -> None:
    source = {"SYSTEMROOT": "C:\\Windows", "SHELL": "x", "SECRET": "x"}
    assert build_environment({}, (), source, "nt") == {"SYSTEMROOT": "C:\\Windows"}
    assert "SYSTEMROOT" in environment_module.WINDOWS_BASE_NAMES


@pytest.mark.parametrize(("name", "value"), [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")])
def test_a_variable_that_cannot_be_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidInput):
        build_environment({name: value})


async def test_the_directory_is_the_one_given(tmp_path: Path) -> None:
    assert (await output_of(ChildSpec("pwd", ("pwd",), cwd=tmp_path))).strip() == str(tmp_path)


async def test_no_shell_reads_the_arguments() -> None:
    words = ("$HOME", "a; echo b", "`id`", "*", "")
    assert await output_of(ChildSpec("printf", ("printf", "%s|", *words))) == "|".join(words) + "|"


async def test_a_child_leads_its_own_session_and_group_and_holds_no_descriptor_of_ours() -> None:
    with socket.socket() as kept:
        kept.set_inheritable(True)
        output = await output_of(
            ChildSpec("ps", ("sh", "-c", "echo $$; cut -d' ' -f5,6 /proc/$$/stat; ls /proc/$$/fd"))
        )
    pid, group_and_session, *descriptors = output.split("\n")
    assert group_and_session.split() == [pid, pid]
    assert set(filter(None, descriptors)) <= {"0", "1", "2", "10"}  # 10: the shell's own


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("no-such-thing", "not found on the child's PATH", "the child's PATH is /usr/bin:/bin"),
        ("./no-such-file", "does not exist", "check the path"),
        ("./plain", "is not executable", "chmod"),
        ("./folder", "is a directory", "inside"),
        ("./plain/deeper", "does not exist", "check the path"),
        ("./" + "x" * 300, "File name too long", "who may use"),
    ],
)
def test_a_program_that_cannot_run_is_told_why(tmp_path: Path, name: str, message: str, hint: str) -> None:
    (tmp_path / "plain").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(Unavailable, match=message) as caught:
        find_program(name, PATH, tmp_path)
    assert repr(name) in caught.value.message and hint in caught.value.hint


def test_a_launcher_that_is_missing_comes_with_the_way_to_get_it() -> None:
    with pytest.raises(Unavailable) as caught:
        find_program("npx", {"PATH": "/nowhere"})
    assert "install Node.js" in caught.value.hint


def test_a_file_on_the_path_that_is_not_executable_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("x")
    with pytest.raises(Unavailable, match="is not executable"):
        find_program("tool", {"PATH": str(tmp_path)})


def test_the_path_of_the_child_counts_and_not_ours(tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert find_program("tool", {"PATH": "bin"}, tmp_path) == tool
    assert find_program("bin/tool", {}, tmp_path) == tool
    assert find_program("./bin/../bin/tool", {}, tmp_path) == tool


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no such directory"):
        find_program("sh", PATH, tmp_path / "gone")


async def test_a_program_whose_interpreter_is_missing_is_an_error_of_the_start(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    async with Children() as children:
        for limits in ({}, {"nofile": 100}):  # directly, and through the launcher
            with pytest.raises(Unavailable) as caught:
                await children.start(ChildSpec("script", (str(script),), limits=limits))
            assert "interpreter" in caught.value.hint
        assert not children.running


async def test_an_empty_command_is_refused() -> None:
    async with Children() as children:
        with pytest.raises(InvalidInput):
            await children.start(ChildSpec("empty", ()))


async def test_limits_are_those_of_the_profile_and_never_above_ours() -> None:
    spec = ChildSpec("limits", ("sh", "-c", "ulimit -n; ulimit -c"), limits={"nofile": 64, "core": 0})
    assert (await output_of(spec)).split() == ["64", "0"]


async def test_a_child_that_meets_a_closed_pipe_dies_of_it_as_programs_do() -> None:
    """Python ignores SIGPIPE for itself; neither the direct start nor the launcher may hand that on."""
    for limits in ({}, {"nofile": 100}):
        spec = ChildSpec("pipe", ("sh", "-c", "trap > /dev/null; grep SigIgn /proc/self/status"), limits=limits)
        ignored = int((await output_of(spec)).split()[1], 16)
        assert ignored & (1 << 12) == 0
