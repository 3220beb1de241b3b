"""A tool is a typed function: its signature is the input schema, its return type the output schema."""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, astuple

from dari.core.content import ContentBlock, OutputPolicy, RawResult, ToolResult, redact_code, redact_result
from dari.core.context import Context
from dari.core.header_params import Path, find_header_params
from dari.core.schema import Schema, object_schema, title_of
from dari.core.scopes import READ
from dari.core.validation import invalid_arguments, repair_numbers
from dari.errors import TimedOut
from dari.struct_types import ready

_MARK = "__dari_tool__"
DEFAULT_TIMEOUT_S = 120.0
INNER_LIMITS_ONLY = None
"""The time limit of a tool that waits as long as its caller or a server's profile says: limits inside it count, and
one outside that ended first would throw their answers away."""


class ToolSpec(Struct, frozen=True):
    """The arguments of the decorator."""

    scope: str
    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    timeout_s: float | None
    title: str | None
    name: str | None
    output: OutputPolicy
    camel_case: bool
    is_recorded: bool


def tool(
    *,
    scope: str = READ,
    read_only: bool | None = None,
    destructive: bool = False,
    idempotent: bool = True,
    open_world: bool = False,
    timeout_s: float | None = DEFAULT_TIMEOUT_S,
    title: str | None = None,
    name: str | None = None,
    output: OutputPolicy = "redacted",
    camel_case: bool = False,
    is_recorded: bool = True,
) -> Callable[[Any], Any]:
    """Mark a method as a tool. A tool of scope `read` is read-only unless said otherwise.

    Secrets in its result are hidden, unless `output` is `as_is`: for what a program printed on a screen. With
    `camel_case` the argument `dry_run` is `dryRun` on the wire. A call that is not `is_recorded` leaves no line in the
    audit log: for keys as a person presses them, which may be a password.
    """
    spec = ToolSpec(
        scope=scope,
        read_only=scope == READ if read_only is None else read_only,
        destructive=destructive,
        idempotent=idempotent,
        open_world=open_world,
        timeout_s=timeout_s,
        title=title,
        name=name,
        output=output,
        camel_case=camel_case,
        is_recorded=is_recorded,
    )

    def mark(function: Any) -> Any:
        setattr(function, _MARK, spec)
        return function

    return mark


class Run(Protocol):
    """Runs a tool on its raw JSON arguments."""

    def __call__(self, arguments: bytes | msgspec.Raw, context: Context, /) -> Any: ...


class Tool(Struct, frozen=True):
    """A tool as the registry holds it. `run` returns a value, or an awaitable of one when `is_async`."""

    name: str
    description: str
    scope: str
    input_schema: Schema
    output_schema: Schema | None
    annotations: dict[str, Any]
    run: Run
    is_async: bool = True
    title: str | None = None
    timeout_s: float | None = DEFAULT_TIMEOUT_S
    mirrored: dict[str, Path] = field(default_factory=dict)
    """Arguments that the schema mirrors into `Mcp-Param-*` headers: header suffix → path of the argument."""
    shown: dict[str, Any] | None = None
    """The tool as another server lists it, with every field that server knows."""
    server: str = ""
    """The name of that server here; empty for a tool of ours."""
    own_name: str = ""
    """Its name on that server, as the server's profile has it."""
    part: str = "bridge"
    """Which part of Dari runs it, as the audit log names it."""
    is_recorded: bool = True

    def listing(self) -> dict[str, Any]:
        """The tool as `tools/list` shows it."""
        if self.shown is not None:
            return self.shown
        shown: dict[str, Any] = {"name": self.name}
        if self.title:
            shown["title"] = self.title
        shown["description"] = self.description
        shown["inputSchema"] = self.input_schema
        if self.output_schema is not None:
            shown["outputSchema"] = self.output_schema
        if self.annotations:
            shown["annotations"] = self.annotations
        return shown


async def within_limit(tool: Tool, work: Awaitable[Any]) -> Any:
    """What the running tool returns; TimedOut when it takes longer than it may."""
    try:
        async with asyncio.timeout(tool.timeout_s) as limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise  # something inside the tool was too slow
        raise TimedOut(f"the time limit of {tool.timeout_s or 0:g} s passed", "ask for less at once") from None


class Toolkit(Protocol):
    """A class whose methods are tools named `<prefix>_<method>`."""

    prefix: str


def tools_of(toolkit: Toolkit, *, output: OutputPolicy | None = None) -> list[Tool]:
    """The decorated methods of a toolkit, in the order they are written; `output` overrules what they declare."""
    marked = [
        name for cls in reversed(type(toolkit).__mro__) for name, value in vars(cls).items() if hasattr(value, _MARK)
    ]
    # A subclass may override a tool, or take its mark away.
    members = [getattr(toolkit, name) for name in dict.fromkeys(marked)]
    return [typed_tool(member, prefix=toolkit.prefix, output=output) for member in members if hasattr(member, _MARK)]


