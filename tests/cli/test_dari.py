"""The `dari` command: its words, its complaints, its exit codes."""

from __future__ import annotations

import pytest

from dari.cli.main import main
from dari.version import VERSION


def exit_code(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    return caught.value.code


def test_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"dari {VERSION}\n"


def test_help_names_every_command_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--help") == 0
    shown = capsys.readouterr().out
    for word in ("up", "mcp", "doctor", "examples:", "dari mcp --transport both"):
        assert word in shown


@pytest.mark.parametrize("command", ["up", "mcp"])
def test_help_of_a_serving_command_names_its_options_and_defaults(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(command, "--help") == 0
    shown = capsys.readouterr().out
    for word in ("--http-bind", "127.0.0.1", "--http-port", "3847", "--token-path", "--protocol", "strict"):
        assert word in shown


@pytest.mark.parametrize("words", [(), ("proxy",)])
def test_a_command_without_words_shows_its_help(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(words)) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(" ".join(("usage: dari", *words, "[-h]")))
    assert "examples:" in shown.out
    assert shown.err == ""


@pytest.mark.parametrize("words", [("har",), ("rules", "add"), ("set",)])
def test_half_a_command_shows_its_help_as_a_mistake(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["proxy", *words]) == 2
    assert capsys.readouterr().err.startswith(f"usage: dari proxy {' '.join(words)}")


@pytest.mark.parametrize("arguments", [("nothing",), ("mcp", "--transport", "carrier"), ("mcp", "--protocol", "x")])
def test_a_wrong_word_is_refused_with_2_and_names_the_right_ones(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*arguments) == 2
    shown = capsys.readouterr().err
    assert "must be one of" in shown and f"got {arguments[-1]!r}" in shown
    assert "\nhint: " in shown and "--help" in shown


@pytest.mark.parametrize("port", ["65536", "-1", "http", "1.5", "", "９", "9" * 5000])
def test_what_is_no_port_is_refused_by_value(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("up", f"--http-port={port}") == 2
    shown = capsys.readouterr().err
    assert "--http-port" in shown
    assert "port must be 0–65535" in shown
    assert len(shown) < 2000


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf", "fast"])
def test_what_is_no_rate_is_refused_by_value(rate: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("up", f"--rate-limit={rate}") == 2
    assert f"got '{rate}'" in capsys.readouterr().err
