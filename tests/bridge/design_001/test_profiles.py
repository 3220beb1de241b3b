"""Design 001, §5 and §6: the file, and which server is meant, line by line.

The docstring of a test is the line of the design that it holds to.
"""

from __future__ import annotations

import json

import pytest

from tests.support.installed_commands import KEY, Desk, entry
from tests.support.peer_server import Peer, peer

pytestmark = pytest.mark.local_mcp

# §5 mcp.json


def test_5_places_of_the_file(desk: Desk) -> None:
    """파일 경로 해석(우선순위) 1. 환경변수 `CREWX_MCP_JSON` 2. `./.crewx/mcp.json` 3. `~/.config/crewx/mcp.json`"""
    named = desk.home / "named.json"
    for file, tag in ((named, "env"), (desk.project_file, "project"), (desk.user_file, "user")):
        both = {"id": "same", "baseUrl": f"https://{tag}.example.com"}
        desk.write(both, {"id": f"only-{tag}", "baseUrl": "https://x.example.com"}, file=file)
    assert desk.remote("trust", "--yes").code == 0

    def urls(**environ: str) -> dict[str, str]:
        return {one["id"]: one["url"] for one in desk.remote("servers", "--json", **environ).json if "url" in one}

    found = urls(CREWX_MCP_JSON=str(named))
    assert "env.example.com" in found["same"] and set(found) == {"same", "only-env", "only-project", "only-user"}
    assert "project.example.com" in urls()["same"]
    desk.project_file.unlink()
    assert "user.example.com" in urls()["same"]


SECTION_5 = """
{
  "$schema": "https://example.com/schemas/crewx.mcp.json",
  "version": "1",
  "servers": [
    {
      "id": "prod-backend",
      "baseUrl": "https://mcp.example.com:3000",
      "apiKey": "${CREWX_MCP_KEY}",
      "headers": { "User-Agent": "CrewX/1.0" },
      "timeoutMs": 300000,
      "default": true
    }
  ]
}
"""


def test_5_the_example(desk: Desk) -> None:
    """스키마(초안)"""
    desk.user_file.write_text(SECTION_5)
    desk.user_file.chmod(0o600)
    done = desk.remote("servers", "--json")
    one, _ = done.json  # the other is built in
    assert done.err == "" and KEY not in done.out
    assert (one["id"], one["state"], one["timeoutMs"], one["default"]) == ("prod-backend", "ready", 300000, True)
    assert "mcp.example.com:3000" in one["url"] and one["source"]["line"] == 6


@pytest.mark.parametrize("absent, said", [("id", "id"), ("baseUrl", "baseUrl")])
def test_5_required_fields(desk: Desk, absent: str, said: str) -> None:
    """`servers[].id`(필수): 고유 식별자 / `servers[].baseUrl`(필수): MCP HTTP 엔드포인트 베이스 URL"""
    one = {"id": "x", "baseUrl": "https://x.example.com"}
    del one[absent]
    desk.write(one)
    done = desk.remote("servers")
    assert done.code == 0 and said in done.err and f"{desk.user_file}:1" in done.err


def test_5_api_key_and_headers_take_variables(desk: Desk, team: Peer) -> None:
    """`apiKey`(선택): Bearer 토큰(리터럴 또는 `${ENV}` 치환 지원)

    `headers`(선택): 추가 헤더 맵(민감값 ENV 치환 허용)
    """
    desk.write(entry(team, headers={"X-Trace": "${TRACE}", "User-Agent": "CrewX/1.0"}, default=True))
    assert desk.remote("list-tools", TRACE="t-123").code == 0
    headers = team.of("tools/list")[-1].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["x-trace"] == "t-123" and headers["user-agent"] == "CrewX/1.0"
    desk.write({"id": "literal", "baseUrl": team.url, "apiKey": KEY})
    assert desk.remote("list-tools", "--server", "literal").code == 0


def test_5_a_variable_that_is_not_set(desk: Desk, team: Peer) -> None:
    """`${ENV}` 토큰을 환경변수로 치환하여 비밀값을 코드/파일에 직접 저장하지 않도록 한다."""
    desk.write(entry(team, apiKey="${NOT_SET_ANYWHERE}", default=True))
    done = desk.remote("list-tools")
    assert (done.code, done.out) == (1, "") and "NOT_SET_ANYWHERE" in done.err
    assert team.seen == []


def test_5_the_default_timeout(desk: Desk) -> None:
    """`servers[].timeoutMs`(선택): 요청 타임아웃(ms), 기본 15000"""
    desk.write({"id": "x", "baseUrl": "https://x.example.com"})
    assert desk.remote("servers", "--json").json[0]["timeoutMs"] == 15000


