"""Which parser reads a file: by its name, and by its first bytes where the name says nothing or lies."""

from __future__ import annotations

import re
from pathlib import PurePath

from dari.knowledge.document import Media

HEAD_BYTES = 4096

_MARKDOWN = frozenset(["md", "mdx", "markdown", "mdown", "mkd", "qmd", "rmd"])
_TEXT = frozenset(
    ("txt", "text", "rst", "adoc", "asciidoc", "org", "log", "csv", "tsv", "tex", "bib", "srt", "vtt", "po", "eml")
)
_HTML = frozenset(["html", "htm", "xhtml"])
_OFFICE = frozenset(["docx", "pptx", "xlsx", "docm", "pptm", "xlsm"])
_IMAGE = frozenset(["png", "jpg", "jpeg", "webp", "gif", "tif", "tiff", "bmp"])
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
_CODE_NAMES = {
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
_TEXT_NAMES = frozenset(
    ("readme", "license", "licence", "copying", "notice", "authors", "changelog", "changes", "news", "todo", "install")
)
_LOCK_FILES = frozenset(
    (
        *("package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "cargo.lock", "uv.lock", "go.sum"),
        *("composer.lock", "gemfile.lock"),
    )
)
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
_IMAGE_MAGIC = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"II*\0", b"MM\0*", b"BM")


def media_of(path: PurePath, head: bytes) -> Media | None:
    """None: no parser reads it. `head` are the first bytes (`HEAD_BYTES` are plenty); empty: the name decides alone."""
    name = path.name.lower()
    if name in _LOCK_FILES:
        return None
    extension = name.rpartition(".")[2] if "." in name.lstrip(".") else ""
    if head.startswith(b"%PDF-"):
        return "pdf"
    named = _media_of_name(name, extension)
    if named in ("markdown", "text", "html", "code", "notebook") and _is_foreign(head):
        return None
    if named is not None:
        return named
    return _media_of_head(extension, head)


def code_language(path: PurePath, head: bytes = b"") -> str:
    """The language of a code file; empty when it has no name here."""
    name = path.name.lower()
    if (known := _CODE_NAMES.get(name)) is not None:
        return known
    if name.startswith("dockerfile.") or name.endswith(".dockerfile"):
        return "dockerfile"
    extension = name.rpartition(".")[2] if "." in name.lstrip(".") else ""
    if extension in CODE_LANGUAGES:
        return CODE_LANGUAGES[extension]
    found = _SHEBANG.match(head)
    return _INTERPRETERS.get(found[1].decode(), "") if found else ""


def _media_of_name(name: str, extension: str) -> Media | None:
    if name in _CODE_NAMES or name.startswith("dockerfile.") or extension == "dockerfile":
        return "code"
    if extension in _MARKDOWN:
        return "markdown"
    if extension in _TEXT or (not extension and name in _TEXT_NAMES):
        return "text"
    if extension == "pdf":
        return "pdf"
    if extension in _HTML:
        return "html"
    if extension in _OFFICE:
        return "office"
    if extension == "ipynb":
        return "notebook"
    if extension in _IMAGE:
        return "image"
    return "code" if extension in CODE_LANGUAGES else None


def _media_of_head(extension: str, head: bytes) -> Media | None:
    """A script without an extension. Any other unknown file stays out: guesses would index build products."""
    if not extension and (found := _SHEBANG.match(head)) and found[1].decode() in _INTERPRETERS:
        return "code"
    return None


def _is_foreign(head: bytes) -> bool:
    """A picture, an archive or a program under a text file's name. UTF-16 has NUL bytes too, and is text."""
    return head.startswith((b"PK\x03\x04", b"\x7fELF", b"\x1f\x8b", b"\xca\xfe\xba\xbe", *_IMAGE_MAGIC[:3]))
