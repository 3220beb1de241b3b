"""Design 001 §15 and §16 (`crewx-tools`) line by line, with the installed commands.

Each test names the line that it holds crewx-tools to.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from mcp import Client as SdkClient
from mcp import StdioServerParameters, stdio_client

from dari.mcp.client import Client
from dari.mcp.client.results import CallResult
from dari.transport.client.child import ChildChannel
from tests.support.wire import call, initialize

pytestmark = pytest.mark.e2e

BIN = Path(sys.executable).parent
TOOLS = {
    f"crewx_tools_{name}"
    for name in (
        *("search", "symbols", "outline", "diff", "format", "lint", "test", "check", "refactor", "undo", "listAgents"),
    )
}
Json = dict[str, Any]
TESTS = "def test_one():\n    assert 1\n\n\ndef test_two():\n    assert 0, 'no'\n"
UGLY = "x = {  'a':1 }\n\n\n\n\ndef  f( ) :\n    return x\n"


class Place:
    """A repository in an empty home, and the commands run in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.repo = root / "repo"
        (self.repo / "src").mkdir(parents=True)
        (self.repo / "src/app.py").write_text(UGLY)
        (self.repo / "tests").mkdir()
        (self.repo / "tests/test_app.py").write_text(
            "def test_one():\n    assert 1\n\n\ndef test_two():\n    assert 0, 'no'\n"
        )
        self.environ = {
            "HOME": str(root / "home"),
            "DARI_HOME": str(root / "dari"),
            "XDG_RUNTIME_DIR": str(root / "run"),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        for name in ("home", "run"):
            (root / name).mkdir(mode=0o700)
        self._run("git", "init", "-q")
        self._run("git", "add", ".")
        self._run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first")

    def _run(self, *words: str) -> None:
        subprocess.run(words, cwd=self.repo, env=self.environ, check=True)

    def shell(self, *words: str, code: int = 0) -> str:
        """What a command prints on stdout; `code` is the exit code it must have."""
        done = subprocess.run(
            [str(BIN / words[0]), *words[1:]],
            cwd=self.repo,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=80,
            check=False,
        )
        assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout.decode()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        channel = ChildChannel((str(BIN / "crewx-tools"), "serve"), env=self.environ, cwd=self.repo)
        async with asyncio.timeout(80), Client(channel) as client:
            yield client


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.shell("crewx", "mcp", "remote", "daemon", "stop", "--json")


@contextmanager
def raw_server(place: Place, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [str(BIN / "crewx-tools"), "serve", *words],
        cwd=place.repo,
        env=place.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def framed(message: Json) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def calling(name: str, given: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": given}}


def read_framed(stream: Any) -> Json:
    header = stream.readline()
    assert header.startswith(b"Content-Length: "), header
    assert stream.readline() == b"\r\n"
    answer: Json = json.loads(stream.read(int(header.split(b":")[1])))
    return answer


# §15.1 "JSON-RPC + LSP 프레이밍(Content-Length)", §15.5 "멀티청크 파싱"
def test_content_length_framing_in_small_pieces(place: Place) -> None:
    with raw_server(place) as server:
        assert server.stdin is not None and server.stdout is not None
        for byte in framed(initialize()) + framed({"jsonrpc": "2.0", "method": "notifications/initialized"}):
            server.stdin.write(bytes([byte]))
            server.stdin.flush()
        assert read_framed(server.stdout)["id"] == "init"
        server.stdin.write(framed(call("crewx_tools_listAgents", 2)))
        server.stdin.flush()
        assert read_framed(server.stdout)["result"]["structuredContent"]["count"] == 3


# §15.1 "initialize → initialized 응답 후 tools/list 가능"
async def test_tools_are_listed_after_the_handshake(place: Place) -> None:
    async with place.client() as client:
        assert {tool.name for tool in await client.list_tools()} == TOOLS


# §15.1 "종료: shutdown → exit 준수"
@pytest.mark.parametrize("framing", ["lines", "content-length"])
def test_shutdown_is_answered_and_exit_ends_the_server(place: Place, framing: str) -> None:
    with raw_server(place) as server:
        messages = [
            initialize(),
            {"jsonrpc": "2.0", "id": 2, "method": "shutdown"},
            {"jsonrpc": "2.0", "method": "exit"},
        ]
        wrap = framed if framing == "content-length" else lambda one: json.dumps(one).encode() + b"\n"
        assert server.stdin is not None
        server.stdin.write(b"".join(map(wrap, messages)))
        server.stdin.flush()  # stdin stays open: exit alone must end it
        assert server.stdout is not None
        output = server.stdout.read()
        assert server.wait(60) == 0
        assert b'"id":2,"result":null' in output


# §15.1 "표준에러(stderr) 사용, 표준출력(stdout)은 프로토콜 전용"
def test_stdout_carries_the_protocol_alone(place: Place) -> None:
    lines = [initialize(), call("crewx_tools_test", 2, targets=["tests"]), call("crewx_tools_listAgents", 3)]
    with raw_server(place, "--log", "debug") as server:
        assert server.stdin is not None and server.stdout is not None and server.stderr is not None
        server.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        server.stdin.flush()
        waited: set[Any] = {"init", 2, 3}
        while waited:
            waited.discard(json.loads(server.stdout.readline()).get("id"))
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "exit"}).encode() + b"\n")
        server.stdin.flush()
        assert server.stdout.read() == b"" and b"transport=stdio" in server.stderr.read()


