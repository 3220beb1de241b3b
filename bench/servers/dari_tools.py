"""The tools of the benchmark as ours: `echo` written as any tool is, the others made from their specs."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

from msgspec import Meta

from bench.servers.toolset import ECHO_DESCRIPTION, ToolSpec, other_tools
from dari.core.registry import Registry
from dari.core.tool import tool, typed_tool

_TYPES = {"string": str, "integer": int, "boolean": bool}


@tool()
async def echo(text: Annotated[str, Meta(description="What to return")]) -> str:
    return text


echo.__doc__ = ECHO_DESCRIPTION


def registry_of(count: int) -> Registry:
    registry = Registry()
    registry.add_tools(typed_tool(echo), *(typed_tool(_function_of(spec)) for spec in other_tools(count)))
    return registry


def _function_of(spec: ToolSpec) -> Any:
    """A decorated function with the signature that the spec describes."""

    async def function(**given: object) -> str:
        return str(given)

    hints: dict[str, Any] = {
        name: Annotated[_TYPES[kind], Meta(description=description)]
        for name, (kind, description, _) in spec.parameters.items()
    }
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is None else default,
            annotation=hints[name],
        )
        for name, (_, _, default) in spec.parameters.items()
    ]
    function.__name__ = spec.name
    function.__doc__ = spec.description
    function.__annotations__ = {**hints, "return": str}
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return tool()(function)
