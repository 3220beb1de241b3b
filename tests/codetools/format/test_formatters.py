"""Every formatter, really run: on stdin and on copies with equal results, with the project's settings and without."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import Struct

from dari.codetools.engines.rewrite import MAX_BY_STDIN
from tests.support.code_engines import node_project, python_project, require_engine, with_node, with_toolchains
from tests.support.codetools import code_tools


class Case(Struct, frozen=True):
    """A file, what the engine makes of it by default, and by the settings in `files` of a project."""

    engine: str
    name: str
    before: bytes
    default: bytes
    project: bytes
    settings: Mapping[str, str]
    broken: bytes = b""
    package: str = ""
    in_node: bool = False
    in_venv: bool = False


CASES = [
    Case(
        "ruff",
        "a.py",
        b"x = { 'a':1 }\n",
        b'x = {"a": 1}\n',
        b"x = {'a': 1}\n",
        {"ruff.toml": "[format]\nquote-style = 'single'\n"},
        b"x = (\n",
        "ruff",
    ),
    Case(
        "black",
        "a.py",
        b"x = { 'a':1 }\n",
        b"",
        b"x = {'a': 1}\n",
        {"pyproject.toml": "[tool.black]\nskip-string-normalization = true\n"},
        b"x = (\n",
        in_venv=True,
    ),
    Case(
        "biome",
        "a.ts",
        b"if (a) { b('x') }\n",
        b'if (a) {\n\tb("x");\n}\n',
        b"if (a) {\n  b('x');\n}\n",
        {
            "biome.json": '{"formatter": {"indentStyle": "space"},'
            ' "javascript": {"formatter": {"quoteStyle": "single"}}}'
        },
        b"const = 3\n",
        in_node=True,
    ),
    Case(
        "prettier",
        "a.ts",
        b"if (a) { b('x') }\n",
        b"",
        b"if (a) {\n    b('x');\n}\n",
        {".prettierrc": '{"singleQuote": true, "tabWidth": 4}'},
        b"const = 3\n",
        in_node=True,
    ),
    Case(
        "gofmt",
        "a.go",
        b"package a\nfunc  f( ) {}\n",
        b"package a\n\nfunc f() {}\n",
        b"",
        {},
        b"package a\nfunc {\n",
        "golang-go",
    ),
    Case(
        "rustfmt",
        "a.rs",
        b"async fn f( ) { g(); }\n",
        b"async fn f() {\n    g();\n}\n",
        b"async fn f() {\n  g();\n}\n",
        {"rustfmt.toml": "tab_spaces = 2\n", "Cargo.toml": '[package]\nname = "a"\nedition = "2018"\n'},
        b"fn f( {\n",
        "rustfmt",
    ),
    Case(
        "clang-format",
        "a.c",
        b"int f( ) { return  1; }\n",
        b"int f() { return 1; }\n",
        b"int f()\n{\n    return 1;\n}\n",
        {".clang-format": "BasedOnStyle: WebKit\nAllowShortFunctionsOnASingleLine: None\n"},
        package="clang-format",
    ),
    Case(
        "shfmt",
        "a.sh",
        b"if a; then\nb; fi\n",
        b"if a; then\n\tb\nfi\n",
        b"if a; then\n  b\nfi\n",
        {".editorconfig": "root = true\n[*.sh]\nindent_style = space\nindent_size = 2\n"},
        b"if a; then\n",
        "shfmt-py",
    ),
]
ENGINES = pytest.mark.parametrize("case", CASES, ids=[case.engine for case in CASES])


def make_project(root: Path, case: Case, *, has_settings: bool) -> Path:
    root.mkdir()
    if case.in_node:
        node_project(root, case.engine)
    elif case.in_venv:
        python_project(root, case.engine)
    else:
        require_engine(case.engine, case.package)
    for name, text in case.settings.items() if has_settings else ():
        (root / name).write_text(text)
    return root


@ENGINES
async def test_the_settings_of_the_project_count(tmp_path: Path, case: Case) -> None:
    root = make_project(tmp_path / "project", case, has_settings=True)
    (root / "src").mkdir()
    (root / "src" / case.name).write_bytes(case.before)
    environ = with_node() if case.in_node else with_toolchains()
    async with code_tools(root, environ=environ) as tools:
        result = await tools.call("format", paths=["src"], dryRun=False)
        again = await tools.call("format", paths=["src"], dryRun=False)
    assert (root / "src" / case.name).read_bytes() == (case.project or case.default)
    assert [(use["name"], use["files"]) for use in result["engines"]] == [(case.engine, 1)]
    assert result["engines"][0]["version"][0].isdigit()
    assert again["unchanged"] == 1 and not again["applied"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.engine) for case in CASES if case.default])
async def test_style_default_ignores_them(tmp_path: Path, case: Case) -> None:
    root = make_project(tmp_path / "project", case, has_settings=True)
    (root / case.name).write_bytes(case.before)
    many = root / "many"
    many.mkdir()
    for number in range(MAX_BY_STDIN + 1):
        (many / f"{number}{case.name}").write_bytes(case.before)
    async with code_tools(root, environ=with_node() if case.in_node else with_toolchains()) as tools:
        await tools.call("format", paths=[case.name], style="default", dryRun=False)
        await tools.call("format", paths=["many"], style="default", dryRun=False)
    assert {file.read_bytes() for file in [root / case.name, *many.iterdir()]} == {case.default}


@ENGINES
async def test_many_files_at_once_come_out_as_one_alone_does(tmp_path: Path, case: Case) -> None:
    root = make_project(tmp_path / "project", case, has_settings=True)
    for number in range(MAX_BY_STDIN + 2):
        folder = root / f"p{number % 2}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}{case.name}").write_bytes(case.before)
    if case.broken:
        (root / f"broken-{case.name}").write_bytes(case.broken)
    async with code_tools(root, environ=with_node() if case.in_node else with_toolchains()) as tools:
        result = await tools.call("format", paths=["p0", "p1", *([f"broken-{case.name}"] if case.broken else [])])
        assert len(result["changed"]) == MAX_BY_STDIN + 2
        assert [error["path"] for error in result.get("errors", [])] == ([f"broken-{case.name}"] if case.broken else [])
        assert all(error["line"] >= 1 for error in result.get("errors", []))
        alone = await tools.call("format", paths=[f"p0/0{case.name}"])
    diff = alone["changed"][0]["diff"].splitlines()[2:]
    assert all(edit["diff"].splitlines()[2:] == diff for edit in result["changed"])


async def test_imports_are_sorted_first_where_the_project_has_isort(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    python_project(root, "black", "isort")
    (root / "pyproject.toml").write_text("[tool.black]\n[tool.isort]\nprofile = 'black'\n")
    for number in range(MAX_BY_STDIN + 1):
        (root / f"m{number}.py").write_text("import sys\nimport os\nx=1\n")
    async with code_tools(root) as tools:
        one = await tools.call("format", paths=["m0.py"], dryRun=False)
        await tools.call("format", paths=["."], dryRun=False)
    assert [use["name"] for use in one["engines"]] == ["isort", "black"]
    assert {file.read_text() for file in root.glob("*.py")} == {"import os\nimport sys\n\nx = 1\n"}


async def test_a_module_that_a_rust_file_declares_is_not_touched(tmp_path: Path) -> None:
    require_engine("rustfmt", "rustfmt")
    (tmp_path / "lib.rs").write_text("mod other;\nfn a( ) {}\n")
    (tmp_path / "other.rs").write_text("fn b( ) {}\n")
    async with code_tools(tmp_path, undo=tmp_path / "undo", environ=with_toolchains()) as tools:
        result = await tools.call("format", paths=["lib.rs"], dryRun=False)
    assert [edit["path"] for edit in result["changed"]] == ["lib.rs"]
    assert (tmp_path / "other.rs").read_text() == "fn b( ) {}\n"


async def test_line_ends_stay_where_the_engine_has_no_rule_for_them(tmp_path: Path) -> None:
    require_engine("gofmt", "golang-go")
    (tmp_path / "a.go").write_bytes(b"package a\r\nfunc  f( ) {}\r\n")
    async with code_tools(tmp_path, undo=tmp_path / "undo") as tools:
        await tools.call("format", paths=["a.go"], dryRun=False)
    assert (tmp_path / "a.go").read_bytes() == b"package a\r\n\r\nfunc f() {}\r\n"
