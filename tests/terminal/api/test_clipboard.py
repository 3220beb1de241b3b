"""The clipboard: what programs copy lands there, and what is pasted suits the place."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest

from dari.errors import Conflict, InvalidInput, NotFound
from dari.terminal.api import clipboard
from dari.terminal.api.clipboard import PasteResult, PasteTarget, detect_kind, format_clip, is_safe, quote_fish
from tests.support.terminal_service import House, house_in
from tests.support.terminal_tools import client_in
from tests.support.waiting import until

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def osc52(data: bytes) -> str:
    return f"printf '\\033]52;c;{base64.b64encode(data).decode()}\\007'"


async def test_what_a_program_copies_is_kept_with_pane_time_and_kind(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_create_pane", name="editor")
        await client.call("crux_execute_command", command=osc52(b'{"a": 1}'))
        await client.call("crux_execute_command", command=osc52(PNG))
        found = await client.call("crux_clipboard_context")
        newest, oldest = found["entries"]
        assert (newest["kind"], newest["mime_type"], newest.get("text", "")) == ("image", "image/png", "")
        assert (oldest["kind"], oldest["text"], oldest["origin"]) == ("json", '{"a": 1}', "osc52")
        assert (oldest["from_pane"], oldest["from_pane_name"]) == ("1", "editor")
        assert oldest["copied_unix"] <= newest["copied_unix"]
        only = await client.call("crux_clipboard_context", kind="json")
        assert [entry["id"] for entry in only["entries"]] == [oldest["id"]]


async def test_a_program_that_asks_for_the_clipboard_is_not_answered(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.clipboard.copy("secret words")
        ask = "printf '\\033]52;c;?\\007'; read -t 1 -n 1 answer; echo got=$answer."
        assert (await house.service.commands.execute(ask)).stdout == "got=."


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"words", "text"),
        (b"one\ntwo", "lines"),
        (b' {"a": [1, 2]} ', "json"),
        (b"{no json}", "text"),
        (b"https://example.org/a?b=1&c=2", "url"),
        (b"https://example.org and more", "text"),
        (b"/etc/hosts", "files"),
        (b"file:///tmp/a%20b\n/tmp/c", "files"),
        (b"<!DOCTYPE html><p>x", "html"),
        (b"{\\rtf1 hello}", "rtf"),
        (PNG, "image"),
        (b"\xff\xd8\xff\xe0", "image"),
        (b"\x80\x81", "binary"),
    ],
)
def test_kinds_are_told_apart(data: bytes, kind: str) -> None:
    assert detect_kind(data)[0] == kind


async def paste(house: House, text: str, **options: object) -> PasteResult:
    clip = await house.service.clipboard.copy(text)
    return await house.service.clipboard.paste(clip_id=clip.id, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "sh"])
@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/?a=1&b=$(touch${IFS}pwned)&c=;touch${IFS}pwned",
        """{"k": "it's $(touch pwned) `x` \\\\ \\" !"}""",
    ],
)
async def test_at_a_prompt_json_and_urls_are_one_quoted_word(shell: str, text: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(shell=shell)
        await house.service.commands.execute("true")
        (tmp_path / "show").write_text("#!/bin/sh\nprintf '%s|' $#\nprintf %s \"$1\" > word\n")
        (tmp_path / "show").chmod(0o755)
        await house.service.commands.send_text("./show ")
        done = await paste(house, text)
        assert (done.form, done.is_safe) == ("shell", True)
        await house.service.commands.send_keys("Enter")
        await until((tmp_path / "word").exists)
        await until(lambda: (tmp_path / "word").read_text() != "")
        word = (tmp_path / "word").read_text()
        assert word == text or json.loads(word) == json.loads(text)
        assert not (tmp_path / "pwned").exists()


async def test_into_an_editor_json_is_formatted_and_lines_go_in_as_one_paste(tmp_path: Path) -> None:
    if shutil.which("vim") is None:
        pytest.skip("vim is not on this machine")
    async with house_in(tmp_path) as house:
        begun = await house.service.commands.execute("vim --clean note.json", timeout_s=0.2)
        mark = (await house.service.commands.wait_for("note.json", since=0, timeout_s=30)).mark
        await house.service.commands.send_keys("i")
        await house.service.commands.wait_for("-- INSERT --", is_regex=False, since=mark, timeout_s=30)
        done = await paste(house, '{"b":1,"a":[1,2.50]}')
        assert (done.form, done.is_bracketed, done.kind) == ("json", True, "json")
        await house.service.commands.send_keys("<Escape>:wq<Enter>")
        assert (await house.service.commands.wait_command(begun.command_id, 30)).exit_code == 0
        assert (tmp_path / "note.json").read_text() == '{\n  "b": 1,\n  "a": [\n    1,\n    2.50\n  ]\n}\n'


async def test_lines_into_a_program_that_knows_no_pastes_are_refused_unless_allowed(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("cat > lines", timeout_s=0.3)
        with pytest.raises(Conflict) as refused:
            await paste(house, "one\ntwo\n")
        assert "allow_lines" in refused.value.hint
        done = await paste(house, "one\ntwo\n", allow_lines=True)
        assert (done.is_safe, done.is_bracketed) == (False, False)
        await house.service.commands.send_keys("C-d")
        await until(lambda: (tmp_path / "lines").read_text() == "one\ntwo\n")


async def test_a_paste_with_enter_is_judged_as_if_it_was_typed(tmp_path: Path) -> None:
    (tmp_path / "victim").touch()
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="true")
        error = (await client.call("crux_paste_smart", text="rm victim", enter=True))["error"]
        assert error["name"] == "needs_approval"
        lines = (await client.call("crux_paste_smart", text="rm victim\ntrue\n"))["error"]
        assert lines["name"] == "needs_approval"
        done = await client.call("crux_paste_smart", text="touch made", enter=True)
        assert (done["success"], done["form"]) == (True, "plain")
        await until((tmp_path / "made").exists)
    assert (tmp_path / "victim").exists()


async def test_controls_in_a_clip_are_not_keys(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("cat > typed", timeout_s=0.3)
        await paste(house, "a\x1b[201~\x03b", allow_lines=True)
        await house.service.commands.send_keys("Enter C-d")
        await until(lambda: (tmp_path / "typed").read_text() == "a[201~b\n")


async def test_what_is_selected_is_copied(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="printf 'pick me up\\n'")
        rows = (await client.call("crux_get_raw_text"))["text"].split("\n")
        row = rows.index("pick me up")
        await client.call("crux_set_selection", start_row=row, start_col=5, end_row=row, end_col=7)
        copied = await client.call("crux_clipboard_copy", pane_id="1")
        assert (copied["text"], copied["origin"], copied["from_pane"]) == ("me", "selection", "1")


async def test_the_history_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipboard, "MAX_CLIPS", 3)
    monkeypatch.setattr(clipboard, "MAX_CLIPS_BYTES", 100)
    async with house_in(tmp_path) as house:
        api = house.service.clipboard
        for number in range(5):
            await api.copy(f"clip {number}")
        assert [clip.text for clip in (await api.history(3)).entries] == ["clip 4", "clip 3", "clip 2"]
        await api.copy("x" * 90)
        assert (await api.history(3)).total == 2
        with pytest.raises(InvalidInput):
            await api.copy("")
        with pytest.raises(NotFound) as gone:
            await api.history(3, clip_id="clip-1")
        assert "crux_clipboard_context" in gone.value.hint


async def test_an_image_is_not_pasted_and_an_empty_clipboard_is_told(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("true")
        api = house.service.clipboard
        with pytest.raises(NotFound):
            await api.paste()
        await house.service.commands.execute(osc52(PNG))
        with pytest.raises(InvalidInput):
            await api.paste()
        with pytest.raises(NotFound) as unknown:
            await api.paste("77")
        assert "crux_list_panes" in unknown.value.hint


def test_forms_of_one_clip() -> None:
    prompt, fish, editor = PasteTarget("bash", True), PasteTarget("fish", True), PasteTarget("", True)
    assert format_clip("/tmp/a b\nfile:///tmp/c%20d", "files", "auto", prompt).text == "'/tmp/a b' '/tmp/c d'"
    assert format_clip("it's", "text", "shell", fish).text == "'it\\'s'"
    assert format_clip("https://e.org/a(b)", "url", "markdown", editor).text == "[e.org/a(b)](https://e.org/a%28b%29)"
    assert format_clip('{"a" : 1}', "json", "compact", editor).text == '{"a":1}'
    assert format_clip("text\n", "text", "auto", prompt).text == "text\n"
    assert quote_fish("a\\b'c") == "'a\\\\b\\'c'"


def test_safety_agrees_with_the_engines_own_judgement() -> None:
    pyghostty = pytest.importorskip("pyghostty")
    lib = getattr(pyghostty, "lib", None) or __import__("pyghostty.core", fromlist=["lib"]).lib
    for text in ("plain", "한글 😀", "two\nlines", "\x1b[201~out", "tab\there"):
        data = text.encode()
        assert is_safe(text) == lib.ghostty_paste_is_safe(data, len(data)), text


async def test_a_program_that_copies_without_end_pushes_out_nobody_elses_clips(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        mine = await house.service.clipboard.copy("mine")
        await house.service.commands.execute(f"for i in $(seq 300); do {osc52(b'flood')}; done")
        found = await house.service.clipboard.history(limit=100)
        assert len(found.entries) == 100
        assert found.entries[-1].id == mine.id and found.entries[0].text == "flood"
