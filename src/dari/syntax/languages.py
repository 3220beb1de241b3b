"""The language of a code file: by its name, and by its first line where the name has none."""

from __future__ import annotations

import re
from pathlib import PurePath

CODE_LANGUAGES = {
    **dict.fromkeys(("py", "pyi", "pyw"), "python"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), "javascript"),
    **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
    "tsx": "tsx",
    "go": "go",
    "rs": "rust",
    "java": "java",
    **dict.fromkeys(("kt", "kts"), "kotlin"),
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cpp", "cc", "cxx", "hpp", "hh", "hxx", "ipp"), "cpp"),
    **dict.fromkeys(("sh", "bash", "zsh", "ksh"), "bash"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    "toml": "toml",
    **dict.fromkeys(("json", "jsonc", "json5"), "json"),
    **dict.fromkeys(("xml", "xsd", "xsl", "plist"), "xml"),
    **dict.fromkeys(("gradle", "groovy"), "groovy"),
    **dict.fromkeys(("mk", "mak"), "make"),
    "cmake": "cmake",
    **dict.fromkeys(("rb", "rake"), "ruby"),
    "php": "php",
    "swift": "swift",
    **dict.fromkeys(("scala", "sbt"), "scala"),
    "cs": "csharp",
    "lua": "lua",
    **dict.fromkeys(("pl", "pm"), "perl"),
    "r": "r",
    "jl": "julia",
    "sql": "sql",
    **dict.fromkeys(("css", "scss", "less"), "css"),
    **dict.fromkeys(("vue", "svelte"), "vue"),
    **dict.fromkeys(("ex", "exs"), "elixir"),
    **dict.fromkeys(("tf", "hcl"), "hcl"),
    **{name: name for name in ("dart", "zig", "nim", "proto", "graphql", "nix")},
    "hs": "haskell",
    "erl": "erlang",
    "clj": "clojure",
    "ml": "ocaml",
    **dict.fromkeys(("ini", "cfg", "conf", "properties"), "ini"),
    **dict.fromkeys(("ps1", "psm1"), "powershell"),
    "fish": "fish",
    **dict.fromkeys(("bat", "cmd"), "batch"),
}
CODE_NAMES = {
    "dockerfile": "dockerfile",
    "containerfile": "dockerfile",
    "makefile": "make",
    "gnumakefile": "make",
    "cmakelists.txt": "cmake",
    "go.mod": "go-mod",
    "gemfile": "ruby",
    "rakefile": "ruby",
    "jenkinsfile": "groovy",
    "vagrantfile": "ruby",
    "justfile": "make",
    ".bashrc": "bash",
    ".zshrc": "bash",
    ".profile": "bash",
}
# Only for grammars: the knowledge base reads these as text, as another language, or not at all.
FURTHER_LANGUAGES = {
    **dict.fromkeys((".m", ".mm"), "objc"),
    **dict.fromkeys((".f", ".f90", ".f95", ".f03", ".f08"), "fortran"),
    **dict.fromkeys((".pas", ".pp", ".dpr"), "pascal"),
    **dict.fromkeys((".adb", ".ads"), "ada"),
    **dict.fromkeys((".lisp", ".cl"), "commonlisp"),
    **dict.fromkeys((".scm", ".ss"), "scheme"),
    **dict.fromkeys((".sv", ".svh"), "verilog"),
    **dict.fromkeys((".vhd", ".vhdl"), "vhdl"),
    **dict.fromkeys((".glsl", ".vert", ".frag"), "glsl"),
    **dict.fromkeys((".cu", ".cuh"), "cuda"),
    **dict.fromkeys((".fs", ".fsx"), "fsharp"),
    **dict.fromkeys((".bzl", ".star", "build", "build.bazel", "workspace"), "starlark"),
    **dict.fromkeys((".md", ".markdown", ".mdx"), "markdown"),
    **dict.fromkeys((".html", ".htm"), "html"),
    **dict.fromkeys((".jsonnet", ".libsonnet"), "jsonnet"),
    **dict.fromkeys((".cljs", ".cljc", ".edn"), "clojure"),
    **dict.fromkeys((".hrl",), "erlang"),
    **{
        f".{name}": name
        for name in ("d", "elm", "gleam", "odin", "pony", "luau", "thrift", "tcl", "vim", "wgsl", "hlsl")
    },
    **{
        f".{name}": name
        for name in ("svelte", "vue", "astro", "scss", "solidity", "bicep", "cairo", "smithy", "prisma")
    },
    **{f".{name}": name for name in ("rego", "twig", "ron", "kdl", "smali", "capnp", "hack", "wat", "haxe", "nix")},
    ".sol": "solidity",
    ".el": "elisp",
    ".rkt": "racket",
    ".gd": "gdscript",
    ".purs": "purescript",
    ".mli": "ocaml_interface",
    ".hx": "haxe",
    ".ino": "arduino",
    ".typ": "typst",
    ".tex": "latex",
    ".rst": "rst",
    "meson.build": "meson",
}
_SHEBANG = re.compile(rb"#!\s{0,9}\S{0,255}?(?:/env\s{1,9}(?:-S\s{1,9})?)?([a-z]{1,32})[\d.]{0,16}\b[^\n/]{0,255}\n")
_INTERPRETERS = {
    "python": "python",
    "sh": "bash",
    "bash": "bash",
    "zsh": "bash",
    "dash": "bash",
    "node": "javascript",
    "ruby": "ruby",
    "perl": "perl",
}


def code_language(path: PurePath, head: bytes = b"") -> str:
    """The language of a code file; empty when it has no name here."""
    if known := language_of_name(path.name):
        return known
    return language_of_script(head)


def language_of_name(name: str) -> str:
    """By the name of a file alone; empty when that says nothing."""
    name = name.lower()
    if (known := CODE_NAMES.get(name)) is not None:
        return known
    if name.startswith("dockerfile.") or name.endswith(".dockerfile"):
        return "dockerfile"
    extension = name.rpartition(".")[2] if "." in name.lstrip(".") else ""
    return CODE_LANGUAGES.get(extension, "")


def has_language(name: str) -> bool:
    """Whether the name of a file says a language that there may be a grammar of, or could be a script's."""
    dot = name.rfind(".")
    if dot <= 0:
        return True
    return bool(language_of_name(name)) or name[dot:].lower() in FURTHER_LANGUAGES or name.lower() in FURTHER_LANGUAGES


def language_of_script(head: bytes) -> str:
    """By the interpreter that its first line names; empty when there is none."""
    found = _SHEBANG.match(head)
    return _INTERPRETERS.get(found[1].decode(), "") if found else ""
