"""What happened, with the lines that say so, the facts in them and commands that are safe to paste."""

from __future__ import annotations

import json
import shlex

import msgspec
import pytest

from dari.terminal.output_parsers import detect_intent
from tests.terminal.output_parsers.labelled import SAMPLES, all_samples, read_sample

CARGO = """\
running 17 tests
test test_layout ... ok
test test_pane_creation ... FAILED
test test_resize ... FAILED

failures:

---- test_pane_creation stdout ----
thread 'test_pane_creation' panicked at src/pane.rs:12:9:
no pane

---- test_resize stdout ----
thread 'test_resize' panicked at src/pane.rs:30:9:
wrong size

failures:
    test_pane_creation
    test_resize

test result: FAILED. 15 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s

error: test failed, to rerun pass `--lib`
"""


def sample(name: str) -> dict[str, object]:
    (path,) = SAMPLES.glob(f"*/{name}.txt")
    known = read_sample(path)
    found = detect_intent(known.command, known.output, known.exit_code)
    assert found.intent == known.intent
    return found.context


def test_the_example_of_the_design_comes_out_in_its_shape() -> None:
    found = json.loads(msgspec.json.encode(detect_intent("cargo test", CARGO, 101)))
    assert found["intent"] == "test_failure" and found["confidence"] >= 0.95
    assert found["context"]["failed_tests"] == ["test_pane_creation", "test_resize"]
    assert found["context"]["error_summary"] == "2 tests failed, 15 passed"
    assert found["suggested_actions"] == ["cargo test test_pane_creation -- --nocapture"]


def test_evidence_is_the_lines_themselves() -> None:
    found = detect_intent("cargo test", CARGO, 101)
    lines = CARGO.split("\n")
    assert found.evidence
    for item in found.evidence:
        assert lines[item.line - 1].strip() == item.text
    assert any("test result: FAILED" in item.text for item in found.evidence)


def test_line_numbers_hold_in_an_output_that_is_too_long_to_read_whole() -> None:
    output = "building\n" * 50_000 + "main.c:3:5: error: expected ‘;’\n"
    found = detect_intent("make", output, 2)
    assert found.intent == "build_error" and found.evidence[0].line == 50_001


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("pytest_fail", {"framework": "pytest", "error_summary": "2 tests failed, 2 passed"}),
        ("bash_missing", {"missing_command": "htopp"}),
        ("zsh_missing", {"missing_command": "pulumi"}),
        ("fish_missing", {"missing_command": "rgg"}),
        ("port_node", {"port": "48731"}),
        ("port_python", {"port": "48732"}),
        ("docker_port", {"port": "8080"}),
        ("go_listen", {"port": "8080"}),
        ("cat_missing", {"path": "config.yaml"}),
        ("python_open_missing", {"path": "settings.json"}),
        ("h_cp_missing", {"path": "dist/app.tar.gz"}),
        ("perm_exec", {"path": "./run.sh"}),
        ("perm_python", {"path": "/etc/shop.conf"}),
        ("merge_conflict", {"conflicting_files": ["a.txt"], "operation": "merge"}),
        ("conflict_status", {"conflicting_files": ["a.txt"]}),
        ("py_module", {"package": "flask_nothere"}),
        ("node_module", {"package": "express"}),
        ("pip_missing", {"package": "reqests-nothing-here"}),
        ("curl_refused", {"host": "127.0.0.1", "port": "48999"}),
        ("git_clone_resolve", {"host": "nohost.invalid"}),
        ("prompt_su", {"kind": "password", "prompt": "Password:"}),
        ("prompt_yes_no", {"kind": "yes_no"}),
        ("prompt_python", {"kind": "repl"}),
        ("prompt_less", {"kind": "pager"}),
        ("py_value_error", {"error": "ValueError", "line": 2}),
        ("gcc_header", {"missing_header": "nosuchlib.h", "target": "app"}),
        ("push_rejected", {"state": "[rejected]", "branch": "main"}),
        ("no_upstream", {"branch": "feature/cart"}),
        ("http_server", {"port": "48733"}),
        ("uvicorn_started", {"url": "http://127.0.0.1:8000"}),
    ],
)
def test_the_facts_of_an_output_are_in_the_context(name: str, facts: dict[str, object]) -> None:
    context = sample(name)
    assert {key: context.get(key) for key in facts} == facts


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("pytest_fail", "pytest test_cart.py::test_total_adds_prices 'test_cart.py::test_many[2]' -x -vv"),
        ("jest_fail", "npx jest -t 'adds prices'"),
        ("go_test_fail", "go test -run TestAdd -v ./..."),
        ("cargo_build_error", "sed -n 2p src/main.rs"),
        ("port_node", "ss -ltnp sport = :48731"),
        ("no_upstream", "git push --set-upstream origin feature/cart"),
        ("rebase_conflict", "git rebase --abort"),
        ("git_overwrite", "git stash push --include-untracked"),
        ("py_module", "python -m pip install flask_nothere"),
        ("ssh_publickey", "ssh-add -l"),
        ("full_dd", "df -h"),
    ],
)
def test_a_useful_command_is_suggested(name: str, action: str) -> None:
    (path,) = SAMPLES.glob(f"*/{name}.txt")
    known = read_sample(path)
    assert action in detect_intent(known.command, known.output, known.exit_code).suggested_actions


