"""The page's modules joined for sending: one file for the frame, one for each page, some for what several pages share.

The sources are plain ES modules and run as they are. One compressed stream of twenty modules is a quarter smaller than
twenty streams, and a page asks for a handful of files. In a chunk each module is a function that returns its exports
into the table `$`, after the modules that it imports; so modules keep scopes of their own. Which modules go together
follows from who reaches them: a module is in exactly one chunk, and only the person's language is in it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from msgspec import Struct

from dari.console.script_text import compact

FOLDER = Path(__file__).parent / "static" / "js"
FRAME = "main.js"
LANGUAGES = ("en", "ko")
_IMPORT = re.compile(r'^import\s+([^;"]+?)\s+from\s+"([^"]+)";', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) ([\w$]+|\[[\w$,\s]+\]))", re.M)
_DEFAULT = re.compile(r"^export default ", re.M)
_LAZY = re.compile(r"\bimport\(([\"`])(\.[^\"`]*)\1\)")
_TABLE = re.compile(r"^  (\w+): \{\n(.*?)^  \},\n", re.M | re.S)


class Module(Struct, frozen=True):
    """`name`: its path below the folder."""

    name: str
    source: str
    imports: tuple[str, ...]

    def resolve(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(self.name), path))


class Chunk(Struct, frozen=True):
    """Its modules, each after those that it imports; `needs`: the chunks without which it cannot run, but the frame."""

    name: str
    modules: tuple[str, ...]
    needs: tuple[str, ...]


def chunk_names() -> frozenset[str]:
    return frozenset(_chunks())


def chunks_of(name: str) -> tuple[str, ...]:
    """All that is asked for when this module is loaded beside the frame; nothing for one that is in the frame."""
    chunk = _chunks().get(name)
    return () if chunk is None or name == FRAME else (name, *chunk.needs)


def chunk_source(name: str, language: str, root: str) -> str:
    """The chunk as it is sent; `root` is the address of the static files, in which `root/LANGUAGE/` has the chunks."""
    chunk, base = _chunks()[name], f"{root}/{language}/"
    if name == FRAME:
        lines = ["export const $ = {};"]
    else:
        lines = [f'import {{ $ }} from "{base}{FRAME}";', *(f'import "{base}{one}";' for one in chunk.needs)]
    lines += [_wrap(_modules()[one], language, root) for one in chunk.modules]
    if name in _entries():
        lines.append(f'export const {{ {", ".join(_exports(_modules()[name].source))} }} = $["{name}"];')
    return compact("\n".join(lines)) + "\n"


def all_texts(language: str) -> str:
    """A module with every text of the language, for a page that was loaded in another one."""
    tables = [_tables(one.source)[language] for one in _modules().values() if one.name.startswith("texts/")]
    return compact(f"export default {{ {language}: {{\n{''.join(tables)}}} }};") + "\n"


def _wrap(module: Module, language: str, root: str) -> str:
    source = module.source
    if module.name.startswith("texts/"):
        source = f"export default {{\n  {language}: {{\n{_tables(source)[language]}}},\n}};\n"
    source = _IMPORT.sub(lambda found: f'const {_pattern(found[1])} = $["{module.resolve(found[2])}"];', source)
    exports = [*_exports(source), *("default: $default" for _ in _DEFAULT.finditer(source))]
    source = _DEFAULT.sub("const $default = ", _EXPORT.sub("", source))
    source = source.replace("import.meta.url", f"`${{location.origin}}{root}/js/{module.name}`")
    folder = posixpath.dirname(module.name)
    source = _LAZY.sub(lambda found: _lazy(found, folder, f"{root}/{language}/"), source)
    return f'$["{module.name}"] = (() => {{\n{source}\nreturn {{ {", ".join(exports)} }};\n}})();'


def _exports(source: str) -> list[str]:
    """Names that the module exports; `export const [A, B] = …` has several."""
    return [name for found in _EXPORT.finditer(source) for name in re.findall(r"[\w$]+", found[1])]


def _pattern(names: str) -> str:
    """What is on the left of `=` for what stands between `import` and `from`."""
    if names.startswith("* as "):
        return names.removeprefix("* as ")
    if names.startswith("{"):
        return re.sub(r"\s+as\s+", ": ", names)
    return f"{{ default: {names} }}"


def _lazy(found: re.Match[str], folder: str, base: str) -> str:
    quote, path = found[1], found[2]
    # Only the folders before the name are resolved: the name may be a template.
    head, name = posixpath.split(path)
    return f"import({quote}{base}{posixpath.normpath(posixpath.join(folder, head, '_'))[:-1]}{name}{quote})"


def _tables(source: str) -> dict[str, str]:
    """The body of each language's table in a file of texts."""
    return {found[1]: found[2] for found in _TABLE.finditer(source)}


