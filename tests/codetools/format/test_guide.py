"""docs/guide/code-engines.md says what the table in the code says."""

from __future__ import annotations

import re
from pathlib import Path

from dari.codetools.engines.catalog import LANGUAGES

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "code-engines.md"


def test_the_table_of_the_guide_is_the_table_of_the_code() -> None:
    rows = [line.split("|")[1:-1] for line in GUIDE.read_text().splitlines() if line.startswith("| `")]
    assert len(rows) == len(LANGUAGES)
    for (files, *cells), language in zip(rows, LANGUAGES, strict=True):
        assert tuple(re.findall(r"`([^`]+)`", files)) == language.suffixes
        for cell, engines in zip(cells, (language.format, language.lint, language.types), strict=True):
            plain = re.sub(r"\([^)]*\)", "", cell)
            named = tuple(name.strip() for name in plain.split(",") if name.strip())
            # go vet is a linter that finds errors of types on its way.
            assert named == engines or (language.name == "go" and named == ("go vet",)), language.name
