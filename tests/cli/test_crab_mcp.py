"""The `crab-mcp` command: its words, its complaints, and what it loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from dari.cli.crab_mcp import main, make_parser
from dari.version import VERSION


def exit_code(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    return caught.value.code


def test_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"crab-mcp {VERSION}\n"


def test_help_teaches_every_option_by_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--help") == 0
    shown = capsys.readouterr().out
    options = ("transport", "http-bind", "http-port", "token-path", "socket", "daemon-path", "principal")
    for option in (*options, "ensure-daemon", "protocol", "tools", "run-dir", "log"):
        assert f"--{option}" in shown
    for word in ("3847", "127.0.0.1", "mcp.token", "examples:", "claude mcp add crab -- crab-mcp", "Bearer"):
        assert word in shown


def test_the_defaults_are_those_of_the_design() -> None:
    given = make_parser().parse_args([])
    assert (given.transport, given.http_bind, given.http_port) == ("stdio", "127.0.0.1", None)
    assert (given.principal, given.ensure_daemon, given.tools, given.protocol) == ("mcp", True, "all", "negotiate")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), True),
        (("--ensure-daemon",), True),
        (("--ensure-daemon=true",), True),
        (("--ensure-daemon=false",), False),
        (("--ensure-daemon", "False"), False),
    ],
)
def test_the_daemon_is_started_unless_it_is_refused(words: tuple[str, ...], expected: bool) -> None:
    assert make_parser().parse_args(words).ensure_daemon is expected


@pytest.mark.parametrize(
    "words",
    [
        ("--transport", "pigeon"),
        ("--http-port", "65536"),
        ("--ensure-daemon=maybe",),
        ("--principal", "root"),
        ("--tools", "some"),
        ("serve",),
    ],
)
def test_a_wrong_word_is_refused_with_2(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*words) == 2
    assert words[-1].removeprefix("--ensure-daemon=") in capsys.readouterr().err


HEAVY = ("cryptography", "httptools", "h2", "dari.proxy.engine.listener", "dari.proxy.runtime", "dari.proxy.ca")


def loaded_by(program: str) -> set[str]:
    """The modules that a program of ours has loaded when it is through."""
    told = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "DARI_UNMEASURED": "1"},
    )
    return set(json.loads(told.stdout.splitlines()[-1]))


def test_version_loads_nothing_of_ours_but_the_command() -> None:
    program = "from dari.cli.crab_mcp import main\ntry:\n    main(['--version'])\nexcept SystemExit:\n    pass"
    loaded = loaded_by(program)
    assert {name for name in loaded if name.startswith("dari")} == {
        "dari",
        "dari.cli",
        "dari.cli.crab_mcp",
        "dari.cli.kit",
        "dari.cli.kit.errors",
        "dari.cli.kit.program",
        "dari.cli.ports",
        "dari.version",
    }
    assert not {"asyncio", "msgspec", "logging"} & loaded


def test_the_tools_are_made_without_the_engine() -> None:
    program = (
        "from pathlib import Path\nfrom dari import app\nfrom dari.proxy.daemon import CrabPaths, crabd_client\n"
        "assert len(list(app.proxy_tools(crabd_client(CrabPaths(Path('nowhere')), 'mcp')))) > 60"
    )
    assert not set(HEAVY) & loaded_by(program)


def test_a_server_loads_the_proxy_only_when_tools_are_asked_for() -> None:
    program = (
        "from dari import app\nfrom dari.settings import ServeSettings\n"
        "from pathlib import Path\nserver = app.build(ServeSettings(token_path=Path('t'), socket_path=Path('s')))\n"
    )
    assert not {name for name in loaded_by(program) if name.startswith("dari.proxy")}
    assert "dari.proxy.tools.toolkit" in loaded_by(program + "server.registry.tools")
