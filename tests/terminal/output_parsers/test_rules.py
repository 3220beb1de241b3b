"""The data files of the intents: readable, consistent, cheap to match, and found by the samples."""

from __future__ import annotations

import re

import msgspec
import pytest

from dari.terminal.output_parsers.intent_rules import RULES, IntentRules, compiled, load_rules, read_rules
from dari.terminal.output_parsers.intents import fill
from dari.terminal.output_parsers.registry import parse_structured
from tests.terminal.output_parsers.labelled import all_samples

INTENTS = load_rules()
NAMES = [intent.name for intent in INTENTS]
REQUIRED = [
    *("test_failure", "tests_passed", "build_error", "lint_error", "syntax_error", "runtime_error", "dependency_error"),
    *("missing_command", "missing_file", "permission_denied", "disk_full", "out_of_memory"),
    *("port_in_use", "network_error", "auth_error", "merge_conflict", "version_control"),
    *("prompt_waiting", "server_started", "long_running", "success", "unknown"),
    *("usage_error", "timed_out", "interrupted"),
]


def test_every_intent_is_there_once() -> None:
    assert sorted(NAMES) == sorted(REQUIRED)


def test_every_file_is_read() -> None:
    assert sum(len(read_rules(path.read_text("utf-8"))) for path in RULES.glob("*.toml")) == len(INTENTS)


@pytest.mark.parametrize("intent", INTENTS, ids=NAMES)
def test_rules_are_named_once_weighed_and_say_something(intent: IntentRules) -> None:
    ids = [rule.id for rule in intent.rule]
    assert len(ids) == len(set(ids)) and intent.about.endswith(".")
    for rule in intent.rule:
        assert 0 < rule.weight < 1, rule.id
        assert rule.pattern or rule.command or rule.codes or rule.exit != "any", rule.id
    for factor in (intent.exit.ok, intent.exit.failed, intent.exit.running, intent.exit.shown):
        assert 0 <= factor <= 1


@pytest.mark.parametrize("intent", INTENTS, ids=NAMES)
def test_every_pattern_compiles_and_matches_no_empty_text(intent: IntentRules) -> None:
    for pattern in (*(rule.pattern for rule in intent.rule), *(rule.command for rule in intent.rule)):
        if pattern:
            assert not compiled(pattern).search("") or "^$" in pattern, pattern
    for extract in intent.extract:
        assert compiled(extract.pattern).groups >= 1, extract.pattern
    for entry in intent.suggest:
        for pattern in (entry.when, *entry.given.values()):
            re.compile(pattern)


@pytest.mark.parametrize("intent", INTENTS, ids=NAMES)
def test_every_suggestion_asks_for_facts_that_exist(intent: IntentRules) -> None:
    from_readers = {
        *("failed_tests", "framework", "test_pattern", "path", "line", "files", "tool", "code", "error", "message"),
        *("conflicting_files", "changed_files", "untracked_files", "branch", "upstream", "error_summary"),
    }
    facts = {extract.name for extract in intent.extract} | {name for rule in intent.rule for name in rule.says}
    facts |= from_readers if intent.reader else set()
    facts |= {"name", "parent"} if "path" in facts else set()
    for entry in intent.suggest:
        wanted = set(re.findall(r"\{\*?(\w+)\}", entry.run)) | set(entry.given)
        assert wanted <= facts, (entry.run, wanted - facts)


def test_a_reader_is_a_type_that_the_parsers_know() -> None:
    for intent in INTENTS:
        if intent.reader:
            notes = parse_structured("x", hint=intent.reader).notes
            assert "found nothing" in notes[0], intent.name


@pytest.mark.parametrize(
    "text",
    [
        '[[intent]]\nname = "a"\nabout = "b"\nrules = []',
        '[[intent]]\nname = "a"\nabout = "b"\nrule = [{ id = "x", weight = "heavy" }]',
        '[[intent]]\nname = "a"\nabout = "b"\nrule = [{ id = "x", weight = 0.5, where = "middle" }]',
        '[[intent]]\nabout = "b"',
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_place(text: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="intent"):
        read_rules(text)


@pytest.mark.parametrize("name", [name for name in REQUIRED if name not in ("success", "unknown", "long_running")])
def test_the_samples_use_several_rules_of_each_intent(name: str) -> None:
    intent = next(intent for intent in INTENTS if intent.name == name)
    used = {
        rule.id
        for rule in intent.rule
        for sample in all_samples()
        if (rule.pattern and compiled(rule.pattern).search(sample.output))
        or (not rule.pattern and rule.codes and sample.exit_code in rule.codes)
    }
    assert len(used) >= 2, used


def test_a_suggestion_quotes_what_came_from_the_output() -> None:
    facts = {"path": "a b; rm -rf ~", "files": ["x'y", "$(id)", "ok"], "option": "--force", "odd": "a\x1b[2Jb"}
    assert fill("cat -- {path}", facts) == "cat -- 'a b; rm -rf ~'"
    assert fill("cat {*files}", facts) == """cat 'x'"'"'y' '$(id)' ok"""
    assert fill("cat {files}", facts) == """cat 'x'"'"'y'"""
    assert fill("rm {option}", facts) is None
    assert fill("cat {odd}", facts) is None
    assert fill("cat {missing}", facts) is None
