"""The page's own files: nothing of others in them, no markup made from strings, texts in both languages."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import brotli
import pytest

from dari.console.static_files import FOLDER, encode_for, find_file, strip_comments, version

SCRIPTS = sorted(FOLDER.rglob("*.js"))
MAX_PAGE_BYTES = 60_000
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


def imports_of(*starts: str) -> set[Path]:
    """These modules with all that they import when they are loaded."""
    wanted: set[Path] = set()
    queue = [FOLDER / "js" / start for start in starts]
    while queue:
        path = queue.pop().resolve()
        if path not in wanted:
            wanted.add(path)
            found = re.findall(r'^(?:import|export) [^;]*?from "(\.[^"]+)";', path.read_text(), re.M | re.S)
            queue += [path.parent / name for name in found]
    return wanted


@pytest.mark.parametrize("page", sorted(path.stem for path in (FOLDER / "js" / "pages").glob("*.js")))
def test_what_a_page_loads_with_its_frame_is_small(page: str) -> None:
    scripts = imports_of("main.js", f"pages/{page}.js")
    styles = re.search(r"css = \[([^\]]*)\]", (FOLDER / "js" / "pages" / f"{page}.js").read_text())
    loaded = [*names(list(scripts)), "index.html", "app.css"]
    loaded += [f"css/{name}" for name in re.findall(r'"([^"]+)"', styles[1] if styles else "")]
    assert sum(len(file.gzipped) for name in loaded if (file := find_file(name))) < MAX_PAGE_BYTES


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


def test_the_page_asks_at_once_for_every_module_of_its_frame() -> None:
    wanted = imports_of("main.js")
    preloaded = re.findall(r'modulepreload" href="/static/([^"]+)"', (FOLDER / "index.html").read_text())
    assert set(names(list(wanted))) == {*preloaded, "js/main.js"}


def test_an_address_with_the_version_lasts_and_one_of_another_version_leads_nowhere() -> None:
    file = find_file(f"{version()}/app.css")
    assert file is not None and file.is_lasting
    assert find_file("0123456789ab/app.css") is None
    page = find_file("index.html")
    assert page is not None and not page.is_lasting and f"/static/{version()}/js/main.js".encode() in page.plain


def test_files_are_sent_without_comments_and_indentation_under_the_same_line_numbers() -> None:
    source = b"// why\nconst a = 1; // kept\n\n/** What\n *  it * does. */\n  go('//x');\n/* one */ b();\n"
    assert strip_comments(source) == b"\nconst a = 1; // kept\n\n\n\ngo('//x');\n/* one */ b();\n"


@pytest.mark.parametrize("name", names(SCRIPTS))
def test_no_literal_spans_lines_that_lose_their_indentation(name: str) -> None:
    lines = _without_comments((FOLDER / name).read_text()).splitlines()
    assert [line for line in lines if line.count("`") % 2] == []


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
