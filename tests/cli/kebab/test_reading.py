"""The commands that read: what they print, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from dari.cli.kebab.main import COMMANDS, load, parser_of
from dari.cli.kit.parser import HelpRequested
from dari.knowledge.wire.schemas import names, schema_text
from tests.support.kebab_command import kebab_home


def check(value: Any, name: str) -> None:
    jsonschema_rs.validate(json.loads(schema_text(name)), value)


async def test_a_search_shows_the_place_and_the_passage(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab("search", "when are backups made", "--mode", "lexical")
    assert done.code == 0
    assert "backups.md#L1-L6" in done.out.splitlines()[0]
    assert "02:30" in done.out


async def test_a_search_for_a_program_is_the_wire_object(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab("--json", "search", "backups")
    assert done.code == 0
    check(done.json, "search_response.v1")
    assert done.err == ""


async def test_nothing_found_is_exit_code_1(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab("search", "xylophone", "--json")
    assert (done.code, done.json["hits"]) == (1, [])


async def test_filters_narrow_a_search(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        korean = await kebab("search", "비밀번호 backups", "--lang", "ko", "--json")
        glob = await kebab("search", "backups 비밀번호", "--path-glob", "back*", "--json")
        late = await kebab("search", "backups", "--ingested-after", "2999-01-01", "--json")
    assert {hit["doc_path"] for hit in korean.json["hits"]} == {"korean/보안.md"}
    assert {hit["doc_path"] for hit in glob.json["hits"]} == {"backups.md"}
    assert late.code == 1


async def test_pages_follow_each_other(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        first = await kebab("search", "backup", "--k", "1", "--json")
        second = await kebab("search", "backup", "--k", "1", "--json", "--cursor", first.json["next_cursor"])
        other = await kebab("search", "deploy", "--k", "1", "--json", "--cursor", first.json["next_cursor"])
    assert first.json["hits"][0]["chunk_id"] != second.json["hits"][0]["chunk_id"]
    assert second.json["hits"][0]["rank"] == 2
    assert (other.code, other.error["code"]) == (2, "invalid_input")


async def test_a_trace_has_both_halves_and_times(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab("search", "backups", "--trace", "--json")
    assert done.json["trace"]["timing"]["total_ms"] > 0
    assert done.json["trace"]["lexical"]


async def test_bulk_reads_json_lines_too(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab("search", "--bulk", "--json", stdin='{"query": "backups"}\n{deploy\n')
        wrong = await kebab("search", "--bulk", "--json", stdin='{"query": "backups", "k": 3}\n')
    assert [json.loads(line)["query"] for line in done.out.splitlines()] == ["backups", "{deploy"]
    assert (done.code, wrong.code, json.loads(wrong.out)["error"]["code"]) == (0, 2, "invalid_input")


async def test_a_wrong_line_of_bulk_answers_for_itself(tmp_path: Path) -> None:
    lines = 'backups\n{"query": "backups", "k": 3}\n{"query": " "}\n{"query": "deploy"}\n'
    with kebab_home(tmp_path) as kebab:
        done = await kebab("search", "--bulk", "--json", stdin=lines)
        shown = await kebab("search", "--bulk", stdin=lines)
    items = [json.loads(line) for line in done.out.splitlines()]
    for item in items:
        check(item, "bulk_search_item.v1")
    assert [item["index"] for item in items] == [0, 1, 2, 3]
    assert [item.get("error", {}).get("code") for item in items] == [None, "invalid_input", "invalid_input", None]
    assert items[0]["response"]["hits"] and items[3]["response"]["hits"]
    assert (done.code, shown.code) == (2, 2)
    assert "# deploy" in shown.out and "error: a JSON line of --bulk must be" in shown.err


async def test_bulk_reads_a_query_a_line(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab("search", "--bulk", "--json", stdin="backups\n\ndeploy\n")
        none = await kebab("search", "--bulk", "--json", stdin="\n")
    items = [json.loads(line) for line in done.out.splitlines()]
    assert [item["query"] for item in items] == ["backups", "deploy"]
    for item in items:
        check(item, "bulk_search_item.v1")
    assert (none.code, none.error["code"]) == (2, "invalid_input")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("search", "x", "--k", "0"), "invalid_input"),
        (("search", "x", "--ingested-after", "0001-01-01T00:00+09:00"), "invalid_input"),
        (("search", "x", "--tag", "\udcff"), "invalid_input"),
        (("ask", "what is \udcff?"), "invalid_input"),
        (("fetch", "doc", "\udcff.md"), "invalid_input"),
        (("search",), "invalid_input"),
        (("search", "x", "--mode", "vector"), "model_not_pulled"),
        (("fetch", "doc", "nope.md"), "doc_not_found"),
        (("fetch", "chunk", "0" * 32), "chunk_not_found"),
        (("fetch", "span", "backups.md", "900"), "invalid_input"),
        (("inspect", "chunk", "x"), "chunk_not_found"),
        (("schema", "--wire", "nothing"), "not_found"),
        (("serch", "x"), "invalid_input"),
        (("search", "x", "--config", "/nowhere/kebab.toml"), "config_not_found"),
    ],
)
async def test_an_error_is_exit_code_2_and_error_v1(tmp_path: Path, words: tuple[str, ...], code: str) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab(*words, "--json")
    assert (done.code, done.out) == (2, "")
    check(done.error, "error.v1")
    assert done.error["code"] == code


async def test_an_error_for_a_person_has_its_next_step_in_the_words_that_were_typed(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab("fetch", "doc", "nope.md", program="dari knowledge")
    assert done.code == 2
    assert "hint: dari knowledge list docs" in done.err


async def test_a_slip_in_a_command_is_named(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        done = await kebab("serach", "x")
    assert "kebab search" in done.err


async def test_before_the_first_ingest_a_search_says_what_to_do(tmp_path: Path) -> None:
    with kebab_home(tmp_path, is_indexed=False) as kebab:
        done = await kebab("search", "x", "--json")
        schema = await kebab("schema", "--json")
    assert (done.code, done.error["code"]) == (2, "not_indexed")
    assert "kebab init" in done.error["hint"]
    check(schema.json, "schema.v1")
    assert schema.json["stats"]["doc_count"] == 0


async def test_a_citation_leads_back_to_its_lines(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        hit = (await kebab("search", "backups", "--json", "-k", "1")).json["hits"][0]
        uri, place = hit["citation"]["uri"], hit["citation"]
        cited = await kebab("fetch", "span", uri, "--json")
        whole = await kebab("fetch", "doc", uri, "--json")
        inspected = await kebab("inspect", "doc", uri, "--json")
        lineless = await kebab("fetch", "span", hit["doc_path"], "--json")
    assert (cited.json["line_start"], cited.json["line_end"]) == (place["start"], place["end"])
    assert cited.json["text"] in whole.json["text"]
    assert inspected.json["doc"]["doc_path"] == hit["doc_path"]
    assert json.loads(lineless.err)["code"] == "invalid_input"


async def test_an_escaped_path_names_its_document_with_and_without_lines(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        (kebab.notes / "100%#1.md").write_text("# Numbat\n\nIt eats termites.\n")
        await kebab("ingest")
        uri: str = (await kebab("search", "termites", "--json", "-k", "1")).json["hits"][0]["citation"]["uri"]
        fetched = [await kebab("fetch", "doc", one, "--json") for one in (uri, uri.rpartition("#")[0], "100%#1.md")]
    assert uri == "100%25%231.md#L1-L3"
    assert {done.json["doc_path"] for done in fetched} == {"100%#1.md"}


async def test_list_inspect_and_fetch_lead_from_one_to_the_next(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        listed = await kebab("list", "docs", "--json")
        check(listed.json, "doc_list.v1")
        document = next(doc for doc in listed.json["docs"] if doc["doc_path"] == "backups.md")
        inspected = await kebab("inspect", "doc", document["doc_id"], "--json")
        check(inspected.json, "doc_inspection.v1")
        chunk = inspected.json["chunks"][0]["chunk_id"]
        fetched = await kebab("fetch", "chunk", chunk, "--context", "1", "--json")
        check(fetched.json, "fetch_result.v1")
        span = await kebab("fetch", "span", "backups.md", "5", "6")
        whole = await kebab("fetch", "doc", "backups.md")
        cut = await kebab("fetch", "doc", "backups.md", "--max-tokens", "10", "--json")
        people = await kebab("list", "docs")
    assert "Restore" in fetched.json["context_after"][0]["text"]
    assert span.out == "\n".join((kebab.notes / "backups.md").read_text().splitlines()[4:6]) + "\n"
    assert whole.out.strip() == (kebab.notes / "backups.md").read_text().strip()
    assert cut.json["truncated"] is True
    assert "korean/보안.md" in people.out


async def test_a_file_that_changed_is_fetched_as_it_was_indexed(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        (kebab.notes / "backups.md").write_text("nothing of that any more\n")
        done = await kebab("fetch", "span", "backups.md", "5", "5")
    assert "02:30" in done.out


async def test_ocr_reports_fit_their_schemas(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        stats, failures = (
            await kebab("inspect", "ocr-stats", "--json"),
            await kebab("inspect", "ocr-failures", "--json"),
        )
    check(stats.json, "ocr_stats.v1")
    check(failures.json, "ocr_failures.v1")


async def test_every_wire_schema_is_printed(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        for name in names():
            assert (await kebab("schema", "--wire", name)).json["title"] == name


async def test_a_healthy_doctor_is_0_and_an_unhealthy_one_3(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        well = await kebab("doctor", "--json")
        check(well.json, "doctor.v1")
        assert (well.code, well.json["ok"]) == (0, True), well.json
        kebab.config.write_text("config_version = 1\n[serch]\n")
        ill = await kebab("doctor", "--json")
        people = await kebab("doctor")
    assert (ill.code, ill.json["ok"]) == (3, False)
    assert people.code == 3
    assert "FAIL" in people.out


async def test_doctor_finds_a_language_model_that_does_not_answer(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        kebab.config.write_text(kebab.config.read_text() + '[llm]\nendpoint = "http://127.0.0.1:9/v1"\nmodel = "x"\n')
        done = await kebab("doctor", "--json")
    (check_,) = [one for one in done.json["checks"] if one["name"] == "llm_endpoint"]
    assert (done.code, check_["ok"]) == (3, False)
    assert check_["hint"]


async def test_the_skill_is_printed_and_installed_once(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        printed = await kebab("skill")
        installed = await kebab("skill", "--install")
        again = await kebab("skill", "--install")
        target = Path(installed.out.strip())
        assert target == tmp_path / ".claude/skills/kebab/SKILL.md"
        assert target.read_text() == printed.out
        target.write_text("mine")
        refused = await kebab("skill", "--install", "--json")
        forced = await kebab("skill", "--install", "--force")
        readonly = await kebab("--readonly", "skill", "--install", "--json")
        example = await kebab("skill", "--mcp-json")
    assert (again.code, forced.code) == (0, 0)
    assert refused.error["code"] == "conflict"
    assert readonly.error["code"] == "readonly_mode"
    assert example.json["mcpServers"]["kebab"] == {"command": "kebab", "args": ["mcp"]}


@pytest.mark.parametrize("entry", [entry for entry in COMMANDS if entry.module not in ("mcp", "daemon")], ids=str)
def test_every_command_has_help_with_examples(entry: Any) -> None:
    with pytest.raises(HelpRequested) as shown:
        parser_of(entry, "kebab").parse_args(["--help"])
    assert "examples:" in shown.value.text
    assert load(entry).help == entry.help


def test_no_command_is_listed_twice() -> None:
    listed = [entry.name for entry in COMMANDS]
    assert len(listed) == len(set(listed))
