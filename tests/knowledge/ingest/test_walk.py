"""Which files of a folder are indexed: ignore files as git reads them, secrets, foreign files, links."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dari.files.globs import compile_glob, glob_matches
from dari.files.ignore import MAX_PATTERNS, IgnoreRules
from dari.files.inside import FileTooLarge, read_inside
from dari.files.secrets import is_secret_name
from dari.knowledge.config import IngestSettings, Source
from dari.knowledge.ingest.sources import locate
from dari.knowledge.ingest.walk import MAX_DEPTH, Walk
from tests.support.knowledge_folder import write_old


def walk(root: Path, *, below: tuple[str, ...] = (), settings: IngestSettings | None = None, **source: object) -> Walk:
    return Walk(Source(id="default", root=root, **source), settings or IngestSettings(), below=below)  # type: ignore[arg-type]


def names(root: Path, **options: object) -> list[str]:
    return [found.relative for found in walk(root, **options).files()]  # type: ignore[arg-type]


TREE = (
    *(
        "a.md",
        "b.log.md",
        "keep.log.md",
        "build/x.md",
        "src/build/y.md",
        "src/deep/z.md",
        "src/deep/w.md",
        "doc/a/b/c.md",
    ),
    *(
        "doc/c.md",
        "doc/x y.md",
        "#hash.md",
        "!bang.md",
        "sp ace.md",
        "star*.md",
        "tmp/one.md",
        "tmp/two.md",
        "한글/문서.md",
    ),
    *(f"sets/{name}.md" for name in ("n1", "na", "w1", "wa", "d1", "da", "s]", "sa", "sb", "x-", "xa")),
)
RULES = {
    ".gitignore": "*.log.md\n!keep.log.md\n/build/\n# comment\n\n\\#hash.md\n\\!bang.md\nstar\\*.md\ndoc/**/c.md\n"
    "tmp/*\n!tmp/two.md\nsp\\ ace.md\n",
    "src/.gitignore": "deep/*.md\n!deep/w.md\nbuild\n",
    "한글/.gitignore": "문*\n",
    "sets/.gitignore": "n[^0-9].md\nw[!0-9].md\nd[[:digit:]].md\ns[a\\]].md\nx[^[:alpha:]]*\n*//\n",
}


@pytest.mark.skipif(shutil.which("git") is None, reason="git says what it ignores")
def test_ignore_files_mean_what_they_mean_to_git(tmp_path: Path) -> None:
    for name in TREE:
        write_old(tmp_path / name, "# x\n")
    for name, text in RULES.items():
        write_old(tmp_path / name, text)
    environ = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=environ)
    listed = subprocess.run(
        ["git", "-C", str(tmp_path), "ls-files", "-z", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
        env=environ,
    ).stdout.split("\0")
    expected = sorted(name for name in listed if name.endswith(".md"))
    assert sorted(names(tmp_path)) == expected
    assert "tmp/two.md" in expected
    assert "doc/a/b/c.md" not in expected


def test_the_ignore_files_above_a_root_hold_up_to_the_top_of_its_repository(tmp_path: Path) -> None:
    write_old(tmp_path / "repo/.gitignore", "/docs/private.md\n*.draft.md\n")
    (tmp_path / "repo/.git").mkdir()
    write_old(tmp_path / ".gitignore", "*.md\n")  # outside the repository
    for name in ("private.md", "public.md", "x.draft.md"):
        write_old(tmp_path / "repo/docs" / name, "# x\n")
    found = list(walk(tmp_path / "repo/docs").files())
    assert [one.relative for one in found] == ["public.md"]
    assert found[0].repo == "repo"


def test_kebabignore_wins_over_gitignore(tmp_path: Path) -> None:
    write_old(tmp_path / ".gitignore", "*.txt\n")
    write_old(tmp_path / ".kebabignore", "!wanted.txt\nnever.md\n")
    for name in ("wanted.txt", "other.txt", "never.md", "a.md"):
        write_old(tmp_path / name, "x")
    one = walk(tmp_path)
    assert [found.relative for found in one.files()] == ["a.md", "wanted.txt"]
    assert one.skips.counts["gitignore"] == 1
    assert one.skips.counts["kebabignore"] == 1
    assert one.skips.examples["gitignore"] == ["other.txt"]


def test_a_hostile_pattern_takes_no_longer_than_any_other(tmp_path: Path) -> None:
    rules = IgnoreRules(["*a" * 40 + "*b", "**/" * 60 + "x", "[" * 50_000, "[" * 50_000 + "\\]", "\\"])
    assert rules.decide(["a" * 250] * 40, False) is None
    assert glob_matches(compile_glob("[" * 50_000), ["[" * 50_000])


def test_the_names_of_an_ignore_file_are_looked_up_however_many_they_are(tmp_path: Path) -> None:
    """Compared one by one they would take 87,000 × 20,000 steps here."""
    rules = IgnoreRules([f"name{number}.md" for number in range(87_000)])
    assert [rules.decide(["deep", f"name{number}.md"], False) for number in range(20_000)] == [True] * 20_000
    assert rules.decide(["other.md"], False) is None


@pytest.mark.parametrize(
    ("lines", "is_folder", "verdict"),
    [
        (["a", "!a"], False, False),
        (["!a", "a"], False, True),
        (["a", "!a/"], False, True),
        (["a", "!a/"], True, False),
        (["a/", "!a/", "a/"], True, True),
        (["a/"], False, None),
        (["*", "!a"], False, False),
        (["!a", "*"], False, True),
        (["a", "![a-c]"], False, False),
        (["/x/a", "!a"], False, False),
        (["!a", "x/a"], False, True),
        (["**", "!a/"], False, True),
    ],
)
def test_the_last_line_that_matches_decides_whatever_its_kind(
    lines: list[str], is_folder: bool, verdict: bool | None
) -> None:
    assert IgnoreRules(lines).decide(["x", "a"], is_folder) is verdict


def test_an_ignore_file_with_too_many_patterns_or_bytes_is_named(tmp_path: Path) -> None:
    patterns = [f"x{number}-*.md" for number in range(MAX_PATTERNS + 1)]
    write_old(tmp_path / "many/.kebabignore", "\n".join(["plain.md", *patterns, "late.md"]))
    write_old(tmp_path / "long/.gitignore", "#" * 300_000)
    for name in ("plain", "late", "x0-", f"x{MAX_PATTERNS}-"):
        write_old(tmp_path / f"many/{name}.md", "x")
    one = walk(tmp_path)
    assert [found.relative for found in one.files()] == [f"many/x{MAX_PATTERNS}-.md"]
    assert one.skips.examples["ignore_file_too_long"] == ["long/.gitignore", "many/.kebabignore"]
    assert one.skips.counts["kebabignore"] == 3


def test_a_line_of_blanks_in_an_ignore_file_is_read_in_linear_time() -> None:
    assert IgnoreRules([" " * 250_000 + "x", "a\\ ", "b  "]).decide(["a "], False) is True
    assert IgnoreRules(["b  "]).decide(["b"], False) is True


def test_include_and_exclude_of_a_source_are_patterns_too(tmp_path: Path) -> None:
    for name in ("a.md", "b.txt", "drafts/c.md", "deep/d.md"):
        write_old(tmp_path / name, "x")
    assert names(tmp_path, include=("*.md",), exclude=("drafts/",)) == ["a.md", "deep/d.md"]


def test_every_kind_of_skip_is_counted_and_named(tmp_path: Path) -> None:
    for name in ("a.md", "x.xyz", "y.xyz", "noname", ".env", "key.pem", "node_modules/m/readme.md", ".git/config.md"):
        write_old(tmp_path / name, "x")
    write_old(tmp_path / "big.py", "x" * 300_000)
    write_old(tmp_path / "cache/CACHEDIR.TAG", "x")
    write_old(tmp_path / "cache/c.md", "x")
    os.symlink("/etc/passwd", tmp_path / "link.md")
    os.symlink(tmp_path, tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe.md")
    Path(os.fsdecode(os.fsencode(str(tmp_path)) + b"/\xff.md")).write_text("x")
    one = walk(tmp_path)
    assert [found.relative for found in one.files()] == ["a.md"]
    assert dict(one.skips.counts) == {
        "extension": 3,
        "secret": 2,
        "builtin_blacklist": 3,
        "size_exceeded": 1,
        "symlink": 2,
        "special": 1,
        "name_not_utf8": 1,
    }
    assert one.skips.extensions == {"xyz": 2, "(none)": 1}
    assert one.skips.examples["symlink"] == ["link.md", "loop"]


def test_a_script_without_an_extension_is_code(tmp_path: Path) -> None:
    write_old(tmp_path / "run", "#!/usr/bin/env python3\nprint(1)\n")
    assert [found.media for found in walk(tmp_path).files()] == ["code"]


def test_only_what_was_asked_for_is_walked(tmp_path: Path) -> None:
    for name in ("a/x.md", "a/y.md", "ab/z.md", "c.md"):
        write_old(tmp_path / name, "x")
    assert names(tmp_path, below=("a",)) == ["a/x.md", "a/y.md"]
    assert names(tmp_path, below=("a/y.md", "c.md")) == ["a/y.md", "c.md"]


def test_folders_without_end_are_left_at_some_depth(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * (MAX_DEPTH + 20))
    deep.mkdir(parents=True)
    write_old(deep / "a.md", "x")
    one = walk(tmp_path)
    assert list(one.files()) == []
    assert one.skips.counts["too_deep"] == 1


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        (".env", True),
        (".env.production", True),
        (".env.example", False),
        ("prod.env", True),
        ("id_ed25519", True),
        ("id_ed25519.pub", False),
        ("server.KEY", True),
        ("credentials.json", True),
        ("service-account-prod.json", True),
        ("environment.md", False),
        ("keys.md", False),
        ("private-keys-explained.md", False),
        ("monkey.py", False),
        ("tokenizer.json", False),
    ],
)
def test_names_of_secrets(name: str, is_secret: bool) -> None:
    assert is_secret_name(name) == is_secret


def test_reading_follows_no_link_below_the_root(tmp_path: Path) -> None:
    write_old(tmp_path / "root/a.md", "inside")
    write_old(tmp_path / "out/a.md", "outside")
    os.symlink(tmp_path / "out", tmp_path / "root/dir")
    os.symlink(tmp_path / "out/a.md", tmp_path / "root/file.md")
    os.mkfifo(tmp_path / "root/pipe")
    assert read_inside(tmp_path / "root", "a.md", 100).data == b"inside"
    for name in ("dir/a.md", "file.md", "pipe", "../out/a.md", "dir/../a.md", "", "/etc/passwd"):
        with pytest.raises(OSError):
            read_inside(tmp_path / "root", name, 100)
    with pytest.raises(FileTooLarge):
        read_inside(tmp_path / "root", "a.md", 3)


def test_a_file_is_of_a_source_when_it_is_there_after_all_links(tmp_path: Path) -> None:
    source = Source(id="default", root=tmp_path / "root")
    inside = write_old(tmp_path / "root/sub/a.md", "inside")
    outside = write_old(tmp_path / "rooted/a.md", "outside")
    os.symlink(outside, tmp_path / "root/link.md")
    os.symlink(inside, tmp_path / "link.md")
    found = locate(tmp_path / "link.md", [source])
    assert found is not None
    assert found.relative == "sub/a.md"
    assert locate(tmp_path / "root/link.md", [source]) is None
    assert locate(outside, [source]) is None
    assert locate(tmp_path / "root/../rooted/a.md", [source]) is None
    with pytest.raises(FileNotFoundError):
        locate(tmp_path / "root/none.md", [source])
