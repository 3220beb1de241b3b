"""A tool's arguments from a command line: `--params` (JSON, @file, stdin) and flags, joined and checked."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from typing import Any

from dari.cli.remote.context import CommandContext, read_named_file
from dari.cli.remote.input_schema import ObjectSchema, Schema, choices_of, follow, items_of, type_text, types_of
from dari.errors import InvalidInput

_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_MISSING = object()
_MAX_DIGITS = 4300
"""Python refuses a number with more."""
_PAIR = re.compile(r"(?P<name>[A-Za-z_][\w.-]*)(?P<sign>:=|=|:)")


def read_flags(words: Sequence[str], shape: ObjectSchema, tool: str) -> dict[str, Any]:
    """The arguments that these words give. InvalidInput names the flag that is wrong, and what was meant."""
    found: dict[str, Any] = {}
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if not word.startswith("--") or len(word) == 2:
            _read_pair(word, queue, shape, tool, found)
            continue
        name, equals, text = word[2:].partition("=")
        flag = _Flag(name, shape, tool)
        if flag.is_negated:
            if equals:
                raise InvalidInput(f"--{name} takes no value", f"--{name}, or --{flag.path[0]}=false")
            value: Any = False
        elif flag.is_switch and not equals:
            value = queue.pop(0).lower() in _TRUE if queue and queue[0].lower() in ("true", "false") else True
        else:
            if not equals:
                if not queue or (queue[0].startswith("--") and len(queue[0]) > 2):
                    raise InvalidInput(f"--{name} needs a value", f"--{name} <{flag.type_text}>, or --{name}=<value>")
                text = queue.pop(0)
            value = read_value(text, flag.schema, shape.root, f"--{name}")
        _put(found, flag, value, text)
    return found


def _read_pair(word: str, queue: list[str], shape: ObjectSchema, tool: str, found: dict[str, Any]) -> None:
    """`name=value`, `name:=JSON`, `name:value`, or `name:` and a value that follows; puts it into `found`."""
    pair = _PAIR.match(word)
    if pair is None or (pair["sign"] == ":" and _known(pair["name"], shape) is None):
        raise InvalidInput(f"'{word[:80]}' belongs to no argument", _as_pairs(shape, word))
    name, sign, text = pair["name"], pair["sign"], word[pair.end() :]
    flag = _Flag(name, shape, tool, is_pair=True)
    if sign == ":" and not text and queue:
        text = queue.pop(0)
    if sign == ":=":
        value = _parsed(text)
        if value is _MISSING:
            raise InvalidInput(f"{name}:= needs JSON, got {_shown(text)}", f"""{name}:='{{"a": 1}}', or {name}=TEXT""")
    else:
        value = read_value(text, flag.schema, shape.root, f"{name}{sign}", is_pair=True)
    _put(found, flag, value, text)


def list_missing(shape: ObjectSchema, given: dict[str, Any]) -> list[str]:
    """The required arguments that are not there, as flags with their types."""
    return [
        f"--{each.name} ({type_text(each.schema, shape.root)})"
        for each in shape.arguments
        if each.is_required and each.name not in given
    ]


def merge_arguments(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Both, member by member; where they disagree, `above` counts."""
    joined = dict(below)
    for name, value in above.items():
        old = joined.get(name)
        joined[name] = merge_arguments(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return joined


def takes_value(name: str, shape: ObjectSchema, tool: str) -> bool:
    """Whether the word after `--name` belongs to it."""
    flag = _Flag(name, shape, tool)
    return not flag.is_negated and not flag.is_switch


class _Flag:
    """The argument that a name after `--` means."""

    def __init__(self, name: str, shape: ObjectSchema, tool: str, *, is_pair: bool = False) -> None:
        self.name = name
        self.shown = name if is_pair else f"--{name}"
        self.is_negated = False
        exact = _known(name, shape)
        if exact is None and name.lower().startswith("no-"):
            positive = _known(name[3:], shape)
            if positive is not None and "boolean" in types_of(shape.properties[positive], shape.root):
                self.is_negated, exact = True, positive
        if exact is not None:
            self.path, self.schema = [exact], shape.properties[exact]
        else:
            self.path, self.schema = _dotted(name, shape, tool, "" if is_pair else "--")
        types = types_of(self.schema, shape.root)
        self.is_switch = "boolean" in types and "string" not in types
        self.is_list = "array" in types
        self.type_text = type_text(self.schema, shape.root)


def _known(name: str, shape: ObjectSchema) -> str | None:
    if name in shape.properties:
        return name
    alike = [each for each in shape.properties if _plain(each) == _plain(name)]
    return alike[0] if len(alike) == 1 else None


def _dotted(name: str, shape: ObjectSchema, tool: str, dashes: str) -> tuple[list[str], Schema]:
    path: list[str] = []
    inner = shape
    steps = name.split(".")
    for at, step in enumerate(steps):
        known = _known(step, inner)
        if known is None:
            if step and inner.takes_any and (at > 0 or len(steps) == 1):
                return [*path, *steps[at:]], {}
            raise _unknown(name, shape, tool, dashes)
        path.append(known)
        schema = inner.properties[known]
        if at + 1 < len(steps):
            inner = ObjectSchema(_object_branch(schema, shape.root), shape.root)
    return path, schema


def _object_branch(schema: Schema, root: Schema) -> Schema:
    """Of `object or null`, the object."""
    for word in ("anyOf", "oneOf"):
        for branch in schema.get(word) or ():
            if "object" in types_of(branch, root):
                return follow(branch, root)
    return schema


def _unknown(name: str, shape: ObjectSchema, tool: str, dashes: str) -> InvalidInput:
    from dari.bridge.search.fuzzy import nearest_names

    names = list(shape.properties)
    likely = nearest_names(name.removeprefix("no-"), names, 1)
    listed = ", ".join(f"{dashes}{each}" for each in names) or "none"
    hint = f"did you mean {dashes}{likely[0]}? " if likely else ""
    return InvalidInput(f"'{tool}' has no argument {dashes}{name[:80]}", f"{hint}its arguments: {listed}")


def read_value(text: str, schema: Schema, root: Schema, flag: str, *, is_pair: bool = False) -> Any:
    """The text as a value of the schema's type; `flag` is what an error calls it (`--name`, or `name=` of a pair)."""
    schema = follow(schema, root)
    types = types_of(schema, root)
    if "array" in types:
        return _listed(text, schema, types, root, flag, is_pair=is_pair)
    if choices := choices_of(schema, root):
        return _chosen(text, choices, types, flag, is_pair=is_pair)
    for value in (_number(text, types), _boolean(text, types), _json(text, types)):
        if value is not _MISSING:
            return value
    if "string" in types:
        return text
    if not types:
        value = _parsed(text)
        return text if value is _MISSING else value
    raise InvalidInput(
        f"{flag.rstrip('=:')} must be {type_text(schema, root)}, got {_shown(text)}",
        f"give {_given(flag, None, is_pair)}<{_hint(types)}>",
    )


def _given(flag: str, text: str | None, is_pair: bool) -> str:
    space = "" if is_pair else " "
    return f"{flag}{space}" if text is None else f"{flag}{space}{_shown(text)}"


def _listed(text: str, schema: Schema, types: set[str], root: Schema, flag: str, *, is_pair: bool) -> Any:
    whole = _parsed(text) if text.lstrip().startswith("[") else _MISSING
    if isinstance(whole, list):
        return whole
    if text == "null" and "null" in types:
        return None
    return [read_value(text, items_of(schema, root), root, flag, is_pair=is_pair)]


def _chosen(text: str, choices: list[Any], types: set[str], flag: str, *, is_pair: bool) -> Any:
    for choice in choices:
        if text == choice or text == json.dumps(choice, ensure_ascii=False):
            return choice
    if text == "null" and "null" in types:
        return None
    from dari.bridge.search.fuzzy import nearest_names

    names = [choice if isinstance(choice, str) else json.dumps(choice) for choice in choices]
    likely = nearest_names(text, names, 1)
    hint = f"did you mean {likely[0]}? " if likely else ""
    raise InvalidInput(
        f"{_given(flag, text, is_pair)} is not one of its values", f"{hint}one of: {', '.join(names[:20])}"
    )


def _number(text: str, types: set[str]) -> Any:
    if types & {"integer", "number"} and _INTEGER.fullmatch(text) and len(text) <= _MAX_DIGITS:
        return int(text)
    if "number" in types and _NUMBER.fullmatch(text):
        value = float(text)
        return value if abs(value) != float("inf") else _MISSING
    return _MISSING


def _boolean(text: str, types: set[str]) -> Any:
    if "boolean" not in types or ("string" in types and text not in ("true", "false")):
        return _MISSING
    lowered = text.lower()
    return True if lowered in _TRUE else False if lowered in _FALSE else _MISSING


def _json(text: str, types: set[str]) -> Any:
    value = _parsed(text) if types & {"object", "null"} and (text == "null" or text.lstrip()[:1] == "{") else _MISSING
    if value is None:
        return None if "null" in types and "string" not in types else _MISSING
    return value if isinstance(value, dict) and "object" in types else _MISSING


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _MISSING


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _put(found: dict[str, Any], flag: _Flag, value: Any, text: str) -> None:
    inner = found
    for step in flag.path[:-1]:
        inner = inner.setdefault(step, {})
        if not isinstance(inner, dict):
            raise InvalidInput(
                f"--{flag.name} names a member of a value that is not an object", "give it once, in JSON"
            )
    name = flag.path[-1]
    old = inner.get(name, _MISSING)
    if old is _MISSING:
        inner[name] = value
    elif isinstance(old, list) and isinstance(value, list) and flag.is_list:
        inner[name] = old + value
    elif isinstance(old, dict) and isinstance(value, dict):
        inner[name] = merge_arguments(value, old)
    else:
        raise InvalidInput(f"{flag.shown} is given twice", "give it once")


def _as_pairs(shape: ObjectSchema, word: str) -> str:
    if not shape.arguments:
        return "the tool takes no arguments"
    first = next((each for each in shape.arguments if each.is_required), shape.arguments[0])
    return f"name the argument: {first.name}={word[:80]}, or --{first.name} {word[:80]}"


def _plain(name: str) -> str:
    return re.sub(r"[-_]", "", name).lower()


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


def _hint(types: set[str]) -> str:
    return "JSON object" if types == {"object"} else " or ".join(sorted(types - {"null"})) or "value"


_MAX_BYTES = 64 * 1024 * 1024
_EXAMPLE = """--params '{"name": "value"}'"""


def add_params_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--params", metavar="JSON", help="the arguments as a JSON object; @FILE reads a file, - reads stdin"
    )


