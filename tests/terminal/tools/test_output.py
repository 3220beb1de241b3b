"""What a model reads: nothing hidden, no more than fits, and where to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import InvalidInput
from dari.terminal.tools.output import limit_formatted, limit_lines, limit_output
from tests.support.terminal_tools import client_in

HIDDEN = {
    "bidi": "\u202egnp.exe",
    "zero-width": "pass\u200bword",
    "tags": "ok\U000e0041\U000e0042",
    "control": "a\x07b\x1b[2Jc",
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_what_hides_is_made_visible(kind: str) -> None:
    text = limit_output(HIDDEN[kind]).text
    assert text.isascii()
    assert text != HIDDEN[kind]
    assert all(character.isprintable() for character in text)


def test_korean_emoji_and_boxes_stay_as_they_are() -> None:
    text = "한글 👩‍💻 ┌─┐\tend"
    assert limit_output(text).text == text


def test_formatted_text_keeps_colours_and_nothing_else() -> None:
    text = limit_formatted("\x1b[31mred\x1b[0m\x1b]0;x\x07\u202e").text
    assert text.startswith("\x1b[31mred\x1b[0m")
    assert "\x1b]" not in text and "\u202e" not in text


def test_a_long_text_keeps_its_start_and_its_end() -> None:
    cleaned = limit_output("\n".join(map(str, range(100_000))), max_tokens=1000)
    assert cleaned.is_truncated
    assert cleaned.text.startswith("0\n1\n") and cleaned.text.endswith("99999")
    assert len(cleaned.text) < 4200
    with pytest.raises(InvalidInput):
        limit_output("x", 0)


def test_lines_that_fit_are_whole_and_one_too_long_is_cut() -> None:
    text, count = limit_lines("a" * 30 + "\n" + "b" * 30, max_tokens=10)
    assert (text, count) == ("a" * 30, 1)
    text, count = limit_lines("c" * 100, max_tokens=10)
    assert count == 1 and text.startswith("c" * 40) and "60 characters left out" in text


async def test_output_of_a_hostile_program_is_shown_harmless_by_every_reading_tool(tmp_path: Path) -> None:
    (tmp_path / "hostile").write_text("evil\u202etxt \U000e0041 \x1b]8;;http://x\x07link\x1b]8;;\x07 \u200bend\n")
    async with client_in(tmp_path) as client:
        done = await client.call("crux_execute_command", command="cat hostile")
        texts = [done["stdout"]]
        for tool in ("get_output", "get_raw_text", "get_scrollback", "get_formatted_output"):
            texts.append((await client.call(f"crux_{tool}"))["text"])
        await client.call("crux_set_selection", start_row=0, start_col=0, end_row=5, end_col=0)
        texts.append((await client.call("crux_get_selection"))["text"])
        read = await client.ask("resources/read", uri="crux://pane/1/scrollback")
        texts.append(read["result"]["contents"][0]["text"])
        for text in texts:
            assert "evil" in text
            assert not set(text) & {"\u202e", "\u200b", "\U000e0041", "\x07"}


async def test_a_long_output_is_cut_and_read_on_by_its_command(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        done = await client.call("crux_execute_command", command="seq 1 5000", max_tokens=500)
        assert done["truncated"] is True
        assert done["stdout"].startswith("1\n2\n") and done["stdout"].endswith("\n5000")
        numbers: list[str] = []
        offset: int | None = 0
        while offset is not None:
            part = await client.call(
                "crux_get_command_output", command_id=done["command_id"], offset=offset, max_tokens=1000
            )
            numbers += part["text"].split("\n")
            offset = part["next_offset"]
        assert numbers == [str(number) for number in range(1, 5001)]


async def test_scrollback_is_paged_by_tokens(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="seq 1 2000")
        lines: list[str] = []
        offset: int | None = 0
        while offset is not None:
            part = await client.call("crux_get_scrollback", offset=offset, limit=300, max_tokens=200)
            lines += part["text"].split("\n")
            offset = part["next_offset"]
        assert [line for line in lines if line.isdigit()] == [str(number) for number in range(1, 2001)]
        assert len(lines) == part["total_lines"]


async def test_null_counts_as_left_out(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        done = await client.call(
            "crux_execute_command", command="echo x", pane_id=None, timeout_ms=None, max_tokens=None
        )
        assert done["stdout"] == "x"
        assert "error" in await client.call("crux_execute_command", command=None)
