"""Which files go to which engine, how a project asks for an engine, and how an engine is installed."""

from __future__ import annotations

from msgspec import Struct

from dari.codetools.engines.locate import Origin


class Language(Struct, frozen=True):
    """A row of the table. Engines are in the order in which they are asked for when a project is silent."""

    name: str
    suffixes: tuple[str, ...]
    format: tuple[str, ...] = ()
    lint: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    """Checked by `crewx_tools_check`, where the project asks for it."""
    needs_configuration: bool = False
    """Found in a folder, its files are taken only where the project asks for an engine; named, they always are."""


LANGUAGES = (
    Language("python", (".py", ".pyi"), ("ruff", "black"), ("ruff", "flake8"), ("mypy", "pyright")),
    Language(
        "javascript",
        (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"),
        ("biome", "prettier"),
        ("biome", "eslint"),
        ("tsc",),
    ),
    Language(
        "web data",
        (".json", ".jsonc", ".css", ".graphql", ".gql"),
        ("biome", "prettier"),
        ("biome",),
        needs_configuration=True,
    ),
    Language(
        "markup",
        (".md", ".mdx", ".yaml", ".yml", ".html", ".scss", ".less", ".json5", ".hbs"),
        ("prettier",),
        needs_configuration=True,
    ),
    Language("components", (".vue", ".svelte", ".astro"), ("prettier",), ("eslint",), needs_configuration=True),
    Language("go", (".go",), ("gofmt",), ("go vet",)),
    Language("rust", (".rs",), ("rustfmt",), (), ("cargo check",)),
    Language(
        "c",
        (".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".m", ".mm", ".proto"),
        ("clang-format",),
        needs_configuration=True,  # there is no one style of C
    ),
    Language("shell", (".sh", ".bash"), ("shfmt",), ("shellcheck",)),
)


class EngineInfo(Struct, frozen=True):
    """`files` and `sections` ask for the engine in the folder that has one of them.

    A section is (file, dotted name): a table of TOML, a key of package.json, or a heading of an INI file.
    """

    install: str
    files: tuple[str, ...] = ()
    sections: tuple[tuple[str, str], ...] = ()
    program: str = ""
    """Where it differs from the name."""
    origins: tuple[Origin, ...] = ("project", "path", "dari")
    needs_configuration: bool = False
    """It refuses to work without: never chosen for a project that is silent."""


_PRETTIERRC = tuple(
    f".prettierrc{end}" for end in ("", ".json", ".json5", ".yaml", ".yml", ".toml", ".js", ".cjs", ".mjs", ".ts")
)
_SCRIPTS = ("js", "mjs", "cjs", "ts", "mts", "cts")

ENGINES = {
    "ruff": EngineInfo(
        "pip install ruff (it comes with dari[codetools])",
        ("ruff.toml", ".ruff.toml"),
        (("pyproject.toml", "tool.ruff"),),
    ),
    "black": EngineInfo("pip install black", (), (("pyproject.toml", "tool.black"),)),
    "isort": EngineInfo("pip install isort", (".isort.cfg",), (("pyproject.toml", "tool.isort"),)),
    "flake8": EngineInfo("pip install flake8", (".flake8",), (("setup.cfg", "flake8"), ("tox.ini", "flake8"))),
    "mypy": EngineInfo(
        "pip install mypy",
        ("mypy.ini", ".mypy.ini"),
        (("pyproject.toml", "tool.mypy"), ("setup.cfg", "mypy")),
        needs_configuration=True,
    ),
    "pyright": EngineInfo(
        "npm install --save-dev pyright, or pip install pyright",
        ("pyrightconfig.json",),
        (("pyproject.toml", "tool.pyright"), ("pyproject.toml", "tool.basedpyright")),
        needs_configuration=True,
    ),
    "biome": EngineInfo(
        "npm install --save-dev --save-exact @biomejs/biome",
        ("biome.json", "biome.jsonc", ".biome.json", ".biome.jsonc"),
    ),
    # Plugins and shared configurations are found beside the engine: one from elsewhere lacks the project's.
    "prettier": EngineInfo(
        "npm install --save-dev --save-exact prettier",
        (*_PRETTIERRC, *(f"prettier.config.{end}" for end in _SCRIPTS)),
        (
            ("package.json", "prettier"),
            ("package.json", "devDependencies.prettier"),
            ("package.json", "dependencies.prettier"),
        ),
        origins=("project", "path"),
    ),
    "eslint": EngineInfo(
        "npm install --save-dev eslint",
        (
            *(f"eslint.config.{end}" for end in _SCRIPTS),
            *(f".eslintrc{end}" for end in (".js", ".cjs", ".yaml", ".yml", ".json", "")),
        ),
        (("package.json", "eslintConfig"),),
        origins=("project",),
        needs_configuration=True,
    ),
    "tsc": EngineInfo(
        "npm install --save-dev typescript", ("tsconfig.json",), origins=("project", "path"), needs_configuration=True
    ),
    "gofmt": EngineInfo("apt-get install golang-go, or Go's own installer"),
    "go vet": EngineInfo(
        "apt-get install golang-go, or Go's own installer", ("go.mod",), program="go", needs_configuration=True
    ),
    "rustfmt": EngineInfo("rustup component add rustfmt", ("rustfmt.toml", ".rustfmt.toml")),
    "cargo check": EngineInfo(
        "apt-get install cargo, or rustup", ("Cargo.toml",), program="cargo", needs_configuration=True
    ),
    "clang-format": EngineInfo("pip install clang-format", (".clang-format", "_clang-format")),
    "shfmt": EngineInfo("pip install shfmt-py"),
    "shellcheck": EngineInfo("apt-get install shellcheck", (".shellcheckrc", "shellcheckrc")),
}

CONFIGURATION_FILES = frozenset(
    {name for info in ENGINES.values() for name in (*info.files, *(file for file, _ in info.sections))}
    | {".editorconfig", ".prettierignore", ".gitignore", "node_modules", "Cargo.toml", "tsconfig.json"}
)
"""What engines look for in the folders above a file."""


_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes}


def language_of(name: str) -> Language | None:
    """The row that a file belongs to by its name."""
    dot = name.rfind(".")
    return _BY_SUFFIX.get(name[dot:].lower()) if dot > 0 else None
