"""An error at the shell: the fact, then what to do; as JSON on stderr for a script."""

from __future__ import annotations

from dari.cli.proxy.output import Output, encoded, paint, printable, takes_colour
from dari.cli.proxy.words import for_shell
from dari.errors import DariError


def tell(error: DariError, out: Output) -> None:
    message, hint = for_shell(error.message), for_shell(error.hint)
    if out.as_json:
        out.note(encoded({"error": {"code": error.code, "name": error.name, "message": message, "hint": hint}}))
        return
    import sys

    is_coloured = takes_colour(sys.stderr)
    out.note(paint("error:", "red", is_coloured) + f" {printable(message)}")
    if hint:
        out.note(paint("hint:", "cyan", is_coloured) + f" {printable(hint)}")
