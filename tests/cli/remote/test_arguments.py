"""`--params`: JSON on the line, in a file, on stdin; checked before anything is sent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.remote_command import shop


async def test_params_come_from_the_line_a_file_or_stdin(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        (run.cwd / "call.json").write_text('{"path": "file"}')
        for words, stdin, given in (
            (("--params", '{"path": "line"}'), b"", "line"),
            (('--params={"path": "equals"}',), b"", "equals"),
            (("--params", "@call.json"), b"", "file"),
            (("--params", "-"), b'\xef\xbb\xbf{"path": "stdin"}', "stdin"),
        ):
            done = await run("call-tool", "variety", *words, "--json", stdin=stdin)
            assert done.code == 0 and done.json["structuredContent"] == {"given": {"path": given}}


async def test_flags_and_params_are_joined_and_flags_win(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        words = ("--params", '{"path": "a", "head": 1}', "--path", "b")
        done = await run("call-tool", "variety", *words, "--json")
        assert done.json["structuredContent"]["given"] == {"path": "b", "head": 1}


async def test_params_alone_reach_the_server_digit_by_digit(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "loose", "--params", '{"n": 1.10, "big": 12345678901234567890123}')
        assert done.code == 0
        assert run.noted()[-1] == 'call loose {"big": 12345678901234567890123, "n": 1.1}'


@pytest.mark.parametrize(
    "params, said",
    [
        ("[1]", "--params is a list, and must be an object"),
        ("3", "--params is a number"),
        ('"x"', "--params is a string"),
        ("null", "--params is null"),
        ("true", "--params is true"),
        ("", "line 1, column 1"),
        ('{"path": }', "line 1, column 10"),
        ('{"path": "a",\n "head": 1,}', "line 2, column"),
        ('{"path": NaN}', "NaN is not a JSON number"),
        ('{"path": "a", "path": "b"}', "'path' stands there twice"),
        ("[" * 100_000, "nested too deeply"),
        ("@missing.json", "cannot read missing.json: No such file"),
        ("@.", "cannot read .: Is a directory"),
    ],
)
async def test_params_that_are_no_object_are_refused_with_their_place(tmp_path: Path, params: str, said: str) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "variety", "--params", params)
        assert (done.code, done.out) == (1, "")
        assert said in done.err
        assert not [line for line in run.noted() if line.startswith("call")]


async def test_missing_and_wrong_arguments_are_named_and_nothing_is_sent(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        for words, said in (
            ((), "'variety' needs --path (string)"),
            (("--path", "x", "--head", "0"), "head"),
            (("--params", '{"path": "x", "nope": 1}'), "nope"),
            (("--params", '{"path": 7}'), "path"),
        ):
            done = await run("call-tool", "variety", *words)
            assert (done.code, done.out) == (1, "") and said in done.err
        assert not [line for line in run.noted() if line.startswith("call")]


async def test_arguments_that_are_no_text_are_refused(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "say", "--text", "a\udcff")
        assert done.code == 1 and "must be UTF-8" in done.err


@pytest.mark.parametrize("name", ["pipe", "/dev/fd/63", "/dev/stdin", "/proc/self/fd/0"])
async def test_a_pipe_is_refused_and_holds_up_nobody(tmp_path: Path, name: str) -> None:
    async with shop(tmp_path) as run:
        os.mkfifo(run.cwd / "pipe")
        for words in (
            ("call-tool", "variety", "--params", f"@{name}"),
            ("batch", name),
            ("add", "x", "--json", f"@{name}"),
        ):
            done = await run(*words)
            assert (done.code, done.out) == (1, "")
            assert f"cannot read {name}: " in done.err and "stdin" in done.err


async def test_an_entry_to_add_must_be_utf_8(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        (run.cwd / "entry.json").write_bytes('{"command": "/opt/é"}'.encode("latin-1"))
        before = run.file.read_bytes()
        for words, stdin in ((("@entry.json",), b""), (("-",), (run.cwd / "entry.json").read_bytes())):
            done = await run("add", "x", "--json", *words, stdin=stdin)
            assert done.code == 1 and "must be UTF-8 text (byte 18)" in done.err
        assert run.file.read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [
        ("--params", '{"path": "x", "head": %s}' % ("9" * 5000)),
        ("--params", '{"path": "x", "head": 1e999}'),
        ("--params", '{"path": "x", "ratio": 1e999}', "--head", "1"),
        ("--path", "x", "--head", "9" * 5000),
        ("path=x", "ratio:=1e999"),
        ("--path", "x", "--ratio", "1e999"),
    ],
)
async def test_numbers_that_no_computer_holds_are_wrong_arguments(tmp_path: Path, words: tuple[str, ...]) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "variety", *words)
        assert (done.code, done.out) == (1, "") and "fault of ours" not in done.err
        assert not [line for line in run.noted() if line.startswith("call")]
