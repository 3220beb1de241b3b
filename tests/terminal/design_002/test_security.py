"""Design 002 §7: each threat of its table and each key of its `[mcp.security]`, on a daemon with that very file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from dari.errors import DariError
from dari.terminal.daemon import cruxd_client as ipc_client
from tests.support.terminal_clients import Terminal, terminal

TOML = """
# crux.toml 보안 설정 예시
[mcp.security]
# 승인 없이 허용되는 명령 패턴
allowed_commands = ["ls", "cat", "git *", "cargo *", "npm *"]

# 항상 사용자 확인이 필요한 명령
dangerous_patterns = ["rm", "sudo", "chmod", "kill"]

# 작업 디렉토리 제한 (비어있으면 제한 없음)
allowed_directories = []

# 타임아웃 (ms)
command_timeout_ms = 30000

# 최대 동시 패널 수
max_panes = 20
"""
YES: Any = {"action": "accept", "content": {"run": True}}
NO: Any = {"action": "decline"}


@pytest.fixture(scope="module")
def guarded() -> Iterator[Terminal]:
    """The file as written."""
    # Beyond the design: the form of a client approves nothing unless the person has named the client.
    with terminal(TOML.replace("max_panes = 20", 'max_panes = 20\nelicitation_clients = ["test"]')) as made:
        yield made


@pytest.fixture(scope="module")
def walled() -> Iterator[Terminal]:
    """Its other values: directories, a short time, few panes."""
    changed = (
        TOML.replace("allowed_directories = []", 'allowed_directories = ["~/project"]')
        .replace("command_timeout_ms = 30000", "command_timeout_ms = 200\napproval_wait_ms = 0")
        .replace("max_panes = 20", "max_panes = 2")
        .replace('"cat"', '"cat", "sleep"')
    )
    with terminal(changed) as made:
        (made.path / "project").mkdir()
        yield made


@pytest.fixture
def refusing(guarded: Terminal) -> Iterator[Any]:
    """A client whose person says no."""
    with guarded.client(answer=NO) as connection:
        yield connection


# §7.2


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("crux_execute_command", {"command": "rm -rf ~/x"}),
        ("crux_execute_command", {"command": "ls; rm -rf ~/x"}),
        ("crux_send_text", {"text": "rm -rf ~/x\n"}),
        ("crux_send_text", {"text": "rm -rf ~/x", "enter": True}),
        ("crux_send_keys", {"keys": "rm x<Enter>"}),
        ("crux_paste_smart", {"text": "rm -rf ~/x", "form": "plain", "enter": True}),
        ("crux_type_with_ime", {"text": "rm 파일", "mode": "text", "enter": True}),
        ("crux_create_pane", {"command": "rm -rf ~/x"}),
        ("crux_load_workspace", {"name": "debug-session", "commands": {"logs": "rm -rf ~/x"}}),
        ("crux_coordinate_panes", {"steps": [{"pane": "a", "command": "rm -rf ~/x"}]}),
        ("crux_stream_output", {"command": "rm -rf ~/x"}),
        ("crux_visual_diff", {"command": "rm -rf ~/x"}),
        ("crux_inject_context", {"functions": {"ls": "rm -rf ~/x"}}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_7_2_command_injection(tool: str, given: dict[str, Any], refusing: Any, guarded: Terminal) -> None:
    """명령 주입: 명령 화이트리스트, 위험 명령 사용자 확인. A person is asked on every path, and says no."""
    victim = guarded.path / "x"
    victim.touch()
    error = refusing.fails(tool, **given)
    assert error["name"] == "denied" and "rm" in error["message"]
    assert len(refusing.questions) == 1 and "rm" in refusing.questions[0]["params"]["message"]
    assert victim.exists()
    refusing.result("crux_send_keys", keys="C-u")


def test_7_2_command_injection_that_nobody_means(refusing: Any) -> None:
    """`rm -rf /` is denied with a reason; a person is not even asked."""
    error = refusing.fails("crux_execute_command", command="rm -rf /")
    assert error["name"] == "denied" and error["hint"]
    assert refusing.questions == []


def test_7_2_a_person_who_agrees(guarded: Terminal) -> None:
    (guarded.path / "x").touch()
    with guarded.client(answer=YES) as connection:
        assert connection.call("crux_execute_command", command="rm x")["exit_code"] == 0
    assert not (guarded.path / "x").exists()


@pytest.mark.parametrize("command", ["cat /etc/passwd", "cd / && ls", "cat ../.bashrc", "ls > ~/list", "cd ..; ls"])
def test_7_2_filesystem_escape(command: str, walled: Terminal) -> None:
    """파일시스템 탈출: 작업 디렉토리 제한 옵션."""
    with walled.client() as connection:
        error = connection.fails("crux_execute_command", command=command)
        assert error["name"] in ("denied", "needs_approval") and "project" in error["message"] + error["hint"]
        assert connection.fails("crux_create_pane", cwd="/etc")["name"] in ("denied", "needs_approval")


@pytest.mark.parametrize("command", ["kill -9 1", "kill -KILL $$", "pkill -9 bash"])
def test_7_2_signals_by_command(command: str, refusing: Any) -> None:
    """프로세스 신호: SIGKILL 등 임의 시그널 → 시그널 종류 제한. As a command, `kill` asks."""
    assert refusing.fails("crux_execute_command", command=command)["name"] == "denied"
    assert len(refusing.questions) == 1


async def test_7_2_signals_by_ipc(guarded: Terminal) -> None:
    """And no tool of an agent sends one but ^C; over IPC an agent's token may not at all."""
    with guarded.client() as connection:
        names = [tool["name"] for tool in connection.ask("tools/list")["result"]["tools"]]
        assert not [name for name in names if "signal" in name or "kill" in name]
        pane = connection.call("crux_create_pane")
        async with ipc_client(guarded.home.place, "mcp", starts=False) as agent:
            with pytest.raises(DariError):
                await agent.call("crux:pane/signal", {"pane_id": pane["id"], "signal": "KILL"})
        connection.call("crux_close_pane", pane_id=pane["id"])


