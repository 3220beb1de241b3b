"""Design 001, §7 to §9: tools of our own, the examples, what goes wrong, line by line.

The docstring of a test is the line of the design that it holds to.
"""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
from contextlib import closing

import pytest

from tests.support.installed_commands import KEY, Desk, entry
from tests.support.peer_server import Peer, peer

pytestmark = pytest.mark.local_mcp

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
        (("call-tool", "crewx_listAgents", "--params"), "--params needs a value"),
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
