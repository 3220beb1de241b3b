"""Results of the code tools as a person reads them."""

from __future__ import annotations

from typing import Any

from dari.cli.kit.console import Console, format_json
from dari.text.sanitize import escape_hidden


def render_result(name: str, value: Any, console: Console) -> None:
    console.out(escape_hidden(format_json(value)) + "\n")