async def read_arguments(arguments: argparse.Namespace, context: CommandContext, tool: str, schema: Any) -> bytes:
    """The arguments as JSON: flags win over `--params`. InvalidInput before anything is sent."""
    shape = ObjectSchema(schema)
    given, text = await _params(arguments.params, context)
    flags = read_flags(arguments.rest, shape, tool)
    joined = merge_arguments(given, flags)
    if absent := list_missing(shape, joined):
        raise InvalidInput(
            f"'{tool}' needs {', '.join(absent)}", f"see them all: {context.program} {_command(context)} {tool} --help"
        )
    if not flags and text is not None:
        return text  # as it was written: numbers of any size, and every digit
    try:
        return json.dumps(joined, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise InvalidInput("arguments must be UTF-8 text", "pass binary data as base64") from None
    except ValueError:
        raise InvalidInput("a number in the arguments is too large", "pass at most 1.7e308, or text") from None


async def _params(params: str | None, context: CommandContext) -> tuple[dict[str, Any], bytes | None]:
    if params is None:
        return {}, None
    data, where = await _source(params, context)
    if len(data) > _MAX_BYTES:
        raise InvalidInput(f"{where} may have at most {_MAX_BYTES} bytes, got {len(data)}", "pass less, or a file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{where} must be UTF-8 text (byte {error.start})", "write it as UTF-8") from None
    try:
        value = json.loads(text, parse_constant=_no_number, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(
            f"{where} must be JSON: {error.msg} at {place}{_around(text, error.pos)}", _EXAMPLE
        ) from None
    except RecursionError:
        raise InvalidInput(f"{where} is nested too deeply", _EXAMPLE) from None
    except _Wrong as error:
        raise InvalidInput(f"{where} must be JSON: {error}", _EXAMPLE) from None
    except ValueError:
        raise InvalidInput(f"{where} has a number of more than {_MAX_DIGITS} digits", "pass it as text") from None
    if not isinstance(value, dict):
        raise InvalidInput(f"{where} is {_kind(value)}, and must be an object", _EXAMPLE)
    return value, text.encode()


async def _source(params: str, context: CommandContext) -> tuple[bytes, str]:
    if params in ("-", "@-"):
        if context.console.stdin_is_tty:
            context.note("reading arguments as JSON; end with Ctrl-D")
        return await context.console.read_stdin(), "stdin"
    if not params.startswith("@"):
        return params.encode("utf-8", "surrogateescape"), "--params"
    cwd = context.view.around.cwd
    return read_named_file(cwd, params[1:], _MAX_BYTES, "name a file that holds JSON; - reads stdin"), params


def _command(context: CommandContext) -> str:
    return "call-tool" if context.program.endswith("remote") else "call_tool"


class _Wrong(ValueError):
    """Python's JSON is wider than JSON."""


def _no_number(constant: str) -> Any:
    raise _Wrong(f"{constant} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Wrong(f"the member {twice!r} stands there twice")
    return found


def _around(text: str, at: int) -> str:
    near = text[max(0, at - 15) : at + 15].replace("\n", " ")
    return f", near {near!r}" if near.strip() else ""


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return "a string" if isinstance(value, str) else "a number"