def typed_tool(function: Callable[..., Any], *, prefix: str = "", output: OutputPolicy | None = None) -> Tool:
    """Build a tool from a decorated function or bound method."""
    spec: ToolSpec = getattr(function, _MARK)
    base = spec.name or function.__name__
    name = f"{prefix}_{base}" if prefix else base
    title = spec.title or title_of(base)
    signature = _read_signature(function, name, camel_case=spec.camel_case)
    is_async = inspect.iscoroutinefunction(function)
    return Tool(
        name=name,
        title=title,
        description=(inspect.getdoc(function) or "").partition("\n")[0],
        scope=spec.scope,
        input_schema=signature.input_schema,
        output_schema=signature.output_schema,
        annotations={
            "title": title,
            "readOnlyHint": spec.read_only,
            "destructiveHint": spec.destructive,
            "idempotentHint": spec.idempotent,
            "openWorldHint": spec.open_world,
        },
        run=_runner(_gated(function, output or spec.output, is_async=is_async), signature),
        is_async=is_async,
        timeout_s=spec.timeout_s,
        mirrored=signature.mirrored,
        part="dari" if prefix.startswith("dari_") else prefix or "bridge",
        is_recorded=spec.is_recorded,
    )


@dataclass(frozen=True, slots=True)
class _Signature:
    """What the types of a function say. Shared by every tool that is made of it: nobody changes it."""

    arguments: type[Struct]
    context_name: str | None
    input_schema: Schema
    output_schema: Schema | None
    mirrored: dict[str, Path]


_signatures: WeakKeyDictionary[Callable[..., Any], dict[str, _Signature]] = WeakKeyDictionary()


def _read_signature(function: Callable[..., Any], name: str, *, camel_case: bool) -> _Signature:
    """Once for each function: a hub makes the code tools for each client, and their schemas take 40 ms."""
    known = _signatures.setdefault(getattr(function, "__func__", function), {})
    if name not in known:
        hints = typing.get_type_hints(function, include_extras=True)
        arguments, context_name = _arguments_of(function, hints, name, camel_case=camel_case)
        shown = object_schema(arguments)
        returned = _output_schema(hints.get("return"))
        known[name] = _Signature(arguments, context_name, shown, returned, find_header_params(shown))
    return known[name]


def _arguments_of(
    function: Callable[..., Any], hints: dict[str, Any], name: str, *, camel_case: bool
) -> tuple[type[Struct], str | None]:
    fields: list[Any] = []
    context_name = None
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name)
        if hint is None:
            raise TypeError(f"tool {name}: parameter '{parameter.name}' has no type")
        if inspect.isclass(hint) and issubclass(hint, Context):
            context_name = parameter.name
        elif parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, parameter.default))
    struct = msgspec.defstruct(
        f"{name}_arguments",
        fields,
        forbid_unknown_fields=True,
        kw_only=True,
        module=function.__module__,
        rename="camel" if camel_case else None,
    )
    return struct, context_name


def _output_schema(hint: Any) -> Schema | None:
    """A Struct is structured output, unless it is content that says itself how it is shown."""
    if (
        inspect.isclass(hint)
        and issubclass(hint, Struct)
        and not issubclass(hint, (ToolResult, RawResult, ContentBlock))
    ):
        return object_schema(hint)
    return None


def _gated(function: Callable[..., Any], output: OutputPolicy, *, is_async: bool) -> Callable[..., Any]:
    """The function with its result behind the redaction gate."""
    if output == "as_is":
        return function
    redact = redact_code if output == "code" else redact_result

    @wraps(function)
    async def awaited(*positional: Any, **named: Any) -> Any:
        return redact(await function(*positional, **named))

    @wraps(function)
    def called(*positional: Any, **named: Any) -> Any:
        return redact(function(*positional, **named))

    return awaited if is_async else called


def _runner(function: Callable[..., Any], signature: _Signature) -> Run:
    decode = msgspec.json.Decoder(ready(signature.arguments)).decode
    names = signature.arguments.__struct_encode_fields__
    context_name = signature.context_name

    def read(raw: bytes | msgspec.Raw) -> Any:
        try:
            return decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            repaired = repair_numbers(raw) if isinstance(error, msgspec.ValidationError) else None
            if repaired is not None:
                try:
                    return decode(repaired)
                except msgspec.DecodeError:
                    pass  # something else is wrong, too; the caller reads about what was sent
            raise invalid_arguments(error, raw, names) from None

    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    if context_name is None and inspect.Parameter.KEYWORD_ONLY not in kinds:
        # By position: the fields stand in the order of the parameters.
        return lambda raw, context, /: function(*astuple(read(raw)))
    if context_name is None:
        return lambda raw, context, /: function(**asdict(read(raw)))
    return lambda raw, context, /: function(**asdict(read(raw)), **{context_name: context})
