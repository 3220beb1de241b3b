"""bash evaluates some strings twice; what that runs is judged, checked against the shells themselves."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from dari.terminal.policy.config import Security
from dari.terminal.policy.policy import Policy
from tests.terminal.policy import evaluated

POLICY = Policy(Security(dangerous_patterns=(), denied_patterns=("touch",)), Path("/home/somebody"))
BASH = ["bash", "--norc", "--noprofile", "-c"]


def leaves_a_mark(call: list[str], text: str, folder: Path) -> bool:
    mark = folder / "MARK"
    mark.unlink(missing_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    subprocess.run(
        [*call, text], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=30
    )
    return mark.exists() or mark.is_symlink()


@pytest.mark.parametrize("text", evaluated.RUN_IN_BASH)
def test_what_bash_runs_while_it_evaluates_a_string_is_stopped(text: str, tmp_path: Path) -> None:
    assert leaves_a_mark(BASH, text, tmp_path), "bash does not run this; the case proves nothing"
    assert POLICY.judge(text, str(tmp_path)).decision != "allow"


@pytest.mark.parametrize("text", evaluated.RUN_IN_ZSH)
def test_what_zsh_runs_while_it_evaluates_a_string_is_stopped(text: str, tmp_path: Path) -> None:
    if shutil.which("zsh"):
        assert leaves_a_mark(["zsh", "-f", "-c"], text, tmp_path), "zsh does not run this; the case proves nothing"
    assert POLICY.judge(text, str(tmp_path), "zsh").decision != "allow"


@pytest.mark.parametrize("text", evaluated.EVERYDAY)
def test_everyday_numbers_and_arrays_are_not_asked_about(text: str) -> None:
    verdict = Policy(Security()).judge(text, "/work")
    assert verdict.decision == "allow", verdict


@pytest.mark.parametrize(
    "text", ["let $x", "[[ $x -eq 1 ]]", 'declare "$x"', "echo $(( $(cat f) ))", "read n; ((n))", "echo ${!x}"]
)
def test_a_value_that_only_the_shell_will_know_is_asked_about_where_it_is_evaluated(text: str) -> None:
    verdict = Policy(Security()).judge(text, "/work")
    assert verdict.decision == "ask" and verdict.hint


def test_a_string_that_is_only_text_is_not_evaluated() -> None:
    for text in (
        "echo 'a[$(rm x)]'",
        "git commit -m 'a[$(rm x)]'",
        "[[ 'a[$(rm x)]' == y ]]",
        "printf %s 'a[$(rm x)]'",
    ):
        assert Policy(Security()).judge(text, "/work").decision == "allow", text


def placement(chance: random.Random) -> str:
    """A text that carries a string to somewhere; whether it is evaluated there is for bash to say."""
    payload = chance.choice(
        [
            "a[$(touch MARK)]",
            "a[`touch MARK`]",
            "b+a[1+$(touch MARK)]",
            "$(touch MARK)",
            "a[b[$(touch MARK)]]",
            "touch MARK",
        ]
    )
    setting = chance.choice(
        [
            "x='{p}'",
            "x='{p}'; y=x; x=$x",
            "read -r x <<< '{p}'",
            "x=(0 '{p}'); x=${{x[1]}}",
            "printf -v x %s '{p}'",
            "export x='{p}'",
            "declare x='{p}'",
            "for x in '{p}'; do :; done",
            "set -- '{p}'; x=$1",
            ": \"${{x:='{p}'}}\"",
            "x=$(printf %s '{p}')",
            "mapfile -t x <<< '{p}'",
            "IFS= read -r -d '' x < <(printf '%s\\0' '{p}')",
        ]
    )
    use = chance.choice(
        [
            "{v}", "(({v}))", "(( 1 + {v} ))", "echo $(({v}))", "echo $[{v}]", "let {v}", "let y={v}",
            "[[ {v} -eq 1 ]]", "[[ {v} == 1 ]]", "[[ -v {v} ]]", "[[ -n {v} ]]", "test -v {v}", "test {v} -eq 1",
            "[ {v} = 1 ]", "printf -v {v} y", "printf %d {v}", "printf %s {v}", "echo {v}", "declare -i n={v}",
            "declare n={v}", "declare {v}=1", "unset {v}", "read {v} <<< 1", "echo ${{z[{v}]}}", "z[{v}]=1",
            "z=([{v}]=1)", "s=abc; echo ${{s:{v}}}", "echo ${{!x}}", "for ((i={v}; i<1; i++)); do :; done",
            "case {v} in 1) :;; esac", "echo ${{x%]}}", 'echo "${{x@Q}}"', "exit {v}", "n=5; n={v}",
            "declare -i n; n={v}", "declare -n r={v}; echo $r", "cat <<< {v}", "echo ${{#x}}", "shift {v}",
            "if (( {v} > 0 )); then echo y; fi", "while (( {v} > 9 )); do :; done", 'echo "$(( {v} ))"',
            "w=$(( {v} ))",
        ]
    )  # fmt: skip
    value = chance.choice(["$x", '"$x"', "x", "${x}", "'{p}'", "${x:-1}", "x+0"])
    text = f"{setting}; {use.replace('{v}', value)}".replace("{{", "{").replace("}}", "}")
    wrap = chance.choice(["{t}", "{t}", "{t}", "f() {{ {t}; }}; f", "( {t} )", "true && {{ {t}; }}", 'echo "$({t})"'])
    return wrap.replace("{{", "{").replace("}}", "}").replace("{t}", text).replace("{p}", payload)


@pytest.mark.timeout(240)
def test_whatever_bash_evaluates_the_policy_is_never_looser(tmp_path: Path) -> None:
    ran = stopped = 0
    for seed in range(400):
        text = placement(random.Random(seed))
        if leaves_a_mark(BASH, text, tmp_path):
            ran += 1
            assert POLICY.judge(text, str(tmp_path)).decision != "allow", (seed, text)
        else:
            stopped += POLICY.judge(text, str(tmp_path)).decision != "allow"
    # A generator of harmless texts would prove nothing, nor would a policy that asks about all of them.
    assert ran > 80 and stopped < (400 - ran) * 0.9
