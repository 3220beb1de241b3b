"""JSON: whole, inside other output, and by lines; pairs of keys and values."""

from __future__ import annotations

import msgspec
import pytest

from dari.terminal.output_parsers import parse_structured


def test_a_whole_document_is_its_value() -> None:
    parsed = parse_structured('{"a": [1, {"b": null}], "c": "가"}\n')
    assert (parsed.type, parsed.parser, parsed.value) == ("json", "json", {"a": [1, {"b": None}], "c": "가"})
    assert parsed.confidence > 0.95


def test_a_document_behind_noise_is_found() -> None:
    parsed = parse_structured('npm warn old lockfile\nfetching...\n{\n  "version": "1.2"\n}\n$ \n')
    assert parsed.type == "json" and parsed.value == {"version": "1.2"} and parsed.lines == [(3, 5)]
    assert 0.5 < parsed.confidence < 0.95 and "3 other lines" in parsed.notes[-1]


def test_a_document_after_text_on_its_line_is_found() -> None:
    parsed = parse_structured('result: {"ok": true}')
    assert parsed.value == {"ok": True} and "text before" in parsed.notes[0]


def test_lines_of_documents_are_items() -> None:
    parsed = parse_structured('{"level": "info", "n": 1}\n{"level": "warn", "n": 2}\n')
    assert parsed.type == "json_lines" and parsed.items == [{"level": "info", "n": 1}, {"level": "warn", "n": 2}]


def test_lines_of_documents_between_log_lines_are_items() -> None:
    parsed = parse_structured('starting\n{"n": 1}\n{"n": 2}\n{"n": 3}\n')
    assert parsed.type == "json_lines" and len(parsed.items or []) == 3 and parsed.lines == [(2, 4)]


def test_documents_one_after_the_other_are_items() -> None:
    parsed = parse_structured('{\n  "a": 1\n}\n{\n  "a": 2\n}\n')
    assert parsed.items == [{"a": 1}, {"a": 2}]


def test_a_progress_mark_in_brackets_is_no_document() -> None:
    assert parse_structured("[1/4] Resolving packages...\n[2/4] Fetching packages...\n").type == "text"
    assert parse_structured("step [1] of many\nstep [2] of many\n").type != "json"


def test_numbers_and_text_that_no_wire_carries_become_text() -> None:
    parsed = parse_structured('{"big": 123456789012345678901234567890, "bad": "\\ud800", "inf": 1e999}')
    assert parsed.value == {"big": "123456789012345678901234567890", "bad": "\\ud800", "inf": "inf"}
    assert msgspec.json.decode(msgspec.json.encode(parsed))


@pytest.mark.parametrize("depth", [101, 5000, 200_000])
def test_a_document_too_deep_to_pass_on_is_told_and_left(depth: int) -> None:
    parsed = parse_structured("[" * depth + "1" + "]" * depth)
    assert parsed.type == "text"


def test_pairs_are_one_object() -> None:
    parsed = parse_structured("Architecture:   x86_64\nCPU(s):         2\nModel name:     AMD EPYC\n")
    assert parsed.type == "key_value"
    assert parsed.value == {"Architecture": "x86_64", "CPU(s)": "2", "Model name": "AMD EPYC"}


def test_pairs_nest_by_indentation_and_repeat_as_lists() -> None:
    text = "Server:\n Version: 27.1\n Plugins:\n  Volume: local\n  Network: bridge\nTag: a\nTag: b\nName: c\n"
    assert parse_structured(text, hint="key_value").value == {
        "Server": {"Version": "27.1", "Plugins": {"Volume": "local", "Network": "bridge"}},
        "Tag": ["a", "b"],
        "Name": "c",
    }


def test_settings_with_an_equals_sign_are_pairs() -> None:
    assert parse_structured("SHELL=/bin/bash\nPATH=/usr/bin:/bin\nEMPTY=\n", command="env").value == {
        "SHELL": "/bin/bash",
        "PATH": "/usr/bin:/bin",
        "EMPTY": "",
    }


def test_headers_of_a_response_are_pairs_with_their_status() -> None:
    parsed = parse_structured("HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 12\n")
    assert parsed.value == {"status": "HTTP/1.1 200 OK", "Content-Type": "text/html", "Content-Length": "12"}


@pytest.mark.parametrize(
    "text",
    ["error: first thing\nerror: second thing\nhint: do this\n", "10:02:03: a\n10:02:04: b\n", "tar: x\ntar: y\n"],
)
def test_messages_and_logs_are_no_pairs(text: str) -> None:
    assert parse_structured(text).type == "text"