def test_every_suggestion_is_one_command_line_that_a_shell_can_split() -> None:
    for known in all_samples():
        for action in detect_intent(known.command, known.output, known.exit_code).suggested_actions:
            assert shlex.split(action) and "\n" not in action, known.name


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("cat x", "cat: x; rm -rf ~: No such file or directory"),
        ("cat x", "cat: $(reboot): No such file or directory"),
        ("python a.py", "ModuleNotFoundError: No module named 'a;reboot'"),
        ("git merge o", "CONFLICT (content): Merge conflict in `reboot`"),
        ("pytest", "FAILED a.py::test_x[$(reboot)] - x\n1 failed in 0.1s"),
        ("pytest", "FAILED --pdbcls=evil:Debug::x.py - x\n1 failed in 0.1s"),
        ("git push", "fatal: The current branch ;reboot has no upstream branch."),
        (
            "cargo test",
            "test --config=evil ... FAILED\ntest result: FAILED. 0 passed; 1 failed; 0 ignored",
        ),
        ("curl x", "curl: (6) Could not resolve host: -oProxyCommand=reboot"),
    ],
)
def test_an_output_cannot_put_commands_or_options_into_a_suggestion(command: str, output: str) -> None:
    for action in detect_intent(command, output, 1).suggested_actions:
        words = shlex.split(action)
        before = words[: words.index("--")] if "--" in words else words
        assert not any(word in ("reboot", "rm") for word in words), action
        assert not any(word.startswith(("--config=", "--pdbcls", "-oProxy")) for word in before), action
        assert "$(" not in action.replace("'", "") or "'" in action, action


def test_a_log_that_is_only_shown_is_no_failure() -> None:
    log = "ERROR Connection refused: db:5432\nTraceback (most recent call last):\nPermission denied: '/data'\n"
    assert detect_intent("cat app.log", log, 0).intent == "success"
    assert detect_intent("./app", log, 1).intent != "success"


def test_the_way_a_command_ended_decides_between_readings() -> None:
    assert detect_intent("sudo ls", "[sudo] password for ada: ", None).intent == "prompt_waiting"
    assert detect_intent("ls", "a\nb\n", 0).intent == "success"
    assert detect_intent("ls", "a\nb\n", 2).intent == "unknown"
    assert detect_intent("./work", "a\nb\n", None).intent == "long_running"


def test_what_else_it_could_be_is_told() -> None:
    found = detect_intent(
        "python app.py", "Traceback (most recent call last):\nModuleNotFoundError: No module named 'x'\n", 1
    )
    assert found.intent == "dependency_error" and "runtime_error" in found.alternatives


def test_nothing_printed_and_failed_is_unknown_and_unsure() -> None:
    found = detect_intent("false", "", 1)
    assert found.intent == "unknown" and found.confidence < 0.5 and not found.suggested_actions
