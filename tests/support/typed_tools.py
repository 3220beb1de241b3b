"""Typed tools for the tests of this folder: every kind of argument that a schema can describe."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from dari.core.content import TextContent, ToolResult
from dari.core.context import Context
from dari.core.tool import tool


class Place(Struct, forbid_unknown_fields=True):
    """Where it is."""

    host: str
    port: Annotated[int, Meta(ge=1, le=65535, description="TCP port")] = 80


class Loose(Struct):
    label: str = ""


class Tree(Struct):
    name: str
    children: list[Tree] = []


class Forest(Struct):
    trees: dict[str, Tree]
    tallest: Tree | None = None


class Report(Struct, rename="camel"):
    file_name: str
    sizes: list[int] = []


class Kit:
    """Tools named `kit_<method>`."""

    prefix = "kit"

    @tool()
    async def plain(self, text: str, how_many: int = 3, ratio: float = 0.5, loud: bool = False) -> str:
        """Say a text; returns it.

        This paragraph is for people who read the source.
        """
        return f"{text} {how_many} {ratio} {loud}"

    @tool()
    async def bounded(
        self,
        count: Annotated[int, Meta(ge=1, le=9, description="how often")],
        code: Annotated[str, Meta(min_length=2, max_length=4, pattern="^[a-z]+$")] = "ab",
        tags: Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(max_length=3)] = [],  # noqa: B006
    ) -> Report:
        """Take bounded values."""
        return Report(code, [count] * len(tags))

    @tool()
    async def nested(self, place: Place, others: list[Place] = [], loose: Loose | None = None) -> Place:  # noqa: B006
        """Take structs."""
        return place

    @tool()
    async def recursive(self, tree: Tree) -> Forest:
        """Take a type that contains itself."""
        return Forest({"only": tree}, tree)

    @tool()
    async def choice(
        self, kind: Literal["a", "b"], either: int | str | None = None, pair: tuple[int, str] = (1, "x")
    ) -> str:
        """Take alternatives."""
        return f"{kind} {either!r} {pair!r}"

    @tool()
    async def table(self, rows: dict[str, list[int]] = {}) -> str:  # noqa: B006
        """Take a mapping."""
        return str(sum(map(sum, rows.values())))

    @tool(title="Ask who", scope="control", read_only=False, destructive=True, idempotent=False, open_world=True)
    async def asker(self, context: Context, key: str) -> str:
        """Use the context."""
        return f"{context.request_id}:{key}"

    @tool(name="renamed", timeout_s=7)
    def quick(self, a: int = 1, *, b: str) -> ToolResult:
        """Run without a task."""
        return ToolResult([TextContent(text=f"{a}{b}")])

    @tool()
    async def nothing(self) -> None:
        """Take nothing and return nothing."""

    def helper(self) -> str:
        return "not a tool"
