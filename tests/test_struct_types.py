"""msgspec from several threads: every type that is read into was made ready first."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "dari"
# Types without a struct: msgspec learns nothing of them.
PLAIN = {"str", "int", "float", "bool", "bytes", "list", "dict", "tuple", "set", "Any", "object", "Raw", "msgspec"}
RACE = """
import sys, threading
import msgspec
from dari.struct_types import ready
sys.setswitchinterval(1e-6)
value = {f"f{i}": {"a": {"f1": "x"}} for i in range(20)}
for n in range(60):
    names = [(f"f{i}", "msgspec.Raw | str | None", None) for i in range(10)]
    inner = globals()[f"Inner{n}"] = msgspec.defstruct(f"Inner{n}", names, module=__name__)
    fields = [(f"f{i}", f"dict[str, Inner{n}] | None", None) for i in range(20)]
    kind = msgspec.defstruct(f"Outer{n}", fields, module=__name__)
    start = threading.Barrier(3)
    def read():
        start.wait()
        msgspec.convert(value, ready(kind))
    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


def test_threads_that_read_the_same_new_type_at_once_do_not_end_the_process() -> None:
    """Without `ready` this ends with SIGSEGV (msgspec 0.22)."""
    ended = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def types_read_into(tree: ast.Module) -> Iterator[ast.expr]:
    """The types in calls of msgspec's decode, convert and Decoder."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func)
        named = next((each.value for each in call.keywords if each.arg == "type"), None)
        place = {"msgspec.convert": 1, "msgspec.json.Decoder": 0, "msgspec.msgpack.Decoder": 0}.get(name)
        if place is not None:
            yield from [named] if named is not None else call.args[place : place + 1]
        elif name.startswith("msgspec.") and name.endswith(".decode") and named is not None:
            yield named


def test_every_type_is_ready_before_it_is_read_into() -> None:
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        for kind in types_read_into(ast.parse(path.read_text())):
            names = {each.id for each in ast.walk(kind) if isinstance(each, ast.Name)}
            if not (names <= PLAIN or "ready" in names or path.name == "struct_types.py"):
                found.append(f"{path.relative_to(SOURCES)}:{kind.lineno}: write ready({ast.unparse(kind)})")
    assert found == []
