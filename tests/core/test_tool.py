"""A decorated method becomes a tool: its name, its texts, its hints, and how it runs."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import msgspec
import pytest

from dari.core.content import ToolResult
from dari.core.context import Context
from dari.core.registry import Registry
from dari.core.tool import DEFAULT_TIMEOUT_S, Tool, tool, tools_of, typed_tool, within_limit
from dari.errors import Conflict, InvalidInput, TimedOut
from tests.support.typed_tools import Kit, Place, Tree

NOBODY: Any = None
TOOLS = {tool.name: tool for tool in tools_of(Kit())}


async def run(tool: Tool, context: Any = None, **arguments: Any) -> Any:
    value = tool.run(msgspec.json.encode(arguments), context)
    return await value if tool.is_async else value


def test_tools_are_named_by_prefix_and_method_in_the_order_they_are_written() -> None:
    assert list(TOOLS) == [
        "kit_plain",
        "kit_bounded",
        "kit_nested",
        "kit_recursive",
        "kit_choice",
        "kit_table",
        "kit_asker",
        "kit_renamed",
        "kit_nothing",
    ]


def test_the_first_line_of_the_docstring_is_the_description() -> None:
    assert TOOLS["kit_plain"].description == "Say a text; returns it."


def test_a_tool_of_scope_read_is_read_only_and_the_hints_say_so() -> None:
    assert TOOLS["kit_plain"].scope == "read"
    assert TOOLS["kit_plain"].annotations == {
        "title": "Plain",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }


def test_what_the_decorator_was_told_is_in_the_listing() -> None:
    listing = TOOLS["kit_asker"].listing()
    assert (listing["name"], listing["title"], listing["description"]) == ("kit_asker", "Ask who", "Use the context.")
    assert TOOLS["kit_asker"].scope == "control"
    assert listing["annotations"] == {
        "title": "Ask who",
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }


def test_the_time_limit_is_the_tools_own_or_the_default() -> None:
    assert TOOLS["kit_renamed"].timeout_s == 7
    assert TOOLS["kit_plain"].timeout_s == DEFAULT_TIMEOUT_S


async def test_a_time_out_inside_a_tool_is_not_taken_for_the_tools_own_time_limit() -> None:
    @tool(timeout_s=None)
    async def connect() -> str:
        raise TimeoutError("10.0.0.1 did not answer")

    @tool(timeout_s=0.01)
    async def wait() -> str:
        return await asyncio.Event().wait()  # type: ignore[return-value]

    for function, raised in ((connect, TimeoutError), (wait, TimedOut)):
        made = typed_tool(function)
        with pytest.raises(raised):
            await within_limit(made, made.run(b"{}", NOBODY))


async def test_an_async_tool_gets_its_arguments_typed_and_its_defaults() -> None:
    assert await run(TOOLS["kit_plain"], text="hi") == "hi 3 0.5 False"
    assert await run(TOOLS["kit_nested"], place={"host": "h"}) == Place("h", 80)
    forest = await run(TOOLS["kit_recursive"], tree={"name": "a", "children": [{"name": "b"}]})
    assert forest.tallest == Tree("a", [Tree("b")])
    assert await run(TOOLS["kit_choice"], kind="a", either="x", pair=[2, "y"]) == "a 'x' (2, 'y')"
    assert await run(TOOLS["kit_nothing"]) is None


async def test_a_mutable_default_is_not_shared_between_calls() -> None:
    class Keeper:
        prefix = "k"

        @tool()
        async def keep(self, seen: list[str] = []) -> list[str]:  # noqa: B006
            """Change its default."""
            seen.append("x")
            return seen

    (keep,) = tools_of(Keeper())
    assert [await run(keep), await run(keep)] == [["x"], ["x"]]


def test_a_plain_function_runs_at_once_and_may_have_keyword_only_parameters() -> None:
    quick = TOOLS["kit_renamed"]
    assert not quick.is_async
    result = quick.run(b'{"b":"x"}', None)  # type: ignore[arg-type]
    assert isinstance(result, ToolResult)
    assert not inspect.isawaitable(result)
    assert msgspec.to_builtins(result)["content"] == [{"type": "text", "text": "1x"}]


async def test_the_context_is_handed_over_under_any_name_and_place() -> None:
    class Caller(Context):
        request_id = 7

        async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None: ...
        async def log(self, level: Any, data: Any, logger: str | None = None) -> None: ...
        async def ask(self, questions: Any) -> dict[str, Any]:
            return {}

        @property
        def capabilities(self) -> dict[str, Any]:
            return {}

        @property
        def state(self) -> dict[str, Any]:
            return {}

    class Late:
        prefix = "late"

        @tool()
        async def last(self, a: int, b: int = 2, *, who: Context) -> str:
            """Take the context last."""
            return f"{who.request_id} {a} {b}"

    (last,) = tools_of(Late())
    assert await run(TOOLS["kit_asker"], Caller(), key="k") == "7:k"
    assert await run(last, Caller(), a=1) == "7 1 2"


def test_a_function_without_a_toolkit_needs_no_prefix() -> None:
    @tool()
    async def alone(text: str) -> str:
        """Stand alone."""
        return text

    assert typed_tool(alone).name == "alone"


def test_a_second_tool_of_the_same_name_is_refused_and_nothing_is_added() -> None:
    registry = Registry()
    registry.add_toolkit(Kit())
    first, before = dict(registry.tools), registry.version

    @tool()
    async def fresh() -> str:
        """Be new."""
        return ""

    with pytest.raises(Conflict, match="'kit_plain'") as refused:
        registry.add_tools(typed_tool(fresh), TOOLS["kit_plain"])
    assert refused.value.hint
    assert registry.tools == first, "a list that was sent must stay true"
    assert registry.version == before


def test_an_overridden_method_is_one_tool() -> None:
    class Louder(Kit):
        @tool()
        async def plain(self, text: str) -> str:  # type: ignore[override]
            """Shout."""
            return text.upper()

    tools = tools_of(Louder())
    assert [one.name for one in tools].count("kit_plain") == 1
    assert next(one for one in tools if one.name == "kit_plain").description == "Shout."


def test_a_method_overridden_without_the_decorator_is_no_tool_any_more() -> None:
    class Quiet(Kit):
        async def plain(self, text: str) -> str:  # type: ignore[override]
            return text

    assert "kit_plain" not in [one.name for one in tools_of(Quiet())]


def test_a_parameter_without_a_type_is_refused_by_name() -> None:
    @tool()
    async def careless(text) -> str:  # type: ignore[no-untyped-def]
        """Forget a type."""
        return str(text)

    with pytest.raises(TypeError, match=r"careless.*'text'"):
        typed_tool(careless)


async def test_arguments_are_in_camel_case_where_the_decorator_says_so() -> None:
    @tool(camel_case=True)
    async def write(dry_run: bool, max_files: int = 3) -> str:
        """Write."""
        return f"{dry_run} {max_files}"

    made = typed_tool(write)
    assert set(made.input_schema["properties"]) == {"dryRun", "maxFiles"}
    assert await made.run(b'{"dryRun": true, "maxFiles": 5}', NOBODY) == "True 5"
    with pytest.raises(InvalidInput, match="unknown argument 'dry_run'") as refused:
        await made.run(b'{"dry_run": true}', NOBODY)
    assert "dryRun" in refused.value.hint
