"""Parse YAML into the same tree as JSON. PyYAML is imported only when there is a YAML file to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dari.bridge.config.jsonc import MAX_DEPTH, Member, Node
from dari.errors import InvalidInput, Unavailable
from dari.installation import install_extra

if TYPE_CHECKING:
    import yaml

_PLAIN_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
MAX_YAML_CHARS = 256 * 1024
"""PyYAML takes a second for this, in which nobody else is answered; anybody's project may have a file."""
MAX_NODES = 100_000
"""Aliases multiply: ten lines of them can stand for a billion values."""


def parse(text: str, file: str) -> Node:
    """The tree of one YAML document, with the plain types of JSON; tags that build Python objects are refused."""
    if len(text) > MAX_YAML_CHARS:
        fact = f"{file} has {len(text)} characters, and a YAML file at most {MAX_YAML_CHARS}"
        raise InvalidInput(fact, "write it as mcp.json")
    try:
        import yaml
    except ImportError as error:
        raise Unavailable(f"{file} is YAML, and PyYAML is not installed", install_extra("bridge")) from error

    class Loader(yaml.SafeLoader):
        """Merges (`<<`) double with every level as aliases do, before there are nodes to count."""

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            super().flatten_mapping(node)
            if len(node.value) > MAX_NODES:
                raise _endless(file, node.start_mark.line + 1)

    loader = Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return Node(1, 0, 0, shape="object")
        return _Converter(loader, file).node(root, ())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        fact = getattr(error, "problem", None) or "YAML is expected here"
        raise InvalidInput(f"{file}:{line}:{column}: {fact}", "correct the YAML at this place") from error
    except RecursionError:
        raise InvalidInput(f"{file}: nested deeper than {MAX_DEPTH} levels", "correct the YAML") from None
    finally:
        loader.dispose()


class _Converter:
    def __init__(self, loader: yaml.SafeLoader, file: str) -> None:
        self._loader = loader
        self._file = file
        self._count = 0

    def node(self, raw: yaml.Node, above: tuple[int, ...]) -> Node:
        import yaml

        self._count += 1
        line = raw.start_mark.line + 1
        if self._count > MAX_NODES or id(raw) in above:
            raise _endless(self._file, line)
        if len(above) > MAX_DEPTH:
            raise InvalidInput(f"{self._file}:{line}: nested deeper than {MAX_DEPTH} levels", "correct the YAML here")
        if not isinstance(raw, yaml.ScalarNode) and raw.tag not in _PLAIN_TAGS:
            raise InvalidInput(f"{self._file}:{line}: the tag {raw.tag} is not supported", "remove it")
        node = Node(line, raw.start_mark.index, raw.end_mark.index)
        inside = (*above, id(raw))
        if isinstance(raw, yaml.MappingNode):
            node.shape = "object"
            self._loader.flatten_mapping(raw)
            for key, value in raw.value:
                start, end = key.start_mark, key.end_mark
                node.members.append(
                    Member(self._key(key), self.node(value, inside), start.index, end.index, start.line + 1)
                )
        elif isinstance(raw, yaml.SequenceNode):
            node.shape = "array"
            for value in raw.value:
                start = value.start_mark
                node.members.append(Member("", self.node(value, inside), start.index, start.index, start.line + 1))
        else:
            node.scalar = self._scalar(raw)
        return node

    def _key(self, raw: yaml.Node) -> str:
        import yaml

        if not isinstance(raw, yaml.ScalarNode):
            raise InvalidInput(
                f"{self._file}:{raw.start_mark.line + 1}: a key must be plain text", "use a plain word as the key"
            )
        return str(raw.value)

    def _scalar(self, raw: yaml.Node) -> None | bool | int | float | str:
        if raw.tag == _TIMESTAMP:
            return str(raw.value)  # a date is, for a profile, the text that was typed: `2026-99-99` as well
        try:
            value = self._loader.construct_object(raw)
        except (ValueError, KeyError) as error:  # `!!int x`, `!!bool x`, a number of 5000 digits
            fact = f"{str(raw.value)[:40]!r} does not fit its type, {raw.tag.rpartition(':')[2]}"
            raise InvalidInput(f"{self._file}:{raw.start_mark.line + 1}: {fact}", "put it in quotes") from error
        # Binary data is the text that was typed, too.
        return value if value is None or isinstance(value, (bool, int, float, str)) else str(raw.value)


def _endless(file: str, line: int) -> InvalidInput:
    return InvalidInput(f"{file}:{line}: aliases expand without end", "write the values out")
