"""One table for both engines: ripgrep, and the one of ours that works without it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.code_searches import ENGINES, PLAIN, EngineName, names, rows, search

TEXTS: dict[str, bytes] = {
    "plain.txt": b"foo bar foo\nnothing\nlast foo",
    "crlf.txt": b"foo\r\nbar foo\r\nfoobar\r\n",
    "words.txt": b"foo food afoo foo_bar foo-bar\n",
    "utf8.txt": "héllo 한국어 foo\nGROSS groß GROẞ\nΣίσυφος ΣΊΣΥΦΟΣ\n\u212a k K\nkayıt KAYIT İ i I\n".encode(),
    "bom.txt": b"\xef\xbb\xbffoo after a mark\n",
    "utf16le.txt": "foo 한국\r\nnext foo\n".encode("utf-16"),
    "utf16be.txt": b"\xfe\xff" + "foo big\n".encode("utf-16-be"),
    "latin1.txt": b"caf\xe9 foo\nna\xefve\n",
    "binary.dat": b"foo\0bar foo\n",
    "empty.txt": b"",
    "blank.txt": b"\n\n\n",
    "long.txt": b"x" * 5000 + b"foo" + b"y" * 5000 + b"\nfoo\n",
    "tabs.txt": b"\tfoo\n  foo  \n",
    "special.txt": b"a.b a*b (x) [y] $z ^w a\\b {1}\n-foo --foo\n",
    "digits.txt": "12 345 ٣٤ x1\n".encode(),
    "-dash.txt": b"foo in a file named like an option\n",
    "sp ace.txt": b"foo\n",
}

# pattern, mode, case: on every file of TEXTS.
PATTERNS: list[tuple[str, str, str]] = [
    ("foo", "literal", "smart"),
    ("Foo", "literal", "smart"),
    ("FOO", "literal", "insensitive"),
    ("foo", "literal", "sensitive"),
    ("a.b", "literal", "smart"),
    ("a\\b", "literal", "smart"),
    ("-foo", "literal", "smart"),
    ("--foo", "regex", "smart"),
    ("", "literal", "smart"),
    ("", "regex", "smart"),
    ("한국", "literal", "smart"),
    ("σίσυφοσ", "literal", "insensitive"),
    ("gross", "literal", "insensitive"),
    ("groß", "literal", "insensitive"),
    ("k", "literal", "insensitive"),
    ("kayit", "literal", "insensitive"),
    ("kayıt", "literal", "insensitive"),
    ("i", "regex", "insensitive"),
    ("[i]", "regex", "insensitive"),
    ("[^i]", "regex", "insensitive"),
    ("(?i:I)(?-i) ", "regex", "sensitive"),
    ("((?i)I|x)i", "regex", "sensitive"),
    (r"[^\x00-\x7f]", "regex", "insensitive"),
    ("foo$", "regex", "smart"),
    ("^foo", "regex", "smart"),
    ("^$", "regex", "smart"),
    ("^", "regex", "smart"),
    (r"\bfoo\b", "regex", "smart"),
    (r"\Bfoo", "regex", "smart"),
    (r"\<foo\>", "regex", "smart"),
    (r"foo\w*", "regex", "smart"),
    (r"\d+", "regex", "smart"),
    (r"\S+ \S+", "regex", "smart"),
    (r"\s+$", "regex", "smart"),
    (r"o{2}", "regex", "smart"),
    (r"o{1,}b", "regex", "smart"),
    (r"fo+?", "regex", "smart"),
    (r"(foo|bar) (foo|bar)", "regex", "smart"),
    (r"(?P<one>f)(?<two>o)", "regex", "smart"),
    (r"(?:foo)?bar", "regex", "smart"),
    (r"(?i)FOO", "regex", "sensitive"),
    (r"(?i:F)oo", "regex", "sensitive"),
    (r"(?-i)foo", "regex", "insensitive"),
    (r"[[:alpha:]]+", "regex", "sensitive"),
    (r"[^[:alpha:]]foo", "regex", "smart"),
    (r"[a-f&&[^b]]oo", "regex", "smart"),
    (r"[a-z--[fx]]oo", "regex", "smart"),
    (r"[]x]", "regex", "smart"),
    (r"\p{Greek}+", "regex", "smart"),
    (r"\p{Lu}\p{Ll}", "regex", "sensitive"),
    (r"\pN", "regex", "smart"),
    (r"\x{d55c}|\u{ad6d}", "regex", "smart"),
    (r"\x66oo", "regex", "smart"),
    (r"a\*b|\{1\}", "regex", "smart"),
    (r"fo**", "regex", "smart"),
    (r"f.o", "regex", "smart"),
    (r"caf.", "regex", "smart"),
    (r"caf.foo|caf. foo|f.*", "regex", "smart"),
    (r"x+foo", "regex", "smart"),
    (r"}", "regex", "smart"),
    (r"a|", "regex", "smart"),
]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("texts")
    for name, data in TEXTS.items():
        (root / name).write_bytes(data)
    return root


@pytest.mark.parametrize(("pattern", "mode", "case"), PATTERNS)
def test_both_engines_find_the_same(texts: Path, pattern: str, mode: Any, case: Any) -> None:
    query = replace(PLAIN, pattern=pattern, mode=mode, case=case, max_matches=500)
    one, other = (search(texts, query, engine) for engine in ENGINES)
    assert isinstance(one.matches, list) and isinstance(other.matches, list)
    assert one.matches == other.matches
    assert (one.truncated, one.stats.files) == (other.truncated, other.stats.files)


@pytest.mark.parametrize("context", [1, 3])
@pytest.mark.parametrize("pattern", ["foo", "^$", "bar"])
def test_both_engines_give_the_same_context_and_no_line_twice(texts: Path, pattern: str, context: int) -> None:
    query = replace(PLAIN, pattern=pattern, mode="regex", context=context)
    one, other = (search(texts, query, engine).matches for engine in ENGINES)
    assert one == other


@pytest.mark.parametrize("output", ["files", "counts"])
def test_both_engines_name_and_count_the_same_files(texts: Path, output: Any) -> None:
    query = replace(PLAIN, pattern="foo", output=output)
    one, other = (search(texts, query, engine) for engine in ENGINES)
    assert (one.files, one.counts, one.stats.files) == (other.files, other.counts, other.stats.files)


@pytest.mark.parametrize("engine", ENGINES)
def test_columns_are_characters_and_text_is_decoded(texts: Path, engine: EngineName) -> None:
    query = replace(PLAIN, pattern="foo")
    found = {(path, line): (col, end, text) for path, line, col, end, text in rows(texts, query, engine)}
    assert found["utf8.txt", 1] == (11, 14, "héllo 한국어 foo")
    assert found["bom.txt", 1] == (1, 4, "foo after a mark")
    assert found["utf16le.txt", 1] == (1, 4, "foo 한국")
    assert found["utf16le.txt", 2] == (6, 9, "next foo")
    assert found["utf16be.txt", 1] == (1, 4, "foo big")
    assert found["latin1.txt", 1] == (6, 9, "caf\ufffd foo")
    assert found["crlf.txt", 2] == (5, 8, "bar foo")
    assert found["plain.txt", 3] == (6, 9, "last foo")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_line_is_cut_around_its_match(texts: Path, engine: EngineName) -> None:
    found = search(texts, replace(PLAIN, pattern="foo", paths=("long.txt",)), engine).matches
    assert isinstance(found, list)
    first = found[0]
    assert (first.col, first.end_col, first.text_col) == (5001, 5004, 4901)
    assert first.text[0] == first.text[-1] == "…" and len(first.text) == 402
    at = 1 + first.col - first.text_col
    assert first.text[at : at + 3] == "foo"


@pytest.mark.parametrize("engine", ENGINES)
def test_further_matches_of_a_line_are_spans_of_one_row(texts: Path, engine: EngineName) -> None:
    found = search(texts, replace(PLAIN, pattern="foo", paths=("plain.txt",)), engine).matches
    assert isinstance(found, list)
    assert [(one.line, one.col, one.end_col, one.more) for one in found] == [(1, 1, 4, [(9, 12)]), (3, 6, 9, [])]


def make_repository(root: Path, *, is_repository: bool = True) -> None:
    files: dict[str, str] = {
        "a.py": "needle",
        "build/made.py": "needle",
        "src/kept.py": "needle",
        "src/noise.log": "needle",
        "src/keep.log": "needle",
        "src/deep/x.tmp": "needle",
        "src/deep/y.py": "needle",
        "src/.hidden.py": "needle",
        ".config/inside.py": "needle",
        ".shown/inside.py": "needle",
        "excluded.txt": "needle",
        "dotignored.txt": "needle",
        "both.txt": "needle",
        "rg.txt": "needle",
        "nested/.git/config": "needle",
        "nested/build/made.py": "needle",
        "nested/own.txt": "needle",
        "secrets/id_rsa": "needle",
        "secrets/.env": "needle",
        "secrets/prod.env": "needle",
        "secrets/.env.example": "needle",
        "secrets/server.pem": "needle",
        ".ssh/config": "needle",
        ".git/HEAD": "needle",
        ".git/hooks/run": "needle",
        ".gitignore": "build/\n*.log\n!keep.log\nboth.txt\n/top_only.py\n!.shown\n# needle\n",
        "src/.gitignore": "*.tmp\n",
        "src/top_only.py": "needle",
        "top_only.py": "needle",
        ".git/info/exclude": "excluded.txt\n",
        ".ignore": "dotignored.txt\n!both.txt\n",
        ".rgignore": "rg.txt\n",
    }
    for name, text in files.items():
        if not is_repository and name.startswith(".git/"):
            continue
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    make_repository(root)
    return root


SEEN = ["a.py", "both.txt", "nested/build/made.py", "nested/own.txt", "src/deep/y.py", "src/keep.log", "src/kept.py"]


@pytest.mark.parametrize("engine", ENGINES)
def test_ignored_hidden_and_secret_files_and_git_are_left_out(repository: Path, engine: EngineName) -> None:
    found = names(repository, replace(PLAIN, pattern="needle"), engine)
    assert found == sorted([".shown/inside.py", *SEEN, "src/top_only.py"])


WALKS: list[dict[str, Any]] = [
    {"include_hidden": True},
    {"include_ignored": True},
    {"include_hidden": True, "include_ignored": True},
    {"globs": ("*.py",)},
    {"globs": ("*.{py,log}",)},
    {"globs": ("!*.py",)},
    {"globs": ("!src",)},
    {"globs": ("src/**",)},
    {"globs": ("src/",)},
    {"globs": ("src",)},
    {"globs": ("/src/*.py",)},
    {"globs": ("src/**/*.py", "!deep")},
    {"globs": (".hidden.py",)},
    {"globs": (".*",)},
    {"globs": (".*", "*.py"), "include_hidden": True},
    {"globs": ("*.pem", "id_rsa", ".env")},
    {"globs": ("*.log",), "include_ignored": True},
    {"globs": ("made.py",)},
    {"paths": ("src",)},
    {"paths": ("src", "nested")},
    {"paths": ("src/deep", "src", ".")},
    {"paths": ("src/**/*.py",)},
    {"paths": ("src/*.py", "a.py")},
    {"paths": ("**/*.{py,log}",)},
    {"paths": ("*.py", "src/deep/*")},
    {"paths": (".config",)},
    {"paths": (".", ".config")},
    {"paths": ("build",)},
    {"paths": ("build/made.py", "a.py")},
    {"paths": (".", "build/made.py")},
    {"paths": ("secrets",)},
    {"paths": ("secrets", "secrets/id_rsa")},
    {"paths": ("secrets/*",)},
    {"paths": ("src/noise.log",), "globs": ("*.py",)},
    {"paths": ("nested/build",)},
]


@pytest.mark.parametrize("options", WALKS)
def test_both_engines_walk_alike(repository: Path, options: dict[str, Any]) -> None:
    query = replace(PLAIN, pattern="needle", **options)
    one, other = (names(repository, query, engine) for engine in ENGINES)
    assert one == other
    assert not any(name.startswith((".git/", "nested/.git")) for name in one)
    matches = [[path for path, *_ in rows(repository, query, engine)] for engine in ENGINES]
    assert matches == [one, one]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_secret_is_searched_only_when_the_file_itself_is_named(repository: Path, engine: EngineName) -> None:
    everything = replace(PLAIN, pattern="needle", paths=("secrets", ".ssh"), include_hidden=True, include_ignored=True)
    assert names(repository, everything, engine) == ["secrets/.env.example"]
    named = replace(PLAIN, pattern="needle", paths=("secrets/id_rsa",))
    assert names(repository, named, engine) == ["secrets/id_rsa"]


@pytest.mark.parametrize("engine", ENGINES)
def test_globs_never_bring_ignored_files_in(repository: Path, engine: EngineName) -> None:
    assert names(repository, replace(PLAIN, pattern="needle", globs=("*.log",)), engine) == ["src/keep.log"]
    assert names(repository, replace(PLAIN, pattern="needle", globs=("made.py",)), engine) == ["nested/build/made.py"]


@pytest.mark.parametrize("engine", ENGINES)
def test_rules_of_git_count_in_a_repository_only(tmp_path: Path, engine: EngineName) -> None:
    make_repository(tmp_path, is_repository=False)
    found = names(tmp_path, replace(PLAIN, pattern="needle"), engine)
    assert "build/made.py" in found and "dotignored.txt" not in found


@pytest.mark.parametrize("engine", ENGINES)
def test_ignore_files_above_the_folder_count(repository: Path, engine: EngineName) -> None:
    found = search(repository, replace(PLAIN, pattern="needle", output="files"), engine, below="src")
    assert found.files == ["deep/y.py", "keep.log", "kept.py", "top_only.py"]


@pytest.mark.parametrize("engine", ENGINES)
def test_links_are_not_followed_and_a_loop_ends(tmp_path: Path, engine: EngineName) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a/real.txt").write_text("needle\n")
    (tmp_path / "outside.txt").write_text("needle\n")
    (root / "a/loop").symlink_to(root)
    (root / "a/link.txt").symlink_to("real.txt")
    (root / "away.txt").symlink_to(tmp_path / "outside.txt")
    os.mkfifo(root / "a/pipe")
    assert names(root, replace(PLAIN, pattern="needle"), engine) == ["a/real.txt"]
    # A link that is named stands for the file that it leads to.
    assert names(root, replace(PLAIN, pattern="needle", paths=("a/link.txt",)), engine) == ["a/real.txt"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_name_that_is_not_utf8_is_shown_escaped(tmp_path: Path, engine: EngineName) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("needle\n")
    assert names(tmp_path, replace(PLAIN, pattern="needle"), engine) == ["caf\\xe9.txt"]
    assert [row[0] for row in rows(tmp_path, replace(PLAIN, pattern="needle"), engine)] == ["caf\\xe9.txt"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_that_turns_binary_later_counts_up_to_there(tmp_path: Path, engine: EngineName) -> None:
    (tmp_path / "late.bin").write_bytes(b"foo line\n" * 10_000 + b"\0bar\nfoo\n")
    found = search(tmp_path, replace(PLAIN, pattern="foo", output="counts"), engine).counts
    assert isinstance(found, dict)
    # ripgrep reads 64 kB at a time, and the NUL is in the second piece.
    assert found.get("late.bin", 0) in (0, 65536 // 9)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_binary_file_that_is_named_has_no_lines(tmp_path: Path, engine: EngineName) -> None:
    (tmp_path / "named.bin").write_bytes(b"foo\nfoo\n\0\1\2foo\n")
    assert rows(tmp_path, replace(PLAIN, pattern="foo", paths=("named.bin",)), engine) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_line_end_in_the_name_of_a_file_disturbs_no_count(tmp_path: Path, engine: EngineName) -> None:
    (tmp_path / "a\nb.txt").write_text("foo\nfoo\n")
    (tmp_path / "7\n").write_text("foo\n")
    (tmp_path / "c.txt").write_text("foo\n")
    found = search(tmp_path, replace(PLAIN, pattern="foo", output="counts"), engine).counts
    assert isinstance(found, dict) and sorted(found.values()) == [1, 1, 2] and found["c.txt"] == 1