@cache
def _modules() -> dict[str, Module]:
    modules = {}
    for path in sorted(FOLDER.rglob("*.js")):
        name, source = path.relative_to(FOLDER).as_posix(), path.read_text()
        bare = Module(name, source, ())
        modules[name] = Module(name, source, tuple(bare.resolve(found[2]) for found in _IMPORT.finditer(source)))
    return modules


@cache
def _named() -> frozenset[str]:
    """What is loaded later by its name."""
    modules = _modules()
    asked = {module.resolve(lazy[2]) for module in modules.values() for lazy in _LAZY.finditer(module.source)}
    return frozenset(asked & modules.keys())


@cache
def _pages() -> frozenset[str]:
    """What is loaded later by a pattern (`./pages/${name}.js`): of its files those that nothing else asks for."""
    modules = _modules()
    imported = {name for module in modules.values() for name in module.imports}
    patterns = [
        module.resolve(re.sub(r"\$\{[^}]*\}", "*", lazy[2]))
        for module in modules.values()
        for lazy in _LAZY.finditer(module.source)
        if "$" in lazy[2]
    ]
    matching = frozenset(name for name in modules for one in patterns if fnmatchcase(name, one))
    return matching - imported - _named()


def _entries() -> frozenset[str]:
    return _named() | _pages() | {FRAME}


@cache
def _chunks() -> dict[str, Chunk]:
    entries, frame = _entries(), set(_closure([FRAME]))
    reached_by: dict[str, set[str]] = {}
    for entry in sorted(entries - {FRAME}):
        for name in _closure([entry]):
            reached_by.setdefault(name, set()).add(entry)
    frame |= {name for name, starts in reached_by.items() if len(starts) * 2 > len(entries)}
    groups: dict[frozenset[str], list[str]] = {}
    order = _closure([FRAME, *sorted(entries)])
    for name in order:
        if name not in frame:
            groups.setdefault(frozenset(reached_by[name]), []).append(name)
    place = {name: _chunk_name(starts, group) for starts, group in groups.items() for name in group}
    whole = {FRAME: Chunk(FRAME, tuple(_closure([*sorted(frame - {FRAME}), FRAME])), ())}
    for chunk in dict.fromkeys(place.values()):
        modules = tuple(name for name in order if place.get(name) == chunk)
        needs = dict.fromkeys(place[name] for name in _closure(modules) if name in place)
        whole[chunk] = Chunk(chunk, modules, tuple(name for name in needs if name != chunk))
    return whole


def _chunk_name(starts: frozenset[str], group: Sequence[str]) -> str:
    """The module in the group that is loaded by its name; or else the only page that reaches it, which it joins; or
    else the first module."""
    pages = starts & _pages()
    return next((one for one in group if one in _entries()), min(pages) if len(pages) == 1 else group[0])


def _closure(names: Iterable[str]) -> Sequence[str]:
    """These with all that they import, each after those."""
    found: dict[str, None] = {}

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"modules of the page import each other: {' → '.join((*above, name))}")
        if name not in found:
            for one in _modules()[name].imports:
                add(one, (*above, name))
            found[name] = None

    for name in names:
        add(name, ())
    return list(found)
