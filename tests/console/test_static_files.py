"""The page's own files: nothing of others in them, no markup made from strings, texts in both languages."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import brotli
import pytest

from dari.console.script_chunks import chunk_names, chunks_of
from dari.console.static_files import FOLDER, encode_for, find_file, frame_style_hash, page_file, strip_style, version

SCRIPTS = sorted(FOLDER.rglob("*.js"))
# As served, in brotli, in one language; the goal of the project for all there is was 90 kB.
MAX_HOME_BYTES = 26_000
MAX_PAGE_BYTES = 38_000
MAX_NAVIGATION_BYTES = 118_500
MAX_BYTES_IN_ALL = 163_000
_SINKS = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|eval\(|new Function|setAttribute\(\s*[\"']style)"
)


def names(scripts: list[Path]) -> list[str]:
    return [str(path.relative_to(FOLDER)) for path in scripts]


@pytest.mark.parametrize("name", names(SCRIPTS))
def test_no_script_makes_markup_of_text(name: str) -> None:
    assert _SINKS.findall((FOLDER / name).read_text()) == []


@pytest.mark.parametrize("name", names([*SCRIPTS, *FOLDER.rglob("*.css"), *FOLDER.rglob("*.html")]))
def test_no_file_names_another_host(name: str) -> None:
    hosts = set(re.findall(r"https?://([\w.-]+)", (FOLDER / name).read_text()))
    assert hosts <= {"www.w3.org", "127.0.0.1", "localhost", "example.com"}


PAGES = ("home", "servers", "tools", "traffic", "terminals", "knowledge", "approvals", "audit", "settings")


def sent(name: str) -> bytes:
    """The file of that name as a browser of today gets it."""
    file = find_file(f"{version()}/{name}")
    assert file is not None, name
    return encode_for(file, b"br")[1]


def loaded_by(page: str) -> set[str]:
    """What a page loads beside its document, which has the frame's style: scripts in English and styles."""
    source = (FOLDER / "js" / "pages" / f"{page}.js").read_text()
    styles = re.search(r"css = \[([^\]]*)\]", source)
    chosen = re.findall(r'"([^"]+)"', styles[1] if styles else "")
    scripts = ("main.js", *chunks_of(f"pages/{page}.js"))
    if any("charts.js" in name for name in scripts):
        chosen.append("charts.css")
    return {*(f"css/{name}" for name in chosen), *(f"en/{name}" for name in scripts)}


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_loads_with_its_frame_is_small(page: str) -> None:
    document = encode_for(page_file(page, "en"), b"br")[1]
    limit = MAX_HOME_BYTES if page == "home" else MAX_PAGE_BYTES
    assert len(document) + sum(len(sent(name)) for name in loaded_by(page)) < limit


def test_all_pages_of_the_navigation_together_are_small() -> None:
    wanted = {"app.css"}.union(*map(loaded_by, PAGES))
    assert sum(len(sent(name)) for name in wanted) < MAX_NAVIGATION_BYTES


def test_all_there_is_in_one_language_is_small() -> None:
    styles = [str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.css")]
    assert sum(len(sent(name)) for name in (*styles, *(f"en/{name}" for name in chunk_names()))) < MAX_BYTES_IN_ALL


@pytest.mark.parametrize(
    "path", ["../app.py", "/etc/passwd", "js/../../app.py", "js", "", "js//main.js", "%2e%2e/app.py"]
)
def test_nothing_outside_of_the_folder_can_be_named(path: str) -> None:
    assert find_file(path) is None


def read_texts(name: str) -> dict[str, dict[str, str]]:
    """The two tables of a file of texts, which are written as plain literals."""
    source = (FOLDER / "js" / "texts" / name).read_text()
    tables = {}
    for code in ("en", "ko"):
        body = re.search(rf"^  {code}: \{{(.*?)^  \}},", source, re.S | re.M)
        assert body, f"{name} has no table {code!r}"
        entries = re.findall(r'"([\w.]+)":\s*("(?:[^"\\]|\\.)*"|`[^`]*`)', body[1])
        tables[code] = dict(entries)
    return tables


TEXT_FILES = sorted(path.name for path in (FOLDER / "js" / "texts").glob("*.js"))


@pytest.mark.parametrize("name", TEXT_FILES)
def test_both_languages_have_the_same_texts_with_the_same_placeholders(name: str) -> None:
    tables = read_texts(name)
    assert tables["en"] and tables["en"].keys() == tables["ko"].keys()
    holes = {
        key: (set(re.findall(r"\{(\w+)\}", english)), set(re.findall(r"\{(\w+)\}", tables["ko"][key])))
        for key, english in tables["en"].items()
    }
    assert {key: both for key, both in holes.items() if both[0] != both[1]} == {}


def _without_comments(source: str) -> str:
    return re.sub(r"^\s*(//|/?\*).*$", "", source, flags=re.M)


def test_every_text_that_a_script_asks_for_is_there() -> None:
    known = {key for name in TEXT_FILES for key in read_texts(name)["en"]}
    asked = {
        (key, path.name)
        for path in SCRIPTS
        for key in re.findall(r"(?<![\w.])t\(\s*\"([\w.]+)\"", _without_comments(path.read_text()))
        if path.name != "i18n.js"
    }
    assert {each for each in asked if each[0] not in known} == set()


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_document_of_a_page_asks_at_once_for_all_scripts_of_that_page(language: str) -> None:
    text = page_file("audit", language).plain.decode()
    root = f"/static/{version()}/{language}"
    wanted = {f"{root}/{name}" for name in chunks_of("pages/audit.js")}
    assert len(wanted) > 1 and set(re.findall(r'modulepreload" href="([^"]+)"', text)) == wanted
    assert f'<script type="module" src="{root}/main.js"></script>' in text and f'<html lang="{language}">' in text


def test_the_document_has_the_style_of_its_frame_and_the_policy_names_that_alone() -> None:
    text = page_file("audit", "en").plain.decode()
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
    assert "app.css" not in text and "/*" not in style and ".nav" in style
    assert frame_style_hash() == f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}"


def test_the_plain_document_runs_the_sources_as_they_are() -> None:
    text = page_file("audit", "en", is_plain=True).plain.decode()
    assert "modulepreload" not in text and f'src="/static/{version()}/js/main.js"' in text
    main = find_file(f"{version()}/js/main.js")
    assert main is not None and main.plain == (FOLDER / "js" / "main.js").read_bytes()


def test_an_address_with_the_version_lasts_and_one_of_another_version_leads_nowhere() -> None:
    file = find_file(f"{version()}/app.css")
    assert file is not None and file.is_lasting
    assert find_file("0123456789ab/app.css") is None
    assert not page_file("", "en").is_lasting


def test_styles_are_sent_without_comments_and_indentation() -> None:
    assert strip_style(b"/* why\n */\na {\n  top: 0; /* x */\n\n}\n") == b"a {\ntop: 0; \n}\n"


@pytest.mark.parametrize(
    ("accepted", "coding"), [(b"gzip, deflate, br, zstd", b"br"), (b"GZIP;q=0.5", b"gzip"), (b"zebra", b""), (b"", b"")]
)
def test_a_file_is_sent_in_the_best_coding_that_the_browser_takes(accepted: bytes, coding: bytes) -> None:
    file = find_file("js/main.js")
    assert file is not None
    chosen, body = encode_for(file, accepted)
    assert chosen == coding
    decode = {b"br": brotli.decompress, b"gzip": gzip.decompress, b"": bytes}[coding]
    assert decode(body) == file.plain
    if coding == b"br":
        assert len(body) < len(file.gzipped) < len(file.plain)