# §15.2 "각 툴은 … name, description, input_schema/output_schema(JSON Schema)", "툴 접두사 crewx_tools_"
async def test_every_tool_has_a_description_and_both_schemas(place: Place) -> None:
    words = StdioServerParameters(
        command=str(BIN / "crewx-tools"), args=["serve"], env=place.environ, cwd=str(place.repo)
    )
    async with asyncio.timeout(80), SdkClient(stdio_client(words)) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        for tool in tools:
            assert tool.description and tool.input_schema["type"] == "object" and tool.output_schema is not None
            for name, schema in tool.input_schema["properties"].items():
                assert schema.get("description"), f"{tool.name}.{name} has no description"
        assert client.server_info is None or client.server_info.name == "crewxtools"


# §15.3: the profile of the design, as it is written there
def test_the_profile_of_the_design_works(place: Place) -> None:
    profile = {
        "servers": [
            {
                "id": "crewx-tools",
                "kind": "stdio",
                "command": "crewx-tools",
                "args": ["serve"],
                "cwd": "${PWD}",
                "env": {"CREWX_ENV": "dev"},
                "initTimeoutMs": 10000,
                "idleExitMs": 300000,
                "restart": {"policy": "on-failure", "maxRestarts": 3, "backoffMs": 2000},
            }
        ]
    }
    file = place.root / "home/.config/crewx/mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(profile))
    place.environ["PWD"] = str(place.repo)
    (listed,) = json.loads(place.shell("crewx", "mcp", "remote", "servers", "--json"))
    assert (listed["id"], listed["source"]["layer"]) == ("crewx-tools", "user")
    tools = json.loads(place.shell("crewx", "mcp", "remote", "list-tools", "--server", "crewx-tools", "--json"))
    assert {tool["name"] for tool in tools} == TOOLS


# §15.4 "crewx mcp remote list-tools --server crewx-tools", from a checkout with no configuration
def test_the_commands_of_the_design_work_without_configuration(place: Place) -> None:
    listed = place.shell("crewx", "mcp", "remote", "list-tools", "--server", "crewx-tools")
    assert "crewx-tools/crewx_tools_format" in listed  # §16.2: the server is shown with each tool
    (server,) = json.loads(place.shell("crewx", "mcp", "remote", "servers", "--json"))
    assert (server["id"], server["source"]["layer"]) == ("crewx-tools", "built-in")
    # §15.4 "call-tool crewx_tools_format --params '{"paths":["src/**/*.ts"],"style":"project"}'"
    result = json.loads(
        place.shell(
            *("crewx", "mcp", "remote", "call-tool", "crewx_tools_format", "--server", "crewx-tools", "--raw"),
            *("--params", '{"paths":["src/**/*.py"],"style":"project"}'),
        )
    )
    (changed,) = result["structuredContent"]["changed"]
    assert changed["path"] == "src/app.py" and "+x = {" in changed["diff"]
    assert (place.repo / "src/app.py").read_text() == UGLY, "dryRun is true unless said otherwise"


# §16.2 "crewx mcp list_tools … 기본 MCP 서버 전용"
def test_the_built_in_list_does_not_show_these_tools(place: Place) -> None:
    tools = json.loads(place.shell("crewx", "mcp", "list_tools", "--json"))
    assert tools and not [tool["name"] for tool in tools if tool["name"].startswith("crewx_tools_")]
    place.shell("crewx", "mcp", "call_tool", "crewx_tools_listAgents", code=1)


# §16.4 "serverId/toolName 형태 명시"
def test_a_tool_is_addressed_by_server_and_name(place: Place) -> None:
    told = place.shell("crewx", "mcp", "remote", "call-tool", "crewx-tools/crewx_tools_listAgents", "--raw")
    assert json.loads(told)["structuredContent"]["count"] == 3


# §16.6 "crewx tool fmt → remote call-tool crewx_tools_format"
def test_the_short_commands_do_the_same(place: Place) -> None:
    long = json.loads(place.shell("crewx-tools", "format", "src", "--json"))
    assert json.loads(place.shell("crewx", "tool", "fmt", "src", "--json")) == long
    written = json.loads(place.shell("crewx", "tool", "fmt", "src", "--write", "--json"))
    assert written["applied"] and (place.repo / "src/app.py").read_text() != UGLY
    place.shell("crewx", "tool", "undo", written["undoToken"])
    assert (place.repo / "src/app.py").read_text() == UGLY


