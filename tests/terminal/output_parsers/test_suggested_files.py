"""Suggestions name files that are there, as the shell of the pane would call them."""

from __future__ import annotations

import shlex
from pathlib import Path

from dari.terminal.output_parsers.intents import detect_intent


def words_of(actions: list[str]) -> set[str]:
    return {word for action in actions for word in shlex.split(action)}


def test_a_file_that_is_not_there_is_not_suggested(tmp_path: Path) -> None:
    output = "/usr/bin/ld: a.o: in function `main':\na.cpp:(.text+0x9): undefined reference to `foo()'\n"
    output += "collect2: error: ld returned 1 exit status\n"
    assert "a.cpp" not in words_of(detect_intent("g++ a.o", output, 1, str(tmp_path)).suggested_actions)
    (tmp_path / "a.cpp").touch()
    assert "a.cpp" in words_of(detect_intent("g++ a.o", output, 1, str(tmp_path)).suggested_actions)


def test_a_file_is_named_from_where_the_pane_is(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "main.c").write_text("int main(\n")
    output = "main.c:1:10: error: expected declaration specifiers before end of file\n"
    for command in ("cd web && gcc main.c", "make -C web", "(cd 'web'; make)"):
        found = detect_intent(command, output, 1, str(tmp_path))
        assert "web/main.c" in words_of(found.suggested_actions), command
    entered = f"make[1]: Entering directory '{tmp_path}/web'\n{output}"
    assert f"{tmp_path}/web/main.c" in words_of(detect_intent("make", entered, 2, str(tmp_path)).suggested_actions)


def test_failed_tests_are_suggested_only_with_their_file(tmp_path: Path) -> None:
    output = (
        "FAILED tests/test_a.py::test_one - assert 1 == 2\nFAILED tests/test_b.py::test_two - x\n2 failed in 0.1s\n"
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").touch()
    words = words_of(detect_intent("pytest", output, 1, str(tmp_path)).suggested_actions)
    assert "tests/test_a.py::test_one" in words and "tests/test_b.py::test_two" not in words


def test_for_a_missing_file_the_folder_it_would_be_in_is_shown(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    output = "cat: conf/app/x.toml: No such file or directory\n"
    found = detect_intent("cat conf/app/x.toml", output, 1, str(tmp_path))
    assert "ls -la -- conf" in found.suggested_actions
    assert "ls -la -- conf/app/x.toml" not in found.suggested_actions
    assert any(action.startswith("find . -name x.toml") for action in found.suggested_actions)


def test_a_hostile_path_is_looked_up_without_harm(tmp_path: Path) -> None:
    for path in ("a\0b", "x" * 9000, "../" * 500, "-rf"):
        detect_intent("cat x", f"cat: {path}: No such file or directory\n", 1, str(tmp_path))


def test_usage_time_outs_and_signals_are_told_apart() -> None:
    usage = detect_intent(
        "git comit",
        "git: 'comit' is not a git command. See 'git --help'.\n\nThe most similar command is\n\tcommit\n",
        1,
    )
    assert usage.intent == "usage_error" and usage.suggested_actions[0] == "git commit --help"
    late = detect_intent("timeout 5 npm test", "", 124)
    assert late.intent == "timed_out" and late.context == {"limit": "5", "program": "npm"}
    assert detect_intent("timeout -k 1 5 ./x", "", 137).intent == "timed_out"
    assert detect_intent("./x", "", 137).intent == "out_of_memory"
    assert detect_intent("./x", "^C\n", 130).context["signal"] == "SIGINT"
    assert detect_intent("./x", "", 143).context["signal"] == "SIGTERM"
    assert detect_intent("./x", "", 126).intent == "permission_denied"
    assert detect_intent("./x", "", 132).intent == "runtime_error"


def test_linkers_of_all_kinds_are_build_errors() -> None:
    for command, output in [
        ("cargo build", "error: linking with `cc` failed: exit status: 1\n  = note: /usr/bin/ld: cannot find -lssl\n"),
        ("clang -fuse-ld=lld a.o", "ld.lld: error: undefined symbol: foo\n>>> referenced by a.c\n"),
        ("clang a.o", "ld: library not found for -lfoo\nclang: error: linker command failed with exit code 1\n"),
        ("ld a.o b.o", "ld: duplicate symbol 'x' in a.o\n"),
        ("cl a.obj", "a.obj : error LNK2019: unresolved external symbol foo referenced in function main\n"),
        (
            "gcc a.o",
            "/usr/bin/ld: cannot find -lfoo: No such file or directory\ncollect2: error: ld returned 1 exit status\n",
        ),
        ("mold a.o", "mold: error: undefined symbol: foo\n"),
    ]:
        assert detect_intent(command, output, 1).intent == "build_error", command
    found = detect_intent("gcc a.c -lssl", "/usr/bin/ld: cannot find -lssl: No such file or directory\n", 1)
    assert found.context["library"] == "ssl" and "pkg-config --libs ssl" in found.suggested_actions
