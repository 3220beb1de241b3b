from __future__ import annotations

from pathlib import Path

import pytest

from dari.terminal.policy.config import Security
from dari.terminal.policy.policy import Policy


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "project"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "file.txt").write_text("x")
    (root / "out").symlink_to("/etc")
    (root / "secret").symlink_to("/etc/passwd")
    return root


def _policy(project: Path) -> Policy:
    return Policy(Security(allowed_directories=(str(project),), dangerous_patterns=()), project.parent)


@pytest.mark.parametrize(
    "text",
    [
        "ls",
        "cat file.txt",
        "cat ./src/../file.txt",
        "cat src/*.py",
        "cd src && ls && cat deep/x",
        "cd src; cd deep; ls",
        "grep -rn foo . > found.txt 2>/dev/null",
        "git clone https://example.org/a/b.git",
        "make CFLAGS=-O2",
        "~/project/run.sh",
        "echo /etc/passwd",
        "sed s/a/b/ file.txt",
    ],
)
def test_what_stays_below_the_allowed_directory_runs(text: str, project: Path) -> None:
    verdict = _policy(project).judge(text, str(project))
    assert verdict.decision == "allow", verdict


@pytest.mark.parametrize(
    "text",
    [
        "cat /etc/passwd",
        "cat ../other",
        "cat src/../../other",
        "cd /",
        "cd .. && ls",
        "cd",
        "ls ~",
        "cat secret",
        "cat out/passwd",
        "cat out/*",
        "grep x --file=/etc/passwd",
        "grep x -f/etc/passwd",
        "dd if=/etc/passwd",
        "cat < /etc/passwd",
        "echo x > ../x",
        "echo x >> /tmp/x",
        "cp file.txt /tmp/",
        "(cd src/deep); cat ../x",
        "false && cd src/deep; cat ../x",
        "curl file:///etc/passwd",
        "/opt/tool/run",
        "tar -C / -cf x y",
        "sh -c 'cat /etc/passwd'",
        "env cat /etc/passwd",
        "scp file.txt:/etc/passwd x",
    ],
)
def test_what_leaves_the_allowed_directory_is_denied(text: str, project: Path) -> None:
    verdict = _policy(project).judge(text, str(project))
    assert verdict.decision == "deny", verdict
    assert "allowed_directories" in verdict.reason and str(project) in verdict.hint


@pytest.mark.parametrize(
    "text",
    ["cat $HOME/x", "cat $x", "cd $x && ls", "cd -; cat x", "cat ~bob/x", "cat */../../x", "cat {a,/etc/passwd}"],
)
def test_a_path_that_only_the_shell_knows_asks(text: str, project: Path) -> None:
    verdict = _policy(project).judge(text, str(project))
    assert verdict.decision == "ask", verdict


def test_a_pane_outside_may_run_nothing(project: Path) -> None:
    verdict = _policy(project).judge("ls", "/etc")
    assert verdict.decision == "deny" and "/etc" in verdict.reason


def test_a_directory_that_only_starts_alike_is_outside(project: Path) -> None:
    assert _policy(project).judge("ls", str(project) + "-other").decision == "deny"
