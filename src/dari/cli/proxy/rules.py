"""`dari proxy rules …`: list, change and test rules."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from dari.cli.kit.console import Output
from dari.cli.kit.table import format_table, one_line
from dari.cli.proxy import rule_kinds
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.options import Commands, for_shell, group, leaf

_RULES = """
dari proxy rules                                     what is in force, with hits and warnings
dari proxy rules add allow example.com               record and decrypt this host
dari proxy rules add map-local https://api.example.com/v1/user --text '{"name":"Ada"}' --content-type application/json
dari proxy rules test https://api.example.com/v1/user
dari proxy rules disable r2                          keep it, without effect
dari proxy rules remove r1 r2
"""
_UPDATE = """
dari proxy rules update r3 --matcher https://example.com/v2
dari proxy rules update r3 --set status_code=503 --method POST
dari proxy rules update r3 --method any              all methods again
dari proxy rules update r4 --text '{"ok":false}'     another answer of a map-local rule
"""
_TEST = """
dari proxy rules test https://example.com/api/users
dari proxy rules test http://localhost:3000/login --method POST
"""
_KINDS = tuple(name.replace("_", "-") for name in rule_kinds.NAMES)


def add_rules(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    words = group(commands, "rules", help, _RULES)
    parser = leaf(words, "list", _list, "the rules in the order in which they are tried", _RULES)
    parser.add_argument("--kind", choices=_KINDS, help="only rules of this kind")
    rule_kinds.add_kinds(words, _add)
    parser = leaf(words, "update", _update, "change a rule; its id, kind and place stay", _UPDATE)
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--matcher", help="the new matcher")
    rule_kinds.add_conditions(parser)
    parser.add_argument("--text", help="of a map-local rule: the answer")
    parser.add_argument("--file", help="of a map-local rule: the file to answer with")
    parser.add_argument(
        "--set", metavar="MEMBER=VALUE", type=_member, action="append", default=[], help="any member; VALUE as JSON"
    )
    for name, said, handle in (("enable", "switch a rule on", _enable), ("disable", "switch a rule off", _disable)):
        parser = leaf(words, name, handle, said, f"dari proxy rules {name} r2\ndari proxy rules {name} r2 r3")
        parser.add_argument("ids", metavar="ID", nargs="+")
    parser = leaf(
        words,
        "keep-credentials",
        _keep_credentials,
        "let a map-remote rule send cookies, tokens and passwords to another origin",
        "dari proxy rules keep-credentials r2\ndari proxy rules keep-credentials r2 --off",
    )
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--off", action="store_true", help="keep them back again")
    parser = leaf(words, "remove", _remove, "remove rules by their ids", "dari proxy rules remove r1\n" + _RULES)
    parser.add_argument("ids", metavar="ID", nargs="+")
    examples = "dari proxy rules move r3 --before r1\ndari proxy rules move r1"
    parser = leaf(words, "move", _move, "try a rule before another one, or last", examples)
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--before", metavar="ID", help="the rule to put it in front of; default the end")
    parser = leaf(
        words, "restore", _restore, "bring removed rules back, where they were", "dari proxy rules restore r1"
    )
    parser.add_argument("ids", metavar="ID", nargs="+")
    parser = leaf(
        words,
        "clear",
        _clear,
        "remove all rules, or all of one kind",
        "dari proxy rules clear\ndari proxy rules clear --kind block",
    )
    parser.add_argument("--kind", choices=_KINDS, help="only rules of this kind")
    parser = leaf(words, "test", _test, "what the rules would do with such a request, and why not more", _TEST)
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--method", default="GET", help="default: %(default)s")


async def _list(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    found = await crab.call("rules.list", kind=_kind(arguments))
    out.show(found, _rule_lines(found["rules"], out))
    if not out.as_json:
        for rule in found["rules"]:
            for text in rule["warnings"]:
                out.warn(one_line(f"{rule['id']}: {text}"))
    return 0


def _rule_lines(rules: list[dict[str, Any]], out: Output) -> Iterator[str]:
    if not rules:
        yield "No rules: everything is recorded, HTTPS is not decrypted (dari proxy rules add allow HOST)"
        return
    rows = [("ID", "KIND", "HITS", "METHOD", "MATCHER", "")]
    for rule in rules:
        matcher = rule["matcher"] if rule["matcher_kind"] == "prefix" else f"{rule['matcher_kind']}:{rule['matcher']}"
        effect = rule_kinds.effect(rule) + ("" if rule["enabled"] else " (disabled)")
        row = (rule["id"], rule["kind"].replace("_", "-"), str(rule["hits"]), rule["method"] or "any", matcher, effect)
        rows.append(row)
    head, *lines = format_table(rows)
    yield out.paint(head, "dim")
    yield from lines


async def _add(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    if arguments.kind == "mock":
        rule = await _mock(arguments, crab)
    else:
        rule = await crab.call("rules.add", rule=rule_kinds.rule_of(arguments))
    return _print_rule(rule, "added", out)


async def _mock(arguments: argparse.Namespace, crab: Crab) -> dict[str, Any]:
    rule = await crab.call("rules.mock", request_id=arguments.request_id, matcher=arguments.matcher)
    changes = rule_kinds.conditions(arguments)
    return await crab.call("rules.update", id=rule["id"], changes=changes) if changes else rule


async def _update(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    changes = dict(arguments.set) | rule_kinds.conditions(arguments) | rule_kinds.source_of(arguments)
    if arguments.matcher is not None:
        changes["matcher"] = arguments.matcher
    return _print_rule(await crab.call("rules.update", id=arguments.id, changes=changes), "changed", out)


async def _enable(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    return await _switch(arguments, crab, out, True)


async def _disable(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    return await _switch(arguments, crab, out, False)


async def _switch(arguments: argparse.Namespace, crab: Crab, out: Output, enabled: bool) -> int:
    changed = [await crab.call("rules.update", id=one, changes={"enabled": enabled}) for one in arguments.ids]
    out.show({"rules": changed}, [f"{rule['id']} is {'on' if enabled else 'off'}" for rule in changed])
    return _warn(changed, out)


async def _keep_credentials(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    changed = await crab.call("rules.keep_credentials", id=arguments.id, keeps=not arguments.off)
    out.show(
        changed, [f"{changed['id']} sends {'no credentials' if arguments.off else 'credentials'} to another origin"]
    )
    return 0


async def _remove(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    removed = [await crab.call("rules.remove", id=one) for one in arguments.ids]
    out.show({"rules": removed}, [f"{rule['id']} removed: {_sentence(rule)}" for rule in removed])
    return _warn(removed, out)


async def _move(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    moved = await crab.call("rules.move", id=arguments.id, before=arguments.before)
    out.show(moved, [f"{moved['id']} is {f'tried before {arguments.before}' if arguments.before else 'last'} now"])
    return 0


async def _restore(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    restored = [await crab.call("rules.restore", id=one) for one in arguments.ids]
    out.show({"rules": restored}, [f"{rule['id']} is back: {_sentence(rule)}" for rule in restored])
    return _warn(restored, out)


async def _clear(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    count = len((await crab.call("rules.list", kind=_kind(arguments)))["rules"])
    changed = await crab.call("engine.rules_clear", kind=_kind(arguments))
    out.show({"removed": count}, [f"{count} rules removed"])
    return _warn([changed], out)


async def _test(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    found = await crab.call("rules.test", url=arguments.url, method=arguments.method)
    out.show(found, _explained(found, out))
    return 0


def _explained(found: dict[str, Any], out: Output) -> Iterator[str]:
    yield one_line(f"{found['method']} {found['url']}")
    yield _verdict(found["is_recorded"], "recorded", found["recorded_because"], out)
    if found["is_decrypted"] is not None:
        yield _verdict(found["is_decrypted"], "decrypted", found["decrypted_because"], out)
    for kind in found["kinds"]:
        name = kind["kind"].replace("_", "-")
        for rule in kind["matched"]:
            detail = f" ({one_line(rule['detail'])})" if rule["detail"] else ""
            yield f"  {out.paint(name, 'green')}  {rule['id']} applies: {one_line(rule['matcher'])}{detail}"
        for rule in kind["others"]:
            why = ": ".join(part for part in (rule["verdict"], rule["detail"]) if part)
            yield out.paint(f"  {name}  {rule['id']} {one_line(rule['matcher'])}: {one_line(why)}", "dim")
        if kind["others_left_out"]:
            yield out.paint(f"  {name}  {kind['others_left_out']} more do not match", "dim")
    if found["mapped_url"]:
        yield f"  goes to    {one_line(found['mapped_url'])}"
    for hint in found["hints"]:
        yield f"  hint: {one_line(for_shell(hint))}"


def _verdict(is_so: bool, word: str, why: str, out: Output) -> str:
    shown = out.paint(word, "green") if is_so else out.paint(f"not {word}", "yellow")
    return f"  {shown}: {one_line(why)}"


def _print_rule(rule: dict[str, Any], verb: str, out: Output) -> int:
    out.show(rule, [f"{rule['id']} {verb}: {_sentence(rule)}"])
    return _warn([rule], out)


def _warn(results: list[dict[str, Any]], out: Output) -> int:
    if not out.as_json:
        for one in results:
            for text in one.get("warnings", ()):
                out.warn(one_line(text))
    return 0


def _sentence(rule: dict[str, Any]) -> str:
    parts = (rule["kind"].replace("_", "-"), rule["method"] or "", one_line(rule["matcher"]), rule_kinds.effect(rule))
    return " ".join(part for part in parts if part)


def _kind(arguments: argparse.Namespace) -> str | None:
    return arguments.kind.replace("-", "_") if arguments.kind else None


def _member(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"must be MEMBER=VALUE, such as status_code=503, got {text[:40]!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
