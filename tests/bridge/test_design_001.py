"""Design 001, §4 to §9 and §14, line by line: the installed command, the daemon behind it, and real servers.

The docstring of a test is the line of the design that it holds to.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.bridge.children.households import wait_for_end
from tests.bridge.peer_server import Peer, peer
from tests.cli.remote.workshop import HANDLERS, TOOLS

WORKSHOP = Path(__file__).parent.parent / "cli/remote/workshop.py"
ROOT = Path(__file__).parent.parent.parent
KEY = "k3y-of-the-team-0123456789"


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Desk:
    """A person with a home and a project, and the commands as processes."""

    def __init__(self, root: Path, dari_home: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
        self.user_file = self.home / ".config/crewx/mcp.json"
        self.project_file = self.project / ".crewx/mcp.json"
        for folder in (self.user_file.parent, self.project_file.parent):
            folder.mkdir(parents=True)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "DARI_HOME": str(dari_home),
            "PYTHONPATH": str(ROOT),
            "CREWX_MCP_KEY": KEY,
        }
        self.log = root / "shop.log"

    def write(self, *servers: dict[str, Any], file: Path | None = None, **top: Any) -> None:
        path = file or self.user_file
        path.write_text(json.dumps({"version": "1", "servers": servers, **top}))
        path.chmod(0o600)

    def shop(self, id: str = "shop", **fields: Any) -> dict[str, Any]:
        """A local server with a tool for everything."""
        env = {"WORKSHOP_LOG": str(self.log), **fields.pop("env", {})}
        return {"id": id, "kind": "stdio", "command": sys.executable, "args": [str(WORKSHOP)], "env": env, **fields}

    def noted(self, start: str) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(start)]

    def remote(self, *words: str, **environ: str) -> Done:
        """`crewx mcp remote …`"""
        return self.crewx("mcp", "remote", *words, **environ)

    def crewx(self, *words: str, **environ: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "dari.cli.crewx", *words],
            cwd=self.project,
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=40,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="module")
def dari_home() -> Iterator[Path]:
    """One daemon for all tests of this file, ended with them. Sockets want short paths."""
    folder = Path(tempfile.mkdtemp(prefix="d001-"))
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "DARI_HOME": str(folder), "PYTHONPATH": str(ROOT)}
    yield folder
    stop = [sys.executable, "-m", "dari.cli.crewx", "mcp", "remote", "daemon", "stop"]
    subprocess.run(stop, env=environ, capture_output=True, timeout=40)
    shutil.rmtree(folder)


@pytest.fixture
def desk(tmp_path: Path, dari_home: Path) -> Desk:
    return Desk(tmp_path, dari_home)


@pytest.fixture
def team() -> Iterator[Peer]:
    with peer(token=KEY) as one:
        yield one


def entry(one: Peer, id: str = "prod-backend", **fields: Any) -> dict[str, Any]:
    return {"id": id, "baseUrl": one.url, "apiKey": "${CREWX_MCP_KEY}", **fields}


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
            assert process.wait(20) == 4 and process.stdout.read() == b""
        finally:
            if process.poll() is None:
                process.kill()
    assert "yes" in desk.remote("call-tool", "cancelled").out, "the server was told"


# §5 mcp.json


def test_5_places_of_the_file(desk: Desk) -> None:
    """파일 경로 해석(우선순위) 1. 환경변수 `CREWX_MCP_JSON` 2. `./.crewx/mcp.json` 3. `~/.config/crewx/mcp.json`"""
    named = desk.home / "named.json"
    for file, tag in ((named, "env"), (desk.project_file, "project"), (desk.user_file, "user")):
        both = {"id": "same", "baseUrl": f"https://{tag}.example.com"}
        desk.write(both, {"id": f"only-{tag}", "baseUrl": "https://x.example.com"}, file=file)
    assert desk.remote("trust", "--yes").code == 0

    def urls(**environ: str) -> dict[str, str]:
        return {one["id"]: one["url"] for one in desk.remote("servers", "--json", **environ).json}

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
    (one,) = done.json
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
    assert [one["default"] for one in desk.remote("servers", "--json").json] == [False, True]


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


# §7 호환


def test_7_the_tools_of_our_own(desk: Desk, team: Peer) -> None:
    """유지: `crewx mcp call_tool`, `crewx mcp list_tools` (내부 등록 툴) / 추가: `crewx mcp remote ...`"""
    desk.write(entry(team, default=True))
    own = desk.crewx("mcp", "list_tools", "--json").json
    assert {tool["server"] for tool in own} == {"dari"} and team.seen == []
    assert desk.crewx("mcp", "call_tool", "dari_ping", "--params", "{}").code == 0
    assert desk.crewx("mcp", "call_tool", "crewx_listAgents").code == 1


# §8 예시


@pytest.mark.parametrize(
    "example",
    [
        "crewx mcp remote servers --json",
        "crewx mcp remote list-tools --server prod-backend",
        'crewx mcp remote list-tools --endpoint http://127.0.0.1:9001 --key "$CREWX_MCP_KEY"',
        "crewx mcp remote call-tool crewx_listAgents --server prod-backend",
        "crewx mcp remote call-tool crewx_queryAgent \\\n"
        '  --endpoint http://localhost:9001 --key "$CREWX_MCP_KEY" \\\n'
        """  --params '{"agentId":"frontend","query":"lint rules"}' --raw""",
    ],
)
def test_8_examples(desk: Desk, team: Peer, example: str) -> None:
    """§8: the examples as they stand, typed into a shell."""
    desk.write(entry(team))
    script = desk.home / "bin"
    script.mkdir()
    (script / "crewx").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dari.cli.crewx "$@"\n')
    (script / "crewx").chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", example.replace("9001", team.url.rpartition(":")[2])],
        env={**desk.environ, "PATH": f"{script}:{desk.environ['PATH']}"},
        cwd=desk.project,
        capture_output=True,
        timeout=40,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if "--raw" in example:
        assert json.loads(done.stdout)["agent"] == "frontend"


# §9 오류


@pytest.mark.parametrize(
    "words, said",
    [
        (("call-tool",), "TOOL"),
        (("call-tool", "crewx_listAgents", "--params"), "expected one argument"),
        (("call-tool", "crewx_listAgents", "--params", "{"), "line 1, column 2"),
        (("call-tool", "crewx_listAgents", "--params", "[]"), "must be an object"),
        (("call-tool", "crewx_listAgent"), "did you mean crewx_listAgents?"),
    ],
)
def test_9_validation(desk: Desk, team: Peer, words: tuple[str, ...], said: str) -> None:
    """검증 오류(코드 1): 누락 인자, 잘못된 JSON(`--params`는 객체여야 함)"""
    desk.write(entry(team, default=True))
    done = desk.remote(*words)
    assert (done.code, done.out) == (1, "") and said in done.err


def test_9_connections(desk: Desk) -> None:
    """연결 오류(코드 2): DNS/연결 실패, 인증 실패(401/403), 서버오류(5xx), 타임아웃"""
    with closing(socket.socket()) as unused, closing(socket.socket()) as silent:
        unused.bind(("127.0.0.1", 0))
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        refusing, mute = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in (unused, silent))
        for url in ("http://name.invalid", refusing, mute):
            done = desk.remote("call-tool", "x", "--endpoint", url, "--timeout", "1000")
            assert (done.code, done.out) == (2, "") and "error:" in done.err
    for status in (401, 403, 502):
        with peer(status=status) as broken:
            assert desk.remote("call-tool", "x", "--endpoint", broken.url).code == 2


def test_9_errors_of_tools(desk: Desk, team: Peer) -> None:
    """툴 오류(코드 3): JSON-RPC `error` 필드 포함 시 원문 전달 + 요약"""
    desk.write(entry(team, default=True))
    done = desk.remote("call-tool", "crewx_listAgents", "--fails", "true")
    assert (done.code, done.out) == (3, "")
    assert '{"error":{"code":-32050,"message":"no agents today","data":{"why":"holiday"}}}' in done.err
    assert "error: the server answered: no agents today" in done.err


def test_9_log(desk: Desk, team: Peer) -> None:
    """로깅: 기본 최소, `--log` 시 메서드/URL/지연시간을 stderr로. 비밀값 마스킹"""
    desk.write(entry(team, default=True))
    done = desk.remote("call-tool", "crewx_listAgents", "--log")
    assert f"tools/call crewx_listAgents · POST {team.url}/mcp" in done.err
    assert " ms" in done.err and KEY not in done.err
    assert desk.remote("call-tool", "crewx_listAgents").err == ""


# §14 세션/프로세스


def test_14_1_kinds(desk: Desk, team: Peer) -> None:
    """`kind`: `http` | `stdio` (기본값 `http`)"""
    desk.write({"id": "plain", "baseUrl": team.url}, {"id": "said", "kind": "http", "baseUrl": team.url}, desk.shop())
    assert [one["kind"] for one in desk.remote("servers", "--json").json] == ["http", "http", "stdio"]


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
    assert done.err == "" and [one["state"] for one in done.json] == ["ready", "ready"]
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
