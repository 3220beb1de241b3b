"""Scripts joined for sending: the same programs, each module once, after what it imports, in one language."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from dari.console.script_chunks import FOLDER, all_texts, chunk_names, chunk_source, chunks_of
from dari.console.script_text import compact
from tests.console.test_scripts import node

ROOT = "/static/0123456789ab"
# Node has a parser of its own inside; places in the source are left out of what is compared.
PARSE = """
const { parse } = require("internal/deps/acorn/acorn/dist/acorn");
const plain = (key, value) => (key === "start" || key === "end" ? undefined : value);
const read = (source) => {
    try {
        return JSON.stringify(parse(source, { ecmaVersion: "latest", sourceType: "module" }), plain);
    } catch (error) {
        return error.message;
    }
};
const pairs = JSON.parse(require("fs").readFileSync(0, "utf8"));
const unlike = Object.entries(pairs).filter(([, [before, after]]) => read(before) !== read(after));
console.log(JSON.stringify(unlike.map(([name]) => name)));
"""


def unlike(pairs: dict[str, tuple[str, str]]) -> list[str]:
    """Which of these pairs of sources are not the same program."""
    words = [node(), "--expose-internals", "-e", PARSE]
    done = subprocess.run(words, input=json.dumps(pairs), capture_output=True, text=True, timeout=120, check=True)
    return list(json.loads(done.stdout))


def test_every_script_is_the_same_program_without_its_white_space() -> None:
    sources = {path.name: path.read_text() for path in FOLDER.rglob("*.js")}
    assert unlike({name: (source, compact(source)) for name, source in sources.items()}) == []


@pytest.mark.parametrize(
    "source",
    [
        "a = b / c / d; // why",
        "x = y.match(/[/\"'`]\\/ {2}/g) / 2",
        "return_ = `a  ${ b ? `c  ${ d }` : { e: 1 }.e }  // no comment`",
        "a = b\n++c\nd = a + +b - -c",
        "let x = function () {}\nlet y = (1)\n/re/g.exec(y)",
        "go('//x', \"/* y */\") /* z\n */ ; stop()",
        "a = typeof /  /.source",
        "for (const a of b) c in d\nasync () => await e",
    ],
)
def test_white_space_that_means_something_stays(source: str) -> None:
    wrapped = f"async function* f() {{\n{source}\n}}"
    assert unlike({"one": (wrapped, compact(wrapped))}) == []


def test_the_comparison_of_programs_sees_a_difference() -> None:
    assert unlike({"same": ("a\n(b)", "a(b)"), "other": ("a\n++b", "a++\nb")}) == ["other"]


def chunk_modules(name: str, language: str = "en") -> list[str]:
    return re.findall(r'\$\["([^"]+)"\]=\(\(\)=>\{', chunk_source(name, language, ROOT))


def test_each_module_is_in_one_chunk() -> None:
    found = sorted(module for name in chunk_names() for module in chunk_modules(name))
    assert found == sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.js"))


def test_no_chunk_needs_one_that_needs_it() -> None:
    needs = {name: set(chunks_of(name)[1:]) for name in chunk_names()}
    assert [(one, other) for one, others in needs.items() for other in others if one in needs[other]] == []
    assert needs["pages/audit.js"] >= {"parts/charts.js"} and needs["main.js"] == set()


@pytest.mark.parametrize("name", sorted(chunk_names()))
def test_a_module_comes_after_all_that_it_uses(name: str) -> None:
    frame = [] if name == "main.js" else chunk_modules("main.js")
    before = [one for other in chunks_of(name)[1:] for one in chunk_modules(other)]
    known = set(frame + before)
    for module, body in re.findall(r'\$\["([^"]+)"\]=\(\(\)=>\{(.*?)\}\)\(\);', chunk_source(name, "en", ROOT), re.S):
        assert set(re.findall(r'=\$\["([^"]+)"\]', body)) <= known, module
        known.add(module)


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.js")), ids=lambda path: path.stem)
def test_every_import_and_export_is_of_a_kind_that_can_be_joined(path: str) -> None:
    imports, names = r'import [^;"]+ from "\.[^"]+";', r"[\w$]+|\[[\w$,\s]+\]"
    joined = re.compile(
        rf"{imports}|export (async )?function\*? \w|export class \w|export const ({names}) = |export default \{{(\n|$)"
    )
    source = FOLDER.joinpath(path).read_text()
    lines = re.findall(r"^(?:import|export)\b(?:[^;]*?;$|.*)", source, re.M)
    assert [line for line in lines if not joined.match(line)] == []


def test_a_chunk_has_the_texts_of_one_language_and_the_other_ones_come_in_one_file() -> None:
    english, korean = (chunk_source("main.js", language, ROOT) for language in ("en", "ko"))
    assert '"nav.home":"Home"' in english and "트래픽" not in english
    assert '"nav.traffic":"트래픽"' in korean and '"nav.home":"Home"' not in korean
    assert '"nav.traffic":"트래픽"' in all_texts("ko") and "Home" not in all_texts("ko").split("settings.")[0]
