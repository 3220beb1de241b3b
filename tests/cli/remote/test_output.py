"""What stands on stdout and on stderr."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from dari.cli.kit.console import escape_json
from dari.cli.kit.table import print_table
from dari.cli.remote.render import ContentStore
from dari.errors import InvalidInput
from dari.text.width import text_width
from tests.support.remote_command import Screen, shop
from tests.support.workshop import HANDLERS

DANGEROUS = ("\x1b", "\x9d", "\x07", "\u202e", "\u2069", "\U000e0041")


async def test_a_result_is_a_friendly_line_and_the_contents(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "say", "--text", "hello")
        head, text = done.out.splitlines()
        assert done.code == 0 and head.startswith("✓ shop/say (") and head.endswith(" ms)")
        assert text == "hello" and done.err == ""


async def test_structured_content_is_laid_out_once(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "variety", "--path", "x")
        assert done.out.count('"path": "x"') == 1
        assert '{\n  "given": {\n    "path": "x"\n  }\n}' in done.out


async def test_every_kind_of_content_is_shown(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "gallery")
        for line in (
            "a picture, a sound",
            '  "b": 1,',
            "[image: image/png, 12 bytes]",
            "[audio: audio/wav, 10 bytes]",
            "[resource: shop://note, text/plain]",
            "noted",
            "[resource: shop://blob, image/gif, 2 bytes]",
            "[link: far <shop://far> – far away]",
            '  "depth": 3',
        ):
            assert line in done.out.splitlines()


async def test_fields_that_mcp_does_not_know_are_shown_too(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "crewx")
        assert '"agent": "@claude"' in done.out and '"taskId": "t1"' in done.out


async def test_raw_is_the_result_as_the_server_sent_it(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        for name in ("gallery", "crewx", "fail", "evil"):
            sent = json.dumps(HANDLERS[name]({}, {}), ensure_ascii=False)
            assert (await run("call-tool", name, "--raw")).out == sent + "\n"


async def test_json_is_the_same_payload_indented(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "fail", "--json")
        assert done.json == HANDLERS["fail"]({}, {})
        assert done.out.startswith('{\n  "content": [\n')


async def test_json_and_raw_exclude_each_other(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "gallery", "--raw", "--json")
        assert (done.code, done.out) == (1, "") and "not allowed with" in done.err


async def test_nothing_that_drives_a_terminal_reaches_one(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        for words in ((), ("--json",), ("--raw",)):
            on_screen = await run("call-tool", "evil", *words, tty=True)
            assert not any(character in on_screen.out for character in DANGEROUS)
        for words in (("--json",), ("--raw",)):
            assert (await run("call-tool", "evil", *words, tty=True)).json == HANDLERS["evil"]({}, {})
        text = (await run("call-tool", "evil")).out
        assert not any(character in text for character in DANGEROUS)


def test_json_on_a_screen_stays_the_same_json() -> None:
    for text in ("\x9d to the end", "a\u202eb", "\U000e0041", "\x7f", "'\"\\", "\u0085\u2028"):
        document = json.dumps({"k": text, "next": [1]}, ensure_ascii=False)
        shown = escape_json(document)
        assert json.loads(shown) == {"k": text, "next": [1]}
        assert not set(shown) & {"\x9d", "\u202e", "\U000e0041", "\x7f", "\u0085", "\u2028"}


def test_wide_characters_count_twice_in_tables() -> None:
    screen = Screen(tty=True)
    screen.columns = 21
    print_table(screen, ("A", "B"), [("서버", "x"), ("ab", "긴 설명이 여기에 있습니다")])
    head, first, second = screen.shown.splitlines()
    assert (head, first) == ("A     B", "서버  x")
    assert second.endswith("…") and text_width(second) <= 21 and text_width("e\u0301") == 1


async def test_pictures_and_sounds_are_saved_where_output_says(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        (run.cwd / "kept").mkdir()
        (run.cwd / "kept/gallery-1.png").write_text("mine")
        done = await run("call-tool", "gallery", "--output", "kept")
        assert done.code == 0
        assert (run.cwd / "kept/gallery-1.png").read_text() == "mine"
        assert (run.cwd / "kept/gallery-2.png").read_bytes() == b"\x89PNG picture"
        assert f"[image: image/png, 12 bytes, saved to {run.cwd / 'kept/gallery-2.png'}]" in done.out
        assert {path.suffix for path in (run.cwd / "kept").iterdir()} == {".png", ".wav", ".gif"}


async def test_output_works_beside_json(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "gallery", "--json", "--output", "kept")
        assert base64.b64decode(done.json["content"][2]["data"]) == b"\x89PNG picture"
        assert (run.cwd / "kept/gallery-1.png").read_bytes() == b"\x89PNG picture"


async def test_a_folder_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        (run.cwd / "file").write_text("")
        done = await run("call-tool", "gallery", "--output", "file")
        assert done.code == 1 and "cannot save to" in done.err


async def test_log_tells_method_place_and_time_on_stderr_alone(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.write(run.entry("shop", default=True, env={"SHOP_KEY": "s3cret-key-value"}))
        plain = await run("call-tool", "say", "--text", "x", "--raw")
        logged = await run("call-tool", "say", "--text", "x", "--raw", "--log")
        assert plain.err == "" and logged.out == plain.out
        first, last = logged.err.splitlines()
        assert first.startswith("[log] → tools/call say · ") and first.endswith("workshop.py")
        assert last.startswith("[log] ← tools/call say · ") and " ms · " in last


async def test_secrets_of_the_profile_are_masked_in_the_log(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.write(run.entry("shop", default=True, env={"SHOP_KEY": "s3cret-key-value"}))
        done = await run("call-tool", "chat", "--log")
        assert "shop [warning] shop: careful with <" in done.err
        assert "s3cret-key-value" not in done.err


async def test_what_a_server_logs_is_told_with_log_only(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        assert "careful" not in (await run("call-tool", "chat")).err


async def test_a_folder_that_cannot_be_made_is_said_before_the_tool_is_called(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        (run.cwd / "file").write_text("x")
        for words in (
            ("call-tool", "gallery"),
            ("read-resource", "shop://blob"),
            ("get-prompt", "shop/review", "--arg", "file=x"),
        ):
            done = await run(*words, "--output", "file/below")
            assert (done.code, done.out) == (1, "") and "cannot save to" in done.err, done.err
        assert not [line for line in run.noted() if line.startswith("call")]


def test_a_name_of_any_length_becomes_the_name_of_a_file(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, "\U00020000" * 300)
    assert "saved to" in store.keep(base64.b64encode(b"pixels").decode(), "image/png")
    store.check()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"pixels"]


async def test_a_result_is_printed_also_when_its_picture_cannot_be_saved(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "pictures", "gallery")
    store.prepare()
    (tmp_path / "pictures").rmdir()
    (tmp_path / "pictures").write_text("in the way")
    assert store.keep(base64.b64encode(b"pixels").decode(), "image/png") == "image/png, 6 bytes, not saved"
    with pytest.raises(InvalidInput, match="cannot save to"):
        store.check()


async def test_json_in_a_text_is_laid_out_with_every_digit_and_member(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        sent = '{"price": 1.10, "exact": 0.12345678901234567890, "a": 1, "a": 2}'
        done = await run("call-tool", "say", "--text", sent)
        assert [line.strip(" ,") for line in done.out.splitlines()[2:-1]] == [
            '"price": 1.10', '"exact": 0.12345678901234567890', '"a": 1', '"a": 2',
        ]  # fmt: skip