def test_5_the_last_default_wins(desk: Desk) -> None:
    """`servers[].default`(선택): 기본 선택 여부(단일 또는 마지막 true 우선)"""
    desk.write(*({"id": id, "baseUrl": "https://x.example.com", "default": True} for id in ("a", "b")))
    assert [one["default"] for one in desk.remote("servers", "--json").json][:2] == [False, True]


def test_5_logs_mask_secrets(desk: Desk, team: Peer) -> None:
    """로그에 토큰/민감 헤더값은 마스킹 처리한다."""
    desk.write(entry(team, headers={"X-Secret-Key": "hidden-value-1"}, default=True))
    for words in (("list-tools", "--log", "--refresh"), ("servers",), ("servers", "--json")):
        done = desk.remote(*words)
        assert done.code == 0 and KEY not in done.out + done.err and "hidden-value-1" not in done.out + done.err


# §6 동작 규칙


def test_6_the_named_server_is_used(desk: Desk, team: Peer) -> None:
    """`--server <id>`가 있으면 해당 프로필 사용"""
    desk.write(desk.shop(default=True), entry(team))
    assert {tool["server"] for tool in desk.remote("list-tools", "--server", "prod-backend", "--json").json} == {
        "prod-backend"
    }


def test_6_else_the_default(desk: Desk, team: Peer) -> None:
    """없다면 `default:true` 프로필 사용"""
    desk.write(entry(team), desk.shop(default=True))
    assert desk.remote("list-tools", "--json").json[0]["server"] == "shop"


def test_6_else_an_endpoint_is_needed(desk: Desk, team: Peer) -> None:
    """둘 다 없으면 `--endpoint <url>`이 필수"""
    desk.write(entry(team))
    done = desk.remote("list-tools")
    assert (done.code, done.out) == (1, "") and "--endpoint" in done.err
    assert desk.remote("list-tools", "--endpoint", team.url, "--key", KEY).code == 0


def test_6_the_line_wins_over_the_profile(desk: Desk, team: Peer) -> None:
    """우선순위: CLI 인자(`--key`, `--header`) > 프로필 설정 > 없음"""
    desk.write(entry(team, apiKey="wrong-key-of-the-profile", headers={"X-Team": "profile", "X-Kept": "yes"}))
    assert desk.remote("list-tools", "--server", "prod-backend").code == 2
    done = desk.remote("list-tools", "--server", "prod-backend", "--key", KEY, "--header", "x-team: line")
    headers = team.of("tools/list")[-1].headers
    assert done.code == 0 and headers["authorization"] == f"Bearer {KEY}"
    assert headers["x-team"] == "line" and headers["x-kept"] == "yes"
    with peer() as free:
        assert desk.remote("list-tools", "--endpoint", free.url).code == 0
        assert "authorization" not in free.of("tools/list")[-1].headers


def test_6_bearer_and_other_headers(desk: Desk, team: Peer) -> None:
    """Authorization: `Bearer <token>` 규칙 사용(커스텀 헤더도 병행 가능)"""
    done = desk.remote("list-tools", "--endpoint", team.url, "--key", KEY, "--header", "X-Key: other")
    headers = team.of("tools/list")[-1].headers
    assert done.code == 0 and (headers["authorization"], headers["x-key"]) == (f"Bearer {KEY}", "other")


def test_6_methods_of_json_rpc(desk: Desk, team: Peer) -> None:
    """목록: `tools/list` / 호출: `tools/call` with `{ name, arguments }`"""
    desk.write(entry(team, default=True))
    desk.remote("call-tool", "crewx_queryAgent", "--agentId", "a", "--query", "q")
    assert team.of("tools/list")
    (call,) = team.of("tools/call")
    assert (call.params["name"], call.params["arguments"]) == ("crewx_queryAgent", {"agentId": "a", "query": "q"})


def test_6_time_runs_out(desk: Desk) -> None:
    """타임아웃: `timeoutMs` 적용, 초과 시 종료 코드 `2`"""
    desk.write(desk.shop(default=True, timeoutMs=300), desk.shop("other"))
    assert desk.remote("call-tool", "hang").code == 2
    assert desk.remote("call-tool", "other/hang", "--timeout", "300").code == 2


def test_6_results_are_passed_on_as_they_are(desk: Desk, team: Peer) -> None:
    """결과 출력은 서버 응답 그대로 전달(가공 최소화)"""
    desk.write(entry(team, default=True))
    assert (
        desk.remote("call-tool", "crewx_listAgents", "--raw").out
        == json.dumps(team.tools["crewx_listAgents"]({})) + "\n"
    )
