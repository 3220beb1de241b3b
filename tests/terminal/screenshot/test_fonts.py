"""Font files are read right, and a machine without them is told what to install."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from PIL import ImageFont

from dari.errors import InvalidInput, Unavailable
from dari.terminal.screenshot.fonts import _CJK, _EMOJI, _LATIN, _OTHERS, PRIVATE, Fonts, FontSource, Sfnt
from dari.terminal.screenshot.painter import Painter
from tests.terminal.screenshot.shots import capture, shoot


def test_every_font_of_the_extra_is_installed_and_readable() -> None:
    for source in (_LATIN, _CJK, *_EMOJI, *_OTHERS):
        assert source.open() is not None, source


def test_the_cjk_face_has_all_syllables_and_kana_and_common_han() -> None:
    face = _CJK.open()
    assert face is not None

    assert all(face.has(chr(code)) for code in range(0xAC00, 0xD7A4))
    assert all(face.has(chr(code)) for code in range(0x3041, 0x3097))
    assert sum(face.has(chr(code)) for code in range(0x4E00, 0xA000)) > 20_000
    assert not face.has("😀")


def test_the_characters_of_a_face_are_those_that_freetype_finds() -> None:
    """FreeType draws glyph 0 for what a font does not have; the map that we read has to agree with it."""
    face = _LATIN.open()
    assert face is not None
    font = face.at(32, bold=False)
    blank = bytes(font.getmask("\U0010fffd"))
    for code in (*range(0x21, 0x7F), *range(0xA1, 0x250), *range(0x370, 0x500), *range(0x2190, 0x2300)):
        if chr(code).isspace() or code == 0xAD:
            continue
        assert face.has(chr(code)) == (bytes(font.getmask(chr(code))) != blank), hex(code)


def test_a_font_by_numbers_draws_the_glyph_of_the_character() -> None:
    face = _EMOJI[1].open()
    assert face is not None
    plain = ImageFont.truetype(Path(_path(_EMOJI[1])), 40, layout_engine=ImageFont.Layout.BASIC)
    plain.set_variation_by_axes([400])

    (number,) = face.sfnt.joined("🚀")
    assert bytes(face.at(40, bold=False).getmask(chr(PRIVATE + number))) == bytes(plain.getmask("🚀"))


@pytest.mark.parametrize("source", _EMOJI)
@pytest.mark.parametrize("text", ["👨‍👩‍👧‍👦", "🇰🇷", "👍🏽", "#️⃣", "🏳️‍🌈", "❤️"])
def test_a_sequence_becomes_one_glyph(source: FontSource, text: str) -> None:
    face = source.open()
    assert face is not None

    assert len(face.characters(text)) == 1


def test_an_extra_font_is_asked_before_the_others(tmp_path: Path) -> None:
    own = tmp_path / "own.ttf"
    own.write_bytes(Path(_path(_EMOJI[1])).read_bytes())
    sign = capture("⚓\ufe0e")  # in the emoji font, and in Noto's symbols
    usual = shoot(sign, Painter(fonts=Fonts()))
    given = shoot(sign, Painter(fonts=Fonts([own])))

    assert given.cell(0).tobytes() != usual.cell(0).tobytes()


@pytest.mark.parametrize(
    "content", [b"", b"no font at all", b"ttcf\0\1\0\0\0\0\0\1", b"\0\1\0\0\0\x09" + b"\xff" * 200]
)
def test_a_file_that_is_no_font_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.ttf"
    path.write_bytes(content)

    with pytest.raises(InvalidInput, match=r"broken\.ttf"):
        Fonts([path])


def test_without_the_packages_the_hint_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    for missing in ("PIL", "fontpkg_jetbrains_mono"):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, hidden=missing: None if name == hidden else found(name)
        )
        with pytest.raises(Unavailable) as caught:
            Fonts()
        assert "[terminal]" in caught.value.hint


def test_without_the_cjk_package_syllables_show_their_code(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    usual = shoot(capture("한"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name.startswith("noto_cjk") else found(name))
    shot = shoot(capture("한"), Painter())

    assert shot.pixel(0, 0) == (229, 229, 229) != usual.pixel(0, 0)
    assert shot.ink(0) and shot.ink(1)


def test_the_fonts_of_a_collection_are_told_apart_by_their_number() -> None:
    data = Path(_path(_CJK)).read_bytes()

    assert Sfnt(data, 6).glyph("骨") != Sfnt(data, 7).glyph("骨")  # Korean and simplified Chinese write it differently


def _path(source: FontSource) -> str:
    spec = importlib.util.find_spec(source.package)
    assert spec is not None and spec.submodule_search_locations
    return str(Path(spec.submodule_search_locations[0], source.file))
