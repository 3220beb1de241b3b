"""libghostty-vt as a cffi library, loaded in milliseconds.

`import pyghostty` parses 80 kB of C declarations at every start (0.22 s on a quiet machine, more on a busy one).
What the parser makes of them does not change while the package does not, so it is kept: cffi writes the
declarations as a Python module once, into Dari's home, and later starts load that.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from dari import paths
from dari.errors import DariError, Unavailable
from dari.installation import install_extra

# cffi cannot pass a union by value without a C compiler. Both types are larger than 16 bytes, so x86-64 and
# arm64 pass them in memory and a struct of the same layout is the same call.
_TWINS = """
typedef struct { uint16_t x; uint32_t y; uint64_t _rest; } DariPlace;
typedef struct { int tag; DariPlace value; } DariPoint;
typedef struct { int tag; int64_t delta; uint64_t _rest; } DariViewport;
"""


class Binding:
    """`ffi` and `lib`, and the two functions that take a union by value."""

    def __init__(self, ffi: Any, library: Path) -> None:
        self.ffi = ffi
        self.lib = ffi.dlopen(str(library))
        for twin, real in (("DariPoint", "GhosttyPoint"), ("DariViewport", "GhosttyTerminalScrollViewport")):
            if (ffi.sizeof(twin), ffi.alignof(twin)) != (ffi.sizeof(real), ffi.alignof(real)):
                raise Unavailable(f"{real} of this libghostty-vt has another layout", "install pyghostty==0.1.3")
        self.grid_ref = self._cast(
            "ghostty_terminal_grid_ref", "GhosttyResult(*)(GhosttyTerminal, DariPoint, GhosttyGridRef*)"
        )
        self.grid_ref_track = self._cast(
            "ghostty_terminal_grid_ref_track", "GhosttyResult(*)(GhosttyTerminal, DariPoint, GhosttyTrackedGridRef*)"
        )
        self.scroll_viewport = self._cast("ghostty_terminal_scroll_viewport", "void(*)(GhosttyTerminal, DariViewport)")

    def _cast(self, name: str, signature: str) -> Any:
        return self.ffi.cast(signature, self.ffi.addressof(self.lib, name))

    def sized(self, ctype: str) -> Any:
        """A new struct whose `size` fields, its own and those of structs in it, are set as the C API wants them."""
        made = self.ffi.new(ctype + " *")
        self._set_sizes(made)
        return made

    def _set_sizes(self, pointer: Any) -> None:
        kind = self.ffi.typeof(pointer).item
        for name, field in kind.fields:
            if name == "size":
                pointer.size = self.ffi.sizeof(kind)
            elif field.type.kind == "struct":
                self._set_sizes(self.ffi.addressof(pointer[0], name))


@cache
def load() -> Binding:
    """The library, once per process; Unavailable says what is missing."""
    spec = importlib.util.find_spec("pyghostty")
    if spec is None or spec.origin is None:
        raise Unavailable("pyghostty is not installed", install_extra("terminal"))
    package = Path(spec.origin).parent
    library = _library(package)
    declarations = package / "_cdef.py"
    return Binding(_declared(declarations), library)


def _library(package: Path) -> Path:
    for suffix in (".so", ".dylib", ".dll"):
        found = package / "_lib" / f"libghostty-vt{suffix}"
        if found.exists():
            return found
    raise Unavailable(f"libghostty-vt is missing in {package}", "install pyghostty==0.1.3 again")


def _declared(declarations: Path) -> Any:
    """The declarations, from the kept file when it is of these declarations and this Python."""
    import _cffi_backend

    info = declarations.stat()
    backend = str(getattr(_cffi_backend, "__version__", ""))
    key = f"{sys.implementation.cache_tag} {backend} {info.st_size} {info.st_mtime_ns} {declarations} {_TWINS}"
    name = f"ghostty_{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    kept = paths.home() / "cache" / "terminal" / f"{name}.py"
    try:
        if kept.stat().st_uid == os.geteuid():
            return _run(name, kept.read_text())
    except Exception:
        pass  # not there, or damaged
    code = _generate(name, declarations)
    try:
        paths.private_dir(kept.parent)
        paths.write_private(kept, code.encode())
    except (OSError, DariError):
        pass  # a home that cannot be written costs the parsing again at the next start
    return _run(name, code)


def _run(name: str, code: str) -> Any:
    module = ModuleType(name)
    exec(compile(code, f"{name}.py", "exec"), module.__dict__)
    return module.ffi


def _generate(name: str, declarations: Path) -> str:
    import tempfile

    from cffi import FFI
    from cffi.recompiler import make_py_source

    spec = importlib.util.spec_from_file_location("ghostty_declarations", declarations)
    if spec is None or spec.loader is None:
        raise Unavailable(f"{declarations} cannot be read", "install pyghostty==0.1.3 again")
    source = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(source)
    ffi = FFI()
    ffi.cdef(source.CDEF + _TWINS)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, f"{name}.py")
        make_py_source(ffi, name, str(target), verbose=False)  # `emit_python_code` would print to stdout
        return target.read_text()
