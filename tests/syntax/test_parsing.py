from __future__ import annotations

import subprocess
import sys

import pytest

PARSE = "import sys; from dari.syntax.parsing import parse_source; parse_source(sys.stdin.buffer.read(), sys.argv[1])"
UNITS = (
    "import sys; from dari.knowledge.parse.code_units import code_units; "
    "code_units(d := sys.stdin.buffer.read(), d.decode().split(chr(10)), sys.argv[1])"
)


@pytest.mark.parametrize("program", [PARSE, UNITS])
@pytest.mark.parametrize("source", ["class A\n@Deprecated", 'val text = """\n@x', "interface I {\n#\n${\n@file:"])
def test_kotlin_that_ends_with_an_annotation_is_read_to_its_end(source: str, program: str) -> None:
    # In a process of its own: the parser is C, and no signal ends it.
    subprocess.run([sys.executable, "-c", program, "kotlin"], input=source.encode(), check=True, timeout=60)