def test_7_2_ansi_escape_injection(guarded: Terminal) -> None:
    """ANSI 이스케이프 주입: 출력 반환 시 이스케이프 정규화; what hides is made visible by every tool that reads."""
    hostile = "evil\u202etxt \U000e0041 \x1b]8;;http://x\x07link\x1b]8;;\x07\x1b]0;title\u202e\x07 \u200bend\n"
    (guarded.path / "hostile").write_text(hostile)
    with guarded.client() as connection:
        done = connection.call("crux_execute_command", command="cat hostile")
        pane = done["pane_id"]
        texts = [done["stdout"], connection.call("crux_get_formatted_output")["text"]]
        texts += [connection.call(f"crux_{tool}")["text"] for tool in ("get_output", "get_raw_text", "get_scrollback")]
        texts.append(
            connection.ask("resources/read", uri=f"crux://pane/{pane}/scrollback")["result"]["contents"][0]["text"]
        )
        for text in texts:
            assert "evil" in text and "link" in text
            assert not re.search("[\u202e\u200b\U000e0041\x07]|\x1b[^\\[]", text)
        state = connection.ask("resources/read", uri=f"crux://pane/{pane}/state")["result"]["contents"][0]["text"]
        assert "title" in state and "\u202e" not in state
        assert "\u202e" not in str(connection.call("crux_list_panes")) + str(connection.call("crux_get_pane_state"))


@pytest.mark.parametrize(
    "command",
    ["ls $(rm x)", "ls `rm x`", "cat <(rm x)", "ls; rm x", "ls | xargs rm", "git status && rm x", 'ls "$(rm x)"'],
)
def test_7_2_shell_escape(command: str, refusing: Any, guarded: Terminal) -> None:
    """셸 이스케이프: `$(command)`, `` `command` ``: what they would run is judged as if it stood alone."""
    (guarded.path / "x").touch()
    assert refusing.fails("crux_execute_command", command=command)["name"] == "denied"
    assert (guarded.path / "x").exists()


def test_7_2_what_is_quoted_is_no_command(guarded: Terminal) -> None:
    with guarded.client() as connection:
        assert connection.call("crux_execute_command", command="ls '$(rm x)' 2>&1 | cat")["exit_code"] == 0


# §7.3


@pytest.mark.parametrize("command", ["ls", "ls -la /", "cat .bashrc", "git --version", "ls | cat"])
def test_7_3_allowed_commands(command: str, refusing: Any) -> None:
    """승인 없이 허용되는 명령 패턴."""
    assert refusing.call("crux_execute_command", command=command)["exit_code"] == 0
    assert refusing.questions == []


@pytest.mark.parametrize("command", ["touch x", "python3 -c 'print(1)'", "ls; touch y"])
def test_7_3_other_commands_ask(command: str, refusing: Any) -> None:
    assert refusing.fails("crux_execute_command", command=command)["name"] == "denied"
    assert len(refusing.questions) == 1


@pytest.mark.parametrize("command", ["rm x", "sudo ls", "chmod 700 x", "kill 1", "git status; sudo ls"])
def test_7_3_dangerous_patterns(command: str, refusing: Any) -> None:
    """항상 사용자 확인이 필요한 명령."""
    assert refusing.fails("crux_execute_command", command=command)["name"] == "denied"
    assert len(refusing.questions) == 1


def test_7_3_allowed_directories(guarded: Terminal, walled: Terminal) -> None:
    """비어있으면 제한 없음; panes of a limited terminal begin in the first directory."""
    with guarded.client() as connection:
        assert connection.call("crux_execute_command", command="ls /")["exit_code"] == 0
    with walled.client() as connection:
        assert connection.call("crux_execute_command", command="ls")["cwd"] == str(walled.path / "project")


def test_7_3_command_timeout_ms(walled: Terminal) -> None:
    """타임아웃 (ms): after it the command goes on, with status "running" and an id to wait on or interrupt."""
    with walled.client() as connection:
        running = connection.call("crux_execute_command", command="sleep 600")
        assert (running["status"], running["exit_code"]) == ("running", None)
        assert running["duration_ms"] >= 150
        ended = connection.call("crux_interrupt_command", command_id=running["command_id"])
        assert (ended["status"], ended["exit_code"]) == ("done", 130)


def test_7_3_max_panes(walled: Terminal) -> None:
    """최대 동시 패널 수."""
    with walled.client() as connection:
        while len(connection.call("crux_list_panes")["panes"]) < 2:
            connection.call("crux_create_pane")
        error = connection.fails("crux_create_pane")
        assert error["name"] == "conflict" and "2" in error["message"]
        assert connection.fails("crux_load_workspace", name="full-stack", run=False)["name"] == "conflict"


def test_7_3_the_file_is_the_designs() -> None:
    """Every key of the design's example, and none of ours."""
    assert re.findall(r"^(\w+) =", TOML, re.MULTILINE) == [
        "allowed_commands",
        "dangerous_patterns",
        "allowed_directories",
        "command_timeout_ms",
        "max_panes",
    ]
