"""Exact edits of Python text by its syntax tree: whatever is not named stays as it is, byte for byte."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence

from dari.codetools.refactor.sources import SourceFile
from dari.errors import Conflict

_FROM = re.compile(r"from(\s*)([.\w]+)(\s*)import\b")
_Import = ast.Import | ast.ImportFrom


class EditedModule:
    """A parsed file and the edits that were asked for. Offsets are of the text with plain line ends."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.text = source.plain
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.tree = ast.parse(self.text)
        self.rows = self.text.split("\n")
        self._starts = [0]
        for row in self.rows:
            self._starts.append(self._starts[-1] + len(row) + 1)
        self._edits: list[tuple[int, int, str]] = []

    def offset(self, line: int, byte: int) -> int:
        row = self.rows[line - 1]
        return self._starts[line - 1] + (byte if row.isascii() else len(row.encode()[:byte].decode()))

    def start(self, node: ast.AST) -> int:
        return self.offset(getattr(node, "lineno", 1), getattr(node, "col_offset", 0))

    def end(self, node: ast.AST) -> int:
        return self.offset(getattr(node, "end_lineno", 1), getattr(node, "end_col_offset", 0))

    def line_start(self, line: int) -> int:
        return self._starts[line - 1]

    def segment(self, node: ast.AST) -> str:
        return self.text[self.start(node) : self.end(node)]

    def replace(self, start: int, end: int, text: str) -> None:
        if (start, end, text) not in self._edits:
            self._edits.append((start, end, text))

    def replace_removed(self, at: int, text: str) -> None:
        """Put a statement where the one at this offset is taken out."""
        for index, (start, end, _) in enumerate(self._edits):
            if start <= at <= end:
                is_last = end == len(self.text)
                self._edits[index] = (start, end, f"\n\n{text}\n" if is_last and start else f"{text}\n\n\n")

    def result(self) -> str:
        """The text with all edits. Conflict where two of them meet."""
        parts, at = [], 0
        for start, end, text in sorted(self._edits, key=lambda one: (one[0], one[1])):
            if start < at:
                raise Conflict(f"two edits meet in {self.source.path.relative}", "change it by hand")
            parts += [self.text[at:start], text]
            at = end
        return "".join([*parts, self.text[at:]])

    def is_alone(self, node: ast.stmt) -> bool:
        """Whether nothing but a comment shares its lines."""
        before = self.rows[node.lineno - 1].encode()[: node.col_offset].decode()
        assert node.end_lineno is not None
        after = self.rows[node.end_lineno - 1].encode()[node.end_col_offset :].decode().strip()
        return not before.strip() and (not after or after.startswith("#"))

    def add_after(self, node: ast.stmt, text: str) -> None:
        """A statement with the same indentation."""
        if self.is_alone(node):
            assert node.end_lineno is not None
            at = self.line_start(node.end_lineno + 1)
            indent = self.rows[node.lineno - 1][: node.col_offset]
            is_last = at > len(self.text)
            self.replace(min(at, len(self.text)), min(at, len(self.text)), f"{chr(10) * is_last}{indent}{text}\n")
        else:
            self.replace(self.end(node), self.end(node), f"; {text}")

    def change_module(self, node: ast.ImportFrom, module: str) -> None:
        """`from old import …` to `from module import …`."""
        at = self.start(node)
        found = _FROM.match(self.text, at)
        if found is None:
            raise Conflict(f"line {node.lineno} of {self.source.path.relative} cannot be read", "change it by hand")
        space = found[1] or ("" if module.startswith(".") else " ")
        self.replace(found.start(1), found.end(), f"{space}{module}{found[3] or ' '}import")

    def remove_items(self, items: Sequence[ast.AST], indexes: Sequence[int]) -> None:
        """Some of several items that commas part, not all: names of an import, elements of a list."""
        inline = []
        for index in indexes:
            item = items[index]
            line = getattr(item, "lineno", 1)
            row_start, row_end = self.line_start(line), self.line_start(line + 1) - 1
            rest = re.match(r"\s*,?[ \t]*(#.*)?$", self.text[self.end(item) : row_end])
            if not self.text[row_start : self.start(item)].strip() and rest is not None and row_end < len(self.text):
                self.replace(row_start, row_end + 1, "")
            else:
                inline.append(index)
        last_kept = max((at for at in range(len(items)) if at not in indexes), default=-1)
        for index in (one for one in inline if one < last_kept):
            self.replace(self.start(items[index]), self.start(items[index + 1]), "")
        if trailing := [one for one in inline if one > last_kept]:
            start = self.end(items[last_kept]) if last_kept >= 0 else self.start(items[trailing[0]])
            after = re.match(r"\s*,", self.text[self.end(items[trailing[-1]]) :]) if last_kept < 0 else None
            self.replace(start, self.end(items[trailing[-1]]) + (after.end() if after else 0), "")

    def remove_names(self, node: _Import, names: Sequence[ast.alias]) -> None:
        """Names of an import; the whole statement where there are no others."""
        if len(names) < len(node.names):
            self.remove_items(node.names, [node.names.index(one) for one in names])
        elif self.is_alone(node) and not self._is_whole_block(node):
            assert node.end_lineno is not None
            self.replace(self.line_start(node.lineno), min(self.line_start(node.end_lineno + 1), len(self.text)), "")
        else:
            self.replace(self.start(node), self.end(node), "pass")

    def _is_whole_block(self, node: ast.stmt) -> bool:
        for parent in ast.walk(self.tree):
            for part in ("body", "orelse", "finalbody"):
                if getattr(parent, part, None) == [node] and not isinstance(parent, ast.Module):
                    return True
        return False

    def take_from(self, node: ast.ImportFrom, names: Sequence[ast.alias], module: str) -> None:
        """These names come from another module now."""
        if len(names) == len(node.names):
            self.change_module(node, module)
        else:
            self.remove_items(node.names, [node.names.index(one) for one in names])
            self.add_after(node, f"from {module} import {', '.join(self.segment(one) for one in names)}")
