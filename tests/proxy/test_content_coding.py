from __future__ import annotations

import gzip
import sys
import zlib

import brotli  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dari.proxy import content_coding

TEXT = "naïve café ".encode() * 500
PACKED = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def pieces(data: bytes, size: int = 1000) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("name", PACKED)
def test_every_content_coding_is_undone_piece_by_piece(name: str) -> None:
    assert content_coding.decode(pieces(PACKED[name](TEXT), 7), [name]) == content_coding.Decoded(TEXT)


@pytest.mark.parametrize("name", PACKED)
@given(data=st.binary(max_size=3000), size=st.integers(1, 500))
def test_any_bytes_come_back_from_any_coding(name: str, data: bytes, size: int) -> None:
    assert content_coding.decode(pieces(PACKED[name](data), size), [name]).data == data


def test_a_bare_deflate_stream_is_understood_too() -> None:
    packer = zlib.compressobj(wbits=-15)
    bare = packer.compress(TEXT) + packer.flush()
    assert content_coding.decode(pieces(bare), ["deflate"]).data == TEXT


def test_two_gzip_members_are_one_content() -> None:
    assert content_coding.decode((gzip.compress(b"one ") + gzip.compress(b"two"),), ["gzip"]).data == b"one two"


def test_codings_are_undone_from_the_last_to_the_first() -> None:
    assert content_coding.decode((gzip.compress(brotli.compress(TEXT)),), ["br", "gzip"]).data == TEXT


def bomb_in(name: str) -> bytes:
    data = b"\0" * 50_000_000
    # As small at any quality; the usual one takes seconds for it.
    return brotli.compress(data, quality=5) if name == "br" else PACKED[name](data)


@pytest.mark.parametrize("name", PACKED)
def test_a_bomb_stops_at_the_limit(name: str) -> None:
    found = content_coding.decode(pieces(bomb_in(name), 65536), [name], limit_bytes=100_000)
    assert len(found.data) == 100_000 and found.is_cut


@pytest.mark.parametrize("name", PACKED)
def test_a_bomb_is_never_unpacked_far_beyond_the_limit(name: str) -> None:
    biggest = max(map(len, content_coding._UNDO[name](iter([bomb_in(name)]))))
    assert biggest <= 16 * content_coding.PIECE_BYTES


def test_gzip_members_without_an_end_have_one() -> None:
    found = content_coding.decode((gzip.compress(b"a") * (content_coding.MAX_GZIP_MEMBERS + 1),), ["gzip"])
    assert found.problem == "more than 10,000 gzip members"
    assert found.data == b"a" * content_coding.MAX_GZIP_MEMBERS


@pytest.mark.parametrize("size", [1000, 65536, 10**6])
def test_zeros_after_a_gzip_member_are_padding_however_the_body_is_cut(size: int) -> None:
    data = gzip.compress(b"one, ") + bytes(200_000) + gzip.compress(b"two") + bytes(70_000)
    found = content_coding.decode(pieces(data, size), ["gzip"])
    assert (found.data, found.problem) == (b"one, two", None)


def test_a_tower_of_codings_is_refused() -> None:
    assert "4 content codings" in (content_coding.decode((b"x",), ["gzip"] * 4).problem or "")


@pytest.mark.parametrize("name", PACKED)
def test_data_that_is_not_what_it_says_gives_a_reason(name: str) -> None:
    found = content_coding.decode((b"this is plain text, not packed at all",), [name])
    assert found.problem is not None and found.problem.startswith("not ")


@pytest.mark.parametrize("name", PACKED)
def test_a_sample_that_ends_early_gives_what_it_has(name: str) -> None:
    import random

    noise = random.Random(1).randbytes(200_000)
    packed = PACKED[name](noise)
    found = content_coding.decode((packed[: len(packed) * 3 // 4],), [name])
    assert noise.startswith(found.data) and len(found.data) > 0


def test_an_unknown_coding_leaves_the_bytes_as_they_are() -> None:
    found = content_coding.decode((b"abc",), ["sdch"])
    assert found.data == b"abc" and "sdch" in (found.problem or "")


@pytest.mark.parametrize(
    ("content_type", "data", "charset"),
    [
        (b"text/plain; charset=ISO-8859-1", b"caf\xe9", "iso-8859-1"),
        (b'text/plain; charset="utf-8"', "café".encode(), "utf-8"),
        (b"text/html", b'<meta charset="windows-1251">\xcf\xf0', "windows-1251"),
        (b"text/html", b"<meta http-equiv=x content='text/html; charset=shift_jis'>", "shift_jis"),
        (b"text/xml", b'<?xml version="1.0" encoding="iso-8859-2"?>\xb1', "iso-8859-2"),
        (b"text/plain", "\ufeffhi".encode("utf-16-le"), "utf-16"),
        (b"application/json", "\ufeff{}".encode(), "utf-8"),
        (b"text/plain", "café".encode(), "utf-8"),
        (b"text/plain", b"caf\xe9 costs more than this", "windows-1252"),
        (b"text/plain; charset=zlib", b"hi", "utf-8"),
        (b"text/plain; charset=no-such-thing", b"hi", "utf-8"),
        (b"text/plain; charset=unicode_escape", b"hi", "utf-8"),
        (b"text/plain; charset=unicode-escape", b"hi", "utf-8"),
        (b"text/plain; charset=PUNYCODE", b"hi", "utf-8"),
        (b"", b"hi", "utf-8"),
    ],
)
def test_the_charset_comes_from_the_mark_the_header_the_document_or_the_bytes(
    content_type: bytes, data: bytes, charset: str
) -> None:
    found = content_coding.text_of(data, [(b"Content-Type", content_type)])
    assert found is not None and found[1] == charset


@pytest.mark.parametrize(
    ("content_type", "data"),
    [
        (b"image/png", b"text"),
        (b"", b"\0\1\2"),
        (b"application/grpc+proto", b"x"),
        (b"text/plain", bytes(range(128, 256)) + bytes(range(1, 9))),
    ],
)
def test_what_is_not_text_is_not_shown_as_text(content_type: bytes, data: bytes) -> None:
    assert content_coding.text_of(data, [(b"Content-Type", content_type)]) is None


def test_a_drawing_in_svg_is_text() -> None:
    assert content_coding.text_of(b"<svg/>", [(b"Content-Type", b"image/svg+xml")]) == ("<svg/>", "utf-8")


def test_a_character_cut_at_the_end_does_not_change_the_charset() -> None:
    found = content_coding.text_of("über café".encode()[:-1], [(b"Content-Type", b"text/plain")])
    assert found is not None and found[1] == "utf-8"


def test_the_decoders_are_imported_only_when_a_body_needs_them() -> None:
    import subprocess

    script = "import sys, dari.proxy.recording.recording; print({'brotli', 'zstandard'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "set()"
