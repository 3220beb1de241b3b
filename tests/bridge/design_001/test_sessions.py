"""Design 001, §14: sessions and processes, line by line.

The docstring of a test is the line of the design that it holds to.
"""

from __future__ import annotations

import sys

import pytest

from tests.support.installed_commands import Desk, entry
from tests.support.peer_server import Peer
from tests.support.processes import wait_for_end
from tests.support.workshop import HANDLERS, TOOLS

pytestmark = pytest.mark.local_mcp

# §14 세션/프로세스


def test_14_1_kinds(desk: Desk, team: Peer) -> None:
    """`kind`: `http` | `stdio` (기본값 `http`)"""
    desk.write({"id": "plain", "baseUrl": team.url}, {"id": "said", "kind": "http", "baseUrl": team.url}, desk.shop())
    assert [one["kind"] for one in desk.remote("servers", "--json").json][:3] == ["http", "http", "stdio"]


def test_14_1_http_connections_are_used_again(desk: Desk, team: Peer) -> None:
    """HTTP Keep-Alive 에이전트 사용으로 커넥션 재사용"""
    desk.write(entry(team, default=True))
    for _ in range(3):
        assert desk.remote("call-tool", "crewx_listAgents").code == 0
    assert len({one.connection for one in team.of("tools/call")}) == 1


def test_14_1_lists_are_cached(desk: Desk, team: Peer) -> None:
    """툴 목록 캐시 TTL 지원(예: 60초)"""
    desk.write(entry(team, default=True, toolsCacheTtlMs=60000))
    first, second = (desk.remote("list-tools", "--json") for _ in range(2))
    assert first == second and len(team.of("tools/list")) == 1
    desk.remote("list-tools", "--refresh")
    assert len(team.of("tools/list")) == 2


def test_14_1_a_local_server_is_started_once(desk: Desk) -> None:
    """최초 1회: `initialize` → `initialized` 핸드셰이크, 세션 유지"""
    desk.write(desk.shop(default=True))
    for _ in range(3):
        assert desk.remote("call-tool", "say", "--text", "x").code == 0
    assert len(desk.noted("start")) == 1 and len(desk.noted("call")) == 3


def test_14_1_an_idle_server_ends(desk: Desk) -> None:
    """유휴 종료(Idle timeout)와 재시작 정책 관리 / `idleExitMs`: 유휴 시간 초과 시 종료(자원 회수)"""
    desk.write(desk.shop(default=True, idleExitMs=200))
    assert desk.remote("call-tool", "say", "--text", "x").code == 0
    wait_for_end(int(desk.noted("start")[0].split()[1]))
    assert desk.remote("call-tool", "say", "--text", "x").code == 0
    assert len(desk.noted("start")) == 2


SECTION_14 = """
{
  "servers": [
    {
      "id": "local-copilot",
      "kind": "stdio",
      "command": "gh",
      "args": ["copilot", "mcp", "serve"],
      "cwd": "/path/to/project",
      "env": { "EXAMPLE": "${ENV_EXAMPLE}" },
      "initTimeoutMs": 10000,
      "idleExitMs": 300000,
      "restart": { "policy": "on-failure", "maxRestarts": 3, "backoffMs": 2000 }
    },
    {
      "id": "prod-backend",
      "kind": "http",
      "baseUrl": "https://mcp.example.com:3000",
      "apiKey": "${CREWX_MCP_KEY}",
      "keepAlive": true,
      "toolsCacheTtlMs": 60000
    }
  ]
}
"""


def test_14_2_the_example(desk: Desk) -> None:
    """`mcp.json` 스키마 보강(추가 필드)"""
    desk.user_file.write_text(SECTION_14)
    desk.user_file.chmod(0o600)
    done = desk.remote("servers", "--json")
    assert done.err == "" and [one["state"] for one in done.json[:2]] == ["ready", "ready"]
    assert (done.json[0]["command"], done.json[0]["args"]) == ("gh", ["copilot", "mcp", "serve"])


