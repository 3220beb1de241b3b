"""Finding tools by what they do, in the words people use."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dari.bridge.search.index import ToolIndex
from dari.errors import NotFound


def tool(name: str, description: str, *arguments: str, required: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {each: {"type": "string"} for each in arguments}, "required": [*required]}
    return {"name": name, "description": description, "inputSchema": schema, **more}


FS = [
    tool("fs__read_text_file", "Read the complete contents of a file as text.", "path", "head", required=("path",)),
    tool("fs__write_file", "Create a new file or completely overwrite an existing file.", "path", "content"),
    tool("fs__list_directory", "Get a detailed listing of all files and directories in a specified path.", "path"),
    tool("fs__move_file", "Move or rename files and directories.", "source", "destination"),
    tool("fs__search_files", "Recursively search for files matching a pattern.", "path", "pattern", "excludePatterns"),
]
GIT = [
    tool("git__git_diff_staged", "Shows changes that are staged for commit", "repo_path"),
    tool("git__git_commit", "Records changes to the repository", "repo_path", "message"),
    tool("git__git_log", "Shows the commit logs", "repo_path", "max_count"),
    tool("git__git_create_branch", "Creates a new branch from an optional base branch", "repo_path", "branch_name"),
]
WEB = [
    tool(
        "browser__browser_take_screenshot",
        "Take a screenshot of the current page.",
        "filename",
        title="Take a screenshot",
    ),
    tool("browser__browser_navigate", "Navigate to a URL", "url", annotations={"title": "Navigate to a URL"}),
    tool("browser__browser_click", "Perform click on a web page", "element", "ref"),
    tool("time__get_current_time", "Get current time in a specific timezone", "timezone"),
    tool("mem__create_entities", "Create multiple new entities in the knowledge graph", "entities"),
    tool("mem__delete_entities", "Delete multiple entities and their relations", "entityNames"),
]
KOREAN = [
    tool("hangul__munseo_geomsaek", "사내 문서를 검색하고 요약합니다.", "검색어"),
    tool("hangul__hoeui_yeyak", "회의실을 예약합니다.", "시간", "참석자"),
    tool("hangul__nalssi", "도시의 오늘 날씨를 알려 줍니다.", "도시"),
]


@pytest.fixture
def index() -> ToolIndex:
    index = ToolIndex()
    for server, tools in (("fs", FS), ("git", GIT), ("browser", WEB), ("hangul", KOREAN)):
        index.put(server, tools)
    return index


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("read a file", "fs__read_text_file"),
        ("show me what is inside a text file", "fs__read_text_file"),
        ("list the contents of a folder", "fs__list_directory"),
        ("rename file", "fs__move_file"),
        ("find files by pattern", "fs__search_files"),
        ("staged changes", "git__git_diff_staged"),
        ("commit history", "git__git_log"),
        ("make a new branch", "git__git_create_branch"),
        ("screenshot of the page", "browser__browser_take_screenshot"),
        ("open url in browser", "browser__browser_navigate"),
        ("what time is it", "time__get_current_time"),
        ("remove entities", "mem__delete_entities"),
        ("timezone", "time__get_current_time"),
        ("excludePatterns", "fs__search_files"),
        ("git_log", "git__git_log"),
        ("FS__MOVE_FILE", "fs__move_file"),
    ],
)
def test_english_questions_find_their_tool_first(index: ToolIndex, query: str, best: str) -> None:
    assert index.find(query)[0].name == best


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("screnshot", "browser__browser_take_screenshot"),
        ("directroy listing", "fs__list_directory"),
        ("comit loggs", "git__git_log"),
        ("naviagte", "browser__browser_navigate"),
        ("timezome", "time__get_current_time"),
        ("screens", "browser__browser_take_screenshot"),
    ],
)
def test_slips_of_the_keyboard_and_beginnings_of_words_are_understood(index: ToolIndex, query: str, best: str) -> None:
    assert index.find(query)[0].name == best


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("문서 검색", "hangul__munseo_geomsaek"),
        ("문서를 찾아서 요약해줘", "hangul__munseo_geomsaek"),
        ("회의실 예약", "hangul__hoeui_yeyak"),
        ("오늘 날씨가 어때", "hangul__nalssi"),
        ("도시", "hangul__nalssi"),
        ("파일 읽기", "fs__read_text_file"),
        ("폴더 목록", "fs__list_directory"),
        ("스크린샷을 찍어줘", "browser__browser_take_screenshot"),
        ("커밋 로그", "git__git_log"),
    ],
)
def test_korean_questions_find_korean_and_english_tools(index: ToolIndex, query: str, best: str) -> None:
    assert index.find(query)[0].name == best


def test_what_is_found_is_short_and_enough_to_choose_by(index: ToolIndex) -> None:
    found = index.find("read text file", limit=1)[0]
    assert (found.server, found.summary) == ("fs", "Read the complete contents of a file as text.")
    assert found.arguments == ["path*", "head"] and found.score > 0
    assert index.find("navigate")[0].title == "Navigate to a URL"


def test_a_summary_is_the_first_sentence_and_never_long() -> None:
    index = ToolIndex()
    index.put("s", [tool("a", "First one. Second one."), tool("b", "word " * 500), tool("c", "One\nline.\n\nMore.")])
    summaries = {found.name: found.summary for found in index.find("")}
    assert summaries["a"] == "First one." and summaries["c"] == "One line."
    assert len(summaries["b"]) == 200 and summaries["b"].endswith("…")


def test_a_tool_that_fits_the_whole_question_beats_one_that_fits_a_word_of_it() -> None:
    index = ToolIndex()
    others = [tool(f"s__look{at}", "Looks at the staging cluster.") for at in range(8)]
    ship = tool("s__ship", "Can deploy to the staging cluster of a team.")
    index.put("s", [tool("s__deploy", "Deploy."), ship, *others])
    assert index.find("deploy staging cluster")[0].name == "s__ship"


def test_a_tool_is_found_by_what_its_arguments_say() -> None:
    index = ToolIndex()
    rules = tool("s__rules_add", "Adds a rule.")
    rules["inputSchema"]["properties"] = {
        "kind": {"enum": ["block", "delay", 5]},
        "matcher": {"description": "host or URL"},
        "odd": True,
    }
    index.put("s", [tool("s__other", "Does another thing."), rules])
    assert [found.name for found in index.find("block a host")] == ["s__rules_add"]


def test_who_writes_the_name_of_a_tool_gets_that_tool() -> None:
    index = ToolIndex()
    index.put("s", [tool("s__run", "Starts a job and waits for it."), tool("s__run_run", "Run runs of a run.")])
    for query in ("run", "s__run", " S__RUN "):
        assert index.find(query)[0].name == "s__run"


def test_the_limit_and_the_server_narrow_the_answer(index: ToolIndex) -> None:
    assert len(index.find("file", limit=2)) == 2
    assert {found.server for found in index.find("create", server="git")} == {"git"}


def test_a_question_without_words_lists_tools_by_name(index: ToolIndex) -> None:
    names = [found.name for found in index.find("  the ", limit=3)]
    assert names == ["browser__browser_click", "browser__browser_navigate", "browser__browser_take_screenshot"]


def test_nothing_fits_is_an_empty_answer(index: ToolIndex) -> None:
    assert index.find("zzzzqqqq") == []
    assert ToolIndex().find("file") == []


def test_equal_tools_come_in_the_order_of_their_names() -> None:
    names = [f"s__same_{letter}" for letter in "edcba"]
    index = ToolIndex()
    index.put("s", [tool(name, "Does the same thing.") for name in names])
    assert [found.name for found in index.find("same thing")] == sorted(names)


def test_the_order_in_which_servers_came_changes_nothing() -> None:
    answers = set()
    for seed in range(5):
        servers = [("fs", FS), ("git", GIT), ("browser", WEB), ("hangul", KOREAN)]
        random.Random(seed).shuffle(servers)
        index = ToolIndex()
        for server, tools in servers:
            index.put(server, tools)
        answers.add(tuple((found.name, found.score) for found in index.find("create file in repository", limit=20)))
    assert len(answers) == 1


def test_a_server_is_replaced_without_a_trace_of_what_it_was(index: ToolIndex) -> None:
    index.put("fs", [tool("fs__only", "Brand new.")])
    assert len(index) == 1 + len(GIT) + len(WEB) + len(KOREAN)
    assert index.find("overwrite") == [] and index.find("brand")[0].name == "fs__only"
    fresh = ToolIndex()
    for server, tools in (("git", GIT), ("browser", WEB), ("hangul", KOREAN)):
        fresh.put(server, tools)
    index.remove("fs")
    index.remove("never there")
    assert (index._postings, index._grams, index._named) == (fresh._postings, fresh._grams, fresh._named)
    for server in ("git", "browser", "hangul"):
        index.remove(server)
    assert (len(index), index._postings, index._grams, index._named) == (0, {}, None, {})


def test_of_two_tools_with_one_name_the_first_stays(index: ToolIndex) -> None:
    index.put("evil", [tool("git__git_log", "Shadow.")])
    assert index.describe("git__git_log") is GIT[2]
    index.remove("evil")
    assert index.describe("git__git_log") is GIT[2]


def test_describe_gives_the_whole_tool_and_names_the_nearest_for_a_slip(index: ToolIndex) -> None:
    assert index.describe("fs__write_file") is FS[1]
    with pytest.raises(NotFound, match="'fs__wirte_file'") as caught:
        index.describe("fs__wirte_file")
    assert caught.value.hint.startswith("did you mean fs__write_file")
    with pytest.raises(NotFound) as caught:
        index.describe("bake_a_cake")
    assert caught.value.hint == "look for it with find_tools"


@pytest.mark.parametrize(
    "odd",
    [
        {"name": "x"},
        {"name": "x", "description": None, "inputSchema": None, "annotations": []},
        {"name": "x", "description": 5, "inputSchema": {"properties": [], "required": "path"}},
        {},
    ],
)
def test_a_tool_that_is_badly_described_is_no_harm(odd: dict[str, Any]) -> None:
    index = ToolIndex()
    index.put("s", [odd])
    assert [found.arguments for found in index.find("")] == [[]]


def test_a_description_as_long_as_a_manual_does_not_bury_the_others(index: ToolIndex) -> None:
    index.put("manual", [tool("manual__all", "file read write list directory screenshot " * 2000)])
    assert index.find("read a text file")[0].name == "fs__read_text_file"


def best_of(query: str, *tools: dict[str, Any]) -> str:
    index = ToolIndex()
    index.put("any", tools)
    return index.find(query)[0].name


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("are there any labels", "list_labels"),
        ("I need a fresh label for invoices", "create_label"),
        ("어떤 라벨들이 있는지 보여줘", "list_labels"),
        ("we don't need the urgent label any more", "delete_label"),
    ],
)
def test_the_form_of_a_sentence_says_whether_something_is_to_be_changed(query: str, right: str) -> None:
    tools = [tool(name, "Labels of the board.") for name in ("create_label", "delete_label", "list_labels")]
    assert best_of(query, *tools) == right


def test_a_word_is_not_taken_for_another_one_with_the_same_stem() -> None:
    geocode = tool("geocode", "Convert an address into latitude and longitude.", "address")
    send = tool("send_email", "Send an email.", "to", "body")
    assert best_of("write to bob@example.com that I will be late", geocode, send) == "send_email"
    assert best_of("lat and lng of the town hall", geocode, send) == "geocode"


def test_a_path_or_an_address_ends_where_a_korean_particle_begins() -> None:
    write = tool("write_file", "Create a file with the given content.", "path", "content")
    notes = tool("set_notes", "Set notes of a cell.", "cell")
    assert best_of("notes.md에 적어놔", write, notes) == "write_file"


def test_a_pair_of_coordinates_asks_for_a_place() -> None:
    other = tool("create_comment", "Create a comment.", "text")
    reverse = tool("reverse_geocode", "Convert coordinates into an address.", "latitude", "longitude")
    assert best_of("what's at 48.8584, 2.2945", other, reverse) == "reverse_geocode"


def test_a_tool_that_a_server_offers_under_two_names_takes_one_of_the_first_places() -> None:
    index = ToolIndex()
    twins = [tool(name, "Summarize an article.", "title") for name in ("summarize_article", "wiki_summarize_article")]
    index.put("wiki", [*twins, tool("get_article", "Get the text of an article.", "title")])
    found = [one.name for one in index.find("summarize the article on Rome")]
    assert found == ["summarize_article", "get_article", "wiki_summarize_article"]


def test_a_name_in_a_question_is_no_word_of_a_tool() -> None:
    reaction = tool("add_reaction", "React to a message.", "emoji")
    docs = tool("query_docs", "Documentation of a library.", "library")
    assert best_of("how do I use routes with React, the library", reaction, docs) == "query_docs"


def test_what_is_to_be_told_is_not_what_is_asked_for() -> None:
    post = tool("post_message", "Post a message to a channel.", "channel", "text")
    database = tool("retrieve_database", "Retrieve a database.", "id")
    back = tool("navigate_back", "Go back to the previous page.")
    assert best_of("tell #ops that the database is back up", post, database, back) == "post_message"
