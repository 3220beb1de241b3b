"""Design 001, §4: the commands, line by line.

The docstring of a test is the line of the design that it holds to.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys

import pytest

from tests.support.installed_commands import KEY, Desk, entry
from tests.support.peer_server import Peer, peer
from tests.support.workshop import HANDLERS

pytestmark = pytest.mark.local_mcp

# §4 CLI


def test_4_servers(desk: Desk, team: Peer) -> None:
    """`crewx mcp remote servers [--json]`: 등록된 서버 프로필을 나열한다."""
    desk.write(entry(team, default=True), desk.shop())
    done = desk.remote("servers")
    assert (done.code, done.err) == (0, "") and "prod-backend" in done.out and "shop" in done.out
    listed = desk.remote("servers", "--json").json
    assert [(one["id"], one["kind"], one["default"]) for one in listed] == [
        ("prod-backend", "http", True),
        ("shop", "stdio", False),
        ("crewx-tools", "stdio", False),
    ]
    assert team.seen == []


@pytest.mark.parametrize(
    "options",
    [
        "--server prod-backend",
        "--endpoint URL --key KEY",
        "--endpoint URL --header 'Authorization: Bearer KEY'",
        "--endpoint URL --header 'Authorization:Bearer KEY' --header 'X-Team: core' --timeout 5000",
        "--server prod-backend --json --timeout 5000",
    ],
)
def test_4_list_tools(desk: Desk, team: Peer, options: str) -> None:
    """`list-tools [--server <id> | --endpoint <url>] [--key <token>] [--header 'K:V' ...] [--timeout <ms>] [--json]`"""
    desk.write(entry(team))
    done = desk.remote("list-tools", *shlex.split(options.replace("URL", team.url).replace("KEY", KEY)))
    assert done.code == 0, done.err
    if "--json" in options:
        assert [tool["name"] for tool in done.json] == list(team.tools)
    else:
        assert all(name in done.out for name in team.tools)
    if "X-Team" in options:
        assert team.of("tools/list")[-1].headers["x-team"] == "core"


@pytest.mark.parametrize(
    "options",
    [
        "--server prod-backend",
        "--server prod-backend --raw",
        "--endpoint URL --key KEY --raw",
        "--endpoint URL --header 'Authorization: Bearer KEY' --header 'X-Team: core' --timeout 5000 --raw",
    ],
)
def test_4_call_tool(desk: Desk, team: Peer, options: str) -> None:
    """`call-tool <toolName> [--server | --endpoint] [--params '<JSON>'] [--key] [--header] [--timeout <ms>] [--raw]`"""
    desk.write(entry(team))
    params = {"agentId": "frontend", "query": "lint rules"}
    words = shlex.split(options.replace("URL", team.url).replace("KEY", KEY))
    done = desk.remote("call-tool", "crewx_queryAgent", "--params", json.dumps(params), *words)
    assert done.code == 0, done.err
    assert team.of("tools/call")[-1].params["arguments"] == params
    if "--raw" in options:
        assert done.json == team.tools["crewx_queryAgent"](params)
    else:
        assert "frontend: lint rules" in done.out


@pytest.mark.parametrize("params", ["[1]", "1", '"x"', "null", "{", "{'a': 1}"])
def test_4_params_are_a_json_object(desk: Desk, team: Peer, params: str) -> None:
    """`--params`는 JSON 오브젝트 문자열."""
    desk.write(entry(team, default=True))
    done = desk.remote("call-tool", "crewx_listAgents", "--params", params)
    assert (done.code, done.out) == (1, "") and "--params" in done.err
    assert not team.of("tools/call")


def test_4_global_options(desk: Desk, team: Peer) -> None:
    """글로벌 옵션 재사용: `--log`(상세 로그), `--config`(에이전트 설정과 무관 — 충돌 없음)"""
    desk.write(entry(team, default=True))
    for words in (("--log", "--config", "crewx.yaml", "list-tools"), ("list-tools", "--log", "--config", "crewx.yaml")):
        done = desk.remote(*words)
        assert done.code == 0 and "tools/list" in done.err


def test_4_output_for_people(desk: Desk) -> None:
    """기본: 사람 친화적 메시지 + 결과(JSON은 pretty-print)"""
    desk.write(desk.shop(default=True))
    done = desk.remote("call-tool", "variety", "--params", '{"path": "/x"}')
    assert done.out.startswith("✓ shop/variety (") and '{\n  "given": {\n    "path": "/x"\n  }\n}\n' in done.out


def test_4_output_for_programs(desk: Desk) -> None:
    """`--json`/`--raw`: 결과 payload만 표준출력"""
    desk.write(desk.shop(default=True))
    for option in ("--json", "--raw"):
        done = desk.remote("call-tool", "gallery", option)
        assert (done.code, done.err) == (0, "") and done.json == HANDLERS["gallery"]({}, {})
    assert isinstance(desk.remote("list-tools", "--json").json, list)
    assert isinstance(desk.remote("servers", "--json").json, list)


def test_4_diagnostics_go_to_stderr(desk: Desk, team: Peer) -> None:
    """로그/진단은 표준에러로 출력 (`--log`일 때만 상세)"""
    desk.write(entry(team, default=True))
    plain = desk.remote("call-tool", "crewx_listAgents", "--raw")
    logged = desk.remote("call-tool", "crewx_listAgents", "--raw", "--log")
    assert plain.err == "" and logged.out == plain.out and "tools/call crewx_listAgents" in logged.err


def test_4_exit_code_0(desk: Desk, team: Peer) -> None:
    """`0`: 성공"""
    desk.write(entry(team, default=True))
    assert desk.remote("call-tool", "crewx_listAgents").code == 0


@pytest.mark.parametrize(
    "words", [(), ("nonsense",), ("call-tool",), ("list-tools", "--nonsense"), ("list-tools", "--server", "nobody")]
)
def test_4_exit_code_1(desk: Desk, words: tuple[str, ...]) -> None:
    """`1`: 사용성/검증 오류(인자/JSON 파싱/구성 부재 등)"""
    done = desk.remote(*words)
    assert (done.code, done.out) == (1, "") and done.err


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500, 503])
def test_4_exit_code_2(desk: Desk, status: int) -> None:
    """`2`: 네트워크/인증 실패(HTTP 4xx/5xx, 타임아웃)"""
    with peer(status=status) as broken:
        done = desk.remote("list-tools", "--endpoint", broken.url, "--timeout", "5000")
    assert (done.code, done.out) == (2, "") and "error:" in done.err


def test_4_exit_code_3(desk: Desk) -> None:
    """`3`: 원격 툴 오류(JSON-RPC error, 툴 레벨 실패)"""
    desk.write(desk.shop(default=True))
    assert [desk.remote("call-tool", name).code for name in ("refuse", "fail")] == [3, 3]


def test_4_exit_code_4(desk: Desk) -> None:
    """`4`: 사용자 중단(SIGINT) 또는 기타 예외"""
    desk.write(desk.shop(default=True))
    command = [sys.executable, "-m", "dari.cli.crewx", "mcp", "remote", "call-tool", "hang", "--log"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=desk.environ, cwd=desk.project, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stderr is not None and process.stdout is not None
            while b"tools/call hang" not in process.stderr.readline():
                pass
            process.send_signal(signal.SIGINT)
            assert process.wait(40) == 4 and process.stdout.read() == b""
        finally:
            if process.poll() is None:
                process.kill()
    assert "yes" in desk.remote("call-tool", "cancelled").out, "the server was told"
