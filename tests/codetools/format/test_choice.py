"""Which engine a file goes to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from dari.codetools.engines.catalog import ENGINES, LANGUAGES, language_of
from dari.codetools.engines.choose import EngineChooser
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace
from dari.process.children import Children
from tests.support.code_engines import python_project, require_engine
from tests.support.codetools import code_tools


def chosen(root: Path, name: str, kind: str = "format", path: Path | None = None) -> list[str]:
    async def no_roots(context: object) -> tuple[Path, ...]:
        return ()

    file = root / name
    language = language_of(file.name)
    assert language is not None
    session = CodeSession(no_roots, {"PATH": str(path or root / "nowhere")}, Children())
    chooser = EngineChooser(session, Workspace([root]))
    choices = (chooser.formatters if kind == "format" else chooser.linters)(language, file.parent)
    return [f"{one.name}@{os.path.relpath(one.folder, root)}" for one in choices]


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ["ruff@."]),
        ({"pyproject.toml": "[tool.black]\n"}, ["black@."]),
        ({"pyproject.toml": "[tool.black]\n[tool.ruff]\nline-length = 80\n"}, ["black@."]),
        ({"pyproject.toml": "[tool.black]\n[tool.ruff.format]\n"}, ["ruff@."]),
        ({"pyproject.toml": "[tool.black]\n", "ruff.toml": "[format]\n"}, ["ruff@."]),
        ({"pyproject.toml": "[tool.black]\n", "src/ruff.toml": ""}, ["ruff@src"]),
        ({"ruff.toml": "", "src/pyproject.toml": "[tool.black]\n"}, ["black@src"]),
        ({"pyproject.toml": "[tool.black]\n[tool.isort]\n"}, ["isort@.", "black@."]),
        ({"pyproject.toml": "this is not toml"}, ["ruff@."]),
    ],
)
def test_python_goes_to_the_nearest_formatter_that_is_asked_for(
    tmp_path: Path, files: dict[str, str], expected: list[str]
) -> None:
    (tmp_path / "src").mkdir()
    assert chosen(write(tmp_path, files), "src/a.py") == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ["biome@."]),
        ({"biome.json": "{}"}, ["biome@."]),
        ({".prettierrc": "{}"}, ["prettier@."]),
        ({"package.json": '{"devDependencies": {"prettier": "3"}}'}, ["prettier@."]),
        ({"package.json": '{"prettier": {}}', "src/biome.jsonc": "{}"}, ["biome@src"]),
        ({"biome.json": "{}", ".prettierrc": "{}"}, ["biome@."]),
    ],
)
def test_a_script_goes_to_the_formatter_that_its_project_asks_for(
    tmp_path: Path, files: dict[str, str], expected: list[str]
) -> None:
    (tmp_path / "src").mkdir()
    assert chosen(write(tmp_path, files), "src/a.ts") == expected


def test_the_formatter_that_the_project_has_comes_before_another(tmp_path: Path) -> None:
    write(tmp_path, {"web/node_modules/.bin/prettier": "#!/bin/sh\n", "web/src/a.ts": ""})
    (tmp_path / "web" / "node_modules" / ".bin" / "prettier").chmod(0o755)
    assert chosen(tmp_path, "web/src/a.ts") == ["prettier@web"]


def test_all_linters_that_a_project_asks_for_are_chosen(tmp_path: Path) -> None:
    write(tmp_path, {"biome.json": "{}", "eslint.config.mjs": "", "setup.cfg": "[flake8]\n", "ruff.toml": ""})
    assert chosen(tmp_path, "a.ts", "lint") == ["biome@.", "eslint@."]
    assert chosen(tmp_path, "a.py", "lint") == ["ruff@.", "flake8@."]


def test_every_engine_of_the_table_is_in_the_catalog() -> None:
    named = {name for language in LANGUAGES for name in (*language.format, *language.lint)}
    assert named <= set(ENGINES)
    suffixes = [suffix for language in LANGUAGES for suffix in language.suffixes]
    assert len(suffixes) == len(set(suffixes)), "a suffix is in one row"


async def test_an_engine_of_the_project_wins_over_the_machines(tmp_path: Path) -> None:
    programs = tmp_path / "project" / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "ruff").write_text('#!/bin/sh\n[ "$1" = --version ] && echo ruff 77.0 || echo "# ours"\n')
    (programs / "ruff").chmod(0o755)
    (tmp_path / "project" / "a.py").write_text("x=1\n")
    async with code_tools(tmp_path / "project") as tools:
        result = await tools.call("format", paths=["a.py"])
    assert result["engines"] == [{"name": "ruff", "version": "77.0", "files": 1}]
    assert "+# ours" in result["changed"][0]["diff"]


async def test_a_missing_engine_is_one_entry_with_its_install_command(tmp_path: Path) -> None:
    root = write(tmp_path / "project", {"a.js": "let  a", "b.js": "let  b", "biome.json": "{}", "a.py": "x=1\n"})
    python_project(root, "ruff")
    async with code_tools(root, environ={"PATH": "/nowhere"}) as tools:
        result = await tools.call("format", paths=["."])
    assert [edit["path"] for edit in result["changed"]] == ["a.py"]
    (error,) = result["errors"]
    assert error["path"] == "a.js"
    assert "biome is not installed" in error["message"] and "3 files" in error["message"]
    assert "npm install --save-dev --save-exact @biomejs/biome" in error["message"]
    assert result["unchanged"] == 0, "what no formatter has seen is not in order"


async def test_c_is_formatted_in_a_project_with_a_style_and_when_it_is_named(tmp_path: Path) -> None:
    require_engine("clang-format", "pip install clang-format")
    root = write(tmp_path / "project", {"a.c": "int  a;\n", "styled/b.c": "int  b;\n", "styled/.clang-format": "{}"})
    async with code_tools(root) as tools:

        async def changed(*paths: str, style: str = "project") -> list[str]:
            result = await tools.call("format", paths=list(paths), style=style)
            return [edit["path"] for edit in result["changed"]]

        assert await changed(".") == ["styled/b.c"]
        assert await changed("a.c") == ["a.c"]
        assert await changed(".", style="default") == ["a.c", "styled/b.c"]


async def test_the_version_of_a_program_is_asked_for_again_when_it_was_replaced(tmp_path: Path) -> None:
    programs = tmp_path / "project" / ".venv" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / "project" / "a.py").write_text("x = 1\n")
    async with code_tools(tmp_path / "project") as tools:
        versions = []
        for version in ("1.2.3", "1.2.30"):
            shutil.rmtree(programs)
            programs.mkdir()
            (programs / "ruff").write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {version} || cat\n')
            (programs / "ruff").chmod(0o755)
            versions.append((await tools.call("format", paths=["a.py"]))["engines"][0]["version"])
    assert versions == ["1.2.3", "1.2.30"]
