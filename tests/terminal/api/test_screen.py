"""What panes show, as text, state and picture."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pytest

from dari.errors import InvalidInput
from tests.support.terminal_service import house_in
from tests.support.waiting import until


async def test_the_last_lines_are_whole_lines_without_the_empty_rows_below(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("seq 1 300; printf 'x%.0s' {1..450}; echo")
        output = await house.service.screen.get_output(lines=4)
        assert output.text.split("\n")[:2] == ["299", "300"]
        assert output.text.split("\n")[2] == "x" * 450
        assert output.line_count == 4


async def test_scrollback_is_paged_from_the_oldest_line(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(argv=["sh", "-c", "seq 1 500"])
        assert await house.service.commands.wait_exit("1", 10) == 0
        first = await house.service.screen.get_scrollback(offset=0, limit=200)
        assert (first.text.split("\n")[0], first.total_lines, first.next_offset) == ("1", 500, 200)
        last = await house.service.screen.get_scrollback(offset=400, limit=200)
        assert (last.text.split("\n")[-1], last.line_count, last.next_offset) == ("500", 100, None)
        newest = await house.service.screen.get_scrollback(limit=10)
        assert (newest.text.split("\n")[0], newest.offset) == ("491", 490)


async def test_numbers_of_lines_out_of_range_are_refused(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane()
        for wrong in (0, -1, 10**9):
            with pytest.raises(InvalidInput):
                await house.service.screen.get_output(lines=wrong)
        with pytest.raises(InvalidInput):
            await house.service.screen.get_scrollback(offset=-1)


async def test_formatted_output_has_colours_and_no_other_sequence(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        words = ["printf", "\\033[31mred\\033[0m \\033]0;title\\007\\033[5Cfar\\n"]
        await house.service.panes.spawn_pane(argv=words)
        assert await house.service.commands.wait_exit("1", 10) == 0
        text = (await house.service.screen.get_formatted_output()).text
        assert "\x1b[" in text and "red" in text and "far" in text
        assert "\x1b]" not in text
        assert (await house.service.screen.get_raw_text()).text == "red      far"


async def test_directory_and_program_are_those_of_what_runs_now(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    async with house_in(tmp_path) as house:
        commands, reading = house.service.commands, house.service.screen
        await commands.execute("cd deep")
        assert (await reading.get_cwd()).cwd == str(tmp_path / "deep")
        shell = await reading.get_process()
        assert (shell.name, shell.is_shell) == ("bash", True)
        await commands.execute("sleep 1000", timeout_s=0.2)
        pane = house.multiplexer.find()
        await until(lambda: (found := pane.foreground()) is not None and found.name == "sleep")  # past its exec
        running = await reading.get_process()
        assert (running.name, running.command_line, running.is_shell) == ("sleep", "sleep 1000", False)
        assert running.pid != shell.pid


async def test_the_state_tells_what_the_pane_waits_for(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        commands, reading = house.service.commands, house.service.screen
        await commands.execute("false")
        state = await reading.get_pane_state()
        assert (state.cols, state.rows, state.scroll_pos) == (200, 50, 0)
        assert (state.is_at_prompt, state.last_exit_code, state.is_full_screen) == (True, 1, False)
        assert state.cursor.row > 0
        await commands.execute("read -s secret", timeout_s=0.3)
        await until(lambda: house.multiplexer.find().is_asking_secret)
        asking = await reading.get_pane_state()
        assert (asking.is_asking_secret, asking.is_at_prompt, asking.running_command) == (True, False, "read -s secret")
        await commands.send_text("x\n")


async def test_the_view_scrolls_back_as_far_as_there_is_history(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("seq 1 100")
        history = house.multiplexer.find().engine.history
        assert history > 0
        assert (await house.service.screen.scroll(3)).scroll_pos == 3
        assert (await house.service.screen.scroll(10_000)).scroll_pos == history
        assert (await house.service.screen.scroll(-5)).scroll_pos == 0


async def test_a_selection_is_kept_until_the_next(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(argv=["printf", "alpha beta\\r\\n한글 gamma\\r\\n"])
        assert await house.service.commands.wait_exit("1", 10) == 0
        reading = house.service.screen
        assert (await reading.get_selection()).text == ""
        await reading.select("1", 0, 6, 1, 4)
        assert (await reading.get_selection()).text == "beta\n한글"
        await reading.select("1", 1, 0, 0, 0)
        assert (await reading.get_selection()).text == ""


async def test_a_picture_is_a_png_of_the_screen(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("seq 1 60")
        reading = house.service.screen
        picture = await reading.screenshot()
        png = b64decode(picture.image)
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        assert int.from_bytes(png[16:20], "big") == picture.width
        taller = await reading.screenshot(history_rows=5)
        assert taller.height == picture.height // 50 * 55
