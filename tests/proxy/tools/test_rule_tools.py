"""The rule tools: the four kinds by their text, every kind by id, in force at once on a running proxy."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.origins.origin import origin
from tests.support.proxy_service import proxy as restarted
from tests.support.proxy_tools import Refused, crab
from tests.support.wire import Json

ONE = "http://one.test/"


async def test_the_four_kinds_are_listed_as_they_were_added(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    async with crab(tmp_path) as tools:
        await tools.call("rules_add_allow", matcher="one.test")
        await tools.call("rules_add_map_local_text", matcher=ONE, text="hi", status_code=201, content_type="text/x")
        await tools.call("rules_add_map_local_file", matcher="/f", file_path=str(tmp_path / "a.json"))
        await tools.call("rules_add_map_remote", matcher="two.test", destination=ONE)
        await tools.call("rules_add_status_rewrite", matcher="/", to_status_code=503)
        await tools.call("rules_add_status_rewrite", matcher="/", to_status_code=500, from_status_code=200)
        dump = await tools.call("rules_dump")
        text = {"matcher": ONE, "source": {"kind": "text", "value": "hi"}, "status_code": 201, "content_type": "text/x"}
        assert dump["allowlist"] == ["one.test"]
        assert dump["map_local"][0] == text
        assert dump["map_local"][1]["source"] == {"kind": "file", "value": str(tmp_path / "a.json")}
        assert dump["map_remote"] == [{"matcher": "two.test", "destination": ONE}]
        assert dump["status_rewrite"] == [
            {"matcher": "/", "from_status_code": None, "to_status_code": 503},
            {"matcher": "/", "from_status_code": 200, "to_status_code": 500},
        ]
        for kind in ("map_local", "map_remote", "status_rewrite"):
            assert await tools.call(f"rules_list_{kind}") == {kind: dump[kind]}
        assert await tools.call("rules_list_allow") == {"allowlist": dump["allowlist"]}
        assert await tools.call("rules_clear") == {"ok": True}
        assert not any((await tools.call("rules_dump")).values())


@pytest.mark.parametrize(
    ("conditions", "removed"),
    [({}, 3), ({"from_status_code": -1}, 1), ({"from_status_code": 200}, 2), ({"to_status_code": 500}, 2)],
)
async def test_rules_are_removed_by_their_text_and_counted(conditions: Json, removed: int, tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        for to, only in ((503, -1), (500, 200), (500, 200)):
            await tools.call("rules_add_status_rewrite", matcher="/", to_status_code=to, from_status_code=only)
        result = await tools.call("rules_remove_status_rewrite", matcher="/", **conditions)
        assert result == {"ok": True, "removed": removed}
        assert (await tools.call("rules_remove_allow", matcher="nobody")) == {"ok": True, "removed": 0}


async def test_a_rule_counts_from_the_next_request_on_a_running_proxy(tmp_path: Path) -> None:
    async with origin() as site, crab(tmp_path, starts=True) as tools:
        url = f"http://127.0.0.1:{site.port}/"
        assert (await tools.proxy.get(url)).status == 200
        await tools.call("rules_add_map_local_text", matcher=url, text="here", status_code=299)
        reply = await tools.proxy.get(url)
        assert (reply.status, reply.body) == (299, b"here")
        await tools.call("rules_remove_map_local", matcher=url, source_kind="text", source_value="here")
        assert (await tools.proxy.get(url)).status == 200


ADDED: list[tuple[Json, Json]] = [
    ({"kind": "allow", "matcher": "*.one.test"}, {}),
    ({"kind": "block", "matcher": ONE, "status_code": 451}, {"status_code": 451}),
    ({"kind": "block", "matcher": ONE}, {"status_code": 403}),
    ({"kind": "delay", "matcher": ONE, "delay_ms": 5, "jitter_ms": 1}, {"delay_ms": 5, "jitter_ms": 1}),
    ({"kind": "fault", "matcher": ONE, "mode": "truncate", "after_bytes": 3}, {"mode": "truncate", "after_bytes": 3}),
    (
        {"kind": "header_rewrite", "matcher": ONE, "set_headers": {"X-A": "1"}, "remove_headers": ["X-B"]},
        {
            "edits": [
                {"action": "remove", "name": "X-B", "value": ""},
                {"action": "set", "name": "X-A", "value": "1"},
            ],
            "on": "request",
        },
    ),
    (
        {"kind": "header_rewrite", "matcher": ONE, "add_headers": {"Via": "1.1 x"}, "on": "response"},
        {"edits": [{"action": "add", "name": "Via", "value": "1.1 x"}], "on": "response"},
    ),
    (
        {"kind": "body_replace", "matcher": ONE, "find": "a", "text": "b", "on": "request"},
        {"find": "a", "text": "b", "on": "request"},
    ),
    (
        {"kind": "map_local", "matcher": ONE, "text": "hi"},
        {"source": {"kind": "text", "value": "hi"}, "status_code": 200, "content_type": None},
    ),
    (
        {"kind": "map_remote", "matcher": ONE, "destination": "http://x.test/"},
        {"destination": "http://x.test/", "keeps_credentials": False},
    ),
    (
        {"kind": "status_rewrite", "matcher": ONE, "to_status_code": 500, "from_status_code": -1},
        {"to_status_code": 500, "from_status_code": None},
    ),
    (
        {"kind": "breakpoint", "matcher": ONE, "on": "response", "time_limit_s": 2.5},
        {"on": "response", "time_limit_s": 2.5},
    ),
]


@pytest.mark.parametrize(("arguments", "settings"), ADDED)
async def test_a_rule_of_any_kind_is_added_by_flat_arguments(arguments: Json, settings: Json, tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        rule = await tools.call("rules_add", **arguments, method="POST", enabled=False, matcher_kind="prefix")
        assert rule["kind"] == arguments["kind"]
        assert rule["settings"] == settings
        assert (rule["method"], rule["enabled"], rule["hits"]) == ("POST", False, 0)
        listed = (await tools.call("rules_list", kind=arguments["kind"]))["rules"]
        assert [{**one, "warnings": rule["warnings"]} for one in listed] == [rule]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "map_local"}, "a map_local rule needs text or file_path"),
        ({"kind": "map_local", "text": "a", "file_path": "/b"}, "a map_local rule has text or file_path, not both"),
        ({"kind": "map_remote"}, "a map_remote rule needs destination"),
        ({"kind": "status_rewrite"}, "a status_rewrite rule needs to_status_code"),
        ({"kind": "header_rewrite"}, "a header_rewrite rule needs set_headers, add_headers or remove_headers"),
        ({"kind": "body_replace", "find": "x"}, "a body_replace rule needs text"),
        ({"kind": "delay"}, "a delay rule needs delay_ms"),
        ({"kind": "block", "destination": ONE}, "a block rule has no member 'destination'"),
        ({"kind": "allow", "file_path": "/a"}, "a allow rule has no member 'file_path'"),
        ({"kind": "mock"}, "argument 'kind' is \"mock\""),
        ({"kind": "allow", "matcher_kind": "regex", "matcher": "("}, "regular expression"),
    ],
)
async def test_a_rule_that_cannot_be_is_refused_with_what_it_needs(
    arguments: Json, message: str, tmp_path: Path
) -> None:
    async with crab(tmp_path) as tools:
        with pytest.raises(Refused) as refused:
            await tools.call("rules_add", **{"matcher": ONE, **arguments})
        assert refused.value.code == -32602
        assert message in refused.value.message
        assert refused.value.hint
        assert (await tools.call("rules_list"))["rules"] == []


async def test_a_rule_is_changed_switched_off_and_removed_by_its_id(tmp_path: Path) -> None:
    async with crab(tmp_path, starts=True) as tools:
        rule = await tools.call("rules_add", kind="map_local", matcher=ONE, text="first")
        assert (await tools.proxy.get(ONE)).body == b"first"
        source = {"kind": "text", "value": "second"}
        changed = await tools.call("rules_update", id=rule["id"], changes={"source": source, "status_code": 202})
        assert changed["settings"]["source"] == source
        assert changed["hits"] == 1
        reply = await tools.proxy.get(ONE)
        assert (reply.status, reply.body) == (202, b"second")
        assert (await tools.call("rules_update", id=rule["id"], enabled=False))["enabled"] is False
        assert (await tools.call("rules_test", url=ONE))["rules_apply"] is True
        removed = await tools.call("rules_remove", id=rule["id"])
        assert removed["hits"] == 2
        for tool, arguments in (("rules_remove", {}), ("rules_update", {"enabled": True})):
            with pytest.raises(Refused) as gone:
                await tools.call(tool, id=rule["id"], **arguments)
            assert gone.value.code == -32004
        with pytest.raises(Refused) as nothing:
            await tools.call("rules_update", id=rule["id"])
        assert "nothing to change" in nothing.value.message


async def test_rules_test_says_which_rule_applies_and_why_https_stays_closed(tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        rule = await tools.call("rules_add", kind="block", matcher="https://one.test/")
        told = await tools.call("rules_test", url="https://one.test/a")
        assert told["is_decrypted"] is False
        assert "no CA" in told["decrypted_because"]
        await tools.call("ca_generate")
        told = await tools.call("rules_test", url="https://one.test/a")
        assert told["is_decrypted"] is True
        (kind,) = told["kinds"]
        assert [(found["id"], found["verdict"]) for found in kind["matched"]] == [(rule["id"], "applies")]


async def test_an_answer_seen_once_is_given_again(tmp_path: Path) -> None:
    async with origin() as site, crab(tmp_path, starts=True) as tools:
        url = f"http://127.0.0.1:{site.port}/a"
        first = await tools.proxy.get(url)
        (entry,) = (await tools.call("traffic_tail"))["entries"]
        rule = await tools.call("rules_mock", request_id=entry["request_id"])
        assert rule["kind"] == "mock"
        again = await tools.proxy.get(url)
        assert (again.status, again.body) == (first.status, first.body)
        assert len(site.requests) == 1


async def test_what_a_breakpoint_holds_is_seen_changed_and_let_go(tmp_path: Path) -> None:
    async with origin() as site, crab(tmp_path, starts=True) as tools:
        url = f"http://127.0.0.1:{site.port}/a"
        await tools.call("rules_add", kind="breakpoint", matcher=url, time_limit_s=30)
        asked = asyncio.create_task(tools.proxy.get(url))
        (held,) = (await tools.call("breakpoints_wait", timeout_s=15))["held"]
        assert held["url"] == url
        assert (await tools.call("breakpoints_list"))["held"][0]["id"] == held["id"]
        resumed = await tools.call("breakpoints_resume", id=held["id"], set_headers={"X-Held": "yes"})
        assert resumed["ok"] is True
        assert (await asked).status == 200
        assert site.requests[-1].header("x-held") == "yes"
        with pytest.raises(Refused) as gone:
            await tools.call("breakpoints_resume", id=held["id"])
        assert gone.value.code == -32004


async def test_rules_are_there_after_a_restart(tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        rule = await tools.call("rules_add", kind="delay", matcher=ONE, delay_ms=1)
    async with restarted(tmp_path, starts=False) as rig:
        assert [one.id for one in (await rig.service.rules.list()).rules] == [rule["id"]]