CALLS: list[tuple[str, Json, list[str]]] = [
    ("crewx_tools_search", {"pattern": "def "}, ["search", "def "]),
    ("crewx_tools_outline", {"paths": ["src/app.py"]}, ["outline", "src/app.py"]),
    ("crewx_tools_symbols", {"name": "f"}, ["symbols", "f"]),
    ("crewx_tools_format", {"paths": ["src"]}, ["format", "src"]),
    ("crewx_tools_lint", {"paths": ["src"]}, ["lint", "src"]),
    ("crewx_tools_test", {"targets": ["tests"]}, ["test", "tests"]),
    (
        "crewx_tools_refactor",
        {"op": "organizeImports", "paths": ["src"]},
        ["refactor", "organizeImports", "--paths", "src"],
    ),
    ("crewx_tools_listAgents", {}, ["list-agents"]),
    ("crewx_tools_diff", {}, ["diff"]),
    ("crewx_tools_check", {"paths": ["src"]}, ["check", "src"]),
]


# Every tool over stdio in both framings, the hub and the CLI, with equal results
async def test_every_way_gives_the_same_result(place: Place) -> None:
    async with place.client() as client:
        over_stdio = {name: await client.call_tool(name, given) for name, given, _ in CALLS}
        schemas = {tool.name: tool.output_schema for tool in await client.list_tools()}
    hub = ChildChannel((str(BIN / "dari"), "mcp"), env=place.environ, cwd=place.repo)
    async with asyncio.timeout(80), Client(hub) as client:
        over_hub = {name: await client.call_tool(name, given) for name, given, _ in CALLS}
    for name, given, words in CALLS:
        expected = _timeless(_structured(over_stdio[name]))
        jsonschema_rs.Draft202012Validator(schemas[name]).validate(_structured(over_stdio[name]))
        assert _timeless(_structured(over_hub[name])) == expected, name
        code = 3 if _has_faults(expected) else 0
        assert _timeless(json.loads(place.shell("crewx-tools", *words, "--json", code=code))) == expected, name
        with raw_server(place) as server:
            assert server.stdin is not None and server.stdout is not None
            server.stdin.write(framed(initialize()) + framed(calling(name, given)))
            server.stdin.flush()
            answers = [read_framed(server.stdout), read_framed(server.stdout)]
            answer = next(one for one in answers if one["id"] == 2)
            assert _timeless(answer["result"]["structuredContent"]) == expected, name


def _structured(result: CallResult) -> Json:
    assert not result.is_error, result.content
    structured: Json = json.loads(json.dumps(msgspec.to_builtins(result.structured_content)))
    return structured


def _has_faults(value: Any) -> bool:
    return bool(value.get("failed") or value.get("diagnostics") or value.get("ok") is False)


def _timeless(value: Any) -> Any:
    """The result without how long it took."""
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in value.items() if key not in ("ms", "durationMs", "slowest")}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


# §15.5 "견고성: 큰 payload, 연속 호출, 크래시 후 재시작"
async def test_large_arguments_and_many_calls_in_a_row(place: Place) -> None:
    async with place.client() as client:
        for _ in range(30):
            await client.call_tool("crewx_tools_listAgents", {})
        result = await client.call_tool("crewx_tools_search", {"pattern": "x" * 500_000})
        assert result is not None


def test_after_a_crash_the_next_call_starts_it_again(place: Place) -> None:
    words = ("crewx", "mcp", "remote", "call-tool", "crewx_tools_listAgents", "--server", "crewx-tools", "--raw")
    place.shell(*words)
    status = json.loads(place.shell("crewx", "mcp", "remote", "daemon", "status", "--json"))
    (pid,) = [one["pid"] for one in status["servers"] if one["id"] == "crewx-tools"]
    os.kill(pid, 9)
    assert json.loads(place.shell(*words))["structuredContent"]["count"] == 3


# §15.5 "보안: 외부 명령 실행 시 입력 검증/경로 정규화"
@pytest.mark.parametrize("path", ["../outside.py", "/etc/passwd", "src/../../outside.py"])
def test_a_path_outside_is_refused_with_the_roots(place: Place, path: str) -> None:
    (place.root / "outside.py").write_text("x=1")
    told = place.shell(
        *("crewx", "mcp", "remote", "call-tool", "crewx_tools_format", "--server", "crewx-tools", "--raw"),
        *("--params", json.dumps({"paths": [path]})),
        code=3,
    )
    assert "outside of the workspace" in told and str(place.repo) in told


# Design 001 §7 and the issue: nothing is listed twice in the gateway
async def test_the_hub_lists_the_tools_once(place: Place) -> None:
    file = place.root / "home/.config/crewx/mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(
        json.dumps({"servers": [{"id": "mine", "kind": "stdio", "command": "crewx-tools", "args": ["serve"]}]})
    )
    channel = ChildChannel((str(BIN / "dari"), "mcp"), env=place.environ, cwd=place.repo)
    async with asyncio.timeout(80), Client(channel) as client:
        names = [tool.name for tool in await client.list_tools()]
    assert len([name for name in names if name.endswith("crewx_tools_search")]) == 1