def test_14_2_command_args_cwd_and_env(desk: Desk) -> None:
    """`command`, `args`, `cwd`, `env`: 프로세스 실행 정보(ENV 치환 지원)"""
    desk.write(desk.shop(default=True, env={"SHOP_KEY": "${MINE}"}, cwd="${PWD}"))
    assert desk.remote("call-tool", "env", "--raw", MINE="from me", PWD=str(desk.project)).json == HANDLERS["say"](
        {"text": "from me"}, {}
    )


def test_14_2_the_handshake_has_a_time_limit(desk: Desk) -> None:
    """`initTimeoutMs`: 초기화 핸드셰이크 타임아웃"""
    mute = {"id": "mute", "kind": "stdio", "command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"]}
    desk.write({**mute, "initTimeoutMs": 300, "default": True})
    done = desk.remote("list-tools")
    assert (done.code, done.out) == (2, "") and "mute" in done.err


@pytest.mark.parametrize("policy", ["never", "on-failure", "always"])
def test_14_2_restarts(desk: Desk, policy: str) -> None:
    """`restart.policy`: `never` | `on-failure` | `always` / 오류 복구: 프로세스 크래시 시 백오프 재시작"""
    desk.write(desk.shop(default=True, restart={"policy": policy, "maxRestarts": 3, "backoffMs": 10}))
    assert desk.remote("call-tool", "die").code == 2
    assert desk.remote("call-tool", "say", "--text", "x").code == (2 if policy == "never" else 0)


def test_14_3_daemon_start_warms_a_server(desk: Desk) -> None:
    """`daemon start [--server <id>]`: 지정 서버 세션(HTTP/STDIO)을 프리워밍. STDIO는 프로세스 스폰+init 수행"""
    desk.write(desk.shop())
    assert desk.remote("daemon", "start").code == 0
    done = desk.remote("daemon", "start", "--server", "shop")
    assert done.code == 0 and len(desk.noted("start")) == 1


def test_14_3_daemon_status_and_stop(desk: Desk) -> None:
    """`daemon stop [--server <id>|--all]` / `daemon status`"""
    desk.write(desk.shop())
    desk.remote("prewarm", "--server", "shop")
    status = desk.remote("daemon", "status", "--json").json
    pid = int(desk.noted("start")[0].split()[1])
    assert status["running"] and pid in [one["pid"] for one in status["servers"]]
    assert "shop" in desk.remote("daemon", "status").out
    assert desk.remote("daemon", "stop", "--server", "shop").code == 0
    wait_for_end(pid)
    before = desk.remote("daemon", "status", "--json").json["pid"]
    assert desk.remote("daemon", "stop", "--all").code == 0
    wait_for_end(before)
    assert desk.remote("daemon", "status", "--json").json["running"] is False
    assert desk.remote("daemon", "stop").code == 0


def test_14_3_prewarm(desk: Desk, team: Peer) -> None:
    """`prewarm --server <id>`: 툴 목록 선조회 및 세션 활성화(캐시/세션 준비)"""
    desk.write(desk.shop(), entry(team))
    done = desk.remote("prewarm", "--server", "shop")
    assert done.code == 0 and f"{len(TOOLS)} tools" in done.out
    assert desk.remote("prewarm", "--server", "prod-backend").code == 0
    asked = len(team.of("tools/list"))
    assert desk.remote("list-tools", "--server", "prod-backend").code == 0
    assert len(team.of("tools/list")) == asked


def test_14_4_a_refused_token_tells_what_to_do(desk: Desk, team: Peer) -> None:
    """오류 복구: 401/403 시 토큰 재주입 가이드"""
    desk.write(entry(team, default=True))
    done = desk.remote("list-tools", CREWX_MCP_KEY="an-old-key-of-mine")
    assert done.code == 2 and "hint:" in done.err and "an-old-key-of-mine" not in done.err
    assert desk.remote("list-tools").code == 0
